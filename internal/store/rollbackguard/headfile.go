// Package rollbackguard keeps the last event of every run in a text file of its own.
// Who rolls the journal back, or takes the tail off a run, does not reach it;
// who edits it needs the key.
//
// A line is "run seq mac tag": the tag authenticates the rest. Lines that begin
// with # say when the file was begun, compacted or restored. Lines are only ever
// added, without a sync: the journal is always at least as new, and a head that
// is lost with the power is a rollback that would not be noticed, no more.
package rollbackguard

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/atomicfile"
	"github.com/guideway-dev/guideway/internal/run"
)

const (
	// patience bounds the wait for other processes, retry is how often it looks.
	patience = 5 * time.Second
	retry    = time.Millisecond
	// compactFrom is the size that a file may always have; above it, it is
	// compacted when it is compactTimes as large as when it was last written.
	compactFrom  = 1 << 20
	compactTimes = 4
)

var _ run.Heads = (*File)(nil)

// File is a file of heads. It may be used by many goroutines and by many
// processes at once; nothing stays open between two calls.
type File struct {
	path string
	key  run.Key
	now  func() time.Time
	// compactFrom is the constant, but in tests.
	compactFrom int64

	// writing is held by who writes lines; mu guards next: those that are written
	// next.
	writing sync.Mutex
	mu      sync.Mutex
	next    *batch
}

// Open gives the file at path, which need not be there yet, with the key that
// authenticates its lines. It touches nothing.
func Open(path string, key run.Key) (*File, error) {
	if path == "" || len(key) != run.KeySize {
		return nil, guideway.Errorf(guideway.CodeInvalid, "a file of heads needs a path and a key of %d bytes, not %q and %d", run.KeySize, path, len(key))
	}
	return &File{path: path, key: key, now: time.Now, compactFrom: compactFrom}, nil
}

// Record implements run.Heads. It costs the same however long the file is, and
// those who record at the same time share what it costs.
func (f *File) Record(id string, seq int64, mac []byte) error {
	b, first := f.join(f.headLine(id, run.Head{Seq: seq, MAC: mac}))
	if !first {
		<-b.done
		return f.fault("record the head of the run "+id, b.err)
	}
	size, err := f.record(b)
	if err != nil {
		return f.fault("record the head of the run "+id, err)
	}
	if size > f.compactFrom {
		return f.fault("compact", f.compact())
	}
	return nil
}

// batch are lines that are written at once.
type batch struct {
	lines strings.Builder
	// done is closed when err is the outcome.
	done chan struct{}
	err  error
}

// errBroken is what lines come to whose writer has ended in a panic.
var errBroken = errors.New("the writing has broken off")

// join adds a line to those that are written next. first says that the caller is to
// write them.
func (f *File) join(line string) (b *batch, first bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if first = f.next == nil; first {
		f.next = &batch{done: make(chan struct{}), err: errBroken}
	}
	f.next.lines.WriteString(line)
	return f.next, first
}

// record writes lines, with all that have come until those before are written. It
// gives the size of the file.
func (f *File) record(b *batch) (size int64, err error) {
	f.writing.Lock()
	defer f.writing.Unlock()
	f.mu.Lock()
	f.next = nil
	f.mu.Unlock()
	defer close(b.done)
	size, b.err = f.append(b.lines.String())
	return size, b.err
}

// append writes lines to the end of the file, which it makes or mends before.
func (f *File) append(lines string) (size int64, err error) {
	size, torn, err := f.add(lines)
	if errors.Is(err, fs.ErrNotExist) {
		if err = f.begin(); err == nil {
			size, torn, err = f.add(lines)
		}
	}
	if err == nil && torn {
		if err = f.mend(); err == nil {
			size, _, err = f.add(lines)
		}
	}
	return size, err
}

// add writes lines, beside other writers: what one write puts at the end of a file
// is one piece. Where the last line is torn it writes nothing and says so.
func (f *File) add(lines string) (size int64, torn bool, err error) {
	release, err := f.lock((*flock.Flock).TryRLockContext)
	if err != nil {
		return 0, false, err
	}
	defer release()
	file, err := os.OpenFile(f.path, os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		return 0, false, err
	}
	if size, torn, err = endOf(file); err == nil && !torn {
		_, err = file.WriteString(lines)
	}
	return size + int64(len(lines)), torn, errors.Join(err, file.Close())
}

// endOf gives the size of a file and says whether its last line has no end.
func endOf(file *os.File) (size int64, torn bool, err error) {
	info, err := file.Stat()
	if err != nil || info.Size() == 0 {
		return 0, false, err
	}
	last := make([]byte, 1)
	_, err = file.ReadAt(last, info.Size()-1)
	return info.Size(), last[0] != '\n', err
}

// begin makes the file.
func (f *File) begin() error {
	err := atomicfile.Create(f.path, f.noteLine("begun", 0))
	if errors.Is(err, fs.ErrExist) { // another process was faster
		return nil
	}
	return err
}

// mend takes off a last line that was not written whole: the power failed, or
// the disk was full.
func (f *File) mend() error {
	release, err := f.lock((*flock.Flock).TryLockContext)
	if err != nil {
		return err
	}
	defer release()
	text, err := os.ReadFile(f.path)
	if err != nil {
		return err
	}
	return os.Truncate(f.path, int64(strings.LastIndexByte(string(text), '\n')+1))
}

// Heads implements run.Heads. Where lines are damaged it gives the heads of the
// others, and an error that says which lines they are.
func (f *File) Heads() (map[string]run.Head, error) {
	if _, err := os.Stat(f.path); errors.Is(err, fs.ErrNotExist) {
		return map[string]run.Head{}, nil
	}
	release, err := f.lock((*flock.Flock).TryRLockContext)
	if err != nil {
		return nil, f.fault("read the heads", err)
	}
	defer release()
	c, err := f.read()
	if err != nil {
		return nil, f.fault("read the heads", err)
	}
	return c.heads, c.fault(f.path)
}

// read reads the file; one that is not there is empty. The caller has a lock.
func (f *File) read() (*content, error) {
	text, err := os.ReadFile(f.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return f.parse(string(text)), nil
}

// Replace implements run.Heads. The file says when it was done.
func (f *File) Replace(heads map[string]run.Head) error {
	release, err := f.lock((*flock.Flock).TryLockContext)
	if err != nil {
		return f.fault("replace the heads", err)
	}
	defer release()
	c, err := f.read()
	if err != nil {
		return f.fault("replace the heads", err)
	}
	c.heads = heads
	c.notes = append(c.notes, f.noteLine("restored", len(heads)))
	return f.fault("replace the heads", f.write(c))
}

// compact writes the file anew, with one line for each run, if it has grown
// enough. A damaged one is left as it is, for a person to look at.
func (f *File) compact() error {
	due, err := f.due()
	if err != nil || !due {
		return err
	}
	release, err := f.lock((*flock.Flock).TryLockContext)
	if err != nil {
		return err
	}
	defer release()
	if due, err = f.due(); err != nil || !due { // another process was faster
		return err
	}
	c, err := f.read()
	if err != nil || len(c.damaged) > 0 {
		return err
	}
	return f.write(c)
}

// due says whether the file has grown enough since it was written.
func (f *File) due() (bool, error) {
	file, err := os.Open(f.path)
	if err != nil {
		return false, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return false, err
	}
	first := make([]byte, 200)
	n, _ := file.ReadAt(first, 0) // a shorter file is not due
	return info.Size() > max(f.compactFrom, compactTimes*f.baseOf(string(first[:n]))), nil
}

// write puts the file in the place of the one that is there. The first line says
// how large it is.
func (f *File) write(c *content) error {
	lines := c.lines(f)
	return atomicfile.Replace(f.path, f.noteLine("compacted", len(lines))+lines)
}

// lock locks the file beside the file, which is never replaced.
func (f *File) lock(take func(*flock.Flock, context.Context, time.Duration) (bool, error)) (release func(), err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	lock := flock.New(f.path+".lock", flock.SetPermissions(0o600))
	_, err = take(lock, ctx, retry)
	if errors.Is(err, fs.ErrNotExist) {
		if err = atomicfile.MakeDir(filepath.Dir(f.path)); err == nil {
			_, err = take(lock, ctx, retry)
		}
	}
	if err != nil {
		return nil, err
	}
	return func() { _ = lock.Unlock() }, nil
}

func (f *File) fault(doing string, err error) error {
	if err == nil {
		return nil
	}
	e := guideway.Errorf(guideway.CodeUnavailable, "%s in %s: %w", doing, f.path, err)
	if errors.Is(err, context.DeadlineExceeded) {
		return e.WithFix("end the process that holds %s.lock, or try again", f.path)
	}
	return e.WithFix("make the file and its directory readable and writable for this user, and see that the disk is not full")
}

// fault says which lines are damaged.
func (c *content) fault(path string) error {
	if len(c.damaged) == 0 {
		return nil
	}
	shown := fmt.Sprint(c.damaged[:min(len(c.damaged), 10)])
	return guideway.Errorf(guideway.CodeInvalid, "%d lines of the heads %s were edited, damaged or written with another key: %s", len(c.damaged), path, shown).
		WithFix("find out who has edited the file, or restore its key; to go on with the journal as it is: `guideway runs verify --accept-restore`")
}
