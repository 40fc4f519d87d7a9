// Package checkpoints opens the checkpoints of contexts with what there is to keep
// them: the metadata in the store of the runs, or in files where that does not
// open, or in memory where nothing can be written. It is the one place that knows
// all of them.
package checkpoints

import (
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
)

// The stores by name; any other one is the URL of a PostgreSQL database.
const (
	StoreSQLite = "sqlite"
	StoreFiles  = "files"
)

// The names in the data directory.
const (
	contextsDir  = "contexts"
	indexDir     = "index"
	databaseName = "guideway.db"
)

// Options say where checkpoints are kept. DataDir is needed.
type Options struct {
	// DataDir is the data directory. Contents lie in its directory "contexts",
	// but with PostgreSQL, where they are rows.
	DataDir string
	// Store is StoreSQLite (also where it is empty), StoreFiles, or the URL of a
	// PostgreSQL database.
	Store string
	// Journal gives the store that the runs are in, a *sqlite.Store or a
	// *postgres.Store, to be shared; it stays the caller's. It is called again
	// where it failed. nil opens one that Close closes.
	Journal func(ctx context.Context) (checkpoint.Index, error)
	// BlobDir, if set, has the contents in place of DataDir or the database: with
	// PostgreSQL it is a directory that all machines share.
	BlobDir string
	// Program is the version of the program, for the word to an older one.
	Program string
	Limits  checkpoint.Limits
	// Encryption has the master key; nil encrypts nothing. What is encrypted
	// already needs it.
	Encryption seal.Source
	// ReadOnly refuses whatever would change something, and wants no directory
	// that can be written.
	ReadOnly bool
	// Active says whether a run is under way; see checkpoint.Options.
	Active func(ctx context.Context, run string) (bool, error)
	// Now is the clock, time.Now if nil.
	Now func() time.Time
	// Logger gets what nobody can be told; nil is silence.
	Logger *slog.Logger

	// locked is why the master key could not be had; see Listed.
	locked error
	// patience is how long a store that does not open is tried again; 0 is 3 s.
	patience time.Duration
	// settle is checkpoint.Options.Settle.
	settle time.Duration
}

// Checkpoints is a service with what it works on. Its method Store says what that
// is: Mode, and in Note why it is not what was asked for.
type Checkpoints struct {
	*checkpoint.Service
	closers []io.Closer
}

// Close writes what is still to be noted and closes what Open has opened.
func (c *Checkpoints) Close() error {
	err := c.Service.Close()
	for _, one := range c.closers {
		err = errors.Join(err, one.Close())
	}
	return err
}

// parts are what a service works on.
type parts struct {
	index   checkpoint.Index
	blobs   blob.Store
	store   checkpoint.Store
	closers []io.Closer
}

// Open opens checkpoints. Where SQLite does not open, the metadata are files beside
// the blobs, and are made from those at the first call; where the directory cannot
// be written, everything new is in memory over what can still be read. Both stand
// in every answer. There is no fall-back from PostgreSQL: what other machines have
// saved would seem to be gone.
//
// Errors: CodeUnavailable where PostgreSQL is away, or where the master key is
// missing or another one: then nothing is made and nothing is changed. CodeInvalid
// for options that cannot be.
func Open(ctx context.Context, o Options) (*Checkpoints, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.patience <= 0 {
		o.patience = 3 * time.Second
	}
	if o.DataDir == "" {
		return nil, guideway.Errorf(guideway.CodeInvalid, "checkpoints need a data directory")
	}
	p, err := o.parts(ctx)
	if err != nil {
		return nil, err
	}
	c, err := o.serve(ctx, p)
	if err != nil {
		for _, one := range p.closers {
			err = errors.Join(err, one.Close())
		}
		return nil, err
	}
	if p.store.Mode == checkpoint.ModeSQLite && !o.ReadOnly {
		o.takeOver(ctx, c)
	}
	if p.store.Note != "" {
		o.Logger.WarnContext(ctx, "checkpoints are not kept as they should be", "mode", p.store.Mode, "why", p.store.Note)
	}
	return c, nil
}

// Locked is the error of Open where the master key is missing, or another one. Lists
// and figures need none: see Listed.
type Locked struct{ Cause error }

// Error implements error.
func (l *Locked) Error() string { return l.Cause.Error() }

// Unwrap gives the cause, with its code and what to do.
func (l *Locked) Unwrap() error { return l.Cause }

// Listed opens checkpoints whose master key cannot be had, for the reason that is
// given: to be listed and counted. It asks for no key, makes none, and changes
// nothing; whatever needs a content is refused with the reason.
func Listed(ctx context.Context, o Options, why error) (*Checkpoints, error) {
	o.Encryption, o.ReadOnly, o.locked = nil, true, why
	return Open(ctx, o)
}

// serve makes the service.
func (o Options) serve(ctx context.Context, p *parts) (*Checkpoints, error) {
	keys, err := o.keys(ctx, p)
	if err != nil {
		return nil, &Locked{Cause: err}
	}
	if o.locked != nil {
		p.store.Note = joined(p.store.Note, "no content can be read or written: "+o.locked.Error())
	}
	s, err := checkpoint.New(checkpoint.Options{
		Index: p.index, Blobs: p.blobs, Store: p.store, Keys: keys, Limits: o.Limits,
		ReadOnly: o.ReadOnly, Locked: o.locked, Active: o.Active, Now: o.Now, Settle: o.settle, Logger: o.Logger,
	})
	if err != nil {
		return nil, err
	}
	return &Checkpoints{Service: s, closers: p.closers}, nil
}

func joined(note, more string) string {
	if note == "" {
		return more
	}
	return note + "; " + more
}

// keys opens the master key. Where nothing is written for good, and nothing is
// encrypted yet, there is no need of one, and none is made.
func (o Options) keys(ctx context.Context, p *parts) (*seal.Keys, error) {
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

// isDatabase says whether the store is the URL of a server.
func (o Options) isDatabase() bool { return strings.Contains(o.Store, "://") }

// contexts is the directory of the contents.
func (o Options) contexts() string {
	if o.BlobDir != "" {
		return o.BlobDir
	}
	return filepath.Join(o.DataDir, contextsDir)
}

// maxBlob bounds a blob: none of what the limits allow may be refused.
func (o Options) maxBlob() int64 {
	const none = 4 << 30 // where the limit is taken away
	switch most := o.Limits.CheckpointBytes; {
	case most < 0:
		return none
	default:
		return max(blob.DefaultMaxBytes, most+(1<<20))
	}
}
