package phases_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
	"github.com/guideway-dev/guideway/internal/workflow/phases"
	"github.com/guideway-dev/guideway/internal/workflow/shape/shapetest"
)

// lintText returns the pointers and codes of a workflow's diagnostics.
func lintText(t *testing.T, text string, layout phases.Layout) []string {
	t.Helper()
	root, found := doc.Parse("x.json", []byte(text), doc.Limits{})
	if len(found) > 0 {
		t.Fatalf("%s: %v", text, found)
	}
	w, found := phases.Parse("x.json", root)
	if w == nil {
		t.Fatalf("%s: %v", text, found)
	}
	var got []string
	for _, f := range phases.Lint(w, root, "x.json", layout) {
		if f.Severity != guideway.SeverityWarning || f.Fix == "" || f.Message == "" {
			t.Errorf("incomplete: %+v", f)
		}
		got = append(got, f.Pointer+" "+f.Code)
	}
	return got
}

// twoPhases returns a workflow of two phases with variables; first is added to the first
// phase.
func twoPhases(variables, first string) string {
	return `{"id":"w","version":"1.0.0","title":"T","variables":[` + variables + `],"initialPhase":"a","phases":[
		{"id":"a","name":"A","steps":[{"id":"s","name":"S"}]` + first + `},{"id":"b","name":"B","steps":[{"id":"s","name":"S"}]}]}`
}

// TestLint tests cases that the documents in testdata do not cover: valid workflows without
// warnings, and corner cases.
func TestLint(t *testing.T) {
	t.Parallel()
	const (
		flag  = `{"name":"x","type":"boolean"}`
		toB   = `{"to":"b","condition":{"type":"simple","variable":"x","operator":"==","value":true}}`
		toA   = `{"to":"a","condition":{"type":"simple","variable":"x","operator":"==","value":false}}`
		setX  = `,"checkpoints":[{"id":"c","name":"C","message":"M","options":[{"id":"y","label":"Y","effect":{"setVariable":{"x":true}}},{"id":"n","label":"N","effect":{"setVariable":{"x":false}}}]}]`
		askB  = `,"checkpoints":[{"id":"c","name":"C","message":"M","options":[{"id":"y","label":"Y","effect":{"transitionTo":"b"}}]}]`
		loopX = `,"loops":[{"id":"l","name":"L","type":"while","condition":{"type":"simple","variable":"x","operator":"==","value":true},"steps":[{"id":"t","name":"T"%s}]}]`
	)
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"one default transition", twoPhases("", `,"transitions":[{"to":"b","isDefault":true}]`), nil},
		{"one transition without a condition", twoPhases("", `,"transitions":[{"to":"b"}]`), nil},
		{"conditions that cover all cases", twoPhases(flag, setX+`,"transitions":[`+toB+`,`+toA+`]`), nil},
		{"conditions that cover all cases, after a default", twoPhases(`{"name":"x","type":"boolean","defaultValue":false}`, setX+`,"transitions":[`+toB+`,`+toA+`]`), nil},
		{"a condition on the default transition", twoPhases(`{"name":"x","type":"boolean","defaultValue":false}`, setX+`,"transitions":[`+toB+`,{"to":"a","isDefault":true,"condition":{"type":"simple","variable":"x","operator":"==","value":false}}]`), nil},
		{"a variable that the agent asserts", twoPhases(flag, `,"transitions":[`+toB+`,{"to":"a","isDefault":true}]`), []string{"/phases/0/transitions/0/condition/variable variable-unset"}},
		{"a variable that a validate action requests", twoPhases(flag, `,"exitActions":[{"action":"validate","target":"x"}],"transitions":[`+toB+`,{"to":"a","isDefault":true}]`), nil},
		{"a required variable", twoPhases(`{"name":"x","type":"boolean","required":true}`, `,"transitions":[`+toB+`,{"to":"a","isDefault":true}]`), nil},
		{"an answer with a transition", twoPhases("", askB), nil},
		{"no path to the second phase", twoPhases("", ""), []string{"/phases/1 phase-unreachable"}},
		{"a loop that only the engine could end", twoPhases(`{"name":"x","type":"boolean","defaultValue":true}`, setX+fmt.Sprintf(loopX, "")+`,"transitions":[{"to":"b"}]`), []string{"/phases/0/loops/0/condition loop-never-ends"}},
		{"a loop that an action of a step ends", twoPhases(`{"name":"x","type":"boolean","defaultValue":true}`, fmt.Sprintf(loopX, `,"actions":[{"action":"set","target":"x","value":false}]`)+`,"transitions":[{"to":"b"}]`), nil},
		{"a loop that an action on a member ends", twoPhases(`{"name":"x","type":"object","defaultValue":{"on":true}}`, strings.ReplaceAll(fmt.Sprintf(loopX, `,"actions":[{"action":"set","target":"x.on","value":false}]`), `"variable":"x"`, `"variable":"x.on"`)+`,"transitions":[{"to":"b"}]`), nil},
		{"a loop that the agent ends", twoPhases(`{"name":"x","type":"boolean","defaultValue":true}`, fmt.Sprintf(loopX, "")+`,"transitions":[{"to":"b"}]`), nil},
		{"an id with a slash", workflowText("", `,"steps":[{"id":"s","name":"S"}]`), nil},
		{"branches that become a gate", twoPhases(flag, `,"decisions":[{"id":"d","name":"D","branches":[{"id":"p","label":"P","transitionTo":"b"},{"id":"q","label":"Q","transitionTo":"a"}]}]`), nil},
		{"a skipped phase that ends the run", twoPhases("", `,"checkpoints":[{"id":"c","name":"C","message":"M","options":[{"id":"y","label":"Y","effect":{"skipPhases":["b"]}}]}],"transitions":[{"to":"b"}]`), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, lintText(t, c.text, phases.Layout{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestLintGuides checks guides against a known layout.
func TestLintGuides(t *testing.T) {
	t.Parallel()
	guide := func(path string) string {
		return workflowText("", `,"steps":[{"id":"s","name":"S","guide":{"path":"`+path+`"}}]`)
	}
	layout := phases.Layout{Guides: []string{"00-start-here.md", "03-review.md", "notes.md"}}
	for path, known := range map[string]bool{
		"03-review.md": true, "03-review": true, "guides/03-review.md": true, "./guides/03-review.md": true, "review": true, "review.md": true,
		"3": true, "03": true, "003": true, "0": true, "notes.md": true, "notes": true,
		"https://example.com/x.md": true, "../elsewhere/x.md": true,
		"04-review.md": false, "4": false, "revue": false,
	} {
		want := []string{"/phases/0/steps/0/guide/path guide-unknown"}
		if known {
			want = nil
		}
		if diff := cmp.Diff(want, lintText(t, guide(path), layout)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
		if got := lintText(t, guide(path), phases.Layout{}); got != nil {
			t.Errorf("%s without a layout: %v", path, got)
		}
	}
}

// TestLintWithoutPositions lints a workflow without its document.
func TestLintWithoutPositions(t *testing.T) {
	t.Parallel()
	const file = "../testdata/phases-lint.json"
	w, found := phases.Parse(file, shapetest.Load(t, file))
	if w == nil {
		t.Fatal(found)
	}
	if got := phases.Lint(w, nil, file, phases.Layout{}); len(got) < 20 {
		t.Errorf("only %d findings", len(got))
	}
}

// TestRealWorkflow lints a workflow from the corpus, if it is available, and checks the
// exact diagnostics.
func TestRealWorkflow(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(corpusPath("work-package/work-package.json"))
	if err != nil {
		t.Skip("the corpus is not available")
	}
	want := []string{
		"/phases/5/loops/0/over variable-undeclared",
		"/phases/6/decisions/0/branches/0/condition/variable variable-unset",
		"/phases/6/decisions/0/branches/1 branch-never",
		"/phases/6/transitions way-shadowed",
		"/phases/7/decisions/0/branches/0/condition/variable variable-unset",
		"/phases/7/transitions way-shadowed",
	}
	if diff := cmp.Diff(want, lintText(t, string(text), phases.Layout{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
