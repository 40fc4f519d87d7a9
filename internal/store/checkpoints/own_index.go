package checkpoints

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/store/sqlite"
)

// ownIndex has the metadata in a database of its own, which contains no runs.
type ownIndex struct {
	*sqlite.Store
	memory bool
}

var _ checkpoint.FallbackIndex = ownIndex{}

// Lost reports whether the index is empty, because its file was replaced or because another
// process has imported it. The blobs then contain its data.
func (x ownIndex) Lost(ctx context.Context) bool {
	totals, err := x.Totals(ctx)
	return err == nil && totals.Series == 0
}

// Volatile reports whether the index is in memory only.
func (x ownIndex) Volatile() bool { return x.memory }

// ownIndexPath returns the path of the database with the metadata next to the contents.
func (o Options) ownIndexPath() string {
	return filepath.Join(o.contentDir(), indexDir, "checkpoints.db")
}

// openOwnIndex opens the database next to the contents, or one in memory. A damaged file is
// renamed, since the blobs contain its data.
func (o Options) openOwnIndex(ctx context.Context, memory bool) (ownIndex, error) {
	options := sqlite.Options{Memory: memory, Path: o.ownIndexPath(), Program: o.Program, Logger: o.Logger}
	index, err := o.openChecked(ctx, options)
	if !sqlite.IsDamaged(err) || memory || o.ReadOnly {
		return ownIndex{index, memory}, err
	}
	o.Logger.ErrorContext(ctx, "the checkpoint index is damaged: it gets the suffix .bad and is rebuilt from the blobs", "file", options.Path, "error", err)
	for _, suffix := range []string{"-wal", "-shm"} {
		_ = os.Remove(options.Path + suffix) // a file that is left makes the next attempt fail
	}
	if err := os.Rename(options.Path, options.Path+".bad"); err != nil {
		return ownIndex{}, fmt.Errorf("rename the damaged checkpoint index: %w", err)
	}
	index, err = o.openChecked(ctx, options)
	return ownIndex{index, false}, err
}

// openChecked opens a database and checks its tables of checkpoints.
func (o Options) openChecked(ctx context.Context, options sqlite.Options) (*sqlite.Store, error) {
	index, err := sqlite.Open(ctx, options)
	if err != nil {
		return nil, err
	}
	if err := o.checkTables(ctx, index); err != nil {
		return nil, errors.Join(err, index.Close())
	}
	return index, nil
}

// useFiles keeps the metadata in a database next to the blobs. If that database cannot be
// opened, or is missing in read-only storage, the metadata is in memory, built from the
// blobs at each start: they contain all of it, and saves write them first.
func (o Options) useFiles(ctx context.Context, p *backend, why string) error {
	_, missing := os.Stat(o.ownIndexPath())
	index, err := o.openOwnIndex(ctx, o.ReadOnly && missing != nil)
	if err != nil {
		if !o.ReadOnly {
			why = "no database can be opened, so the metadata is read from the contents at each start: " + err.Error()
		}
		if index, err = o.openOwnIndex(ctx, true); err != nil {
			return err
		}
	}
	p.index, p.closers, p.store = index, []io.Closer{index}, checkpoint.Store{Mode: checkpoint.ModeFiles, Note: why}
	return nil
}

// importFiles imports the checkpoints that were saved while the metadata was stored next to
// the contents. After an error the database is kept, and the next process retries.
func (o Options) importFiles(ctx context.Context, c *Checkpoints) {
	if _, err := os.Stat(o.ownIndexPath()); err != nil {
		return
	}
	index, err := o.openOwnIndex(ctx, false)
	if err == nil {
		var notes []checkpoint.Entry // an index that was imported has none
		if notes, err = index.Notes(ctx, "", 1); len(notes) > 0 {
			err = c.MergeFallback(ctx, index)
		}
		err = errors.Join(err, index.Close())
	}
	if err != nil {
		o.Logger.WarnContext(ctx, "cannot import the checkpoints that were saved while their metadata was in contexts/index", "error", err)
	}
}
