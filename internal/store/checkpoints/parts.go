package checkpoints

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/blob"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint/fileindex"
	"github.com/guideway-dev/guideway/internal/platform/ctxsleep"
	"github.com/guideway-dev/guideway/internal/store/postgres"
	"github.com/guideway-dev/guideway/internal/store/sqlite"
)

// parts opens what there is.
func (o Options) parts(ctx context.Context) (*parts, error) {
	switch {
	case o.isDatabase():
		return o.inDatabase(ctx)
	case o.Store != "" && o.Store != StoreSQLite && o.Store != StoreFiles:
		return nil, guideway.Errorf(guideway.CodeInvalid, "checkpoints cannot be kept in %.40q", o.Store).
			WithFix("write %q, %q, or the URL of a PostgreSQL database", StoreSQLite, StoreFiles)
	}
	blobs, err := blob.OpenFiles(blob.FilesOptions{Dir: o.contexts(), MaxBytes: o.maxBlob()})
	if o.ReadOnly {
		blobs, err = o.readable()
	}
	if err != nil {
		return o.inMemory(err)
	}
	p := &parts{blobs: blobs}
	why := ""
	if o.Store != StoreFiles {
		err := o.withSQLite(ctx, p)
		if err == nil {
			return p, nil
		}
		if ctx.Err() != nil {
			return nil, err
		}
		why = "the SQLite store does not open, so that the metadata are files: " + err.Error()
	}
	if err := o.withFiles(p, why); err != nil {
		return o.inMemory(err)
	}
	return p, nil
}

// readable opens the blobs to be read only.
func (o Options) readable() (*blob.Files, error) {
	return blob.OpenFiles(blob.FilesOptions{Dir: o.contexts(), MaxBytes: o.maxBlob(), ReadOnly: true})
}

// inDatabase has both in PostgreSQL, or the contents in a shared directory.
func (o Options) inDatabase(ctx context.Context) (*parts, error) {
	index, closer, err := o.open(ctx)
	if err != nil {
		return nil, err
	}
	p := &parts{index: index, store: checkpoint.Store{Mode: checkpoint.ModePostgres}, closers: closer}
	db, ok := index.(*postgres.Store)
	if !ok {
		return nil, guideway.Errorf(guideway.CodeInternal, "the store of the runs is a %T, not PostgreSQL", index)
	}
	if o.BlobDir == "" {
		p.blobs = db.Blobs(o.maxBlob())
		return p, nil
	}
	p.blobs, err = blob.OpenFiles(blob.FilesOptions{Dir: o.BlobDir, MaxBytes: o.maxBlob(), ReadOnly: o.ReadOnly})
	if err != nil {
		for _, one := range closer {
			err = errors.Join(err, one.Close())
		}
		return nil, err
	}
	return p, nil
}

// open gives the store of the runs, or opens one, which is then to be closed.
func (o Options) open(ctx context.Context) (checkpoint.Index, []io.Closer, error) {
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

// withSQLite has the metadata in SQLite. What may pass is tried again for a while.
func (o Options) withSQLite(ctx context.Context, p *parts) error {
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

// trySQLite opens SQLite and reads a little of it: a file may open and be damaged
// all the same.
func (o Options) trySQLite(ctx context.Context, p *parts) error {
	index, closer, err := o.open(ctx)
	if err != nil {
		return err
	}
	if err := o.sound(ctx, index); err != nil {
		for _, one := range closer {
			err = errors.Join(err, one.Close())
		}
		return err
	}
	p.index, p.closers, p.store = index, closer, checkpoint.Store{Mode: checkpoint.ModeSQLite}
	return nil
}

// maxChecked is up to how many checkpoints the tables are read as a whole before
// they are used: some tenths of a second.
const maxChecked = 20_000

// sound gives an error where the tables are damaged.
func (o Options) sound(ctx context.Context, index checkpoint.Index) error {
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

// withFiles has the metadata in files beside the blobs. To read only, where there
// are none yet, they are made in memory.
func (o Options) withFiles(p *parts, why string) error {
	dir := filepath.Join(o.contexts(), indexDir)
	if o.ReadOnly {
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			dir = ""
		}
	}
	index, err := fileindex.Open(fileindex.Options{Dir: dir, Logger: o.Logger})
	if err != nil && o.ReadOnly {
		index, err = fileindex.Open(fileindex.Options{Logger: o.Logger})
	}
	if err != nil {
		return err
	}
	p.index, p.closers, p.store = index, []io.Closer{index}, checkpoint.Store{Mode: checkpoint.ModeFiles, Note: why}
	return nil
}

// inMemory has everything new in memory, over what can still be read.
func (o Options) inMemory(cause error) (*parts, error) {
	index, err := fileindex.Open(fileindex.Options{Logger: o.Logger})
	if err != nil {
		return nil, err
	}
	p := &parts{
		index: index, closers: []io.Closer{index}, blobs: blob.NewMemory(o.maxBlob()),
		store: checkpoint.Store{Mode: checkpoint.ModeMemory, Note: fmt.Sprintf("nothing can be written for good: %v", cause)},
	}
	if below, err := o.readable(); err == nil {
		p.blobs = blob.NewOverlay(below, o.maxBlob())
	}
	return p, nil
}

// takeOver takes up what happened while the metadata were files. Where it cannot,
// the files stay, and the next process tries again.
func (o Options) takeOver(ctx context.Context, c *Checkpoints) {
	dir := filepath.Join(o.contexts(), indexDir)
	if !fileindex.InUse(dir) {
		return
	}
	index, err := fileindex.Open(fileindex.Options{Dir: dir, Logger: o.Logger})
	if err == nil {
		err = errors.Join(c.MergeFallback(ctx, index), index.Close())
	}
	if err != nil {
		o.Logger.WarnContext(ctx, "checkpoints that were saved while the metadata were files are not taken over yet", "error", err)
	}
}
