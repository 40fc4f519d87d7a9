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

// modes are the two ways to notice changes. Polling is fast enough here that a
// test of it does not take long, and slow enough beside events that they have
// to do the work.
var modes = map[string]catalog.DirOptions{
	"events":  {Poll: 200 * time.Millisecond, Debounce: 10 * time.Millisecond},
	"polling": {Poll: 10 * time.Millisecond, NoEvents: true},
}

// watched is a directory that a catalog follows.
type watched struct {
	*testing.T
	dir     string
	catalog *catalog.Catalog
	changes chan catalog.Change
}

// watch opens a catalog of one directory in each mode and runs a test on it.
func watch(t *testing.T, test func(w *watched)) {
	t.Helper()
	for name, opts := range modes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &watched{T: t, dir: filepath.Join(t.TempDir(), "workflows"), changes: make(chan catalog.Change, 100)}
			write(t, filepath.Join(w.dir, "first.json"), text("first", "1"))
			source := catalog.NewDir(catalog.SourceInfo{Name: "dir", Location: w.dir, Optional: true}, opts)
			w.catalog = catalog.New([]catalog.Source{source}, catalog.Options{Parse: parse})
			w.catalog.OnChange(func(change catalog.Change) { w.changes <- change })
			check(t, w.catalog.Open(context.Background()))
			t.Cleanup(w.catalog.Close)
			<-w.changes // the load
			test(w)
		})
	}
}

func (w *watched) path(name string) string { return filepath.Join(w.dir, name) }

// until waits until exactly these are served.
func (w *watched) until(want ...string) {
	w.Helper()
	timeout := time.After(deadline)
	for {
		got := served(w.catalog.Snapshot())
		if slices.Equal(got, want) {
			return
		}
		select {
		case <-w.changes:
		case <-timeout:
			w.Fatalf("still %v, want %v; %v", got, want, codes(w.catalog.Diagnostics()))
		}
	}
}

func TestWatchEdits(t *testing.T) {
	t.Parallel()
	watch(t, func(w *watched) {
		w.until("first@1 dir")
		write(w, w.path("second.yaml"), text("second", "1"))
		w.until("first@1 dir", "second@1 dir")
		write(w, w.path("second.yaml"), text("second", "22"))
		w.until("first@1 dir", "second@22 dir")
		write(w, w.path("second.yaml"), `{"id":"second"`)
		w.until("first@1 dir", "second@22 dir*")
		write(w, w.path("second.yaml"), text("second", "3"))
		w.until("first@1 dir", "second@3 dir")
		check(w, os.Remove(w.path("first.json")))
		w.until("second@3 dir")
	})
}

// TestWatchAtomicReplacement is how editors and deployments write.
func TestWatchAtomicReplacement(t *testing.T) {
	t.Parallel()
	watch(t, func(w *watched) {
		for version := 2; version < 5; version++ {
			write(w, w.path(".first.json.tmp"), text("first", fmt.Sprint(version)))
			check(w, os.Rename(w.path(".first.json.tmp"), w.path("first.json")))
			w.until(fmt.Sprintf("first@%d dir", version))
		}
		// vim moves the old file away, writes a new one and removes the old.
		check(w, os.Rename(w.path("first.json"), w.path("first.json~")))
		write(w, w.path("first.json"), text("first", "5"))
		check(w, os.Remove(w.path("first.json~")))
		w.until("first@5 dir")
	})
}

// TestWatchSameSize rewrites a file in place without changing its size, within
// one tick of the clock of the file system perhaps.
func TestWatchSameSize(t *testing.T) {
	t.Parallel()
	watch(t, func(w *watched) {
		for version := 2; version < 8; version++ {
			write(w, w.path("first.json"), text("first", fmt.Sprint(version)))
			w.until(fmt.Sprintf("first@%d dir", version))
		}
	})
}

func TestWatchDirectories(t *testing.T) {
	t.Parallel()
	watch(t, func(w *watched) {
		write(w, w.path("loops/a.json"), text("a", "1"))
		w.until("a@1 dir", "first@1 dir")
		write(w, w.path("loops/b.json"), text("b", "1"))
		w.until("a@1 dir", "b@1 dir", "first@1 dir")
		check(w, os.Rename(w.path("loops"), w.path("cycles")))
		write(w, w.path("cycles/c.json"), text("c", "1"))
		w.until("a@1 dir", "b@1 dir", "c@1 dir", "first@1 dir")
		check(w, os.RemoveAll(w.path("cycles")))
		w.until("first@1 dir")
	})
}

func TestWatchDirectoryComesAndGoes(t *testing.T) {
	t.Parallel()
	watch(t, func(w *watched) {
		for round := range 3 {
			check(w, os.RemoveAll(w.dir))
			w.until()
			write(w, w.path("first.json"), text("first", "1"))
			w.until("first@1 dir")
			write(w, w.path("more.json"), text("more", fmt.Sprint(round)))
			w.until("first@1 dir", fmt.Sprintf("more@%d dir", round))
		}
		// Gone and back within the debounce.
		check(w, os.RemoveAll(w.dir))
		write(w, w.path("second.json"), text("second", "1"))
		w.until("second@1 dir")
		write(w, w.path("third.json"), text("third", "1"))
		w.until("second@1 dir", "third@1 dir")
		// Another directory in its place.
		write(w, filepath.Join(w.dir+".new", "x.json"), text("x", "1"))
		check(w, os.Rename(w.dir, w.dir+".old"))
		check(w, os.Rename(w.dir+".new", w.dir))
		w.until("x@1 dir")
		write(w, w.path("y.json"), text("y", "1"))
		w.until("x@1 dir", "y@1 dir")
	})
}

// TestWatchBusyDirectory keeps a directory from ever being quiet.
func TestWatchBusyDirectory(t *testing.T) {
	t.Parallel()
	watch(t, func(w *watched) {
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() {
			defer close(done)
			for i := 0; ctx.Err() == nil; i++ {
				_ = os.WriteFile(w.path("noise.log"), fmt.Append(nil, i), 0o600)
			}
		}()
		defer func() { cancel(); <-done }()
		write(w, w.path("first.json"), text("first", "2"))
		w.until("first@2 dir")
	})
}

// TestWatchWithinASecond holds the promise with the options of production.
func TestWatchWithinASecond(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := catalog.New([]catalog.Source{newDir(dir)}, catalog.Options{Parse: parse})
	changes := make(chan catalog.Change, 10)
	c.OnChange(func(change catalog.Change) { changes <- change })
	check(t, c.Open(context.Background()))
	t.Cleanup(c.Close)
	start := time.Now()
	write(t, filepath.Join(dir, "a.json"), text("a", "1"))
	select {
	case <-changes:
		t.Logf("noticed after %s", time.Since(start).Round(time.Millisecond))
	case <-time.After(deadline):
		t.Fatal("not noticed")
	}
}
