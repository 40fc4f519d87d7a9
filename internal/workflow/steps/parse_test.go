package steps_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
	"github.com/guideway-dev/guideway/internal/workflow/expr"
	"github.com/guideway-dev/guideway/internal/workflow/shape"
	"github.com/guideway-dev/guideway/internal/workflow/shape/shapetest"
	"github.com/guideway-dev/guideway/internal/workflow/steps"
)

// workflowText returns a workflow with the given steps.
func workflowText(list ...string) string {
	return `{"id":"a-flow","name":"A flow","description":"Does it.","version":"1.0.0","steps":[` + strings.Join(list, ",") + `]}`
}

// stepText returns a standard step with more members.
func stepText(id, more string) string {
	if more != "" {
		more = "," + more
	}
	return `{"id":"` + id + `","title":"T","prompt":"Do it."` + more + `}`
}

// loopText returns a loop with one inline step.
func loopText(config string) string {
	return `{"id":"the-loop","type":"loop","title":"T","loop":` + config + `,"body":[` + stepText("the-body", "") + `]}`
}

// parseWorkflow parses a JSON text.
func parseWorkflow(t *testing.T, text string) (*steps.Workflow, []guideway.Diagnostic, *doc.Node) {
	t.Helper()
	root, found := doc.Parse("x.json", []byte(text), doc.Limits{})
	if len(found) > 0 {
		t.Fatalf("%s: %v", text, found)
	}
	w, found := steps.Parse("x.json", root)
	return w, found, root
}

// messagesOf returns the messages of diagnostics.
func messagesOf(found []guideway.Diagnostic) []string {
	out := make([]string, len(found))
	for i, f := range found {
		out[i] = f.Message
	}
	return out
}

func TestWorkflow(t *testing.T) {
	t.Parallel()
	root := shapetest.Load(t, "../testdata/full.json")
	w, found := steps.Parse("full.json", root)
	if len(found) > 0 {
		t.Fatal(found)
	}
	first, second := w.Steps[0], w.Steps[1]
	if w.ID != "full-workflow" || w.Version != "1.2.3-beta.1+build.5" || len(w.Preconditions) != 2 || len(w.MetaGuidance) != 2 || len(w.Steps) != 8 {
		t.Errorf("got %+v", w)
	}
	if !first.AskForFiles || !first.HasValidation || first.Confirm.Op != expr.Always || first.RunCondition != nil || len(first.Criteria.Of) != 12 || first.AgentRole == "" || len(first.Guidance) != 2 {
		t.Errorf("got %+v", first)
	}
	if second.Confirm.Op != expr.Equals || second.RunCondition.Op != expr.Or || second.Criteria.Type != "and" {
		t.Errorf("got %+v", second)
	}
	if got := first.Calls[0].Args["times"]; got != 2.0 {
		t.Errorf("the argument times is %v", got)
	}
	var want steps.Function
	if err := json.Unmarshal([]byte(`{"name":"checkBuild","definition":"Build and report the outcome.","scope":"workflow","parameters":[
		{"name":"target","type":"string","required":true,"description":"What to build.","enum":["all","one"]},
		{"name":"times","type":"number","default":1},{"name":"flags","type":"array"},{"name":"env","type":"object"},{"name":"quiet","type":"boolean","enum":[true,false]}]}`), &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, w.Functions[0]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLoops(t *testing.T) {
	t.Parallel()
	root := shapetest.Load(t, "../testdata/full.json")
	w, found := steps.Parse("full.json", root)
	if len(found) > 0 {
		t.Fatal(found)
	}
	type seen struct {
		Type                             steps.LoopType
		Count, Max                       int
		CountVar, Items, Iteration, Item string
		Index, Ref, Body                 string
	}
	var got []seen
	for _, s := range w.Steps {
		if l := s.Loop; l != nil {
			got = append(got, seen{l.Type, l.Count, l.MaxIterations, l.CountVar, l.Items, l.IterationVar, l.ItemVar, l.IndexVar, l.BodyRef, l.Body[0].ID})
		}
	}
	const iteration, item, index = "currentIteration", "currentItem", "currentIndex"
	want := []seen{
		{steps.LoopWhile, 0, 5, "", "", "pass", item, index, "", "while-body"},
		{steps.LoopUntil, 0, 5, "", "", iteration, item, index, "until-body", "until-body"},
		{steps.LoopFor, 3, 3, "", "", iteration, item, index, "", "for-body"},
		{steps.LoopFor, 0, 30, "slices", "", iteration, item, index, "", "slice-body"},
		{steps.LoopForEach, 0, 50, "", "list", iteration, "item", "at", "", "each-body"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestConformance checks the messages of WorkRail, and that an invalid loop is reported
// once, as a loop.
func TestConformance(t *testing.T) {
	t.Parallel()
	const round = `"maxIterations":3`
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"36: missing fields", `{"id":"x"}`, []string{
			"Missing required field 'name' at root level. This field is mandatory and must be provided.",
			"Missing required field 'description' at root level. This field is mandatory and must be provided.",
			"Missing required field 'version' at root level. This field is mandatory and must be provided.",
			"Missing required field 'steps' at root level. This field is mandatory and must be provided.",
			"Field 'id' at root level has 1 character; at least 3 are required.",
		}},
		{"36: unknown root key", strings.Replace(workflowText(stepText("one-step", "")), `"id"`, `"extra":1,"id"`, 1), []string{
			"Unexpected property 'extra' found at root level. The steps dialect has no such property here.",
		}},
		{"37: unknown type", workflowText(loopText(`{"type":"repeat",` + round + `}`)), []string{"Loop 'the-loop': Invalid loop type 'repeat'. Must be one of: while, until, for, forEach"}},
		{"37: no type", workflowText(strings.Replace(loopText(`{"type":"for","count":1,`+round+`}`), `"type":"loop",`, "", 1)), []string{
			"Missing required field 'type' in loop 'the-loop'. This field is mandatory and must be provided.",
		}},
		{"37: no body", workflowText(`{"id":"the-loop","type":"loop","title":"T","loop":{"type":"for","count":1,` + round + `}}`), []string{
			"Missing required field 'body' in loop 'the-loop'. This field is mandatory and must be provided.",
		}},
		{"37: guidance", workflowText(strings.Replace(loopText(`{"type":"for","count":1,`+round+`}`), `"title"`, `"guidance":["G"],"title"`, 1)), []string{
			"Unexpected property 'guidance' found in loop 'the-loop'. The steps dialect has no such property here.",
		}},
		{"37: invalid body step", workflowText(`{"id":"the-loop","type":"loop","title":"T","loop":{"type":"for","count":1,` + round + `},"body":[{"id":"the-body","title":"T"}]}`), []string{
			"Missing required field 'prompt' in body step 1 ('the-body') of loop 'the-loop'. This field is mandatory and must be provided.",
		}},
		{"38: duplicate ids", workflowText(stepText("one-step", ""), stepText("one-step", "")), []string{"Duplicate step ID 'one-step'"}},
		{"38: duplicate in a body", workflowText(stepText("the-body", ""), loopText(`{"type":"for","count":1,`+round+`}`)), []string{"Duplicate step ID 'the-body' in loop body"}},
		{"38: dangling body", workflowText(`{"id":"the-loop","type":"loop","title":"T","loop":{"type":"for","count":1,` + round + `},"body":"nowhere"}`), []string{
			"Loop body references non-existent step 'nowhere' (loop 'the-loop')",
		}},
		{"38: nested", workflowText(`{"id":"the-loop","type":"loop","title":"T","loop":{"type":"for","count":1,` + round + `},"body":[{"id":"inner","type":"loop","title":"T","loop":{},"body":[]}]}`), []string{
			"Loop 'the-loop': Nested loops are not currently supported. Step 'inner' is a loop",
		}},
		{"38: too many rounds", workflowText(loopText(`{"type":"for","count":1,"maxIterations":1001}`)), []string{"Loop 'the-loop': maxIterations (1001) exceeds safety limit of 1000"}},
		{"38: no rounds", workflowText(loopText(`{"type":"for","count":1,"maxIterations":0}`)), []string{"Loop 'the-loop': maxIterations must be a positive number, but it is 0"}},
		{"38: while without condition", workflowText(loopText(`{"type":"while",` + round + `}`)), []string{"Loop 'the-loop': while loop requires a condition"}},
		{"38: for without count", workflowText(loopText(`{"type":"for",` + round + `}`)), []string{"Loop 'the-loop': for loop requires a count"}},
		{"38: forEach without items", workflowText(loopText(`{"type":"forEach",` + round + `}`)), []string{"Loop 'the-loop': forEach loop requires items"}},
		{"38: conditional body", workflowText(`{"id":"the-loop","type":"loop","title":"T","loop":{"type":"for","count":1,`+round+`},"body":"one-step"}`, stepText("one-step", `"runCondition":{"var":"x"}`)), []string{
			"Step 'one-step' is a loop body but has runCondition - this may cause conflicts (loop 'the-loop')",
		}},
		{"38: unknown function", workflowText(stepText("one-step", `"functionCalls":[{"name":"f","args":{}}]`)), []string{"Unknown function 'f' in functionCalls (in functionCalls[0] of step 'one-step')"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w, found, _ := parseWorkflow(t, c.text)
			if w != nil {
				t.Error("it loads")
			}
			if diff := cmp.Diff(c.want, messagesOf(found)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseMissingDocument(t *testing.T) {
	t.Parallel()
	for _, root := range []*doc.Node{nil, {Kind: doc.Array}, {Kind: doc.Null}} {
		if w, found := steps.Parse("x", root); w != nil || len(found) != 1 || found[0].Code != shape.CodeObject {
			t.Errorf("got %v, %v", w, found)
		}
	}
}

func TestSuggestions(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"promt": "prompt", "Prompt": "prompt", "agent_role": "agentRole", "agent-role": "agentRole", "role": "agentRole", "guidence": "guidance",
		"condition": "runCondition", "when": "runCondition", "requiresConfirmation": "requireConfirmation", "criteria": "validationCriteria", "functionReference": "functionReferences",
		"instructions": "prompt", "zzz": "", "dependsOn": "",
	} {
		_, found, _ := parseWorkflow(t, workflowText(stepText("one-step", `"`+given+`":"agentRole text"`)))
		i := slices.IndexFunc(found, func(d guideway.Diagnostic) bool { return d.Code == shape.CodeUnexpected })
		if i < 0 {
			// The duplicate key is reported separately.
			continue
		}
		got, _ := strings.CutPrefix(found[i].Fix, "did you mean '")
		got = strings.TrimSuffix(got, "'?")
		if want == "" && strings.HasPrefix(found[i].Fix, "did you mean") || want != "" && got != want {
			t.Errorf("%s: %s", given, found[i].Fix)
		}
	}
}

// TestSource checks the canonical source of steps.
func TestSource(t *testing.T) {
	t.Parallel()
	w, found, _ := parseWorkflow(t, workflowText(
		stepWithPrompt("one-step", "x", `"requireConfirmation": false, "runCondition": {"var":"a", "equals": 1.0}, "validationCriteria": [{"type":"contains", "value":"v", "message":"m"}]`),
		loopWithBody(`{"type":"for","count":2,"maxIterations":3}`, `[`+stepWithPrompt("in-line", "{\\\"body\\\":\\\"one-step\\\"}", "")+`]`),
		strings.Replace(loopWithBody(`{"type":"while","condition":{"var":"a","equals":{"body":"the-body"}},"maxIterations":3}`, `"the-body"`), "the-loop", "two-loop", 1),
		stepWithPrompt("the-body", "x", ""),
	))
	if w == nil {
		t.Fatal(found)
	}
	want := []steps.Source{
		{Confirm: `false`, Condition: `{"equals":1,"var":"a"}`, Criteria: `[{"message":"m","type":"contains","value":"v"}]`},
		{Loop: `{"body":[{"id":"in-line","prompt":"{\"body\":\"one-step\"}","title":"T"}],"id":"the-loop","loop":{"count":2,"maxIterations":3,"type":"for"},"title":"T","type":"loop"}`},
		{Loop: `{"body":[{"id":"the-body","prompt":"x","title":"T"}],"id":"two-loop","loop":{"condition":{"equals":{"body":"the-body"},"var":"a"},"maxIterations":3,"type":"while"},"title":"T","type":"loop"}`},
		{},
	}
	for i, step := range w.Steps {
		if diff := cmp.Diff(want[i], step.Source); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.ID, diff)
		}
	}
}
