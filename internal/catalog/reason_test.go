package catalog_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/catalog/library"
)

// A request for a document that is not served returns the reason, such as a link that is
// not followed, or an encoding that hides the document's id.
func TestReasonsAreReported(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the system does not allow symbolic links")
	}
	dir, outside := t.TempDir(), t.TempDir()
	secret := filepath.Join(outside, "secret")
	writeFile(t, secret, "secret")
	writeFile(t, filepath.Join(dir, "wp", "wp.json"), phasesText("wp", "1.0.0", ""))
	writeFile(t, filepath.Join(dir, "sixteen.json"), "\xff\xfe{\x00\"\x00i\x00d\x00\"\x00:\x00\"\x00w\x00i\x00d\x00e\x00\"\x00}\x00")
	writeFile(t, filepath.Join(dir, "big.yaml"), "\xfe\xff\x00i\x00d\x00:\x00 \x00e\x00n\x00d\x00\n")
	writeFile(t, filepath.Join(dir, "latin.json"), "{\"id\":\"umlaut\",\"title\":\"\xe4\"}")
	link := func(target, name string) {
		checkError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		checkError(t, os.Symlink(target, filepath.Join(dir, name)))
	}
	link("nowhere.json", "dangling.json")
	link(secret, "leak.yaml")
	link(outside, "directory.json")
	link("nowhere.md", "wp/guides/02-dangling.md")
	link(secret, "wp/guides/03-secret.md")
	link(secret, "meta/skills/01-leaked.json")
	link(secret, "meta/activities/01-leaked.json")
	link(secret, "hooks/guard.json")
	s := openDir(t, dir).Snapshot()

	for id, code := range map[string]string{
		"dangling": "the target of the link does not exist", "leak": "the link is not followed", "directory": "not followed",
		"wide": "UTF-16", "sixteen": "UTF-16", "end": "UTF-16", "umlaut": "not valid UTF-8", "latin": "not valid UTF-8",
	} {
		_, err := s.Get(id)
		if guideway.ErrorCode(err) != guideway.CodeInvalidDefinition || !strings.Contains(fmt.Sprint(err), code) || guideway.ErrorFix(err) == "" {
			t.Errorf("the workflow %s returns %v", id, err)
		}
	}
	if _, err := s.Get("nothing"); guideway.ErrorCode(err) != guideway.CodeNotFound {
		t.Errorf("an unknown workflow returns %v", err)
	}
	lib := s.Library()
	for name, why := range map[string]*guideway.Diagnostic{
		"guide 2":  lib.Why(library.KindGuide, "wp", "2"),
		"guide 03": lib.Why(library.KindGuide, "wp", "03"),
		"skill":    lib.Why(library.KindSkill, "", "leaked"),
		"activity": lib.Why(library.KindActivity, "", "leaked"),
	} {
		if why == nil || why.Code != "file-link" {
			t.Errorf("%s: %+v", name, why)
		}
	}
	if e, err := s.Hook("guard"); err != nil || e.Graph != nil || !strings.Contains(e.Problem, "not followed") {
		t.Errorf("the hook graph is %+v, %v", e, err)
	}
	links := slices.DeleteFunc(codeList(s.Diagnostics()), func(d string) bool { return !strings.HasPrefix(d, "file-link") })
	if len(links) != 8 {
		t.Errorf("want one diagnostic for each of 8 links, got %q", links)
	}
}

// If a link that is not followed replaces a file, the last valid version of the file stays
// served until the link is removed.
func TestFileReplacedByLink(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the system does not allow symbolic links")
	}
	dir := t.TempDir()
	name := filepath.Join(dir, "a.json")
	writeFile(t, name, definitionText("a", "1"))
	c := loadAll(t, catalog.Options{}, newDir(dir))
	for _, step := range []struct {
		do   func() error
		want []string
	}{
		{func() error { return os.Symlink("nowhere", name) }, []string{"a@1 dir*"}},
		{func() error { return nil }, []string{}},
	} {
		checkError(t, os.Remove(name))
		checkError(t, step.do())
		checkError(t, c.Load(t.Context()))
		if diff := cmp.Diff(step.want, servedList(c.Snapshot())); diff != "" {
			t.Error(diff)
		}
	}
}

// The fix for a document that is too large depends on its kind.
func TestTooLargeNamesFix(t *testing.T) {
	t.Parallel()
	dir, long := t.TempDir(), strings.Repeat(" ", 200)
	for _, name := range []string{"a.json", "wp/guides/01-a.md", "wp/templates/01-a.md", "meta/skills/01-a.json", "hooks/g.json"} {
		writeFile(t, filepath.Join(dir, name), long)
	}
	c := loadAll(t, catalog.Options{Limits: catalog.Limits{FileBytes: 100}}, newDir(dir))
	var got []string
	for _, d := range c.Diagnostics() {
		rel, err := filepath.Rel(dir, d.File)
		checkError(t, err)
		got = append(got, filepath.ToSlash(rel)+": "+d.Message+"; "+d.Fix)
	}
	size := ": the file has 200 bytes; the limit is 100; "
	want := []string{
		"a.json" + size + "split the document",
		"hooks/g.json" + size + "split the file: scripts can be separate modules",
		"meta/skills/01-a.json" + size + "move long texts of the document to a guide",
		"wp/guides/01-a.md" + size + "split the guide into several, each with its own index",
		"wp/templates/01-a.md" + size + "split the template into several, each with its own index",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
