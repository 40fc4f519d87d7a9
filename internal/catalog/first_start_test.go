package catalog_test

import (
	"runtime"
	"strings"
	"sync"
	"testing"
	"unsafe"
	"weak"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/workflow"
)

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
