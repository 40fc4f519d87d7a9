package catalog_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway/internal/catalog"
)

// newDir returns a source of a directory with the default options.
func newDir(path string) *catalog.Dir {
	return catalog.NewDir(catalog.SourceInfo{Name: "dir", Location: path}, catalog.DirOptions{})
}

func TestDirDocuments(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, id := range map[string]string{
		"b.json": "b", "a.YAML": "a", "c.yml": "c", "loops/batch.json": "batch", "1/2/3/deep.json": "deep",
	} {
		writeFile(t, filepath.Join(dir, name), definitionText(id, "1"))
	}
	for _, name := range []string{
		"README.md", "a.json~", "#a.json#", ".a.json.swp", ".#a.json", "a.json.tmp", "4913", ".git/x.json", "testdata/x.json",
		"node_modules/p/x.json", "1/2/3/4/too-deep.json",
	} {
		writeFile(t, filepath.Join(dir, name), "{")
	}
	c := loadAll(t, catalog.Options{}, newDir(dir))
	want := []string{"a@1 dir", "b@1 dir", "batch@1 dir", "c@1 dir", "deep@1 dir"}
	if diff := cmp.Diff(want, servedList(c.Snapshot())); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"limit-depth 4"}, codeList(c.Diagnostics())); diff != "" {
		t.Error(diff)
	}
	entry, err := c.Get("batch")
	checkError(t, err)
	if want := filepath.Join(dir, "loops", "batch.json"); entry.Path != want || entry.Definition.File != want {
		t.Errorf("path is %q, want %q", entry.Path, want)
	}
}

func TestDirMissing(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "absent")
	required := newDir(dir)
	optional := catalog.NewDir(catalog.SourceInfo{Name: "user", Location: dir, Optional: true}, catalog.DirOptions{})
	c := loadAll(t, catalog.Options{}, required, optional)
	if diff := cmp.Diff([]string{"source-missing absent"}, codeList(c.Diagnostics())); diff != "" {
		t.Error(diff)
	}
	for _, s := range c.Sources() {
		if s.State != catalog.SourceMissing {
			t.Errorf("%+v", s)
		}
	}
	writeFile(t, dir, "a file")
	checkError(t, c.Load(context.Background()))
	if diff := cmp.Diff([]string{"source-unreadable absent", "source-unreadable absent"}, codeList(c.Diagnostics())); diff != "" {
		t.Error(diff)
	}
}

// Empty, large and binary files are reported, and a valid file is still served.
func TestDirHostileFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "good.json"), definitionText("good", "1"))
	writeFile(t, filepath.Join(dir, "empty.json"), "")
	writeFile(t, filepath.Join(dir, "large.json"), strings.Repeat(" ", 2<<20))
	writeFile(t, filepath.Join(dir, "binary.yaml"), "\x00\xff\xfe")
	// This catalog uses the real parser.
	c := catalog.New([]catalog.Source{newDir(dir)}, catalog.Options{})
	checkError(t, c.Load(context.Background()))
	files := map[string]bool{}
	for _, d := range c.Diagnostics() {
		files[filepath.Base(d.File)] = true
		if d.Message == "" || d.Code == "" {
			t.Errorf("%+v", d)
		}
	}
	if !files["empty.json"] || !files["large.json"] || !files["binary.yaml"] {
		t.Errorf("the diagnostics are about %v", files)
	}
	c = loadAll(t, catalog.Options{}, newDir(dir))
	if diff := cmp.Diff([]string{"good@1 dir"}, servedList(c.Snapshot())); diff != "" {
		t.Error(diff)
	}
}

func TestDirUnreadable(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("permissions do not apply to the superuser")
	}
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "good.json"), definitionText("good", "1"))
	writeFile(t, filepath.Join(dir, "secret.json"), definitionText("secret", "1"))
	writeFile(t, filepath.Join(dir, "locked", "x.json"), definitionText("x", "1"))
	checkError(t, os.Chmod(filepath.Join(dir, "secret.json"), 0))
	checkError(t, os.Chmod(filepath.Join(dir, "locked"), 0))
	// The entries of this directory can be listed, but not accessed.
	writeFile(t, filepath.Join(dir, "listed", "below", "x.json"), definitionText("x", "1"))
	checkError(t, os.Chmod(filepath.Join(dir, "listed"), 0o400))
	t.Cleanup(func() {
		_ = os.Chmod(filepath.Join(dir, "locked"), 0o700)
		_ = os.Chmod(filepath.Join(dir, "listed"), 0o700)
	})
	c := loadAll(t, catalog.Options{}, newDir(dir))
	if diff := cmp.Diff([]string{"good@1 dir"}, servedList(c.Snapshot())); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"dir-unreadable listed", "dir-unreadable locked", "file-unreadable secret.json"}, codeList(c.Diagnostics())); diff != "" {
		t.Error(diff)
	}
	checkError(t, os.Chmod(filepath.Join(dir, "secret.json"), 0o600))
	checkError(t, c.Load(context.Background()))
	if _, err := c.Get("secret"); err != nil {
		t.Error(err)
	}
}

func TestDirManyFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i := range 5_000 {
		writeFile(t, filepath.Join(dir, fmt.Sprintf("%04d.json", i)), definitionText(fmt.Sprintf("w%04d", i), "1"))
	}
	c := loadAll(t, catalog.Options{}, newDir(dir))
	entries := c.List(catalog.Filter{})
	if len(entries) != 1_000 || entries[999].ID != "w0999" {
		t.Errorf("%d entries", len(entries))
	}
	if diff := cmp.Diff([]string{"limit-files " + filepath.Base(dir)}, codeList(c.Diagnostics())); diff != "" {
		t.Error(diff)
	}
}

func TestDirTooManyEntries(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("makes 21,000 files")
	}
	dir := t.TempDir()
	for i := range 21_000 {
		file, err := os.Create(filepath.Join(dir, fmt.Sprintf("%05d.txt", i)))
		checkError(t, err)
		file.Close()
	}
	c := loadAll(t, catalog.Options{}, newDir(dir))
	if diff := cmp.Diff([]string{"limit-entries " + filepath.Base(dir)}, codeList(c.Diagnostics())); diff != "" {
		t.Error(diff)
	}
}

func TestDirLinks(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the system does not allow symbolic links")
	}
	dir, outside := t.TempDir(), t.TempDir()
	writeFile(t, filepath.Join(outside, "secret.json"), definitionText("secret", "1"))
	writeFile(t, filepath.Join(outside, "README"), "hello")
	writeFile(t, filepath.Join(dir, "store", "real.json"), definitionText("real", "1"))
	link := func(target, name string) { checkError(t, os.Symlink(target, filepath.Join(dir, name))) }
	link(filepath.Join(outside, "secret.json"), "absolute.json")
	link("../"+filepath.Base(outside)+"/secret.json", "relative.json")
	link(outside, "elsewhere")
	link(filepath.Join(outside, "README"), "README")
	link("loop.json", "loop.json")
	link(".", "self")
	link("nowhere.json", "dangling.json")
	link("nowhere", "dangling")
	link("store/real.json", "zz-alias.json")
	link("/dev/zero", "zero.json")
	c := loadAll(t, catalog.Options{}, newDir(dir))
	if diff := cmp.Diff([]string{"real@1 dir"}, servedList(c.Snapshot())); diff != "" {
		t.Error(diff)
	}
	want := []string{
		"file-link absolute.json", "file-link dangling.json", "file-link elsewhere", "file-link loop.json",
		"file-link relative.json", "file-link self", "file-link zero.json", "id-duplicate zz-alias.json",
	}
	if diff := cmp.Diff(want, codeList(c.Diagnostics())); diff != "" {
		t.Error(diff)
	}

	// A directory that is given as a link is read.
	through := filepath.Join(t.TempDir(), "through")
	checkError(t, os.Symlink(filepath.Join(dir, "store"), through))
	c = loadAll(t, catalog.Options{}, newDir(through))
	if diff := cmp.Diff([]string{"real@1 dir"}, servedList(c.Snapshot())); diff != "" {
		t.Error(diff)
	}
}
