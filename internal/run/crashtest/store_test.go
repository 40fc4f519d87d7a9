package crashtest

import (
	"testing"

	"github.com/guideway-dev/guideway/internal/testutil/crash"
)

// storeKind is a kind of journal.
type storeKind struct {
	name string
	// place creates an empty journal.
	place func(t *testing.T) workerPlace
}

// storeKinds returns the kinds of journals.
func storeKinds() []storeKind {
	return []storeKind{
		{"sqlite", func(t *testing.T) workerPlace {
			t.Helper()
			return workerPlace{Dir: crash.Dir(t)}
		}},
		{"postgres", func(t *testing.T) workerPlace {
			t.Helper()
			return workerPlace{Dir: crash.Dir(t), Postgres: crash.EmptyPostgres(t)}
		}},
	}
}
