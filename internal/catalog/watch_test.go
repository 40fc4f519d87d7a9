package catalog_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/guideway-dev/guideway/internal/catalog"
)

// watchModes are the two ways to detect changes.
var watchModes = map[string]catalog.DirOptions{
	"events":  {Poll: 200 * time.Millisecond, Debounce: 10 * time.Millisecond},
	"polling": {Poll: 10 * time.Millisecond, NoEvents: true},
}

// watchedDir is a directory that a catalog follows.
type watchedDir struct {
	*testing.T
	dir     string
	catalog *catalog.Catalog
	changes chan catalog.Change
}

// testWatch opens a catalog of one directory in each mode and runs a test on it.
func testWatch(t *testing.T, test func(w *watchedDir)) {
	t.Helper()
	for name, opts := range watchModes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &watchedDir{T: t, dir: filepath.Join(t.TempDir(), "workflows"), changes: make(chan catalog.Change, 100)}
			writeFile(t, filepath.Join(w.dir, "first.json"), definitionText("first", "1"))
			source := catalog.NewDir(catalog.SourceInfo{Name: "dir", Location: w.dir, Optional: true}, opts)
			w.catalog = catalog.New([]catalog.Source{source}, catalog.Options{Parse: parseTest})
			w.catalog.OnChange(func(change catalog.Change) { w.changes <- change })
			checkError(t, w.catalog.Open(context.Background()))
			t.Cleanup(w.catalog.Close)
			<-w.changes // Drop the change of the first load.
			test(w)
		})
	}
}

func (w *watchedDir) filePath(name string) string { return filepath.Join(w.dir, name) }

// waitForServed waits until exactly these definitions are served.
func (w *watchedDir) waitForServed(want ...string) {
	w.Helper()
	timeout := time.After(deadline)
	for {
		got := servedList(w.catalog.Snapshot())
		if slices.Equal(got, want) {
			return
		}
		select {
		case <-w.changes:
		case <-timeout:
			w.Fatalf("still %v, want %v; %v", got, want, codeList(w.catalog.Diagnostics()))
		}
	}
}

func TestWatchEdits(t *testing.T) {
	t.Parallel()
	testWatch(t, func(w *watchedDir) {
		w.waitForServed("first@1 dir")
		writeFile(w, w.filePath("second.yaml"), definitionText("second", "1"))
		w.waitForServed("first@1 dir", "second@1 dir")
		writeFile(w, w.filePath("second.yaml"), definitionText("second", "22"))
		w.waitForServed("first@1 dir", "second@22 dir")
		writeFile(w, w.filePath("second.yaml"), `{"id":"second"`)
		w.waitForServed("first@1 dir", "second@22 dir*")
		writeFile(w, w.filePath("second.yaml"), definitionText("second", "3"))
		w.waitForServed("first@1 dir", "second@3 dir")
		checkError(w, os.Remove(w.filePath("first.json")))
		w.waitForServed("second@3 dir")
	})
}

// Editors and deployments replace files atomically.
func TestWatchAtomicReplacement(t *testing.T) {
	t.Parallel()
	testWatch(t, func(w *watchedDir) {
		for version := 2; version < 5; version++ {
			writeFile(w, w.filePath(".first.json.tmp"), definitionText("first", fmt.Sprint(version)))
			checkError(w, os.Rename(w.filePath(".first.json.tmp"), w.filePath("first.json")))
			w.waitForServed(fmt.Sprintf("first@%d dir", version))
		}
		// vim moves the old file away, writes a new one and removes the old.
		checkError(w, os.Rename(w.filePath("first.json"), w.filePath("first.json~")))
		writeFile(w, w.filePath("first.json"), definitionText("first", "5"))
		checkError(w, os.Remove(w.filePath("first.json~")))
		w.waitForServed("first@5 dir")
	})
}

// A file is rewritten with the same size, possibly within one tick of the file system's
// clock.
func TestWatchSameSize(t *testing.T) {
	t.Parallel()
	testWatch(t, func(w *watchedDir) {
		for version := 2; version < 8; version++ {
			writeFile(w, w.filePath("first.json"), definitionText("first", fmt.Sprint(version)))
			w.waitForServed(fmt.Sprintf("first@%d dir", version))
		}
	})
}

func TestWatchDirectories(t *testing.T) {
	t.Parallel()
	testWatch(t, func(w *watchedDir) {
		writeFile(w, w.filePath("loops/a.json"), definitionText("a", "1"))
		w.waitForServed("a@1 dir", "first@1 dir")
		writeFile(w, w.filePath("loops/b.json"), definitionText("b", "1"))
		w.waitForServed("a@1 dir", "b@1 dir", "first@1 dir")
		checkError(w, os.Rename(w.filePath("loops"), w.filePath("cycles")))
		writeFile(w, w.filePath("cycles/c.json"), definitionText("c", "1"))
		w.waitForServed("a@1 dir", "b@1 dir", "c@1 dir", "first@1 dir")
		checkError(w, os.RemoveAll(w.filePath("cycles")))
		w.waitForServed("first@1 dir")
	})
}

func TestWatchDirectoryAppearsAndVanishes(t *testing.T) {
	t.Parallel()
	testWatch(t, func(w *watchedDir) {
		for round := range 3 {
			checkError(w, os.RemoveAll(w.dir))
			w.waitForServed()
			writeFile(w, w.filePath("first.json"), definitionText("first", "1"))
			w.waitForServed("first@1 dir")
			writeFile(w, w.filePath("more.json"), definitionText("more", fmt.Sprint(round)))
			w.waitForServed("first@1 dir", fmt.Sprintf("more@%d dir", round))
		}
		// The directory is removed and restored at once.
		checkError(w, os.RemoveAll(w.dir))
		writeFile(w, w.filePath("second.json"), definitionText("second", "1"))
		w.waitForServed("second@1 dir")
		writeFile(w, w.filePath("third.json"), definitionText("third", "1"))
		w.waitForServed("second@1 dir", "third@1 dir")
		// The directory is replaced by another one.
		writeFile(w, filepath.Join(w.dir+".new", "x.json"), definitionText("x", "1"))
		checkError(w, os.Rename(w.dir, w.dir+".old"))
		checkError(w, os.Rename(w.dir+".new", w.dir))
		w.waitForServed("x@1 dir")
		writeFile(w, w.filePath("y.json"), definitionText("y", "1"))
		w.waitForServed("x@1 dir", "y@1 dir")
	})
}

// A directory whose changes do not pause is still scanned.
func TestWatchBusyDirectory(t *testing.T) {
	t.Parallel()
	testWatch(t, func(w *watchedDir) {
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() {
			defer close(done)
			for i := 0; ctx.Err() == nil; i++ {
				_ = os.WriteFile(w.filePath("noise.log"), fmt.Append(nil, i), 0o600)
			}
		}()
		defer func() { cancel(); <-done }()
		writeFile(w, w.filePath("first.json"), definitionText("first", "2"))
		w.waitForServed("first@2 dir")
	})
}

// A change is detected with the default options. The test logs how long that takes.
func TestWatchWithinASecond(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := catalog.New([]catalog.Source{newDir(dir)}, catalog.Options{Parse: parseTest})
	changes := make(chan catalog.Change, 10)
	c.OnChange(func(change catalog.Change) { changes <- change })
	checkError(t, c.Open(context.Background()))
	t.Cleanup(c.Close)
	start := time.Now()
	writeFile(t, filepath.Join(dir, "a.json"), definitionText("a", "1"))
	select {
	case <-changes:
		t.Logf("detected after %s", time.Since(start).Round(time.Millisecond))
	case <-time.After(deadline):
		t.Fatal("not noticed")
	}
}
