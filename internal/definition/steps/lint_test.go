package steps_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/guideway-dev/guideway/internal/definition/doc"
	"github.com/guideway-dev/guideway/internal/definition/steps"
)

// say is a step whose prompt is the text.
func say(id, text, more string) string {
	if more != "" {
		more = "," + more
	}
	return `{"id":"` + id + `","title":"T","prompt":"` + text + `"` + more + `}`
}

// repeat is a loop with a body.
func repeat(config, body string) string {
	return `{"id":"the-loop","type":"loop","title":"T","loop":` + config + `,"body":` + body + `}`
}

// TestLintRules has, for each rule, what sets it off and what nearly does.
func TestLintRules(t *testing.T) {
	t.Parallel()
	const (
		untilDone = `{"type":"until","condition":{"var":"done","equals":true},"maxIterations":5}`
		thrice    = `{"type":"for","count":3,"maxIterations":3}`
	)
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"set before", flow(say("one-step", "Set size.", ""), say("two-step", "x", `"runCondition":{"var":"size"}`)), nil},
		{"set by another case", flow(say("one-step", "The Size: choose.", ""), say("two-step", "x", `"runCondition":{"var":"size"}`)), nil},
		{"part of a word is no mention", flow(say("one-step", "Set sizes, sizeB.", ""), say("two-step", "x", `"runCondition":{"var":"size"}`)), []string{"variable-unset"}},
		{"a placeholder is no mention", flow(say("one-step", "Say {{size}}.", "")), []string{"template-unset"}},
		{"own prompt comes too late", flow(say("one-step", "Set size.", `"runCondition":{"var":"size"}`)), []string{"variable-late"}},
		{"a result is confirmed", flow(say("one-step", "Set size.", `"requireConfirmation":{"var":"size"}`)), nil},
		{"a loop's beginning is confirmed", flow(repeat(thrice, `[`+say("the-body", "Set size.", "")+`],"requireConfirmation":{"var":"size"}`)), []string{"variable-late"}},
		{"a rule reads what its step says", flow(say("one-step", "Set size.", `"validationCriteria":[{"type":"contains","value":"x","message":"m","condition":{"var":"size"}}]`)), nil},
		{"engine variables", flow(say("one-step", "x", `"runCondition":{"var":"_contextSize","gt":3}`)), nil},
		{"once per variable", flow(say("one-step", "x", `"runCondition":{"var":"size"}`), say("two-step", "x", `"runCondition":{"var":"size"}`)), []string{"variable-unset"}},
		{"a round reads the body", flow(repeat(thrice, `[`+say("the-body", "Set size.", "")+`,`+say("body-two", "x", `"runCondition":{"var":"size"}`)+`]`)), nil},
		{"loop variables", flow(repeat(thrice, `[`+say("the-body", "{{currentIteration}}", `"runCondition":{"var":"currentIteration","gt":1}`)+`]`)), nil},
		{"no item in a for loop", flow(repeat(thrice, `[`+say("the-body", "{{currentItem}}", "")+`]`)), []string{"template-unset"}},
		{"an index by name in a for loop", flow(repeat(`{"type":"for","count":3,"maxIterations":3,"indexVar":"at"}`, `[`+say("the-body", "{{at + 1}}", "")+`]`)), nil},
		{"loop variables in a body by id", flow(repeat(thrice, `"the-body"`), say("the-body", "{{currentIteration}}", "")), nil},
		{"loop variables outside", flow(repeat(thrice, `[`+say("the-body", "x", "")+`]`), say("one-step", "{{currentIteration}}", `"runCondition":{"var":"currentIteration"}`)), []string{"loop-variable-outside", "template-unset"}},
		{"until its body says so", flow(repeat(untilDone, `[`+say("the-body", "Set done.", "")+`]`)), nil},
		{"until nobody says so", flow(say("one-step", "Set done.", ""), repeat(untilDone, `[`+say("the-body", "x", "")+`]`)), []string{"loop-condition-untouched"}},
		{"until the round", flow(repeat(`{"type":"until","condition":{"var":"currentIteration","gt":2},"maxIterations":5}`, `[`+say("the-body", "x", "")+`]`)), nil},
		{"a body by id says so", flow(repeat(untilDone, `"the-body"`), say("the-body", "Set done.", "")), nil},
		{"a round that there is", flow(repeat(thrice, `[`+say("the-body", "x", `"runCondition":{"var":"currentIteration","equals":3}`)+`]`)), nil},
		{"a round that there is not", flow(repeat(thrice, `[`+say("the-body", "x", `"runCondition":{"var":"currentIteration","equals":4}`)+`]`)), []string{"step-unreachable"}},
		{"many rounds on purpose", flow(repeat(`{"type":"for","count":200,"maxIterations":200}`, `[`+say("the-body", "x", "")+`]`)), []string{"loop-long"}},
		{"a safe bound", flow(repeat(`{"type":"for","count":3,"maxIterations":200}`, `[`+say("the-body", "x", "")+`]`)), nil},
		{"diagrams are no placeholders", flow(say("one-step", `A{{\"x\"}} B{{'y'}} {{}}`, "")), nil},
		{"a function in prose", flow(say("one-step", "checkBuild() builds.", `"functionReferences":["checkBuild()"]`)), nil},
		{"a true confirmation", flow(say("one-step", "x", `"requireConfirmation":true`)), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w, found, root := parse(t, c.text)
			if w == nil {
				t.Fatal(found)
			}
			var got []string
			for _, f := range steps.Lint(w, root, "x.json") {
				got = append(got, f.Code)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestLintWithoutPositions lints a workflow whose document is gone.
func TestLintWithoutPositions(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../testdata/lint-*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		root, _ := doc.Parse(file, data, doc.Limits{})
		w, found := steps.Parse(file, root)
		if len(found) > 0 {
			t.Fatal(found)
		}
		if got := steps.Lint(w, nil, file); len(got) == 0 {
			t.Errorf("%s: nothing is found", file)
		}
	}
}
