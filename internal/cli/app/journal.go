package app

import (
	"bytes"
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
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/store/keyfile"
	"github.com/guideway-dev/guideway/internal/store/postgres"
	"github.com/guideway-dev/guideway/internal/store/rollbackguard"
	"github.com/guideway-dev/guideway/internal/store/sqlite"
)

// OpenJournal opens the store that the settings name.
func OpenJournal(ctx context.Context, cfg *config.Config, log *slog.Logger) (JournalStore, error) {
	if !cfg.UsesPostgres() {
		return sqlite.Open(ctx, sqlite.Options{Path: StorePath(cfg), Program: Version(), Logger: log})
	}
	return postgres.Open(ctx, postgres.Options{URL: cfg.Store, Logger: log})
}

// StorePath is the file of the embedded store.
func StorePath(cfg *config.Config) string { return filepath.Join(cfg.DataDir, "guideway.db") }

// IsDamaged says whether a store did not open because its file is damaged.
func IsDamaged(err error) bool { return sqlite.IsDamaged(err) }

// OpenKey reads the key of the journal's chains. It is made for a store that has
// none yet: where there is one, another would break the chains. Of machines that
// begin on one store at once one has made its key; the others are told.
func OpenKey(ctx context.Context, cfg *config.Config, journal JournalStore) (run.Key, error) {
	path := cfg.Journal.KeyFile
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		if chained, err := HasKey(ctx, journal); err != nil || chained {
			return nil, errors.Join(err, MissingKeyError(path))
		}
	}
	key, _, err := keyfile.LoadOrCreate(path)
	if err != nil {
		return nil, err
	}
	if err := CheckKey(ctx, journal, key, path); err != nil {
		return nil, err
	}
	kept, err := journal.PinKey(ctx, keyfile.Fingerprint(key))
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(kept, keyfile.Fingerprint(key)) {
		return nil, wrongKeyError(path)
	}
	return key, nil
}

// HasKey says whether a store has a key already.
func HasKey(ctx context.Context, journal JournalStore) (bool, error) {
	kept, err := journal.PinKey(ctx, nil)
	if err != nil || kept != nil {
		return kept != nil, err
	}
	runs, err := journal.Runs(ctx, run.Filter{Limit: 1})
	return len(runs) > 0, err
}

// CheckKey refuses a key that is not the one of the store. It changes nothing.
func CheckKey(ctx context.Context, journal JournalStore, key run.Key, path string) error {
	kept, err := journal.PinKey(ctx, nil)
	if err != nil {
		return err
	}
	fits := bytes.Equal(kept, keyfile.Fingerprint(key))
	if kept == nil { // a new store, or one of an earlier version, which kept none
		if fits, err = matchesRuns(ctx, journal, key); err != nil {
			return err
		}
	}
	if !fits {
		return wrongKeyError(path)
	}
	return nil
}

// matchesRuns says whether runs that are there begin with an event of this key. A few
// are looked at: one may have been edited.
func matchesRuns(ctx context.Context, journal run.Journal, key run.Key) (bool, error) {
	const few = 5
	runs, err := journal.Runs(ctx, run.Filter{Limit: few})
	if err != nil || len(runs) == 0 {
		return err == nil, err
	}
	for _, r := range runs {
		events, err := journal.Events(ctx, r.ID, 0, 1)
		if err != nil {
			return false, err
		}
		if len(events) > 0 && bytes.Equal(events[0].MAC, key.Chain(r.ID, key.Root(r.ID), events[0])) {
			return true, nil
		}
	}
	return false, nil
}

// MissingKeyError says that the key is gone, or was never on this machine.
func MissingKeyError(path string) error {
	return guideway.Errorf(guideway.CodeUnavailable, "the store has runs, and the key file %s that they are chained by is not there", path).
		WithFix("put it back from a backup, or copy it from the machine that began the store; a new key would make every run unverifiable")
}

// wrongKeyError says that the key is not that of the store.
func wrongKeyError(path string) error {
	return guideway.Errorf(guideway.CodeUnavailable, "the runs of the store are chained by another key than the one in %s", path).
		WithFix("copy the key file of the machine that began the store to that place, with mode 0600, or name it with --journal-key-file; no other key goes on with these runs")
}

// OpenHeads opens the file that remembers how far the runs of this store have
// come. Each store has its own: the runs of one are not missing in another.
func OpenHeads(cfg *config.Config, key run.Key) (run.Heads, error) {
	return rollbackguard.Open(HeadsPath(cfg), key)
}

func HeadsPath(cfg *config.Config) string {
	store := cfg.RedactedStore()
	if !cfg.UsesPostgres() {
		store = StorePath(cfg)
	}
	sum := sha256.Sum256([]byte(store))
	return filepath.Join(cfg.Journal.HeadsDir, hex.EncodeToString(sum[:6])+".heads")
}
