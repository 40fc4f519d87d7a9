package app

import (
	"path/filepath"
	"time"

	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/gateway/holds"
	"github.com/guideway-dev/guideway/internal/store/keyfile"
)

// OpenHolds returns the store of held calls. It is in the data directory with every kind of
// store, like the approvals, and it has their key.
func OpenHolds(cfg *config.Config, now func() time.Time) *holds.Store {
	return holds.New(holds.Options{
		Path: filepath.Join(cfg.DataDir, "held-calls.json"), Now: now, Texts: SealFiles(cfg),
		Key: func() ([]byte, error) {
			key, _, err := keyfile.LoadOrCreate(approvalsKeyPath(cfg))
			return key, err
		},
	})
}
