package checkpoint_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/blob"
	"github.com/guideway-dev/guideway/internal/contexts/blob/seal"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/store/sqlite"
)

// indexModes returns the kinds of index to test.
func indexModes() []checkpoint.Mode {
	return []checkpoint.Mode{checkpoint.ModeSQLite, checkpoint.ModeFiles, checkpoint.ModeMemory}
}

// rig is a service on a directory, with a settable clock.
type rig struct {
	*checkpoint.Service
	dir   string
	mode  checkpoint.Mode
	index checkpoint.Index
	blobs blob.Store
	clock *clock
}

// clock is a settable time.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// testPrincipal returns the principal of most tests.
func testPrincipal() guideway.Principal { return guideway.Principal{User: "ada", Client: "suite"} }

// openRig opens a service on a new directory; change may set options.
func openRig(t testing.TB, mode checkpoint.Mode, change ...func(*checkpoint.Options)) *rig {
	t.Helper()
	return reopenRig(t, &rig{dir: t.TempDir(), mode: mode, clock: &clock{now: time.Now()}}, change...)
}

// reopenRig opens the directory of a rig again, like another process. In-memory stores are
// shared.
func reopenRig(t testing.TB, old *rig, change ...func(*checkpoint.Options)) *rig {
	t.Helper()
	r := &rig{dir: old.dir, mode: old.mode, index: old.index, blobs: old.blobs, clock: old.clock}
	switch {
	case r.mode == checkpoint.ModeMemory && r.index != nil:
	case r.mode == checkpoint.ModeMemory:
		x, err := sqlite.Open(t.Context(), sqlite.Options{Memory: true})
		mustSucceed(t, err)
		t.Cleanup(func() { _ = x.Close() })
		r.index, r.blobs = x, blob.NewMemory(0)
	default:
		blobs, err := blob.OpenFiles(blob.FilesOptions{Dir: filepath.Join(r.dir, "contexts")})
		mustSucceed(t, err)
		r.blobs = blobs
		r.index = openIndex(t, r.mode, r.dir)
	}
	o := checkpoint.Options{Index: r.index, Blobs: r.blobs, Store: checkpoint.Store{Mode: r.mode}, Now: r.clock.Now, Settle: -1}
	for _, f := range change {
		f(&o)
	}
	var err error
	r.Service, err = checkpoint.New(o)
	mustSucceed(t, err)
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return r
}

func openIndex(t testing.TB, mode checkpoint.Mode, dir string) checkpoint.Index {
	t.Helper()
	path := filepath.Join(dir, "guideway.db")
	if mode == checkpoint.ModeFiles {
		path = filepath.Join(dir, "contexts", "index", "checkpoints.db")
	}
	s, err := sqlite.Open(t.Context(), sqlite.Options{Path: path})
	mustSucceed(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// withEncryption turns on encryption with a key file in the directory.
func withEncryption(t testing.TB, dir string) func(*checkpoint.Options) {
	t.Helper()
	return func(o *checkpoint.Options) {
		keys, err := seal.Open(t.Context(), o.Blobs, seal.File{Path: filepath.Join(dir, "key")})
		mustSucceed(t, err)
		o.Keys = keys
	}
}

func mustSucceed(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%v (%s)", err, guideway.ErrorCode(err))
	}
}

func wantCode(t testing.TB, err error, code guideway.Code, what string) {
	t.Helper()
	if got := guideway.ErrorCode(err); got != code {
		t.Fatalf("%s: got the code %q (%v), want %q", what, got, err, code)
	}
}

// mustSave saves a context.
func (r *rig) mustSave(t testing.TB, session, context string, change ...func(*checkpoint.SaveRequest)) *checkpoint.Saved {
	t.Helper()
	request := checkpoint.SaveRequest{Session: session, Context: json.RawMessage(context), Workflow: "coding-task"}
	for _, f := range change {
		f(&request)
	}
	saved, err := r.Save(t.Context(), testPrincipal(), request)
	mustSucceed(t, err)
	return saved
}

// mustLoad loads a checkpoint by its id.
func (r *rig) mustLoad(t testing.TB, id string) *checkpoint.Loaded {
	t.Helper()
	loaded, err := r.Load(t.Context(), testPrincipal(), checkpoint.LoadRequest{ID: id})
	mustSucceed(t, err)
	return loaded
}

// wantContext fails the test if a checkpoint does not have the context.
func (r *rig) wantContext(t testing.TB, id, context string) {
	t.Helper()
	loaded := r.mustLoad(t, id)
	if loaded.ID != id || string(loaded.Context) != context || loaded.Degraded != nil {
		t.Fatalf("the checkpoint %s has %.200s (degraded: %v), want %.200s", id, loaded.Context, loaded.Degraded, context)
	}
}

// bulkyContext returns a large context that changes a little with n.
func bulkyContext(n int) string {
	var b strings.Builder
	fmt.Fprintf(&b, `{"goal":"mend the gate","log":[`)
	for i := n; i < n+60; i++ {
		if i > n {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"line %d: %x of the build went through without a word"`, i, i*i*7919)
	}
	fmt.Fprintf(&b, `],"step":%d}`, n)
	return b.String()
}

// blobFiles returns the files of the blobs, after the work of earlier saves.
func (r *rig) blobFiles(t testing.TB) []string {
	t.Helper()
	r.FinishFolds()
	var files []string
	err := filepath.WalkDir(filepath.Join(r.dir, "contexts", "blobs"), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			files = append(files, path)
		}
		return err
	})
	mustSucceed(t, err)
	return files
}

// onEveryStore runs a test with every kind of store.
func onEveryStore(t *testing.T, test func(t *testing.T, mode checkpoint.Mode)) {
	t.Helper()
	for _, mode := range indexModes() {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			test(t, mode)
		})
	}
}

// walkFiles visits all entries below a directory.
func walkFiles(dir string, visit func(path string, info fs.FileInfo)) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			visit(path, info)
		}
		return err
	})
}
