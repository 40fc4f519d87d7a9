// Package fileindex keeps what is known of checkpoints as JSON, one file for each
// line, where there is no database: because none is wanted, or because it cannot
// be opened. Without a directory it keeps it in memory.
//
// It reads all files that have changed before it answers, and looks for words one
// text after the other. That is enough for some thousands of checkpoints.
package fileindex

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/blob"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/platform/atomicfile"
)

const (
	suffix = ".json"
	// badSuffix is what a file gets that cannot be read.
	badSuffix    = ".bad"
	lockName     = ".lock"
	defaultLimit = 100
)

// Options say where the files are.
type Options struct {
	// Dir is the directory; it is made where it is not there, for this user
	// alone. Empty keeps everything in memory.
	Dir string
	// Logger gets what nobody can be told; nil is silence.
	Logger *slog.Logger
	// LockTimeout bounds the wait for other writers; 0 is 10 seconds.
	LockTimeout time.Duration
}

// Index implements checkpoint.Index.
type Index struct {
	o    Options
	lock *flock.Flock
	// turn is held by the writer of this process.
	turn sync.Mutex

	mu    sync.Mutex
	lines map[checkpoint.LineKey]*line
	where map[string]checkpoint.LineKey
	files map[string]seen
	pos   int64
	lost  bool
	notes []checkpoint.Entry
}

// seen is a file as it was when it was read.
type seen struct {
	info fs.FileInfo
	key  checkpoint.LineKey
}

var _ checkpoint.Index = (*Index)(nil)

// Open opens an index. CodeUnavailable where the directory cannot be written.
func Open(o Options) (*Index, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.LockTimeout <= 0 {
		o.LockTimeout = 10 * time.Second
	}
	x := &Index{o: o, lines: map[checkpoint.LineKey]*line{}, where: map[string]checkpoint.LineKey{}, files: map[string]seen{}}
	if o.Dir == "" {
		return x, nil
	}
	if err := atomicfile.MakeDir(o.Dir); err != nil {
		return nil, x.failed("open the index", err)
	}
	x.lock = flock.New(filepath.Join(o.Dir, lockName), flock.SetPermissions(0o600))
	release, err := x.acquire(context.Background())
	if err != nil {
		return nil, err
	}
	defer release()
	x.mu.Lock()
	defer x.mu.Unlock()
	return x, x.refresh()
}

// Close releases the index.
func (x *Index) Close() error {
	if x.lock == nil {
		return nil
	}
	return x.lock.Close()
}

// Lost says that something of the index could not be read, or is gone, since it
// was asked last. The blobs have it.
func (x *Index) Lost() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	_ = x.refresh() // the next look says what is wrong
	lost := x.lost
	x.lost = false
	return lost
}

// Volatile says that the index is in memory, and ends with the process.
func (x *Index) Volatile() bool { return x.o.Dir == "" }

// acquire waits for the turn to write, within this process and between all.
func (x *Index) acquire(ctx context.Context) (release func(), err error) {
	x.turn.Lock()
	if x.lock == nil {
		return x.turn.Unlock, nil
	}
	ctx, cancel := context.WithTimeout(ctx, x.o.LockTimeout)
	defer cancel()
	if _, err := x.lock.TryLockContext(ctx, 2*time.Millisecond); err != nil {
		x.turn.Unlock()
		if errors.Is(err, context.DeadlineExceeded) {
			return nil, guideway.Errorf(guideway.CodeUnavailable, "another process has held the lock of the index %s for %v", x.o.Dir, x.o.LockTimeout).
				WithFix("try again; if it lasts, end the process that holds the lock")
		}
		return nil, x.failed("lock the index", err)
	}
	return func() {
		_ = x.lock.Unlock() // it fails where there is nothing to unlock
		x.turn.Unlock()
	}, nil
}

// refresh reads the files that have changed. The caller holds mu.
func (x *Index) refresh() error {
	if x.o.Dir == "" {
		return nil
	}
	entries, err := os.ReadDir(x.o.Dir)
	if err != nil {
		return x.failed("read the index", err)
	}
	there := map[string]bool{}
	for _, entry := range entries {
		name := entry.Name()
		if !strings.HasSuffix(name, suffix) || strings.HasPrefix(name, ".") {
			continue
		}
		info, err := entry.Info()
		if err != nil {
			continue // it has just gone
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
		// A list of names may lack one that was replaced just then.
		if _, err := os.Lstat(filepath.Join(x.o.Dir, name)); errors.Is(err, fs.ErrNotExist) {
			x.lost = true // nobody who uses it removes a line with anything in it
			x.set(old.key, nil)
			delete(x.files, name)
		}
	}
	return nil
}

// readFile reads one line. One that cannot be read is put aside: the blobs have
// what it said.
func (x *Index) readFile(name string, info fs.FileInfo) error {
	path := filepath.Join(x.o.Dir, name)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return x.failed("read the index", err)
	}
	l, ok := parse(data)
	if !ok || fileName(l.Key) != name {
		x.lost = true
		if err := os.Rename(path, path+badSuffix); err != nil {
			x.o.Logger.Error("a file of the index of checkpoints is damaged and could not be put aside", "file", path, "error", err)
		} else {
			x.o.Logger.Error("a file of the index of checkpoints is damaged and was put aside; what it said is taken from the blobs", "file", path)
		}
		if old, known := x.files[name]; known {
			x.set(old.key, nil)
			delete(x.files, name)
		}
		return nil
	}
	x.set(l.Key, l)
	x.files[name] = seen{info: info, key: l.Key}
	return nil
}

// set has others see a line; nil is none. The caller holds mu.
func (x *Index) set(key checkpoint.LineKey, l *line) {
	if old := x.lines[key]; old != nil {
		for _, one := range old.Items {
			delete(x.where, one.ID)
		}
	}
	if l == nil {
		delete(x.lines, key)
		return
	}
	x.lines[key] = l
	for _, one := range l.Items {
		x.where[one.ID] = key
		x.pos = max(x.pos, one.Pos)
	}
}

// fileName is that of a line.
func fileName(key checkpoint.LineKey) string {
	sum := sha256.Sum256([]byte(key.User + "\x00" + key.Session))
	return hex.EncodeToString(sum[:16]) + suffix
}

// write makes the text of a line: a checksum in a line of its own, then JSON.
func (l *line) write() ([]byte, error) {
	body, err := json.Marshal(l)
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeInternal, "write the index: %w", err)
	}
	sum := sha256.Sum256(body)
	return slices.Concat([]byte(hex.EncodeToString(sum[:])+"\n"), body, []byte("\n")), nil
}

func parse(data []byte) (*line, bool) {
	sum, body, ok := strings.Cut(string(data), "\n")
	body = strings.TrimSuffix(body, "\n")
	want := sha256.Sum256([]byte(body))
	if !ok || sum != hex.EncodeToString(want[:]) {
		return nil, false
	}
	var l line
	return &l, json.Unmarshal([]byte(body), &l) == nil
}

// Apply implements checkpoint.Index.
func (x *Index) Apply(ctx context.Context, c checkpoint.Change) error {
	release, err := x.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.refresh(); err != nil {
		return err
	}
	old := x.lines[c.Line]
	if old == nil {
		old = &line{Key: c.Line}
	}
	if c.Add != nil {
		if _, taken := x.where[c.Add.ID]; taken {
			return conflict("the checkpoint %s is there already", c.Add.ID)
		}
	}
	pos := max(x.pos+1, time.Now().UnixMicro())
	next, err := old.apply(c, pos)
	if err != nil {
		return err
	}
	if err := x.keep(next); err != nil {
		return err
	}
	x.set(c.Line, next)
	return x.note(c.Audit)
}

// keep writes a line for good. The caller holds the lock and mu.
func (x *Index) keep(l *line) error {
	if x.o.Dir == "" {
		return nil
	}
	name := fileName(l.Key)
	path := filepath.Join(x.o.Dir, name)
	if len(l.Items) == 0 && len(l.Gone) == 0 {
		delete(x.files, name)
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return x.failed("write the index", err)
		}
		return nil
	}
	text, err := l.write()
	if err != nil {
		return err
	}
	if err := atomicfile.Replace(path, string(text)); err != nil {
		return x.failed("write the index", err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return x.failed("write the index", err)
	}
	x.files[name] = seen{info: info, key: l.Key}
	return nil
}

// failed gives an error of the system its code and the way out.
func (x *Index) failed(doing string, err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG) {
		return guideway.Errorf(guideway.CodeUnavailable, "%s in %s: %w", doing, x.o.Dir, blob.Full(err)).
			WithFix("free space on that disk and try again; nothing that was acknowledged is lost")
	}
	return guideway.Errorf(guideway.CodeUnavailable, "%s in %s: %w", doing, x.o.Dir, err).
		WithFix("make the directory and its files readable and writable for this user, or choose another data directory")
}

// look gives all lines as they are now.
func (x *Index) look(ctx context.Context) ([]*line, error) {
	if err := ctx.Err(); err != nil {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "read the index: %w", err)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.refresh(); err != nil {
		return nil, err
	}
	list := make([]*line, 0, len(x.lines))
	for _, l := range x.lines {
		list = append(list, l)
	}
	return list, nil
}

// one gives a line as it is now; nil where there is none.
func (x *Index) one(ctx context.Context, key checkpoint.LineKey) (*line, error) {
	list, err := x.look(ctx)
	i := slices.IndexFunc(list, func(l *line) bool { return l.Key == key })
	if err != nil || i < 0 {
		return nil, err
	}
	return list[i], nil
}

// Checkpoint implements checkpoint.Finder.
func (x *Index) Checkpoint(ctx context.Context, id string) (checkpoint.Record, error) {
	list, err := x.look(ctx)
	if err != nil {
		return checkpoint.Record{}, err
	}
	for _, l := range list {
		if l.find(id) < 0 {
			continue
		}
		for _, one := range l.records() {
			if one.ID == id {
				return one.Record, nil
			}
		}
	}
	return checkpoint.Record{}, guideway.Errorf(guideway.CodeNotFound, "there is no checkpoint %.80q", id)
}

// Chain implements checkpoint.Finder.
func (x *Index) Chain(ctx context.Context, id string, most int) (chain []checkpoint.Record, err error) {
	list, err := x.look(ctx)
	if err != nil {
		return nil, err
	}
	for _, l := range list {
		if l.find(id) < 0 {
			continue
		}
		byID := map[string]checkpoint.Record{}
		for _, one := range l.records() {
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
	lines, err := x.look(ctx)
	if err != nil {
		return nil, err
	}
	var found []item
	for _, l := range lines {
		if f.User != "" && l.Key.User != f.User || f.Session != "" && l.Key.Session != f.Session {
			continue
		}
		for _, one := range l.records() {
			if one.matches(f) {
				found = append(found, one)
			}
		}
	}
	slices.SortFunc(found, func(a, b item) int { return cmp.Or(cmp.Compare(b.Pos, a.Pos), cmp.Compare(b.ID, a.ID)) })
	found = byWords(found, f)
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
func (x *Index) History(ctx context.Context, key checkpoint.LineKey, h checkpoint.History) ([]checkpoint.Record, error) {
	l, err := x.one(ctx, key)
	if err != nil || l == nil {
		return nil, err
	}
	var list []checkpoint.Record
	for _, one := range l.records() {
		if one.Kind != checkpoint.KindPiece && (h.Below <= 0 || one.Number < h.Below) {
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

// Line implements checkpoint.Finder.
func (x *Index) Line(ctx context.Context, key checkpoint.LineKey) (checkpoint.Line, error) {
	l, err := x.one(ctx, key)
	if err != nil || l == nil || len(l.Items) == 0 {
		return checkpoint.Line{LineKey: key}, err
	}
	return l.summary(), nil
}

// Lines implements checkpoint.Finder.
func (x *Index) Lines(ctx context.Context, f checkpoint.LineFilter) ([]checkpoint.Line, error) {
	lines, err := x.look(ctx)
	if err != nil {
		return nil, err
	}
	var list []checkpoint.Line
	for _, l := range lines {
		if len(l.Items) == 0 || f.User != "" && l.Key.User != f.User || !f.Before.IsZero() && !l.Touched.Before(f.Before) {
			continue
		}
		list = append(list, l.summary())
	}
	slices.SortFunc(list, func(a, b checkpoint.Line) int {
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
	list, err := x.Lines(ctx, checkpoint.LineFilter{})
	for _, l := range list {
		t.Lines++
		t.Count += l.Count
		t.Bytes += l.Bytes
		t.Stored += l.Stored
	}
	return t, err
}

// Deleted implements checkpoint.Finder.
func (x *Index) Deleted(ctx context.Context, ids []string) (map[string]bool, error) {
	lines, err := x.look(ctx)
	gone := map[string]bool{}
	for _, l := range lines {
		for _, id := range ids {
			if _, deleted := l.Gone[id]; deleted {
				gone[id] = true
			}
		}
	}
	return gone, err
}
