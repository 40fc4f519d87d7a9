package phases_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/guideway-dev/guideway/internal/workflow/phases"
)

func TestLocate(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]phases.Entry{
		"release.yaml":                    {Kind: phases.EntryWorkflow, Workflow: "release", Index: -1, Name: "release"},
		"release/release.json":            {Kind: phases.EntryWorkflow, Workflow: "release", Index: -1, Name: "release"},
		"meta/meta.yml":                   {Kind: phases.EntryWorkflow, Workflow: "meta", Index: -1, Name: "meta"},
		"meta/rules.json":                 {Kind: phases.EntryRules, Workflow: "meta", Index: -1, Name: "rules"},
		"meta/activities/01-start.json":   {Kind: phases.EntryActivity, Workflow: "meta", Index: 1, Name: "start"},
		"meta/skills/00-resolve-it.json":  {Kind: phases.EntrySkill, Workflow: "meta", Index: 0, Name: "resolve-it"},
		"release/skills/12-cut.yaml":      {Kind: phases.EntrySkill, Workflow: "release", Index: 12, Name: "cut"},
		"release/guides/003-Go-Ahead.MD":  {Kind: phases.EntryGuide, Workflow: "release", Index: 3, Name: "Go-Ahead"},
		"release/templates/01-notes.md":   {Kind: phases.EntryTemplate, Workflow: "release", Index: 1, Name: "notes"},
		"release/other.json":              {},
		"release/activities/01-a.json":    {},
		"release/guides/notes.md":         {},
		"release/guides/-notes.md":        {},
		"release/guides/1-.md":            {},
		"release/guides/1-a.txt":          {},
		"release/templates/01-notes.json": {},
		"release/skills/01-cut.md":        {},
		"release/other/01-cut.json":       {},
		"a/b/c/d.json":                    {},
		"../release.json":                 {},
		"release/../release.json":         {},
		"/release.json":                   {},
		".hidden.json":                    {},
		".json":                           {},
		"README.md":                       {},
		"":                                {},
	} {
		got, ok := phases.Locate(path)
		if ok != (want.Kind != "") {
			t.Errorf("Locate(%s) = %v", path, ok)
		}
		if ok {
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", path, diff)
			}
		}
	}
}

func TestIndexAndTitle(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"1": 1, "01": 1, "001": 1, "0": 0, "12": 12, "": -1, "a": -1, "-1": -1, "+1": -1, "1.0": -1, "1234567": -1} {
		got, ok := phases.Index(text)
		if ok != (want >= 0) || ok && got != want {
			t.Errorf("%q is %d, %v", text, got, ok)
		}
	}
	for name, want := range map[string]string{"start-here": "Start Here", "a_b--c": "A B C", "über-uns": "Über Uns", "": ""} {
		if got := (phases.Entry{Name: name}).Title(); got != want {
			t.Errorf("the title of %s is %s", name, got)
		}
	}
}
