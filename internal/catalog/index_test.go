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

// countingParser is a parser that counts what it reads.
type countingParser struct{ atomic.Int64 }

func (c *countingParser) parseCounted(file string, data []byte) (*workflow.Definition, []guideway.Diagnostic) {
	c.Add(1)
	return parseTest(file, data)
}

// startCatalog loads a catalog with an index and returns it with the parser that counts the
// workflows that were read.
func startCatalog(t testing.TB, index string, sources ...catalog.Source) (*catalog.Catalog, *countingParser) {
	t.Helper()
	reader := &countingParser{}
	return loadAll(t, catalog.Options{Parse: reader.parseCounted, Index: index, Program: "1.0"}, sources...), reader
}

func newTwoFiles() *fakeSource {
	return newFake("user", 1, map[string]string{"a.json": definitionText("a", "1"), "b.json": definitionText("b", "1")})
}

// onlyIndex returns the path of the only index in a directory.
func onlyIndex(t testing.TB, dir string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.index"))
	checkError(t, err)
	if len(names) != 1 {
		t.Fatalf("indexes: %v", names)
	}
	return names[0]
}

// With an index a second start reads no workflow, has the same list, and reads a workflow
// when it is opened.
func TestIndexAvoidsReads(t *testing.T) {
	t.Parallel()
	index := filepath.Join(t.TempDir(), "made", "index")
	for _, f := range []*fakeSource{newTwoFiles(), func() *fakeSource { f := newTwoFiles(); f.sums = true; return f }()} {
		first, _ := startCatalog(t, index, f)
		want := servedList(first.Snapshot())
		opens := f.opens
		c, reader := startCatalog(t, index, f)
		if n := reader.Load(); n != 0 {
			t.Errorf("%d workflows were read at the start", n)
		}
		if f.sums && f.opens != opens {
			t.Errorf("%d files with known hashes were opened", f.opens-opens)
		}
		if diff := cmp.Diff(want, servedList(c.Snapshot())); diff != "" {
			t.Error(diff)
		}
		for range 2 {
			got, err := c.Get("b")
			checkError(t, err)
			before, err := first.Get("b")
			checkError(t, err)
			if diff := cmp.Diff(before.Definition, got.Definition); diff != "" {
				t.Error(diff)
			}
		}
		if n := reader.Load(); n != 1 {
			t.Errorf("opening one workflow read %d", n)
		}
	}
}

// Damaged indexes and those of other programs or sources are ignored without a diagnostic,
// and written again.
func TestInvalidIndexIsIgnored(t *testing.T) {
	t.Parallel()
	replaced := func(data string) func(testing.TB, string) {
		return func(t testing.TB, path string) { checkError(t, os.WriteFile(path, []byte(data), 0o600)) }
	}
	for name, spoil := range map[string]func(t testing.TB, path string){
		"empty":   replaced(""),
		"noise":   replaced(strings.Repeat("\x00\xff\n", 1000)),
		"no list": func(t testing.TB, path string) { rewriteIndex(t, path, func(string) string { return "7" }) },
		"torn": func(t testing.TB, path string) {
			data, err := os.ReadFile(path)
			checkError(t, err)
			checkError(t, os.WriteFile(path, data[:len(data)-10], 0o600))
		},
		"one byte": func(t testing.TB, path string) {
			data, err := os.ReadFile(path)
			checkError(t, err)
			checkError(t, os.WriteFile(path, []byte(strings.Replace(string(data), `"id":"b"`, `"id":"c"`, 1)), 0o600))
		},
		"older form": func(t testing.TB, path string) { rewriteIndex(t, path, replaceOnce(`"form":1`, `"form":0`)) },
		"another program": func(t testing.TB, path string) {
			rewriteIndex(t, path, replaceOnce(`"program":"1.0"`, `"program":"0.9"`))
		},
		"another source": func(t testing.TB, path string) {
			rewriteIndex(t, path, replaceOnce(`"source":"user:/user"`, `"source":"team"`))
		},
		"no hash": func(t testing.TB, path string) { rewriteIndex(t, path, replaceOnce(`"sum":"`, `"sum":"zz`)) },
		"no id":   func(t testing.TB, path string) { rewriteIndex(t, path, replaceOnce(`"id":"a"`, `"id":""`)) },
		"a directory": func(t testing.TB, path string) {
			checkError(t, os.Remove(path))
			checkError(t, os.Mkdir(path, 0o700))
		},
		"huge": func(t testing.TB, path string) { checkError(t, os.Truncate(path, 1<<30)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			index := t.TempDir()
			first, _ := startCatalog(t, index, newTwoFiles())
			spoil(t, onlyIndex(t, index))
			c, reader := startCatalog(t, index, newTwoFiles())
			if n := reader.Load(); n != 2 {
				t.Errorf("%d workflows were read", n)
			}
			if diff := cmp.Diff(servedList(first.Snapshot()), servedList(c.Snapshot())); diff != "" {
				t.Error(diff)
			}
			if found := c.Diagnostics(); len(found) > 0 {
				t.Errorf("%v", found)
			}
			if name == "a directory" {
				return // A directory at the path of an index is not replaced.
			}
			if _, again := startCatalog(t, index, newTwoFiles()); again.Load() != 0 {
				t.Error("the index was not written again")
			}
		})
	}
}

func replaceOnce(before, after string) func(string) string {
	return func(text string) string { return strings.Replace(text, before, after, 1) }
}

// rewriteIndex changes an index and its hash.
func rewriteIndex(t testing.TB, path string, change func(string) string) {
	t.Helper()
	data, err := os.ReadFile(path)
	checkError(t, err)
	_, body, _ := strings.Cut(string(data), "\n")
	changed := change(body)
	if changed == body {
		t.Fatalf("%s was not changed", body)
	}
	sum := sha256.Sum256([]byte(changed))
	checkError(t, os.WriteFile(path, []byte(hex.EncodeToString(sum[:])+"\n"+changed), 0o600))
}

// If an index is wrong, the catalog returns the definition in the file or an error, and
// corrects the index.
func TestIndexIsNotTrusted(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		lie   func(string) string
		ask   string
		code  guideway.Code // code is the expected error.
		lists string        // lists is the expected list after the error.
	}{
		"another id":      {replaceOnce(`"id":"b"`, `"id":"c"`), "c", guideway.CodeNotFound, "b@1 user"},
		"another hash":    {replaceOnce(`"hash":"b@1"`, `"hash":"b@0"`), "b", "", "b@1 user"},
		"another version": {replaceOnce(`"version":"1","dialect":"steps","hash":"b@1"`, `"version":"2","dialect":"steps","hash":"b@1"`), "b", "", "b@1 user"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			index := t.TempDir()
			startCatalog(t, index, newTwoFiles())
			rewriteIndex(t, onlyIndex(t, index), tt.lie)
			c, _ := startCatalog(t, index, newTwoFiles())
			if got, err := c.Snapshot().Get(tt.ask); guideway.ErrorCode(err) != guideway.CodeUnavailable {
				t.Errorf("the wrong index entry is served: %+v, %v", got, err)
			}
			got, err := c.Get(tt.ask)
			if guideway.ErrorCode(err) != tt.code {
				t.Errorf("error is %v", err)
			}
			if tt.code == "" && got.Definition.Hash != "b@1" {
				t.Errorf("%+v is served", got.Definition)
			}
			if diff := cmp.Diff([]string{"a@1 user", tt.lists}, servedList(c.Snapshot())); diff != "" {
				t.Error(diff)
			}
			if _, again := startCatalog(t, index, newTwoFiles()); again.Load() != 0 {
				t.Error("the index was not written again")
			}
		})
	}
}

// If an index lists a broken text as valid, as another program might write it, the error is
// still reported.
func TestIndexHidesNoError(t *testing.T) {
	t.Parallel()
	const broken = `{"id": "b", "version": `
	index, sum := t.TempDir(), sha256.Sum256([]byte(broken))
	startCatalog(t, index, newTwoFiles())
	good := sha256.Sum256([]byte(definitionText("b", "1")))
	rewriteIndex(t, onlyIndex(t, index), replaceOnce(hex.EncodeToString(good[:]), hex.EncodeToString(sum[:])))
	f := newTwoFiles()
	f.setFile("b.json", broken)
	c, _ := startCatalog(t, index, f)
	if _, err := c.Get("b"); guideway.ErrorCode(err) != guideway.CodeInvalidDefinition {
		t.Errorf("error is %v", err)
	}
	if diff := cmp.Diff([]string{"test-broken b.json"}, codeList(c.Diagnostics())); diff != "" {
		t.Error(diff)
	}
}

// A running catalog automatically reads its sources again when its index is wrong.
func TestWrongIndexTriggersReload(t *testing.T) {
	t.Parallel()
	index := t.TempDir()
	startCatalog(t, index, newTwoFiles())
	rewriteIndex(t, onlyIndex(t, index), replaceOnce(`"id":"b"`, `"id":"c"`))
	c := catalog.New([]catalog.Source{newTwoFiles()}, catalog.Options{Parse: parseTest, Index: index, Program: "1.0", TTL: time.Hour})
	changes := make(chan catalog.Change, 10)
	c.OnChange(func(change catalog.Change) { changes <- change })
	checkError(t, c.Open(context.Background()))
	defer c.Close()
	<-changes // Drop the change of the first load.
	if _, err := c.Snapshot().Get("c"); guideway.ErrorCode(err) != guideway.CodeUnavailable || guideway.ErrorFix(err) == "" {
		t.Errorf("error is %v", err)
	}
	select {
	case change := <-changes:
		if diff := cmp.Diff([]string{"b"}, change.Added); diff != "" {
			t.Error(diff)
		}
	case <-time.After(deadline):
		t.Error("the sources were not read again")
	}
}

// The last good version of a workflow that was not read yet stays served when its text
// breaks.
func TestLastGoodVersionFromIndex(t *testing.T) {
	t.Parallel()
	for _, sums := range []bool{false, true} {
		index, f := t.TempDir(), newTwoFiles()
		f.sums, f.stamp = sums, true
		startCatalog(t, index, f)
		c, reader := startCatalog(t, index, f)
		f.setFile("b.json", `{"id": "b", "version": `)
		checkError(t, c.Load(context.Background()))
		if diff := cmp.Diff([]string{"a@1 user", "b@1 user*"}, servedList(c.Snapshot())); diff != "" {
			t.Error(diff)
		}
		if got, err := c.Get("b"); err != nil || got.Definition.Version != "1" {
			t.Errorf("%+v, %v", got, err)
		}
		if reader.Load() == 0 {
			t.Error("the workflow was not read")
		}
	}
}

// A file whose text does not match its hash is refused and reported.
func TestContentMismatch(t *testing.T) {
	t.Parallel()
	index, f := t.TempDir(), newTwoFiles()
	f.sums = true
	startCatalog(t, index, f)
	c, _ := startCatalog(t, index, f)
	f.forgeFile("b.json", definitionText("b", "evil"))
	if got, err := c.Get("b"); guideway.ErrorCode(err) != guideway.CodeInvalidDefinition || guideway.ErrorFix(err) != "guideway sources sync" {
		t.Errorf("%+v, %v", got, err)
	}
	cold, _ := startCatalog(t, "", f)
	for _, c := range []*catalog.Catalog{c, cold} {
		if diff := cmp.Diff([]string{"a@1 user"}, servedList(c.Snapshot())); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"file-changed b.json"}, codeList(c.Diagnostics())); diff != "" {
			t.Error(diff)
		}
	}
}

// A file whose text does not match its hash is refused under its id in the index, even if
// the file has another name.
func TestForgedCopyKeepsItsID(t *testing.T) {
	t.Parallel()
	index := t.TempDir()
	f := newFake("user", 1, map[string]string{"0001.json": definitionText("first", "1"), "a.json": definitionText("a", "1")})
	f.sums = true
	startCatalog(t, index, f)
	c, _ := startCatalog(t, index, f)
	f.forgeFile("0001.json", definitionText("first", "evil"))
	for range 2 {
		if got, err := c.Get("first"); guideway.ErrorCode(err) != guideway.CodeInvalidDefinition || guideway.ErrorFix(err) != "guideway sources sync" {
			t.Errorf("%+v, %v", got, err)
		}
	}
	checkError(t, c.Load(context.Background()))
	if _, err := c.Get("first"); guideway.ErrorCode(err) != guideway.CodeInvalidDefinition || guideway.ErrorFix(err) != "guideway sources sync" {
		t.Errorf("after a reload the error is %v", err)
	}
}

// Random edits and restarts have the same results with and without an index.
func TestIndexDoesNotChangeResults(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		index, err := os.MkdirTemp(t.TempDir(), "index")
		checkError(t, err)
		var fakes []*fakeSource
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
			c, _ := startCatalog(t, index, sources...)
			return c
		}
		for range rapid.IntRange(1, 4).Draw(rt, "starts") {
			for range rapid.IntRange(0, 6).Draw(rt, "edits") {
				id := rapid.SampledFrom([]string{"x", "y", "z"}).Draw(rt, "id")
				rapid.SampledFrom(fakes).Draw(rt, "source").setFile(
					rapid.SampledFrom([]string{"a.json", "b.json", "c.json"}).Draw(rt, "file"),
					rapid.SampledFrom([]string{"", definitionText(id, "1"), definitionText(id, "2"), `{"id":"` + id + `",`, "!"}).Draw(rt, "text"))
			}
			warm, cold := start(index), start("")
			if diff := cmp.Diff(servedList(cold.Snapshot()), servedList(warm.Snapshot())); diff != "" {
				rt.Fatalf("served: %s", diff)
			}
			if diff := cmp.Diff(cold.Diagnostics(), warm.Diagnostics()); diff != "" {
				rt.Fatalf("diagnostics: %s", diff)
			}
			for _, e := range cold.List(catalog.Filter{}) {
				want, err := e.Open()
				checkError(t, err)
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

// Old indexes, such as those of removed projects, are removed. Other files stay.
func TestOldIndexesAreRemoved(t *testing.T) {
	t.Parallel()
	index := t.TempDir()
	old := filepath.Join(index, "gone.index")
	other := filepath.Join(index, "notes.txt")
	writeFile(t, old, "x")
	writeFile(t, other, "x")
	long := time.Now().Add(-100 * 24 * time.Hour)
	checkError(t, os.Chtimes(old, long, long))
	checkError(t, os.Chtimes(other, long, long))
	startCatalog(t, index, newTwoFiles())
	if _, err := os.Stat(old); !os.IsNotExist(err) {
		t.Errorf("the old index still exists: %v", err)
	}
	if _, err := os.Stat(other); err != nil {
		t.Error(err)
	}
	onlyIndex(t, index)
}

// The index of a source that was blocked later is not used.
func TestBlockedSourceIgnoresIndex(t *testing.T) {
	t.Parallel()
	index, f := t.TempDir(), newTwoFiles()
	startCatalog(t, index, f)
	f.info.Level = catalog.LevelBlocked
	c, _ := startCatalog(t, index, f)
	if got := servedList(c.Snapshot()); len(got) > 0 {
		t.Errorf("%v is served", got)
	}
}
