package catalog

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// maxWatched bounds the directories of one source that the operating
	// system watches for us; the others are polled.
	maxWatched = 256
	// sweepEvery is after how many polls all files are looked at where the
	// operating system reports changes, for the file systems on which it
	// claims to and does not.
	sweepEvery = 6
	// sweepShare is how much longer than a sweep the pause after it is, but for
	// sweepAtLeast, the number of polls that a pause never exceeds: a sweep that
	// took long because the machine is busy says little.
	sweepShare   = 50
	sweepAtLeast = 20
	// debounceLimit is after how many quiet times a directory that is never
	// quiet is looked at all the same.
	debounceLimit = 4
)

// Changes implements Watcher: by the events of the operating system where they
// are to be had, and by polling besides.
func (d *Dir) Changes(ctx context.Context) (<-chan struct{}, error) {
	w := &dirWatch{dir: d, out: make(chan struct{}, 1), armed: map[string]fs.FileInfo{}}
	if !d.opts.NoEvents {
		// Without events, because a limit is reached for example, polling does
		// the whole work.
		w.events, _ = fsnotify.NewWatcher()
	}
	go w.run(ctx)
	return w.out, nil
}

// dirWatch notices changes below one directory. It belongs to one goroutine.
type dirWatch struct {
	dir    *Dir
	out    chan struct{}
	events *fsnotify.Watcher
	// armed are the directories whose events are reported, as they were then.
	armed map[string]fs.FileInfo
	// partial says that some directories are not armed.
	partial bool
	// root is the directory at the last look; nil if there was none.
	root fs.FileInfo
	// swept and pause say when all files were looked at and when to do it again.
	swept time.Time
	pause time.Duration
}

func (w *dirWatch) run(ctx context.Context) {
	defer close(w.out)
	var events chan fsnotify.Event
	var failures chan error
	if w.events != nil {
		defer w.events.Close()
		events, failures = w.events.Events, w.events.Errors
	}
	poll := time.NewTicker(w.dir.opts.Poll)
	defer poll.Stop()
	quiet := time.NewTimer(0)
	quiet.Stop()
	defer quiet.Stop()
	var since time.Time // of the first event that is not yet looked into
	touched := false    // one of them names a document

	w.sweep(ctx, false)
	for {
		select {
		case <-ctx.Done():
			return
		case event, open := <-events:
			if !open {
				events = nil
			}
			touched = touched || w.isDocument(event.Name)
			since = w.postpone(quiet, since)
		case _, open := <-failures:
			// An overflow means that events were lost.
			if !open {
				failures = nil
			}
			touched = true
			since = w.postpone(quiet, since)
		case <-quiet.C:
			w.sweep(ctx, touched)
			since, touched = time.Time{}, false
		case <-poll.C:
			if w.replaced() || time.Since(w.swept) >= w.pause {
				w.sweep(ctx, false)
			}
		}
	}
}

// isDocument says whether a path that the system reports is that of a document.
func (w *dirWatch) isDocument(file string) bool {
	name, err := filepath.Rel(w.dir.info.Location, file)
	return err == nil && isDocument(filepath.ToSlash(name))
}

// postpone restarts the quiet time, within its limit.
func (w *dirWatch) postpone(quiet *time.Timer, since time.Time) time.Time {
	now := time.Now()
	if since.IsZero() {
		since = now
	}
	wait := min(w.dir.opts.Debounce, since.Add(debounceLimit*w.dir.opts.Debounce).Sub(now))
	quiet.Reset(max(wait, 0))
	return since
}

// replaced says whether the directory is another than at the last look.
func (w *dirWatch) replaced() bool {
	info, err := os.Stat(w.dir.info.Location)
	if err != nil || w.root == nil {
		return (err == nil) != (w.root != nil)
	}
	return !os.SameFile(info, w.root)
}

// sweep looks at all files and reports a change if there is one, or if an
// event touched a document: it can change without its size and time doing so.
// For the same reason it reports files again that were young when listed.
func (w *dirWatch) sweep(ctx context.Context, touched bool) {
	began := time.Now()
	found, err := w.dir.scan(ctx)
	if ctx.Err() != nil {
		return
	}
	w.root = nil
	if err == nil {
		w.root = found.dirs[0].info
		if w.arm(found.dirs) {
			// A change between the walk and the arming shows in no event.
			if again, againErr := w.dir.scan(ctx); againErr == nil {
				found = again
			}
		}
	} else {
		w.disarm(nil)
	}
	w.swept = time.Now()
	w.pause = w.dir.opts.Poll
	if w.events != nil && !w.partial {
		w.pause *= sweepEvery
	}
	w.pause = max(w.pause, min(sweepShare*w.swept.Sub(began), sweepAtLeast*w.dir.opts.Poll))

	w.dir.mu.Lock()
	again := w.dir.again
	changed := found.fingerprint(err) != w.dir.listed || !again.IsZero() && w.swept.After(again)
	w.dir.mu.Unlock()
	if touched || changed {
		select {
		case w.out <- struct{}{}:
		default: // one that waits says the same
		}
	}
}

// arm has the operating system report the changes in exactly these
// directories. It says whether any is new.
func (w *dirWatch) arm(dirs []foundFile) bool {
	if w.events == nil {
		return false
	}
	w.partial = len(dirs) > maxWatched
	wanted := map[string]fs.FileInfo{}
	for _, dir := range dirs[:min(len(dirs), maxWatched)] {
		wanted[filepath.Join(w.dir.info.Location, filepath.FromSlash(dir.name))] = dir.info
	}
	w.forget()
	w.disarm(wanted)
	fresh := false
	for path, info := range wanted {
		if w.armed[path] != nil {
			continue
		}
		if err := w.events.Add(path); err != nil {
			w.partial = true
			continue
		}
		w.armed[path] = info
		fresh = true
	}
	return fresh
}

// forget drops what the system stopped reporting by itself, because the
// directory is gone. One that was made in its place can look the same.
func (w *dirWatch) forget() {
	reported := map[string]bool{}
	for _, path := range w.events.WatchList() {
		reported[path] = true
	}
	for path := range w.armed {
		if !reported[path] {
			delete(w.armed, path)
		}
	}
}

// disarm ends the reports of all directories but those that are wanted and
// still the same.
func (w *dirWatch) disarm(wanted map[string]fs.FileInfo) {
	for path, info := range w.armed {
		if now := wanted[path]; now != nil && os.SameFile(now, info) {
			continue
		}
		// The system forgets a directory that is gone by itself.
		if err := w.events.Remove(path); err != nil && !errors.Is(err, fsnotify.ErrNonExistentWatch) {
			w.partial = true
		}
		delete(w.armed, path)
	}
}
