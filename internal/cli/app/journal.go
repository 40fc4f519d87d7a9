package app

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/contexts/blob/seal"
	"github.com/guideway-dev/guideway/internal/platform/digest"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/store/checkpoints"
	"github.com/guideway-dev/guideway/internal/store/keyfile"
	"github.com/guideway-dev/guideway/internal/store/postgres"
	"github.com/guideway-dev/guideway/internal/store/rollbackguard"
	"github.com/guideway-dev/guideway/internal/store/sealed"
	"github.com/guideway-dev/guideway/internal/store/sqlite"
)

// OpenJournal opens the configured store.
func OpenJournal(ctx context.Context, cfg *config.Config, log *slog.Logger) (JournalStore, error) {
	if !cfg.UsesPostgres() {
		return sqlite.Open(ctx, sqlite.Options{Path: StorePath(cfg), Program: Version(), Logger: log})
	}
	return postgres.Open(ctx, postgres.Options{URL: cfg.Store, Logger: log})
}

// SealJournal returns the encrypted form of a journal, as the settings configure it. Commands
// and servers do not prompt for its passphrase.
func SealJournal(cfg *config.Config, journal JournalStore) *sealed.Store {
	return sealed.New(journal, cfg.Encryption.Mode != config.EncryptionDisabled, openKeys(cfg, journal))
}

// SealFiles returns what encrypts texts in files of this machine, as the settings configure
// it.
func SealFiles(cfg *config.Config) *seal.Texts {
	return seal.NewTexts(cfg.Encryption.Mode != config.EncryptionDisabled, openKeys(cfg, nil))
}

// openKeys returns a function that opens the data keys in the store of a journal, or the
// data keys in files if journal is nil.
func openKeys(cfg *config.Config, journal JournalStore) func(context.Context) (*seal.Keys, error) {
	return func(ctx context.Context) (*seal.Keys, error) {
		source, err := MasterKey{}.keySource(cfg)
		if err != nil {
			return nil, err
		}
		if source == nil {
			return nil, guideway.Errorf(guideway.CodeUnavailable, "encryption is off, but the store has encrypted data").
				WithFix("set encryption.mode to its earlier value")
		}
		slots, err := checkpoints.Options{DataDir: cfg.DataDir, BlobDir: cfg.Checkpoints.Dir}.OpenSlots(journal)
		if err != nil {
			return nil, err
		}
		return seal.Open(ctx, slots, source)
	}
}

// StorePath returns the path of the SQLite store.
func StorePath(cfg *config.Config) string { return filepath.Join(cfg.DataDir, "guideway.db") }

// HasStore reports whether the configured store exists, as far as it can be known without
// opening it. A command that only reads runs does not create a store.
func HasStore(cfg *config.Config) bool { return cfg.UsesPostgres() || !isMissing(StorePath(cfg)) }

// IsDamaged reports whether a store failed to open because its file is damaged.
func IsDamaged(err error) bool { return sqlite.IsDamaged(err) }

// OpenKey reads the key that authenticates the event chains of the journal. It creates a
// key only for a store without one, because another key would break the chains. If several
// instances open a new store at the same time, one key is stored and the other instances
// get an error.
func OpenKey(ctx context.Context, cfg *config.Config, journal JournalStore) (run.Key, error) {
	path := cfg.Journal.KeyFile
	if isMissing(path) {
		chained, err := HasKey(ctx, journal)
		if err != nil {
			return nil, err
		}
		// Another process may have created the key since the first check.
		if chained && isMissing(path) {
			return nil, MissingKeyError(path)
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

func isMissing(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// HasKey reports whether a store already uses a key.
func HasKey(ctx context.Context, journal JournalStore) (bool, error) {
	kept, err := journal.PinKey(ctx, nil)
	if err != nil || kept != nil {
		return kept != nil, err
	}
	runs, err := journal.Runs(ctx, run.Filter{Limit: 1})
	return len(runs) > 0, err
}

// CheckKey returns an error if key is not the key of the store. It changes nothing.
func CheckKey(ctx context.Context, journal JournalStore, key run.Key, path string) error {
	kept, err := journal.PinKey(ctx, nil)
	if err != nil {
		return err
	}
	fits := bytes.Equal(kept, keyfile.Fingerprint(key))
	if kept == nil { // a store of a version that stored no fingerprint
		if fits, err = matchesRuns(ctx, journal, key); err != nil {
			return err
		}
	}
	if !fits {
		return wrongKeyError(path)
	}
	return nil
}

// matchesRuns reports whether the key matches the first event of a run, or there are no
// runs. It checks a few runs, because one may have been tampered with.
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

// MissingKeyError returns the error for a key file that does not exist.
func MissingKeyError(path string) error {
	return guideway.Errorf(guideway.CodeUnavailable, "the store has a key, and this computer does not have it: the key file %s does not exist", path).
		WithFix("restore the key file from a backup; on a computer that never had it, copy or mount the key file of another computer that uses the store, with mode 0600, and name it with GUIDEWAY_JOURNAL_KEY_FILE; a new key would make every run unverifiable")
}

// wrongKeyError returns the error for the key of a different store.
func wrongKeyError(path string) error {
	return guideway.Errorf(guideway.CodeUnavailable, "the store was created with a different key than the one in %s", path).
		WithFix("copy the key file of the computer that created the store to %s, with mode 0600, or name it with --journal-key-file; no other key can continue these runs", path)
}

// OpenHeads opens the head file, which holds the last known event of each run and detects a
// rollback. Each store has its own head file: in a shared file, the runs of one store would
// be missing from the other store.
func OpenHeads(cfg *config.Config, key run.Key) (run.Heads, error) {
	return rollbackguard.Open(HeadsPath(cfg), key)
}

// HeadsPath returns the path of the head file of the configured store.
func HeadsPath(cfg *config.Config) string {
	store := cfg.RedactedStore()
	if !cfg.UsesPostgres() {
		store = StorePath(cfg)
	}
	return filepath.Join(cfg.Journal.HeadsDir, digest.Hex(store)[:12]+".heads")
}
