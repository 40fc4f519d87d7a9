// Package checkpoints opens the checkpoints of contexts with the best available storage:
// the metadata is in the run store, in a database next to the contents if the run store
// cannot be opened, or in memory if nothing can be written. It is the only package that imports all kinds of
// storage.
package checkpoints

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/blob"
	"github.com/guideway-dev/guideway/internal/contexts/blob/seal"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/store/postgres"
)

// The values of Options.Store. Any other value is the URL of a PostgreSQL database.
const (
	StoreSQLite = "sqlite"
	StoreFiles  = "files"
)

// The names of files in the data directory.
const (
	contextsDir  = "contexts"
	indexDir     = "index"
	databaseName = "guideway.db"
)

// Options configure the storage of checkpoints. DataDir is required.
type Options struct {
	// DataDir is the data directory. Its subdirectory "contexts" has the contents, except
	// with PostgreSQL, where the contents are rows.
	DataDir string
	// Store is StoreSQLite (the default), StoreFiles, or the URL of a PostgreSQL database.
	Store string
	// Journal returns the store of the runs, a *sqlite.Store or a *postgres.Store, to share
	// it. The caller closes that store. Journal is called again after an error. If it is
	// nil, Open opens a store and Close closes it.
	Journal func(ctx context.Context) (checkpoint.Index, error)
	// BlobDir, if set, has the contents instead of DataDir or the database. With PostgreSQL
	// it is a directory that all machines share.
	BlobDir string
	// Program is the version of the program. A migration stores it, so that an older
	// program that cannot open the store can name the version that migrated it.
	Program string
	Limits  checkpoint.Limits
	// Encryption provides the master key. If it is nil, nothing is encrypted, and encrypted
	// contents cannot be read.
	Encryption seal.Source
	// PersonalData warns of personal data, too; see checkpoint.Options.
	PersonalData bool
	// ReadOnly refuses all changes. The directory need not be writable.
	ReadOnly bool
	// Active reports whether a run is in progress; see checkpoint.Options.
	Active func(ctx context.Context, run string) (bool, error)
	// Now is the clock. The default is time.Now.
	Now func() time.Time
	// Logger gets errors that no caller receives. If it is nil, they are discarded.
	Logger *slog.Logger

	// lockedReason is the reason why the master key is not available; see OpenLocked.
	lockedReason error
	// patience is how long Open retries to open a store. The default is 3 s.
	patience time.Duration
	// settle is the value of checkpoint.Options.Settle.
	settle time.Duration
}

// Checkpoints is a checkpoint service with its storage. Its method Store returns the mode
// of the storage and, in Note, the reason if this is not the configured mode.
type Checkpoints struct {
	*checkpoint.Service
	closers []io.Closer
}

// Close writes pending audit entries and closes the stores that Open opened.
func (c *Checkpoints) Close() error {
	return closeAll(c.closers, c.Service.Close())
}

// closeAll closes stores and returns err joined with the errors of closing them.
func closeAll(closers []io.Closer, err error) error {
	for _, one := range closers {
		err = errors.Join(err, one.Close())
	}
	return err
}

// backend is the storage of a service.
type backend struct {
	index   checkpoint.Index
	blobs   blob.Store
	store   checkpoint.Store
	closers []io.Closer
}

// Open opens the checkpoints. If SQLite cannot be opened, the metadata is stored in a
// database next to the blobs; the first call fills that database from the blobs. If the directory
// cannot be written, new checkpoints are stored in memory and existing checkpoints remain
// readable. In both cases, Store returns the reason. If PostgreSQL cannot be opened, no
// other storage is used, because the checkpoints of other machines would seem to be lost.
//
// It returns CodeUnavailable if PostgreSQL is unreachable or if the master key is missing
// or wrong; nothing is changed then. It returns CodeInvalid for invalid options.
func Open(ctx context.Context, o Options) (*Checkpoints, error) {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	o.patience = cmp.Or(o.patience, 3*time.Second)
	if o.DataDir == "" {
		return nil, guideway.Errorf(guideway.CodeInvalid, "checkpoints need a data directory")
	}
	p, err := o.openBackend(ctx)
	if err != nil {
		return nil, err
	}
	c, err := o.newCheckpoints(ctx, p)
	if err != nil {
		return nil, closeAll(p.closers, err)
	}
	if p.store.Mode == checkpoint.ModeSQLite && !o.ReadOnly {
		o.importFiles(ctx, c)
	}
	if p.store.Note != "" {
		o.Logger.WarnContext(ctx, "checkpoints are not stored as configured", "mode", p.store.Mode, "why", p.store.Note)
	}
	return c, nil
}

// Locked is the error of Open if the master key is missing or wrong. Lists and totals do
// not need the key: see OpenLocked.
type Locked struct{ Cause error }

// Error implements error.
func (l *Locked) Error() string { return l.Cause.Error() }

// Unwrap returns the cause, with its code and fix.
func (l *Locked) Unwrap() error { return l.Cause }

// OpenLocked opens checkpoints without their master key, only to list and count them. It
// creates no key and changes nothing. Calls that need a content return why.
func OpenLocked(ctx context.Context, o Options, why error) (*Checkpoints, error) {
	o.Encryption, o.ReadOnly, o.lockedReason = nil, true, why
	return Open(ctx, o)
}

// newCheckpoints creates the service.
func (o Options) newCheckpoints(ctx context.Context, p *backend) (*Checkpoints, error) {
	keys, err := o.openKeys(ctx, p)
	if err != nil {
		return nil, &Locked{Cause: err}
	}
	if o.lockedReason != nil {
		p.store.Note = joinNotes(p.store.Note, "contents cannot be read or written: "+o.lockedReason.Error())
	}
	s, err := checkpoint.New(checkpoint.Options{
		Index: p.index, Blobs: p.blobs, Store: p.store, Keys: keys, PersonalData: o.PersonalData, Limits: o.Limits,
		ReadOnly: o.ReadOnly, Locked: o.lockedReason, Active: o.Active, Now: o.Now, Settle: o.settle, Logger: o.Logger,
	})
	if err != nil {
		return nil, err
	}
	return &Checkpoints{Service: s, closers: p.closers}, nil
}

func joinNotes(note, more string) string {
	if note == "" {
		return more
	}
	return note + "; " + more
}

// openKeys opens the master key. If the storage is read-only or in memory, and nothing is
// encrypted yet, it neither requires nor creates a key.
func (o Options) openKeys(ctx context.Context, p *backend) (*seal.Keys, error) {
	if o.Encryption == nil {
		return nil, nil
	}
	if o.ReadOnly || p.store.Mode == checkpoint.ModeMemory {
		if begun, err := seal.Initialized(ctx, p.blobs); err != nil || !begun {
			return nil, err
		}
	}
	return seal.Open(ctx, p.blobs, o.Encryption)
}

// OpenSlots opens the slots of the data keys of runs and session documents, which are next
// to those of checkpoints. journal is the store of the runs.
func (o Options) OpenSlots(journal any) (blob.Slots, error) {
	if db, ok := journal.(*postgres.Store); ok && o.BlobDir == "" {
		return db.Blobs(o.maxBlobBytes()), nil
	}
	return blob.OpenFiles(blob.FilesOptions{Dir: o.contentDir(), MaxBytes: o.maxBlobBytes()})
}

// isDatabase reports whether the store is the URL of a database.
func (o Options) isDatabase() bool { return strings.Contains(o.Store, "://") }

// contentDir returns the directory of the contents.
func (o Options) contentDir() string {
	if o.BlobDir != "" {
		return o.BlobDir
	}
	return filepath.Join(o.DataDir, contextsDir)
}

// maxBlobBytes returns the size limit of a blob, which is large enough for every checkpoint
// within the limits of checkpoints.
func (o Options) maxBlobBytes() int64 {
	const none = 4 << 30 // used if the limit of checkpoints is disabled
	switch most := o.Limits.CheckpointBytes; {
	case most < 0:
		return none
	default:
		return max(blob.DefaultMaxBytes, most+(1<<20))
	}
}
