package steps_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/guideway-dev/guideway/internal/workflow/doc"
	"github.com/guideway-dev/guideway/internal/workflow/steps"
)

// stepWithPrompt returns a step with the prompt.
func stepWithPrompt(id, text, more string) string {
	if more != "" {
		more = "," + more
	}
	return `{"id":"` + id + `","title":"T","prompt":"` + text + `"` + more + `}`
}

// loopWithBody returns a loop with a body.
func loopWithBody(config, body string) string {
	return `{"id":"the-loop","type":"loop","title":"T","loop":` + config + `,"body":` + body + `}`
}

// TestLintRules tests each rule with an input that violates it and a similar one that does
// not.
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
		{"set before", workflowText(stepWithPrompt("one-step", "Set size.", ""), stepWithPrompt("two-step", "x", `"runCondition":{"var":"size"}`)), nil},
		{"set by another case", workflowText(stepWithPrompt("one-step", "The Size: choose.", ""), stepWithPrompt("two-step", "x", `"runCondition":{"var":"size"}`)), nil},
		{"a part of a word is not a mention", workflowText(stepWithPrompt("one-step", "Set sizes, sizeB.", ""), stepWithPrompt("two-step", "x", `"runCondition":{"var":"size"}`)), []string{"variable-unset"}},
		{"a placeholder is not a mention", workflowText(stepWithPrompt("one-step", "Say {{size}}.", "")), []string{"template-unset"}},
		{"the step's own prompt is too late", workflowText(stepWithPrompt("one-step", "Set size.", `"runCondition":{"var":"size"}`)), []string{"variable-late"}},
		{"confirmation after the step", workflowText(stepWithPrompt("one-step", "Set size.", `"requireConfirmation":{"var":"size"}`)), nil},
		{"confirmation before a loop", workflowText(loopWithBody(thrice, `[`+stepWithPrompt("the-body", "Set size.", "")+`],"requireConfirmation":{"var":"size"}`)), []string{"variable-late"}},
		{"a rule reads a variable of its step's prompt", workflowText(stepWithPrompt("one-step", "Set size.", `"validationCriteria":[{"type":"contains","value":"x","message":"m","condition":{"var":"size"}}]`)), nil},
		{"engine variables", workflowText(stepWithPrompt("one-step", "x", `"runCondition":{"var":"_contextSize","gt":3}`)), nil},
		{"once per variable", workflowText(stepWithPrompt("one-step", "x", `"runCondition":{"var":"size"}`), stepWithPrompt("two-step", "x", `"runCondition":{"var":"size"}`)), []string{"variable-unset"}},
		{"a round reads a variable of the body", workflowText(loopWithBody(thrice, `[`+stepWithPrompt("the-body", "Set size.", "")+`,`+stepWithPrompt("body-two", "x", `"runCondition":{"var":"size"}`)+`]`)), nil},
		{"loop variables", workflowText(loopWithBody(thrice, `[`+stepWithPrompt("the-body", "{{currentIteration}}", `"runCondition":{"var":"currentIteration","gt":1}`)+`]`)), nil},
		{"no item in a for loop", workflowText(loopWithBody(thrice, `[`+stepWithPrompt("the-body", "{{currentItem}}", "")+`]`)), []string{"template-unset"}},
		{"an index by name in a for loop", workflowText(loopWithBody(`{"type":"for","count":3,"maxIterations":3,"indexVar":"at"}`, `[`+stepWithPrompt("the-body", "{{at + 1}}", "")+`]`)), nil},
		{"loop variables in a body by id", workflowText(loopWithBody(thrice, `"the-body"`), stepWithPrompt("the-body", "{{currentIteration}}", "")), nil},
		{"loop variables outside", workflowText(loopWithBody(thrice, `[`+stepWithPrompt("the-body", "x", "")+`]`), stepWithPrompt("one-step", "{{currentIteration}}", `"runCondition":{"var":"currentIteration"}`)), []string{"loop-variable-outside", "template-unset"}},
		{"until loop ended by its body", workflowText(loopWithBody(untilDone, `[`+stepWithPrompt("the-body", "Set done.", "")+`]`)), nil},
		{"until loop without an end", workflowText(stepWithPrompt("one-step", "Set done.", ""), loopWithBody(untilDone, `[`+stepWithPrompt("the-body", "x", "")+`]`)), []string{"loop-condition-untouched"}},
		{"until loop that reads the round", workflowText(loopWithBody(`{"type":"until","condition":{"var":"currentIteration","gt":2},"maxIterations":5}`, `[`+stepWithPrompt("the-body", "x", "")+`]`)), nil},
		{"until loop ended by a body by id", workflowText(loopWithBody(untilDone, `"the-body"`), stepWithPrompt("the-body", "Set done.", "")), nil},
		{"an existing round", workflowText(loopWithBody(thrice, `[`+stepWithPrompt("the-body", "x", `"runCondition":{"var":"currentIteration","equals":3}`)+`]`)), nil},
		{"a missing round", workflowText(loopWithBody(thrice, `[`+stepWithPrompt("the-body", "x", `"runCondition":{"var":"currentIteration","equals":4}`)+`]`)), []string{"step-unreachable"}},
		{"many rounds by an explicit count", workflowText(loopWithBody(`{"type":"for","count":200,"maxIterations":200}`, `[`+stepWithPrompt("the-body", "x", "")+`]`)), []string{"loop-long"}},
		{"a high maximum with a low count", workflowText(loopWithBody(`{"type":"for","count":3,"maxIterations":200}`, `[`+stepWithPrompt("the-body", "x", "")+`]`)), nil},
		{"diagrams are not placeholders", workflowText(stepWithPrompt("one-step", `A{{\"x\"}} B{{'y'}} {{}}`, "")), nil},
		{"a function that a prompt mentions", workflowText(stepWithPrompt("one-step", "checkBuild() builds.", `"functionReferences":["checkBuild()"]`)), nil},
		{"a true confirmation", workflowText(stepWithPrompt("one-step", "x", `"requireConfirmation":true`)), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w, found, root := parseWorkflow(t, c.text)
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

// TestLintWithoutPositions lints a workflow without its document.
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
			t.Errorf("%s: Lint returned no diagnostics", file)
		}
	}
}
