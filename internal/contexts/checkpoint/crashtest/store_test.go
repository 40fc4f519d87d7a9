package crashtest

import (
	"testing"

	"github.com/guideway-dev/guideway/internal/store/checkpoints"
	"github.com/guideway-dev/guideway/internal/testutil/crash"
)

type kind struct {
	name string
	// place creates an empty place.
	place func(t *testing.T) place
}

// storeKinds returns the stores that outlive a process.
func storeKinds() []kind {
	return []kind{
		{"sqlite", func(t *testing.T) place {
			t.Helper()
			return place{Dir: crash.Dir(t)}
		}},
		{"sqlite, encrypted", func(t *testing.T) place {
			t.Helper()
			return place{Dir: crash.Dir(t), Sealed: true}
		}},
		{"files", func(t *testing.T) place {
			t.Helper()
			return place{Dir: crash.Dir(t), Store: checkpoints.StoreFiles}
		}},
		{"postgres", func(t *testing.T) place {
			t.Helper()
			return place{Dir: crash.Dir(t), Store: crash.EmptyPostgres(t), Sealed: true}
		}},
	}
}
