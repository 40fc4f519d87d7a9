package catalog_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/catalog/library"
)

// phasesText returns a phase workflow with a reference to a guide.
func phasesText(id, version, guide string) string {
	if guide == "" {
		guide = "https://example.com/guide.md"
	}
	return fmt.Sprintf(`{"id":%q,"version":%q,"title":"T","initialPhase":"p1","phases":[{"id":"p1","name":"P1","guide":{"path":%q}}]}`, id, version, guide)
}

func skillText(id, capability string) string {
	return fmt.Sprintf(`{"id":%q,"version":"1.0.0","capability":%q}`, id, capability)
}

// openDir loads a directory with the real parsers.
func openDir(t *testing.T, dir string) *catalog.Catalog {
	t.Helper()
	c := catalog.New([]catalog.Source{newDir(dir)}, catalog.Options{})
	checkError(t, c.Load(t.Context()))
	return c
}

// libraryList lists all documents of a library as "kind workflow/id".
func libraryList(l *library.Library) []string {
	var list []string
	add := func(entries []*library.Entry) {
		for _, e := range entries {
			list = append(list, fmt.Sprintf("%s %s/%s", e.Kind, e.Workflow, e.ID))
		}
	}
	add(l.Activities())
	add(l.Skills(""))
	if l.Rules() != nil {
		add([]*library.Entry{l.Rules()})
	}
	for _, owner := range l.Owners() {
		add(l.Skills(owner))
		add(l.Texts(library.KindGuide, owner))
		add(l.Texts(library.KindTemplate, owner))
	}
	return list
}

func TestLayout(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"single.json":             phasesText("single", "1.0.0", ""),
		"wp/wp.yaml":              "id: wp\nversion: 1.0.0\ntitle: T\ninitialPhase: p1\nphases: [{id: p1, name: P1}]\n",
		"meta/meta.json":          phasesText("meta", "1.0.0", ""),
		"meta/rules.yaml":         "id: rules\nsections: []\n",
		"meta/skills/00-one.json": skillText("one", "C"),
		"meta/activities/01-go.json": `{"id":"go","version":"1.0.0","problem":"P","recognition":["go"],"skills":{"primary":"one"},` +
			`"outcome":["o"],"flow":["f"]}`,
		"wp/skills/01-one.yaml":     "id: one\nversion: 1.0.0\ncapability: own\n",
		"wp/guides/00-start.md":     "# Start",
		"wp/guides/01-old.toon":     `text: """ not decoded`,
		"wp/templates/01-plan.md":   "# Plan",
		"wp/guides/README.md":       "about",
		"wp/guides/.01-hidden.md":   "no",
		"steps/small.json":          `{"id":"small","name":"Small","description":"D","version":"1.0.0","steps":[{"id":"one","title":"A","prompt":"Do."}]}`,
		"wp/testdata/01-fixture.md": "no",
	} {
		writeFile(t, filepath.Join(dir, name), text)
	}
	c := openDir(t, dir)
	var served []string
	for _, e := range c.List(catalog.Filter{}) {
		served = append(served, e.ID+" "+string(e.Dialect))
	}
	if diff := cmp.Diff([]string{"meta phases", "single phases", "small steps", "wp phases"}, served); diff != "" {
		t.Error(diff)
	}
	want := []string{
		"activity /go", "skill /one", "rules /rules", "skill wp/one", "guide wp/00-start", "guide wp/01-old", "template wp/01-plan",
	}
	if diff := cmp.Diff(want, libraryList(c.Snapshot().Library())); diff != "" {
		t.Error(diff)
	}
	if found := c.Diagnostics(); len(found) != 0 {
		t.Errorf("%v", found)
	}

	// An embedded source has the same layout.
	embedded := catalog.New([]catalog.Source{catalog.NewEmbedded(catalog.SourceInfo{Name: "bundled"}, os.DirFS(dir))}, catalog.Options{})
	checkError(t, embedded.Load(t.Context()))
	if diff := cmp.Diff(want, libraryList(embedded.Snapshot().Library())); diff != "" {
		t.Error(diff)
	}
}

// Everything that the original server dropped silently is a diagnostic with its reason, and
// affects no other document.
func TestOmittedDocumentsAreReported(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"wp.json":                          phasesText("wp", "2.0.0", ""), // A root file takes precedence over one in the folder.
		"wp/wp.json":                       phasesText("wp", "1.0.0", ""),
		"wp/guides/01-a.md":                "a",
		"wp/guides/01-b.md":                "b",
		"wp/guides/unnumbered.md":          "no index",
		"wp/guides/02-binary.md":           "\xff\x00",
		"renamed/renamed.json":             phasesText("other-id", "1.0.0", ""),
		"renamed/guides/01-x.md":           "x",
		"broken/broken.json":               `{"id":"broken","version":"1.0.0","title":"T","initialPhase":"p2","phases":[{"id":"p1","name":"P1"}]}`,
		"old.toon":                         "id: old",
		"old/skills/01-review.toon":        "id: review",
		"meta/skills/00-good.json":         skillText("good", "C"),
		"meta/skills/01-cut.json":          `{"id":"cut","version":`,
		"meta/skills/02-renamed.json":      skillText("another", "C"),
		"meta/activities/01-halfway.json":  `{"id":"halfway","version":"1.0.0"}`,
		"meta/activities/02-misplaced.yml": skillText("misplaced", "C"),
		"nobody/templates/01-a.md":         "nobody's",
	} {
		writeFile(t, filepath.Join(dir, name), text)
	}
	c := openDir(t, dir)
	got := codeList(c.Diagnostics())
	for _, want := range []string{
		"id-duplicate wp.json", "index-duplicate 01-b.md", "file-index unnumbered.md", "text-encoding 02-binary.md",
		"file-id-differs renamed.json", "phase-unknown broken.json", "format-toon old.toon", "format-toon 01-review.toon",
		"json-syntax 01-cut.json", "file-id-differs 02-renamed.json", "field-missing 01-halfway.json",
		"field-missing 02-misplaced.yml", "folder-without-workflow 01-a.md",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("no diagnostic %s in %q", want, got)
		}
	}
	for _, d := range c.Diagnostics() {
		if d.Message == "" || d.Fix == "" || d.File == "" {
			t.Errorf("%+v", d)
		}
		if d.Code == "format-toon" && !strings.Contains(d.Fix, "@toon-format/cli") {
			t.Errorf("%q does not name the conversion", d.Fix)
		}
	}
	want := []string{"skill /another", "skill /good", "template nobody/01-a", "guide other-id/01-x", "guide wp/01-a"}
	shelf := libraryList(c.Snapshot().Library())
	slices.Sort(shelf)
	slices.Sort(want)
	if diff := cmp.Diff(want, shelf); diff != "" {
		t.Error(diff)
	}
	wp, err := c.Get("wp")
	checkError(t, err)
	if wp.Definition.Version != "2.0.0" {
		t.Errorf("wp has the version %s: a root file takes precedence over one in a folder", wp.Definition.Version)
	}
	if _, err := c.Get("broken"); guideway.ErrorCode(err) != guideway.CodeInvalidDefinition || !strings.Contains(err.Error(), "p2") {
		t.Errorf("the reason is missing in %v", err)
	}
	if _, err := c.Get("cut"); guideway.ErrorCode(err) != guideway.CodeNotFound {
		t.Errorf("a skill is listed as a workflow: %v", err)
	}
	if why := c.Snapshot().Library().Why(library.KindSkill, "", "cut"); why == nil || why.Code != "json-syntax" {
		t.Errorf("%+v", why)
	}
}

// A broken link, or a link out of the directory, affects no other document.
func TestLinksInALayout(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the system does not allow symbolic links")
	}
	dir, outside := t.TempDir(), t.TempDir()
	writeFile(t, filepath.Join(dir, "wp", "wp.json"), phasesText("wp", "1.0.0", ""))
	writeFile(t, filepath.Join(dir, "wp", "guides", "01-a.md"), "a")
	writeFile(t, filepath.Join(outside, "secret.md"), "secret")
	checkError(t, os.Symlink("nowhere", filepath.Join(dir, "dangling")))
	checkError(t, os.Symlink("nowhere.json", filepath.Join(dir, "dangling.json")))
	checkError(t, os.Symlink("nowhere.md", filepath.Join(dir, "wp", "guides", "02-dangling.md")))
	checkError(t, os.Symlink(filepath.Join(outside, "secret.md"), filepath.Join(dir, "wp", "guides", "03-secret.md")))
	c := openDir(t, dir)
	if diff := cmp.Diff([]string{"guide wp/01-a"}, libraryList(c.Snapshot().Library())); diff != "" {
		t.Error(diff)
	}
	want := []string{"file-link 02-dangling.md", "file-link 03-secret.md", "file-link dangling.json"}
	if diff := cmp.Diff(want, codeList(c.Diagnostics())); diff != "" {
		t.Error(diff)
	}
}

// A library is read again when its files change, and the last valid version of a broken text
// stays served.
func TestLibraryReloads(t *testing.T) {
	t.Parallel()
	low := newFake("low", 1, map[string]string{"wp/wp.json": phasesText("wp", "1.0.0", ""), "wp/guides/01-a.md": "low"})
	high := newFake("high", 2, map[string]string{"wp/guides/01-a.md": "high", "meta/skills/01-s.json": skillText("s", "one")})
	c := catalog.New([]catalog.Source{low, high}, catalog.Options{})
	var changes []catalog.Change
	c.OnChange(func(change catalog.Change) { changes = append(changes, change) })
	guide := func() string {
		checkError(t, c.Load(context.Background()))
		if e := c.Snapshot().Library().Text(library.KindGuide, "wp", "1"); e != nil {
			return e.Text + " of " + e.Source
		}
		return ""
	}
	steps := []struct{ text, want string }{
		{"high", "high of high"}, {"better", "better of high"}, {"\xff", "better of high"}, {"", "low of low"},
	}
	for _, step := range steps {
		high.setFile("wp/guides/01-a.md", step.text)
		if got := guide(); got != step.want {
			t.Errorf("after %q: %q, want %q", step.text, got, step.want)
		}
	}
	before := len(changes)
	if guide(); len(changes) != before {
		t.Error("a change was reported although nothing changed")
	}
	if !changes[1].Library || changes[1].Diagnostics || len(changes[1].Changed) != 0 {
		t.Errorf("the change of a guide is reported as %+v", changes[1])
	}
	if !changes[2].Diagnostics || changes[2].Library {
		t.Errorf("the broken guide is reported as %+v", changes[2])
	}

	high.setFile("meta/skills/01-s.json", `{"id":"s"`)
	checkError(t, c.Load(context.Background()))
	if s := c.Snapshot().Library().Skill("", "s"); s == nil || s.Skill.Capability != "one" {
		t.Errorf("%+v", s)
	}
	if found := codeList(c.Diagnostics()); !slices.Contains(found, "file-stale 01-s.json") || !slices.Contains(found, "json-syntax 01-s.json") {
		t.Errorf("%q", found)
	}
}

// The linter finds a guide in the workflow's folder and reports a missing one.
func TestLintFindsGuides(t *testing.T) {
	t.Parallel()
	source := newFake("s", 1, map[string]string{"wp/wp.json": phasesText("wp", "1.0.0", "01-plan.md"), "wp/guides/01-plan.md": "plan"})
	c := catalog.New([]catalog.Source{source}, catalog.Options{})
	lint := func() int {
		checkError(t, c.Load(context.Background()))
		found, err := c.Snapshot().Lint(context.Background())
		checkError(t, err)
		n := 0
		for _, d := range found {
			if strings.Contains(d.Message, "01-plan.md") {
				n++
			}
		}
		return n
	}
	if n := lint(); n != 0 {
		t.Errorf("%d diagnostics about an existing guide", n)
	}
	source.setFile("wp/guides/01-plan.md", "")
	source.setFile("wp/guides/02-other.md", "other")
	if n := lint(); n != 1 {
		t.Errorf("%d diagnostics about a missing guide", n)
	}
}

// An embedded guide that is not valid UTF-8 is reported.
func TestEmbeddedTexts(t *testing.T) {
	t.Parallel()
	c := catalog.New([]catalog.Source{catalog.NewEmbedded(catalog.SourceInfo{Name: "bundled"}, fstest.MapFS{
		"wp/guides/01-a.md": {Data: []byte("\xff")}, "wp/notes.md": {Data: []byte("no")},
	})}, catalog.Options{})
	checkError(t, c.Load(t.Context()))
	if diff := cmp.Diff([]string{"text-encoding bundled:wp/guides/01-a.md"}, codesOf(c.Diagnostics())); diff != "" {
		t.Error(diff)
	}
}

func codesOf(found []guideway.Diagnostic) []string {
	var list []string
	for _, d := range found {
		list = append(list, d.Code+" "+d.File)
	}
	return list
}

// The complete directory of the original server is read.
func TestCorpusLayout(t *testing.T) {
	t.Parallel()
	const corpus = "../../../shared/corpus/phases"
	if _, err := os.Stat(corpus); err != nil {
		t.Skip("the directory shared/corpus is missing")
	}
	c := openDir(t, corpus)
	var served []string
	for _, e := range c.List(catalog.Filter{Dialect: guideway.DialectPhases}) {
		served = append(served, e.ID)
	}
	if diff := cmp.Diff([]string{"meta", "work-package"}, served); diff != "" {
		t.Error(diff)
	}
	lib := c.Snapshot().Library()
	got := []int{len(lib.Activities()), len(lib.Skills("")), len(lib.Texts(library.KindGuide, "work-package")), len(lib.Texts(library.KindTemplate, "work-package"))}
	if diff := cmp.Diff([]int{3, 3, 20, 12}, got); diff != "" || lib.Rules() == nil {
		t.Error(diff)
	}
	// Only one skill lost text in the conversion, which is reported.
	if diff := cmp.Diff([]string{"text-lost 02-state-management.json"}, codeList(c.Diagnostics())); diff != "" {
		t.Error(diff)
	}
}
