// Package rollbackguard records the last event of every run, its head, in a separate text
// file. A rollback of the journal, or removing the last events of a run, does not change
// this file, and editing it requires the key.
//
// A line is "run seq mac tag": the tag authenticates the rest of the line. Lines that begin
// with a number sign record when the file was created, compacted or restored. New lines are
// appended without a sync: the journal is always at least as new, and losing a head in a
// power failure only means that one rollback would go unnoticed.
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
	// lockTimeout bounds the wait for other processes; lockPollInterval is how often the
	// lock is tried.
	lockTimeout      = 5 * time.Second
	lockPollInterval = time.Millisecond
	// A file larger than compactFrom is compacted when it is more than compactFactor times
	// as large as after the last compaction.
	compactFrom   = 1 << 20
	compactFactor = 4
)

var _ run.Heads = (*File)(nil)

// File is a file with the heads of runs. It is safe for concurrent use by goroutines and
// processes. It is not kept open between calls.
type File struct {
	path string
	key  run.Key
	now  func() time.Time
	// compactFrom is the constant of the same name; tests set a lower value.
	compactFrom int64

	// writeMu is held while a batch is written. mu guards next, the batch that is written
	// after the current one.
	writeMu sync.Mutex
	mu      sync.Mutex
	next    *lineBatch
}

// Open returns the file at path, which need not exist yet, with the key that authenticates
// its lines. Open does not access the file.
func Open(path string, key run.Key) (*File, error) {
	if path == "" || len(key) != run.KeySize {
		return nil, guideway.Errorf(guideway.CodeInvalid, "a head file needs a path and a key of %d bytes; the path is %q, and the key has %d bytes", run.KeySize, path, len(key))
	}
	return &File{path: path, key: key, now: time.Now, compactFrom: compactFrom}, nil
}

// Record implements run.Heads. Its cost does not depend on the length of the file, unless
// it compacts the file. Concurrent calls share one write.
func (f *File) Record(id string, seq int64, mac []byte) error {
	b, first := f.joinBatch(f.headLine(id, run.Head{Seq: seq, MAC: mac}))
	if !first {
		<-b.done
		return f.wrapError("record the head of the run "+id, b.err)
	}
	size, err := f.writeBatch(b)
	if err != nil {
		return f.wrapError("record the head of the run "+id, err)
	}
	if size > f.compactFrom {
		return f.wrapError("compact", f.compactFile())
	}
	return nil
}

// lineBatch contains lines that are written together.
type lineBatch struct {
	lines strings.Builder
	// done is closed after err is set.
	done chan struct{}
	err  error
}

// errPanicked is returned for lines whose writer panicked.
var errPanicked = errors.New("the writer panicked")

// joinBatch adds a line to the next batch. first reports whether the caller must write the
// batch.
func (f *File) joinBatch(line string) (b *lineBatch, first bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if first = f.next == nil; first {
		f.next = &lineBatch{done: make(chan struct{}), err: errPanicked}
	}
	f.next.lines.WriteString(line)
	return f.next, first
}

// writeBatch writes a batch, including lines that were added while the previous batch was
// written. It returns the size of the file.
func (f *File) writeBatch(b *lineBatch) (size int64, err error) {
	f.writeMu.Lock()
	defer f.writeMu.Unlock()
	f.mu.Lock()
	f.next = nil
	f.mu.Unlock()
	defer close(b.done)
	size, b.err = f.appendLines(b.lines.String())
	return size, b.err
}

// appendLines appends lines to the file. It first creates the file or removes an incomplete
// last line, if necessary.
func (f *File) appendLines(lines string) (size int64, err error) {
	size, torn, err := f.addLines(lines)
	if errors.Is(err, fs.ErrNotExist) {
		if err = f.createFile(); err == nil {
			size, torn, err = f.addLines(lines)
		}
	}
	if err == nil && torn {
		if err = f.truncateTornLine(); err == nil {
			size, _, err = f.addLines(lines)
		}
	}
	return size, err
}

// addLines appends lines. Other writers may append at the same time, because a single write
// in append mode is atomic. If the last line of the file is incomplete, torn is true and
// nothing is written.
func (f *File) addLines(lines string) (size int64, torn bool, err error) {
	release, err := f.lockFile((*flock.Flock).TryRLockContext)
	if err != nil {
		return 0, false, err
	}
	defer release()
	file, err := os.OpenFile(f.path, os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		return 0, false, err
	}
	if size, torn, err = readEnd(file); err == nil && !torn {
		_, err = file.WriteString(lines)
	}
	return size + int64(len(lines)), torn, errors.Join(err, file.Close())
}

// readEnd returns the size of a file and whether its last line is incomplete.
func readEnd(file *os.File) (size int64, torn bool, err error) {
	info, err := file.Stat()
	if err != nil || info.Size() == 0 {
		return 0, false, err
	}
	last := make([]byte, 1)
	_, err = file.ReadAt(last, info.Size()-1)
	return info.Size(), last[0] != '\n', err
}

// createFile creates the file, unless another process has created it.
func (f *File) createFile() error {
	err := atomicfile.Create(f.path, f.noteLine("begun", 0))
	if errors.Is(err, fs.ErrExist) { // another process created the file first
		return nil
	}
	return err
}

// truncateTornLine removes an incomplete last line, which a power failure or a full disk
// can leave.
func (f *File) truncateTornLine() error {
	release, err := f.lockFile((*flock.Flock).TryLockContext)
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

// Heads implements run.Heads. If lines are damaged, it returns the heads in the other lines
// and an error with the numbers of the damaged lines.
func (f *File) Heads() (map[string]run.Head, error) {
	if _, err := os.Stat(f.path); errors.Is(err, fs.ErrNotExist) {
		return map[string]run.Head{}, nil
	}
	release, err := f.lockFile((*flock.Flock).TryRLockContext)
	if err != nil {
		return nil, f.wrapError("read the heads", err)
	}
	defer release()
	c, err := f.readContent()
	if err != nil {
		return nil, f.wrapError("read the heads", err)
	}
	return c.heads, c.damageError(f.path)
}

// readContent reads the file. A missing file is empty. The caller has the lock.
func (f *File) readContent() (*content, error) {
	text, err := os.ReadFile(f.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return f.parseContent(string(text)), nil
}

// Replace implements run.Heads. The file records the time of the replacement.
func (f *File) Replace(heads map[string]run.Head) error {
	release, err := f.lockFile((*flock.Flock).TryLockContext)
	if err != nil {
		return f.wrapError("replace the heads", err)
	}
	defer release()
	c, err := f.readContent()
	if err != nil {
		return f.wrapError("replace the heads", err)
	}
	c.heads = heads
	c.notes = append(c.notes, f.noteLine("restored", len(heads)))
	return f.wrapError("replace the heads", f.replaceFile(c))
}

// compactFile rewrites the file with one line per run if it has grown enough. It does not
// rewrite a damaged file, which needs human attention.
func (f *File) compactFile() error {
	due, err := f.needsCompaction()
	if err != nil || !due {
		return err
	}
	release, err := f.lockFile((*flock.Flock).TryLockContext)
	if err != nil {
		return err
	}
	defer release()
	if due, err = f.needsCompaction(); err != nil || !due { // another process compacted the file first
		return err
	}
	c, err := f.readContent()
	if err != nil || len(c.damaged) > 0 {
		return err
	}
	return f.replaceFile(c)
}

// needsCompaction reports whether the file has grown enough since it was last rewritten.
func (f *File) needsCompaction() (bool, error) {
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
	n, _ := file.ReadAt(first, 0) // a shorter file needs no compaction
	return info.Size() > max(f.compactFrom, compactFactor*f.sizeWhenWritten(string(first[:n]))), nil
}

// replaceFile replaces the file. The first line records the size of the other lines.
func (f *File) replaceFile(c *content) error {
	lines := c.formatLines(f)
	return atomicfile.Replace(f.path, f.noteLine("compacted", len(lines))+lines)
}

// lockFile locks a separate lock file, which is never replaced.
func (f *File) lockFile(take func(*flock.Flock, context.Context, time.Duration) (bool, error)) (release func(), err error) {
	ctx, cancel := context.WithTimeout(context.Background(), lockTimeout)
	defer cancel()
	lock := flock.New(f.path+".lock", flock.SetPermissions(0o600))
	err = atomicfile.EnsureFile(lock.Path())
	if errors.Is(err, fs.ErrNotExist) {
		if err = atomicfile.MakeDir(filepath.Dir(f.path)); err == nil {
			err = atomicfile.EnsureFile(lock.Path())
		}
	}
	if err == nil {
		_, err = take(lock, ctx, lockPollInterval)
	}
	if err != nil {
		return nil, err
	}
	return func() { _ = lock.Unlock() }, nil
}

func (f *File) wrapError(doing string, err error) error {
	if err == nil {
		return nil
	}
	e := guideway.Errorf(guideway.CodeUnavailable, "%s in %s: %w", doing, f.path, err)
	if errors.Is(err, context.DeadlineExceeded) {
		return e.WithFix("end the process that holds %s.lock, or try again", f.path)
	}
	return e.WithFix("make the file and its directory readable and writable for this user, and check that the disk is not full")
}

// damageError returns an error with the numbers of the damaged lines.
func (c *content) damageError(path string) error {
	if len(c.damaged) == 0 {
		return nil
	}
	shown := fmt.Sprint(c.damaged[:min(len(c.damaged), 10)])
	return guideway.Errorf(guideway.CodeInvalid, "the head file %s has lines that were edited, damaged or written with another key, %d in total; the numbers of the first ones: %s", path, len(c.damaged), shown).
		WithFix("find out who has edited the file, or restore the key; to accept the current journal, run `guideway runs verify --accept-restore`")
}
