package checkpoints

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/blob"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/platform/ctxsleep"
	"github.com/guideway-dev/guideway/internal/store/postgres"
	"github.com/guideway-dev/guideway/internal/store/sqlite"
)

// openBackend opens the configured storage, or the best available one.
func (o Options) openBackend(ctx context.Context) (*backend, error) {
	switch {
	case o.isDatabase():
		return o.openPostgres(ctx)
	case o.Store != "" && o.Store != StoreSQLite && o.Store != StoreFiles:
		return nil, guideway.Errorf(guideway.CodeInvalid, "invalid checkpoint store %.40q", o.Store).
			WithFix("use %q, %q, or the URL of a PostgreSQL database", StoreSQLite, StoreFiles)
	}
	blobs, err := blob.OpenFiles(blob.FilesOptions{Dir: o.contentDir(), MaxBytes: o.maxBlobBytes()})
	if o.ReadOnly {
		blobs, err = o.openReadOnly()
	}
	if err != nil {
		return o.useMemory(ctx, err)
	}
	p := &backend{blobs: blobs}
	why := ""
	if o.Store != StoreFiles {
		err := o.useSQLite(ctx, p)
		if err == nil {
			return p, nil
		}
		if ctx.Err() != nil {
			return nil, err
		}
		why = "the SQLite store cannot be opened, so the metadata is stored next to the contents: " + err.Error()
	}
	if err := o.useFiles(ctx, p, why); err != nil {
		return o.useMemory(ctx, err)
	}
	return p, nil
}

// openReadOnly opens the blobs read-only.
func (o Options) openReadOnly() (*blob.Files, error) {
	return blob.OpenFiles(blob.FilesOptions{Dir: o.contentDir(), MaxBytes: o.maxBlobBytes(), ReadOnly: true})
}

// openPostgres uses PostgreSQL for the metadata, and for the contents unless a shared
// directory is configured for them.
func (o Options) openPostgres(ctx context.Context) (*backend, error) {
	index, closer, err := o.openIndex(ctx)
	if err != nil {
		return nil, err
	}
	p := &backend{index: index, store: checkpoint.Store{Mode: checkpoint.ModePostgres}, closers: closer}
	db, ok := index.(*postgres.Store)
	if !ok {
		return nil, guideway.Errorf(guideway.CodeInternal, "the run store is a %T, not PostgreSQL", index)
	}
	if o.BlobDir == "" {
		p.blobs = db.Blobs(o.maxBlobBytes())
		return p, nil
	}
	p.blobs, err = blob.OpenFiles(blob.FilesOptions{Dir: o.BlobDir, MaxBytes: o.maxBlobBytes(), ReadOnly: o.ReadOnly})
	if err != nil {
		return nil, closeAll(closer, err)
	}
	return p, nil
}

// openIndex returns the store of the runs. If the caller has none, it opens a store and
// returns its closers.
func (o Options) openIndex(ctx context.Context) (checkpoint.Index, []io.Closer, error) {
	switch {
	case o.Journal != nil:
		index, err := o.Journal(ctx)
		return index, nil, err
	case o.isDatabase():
		s, err := postgres.Open(ctx, postgres.Options{URL: o.Store, Logger: o.Logger})
		if err != nil {
			return nil, nil, err
		}
		return s, []io.Closer{s}, nil
	}
	s, err := sqlite.Open(ctx, sqlite.Options{Path: filepath.Join(o.DataDir, databaseName), Program: o.Program, Logger: o.Logger})
	if err != nil {
		return nil, nil, err
	}
	return s, []io.Closer{s}, nil
}

// useSQLite keeps the metadata in SQLite. It retries transient errors.
func (o Options) useSQLite(ctx context.Context, p *backend) error {
	start := time.Now()
	for wait := 20 * time.Millisecond; ; wait *= 2 {
		err := o.trySQLite(ctx, p)
		passing := guideway.ErrorCode(err) == guideway.CodeUnavailable && !sqlite.IsDamaged(err)
		if err == nil || !passing || time.Since(start)+wait > o.patience {
			return err
		}
		if err := ctxsleep.For(ctx, wait); err != nil {
			return guideway.Errorf(guideway.CodeUnavailable, "open the checkpoints: %w", err)
		}
	}
}

// trySQLite opens SQLite and checks the tables of checkpoints, because a damaged file can
// often be opened.
func (o Options) trySQLite(ctx context.Context, p *backend) error {
	index, closer, err := o.openIndex(ctx)
	if err != nil {
		return err
	}
	if err := o.checkTables(ctx, index); err != nil {
		return closeAll(closer, err)
	}
	p.index, p.closers, p.store = index, closer, checkpoint.Store{Mode: checkpoint.ModeSQLite}
	return nil
}

// maxChecked is the number of checkpoints up to which the tables are checked completely,
// which takes a few tenths of a second.
const maxChecked = 20_000

// checkTables returns an error if the tables of checkpoints are damaged. If they are too
// large for a complete check, it only reads one checkpoint.
func (o Options) checkTables(ctx context.Context, index checkpoint.Index) error {
	totals, err := index.Totals(ctx)
	if err != nil {
		return err
	}
	checker, ok := index.(interface {
		CheckCheckpoints(ctx context.Context) error
	})
	if !ok || totals.Count > maxChecked {
		_, err := index.Checkpoints(ctx, checkpoint.Filter{Limit: 1, All: true})
		return err
	}
	return checker.CheckCheckpoints(ctx)
}

// useMemory keeps everything new in memory. Existing contents remain readable if their
// directory is.
func (o Options) useMemory(ctx context.Context, cause error) (*backend, error) {
	index, err := o.openOwnIndex(ctx, true)
	if err != nil {
		return nil, err
	}
	p := &backend{
		index: index, closers: []io.Closer{index}, blobs: blob.NewMemory(o.maxBlobBytes()),
		store: checkpoint.Store{Mode: checkpoint.ModeMemory, Note: fmt.Sprintf("checkpoints cannot be stored permanently: %v", cause)},
	}
	if below, err := o.openReadOnly(); err == nil {
		p.blobs = blob.NewOverlay(below, o.maxBlobBytes())
	}
	return p, nil
}
