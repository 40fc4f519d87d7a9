package library_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog/library"
	"pgregory.net/rapid"
)

func TestPlaceOf(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, kind, folder, id, format string }{
		{"meta/activities/01-start-workflow.json", "activity", "meta", "start-workflow", "json"},
		{"meta/skills/00-state-management.YAML", "skill", "meta", "state-management", "yaml"},
		{"work-package/skills/7-review.yml", "skill", "work-package", "review", "yaml"},
		{"work-package/guides/00-start-here.md", "guide", "work-package", "00-start-here", "markdown"},
		{"work-package/guides/007-deep.toon", "guide", "work-package", "007-deep", "toon"},
		{"work-package/templates/12-checkpoint.txt", "template", "work-package", "12-checkpoint", "text"},
		{"work-package/templates/1-x.json", "template", "work-package", "1-x", "json"},
		{"meta/rules.yaml", "rules", "meta", "rules", "yaml"},
		// Workflows and files that are not part of a library.
		{name: "rules.yaml"},
		{name: "meta/meta.json"},
		{name: "work-package/work-package.json"},
		{name: "other/activities/01-a.json"}, // activities belong to no workflow
		{name: "work-package/skills/review.json"},
		{name: "work-package/skills/01-review.toon"},
		{name: "work-package/skills/01-.json"},
		{name: "guides/01-a.md"},
		{name: "a/b/guides/01-a.md"},
		{name: "work-package/guides/README.md"},
		{name: "work-package/guides/-1-a.md"},
		{name: "work-package/guides/01-a.png"},
		{name: "../guides/01-a.md"},
		{name: ""},
	}
	for _, tt := range tests {
		p := library.PlaceOf(tt.name)
		id := ""
		if p.Kind != "" {
			id = p.ID()
		}
		if string(p.Kind) != tt.kind || p.Workflow != tt.folder || id != tt.id || p.Format != tt.format {
			t.Errorf("%s: %+v", tt.name, p)
		}
		if tt.kind != "" && p.Path != tt.name {
			t.Errorf("%s: path %q", tt.name, p.Path)
		}
	}
}

// Misnamed and IsToon recognize files that look like documents of a library but are not.
func TestMisnamedAndToon(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][2]bool{
		"w/guides/start-here.md": {true, false}, "w/guides/README.md": {false, false}, "w/templates/plan.txt": {true, false},
		"w/guides/01-a.md": {false, false}, "w/notes/a.md": {false, false}, "w/guides/a.yaml": {false, false},
		"w.toon": {false, true}, "meta/skills/01-a.toon": {false, true}, "w/guides/01-a.toon": {false, false}, "w/guides/a.toon": {true, true},
	} {
		if got := [2]bool{library.Misnamed(name), library.IsToon(name)}; got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

const (
	resume = `{"id":"resume-workflow","version":"1.0.0","problem":"The user wants to go on with earlier work.",
		"recognition":["Resume workflow","Where were we?"],"skills":{"primary":"workflow-execution"},"outcome":["Work goes on"],"flow":["1. Look"]}`
	start = `{"id":"start-workflow","version":"1.0.0","problem":"The user wants to begin something new.",
		"recognition":["Start a workflow","New workflow"],"skills":{"primary":"workflow-execution"},"outcome":["A run is started"],"flow":["1. Look"]}`
	execution = `{"id":"workflow-execution","version":"1.0.0","capability":"Execute workflows"}`
)

// newItem parses a document that must load.
func newItem(t *testing.T, name, text string) *library.Item {
	t.Helper()
	got, found := library.Parse(library.PlaceOf(name), "/"+name, []byte(text))
	if got == nil {
		t.Fatalf("%s: %v", name, found)
	}
	return got
}

func TestParse(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, file, text string
		loads            bool
		codes            []string
	}{
		{"skill", "meta/skills/01-workflow-execution.json", execution, true, nil},
		{"skill in YAML", "meta/skills/01-s.yaml", "id: s\nversion: 1.0.0\ncapability: Do it\n", true, nil},
		{"block text is kept", "meta/skills/01-s.yaml", "id: s\nversion: 1.0.0\ncapability: Do it\ndescription: |\n  one\n  two\n", true, nil},
		{"block text was lost", "meta/skills/01-s.json", `{"id":"s","version":"1.0.0","capability":"C","description":"|"}`, true, []string{"text-lost"}},
		{"another id", "meta/skills/01-other.json", execution, true, []string{"file-id-differs"}},
		{"broken skill", "meta/skills/01-s.json", `{"id":"s","version":"1.0.0"}`, false, []string{"field-missing"}},
		{"cut off", "meta/skills/01-s.json", `{"id":"s",`, false, []string{"json-syntax"}},
		{"broken activity", "meta/activities/01-start-workflow.json", strings.Replace(start, `"Start a workflow","New workflow"`, "", 1), false, []string{"list-empty"}},
		{"a skill is not an activity", "meta/activities/01-workflow-execution.json", execution, false, nil},
		{"rules", "meta/rules.json", `{"id":"r","sections":[]}`, true, nil},
		{"rules are an object", "meta/rules.json", `[]`, false, []string{"rules-object"}},
		{"guide", "w/guides/01-a.md", "# A\n", true, nil},
		{"a guide may be anything", "w/guides/01-a.toon", "guide: \"\"\"\n broken {", true, nil},
		{"binary guide", "w/guides/01-a.md", "\x00\xff", false, []string{"text-encoding"}},
		{"empty guide", "w/guides/01-a.md", "", true, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, found := library.Parse(library.PlaceOf(tt.file), "/"+tt.file, []byte(tt.text))
			if (got != nil) != tt.loads || !tt.loads && len(found) == 0 {
				t.Fatalf("item %+v, findings %v", got, found)
			}
			if tt.codes != nil || tt.loads {
				if diff := cmp.Diff(tt.codes, codesOf(found)); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
	if got := newItem(t, "meta/skills/01-s.yaml", "id: s\nversion: 1.0.0\ncapability: Do it\ndescription: |\n  one\n  two\n"); !strings.Contains(got.Canonical, `"one\ntwo\n"`) {
		t.Errorf("the block text is missing in %s", got.Canonical)
	}
	if got := newItem(t, "w/guides/01-übersicht-der-teile.md", ""); got.Title != "Übersicht Der Teile" {
		t.Errorf("title %q", got.Title)
	}
	if got := newItem(t, "w/guides/01-a.md", "\ufeff# A\n"); got.Text != "# A\n" || got.Title != "A" || got.ID != "01-a" {
		t.Errorf("%+v", got)
	}
}

func codesOf(found []guideway.Diagnostic) []string {
	var list []string
	for _, d := range found {
		list = append(list, d.Code)
	}
	slices.Sort(list)
	return list
}

func TestBuild(t *testing.T) {
	t.Parallel()
	known := func(id string) bool { return id == "w" || id == "renamed" }
	low := library.Source{Name: "low", Owners: map[string]string{"folder": "renamed"}, Items: []*library.Item{
		newItem(t, "folder/guides/01-a.md", "of the workflow renamed"),
		newItem(t, "meta/activities/01-start-workflow.json", start),
		newItem(t, "meta/skills/01-workflow-execution.json", execution),
		newItem(t, "w/guides/01-a.md", "low 1"),
		newItem(t, "w/guides/02-b.md", "low 2"),
		newItem(t, "w/skills/01-workflow-execution.json", execution),
	}}
	high := library.Source{Name: "high", Items: []*library.Item{
		newItem(t, "lost/templates/01-a.md", "nobody's"),
		newItem(t, "meta/activities/01-resume-workflow.json", strings.Replace(resume, "Where were we?", "new workflow", 1)),
		newItem(t, "w/guides/001-z.md", "high 1"),
		newItem(t, "w/guides/1-zz.md", "not served"),
		newItem(t, "w/guides/10-last.md", "high 10"),
	}, Broken: []library.Broken{
		{Place: library.PlaceOf("w/guides/02-b.md"), ID: "02-b", Why: guideway.Diagnostic{File: "/h/02-b.md"}},
		{Place: library.PlaceOf("w/guides/03-c.md"), ID: "03-c", Why: guideway.Diagnostic{File: "/h/03-c.md", Message: "broken"}},
		{Place: library.PlaceOf("w/skills/04-cut-off.yaml"), ID: "x: [", Why: guideway.Diagnostic{File: "/h/04-cut-off.yaml", Message: "cut off"}},
	}}
	lib, found := library.Build([]library.Source{low, high}, known)
	want := []string{"folder-without-workflow", "index-duplicate", "override-broken", "recognition-duplicate"}
	if diff := cmp.Diff(want, codesOf(found)); diff != "" {
		t.Error(diff, found)
	}
	var guides []string
	for _, g := range lib.Texts(library.KindGuide, "w") {
		guides = append(guides, g.ID+" "+g.Text+" "+g.Source)
	}
	if diff := cmp.Diff([]string{"001-z high 1 high", "02-b low 2 low", "10-last high 10 high"}, guides); diff != "" {
		t.Error(diff)
	}
	if g := lib.Text(library.KindGuide, "renamed", "1"); g == nil || g.Workflow != "renamed" {
		t.Errorf("a folder belongs to the workflow in it: %+v", g)
	}
	if diff := cmp.Diff([]string{"lost", "renamed", "w"}, lib.Owners()); diff != "" {
		t.Error(diff)
	}
	if why := lib.Why(library.KindGuide, "w", "3"); why == nil || why.Message != "broken" {
		t.Errorf("%+v", why)
	}
	if why := lib.Why(library.KindSkill, "w", "cut-off"); why == nil || why.Message != "cut off" {
		t.Errorf("a document without an id is not found by its name: %+v", why)
	}
	if why := lib.Why(library.KindGuide, "w", "2"); why != nil {
		t.Errorf("%+v is reported although a different document is served", why)
	}
	if own, all := lib.Skill("w", "workflow-execution"), lib.Skill("other", "workflow-execution"); own == nil || all == nil || own.Workflow != "w" || all.Workflow != "" {
		t.Errorf("%+v, %+v", own, all)
	}
}

// An activity with references to missing documents is reported and still served.
func TestBuildChecksActivities(t *testing.T) {
	t.Parallel()
	lost := strings.Replace(start, `"flow"`, `"mandatory_guide":{"workflow_id":"w","index":"00"},"flow"`, 1)
	lib, found := library.Build([]library.Source{{Name: "s", Items: []*library.Item{newItem(t, "meta/activities/01-start-workflow.json", lost)}}}, nil)
	if diff := cmp.Diff([]string{"guide-unknown", "skill-unknown"}, codesOf(found)); diff != "" {
		t.Error(diff)
	}
	if lib.Activity("start-workflow") == nil {
		t.Error("an activity with a dangling reference is not served")
	}
}

// An index is found with any padding. Invalid indices are not found, and no name leads out
// of a library.
func TestText(t *testing.T) {
	t.Parallel()
	lib, _ := library.Build([]library.Source{{Name: "s", Items: []*library.Item{
		newItem(t, "w/guides/00-start.md", "start"), newItem(t, "w/guides/01-first.md", "first"), newItem(t, "w/guides/12-twelfth.md", "twelfth"),
	}}}, nil)
	for index, want := range map[string]string{
		"0": "start", "00": "start", "1": "first", "01": "first", "001": "first", "12": "twelfth", "first": "first", "01-first": "first",
		"01-first.md": "first", "guides/01-first.md": "first", "./guides/first.md": "first", // as workflows refer to them
		"01-first.txt": "", "templates/01-first.md": "", "guides/../guides/01-first.md": "", "/guides/01-first.md": "",
		"": "", "2": "", "-1": "", "1.0": "", "01-": "", "../w/guides/01-first": "", "99999999999999999999": "", "1,": "",
	} {
		got := lib.Text(library.KindGuide, "w", index)
		if (got == nil) != (want == "") || got != nil && got.Text != want {
			t.Errorf("%q: %+v, want %q", index, got, want)
		}
	}
	if lib.Text(library.KindTemplate, "w", "1") != nil || lib.Text(library.KindGuide, "../w", "1") != nil {
		t.Error("found a text that does not exist")
	}
}

// A skill or an activity is found by the index of its file if the index is unique.
func TestNumbered(t *testing.T) {
	t.Parallel()
	entries := []*library.Entry{
		{Item: newItem(t, "meta/skills/01-workflow-execution.json", execution)},
		{Item: newItem(t, "meta/skills/02-a.yaml", "id: a\nversion: 1.0.0\ncapability: C\n")},
		{Item: newItem(t, "meta/skills/2-b.yaml", "id: b\nversion: 1.0.0\ncapability: C\n")},
	}
	for index, want := range map[string]string{"1": "workflow-execution", "001": "workflow-execution", "2": "", "3": "", "-1": "", "a": "", "": ""} {
		got := library.Numbered(entries, index)
		if (got == nil) != (want == "") || got != nil && got.ID != want {
			t.Errorf("%q: %+v, want %q", index, got, want)
		}
	}
}

func TestEqual(t *testing.T) {
	t.Parallel()
	one := newItem(t, "w/guides/01-a.md", "a")
	build := func(name string, items ...*library.Item) *library.Library {
		lib, _ := library.Build([]library.Source{{Name: name, Items: items}}, nil)
		return lib
	}
	base := build("s", one)
	if !base.Equal(build("s", one)) {
		t.Error("equal libraries are reported as different")
	}
	for i, other := range []*library.Library{emptyLibrary(), build("other", one), build("s", newItem(t, "w/guides/01-a.md", "a")), build("s", one, newItem(t, "w/guides/02-b.md", "b"))} {
		if base.Equal(other) || other.Equal(base) {
			t.Errorf("library %d is reported as equal", i)
		}
	}
}

func TestSection(t *testing.T) {
	t.Parallel()
	const guide = "# Guide\nintro\n\n## 1.2 🛑 Issue Checkpoint\nask\n\n### Detail\nmore\n\n```sh\n# not a heading\n```\n\n## Plan ##\nplan\n\n#hashtag\n# Plan B\nlast"
	tests := []struct{ section, want string }{
		{"Plan", "## Plan ##\nplan\n\n#hashtag\n"},
		{"plan", "## Plan ##\nplan\n\n#hashtag\n"},
		{"Detail", "### Detail\nmore\n\n```sh\n# not a heading\n```\n"},
		{"1.2 Issue Checkpoint", "## 1.2 🛑 Issue Checkpoint\nask\n\n### Detail\nmore\n\n```sh\n# not a heading\n```\n"},
		{"Issue Checkpoint", "## 1.2 🛑 Issue Checkpoint\nask\n\n### Detail\nmore\n\n```sh\n# not a heading\n```\n"},
		{"Plan B", "# Plan B\nlast\n"},
		{"not a heading", ""},
		{"hashtag", ""},
		{"", ""},
		{"!?", ""},
	}
	for _, tt := range tests {
		got, ok := library.Section(guide, tt.section)
		if got != tt.want || ok != (tt.want != "") {
			t.Errorf("%q: %q", tt.section, got)
		}
	}
	want := []string{"Guide", "1.2 🛑 Issue Checkpoint", "Detail", "Plan", "Plan B"}
	if diff := cmp.Diff(want, library.Headings(guide)); diff != "" {
		t.Error(diff)
	}
	if _, ok := library.Section("# Plan A\n# Plan B\n", "plan"); ok {
		t.Error("a section was returned although two match")
	}
}

// Every heading of a text returns a section of the text.
func TestEveryHeadingHasSection(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOf(rapid.SampledFrom([]string{"# One", "## Two", "### Three", "#", "text", "```", "~~~", "    # code", "", "####### seven"})).Draw(t, "lines")
		text := strings.Join(lines, "\n")
		for _, heading := range library.Headings(text) {
			got, ok := library.Section(text, heading)
			if ok != (heading != "") || !strings.Contains(text+"\n", strings.TrimSuffix(got, "\n")) || ok && !strings.HasPrefix(got, "#") {
				t.Fatalf("%q of %q: %q, %v", heading, text, got, ok)
			}
		}
	})
}

func TestMatch(t *testing.T) {
	t.Parallel()
	end := `{"id":"end-workflow","version":"1.0.0","problem":"The user wants to finish a workflow.",
		"recognition":["End workflow","We're done","Where were we?"],"skills":{"primary":"workflow-execution"},"outcome":["The run is completed"],"flow":["1. Look"]}`
	lib, _ := library.Build([]library.Source{{Name: "s", Items: []*library.Item{
		newItem(t, "meta/activities/01-start-workflow.json", start),
		newItem(t, "meta/activities/02-resume-workflow.json", resume),
		newItem(t, "meta/activities/03-end-workflow.json", end),
	}}}, nil)
	tests := []struct {
		goal   string
		status library.MatchStatus
		best   string
		exact  bool
	}{
		{"Resume workflow", library.MatchFound, "resume-workflow", true},
		{"  resume, WORKFLOW!", library.MatchFound, "resume-workflow", true},
		{"were done", library.MatchFound, "end-workflow", true}, // "We're done"
		{"please start a workflow for the login bug", library.MatchFound, "start-workflow", false},
		{"begin something new", library.MatchFound, "start-workflow", false},
		{"let us finish this", library.MatchNone, "end-workflow", false},
		{"where were we?", library.MatchAmbiguous, "resume-workflow", true}, // both have the phrase; the first by index is first
		{"drop this workflow", library.MatchNone, "end-workflow", false},    // a word of all activities does not count
		{"resume my old workflow", library.MatchFound, "resume-workflow", false},
		{"don't resume the workflow", library.MatchAmbiguous, "resume-workflow", false}, // the opposite of the phrase
		{"bake a cake", library.MatchNone, "", false},
		{"", library.MatchNone, "", false},
		{"?!", library.MatchNone, "", false},
	}
	for _, tt := range tests {
		status, matches := lib.Match(tt.goal)
		best := ""
		if len(matches) > 0 {
			best = matches[0].Activity.ID
		}
		if status != tt.status || best != tt.best || (len(matches) > 0 && matches[0].Score == 1) != tt.exact {
			t.Errorf("%q: %s %s", tt.goal, status, formatMatches(matches))
		}
		for _, m := range matches {
			if len(m.Why) == 0 || m.Score <= 0 || m.Score > 1 {
				t.Errorf("%q: %s", tt.goal, formatMatches(matches))
			}
		}
	}
	if status, matches := emptyLibrary().Match("resume workflow"); status != library.MatchNone || len(matches) != 0 {
		t.Errorf("%s %v", status, matches)
	}
}

func formatMatches(matches []library.Match) string {
	var b strings.Builder
	for _, m := range matches {
		fmt.Fprintf(&b, "%s %v %q; ", m.Activity.ID, m.Score, m.Why)
	}
	return b.String()
}

// Match returns the same sorted result each time for the same goal.
func TestMatchIsDeterministic(t *testing.T) {
	t.Parallel()
	lib, _ := library.Build([]library.Source{{Name: "s", Items: []*library.Item{
		newItem(t, "meta/activities/01-start-workflow.json", start), newItem(t, "meta/activities/02-resume-workflow.json", resume),
	}}}, nil)
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOf(rapid.SampledFrom([]string{"resume", "start", "workflow", "new", "where", "were", "we", "the", "cake", "日本", "\xff"})).Draw(t, "words")
		goal := strings.Join(words, rapid.SampledFrom([]string{" ", ", ", "\n"}).Draw(t, "between"))
		status, matches := lib.Match(goal)
		again, repeated := lib.Match(goal)
		if status != again || formatMatches(matches) != formatMatches(repeated) {
			t.Fatalf("%q: %s, then %s", goal, formatMatches(matches), formatMatches(repeated))
		}
		if !slices.IsSortedFunc(matches, func(a, b library.Match) int { return int(1000 * (b.Score - a.Score)) }) {
			t.Fatalf("%q: %s", goal, formatMatches(matches))
		}
	})
}

func emptyLibrary() *library.Library {
	lib, _ := library.Build(nil, nil)
	return lib
}
