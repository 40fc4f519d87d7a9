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
	// maxWatched bounds the number of directories of one source that the operating system
	// watches; the others are polled.
	maxWatched = 256
	// scanEvery is the number of polls after which all files are checked even if the
	// operating system reports changes, because on some file systems it does not report
	// all.
	scanEvery = 6
	// scanPauseFactor is the ratio of the pause after a scan to the duration of the scan.
	// The pause never exceeds scanAtLeast polls, since a scan may be slow because the
	// machine is busy.
	scanPauseFactor = 50
	scanAtLeast     = 20
	// debounceLimit is the number of quiet times after which a directory is scanned even if
	// its changes do not pause.
	debounceLimit = 4
)

// Changes implements Watcher: by events of the operating system if they are available, and
// by polling.
func (d *Dir) Changes(ctx context.Context) (<-chan struct{}, error) {
	w := &dirWatch{dir: d, out: make(chan struct{}, 1), watched: map[string]fs.FileInfo{}}
	if !d.opts.NoEvents {
		// Without events, for example because a limit is reached, polling finds all
		// changes.
		w.events, _ = fsnotify.NewWatcher()
	}
	go w.watchLoop(ctx)
	return w.out, nil
}

// dirWatch detects changes below one directory. It is not safe for concurrent use.
type dirWatch struct {
	dir    *Dir
	out    chan struct{}
	events *fsnotify.Watcher
	// watched maps each watched directory to its state when the watch started.
	watched map[string]fs.FileInfo
	// partial reports that some directories are not watched.
	partial bool
	// root is the directory at the last check; nil if there was none.
	root fs.FileInfo
	// scanned is the time of the last scan, and pause the time until the next.
	scanned time.Time
	pause   time.Duration
}

func (w *dirWatch) watchLoop(ctx context.Context) {
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
	var since time.Time // since is the time of the first event that was not handled yet.
	touched := false    // touched reports that an event names a document.

	w.scanAll(ctx, false)
	for {
		select {
		case <-ctx.Done():
			return
		case event, open := <-events:
			if !open {
				events = nil
			}
			touched = touched || w.isDocument(event.Name)
			since = w.postponeScan(quiet, since)
		case _, open := <-failures:
			// An overflow means that events were lost.
			if !open {
				failures = nil
			}
			touched = true
			since = w.postponeScan(quiet, since)
		case <-quiet.C:
			w.scanAll(ctx, touched)
			since, touched = time.Time{}, false
		case <-poll.C:
			if w.isReplaced() || time.Since(w.scanned) >= w.pause {
				w.scanAll(ctx, false)
			}
		}
	}
}

// isDocument reports whether a reported path is a document.
func (w *dirWatch) isDocument(file string) bool {
	name, err := filepath.Rel(w.dir.info.Location, file)
	return err == nil && isDocument(filepath.ToSlash(name))
}

// postponeScan restarts the quiet time, up to its limit.
func (w *dirWatch) postponeScan(quiet *time.Timer, since time.Time) time.Time {
	now := time.Now()
	if since.IsZero() {
		since = now
	}
	wait := min(w.dir.opts.Debounce, since.Add(debounceLimit*w.dir.opts.Debounce).Sub(now))
	quiet.Reset(max(wait, 0))
	return since
}

// isReplaced reports whether the directory is a different one than at the last check.
func (w *dirWatch) isReplaced() bool {
	info, err := os.Stat(w.dir.info.Location)
	if err != nil || w.root == nil {
		return (err == nil) != (w.root != nil)
	}
	return !os.SameFile(info, w.root)
}

// scanAll checks all files and reports a change if there is one, or if an event named a
// document, because its content can change without its size and time. For the same reason
// it again reports files that were too young when they were listed.
func (w *dirWatch) scanAll(ctx context.Context, touched bool) {
	began := time.Now()
	found, err := w.dir.scanTree(ctx)
	if ctx.Err() != nil {
		return
	}
	w.root = nil
	if err == nil {
		w.root = found.dirs[0].info
		if w.watchDirs(found.dirs) {
			// A second scan finds changes between the first scan and the start of the
			// watch.
			if again, againErr := w.dir.scanTree(ctx); againErr == nil {
				found = again
			}
		}
	} else {
		w.unwatchOthers(nil)
	}
	w.scanned = time.Now()
	w.pause = w.dir.opts.Poll
	if w.events != nil && !w.partial {
		w.pause *= scanEvery
	}
	w.pause = max(w.pause, min(scanPauseFactor*w.scanned.Sub(began), scanAtLeast*w.dir.opts.Poll))

	w.dir.mu.Lock()
	again := w.dir.rescanAt
	changed := found.fingerprintOf(err) != w.dir.listed || !again.IsZero() && w.scanned.After(again)
	w.dir.mu.Unlock()
	if touched || changed {
		select {
		case w.out <- struct{}{}:
		default: // a pending signal is enough
		}
	}
}

// watchDirs makes the operating system watch the first maxWatched of these directories, and
// no others. It reports whether any is new.
func (w *dirWatch) watchDirs(dirs []foundFile) bool {
	if w.events == nil {
		return false
	}
	w.partial = len(dirs) > maxWatched
	wanted := map[string]fs.FileInfo{}
	for _, dir := range dirs[:min(len(dirs), maxWatched)] {
		wanted[filepath.Join(w.dir.info.Location, filepath.FromSlash(dir.name))] = dir.info
	}
	w.dropRemoved()
	w.unwatchOthers(wanted)
	fresh := false
	for path, info := range wanted {
		if w.watched[path] != nil {
			continue
		}
		if err := w.events.Add(path); err != nil {
			w.partial = true
			continue
		}
		w.watched[path] = info
		fresh = true
	}
	return fresh
}

// dropRemoved forgets directories that the system no longer watches because they were
// removed. This is necessary because a new directory at the same path can look the same.
func (w *dirWatch) dropRemoved() {
	reported := map[string]bool{}
	for _, path := range w.events.WatchList() {
		reported[path] = true
	}
	for path := range w.watched {
		if !reported[path] {
			delete(w.watched, path)
		}
	}
}

// unwatchOthers stops watching all directories except the unchanged ones in wanted.
func (w *dirWatch) unwatchOthers(wanted map[string]fs.FileInfo) {
	for path, info := range w.watched {
		if now := wanted[path]; now != nil && os.SameFile(now, info) {
			continue
		}
		// The system stops watching a removed directory.
		if err := w.events.Remove(path); err != nil && !errors.Is(err, fsnotify.ErrNonExistentWatch) {
			w.partial = true
		}
		delete(w.watched, path)
	}
}
