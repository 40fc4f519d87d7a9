package catalog_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/workflow"
)

func TestPrecedence(t *testing.T) {
	t.Parallel()
	c := loadAll(t, catalog.Options{},
		newFake("project", 30, map[string]string{"x.json": definitionText("shared", "3")}),
		newFake("bundled", 10, map[string]string{"a.json": definitionText("shared", "1"), "b.json": definitionText("only", "1")}),
		newFake("user", 20, map[string]string{"z.json": definitionText("shared", "2")}),
	)
	if diff := cmp.Diff([]string{"only@1 bundled", "shared@3 project"}, servedList(c.Snapshot())); diff != "" {
		t.Error(diff)
	}
	entry, err := c.Get("shared")
	checkError(t, err)
	var overridden []string
	for _, o := range entry.Overrides {
		overridden = append(overridden, o.Hash+" "+o.Path)
	}
	if diff := cmp.Diff([]string{"shared@2 /user/z.json", "shared@1 /bundled/a.json"}, overridden); diff != "" {
		t.Error(diff)
	}
	if found := c.Diagnostics(); len(found) != 0 {
		t.Errorf("an override is reported as an error: %v", found)
	}
	var statuses []string
	for _, s := range c.Sources() {
		statuses = append(statuses, s.Name+" "+string(s.State))
		if s.Documents < s.Served || s.Loaded.IsZero() {
			t.Errorf("%+v", s)
		}
	}
	if diff := cmp.Diff([]string{"bundled ok", "user ok", "project ok"}, statuses); diff != "" {
		t.Error(diff)
	}
}

func TestSameIDTwiceInOneSource(t *testing.T) {
	t.Parallel()
	c := loadAll(t, catalog.Options{}, newFake("user", 1, map[string]string{
		"systemic.json": definitionText("bugs", "2"), "systematic.json": definitionText("bugs", "1"),
	}))
	if diff := cmp.Diff([]string{"bugs@1 user"}, servedList(c.Snapshot())); diff != "" {
		t.Error(diff)
	}
	found := c.Diagnostics()
	if len(found) != 1 || found[0].Code != "id-duplicate" || found[0].File != "/user/systemic.json" ||
		!strings.Contains(found[0].Message, "/user/systematic.json") {
		t.Errorf("%+v", found)
	}
}

func TestBrokenDocumentHidesNothing(t *testing.T) {
	t.Parallel()
	c := loadAll(t, catalog.Options{},
		newFake("bundled", 10, map[string]string{"a.json": definitionText("shared", "1"), "c.json": definitionText("other", "1")}),
		newFake("project", 20, map[string]string{
			"renamed.json": `{"id": "shared", "version": `,
			"other.yaml":   "name: no id here",
			"alone.json":   `{"id": "alone"`,
		}),
	)
	if diff := cmp.Diff([]string{"other@1 bundled", "shared@1 bundled"}, servedList(c.Snapshot())); diff != "" {
		t.Error(diff)
	}
	want := []string{
		"override-broken other.yaml", "override-broken renamed.json",
		"test-broken alone.json", "test-broken other.yaml", "test-broken renamed.json",
	}
	if diff := cmp.Diff(want, codeList(c.Diagnostics())); diff != "" {
		t.Error(diff)
	}
	for _, d := range c.Diagnostics() {
		if d.Code == "override-broken" && !strings.Contains(d.Message, "is served from bundled (/bundled/") {
			t.Errorf("%q does not name the served definition", d.Message)
		}
	}

	_, err := c.Get("alone")
	if guideway.ErrorCode(err) != guideway.CodeInvalidDefinition ||
		!strings.Contains(err.Error(), "'alone' did not load: /project/alone.json:1: broken") || guideway.ErrorFix(err) != "mend it" {
		t.Errorf("error is %v", err)
	}
}

// The id of a broken text is guessed, so that a request for that id returns the parse
// error.
func TestBrokenIsFoundByGuessedID(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, file, text, id string }{
		{"cut off JSON", "f.json", `{"name": "N", "steps": [{"id": "inner"}], "id": "outer", "version": `, "outer"},
		{"id after the break", "f.json", "{\n  \"name\": oops,\n  \"id\": \"later\",\n}", "later"},
		{"YAML", "f.yaml", "name: [\nid: plain # the name\n", "plain"},
		{"quoted YAML", "f.yaml", "steps:\n  - id: inner\nid: 'quoted'\n", "quoted"},
		{"no id", "sub/stem.yml", "name: N", "stem"},
		{"id is not a string", "stem.json", `{"id": 5}`, "stem"},
		{"empty", "stem.json", "", "stem"},
		{"list", "stem.json", "[]", "stem"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := loadAll(t, catalog.Options{
				Parse: func(file string, _ []byte) (*workflow.Definition, []guideway.Diagnostic) {
					return parseTest(file, nil)
				},
			}, newFake("user", 1, map[string]string{tt.file: tt.text}))
			if _, err := c.Get(tt.id); guideway.ErrorCode(err) != guideway.CodeInvalidDefinition {
				t.Errorf("error is %v", err)
			}
		})
	}
}

func TestGetUnknown(t *testing.T) {
	t.Parallel()
	c := loadAll(t, catalog.Options{}, newFake("user", 1, map[string]string{"a.json": definitionText("code-review", "1")}))
	_, err := c.Get("nope")
	if guideway.ErrorCode(err) != guideway.CodeNotFound || err.Error() != "Workflow with id 'nope' not found" || guideway.ErrorFix(err) != "" {
		t.Errorf("error is %v", err)
	}
	for _, id := range []string{"review", "Code_Review", "code-review-2", "cod-review", "code-rview", "cod-review@user"} {
		if _, err := c.Get(id); guideway.ErrorFix(err) != "did you mean code-review?" {
			t.Errorf("fix for %s is %q", id, guideway.ErrorFix(err))
		}
	}
	if len(c.List(catalog.Filter{Dialect: guideway.DialectSteps, Source: "user"})) != 1 ||
		len(c.List(catalog.Filter{Source: "bundled"})) != 0 || len(c.List(catalog.Filter{Dialect: "phases"})) != 0 {
		t.Error("the filter selects the wrong definitions")
	}
}

func TestReload(t *testing.T) {
	t.Parallel()
	f := newFake("user", 1, map[string]string{"a.json": definitionText("a", "1"), "b.json": definitionText("b", "1"), "c.json": definitionText("c", "1")})
	f.stamp = true
	c := loadAll(t, catalog.Options{}, f)
	var changes []catalog.Change
	cancel := c.OnChange(func(change catalog.Change) { changes = append(changes, change) })
	expect := func(step string, change catalog.Change, want ...string) {
		t.Helper()
		changes = nil
		checkError(t, c.Load(context.Background()))
		if diff := cmp.Diff(want, servedList(c.Snapshot())); diff != "" {
			t.Errorf("%s: %s", step, diff)
		}
		got := catalog.Change{}
		if len(changes) > 0 {
			got = changes[0]
			if got.Snapshot != c.Snapshot() {
				t.Errorf("%s: the change has a different snapshot", step)
			}
			got.Snapshot = nil
		}
		if diff := cmp.Diff(change, got); diff != "" || len(changes) > 1 {
			t.Errorf("%s: %s", step, diff)
		}
	}
	expect("nothing", catalog.Change{}, "a@1 user", "b@1 user", "c@1 user")
	if f.opens != 3 {
		t.Errorf("files were read %d times", f.opens)
	}

	f.setFile("a.json", definitionText("a", "2"))
	f.setFile("b.json", "")
	f.setFile("d.json", definitionText("d", "1"))
	expect("edits", catalog.Change{Added: []string{"d"}, Removed: []string{"b"}, Changed: []string{"a"}},
		"a@2 user", "c@1 user", "d@1 user")

	f.setFile("a.json", `{"id":"a"`)
	expect("half saved", catalog.Change{Diagnostics: true}, "a@2 user*", "c@1 user", "d@1 user")
	if diff := cmp.Diff([]string{"file-stale a.json", "test-broken a.json"}, codeList(c.Diagnostics())); diff != "" {
		t.Error(diff)
	}
	expect("still so", catalog.Change{}, "a@2 user*", "c@1 user", "d@1 user")

	f.setFile("a.json", "!")
	expect("unreadable", catalog.Change{Diagnostics: true}, "a@2 user*", "c@1 user", "d@1 user")
	expect("tried again", catalog.Change{}, "a@2 user*", "c@1 user", "d@1 user")

	f.setFile("a.json", definitionText("a", "2"))
	expect("mended", catalog.Change{Diagnostics: true}, "a@2 user", "c@1 user", "d@1 user")

	f.err = errors.New("offline")
	expect("failing source", catalog.Change{Diagnostics: true}, "a@2 user", "c@1 user", "d@1 user")
	if s := c.Sources()[0]; s.State != catalog.SourceFailed || s.Error != "offline" {
		t.Errorf("%+v", s)
	}

	f.err = catalog.ErrMissing
	expect("missing source", catalog.Change{Removed: []string{"a", "c", "d"}, Diagnostics: true}, []string{}...)
	if diff := cmp.Diff([]string{"source-missing user"}, codeList(c.Diagnostics())); diff != "" {
		t.Error(diff)
	}

	cancel()
	f.err = nil
	expect("back, unsubscribed", catalog.Change{}, "a@2 user", "c@1 user", "d@1 user")
}

// A broken override keeps its last good version. After its file was removed, the overridden
// definition is served.
func TestOverrideIsBrokenAndFixed(t *testing.T) {
	t.Parallel()
	low := newFake("bundled", 1, map[string]string{"a.json": definitionText("a", "1")})
	high := newFake("project", 2, map[string]string{"mine.json": definitionText("a", "2")})
	c := loadAll(t, catalog.Options{}, low, high)
	high.setFile("mine.json", `{"id":"a",`)
	checkError(t, c.Load(context.Background()))
	if diff := cmp.Diff([]string{"a@2 project*"}, servedList(c.Snapshot())); diff != "" {
		t.Error(diff)
	}
	high.setFile("mine.json", "")
	checkError(t, c.Load(context.Background()))
	if diff := cmp.Diff([]string{"a@1 bundled"}, servedList(c.Snapshot())); diff != "" {
		t.Error(diff)
	}
}

func TestOneFailingSource(t *testing.T) {
	t.Parallel()
	failing := newFake("git", 2, nil)
	failing.err = errors.New("no network")
	c := loadAll(t, catalog.Options{},
		newFake("bundled", 1, map[string]string{"a.json": definitionText("a", "1")}), failing, panickingSource{},
		newFake("project", 4, map[string]string{"b.json": definitionText("b", "1")}))
	if diff := cmp.Diff([]string{"a@1 bundled", "b@1 project"}, servedList(c.Snapshot())); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"source-unreadable git", "source-unreadable panicking"}, codeList(c.Diagnostics())); diff != "" {
		t.Error(diff)
	}
}

type panickingSource struct{}

func (panickingSource) Info() catalog.SourceInfo {
	return catalog.SourceInfo{Name: "panicking", Location: "/panicking", Rank: 3}
}

func (panickingSource) Documents(context.Context) ([]catalog.Document, []guideway.Diagnostic, error) {
	panic("defect")
}

func TestParserPanic(t *testing.T) {
	t.Parallel()
	c := loadAll(t, catalog.Options{
		Parse: func(file string, data []byte) (*workflow.Definition, []guideway.Diagnostic) {
			if strings.HasSuffix(file, "bad.json") {
				panic("index out of range")
			}
			return parseTest(file, data)
		},
	}, newFake("user", 1, map[string]string{"bad.json": definitionText("bad", "1"), "good.json": definitionText("good", "1")}))
	if diff := cmp.Diff([]string{"good@1 user"}, servedList(c.Snapshot())); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"parser-failed bad.json"}, codeList(c.Diagnostics())); diff != "" {
		t.Error(diff)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	low := newFake("user", 1, map[string]string{"l.json": definitionText("low", "1")})
	high := newFake("project", 2, map[string]string{
		"a.json": definitionText("a", "1"), "b.json": definitionText("b", "1"), "c.json": definitionText("c", "1"), "big.json": definitionText("big", strings.Repeat("1", 100)),
	})
	c := loadAll(t, catalog.Options{Limits: catalog.Limits{FileBytes: 60, Files: 3}}, low, high)
	if diff := cmp.Diff([]string{"a@1 project", "b@1 project", "low@1 user"}, servedList(c.Snapshot())); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"file-too-large big.json", "limit-files project"}, codeList(c.Diagnostics())); diff != "" {
		t.Error(diff)
	}

	high.setFile("big.json", "")
	size := int64(len(definitionText("a", "1")))
	c = loadAll(t, catalog.Options{Limits: catalog.Limits{TotalBytes: 2 * size}}, low, high)
	if diff := cmp.Diff([]string{"a@1 project", "b@1 project"}, servedList(c.Snapshot())); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"limit-bytes project", "limit-bytes user"}, codeList(c.Diagnostics())); diff != "" {
		t.Error(diff)
	}
}

func TestLintOnce(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	f := newFake("user", 1, map[string]string{"a.json": definitionText("a", "1"), "b.json": definitionText("b", "1")})
	c := loadAll(t, catalog.Options{
		Lint: func(d *workflow.Definition, _ []byte) []guideway.Diagnostic {
			calls.Add(1)
			return []guideway.Diagnostic{{Code: "lint", File: d.File}}
		},
	}, f)
	if calls.Load() != 0 {
		t.Error("loading lints")
	}
	for range 3 {
		found, err := c.Snapshot().Lint(context.Background())
		checkError(t, err)
		if diff := cmp.Diff([]string{"lint a.json", "lint b.json"}, codeList(found)); diff != "" {
			t.Error(diff)
		}
		checkError(t, c.Load(context.Background()))
	}
	if calls.Load() != 2 {
		t.Errorf("linted %d times", calls.Load())
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := c.Snapshot().Lint(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
}

func TestLinterPanic(t *testing.T) {
	t.Parallel()
	c := loadAll(t, catalog.Options{
		Lint: func(*workflow.Definition, []byte) []guideway.Diagnostic { panic("defect") },
	}, newFake("user", 1, map[string]string{"a.json": definitionText("a", "1")}))
	for range 2 {
		found, err := c.Snapshot().Lint(context.Background())
		checkError(t, err)
		if diff := cmp.Diff([]string{"linter-failed a.json"}, codeList(found)); diff != "" {
			t.Error(diff)
		}
	}
}

func TestEmbedded(t *testing.T) {
	t.Parallel()
	source := catalog.NewEmbedded(catalog.SourceInfo{Name: "bundled", Trust: catalog.TrustBundled}, fstest.MapFS{
		"a.yaml":               {Data: []byte(definitionText("a", "1"))},
		"deep/er/and/er/b.yml": {Data: []byte(definitionText("b", "1"))},
		"README.md":            {Data: []byte("# hello")},
		".hidden.json":         {Data: []byte("{")},
		"testdata/c.json":      {Data: []byte("{")},
		"empty.json":           {},
	})
	c := loadAll(t, catalog.Options{}, source)
	if diff := cmp.Diff([]string{"a@1 bundled", "b@1 bundled"}, servedList(c.Snapshot())); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"test-broken bundled:empty.json"}, codeList(c.Diagnostics())); diff != "" {
		t.Error(diff)
	}
}

// A source that reports no changes is read again after five minutes, and not before.
func TestTimeToLive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake("registry", 1, map[string]string{"a.json": definitionText("a", "1")})
		c := catalog.New([]catalog.Source{f}, catalog.Options{Parse: parseTest})
		checkError(t, c.Open(context.Background()))
		checkError(t, c.Open(context.Background()))
		f.setFile("a.json", definitionText("a", "2"))
		time.Sleep(5*time.Minute - time.Second)
		synctest.Wait()
		if diff := cmp.Diff([]string{"a@1 registry"}, servedList(c.Snapshot())); diff != "" {
			t.Error(diff)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if diff := cmp.Diff([]string{"a@2 registry"}, servedList(c.Snapshot())); diff != "" {
			t.Error(diff)
		}
		c.Close()
		c.Close()
	})
}

func TestCanceledLoad(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	c := catalog.New([]catalog.Source{newFake("user", 1, map[string]string{"a.json": definitionText("a", "1")})}, catalog.Options{Parse: parseTest})
	if err := c.Open(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
	if s := c.Sources(); len(s) != 1 || s[0].State != catalog.SourceUnread || len(c.List(catalog.Filter{})) != 0 {
		t.Errorf("%+v", s)
	}
	c.Close()
}

// Goroutines read the catalog while it reloads, so that the race detector finds
// unsynchronized access.
func TestReadersDuringReloads(t *testing.T) {
	t.Parallel()
	f := newFake("user", 1, map[string]string{"a.json": definitionText("a", "1")})
	c := loadAll(t, catalog.Options{}, f)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 200 {
				if _, err := c.Get("a"); err != nil {
					t.Error(err)
				}
				_, _ = c.Snapshot().Lint(context.Background())
				_ = c.Diagnostics()
				_ = c.Sources()
			}
		})
	}
	for i := range 100 {
		f.setFile("a.json", definitionText("a", string(rune('a'+i%26))))
		checkError(t, c.Load(context.Background()))
	}
	wg.Wait()
}

func TestStandard(t *testing.T) {
	t.Parallel()
	var got []string
	for _, s := range catalog.Standard(catalog.Layout{
		Bundled: fstest.MapFS{}, User: "/u", Custom: []string{"/c", "/p/workflows/", "/d"}, Project: "/p", ProjectRoot: "/",
	}) {
		info := s.Info()
		optional := ""
		if info.Optional {
			optional = " optional"
		}
		got = append(got, info.Name+" "+filepath.ToSlash(info.Location)+" "+string(info.Trust)+optional)
	}
	want := []string{
		"bundled  bundled",
		"user /u user optional",
		"custom-1 /c user",
		"custom-3 /d user",
		"project-root /workflows project optional",
		"project-root-guideway /.guideway/workflows project optional",
		"project /p/workflows project optional",
		"project-guideway /p/.guideway/workflows project optional",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if sources := catalog.Standard(catalog.Layout{}); len(sources) != 0 {
		t.Errorf("an empty layout has %d sources", len(sources))
	}
}
