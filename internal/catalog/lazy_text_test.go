package catalog_test

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"testing"
	"unsafe"
	"weak"

	"github.com/google/go-cmp/cmp"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/workflow"
)

// TestPack checks that definitions are served after a call of Pack, and that the last good
// version is served if a text breaks later.
func TestPack(t *testing.T) {
	t.Parallel()
	long := func(id string) string { return definitionText(id, "1") + strings.Repeat(" ", 10_000) }
	for name, sums := range map[string]bool{"texts in memory": false, "texts of a copy": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake("user", 1, map[string]string{"a.json": long("a"), "b.json": long("b"), "short.json": definitionText("short", "1")})
			f.sums, f.stamp = sums, true
			index := t.TempDir()
			for range 2 { // with and without an index
				c, _ := startCatalog(t, index, f)
				want := servedList(c.Snapshot())
				c.Pack()
				c.Pack()
				for _, id := range []string{"a", "short"} {
					if got, err := c.Get(id); err != nil || got.Definition.ID != id {
						t.Errorf("%+v, %v", got, err)
					}
				}
				c.Pack()
				if diff := cmp.Diff(want, servedList(c.Snapshot())); diff != "" {
					t.Error(diff)
				}
			}
			c, _ := startCatalog(t, index, f)
			c.Pack()
			f.setFile("b.json", `{"id": "b", "version": `)
			checkError(t, c.Load(context.Background()))
			if got, err := c.Get("b"); err != nil || got.Definition.Version != "1" {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

// A start without an index reads every workflow and does not keep the definitions in
// memory.
func TestFirstStartReleasesDefinitions(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var definitions []weak.Pointer[workflow.Definition]
	var texts []weak.Pointer[byte]
	observed := func(file string, data []byte) (*workflow.Definition, []guideway.Diagnostic) {
		d, found := parseTest(file, data)
		// All texts of a real definition are parts of its canonical text.
		canonical := strings.Repeat(d.ID, 1000)
		d.ID, d.Name, d.Description, d.Version, d.Hash = canonical[:len(d.ID)], canonical, canonical[1:], canonical[2:9], canonical[3:]
		d.Dialect = guideway.Dialect(canonical[:1])
		mu.Lock()
		defer mu.Unlock()
		definitions = append(definitions, weak.Make(d))
		texts = append(texts, weak.Make(unsafe.StringData(canonical)))
		return d, found
	}
	c := loadAll(t, catalog.Options{Parse: observed, Index: t.TempDir()}, newTwoFiles())
	runtime.GC()
	mu.Lock()
	defer mu.Unlock()
	for i := range definitions {
		if definitions[i].Value() != nil {
			t.Errorf("definition %d is still in memory", i)
		}
		if texts[i].Value() != nil {
			t.Errorf("the text of definition %d is still in memory", i)
		}
	}
	if n := len(c.List(catalog.Filter{})); n != 2 || len(definitions) != 2 {
		t.Errorf("%d workflows are served, and %d were read", n, len(definitions))
	}
	runtime.KeepAlive(c)
}
