package workflow_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/workflow"
	"github.com/guideway-dev/guideway/internal/workflow/phases"
)

// Invalid or incomplete documents are recognized by any member that is specific to their
// kind, and otherwise by their path, so that the diagnostics fit the kind that the author
// intended.
func TestGuessOfWhatIsBroken(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ file, text, missing string }{
		{"x.yaml", `{"id":"s","execution_pattern":{}}`, "capability"},
		{"x.yaml", `{"id":"a","context_to_preserve":[]}`, "problem"},
		{"x.yaml", `{"currentPhase":1}`, "workflowId"},
		{"w/skills/01-s.yaml", `{"id":"s"}`, "capability"},
		{"/far/away/meta/activities/01-a.json", `{"id":"a"}`, "problem"},
		{"w/activities/01-a.json", `{"id":"a"}`, "steps"}, // only the directory meta contains activities
		{"skills/01-s.yaml", `{"id":"s"}`, "steps"},
		{"meta/activities/01-a.json", `{"id":"a","phases":[]}`, "initialPhase"}, // members take precedence over paths
		{"w/skills/01-s.yaml", `{"id":"s","steps":[]}`, "description"},
	} {
		_, found := workflow.ParseAs(c.file, []byte(c.text), workflow.As{})
		if !slices.ContainsFunc(found, func(d guideway.Diagnostic) bool { return strings.Contains(d.Message, "'"+c.missing+"'") }) {
			t.Errorf("%s: %s has the diagnostics %v", c.file, c.text, found)
		}
	}
}

// TestGuess checks that kinds are recognized by their members, and that documents are read
// as requested.
func TestGuess(t *testing.T) {
	t.Parallel()
	const (
		flow      = `{"id":"w","version":"1.0.0","title":"T","initialPhase":"p","phases":[{"id":"p","name":"P"}]}`
		condition = `{"type":"simple","variable":"x","operator":"exists"}`
		state     = `{"workflowId":"w","workflowVersion":"1","startedAt":"2026-01-22T10:00:00Z","updatedAt":"2026-01-22T10:00:00Z","currentPhase":1}`
		skill     = `{"id":"s","version":"1.0.0","capability":"c"}`
		activity  = `{"id":"a","version":"1.0.0","problem":"p","recognition":["r"],"skills":{"primary":"s"},"outcome":["o"],"flow":["f"]}`
	)
	for _, c := range []struct {
		name, text string
		as         workflow.As
		dialect    guideway.Dialect
		kind       phases.Kind
		id         string
		loads      bool
	}{
		{"steps", minimal, workflow.As{}, guideway.DialectSteps, phases.KindWorkflow, "a-flow", true},
		{"phases", flow, workflow.As{}, guideway.DialectPhases, phases.KindWorkflow, "w", true},
		{"condition", condition, workflow.As{}, guideway.DialectPhases, phases.KindCondition, "", true},
		{"state", state, workflow.As{}, guideway.DialectPhases, phases.KindState, "w", true},
		{"skill", skill, workflow.As{}, guideway.DialectPhases, phases.KindSkill, "s", true},
		{"activity", activity, workflow.As{}, guideway.DialectPhases, phases.KindActivity, "a", true},
		{"kind alone", skill, workflow.As{Kind: phases.KindSkill}, guideway.DialectPhases, phases.KindSkill, "s", true},
		{"dialect alone", activity, workflow.As{Dialect: guideway.DialectPhases}, guideway.DialectPhases, phases.KindActivity, "a", true},
		{"steps as phases", minimal, workflow.As{Dialect: guideway.DialectPhases}, "", "", "", false},
		{"phases as steps", flow, workflow.As{Dialect: guideway.DialectSteps}, "", "", "", false},
		{"skill as activity", skill, workflow.As{Kind: phases.KindActivity}, "", "", "", false},
		{"a kind that the steps dialect does not have", minimal, workflow.As{Dialect: guideway.DialectSteps, Kind: phases.KindSkill}, "", "", "", false},
		{"an unknown kind", flow, workflow.As{Kind: "tea"}, "", "", "", false},
		{"no member of any kind", `{"id":"x"}`, workflow.As{}, "", "", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d, found := workflow.ParseAs("x.json", []byte(c.text), c.as)
			if (d != nil) != c.loads || (len(found) == 0) != c.loads {
				t.Fatalf("got %v, %v", d, found)
			}
			if d == nil {
				return
			}
			if d.Dialect != c.dialect || d.Kind != c.kind || d.ID != c.id || d.Canonical == "" || d.Hash == "" {
				t.Errorf("got %+v", d)
			}
			if set := countTrue(d.Workflow != nil, d.Condition != nil, d.State != nil, d.Skill != nil, d.Activity != nil); set != 1 {
				t.Errorf("%d fields of the document are set, want 1", set)
			}
			// Documents of other kinds are never read as workflows.
			w, found := workflow.Parse("x.json", []byte(c.text))
			if (w != nil) != (c.kind == phases.KindWorkflow) {
				t.Errorf("Parse returned %v, %v", w, found)
			}
			if w == nil && (len(found) != 1 || found[0].Code != workflow.CodeNoWorkflow || found[0].Fix == "") {
				t.Errorf("Parse returned the diagnostics %v", found)
			}
			if w != nil && (w.Dialect != c.dialect || (w.Steps == nil) == (w.Phases == nil) || w.Hash != d.Hash) {
				t.Errorf("Parse returned %+v", w)
			}
		})
	}
}

// countTrue returns the number of true values.
func countTrue(facts ...bool) (n int) {
	for _, fact := range facts {
		if fact {
			n++
		}
	}
	return n
}

func TestPhasesDefinition(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/phases-full.json")
	if err != nil {
		t.Fatal(err)
	}
	d, found := workflow.Check("phases-full.json", data)
	if d == nil || len(found) > 0 {
		t.Fatal(found)
	}
	if d.Name != "Everything" || d.Version != "1.2.3" || d.Description == "" || d.File != "phases-full.json" || d.Canonical != d.Phases.Canonical {
		t.Errorf("got %+v", d)
	}
	again, found := workflow.Parse("", []byte(d.Canonical))
	if again == nil || again.Hash != d.Hash {
		t.Errorf("the canonical form does not load as the same document: %v", found)
	}
	for _, guides := range [][]string{{"01-start.md"}, {"02-other.md"}} {
		found := workflow.Lint(d, data, phases.Layout{Guides: guides})
		if known := guides[0] == "01-start.md"; known != (len(found) == 0) {
			t.Errorf("with the guides %v the diagnostics are %v", guides, found)
		}
	}
}

// TestSchemaOfEachKind checks that the kinds of every dialect have a schema, and that
// unknown kinds have none.
func TestSchemaOfEachKind(t *testing.T) {
	t.Parallel()
	for _, dialect := range workflow.Dialects() {
		for _, kind := range workflow.Kinds(dialect) {
			if workflow.Schema(workflow.As{Dialect: dialect, Kind: kind}) == nil {
				t.Errorf("%s has no schema for %s", dialect, kind)
			}
		}
		if workflow.Schema(workflow.As{Dialect: dialect}) == nil {
			t.Errorf("%s has no schema for workflows", dialect)
		}
	}
	for _, as := range []workflow.As{{}, {Dialect: guideway.DialectSteps, Kind: phases.KindSkill}, {Dialect: guideway.DialectPhases, Kind: "tea"}} {
		if workflow.Schema(as) != nil {
			t.Errorf("%v has a schema", as)
		}
	}
}

// TestPhasesCorpus parses the corpus documents of all kinds, if available: each loads, and
// the two workflows have only warnings.
func TestPhasesCorpus(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..", "..", "shared", "corpus", "phases")
	if _, err := os.Stat(root); err != nil {
		t.Skip("the corpus is not available")
	}
	want := map[phases.Kind]int{phases.KindWorkflow: 2, phases.KindActivity: 3, phases.KindSkill: 3}
	for _, pattern := range []string{"*/meta.json", "*/work-package.json", "meta/*/*.json"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			d, found := workflow.CheckAs(filepath.Base(file), data, workflow.As{})
			if d == nil {
				t.Errorf("%s does not load: %v", file, found)
				continue
			}
			want[d.Kind]--
			for _, f := range found {
				if f.Severity != guideway.SeverityWarning || f.Line == 0 || f.Fix == "" {
					t.Errorf("%s", f)
				}
			}
		}
	}
	for kind, missing := range want {
		if missing != 0 {
			t.Errorf("%[2]d documents of the kind %[1]s are missing", kind, missing)
		}
	}
}
