package catalog_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/catalog"
)

// manyWorkflows writes workflows of ten steps, about 8 kB each.
func manyWorkflows(b *testing.B, count int) string {
	dir := b.TempDir()
	for i := range count {
		var steps []string
		for j := range 10 {
			steps = append(steps, fmt.Sprintf(`{"id": "step-%d", "title": "Step %d", "prompt": %q,
				"runCondition": {"and": [{"var": "size", "equals": "Large"}, {"var": "n", "gt": %d}]}}`,
				j, j, strings.Repeat("Do this and show the evidence. ", 20), j))
		}
		writeFile(b, filepath.Join(dir, fmt.Sprintf("w%d.json", i)), fmt.Sprintf(
			`{"id": "workflow-%d", "name": "N", "description": "D", "version": "1.0.0", "steps": [%s]}`, i, strings.Join(steps, ",")))
	}
	return dir
}

// BenchmarkLoad50 measures how long the catalog takes at the start with 50 workflows. The
// budget for the start of the whole process is 60 ms.
func BenchmarkLoad50(b *testing.B) {
	dir := manyWorkflows(b, 50)
	b.ReportAllocs()
	for b.Loop() {
		c := catalog.New([]catalog.Source{newDir(dir)}, catalog.Options{})
		checkError(b, c.Load(context.Background()))
		if n := len(c.List(catalog.Filter{})); n != 50 {
			b.Fatalf("%d workflows: %v", n, c.Diagnostics())
		}
	}
}

// BenchmarkReload50 measures a reload of 50 unchanged workflows.
func BenchmarkReload50(b *testing.B) {
	dir := manyWorkflows(b, 50)
	old := mustStat(b, filepath.Join(dir, "w0.json")).ModTime().Add(-3_600_000_000_000)
	for i := range 50 {
		checkError(b, os.Chtimes(filepath.Join(dir, fmt.Sprintf("w%d.json", i)), old, old))
	}
	c := catalog.New([]catalog.Source{newDir(dir)}, catalog.Options{})
	for b.Loop() {
		checkError(b, c.Load(context.Background()))
	}
}

func BenchmarkGet(b *testing.B) {
	c := loadAll(b, catalog.Options{}, newFake("user", 1, map[string]string{"a.json": definitionText("a", "1")}))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Get("a"); err != nil {
			b.Fatal(err)
		}
	}
}

func mustStat(b *testing.B, path string) os.FileInfo {
	info, err := os.Stat(path)
	checkError(b, err)
	return info
}
