package crashtest

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/store/checkpoints"
	"github.com/guideway-dev/guideway/internal/testutil/crash"
)

// filled is a place with checkpoints and their expected state.
type filled struct {
	// dir is a directory with a copy of all files of the place.
	dir    string
	known  map[string]text
	lasts  map[string]text
	pieces map[string]text
}

// fillPlace creates a place with some sessions. If killed is set, it kills the worker, so
// that a database has a write-ahead log.
func fillPlace(t *testing.T, p place, killed bool) *filled {
	t.Helper()
	f := &filled{dir: t.TempDir(), known: map[string]text{}, lasts: map[string]text{}, pieces: map[string]text{}}
	w := startWorker(t, p).MustOpen()
	for n := range 14 {
		for _, session := range []string{"alpha", "beta", "gamma"} {
			x := text{Session: session, N: n, Size: 1500}
			f.known[w.MustDo(order{Do: opSave, Text: x}).Checkpoint] = x
			f.lasts[session] = x
		}
	}
	x := text{Session: "alpha", N: 999, Size: 300}
	f.pieces[w.MustDo(order{Do: opKeep, Session: "alpha", Text: x}).Checkpoint] = x
	w.MustDo(order{Do: opMaintain})
	if killed {
		copyFiles(t, p.Dir, f.dir)
		w.Kill()
		return f
	}
	w.Shutdown()
	copyFiles(t, p.Dir, f.dir)
	return f
}

// copyFiles copies all files, accessible to the user only.
func copyFiles(t *testing.T, from, to string) {
	t.Helper()
	err := os.CopyFS(to, os.DirFS(from))
	if err == nil {
		err = filepath.WalkDir(to, func(name string, e os.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			return os.Chmod(name, 0o600)
		})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// filePurpose returns the purpose of a file, or "" if damage to it is not tested.
func filePurpose(name string) string {
	slashed := filepath.ToSlash(name)
	switch {
	case strings.Contains(slashed, "/contexts/blobs/"):
		return "blob"
	case strings.HasSuffix(slashed, "/contexts/slots/master"):
		return "master slot"
	case strings.Contains(slashed, "/contexts/slots/"):
		return "wrapped key"
	case strings.HasSuffix(slashed, "/keys/key"):
		return "key file"
	case strings.HasSuffix(slashed, ".db"):
		return "database"
	case strings.HasSuffix(slashed, ".db-wal"):
		return "write-ahead log"
	case strings.HasSuffix(slashed, ".db-shm"):
		return "shared memory"
	case strings.HasSuffix(slashed, "/reserve"):
		return "reserve"
	}
	return ""
}

// isRebuildable reports whether files with that purpose can be rebuilt from the blobs.
func isRebuildable(sort string) bool {
	return slices.Contains([]string{"database", "write-ahead log", "shared memory", "reserve"}, sort)
}

// bySort returns the non-empty files of a directory by purpose.
func bySort(t *testing.T, dir string) map[string][]string {
	t.Helper()
	files := map[string][]string{}
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		if info, err := e.Info(); err == nil && info.Size() > 0 && filePurpose(name) != "" {
			files[filePurpose(name)] = append(files[filePurpose(name)], name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestNoise checks random damage to one file of each kind in turn: a load returns the right
// context, an older one marked as degraded, or an error. A rebuilt index contains all
// checkpoints that the blobs contain, and no key is ever replaced.
func TestNoise(t *testing.T) {
	crash.SkipIfShort(t)
	t.Parallel()
	for _, c := range []struct {
		name   string
		place  place
		killed bool
	}{
		{"sqlite", place{}, false},
		{"sqlite, killed, encrypted", place{Sealed: true}, true},
		{"files, encrypted", place{Store: checkpoints.StoreFiles, Sealed: true}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			whole := c.place
			whole.Dir = t.TempDir()
			f := fillPlace(t, whole, c.killed)
			kinds := slices.Sorted(func(yield func(string) bool) {
				for name := range bySort(t, f.dir) {
					if !yield(name) {
						return
					}
				}
			})
			for _, seed := range crash.Seeds(t) {
				for i := range crash.Amount(t, "GUIDEWAY_CRASH_DAMAGES", 12, 6) {
					what := kinds[i%len(kinds)]
					t.Run(fmt.Sprintf("seed %d/%d %s", seed, i, what), func(t *testing.T) {
						t.Parallel()
						random := rand.New(rand.NewPCG(seed, uint64(i)))
						p := c.place
						p.Dir = crash.Dir(t)
						copyFiles(t, f.dir, p.Dir)
						files := bySort(t, p.Dir)[what]
						slices.Sort(files)
						name := files[random.IntN(len(files))]
						t.Logf("%s: %s", name, damageFile(t, name, random))
						f.checkDamaged(t, p, what)
					})
				}
			}
		})
	}
}

// damageFile damages a file and returns a description.
func damageFile(t *testing.T, name string, random *rand.Rand) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	at := random.IntN(len(text))
	how := ""
	switch random.IntN(6) {
	case 0:
		text, how = text[:at], fmt.Sprintf("cut off at %d of %d", at, len(text))
	case 1:
		n := min(1+random.IntN(64), len(text)-at)
		for i := at; i < at+n; i++ {
			text[i] = byte(random.Uint32())
		}
		how = fmt.Sprintf("%d bytes of noise at %d", n, at)
	case 2:
		at = at / 4096 * 4096
		clear(text[at:min(at+4096, len(text))])
		how = fmt.Sprintf("zeros from %d on", at)
	default:
		text[at] ^= 1 << random.IntN(8)
		how = fmt.Sprintf("a bit at %d of %d flipped", at, len(text))
	}
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return how
}

// checkDamaged opens a damaged place and loads every checkpoint.
func (f *filled) checkDamaged(t *testing.T, p place, what string) {
	t.Helper()
	key, keyErr := os.ReadFile(p.keyFile())
	w := startWorker(t, p)
	r, err := w.Opened()
	if err != nil {
		t.Fatalf("the worker did not survive: %v\n%s", err, w.Stderr())
	}
	if !r.OK() {
		if r.Fix == "" || isRebuildable(what) {
			t.Errorf("opening returned %s %s (fix %q)", r.Code, r.Message, r.Fix)
		}
	} else {
		f.loadAll(t, w, false)
		if isRebuildable(what) {
			w.MustDo(order{Do: opRebuild})
			f.loadAll(t, w, true)
		}
		x := text{Session: "delta", N: 1, Size: 400}
		if r := w.MustDo(order{Do: opSave, Text: x}); w.MustDo(order{Do: opLoad, Checkpoint: r.Checkpoint}).Sum != x.contextSum() {
			t.Error("a new save has a different context")
		}
	}
	w.Shutdown()
	if after, err := os.ReadFile(p.keyFile()); !bytes.Equal(after, key) || errors.Is(err, fs.ErrNotExist) != errors.Is(keyErr, fs.ErrNotExist) {
		t.Error("the key file was replaced")
	}
}

// loadAll loads every context. If all is set, none may be missing.
func (f *filled) loadAll(t *testing.T, w *worker, all bool) {
	t.Helper()
	ask := func(o order, want text, about string) {
		t.Helper()
		r, err := w.Do(o)
		switch {
		case err != nil:
			t.Fatalf("the worker did not survive %s: %v", about, err)
		case !r.OK() && all:
			t.Errorf("%s is missing: %s %s", about, r.Code, r.Message)
		case !r.OK() && (r.Code == "" || r.Message == ""):
			t.Errorf("%s: the error has no message", about)
		case !r.OK():
		case !r.Degraded && r.Sum == want.contextSum():
		case !all && r.Degraded && f.known[r.Checkpoint].contextSum() == r.Sum && f.known[r.Checkpoint].N < want.N && f.known[r.Checkpoint].Session == want.Session:
		default:
			t.Errorf("%s is %+v, save %d", about, r, f.known[r.Checkpoint].N)
		}
	}
	for session, x := range f.lasts {
		ask(order{Do: opLoad, Session: session}, x, "the last checkpoint of "+session)
	}
	for id, x := range f.known {
		ask(order{Do: opLoad, Checkpoint: id}, x, fmt.Sprintf("save %d of %s, %s", x.N, x.Session, id))
	}
	for ref, x := range f.pieces {
		ask(order{Do: opRecall, Checkpoint: ref}, x, "the fragment "+ref)
	}
}

// TestGone checks missing files. Without the database or the index everything can be loaded.
// Without a key access is refused, and no key is created.
func TestGone(t *testing.T) {
	crash.SkipIfShort(t)
	t.Parallel()
	for _, c := range []struct {
		what   string
		place  place
		opens  bool
		remove func(p place) []string
	}{
		{"the database", place{Sealed: true}, true, func(p place) []string {
			files, _ := filepath.Glob(filepath.Join(p.dataDir(), "guideway.db*"))
			return files
		}},
		{"the database, not its log", place{}, true, func(p place) []string { return []string{filepath.Join(p.dataDir(), "guideway.db")} }},
		{"the index", place{Store: checkpoints.StoreFiles}, true, func(p place) []string { return []string{filepath.Join(p.dataDir(), "contexts", "index")} }},
		{"the key file", place{Sealed: true}, false, func(p place) []string { return []string{p.keyFile()} }},
		{"the master slot", place{Sealed: true}, false, func(p place) []string { return []string{filepath.Join(p.dataDir(), "contexts", "slots", "master")} }},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			p := c.place
			p.Dir = t.TempDir()
			f := fillPlace(t, p, c.what == "the database, not its log")
			for _, name := range c.remove(p) {
				if err := os.RemoveAll(name); err != nil {
					t.Fatal(err)
				}
			}
			w := startWorker(t, p)
			r, err := w.Opened()
			if err != nil || r.OK() != c.opens {
				t.Fatalf("opening returned %+v, %v", r, err)
			}
			if c.opens {
				f.loadAll(t, w, true)
			} else {
				wantRefused(t, r)
				for _, name := range c.remove(p) {
					if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
						t.Errorf("%s was created", name)
					}
				}
			}
			w.Shutdown()
		})
	}
}

// TestAnotherKey checks that with a wrong key the store cannot be opened and the key file
// does not change, and that with the right key all checkpoints can be loaded.
func TestAnotherKey(t *testing.T) {
	crash.SkipIfShort(t)
	t.Parallel()
	for _, store := range []string{"", checkpoints.StoreFiles} {
		p := place{Dir: t.TempDir(), Store: store, Sealed: true}
		f := fillPlace(t, p, false)
		right, err := os.ReadFile(p.keyFile())
		if err != nil {
			t.Fatal(err)
		}
		another := []byte("gdwmaster1_" + strings.Repeat("0f", 32) + "\n")
		if err := os.WriteFile(p.keyFile(), another, 0o600); err != nil {
			t.Fatal(err)
		}
		w := startWorker(t, p)
		r, err := w.Opened()
		if err != nil || r.OK() {
			t.Fatalf("the store was opened with a wrong key: %+v, %v", r, err)
		}
		wantRefused(t, r)
		w.Shutdown()
		if now, err := os.ReadFile(p.keyFile()); err != nil || !bytes.Equal(now, another) {
			t.Errorf("the key file was changed: %v", err)
		}
		if err := os.WriteFile(p.keyFile(), right, 0o600); err != nil {
			t.Fatal(err)
		}
		w = startWorker(t, p).MustOpen()
		f.loadAll(t, w, true)
		w.Shutdown()
	}
}

// TestOtherMachine checks that another machine with the same database and key loads
// encrypted checkpoints, and that with the database alone it loads none.
func TestOtherMachine(t *testing.T) {
	crash.SkipIfShort(t)
	t.Parallel()
	here := place{Dir: t.TempDir(), Store: crash.EmptyPostgres(t), Sealed: true}
	f := fillPlace(t, here, true)
	there := place{Dir: t.TempDir(), Store: here.Store, Sealed: true}
	w := startWorker(t, there)
	r, err := w.Opened()
	if err != nil || r.OK() {
		t.Fatalf("the store was opened without the key: %+v, %v", r, err)
	}
	wantRefused(t, r)
	w.Shutdown()
	copyFiles(t, filepath.Dir(here.keyFile()), filepath.Dir(there.keyFile()))
	w = startWorker(t, there).MustOpen()
	f.loadAll(t, w, true)
	w.Shutdown()
	if left, err := filepath.Glob(filepath.Join(there.dataDir(), "*")); err != nil || len(left) > 0 {
		t.Errorf("the other machine lists %v, %v", left, err)
	}
}

func wantRefused(t *testing.T, r reply) {
	t.Helper()
	if r.Code != guideway.CodeUnavailable || r.Fix == "" {
		t.Errorf("the load returned %s %s (fix %q)", r.Code, r.Message, r.Fix)
	}
}

// TestClocks checks processes whose clocks differ by years. If they save to one session,
// sweep and store deltas, the checkpoints are in the order of the saves, and nothing is
// lost.
func TestClocks(t *testing.T) {
	crash.SkipIfShort(t)
	t.Parallel()
	const day = 24 * 60 * 60
	for _, store := range []string{"", checkpoints.StoreFiles} {
		p := place{Dir: t.TempDir(), Store: store}
		var ids []string
		var last int64
		for n, ahead := range []int64{0, 25 * day, -400 * day, 0, -10_000 * day, 20 * day, -1} {
			p.Ahead = ahead
			w := startWorker(t, p).MustOpen()
			for i := range 3 {
				r := w.MustDo(order{Do: opSave, Text: text{Session: "work", N: 3*n + i, Size: 1000}})
				if r.Number != int64(len(ids)+1) || r.Created <= last {
					t.Errorf("save %d has the number %d and the time %d after %d", len(ids)+1, r.Number, r.Created, last)
				}
				ids, last = append(ids, r.Checkpoint), r.Created
			}
			w.MustDo(order{Do: opMaintain})
			w.Shutdown()
		}
		p.Ahead = 0
		w := startWorker(t, p).MustOpen()
		list := w.MustDo(order{Do: opList, Session: "work"}).List
		for i, id := range slices.Backward(ids) {
			want := text{Session: "work", N: i, Size: 1000}
			if r := w.MustDo(order{Do: opLoad, Checkpoint: id}); r.Sum != want.contextSum() || list[len(ids)-1-i].Checkpoint != id {
				t.Errorf("save %d is %+v", i, r)
			}
		}
		if r := w.MustDo(order{Do: opLoad, Session: "work"}); r.Checkpoint != ids[len(ids)-1] {
			t.Errorf("the last checkpoint has the number %d", r.Number)
		}
		w.Shutdown()
	}
}
