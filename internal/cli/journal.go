package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/journal/headfile"
	"github.com/guideway-dev/guideway/internal/journal/keyfile"
	"github.com/guideway-dev/guideway/internal/journal/postgres"
	"github.com/guideway-dev/guideway/internal/journal/sqlite"
	"github.com/guideway-dev/guideway/internal/run"
)

// openJournal opens the store that the settings name.
func openJournal(ctx context.Context, cfg *config.Config, log *slog.Logger) (keeper, error) {
	if cfg.Store == config.StoreSQLite {
		return sqlite.Open(ctx, sqlite.Options{Path: storePath(cfg), Program: version(), Logger: log})
	}
	return postgres.Open(ctx, postgres.Options{URL: cfg.Store, Logger: log})
}

// storePath is the file of the embedded store.
func storePath(cfg *config.Config) string { return filepath.Join(cfg.DataDir, "guideway.db") }

// isDamaged says whether a store did not open because its file is damaged.
func isDamaged(err error) bool { return sqlite.IsDamaged(err) }

// openKey reads the key of the journal's chains. It is made for a journal that
// has no run: where there are some, another key would break them all.
func openKey(ctx context.Context, cfg *config.Config, journal run.Journal) (run.Key, error) {
	path := cfg.Journal.KeyFile
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		runs, err := journal.Runs(ctx, run.Filter{Limit: 1})
		if err != nil {
			return nil, err
		}
		if len(runs) > 0 {
			return nil, noKey(path)
		}
	}
	key, _, err := keyfile.LoadOrCreate(path)
	return key, err
}

// noKey says that the key is gone, or was never on this machine.
func noKey(path string) error {
	return guideway.Errorf(guideway.CodeUnavailable, "there are runs, and the key file %s that they are chained by is not there", path).
		WithFix("put it back from a backup, or copy it from the machine that began the store; a new key would make every run unverifiable")
}

// openHeads opens the file that remembers how far the runs of this store have
// come. Each store has its own: the runs of one are not missing in another.
func openHeads(cfg *config.Config, key run.Key) (run.Heads, error) {
	return headfile.Open(headsPath(cfg), key)
}

func headsPath(cfg *config.Config) string {
	store := cfg.RedactedStore()
	if cfg.Store == config.StoreSQLite {
		store = storePath(cfg)
	}
	sum := sha256.Sum256([]byte(store))
	return filepath.Join(cfg.Journal.HeadsDir, hex.EncodeToString(sum[:6])+".heads")
}
