package catalog_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/workflow"
	"pgregory.net/rapid"
)

// counted is a parser that counts what it reads.
type counted struct{ atomic.Int64 }

func (c *counted) parse(file string, data []byte) (*workflow.Definition, []guideway.Diagnostic) {
	c.Add(1)
	return parse(file, data)
}

// started is a catalog as a program has it after a start, with how many workflows it
// has read.
func started(t testing.TB, index string, sources ...catalog.Source) (*catalog.Catalog, *counted) {
	t.Helper()
	reader := &counted{}
	return loadAll(t, catalog.Options{Parse: reader.parse, Index: index, Program: "1.0"}, sources...), reader
}

func two() *fake {
	return newFake("user", 1, map[string]string{"a.json": text("a", "1"), "b.json": text("b", "1")})
}

// indexOf is the one index in a directory.
func indexOf(t testing.TB, dir string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.index"))
	check(t, err)
	if len(names) != 1 {
		t.Fatalf("indexes: %v", names)
	}
	return names[0]
}

// TestIndexSpares is what an index is for: a second start reads no workflow, lists
// the same, and reads the one that is asked for.
func TestIndexSpares(t *testing.T) {
	t.Parallel()
	index := filepath.Join(t.TempDir(), "made", "index")
	for _, f := range []*fake{two(), func() *fake { f := two(); f.sums = true; return f }()} {
		first, _ := started(t, index, f)
		want := served(first.Snapshot())
		opens := f.opens
		c, reader := started(t, index, f)
		if n := reader.Load(); n != 0 {
			t.Errorf("%d workflows were read at the start", n)
		}
		if f.sums && f.opens != opens {
			t.Errorf("%d files were opened whose hashes are known", f.opens-opens)
		}
		if diff := cmp.Diff(want, served(c.Snapshot())); diff != "" {
			t.Error(diff)
		}
		for range 2 {
			got, err := c.Get("b")
			check(t, err)
			before, err := first.Get("b")
			check(t, err)
			if diff := cmp.Diff(before.Definition, got.Definition); diff != "" {
				t.Error(diff)
			}
		}
		if n := reader.Load(); n != 1 {
			t.Errorf("%d workflows were read for one", n)
		}
	}
}

// TestIndexNeedNotFit has indexes that are broken or of something else: they count for
// nothing, nobody is told, and they are made anew.
func TestIndexNeedNotFit(t *testing.T) {
	t.Parallel()
	replaced := func(data string) func(testing.TB, string) {
		return func(t testing.TB, path string) { check(t, os.WriteFile(path, []byte(data), 0o600)) }
	}
	for name, spoil := range map[string]func(t testing.TB, path string){
		"empty":   replaced(""),
		"noise":   replaced(strings.Repeat("\x00\xff\n", 1000)),
		"no list": func(t testing.TB, path string) { reindex(t, path, func(string) string { return "7" }) },
		"torn": func(t testing.TB, path string) {
			data, err := os.ReadFile(path)
			check(t, err)
			check(t, os.WriteFile(path, data[:len(data)-10], 0o600))
		},
		"one byte": func(t testing.TB, path string) {
			data, err := os.ReadFile(path)
			check(t, err)
			check(t, os.WriteFile(path, []byte(strings.Replace(string(data), `"id":"b"`, `"id":"c"`, 1)), 0o600))
		},
		"older form":      func(t testing.TB, path string) { reindex(t, path, swap(`"form":1`, `"form":0`)) },
		"another program": func(t testing.TB, path string) { reindex(t, path, swap(`"program":"1.0"`, `"program":"0.9"`)) },
		"another source":  func(t testing.TB, path string) { reindex(t, path, swap(`"source":"user:/user"`, `"source":"team"`)) },
		"no hash":         func(t testing.TB, path string) { reindex(t, path, swap(`"sum":"`, `"sum":"zz`)) },
		"no id":           func(t testing.TB, path string) { reindex(t, path, swap(`"id":"a"`, `"id":""`)) },
		"a directory": func(t testing.TB, path string) {
			check(t, os.Remove(path))
			check(t, os.Mkdir(path, 0o700))
		},
		"huge": func(t testing.TB, path string) { check(t, os.Truncate(path, 1<<30)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			index := t.TempDir()
			first, _ := started(t, index, two())
			spoil(t, indexOf(t, index))
			c, reader := started(t, index, two())
			if n := reader.Load(); n != 2 {
				t.Errorf("%d workflows were read", n)
			}
			if diff := cmp.Diff(served(first.Snapshot()), served(c.Snapshot())); diff != "" {
				t.Error(diff)
			}
			if found := c.Diagnostics(); len(found) > 0 {
				t.Errorf("%v", found)
			}
			if name == "a directory" {
				return // which is nothing of ours
			}
			if _, again := started(t, index, two()); again.Load() != 0 {
				t.Error("the index was not made anew")
			}
		})
	}
}

func swap(before, after string) func(string) string {
	return func(text string) string { return strings.Replace(text, before, after, 1) }
}

// reindex changes an index as somebody does who knows how it is made.
func reindex(t testing.TB, path string, change func(string) string) {
	t.Helper()
	data, err := os.ReadFile(path)
	check(t, err)
	_, body, _ := strings.Cut(string(data), "\n")
	changed := change(body)
	if changed == body {
		t.Fatalf("nothing was changed in %s", body)
	}
	sum := sha256.Sum256([]byte(changed))
	check(t, os.WriteFile(path, []byte(hex.EncodeToString(sum[:])+"\n"+changed), 0o600))
}

// TestIndexIsNoAuthority has indexes that lie: what is given is what the text says, or
// nothing.
func TestIndexIsNoAuthority(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		lie   func(string) string
		ask   string
		code  guideway.Code // of the answer
		lists string        // afterwards
	}{
		"another id":      {swap(`"id":"b"`, `"id":"c"`), "c", guideway.CodeNotFound, "b@1 user"},
		"another hash":    {swap(`"hash":"b@1"`, `"hash":"b@0"`), "b", "", "b@1 user"},
		"another version": {swap(`"version":"1","dialect":"steps","hash":"b@1"`, `"version":"2","dialect":"steps","hash":"b@1"`), "b", "", "b@1 user"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			index := t.TempDir()
			started(t, index, two())
			reindex(t, indexOf(t, index), tt.lie)
			c, _ := started(t, index, two())
			if got, err := c.Snapshot().Get(tt.ask); guideway.ErrorCode(err) != guideway.CodeUnavailable {
				t.Errorf("the lie is served: %+v, %v", got, err)
			}
			got, err := c.Get(tt.ask)
			if guideway.ErrorCode(err) != tt.code {
				t.Errorf("error is %v", err)
			}
			if tt.code == "" && got.Definition.Hash != "b@1" {
				t.Errorf("%+v is served", got.Definition)
			}
			if diff := cmp.Diff([]string{"a@1 user", tt.lists}, served(c.Snapshot())); diff != "" {
				t.Error(diff)
			}
			if _, again := started(t, index, two()); again.Load() != 0 {
				t.Error("the index was not made anew")
			}
		})
	}
}

// TestIndexHidesNothing has an index that says of a text that does not load that it
// does, as one could that another program made.
func TestIndexHidesNothing(t *testing.T) {
	t.Parallel()
	const broken = `{"id": "b", "version": `
	index, sum := t.TempDir(), sha256.Sum256([]byte(broken))
	started(t, index, two())
	good := sha256.Sum256([]byte(text("b", "1")))
	reindex(t, indexOf(t, index), swap(hex.EncodeToString(good[:]), hex.EncodeToString(sum[:])))
	f := two()
	f.set("b.json", broken)
	c, _ := started(t, index, f)
	if _, err := c.Get("b"); guideway.ErrorCode(err) != guideway.CodeInvalidDefinition {
		t.Errorf("error is %v", err)
	}
	if diff := cmp.Diff([]string{"test-broken b.json"}, codes(c.Diagnostics())); diff != "" {
		t.Error(diff)
	}
}

// TestDoubtIsFollowed is about a catalog that serves: it reads its sources anew by
// itself when an index turns out to be wrong.
func TestDoubtIsFollowed(t *testing.T) {
	t.Parallel()
	index := t.TempDir()
	started(t, index, two())
	reindex(t, indexOf(t, index), swap(`"id":"b"`, `"id":"c"`))
	c := catalog.New([]catalog.Source{two()}, catalog.Options{Parse: parse, Index: index, Program: "1.0", TTL: time.Hour})
	changes := make(chan catalog.Change, 10)
	c.OnChange(func(change catalog.Change) { changes <- change })
	check(t, c.Open(context.Background()))
	defer c.Close()
	<-changes // the load
	if _, err := c.Snapshot().Get("c"); guideway.ErrorCode(err) != guideway.CodeUnavailable || guideway.ErrorFix(err) == "" {
		t.Errorf("error is %v", err)
	}
	select {
	case change := <-changes:
		if diff := cmp.Diff([]string{"b"}, change.Added); diff != "" {
			t.Error(diff)
		}
	case <-time.After(deadline):
		t.Error("nothing was read anew")
	}
}

// TestLastGoodVersionOfAnIndex is about workflows that nobody has read in this program
// when their text breaks: the last good version goes on serving all the same.
func TestLastGoodVersionOfAnIndex(t *testing.T) {
	t.Parallel()
	for _, sums := range []bool{false, true} {
		index, f := t.TempDir(), two()
		f.sums, f.stamp = sums, true
		started(t, index, f)
		c, reader := started(t, index, f)
		f.set("b.json", `{"id": "b", "version": `)
		check(t, c.Load(context.Background()))
		if diff := cmp.Diff([]string{"a@1 user", "b@1 user*"}, served(c.Snapshot())); diff != "" {
			t.Error(diff)
		}
		if got, err := c.Get("b"); err != nil || got.Definition.Version != "1" {
			t.Errorf("%+v, %v", got, err)
		}
		if reader.Load() == 0 {
			t.Error("nothing was read")
		}
	}
}

// TestContentThatIsNotWhatItMustBe is about a copy that somebody has changed.
func TestContentThatIsNotWhatItMustBe(t *testing.T) {
	t.Parallel()
	index, f := t.TempDir(), two()
	f.sums = true
	started(t, index, f)
	c, _ := started(t, index, f)
	f.forge("b.json", text("b", "evil"))
	if got, err := c.Get("b"); guideway.ErrorCode(err) != guideway.CodeInvalidDefinition || guideway.ErrorFix(err) != "guideway sources sync" {
		t.Errorf("%+v, %v", got, err)
	}
	cold, _ := started(t, "", f)
	for _, c := range []*catalog.Catalog{c, cold} {
		if diff := cmp.Diff([]string{"a@1 user"}, served(c.Snapshot())); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"file-changed b.json"}, codes(c.Diagnostics())); diff != "" {
			t.Error(diff)
		}
	}
}

// TestForgedCopyHasItsID: a copy that somebody has changed is told under the id that it
// should have, whatever its file is called.
func TestForgedCopyHasItsID(t *testing.T) {
	t.Parallel()
	index := t.TempDir()
	f := newFake("user", 1, map[string]string{"0001.json": text("first", "1"), "a.json": text("a", "1")})
	f.sums = true
	started(t, index, f)
	c, _ := started(t, index, f)
	f.forge("0001.json", text("first", "evil"))
	for range 2 {
		if got, err := c.Get("first"); guideway.ErrorCode(err) != guideway.CodeInvalidDefinition || guideway.ErrorFix(err) != "guideway sources sync" {
			t.Errorf("%+v, %v", got, err)
		}
	}
	check(t, c.Load(context.Background()))
	if _, err := c.Get("first"); guideway.ErrorCode(err) != guideway.CodeInvalidDefinition || guideway.ErrorFix(err) != "guideway sources sync" {
		t.Errorf("after another look: %v", err)
	}
}

// TestIndexMakesNoDifference edits sources at random and starts again and again: with
// an index a start finds what one without finds.
func TestIndexMakesNoDifference(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		index, err := os.MkdirTemp(t.TempDir(), "index")
		check(t, err)
		var fakes []*fake
		for i := range 3 {
			f := newFake(fmt.Sprintf("s%d", i), rapid.IntRange(0, 2).Draw(rt, "rank"), map[string]string{})
			f.sums, f.stamp = rapid.Bool().Draw(rt, "sums"), rapid.Bool().Draw(rt, "stamp")
			fakes = append(fakes, f)
		}
		start := func(index string) *catalog.Catalog {
			var sources []catalog.Source
			for _, f := range fakes {
				sources = append(sources, f)
			}
			c, _ := started(t, index, sources...)
			return c
		}
		for range rapid.IntRange(1, 4).Draw(rt, "starts") {
			for range rapid.IntRange(0, 6).Draw(rt, "edits") {
				id := rapid.SampledFrom([]string{"x", "y", "z"}).Draw(rt, "id")
				rapid.SampledFrom(fakes).Draw(rt, "source").set(
					rapid.SampledFrom([]string{"a.json", "b.json", "c.json"}).Draw(rt, "file"),
					rapid.SampledFrom([]string{"", text(id, "1"), text(id, "2"), `{"id":"` + id + `",`, "!"}).Draw(rt, "text"))
			}
			warm, cold := start(index), start("")
			if diff := cmp.Diff(served(cold.Snapshot()), served(warm.Snapshot())); diff != "" {
				rt.Fatalf("served: %s", diff)
			}
			if diff := cmp.Diff(cold.Diagnostics(), warm.Diagnostics()); diff != "" {
				rt.Fatalf("diagnostics: %s", diff)
			}
			for _, e := range cold.List(catalog.Filter{}) {
				want, err := e.Open()
				check(t, err)
				got, err := warm.Get(e.ID)
				if err != nil {
					rt.Fatal(err)
				}
				if diff := cmp.Diff(want.Definition, got.Definition); diff != "" {
					rt.Fatal(diff)
				}
				if diff := cmp.Diff(want.Overrides, got.Overrides); diff != "" {
					rt.Fatal(diff)
				}
			}
		}
	})
}

// TestOldIndexesGo is about indexes of projects that are gone.
func TestOldIndexesGo(t *testing.T) {
	t.Parallel()
	index := t.TempDir()
	old := filepath.Join(index, "gone.index")
	other := filepath.Join(index, "notes.txt")
	write(t, old, "x")
	write(t, other, "x")
	long := time.Now().Add(-100 * 24 * time.Hour)
	check(t, os.Chtimes(old, long, long))
	check(t, os.Chtimes(other, long, long))
	started(t, index, two())
	if _, err := os.Stat(old); !os.IsNotExist(err) {
		t.Errorf("the old index is there: %v", err)
	}
	if _, err := os.Stat(other); err != nil {
		t.Error(err)
	}
	indexOf(t, index)
}

// TestBlockedInSpiteOfAnIndex: what is known of a source from before it was blocked is
// not served.
func TestBlockedInSpiteOfAnIndex(t *testing.T) {
	t.Parallel()
	index, f := t.TempDir(), two()
	started(t, index, f)
	f.info.Level = catalog.LevelBlocked
	c, _ := started(t, index, f)
	if got := served(c.Snapshot()); len(got) > 0 {
		t.Errorf("%v is served", got)
	}
}
