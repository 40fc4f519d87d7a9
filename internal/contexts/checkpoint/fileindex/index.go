// Package fileindex stores the metadata of checkpoints as JSON, one file per series, if
// there is no database: because none is configured, or because it cannot be opened. Without
// a directory, the package keeps the metadata in memory.
//
// Each call reads all changed files first, and word searches scan all texts. That is fast
// enough for a few thousand checkpoints.
package fileindex

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/blob"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/platform/atomicfile"
)

const (
	suffix = ".json"
	// badSuffix is appended to the name of an unreadable file.
	badSuffix    = ".bad"
	lockName     = ".lock"
	defaultLimit = 100
)

// Options configure an Index.
type Options struct {
	// Dir is the directory; Open creates it, accessible to the user only. Empty stores
	// everything in memory.
	Dir string
	// Logger logs errors that no caller receives; it may be nil.
	Logger *slog.Logger
	// LockTimeout bounds the wait for other writers; the default is 10 seconds.
	LockTimeout time.Duration
}

// Index implements checkpoint.Index.
type Index struct {
	o    Options
	lock *flock.Flock
	// turn is held by the writer in this process.
	turn sync.Mutex

	mu     sync.Mutex
	series map[checkpoint.SeriesKey]*seriesData
	where  map[string]checkpoint.SeriesKey
	files  map[string]fileState
	pos    int64
	lost   bool
	notes  []checkpoint.Entry
}

// fileState is the state of a file when it was read.
type fileState struct {
	info fs.FileInfo
	key  checkpoint.SeriesKey
}

var _ checkpoint.Index = (*Index)(nil)

// Open opens an index. It returns CodeUnavailable if the directory is not writable.
func Open(o Options) (*Index, error) {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	o.LockTimeout = cmp.Or(o.LockTimeout, 10*time.Second)
	x := &Index{o: o, series: map[checkpoint.SeriesKey]*seriesData{}, where: map[string]checkpoint.SeriesKey{}, files: map[string]fileState{}}
	if o.Dir == "" {
		return x, nil
	}
	if err := atomicfile.MakeDir(o.Dir); err != nil {
		return nil, x.systemError("open the index", err)
	}
	if err := atomicfile.EnsureFile(filepath.Join(o.Dir, lockName)); err != nil {
		return nil, x.systemError("open the index", err)
	}
	x.lock = flock.New(filepath.Join(o.Dir, lockName), flock.SetPermissions(0o600))
	release, err := x.lockForWriting(context.Background())
	if err != nil {
		return nil, err
	}
	defer release()
	return x, x.readChanged()
}

// Close releases the index.
func (x *Index) Close() error {
	if x.lock == nil {
		return nil
	}
	return x.lock.Close()
}

// Lost reports whether a part of the index was found to be unreadable or missing since the
// last call. The blobs still contain that part.
func (x *Index) Lost() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	_ = x.readChanged() // the next read reports the error
	lost := x.lost
	x.lost = false
	return lost
}

// Volatile reports whether the index is in memory only.
func (x *Index) Volatile() bool { return x.o.Dir == "" }

// lockForWriting locks the index and mu for writing, within this process and between
// processes.
func (x *Index) lockForWriting(ctx context.Context) (release func(), err error) {
	x.turn.Lock()
	if x.lock == nil {
		x.mu.Lock()
		return func() {
			x.mu.Unlock()
			x.turn.Unlock()
		}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, x.o.LockTimeout)
	defer cancel()
	if _, err := x.lock.TryLockContext(ctx, 2*time.Millisecond); err != nil {
		x.turn.Unlock()
		if errors.Is(err, context.DeadlineExceeded) {
			return nil, guideway.Errorf(guideway.CodeUnavailable, "another process has held the lock of the index %s for %v", x.o.Dir, x.o.LockTimeout).
				WithFix("try again; if it fails again, end the process that holds the lock")
		}
		return nil, x.systemError("lock the index", err)
	}
	x.mu.Lock()
	return func() {
		x.mu.Unlock()
		_ = x.lock.Unlock() // Unlock fails if the lock is not held
		x.turn.Unlock()
	}, nil
}

// readChanged reads the changed files. The caller holds mu.
func (x *Index) readChanged() error {
	if x.o.Dir == "" {
		return nil
	}
	entries, err := os.ReadDir(x.o.Dir)
	if err != nil {
		return x.systemError("read the index", err)
	}
	there := map[string]bool{}
	for _, entry := range entries {
		name := entry.Name()
		if !strings.HasSuffix(name, suffix) || strings.HasPrefix(name, ".") {
			continue
		}
		info, err := entry.Info()
		if err != nil {
			continue // another process has just removed the file
		}
		there[name] = true
		if old, known := x.files[name]; known && os.SameFile(old.info, info) && old.info.ModTime().Equal(info.ModTime()) && old.info.Size() == info.Size() {
			continue
		}
		if err := x.readFile(name, info); err != nil {
			return err
		}
	}
	for name, old := range x.files {
		if there[name] {
			continue
		}
		// A directory listing may lack a file that was replaced at that moment.
		if _, err := os.Lstat(filepath.Join(x.o.Dir, name)); errors.Is(err, fs.ErrNotExist) {
			x.lost = true // the index itself never removes a series with records
			x.setSeries(old.key, nil)
			delete(x.files, name)
		}
	}
	return nil
}

// readFile reads the file of one series. It renames a damaged file, since the blobs contain
// its data, and returns an error for a file of another format.
func (x *Index) readFile(name string, info fs.FileInfo) error {
	path := filepath.Join(x.o.Dir, name)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return x.systemError("read the index", err)
	}
	l, format, ok := parseSeries(data)
	if ok && format != formatVersion {
		return newFormatError(path, format)
	}
	if !ok || fileName(l.Key) != name {
		x.lost = true
		if err := os.Rename(path, path+badSuffix); err != nil {
			x.o.Logger.Error("a file of the checkpoint index is damaged and could not be renamed", "file", path, "error", err)
		} else {
			x.o.Logger.Error("a file of the checkpoint index is damaged and was renamed; its data is rebuilt from the blobs", "file", path)
		}
		if old, known := x.files[name]; known {
			x.setSeries(old.key, nil)
			delete(x.files, name)
		}
		return nil
	}
	x.setSeries(l.Key, l)
	x.files[name] = fileState{info: info, key: l.Key}
	return nil
}

// setSeries publishes a series; nil removes it. The caller holds mu.
func (x *Index) setSeries(key checkpoint.SeriesKey, l *seriesData) {
	if old := x.series[key]; old != nil {
		for _, one := range old.Items {
			delete(x.where, one.ID)
		}
	}
	if l == nil {
		delete(x.series, key)
		return
	}
	x.series[key] = l
	for _, one := range l.Items {
		x.where[one.ID] = key
		x.pos = max(x.pos, one.Pos)
	}
}

// Apply implements checkpoint.Index.
func (x *Index) Apply(ctx context.Context, c checkpoint.Change) error {
	release, err := x.lockForWriting(ctx)
	if err != nil {
		return err
	}
	defer release()
	if err := x.readChanged(); err != nil {
		return err
	}
	old := x.series[c.Series]
	if old == nil {
		old = &seriesData{Key: c.Series}
	}
	if c.Add != nil {
		if _, taken := x.where[c.Add.ID]; taken {
			return newConflict("the checkpoint %s already exists", c.Add.ID)
		}
	}
	pos := max(x.pos+1, time.Now().UnixMicro())
	next, err := old.applyChange(c, pos)
	if err != nil {
		return err
	}
	if err := x.writeSeries(next); err != nil {
		return err
	}
	x.setSeries(c.Series, next)
	return x.appendEntries(c.Audit)
}

// writeSeries writes a series durably, or removes its file if nothing is left. The caller
// holds the lock and mu.
func (x *Index) writeSeries(l *seriesData) error {
	if x.o.Dir == "" {
		return nil
	}
	name := fileName(l.Key)
	path := filepath.Join(x.o.Dir, name)
	if len(l.Items) == 0 && len(l.Gone) == 0 {
		delete(x.files, name)
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return x.systemError("write the index", err)
		}
		return nil
	}
	text, err := l.encodeSeries()
	if err != nil {
		return err
	}
	if err := atomicfile.Replace(path, string(text)); err != nil {
		return x.systemError("write the index", err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return x.systemError("write the index", err)
	}
	x.files[name] = fileState{info: info, key: l.Key}
	return nil
}

func (x *Index) systemError(doing string, err error) error {
	return blob.SystemError(doing, x.o.Dir, err)
}

// readAll returns the current state of all series.
func (x *Index) readAll(ctx context.Context) ([]*seriesData, error) {
	if err := ctx.Err(); err != nil {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "read the index: %w", err)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.readChanged(); err != nil {
		return nil, err
	}
	list := make([]*seriesData, 0, len(x.series))
	for _, l := range x.series {
		list = append(list, l)
	}
	return list, nil
}

// readSeries returns the current state of a series, or nil.
func (x *Index) readSeries(ctx context.Context, key checkpoint.SeriesKey) (*seriesData, error) {
	list, err := x.readAll(ctx)
	i := slices.IndexFunc(list, func(l *seriesData) bool { return l.Key == key })
	if err != nil || i < 0 {
		return nil, err
	}
	return list[i], nil
}

// Checkpoint implements checkpoint.Finder.
func (x *Index) Checkpoint(ctx context.Context, id string) (checkpoint.Record, error) {
	chain, err := x.Chain(ctx, id, 1)
	if err != nil {
		return checkpoint.Record{}, err
	}
	if len(chain) > 0 {
		return chain[0], nil
	}
	return checkpoint.Record{}, guideway.Errorf(guideway.CodeNotFound, "there is no checkpoint %.80q", id)
}

// Chain implements checkpoint.Finder.
func (x *Index) Chain(ctx context.Context, id string, most int) (chain []checkpoint.Record, err error) {
	list, err := x.readAll(ctx)
	if err != nil {
		return nil, err
	}
	for _, l := range list {
		if l.findRecord(id) < 0 {
			continue
		}
		byID := map[string]checkpoint.Record{}
		for _, one := range l.currentRecords() {
			byID[one.ID] = one.Record
		}
		for len(chain) < most {
			one, there := byID[id]
			if !there {
				break
			}
			chain = append(chain, one)
			id = one.Base
		}
		break
	}
	return chain, nil
}

// Checkpoints implements checkpoint.Finder.
func (x *Index) Checkpoints(ctx context.Context, f checkpoint.Filter) ([]checkpoint.Record, error) {
	seriesList, err := x.readAll(ctx)
	if err != nil {
		return nil, err
	}
	var found []item
	for _, l := range seriesList {
		if f.User != "" && l.Key.User != f.User || f.Session != "" && l.Key.Session != f.Session {
			continue
		}
		for _, one := range l.currentRecords() {
			if one.matchesFilter(f) {
				found = append(found, one)
			}
		}
	}
	slices.SortFunc(found, func(a, b item) int { return cmp.Or(cmp.Compare(b.Pos, a.Pos), cmp.Compare(b.ID, a.ID)) })
	found = filterByWords(found, f)
	limit := f.Limit
	if limit <= 0 {
		limit = defaultLimit
	}
	var list []checkpoint.Record
	for _, one := range found[:min(limit, len(found))] {
		list = append(list, one.Record)
	}
	return list, nil
}

// History implements checkpoint.Finder.
func (x *Index) History(ctx context.Context, key checkpoint.SeriesKey, h checkpoint.History) ([]checkpoint.Record, error) {
	l, err := x.readSeries(ctx, key)
	if err != nil || l == nil {
		return nil, err
	}
	var list []checkpoint.Record
	for _, one := range l.currentRecords() {
		if one.Kind != checkpoint.KindFragment && (h.Below <= 0 || one.Number < h.Below) {
			list = append(list, one.Record)
		}
	}
	slices.SortFunc(list, func(a, b checkpoint.Record) int {
		if h.Oldest {
			return cmp.Compare(a.Number, b.Number)
		}
		return cmp.Compare(b.Number, a.Number)
	})
	if h.Limit > 0 {
		list = list[:min(h.Limit, len(list))]
	}
	return list, nil
}

// Series implements checkpoint.Finder.
func (x *Index) Series(ctx context.Context, key checkpoint.SeriesKey) (checkpoint.Series, error) {
	l, err := x.readSeries(ctx, key)
	if err != nil || l == nil || len(l.Items) == 0 {
		return checkpoint.Series{SeriesKey: key}, err
	}
	return l.seriesTotals(), nil
}

// ListSeries implements checkpoint.Finder.
func (x *Index) ListSeries(ctx context.Context, f checkpoint.SeriesFilter) ([]checkpoint.Series, error) {
	seriesList, err := x.readAll(ctx)
	if err != nil {
		return nil, err
	}
	var list []checkpoint.Series
	for _, l := range seriesList {
		if len(l.Items) == 0 || f.User != "" && l.Key.User != f.User || !f.Before.IsZero() && !l.Touched.Before(f.Before) {
			continue
		}
		list = append(list, l.seriesTotals())
	}
	slices.SortFunc(list, func(a, b checkpoint.Series) int {
		return cmp.Or(a.Touched.Compare(b.Touched), cmp.Compare(a.User, b.User), cmp.Compare(a.Session, b.Session))
	})
	if f.Limit > 0 {
		list = list[:min(f.Limit, len(list))]
	}
	return list, nil
}

// Totals implements checkpoint.Finder.
func (x *Index) Totals(ctx context.Context) (checkpoint.Totals, error) {
	var t checkpoint.Totals
	list, err := x.ListSeries(ctx, checkpoint.SeriesFilter{})
	for _, l := range list {
		t.Series++
		t.Count += l.Count
		t.Bytes += l.Bytes
		t.Stored += l.Stored
	}
	return t, err
}

// Deleted implements checkpoint.Finder.
func (x *Index) Deleted(ctx context.Context, ids []string) (map[string]bool, error) {
	seriesList, err := x.readAll(ctx)
	gone := map[string]bool{}
	for _, l := range seriesList {
		for _, id := range ids {
			if _, deleted := l.Gone[id]; deleted {
				gone[id] = true
			}
		}
	}
	return gone, err
}
