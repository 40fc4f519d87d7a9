package crashtest

import (
	"testing"

	"github.com/guideway-dev/guideway/internal/testutil/crash"
)

// store is a kind of journal.
type store struct {
	name string
	// place makes an empty one.
	place func(t *testing.T) place
}

// stores are the kinds of journals.
func stores() []store {
	return []store{
		{"sqlite", func(t *testing.T) place {
			t.Helper()
			return place{Dir: crash.Dir(t)}
		}},
		{"postgres", func(t *testing.T) place {
			t.Helper()
			return place{Dir: crash.Dir(t), Postgres: crash.EmptyPostgres(t)}
		}},
	}
}
