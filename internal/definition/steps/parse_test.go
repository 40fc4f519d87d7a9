package steps_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/condition"
	"github.com/guideway-dev/guideway/internal/definition/doc"
	"github.com/guideway-dev/guideway/internal/definition/shape/shapetest"
	"github.com/guideway-dev/guideway/internal/definition/steps"
)

// flow is a workflow with the steps given.
func flow(list ...string) string {
	return `{"id":"a-flow","name":"A flow","description":"Does it.","version":"1.0.0","steps":[` + strings.Join(list, ",") + `]}`
}

// step is a standard step with more members.
func step(id, more string) string {
	if more != "" {
		more = "," + more
	}
	return `{"id":"` + id + `","title":"T","prompt":"Do it."` + more + `}`
}

// loop is a loop of one inline step.
func loop(config string) string {
	return `{"id":"the-loop","type":"loop","title":"T","loop":` + config + `,"body":[` + step("the-body", "") + `]}`
}

// parse reads a text that is JSON.
func parse(t *testing.T, text string) (*steps.Workflow, []guideway.Diagnostic, *doc.Node) {
	t.Helper()
	root, found := doc.Parse("x.json", []byte(text), doc.Limits{})
	if len(found) > 0 {
		t.Fatalf("%s: %v", text, found)
	}
	w, found := steps.Parse("x.json", root)
	return w, found, root
}

// messages are the texts of findings.
func messages(found []guideway.Diagnostic) []string {
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
	if !first.AskForFiles || !first.HasValidation || first.Confirm.Op != condition.Always || first.RunCondition != nil || len(first.Criteria.Of) != 4 || first.AgentRole == "" || len(first.Guidance) != 2 {
		t.Errorf("got %+v", first)
	}
	if second.Confirm.Op != condition.Equals || second.RunCondition.Op != condition.Or || second.Criteria.Type != "and" {
		t.Errorf("got %+v", second)
	}
	if got := first.Calls[0].Args["times"]; got != 2.0 {
		t.Errorf("times is %v", got)
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

// TestConformance holds the cases of the dialect's origin: what its messages
// say, and that a loop's fault is said once and of the loop.
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
			"Field 'id' at root level has 1 character; at least 3 are needed.",
		}},
		{"36: unknown root key", strings.Replace(flow(step("one-step", "")), `"id"`, `"extra":1,"id"`, 1), []string{
			"Unexpected property 'extra' found at root level. The steps dialect has no such property here.",
		}},
		{"37: unknown type", flow(loop(`{"type":"repeat",` + round + `}`)), []string{"Loop 'the-loop': Invalid loop type 'repeat'. Must be one of: while, until, for, forEach"}},
		{"37: no mark", flow(strings.Replace(loop(`{"type":"for","count":1,`+round+`}`), `"type":"loop",`, "", 1)), []string{
			"Missing required field 'type' in loop 'the-loop'. This field is mandatory and must be provided.",
		}},
		{"37: no body", flow(`{"id":"the-loop","type":"loop","title":"T","loop":{"type":"for","count":1,` + round + `}}`), []string{
			"Missing required field 'body' in loop 'the-loop'. This field is mandatory and must be provided.",
		}},
		{"37: a prompt", flow(strings.Replace(loop(`{"type":"for","count":1,`+round+`}`), `"title"`, `"prompt":"P","title"`, 1)), []string{
			"Unexpected property 'prompt' found in loop 'the-loop'. The steps dialect has no such property here.",
		}},
		{"37: fault of a body step", flow(`{"id":"the-loop","type":"loop","title":"T","loop":{"type":"for","count":1,` + round + `},"body":[{"id":"the-body","title":"T"}]}`), []string{
			"Missing required field 'prompt' in body step 1 ('the-body') of loop 'the-loop'. This field is mandatory and must be provided.",
		}},
		{"38: duplicate ids", flow(step("one-step", ""), step("one-step", "")), []string{"Duplicate step ID 'one-step'"}},
		{"38: duplicate in a body", flow(step("the-body", ""), loop(`{"type":"for","count":1,`+round+`}`)), []string{"Duplicate step ID 'the-body' in loop body"}},
		{"38: dangling body", flow(`{"id":"the-loop","type":"loop","title":"T","loop":{"type":"for","count":1,` + round + `},"body":"nowhere"}`), []string{
			"Loop body references non-existent step 'nowhere' (loop 'the-loop')",
		}},
		{"38: nested", flow(`{"id":"the-loop","type":"loop","title":"T","loop":{"type":"for","count":1,` + round + `},"body":[{"id":"inner","type":"loop","title":"T","loop":{},"body":[]}]}`), []string{
			"Loop 'the-loop': Nested loops are not currently supported. Step 'inner' is a loop",
		}},
		{"38: too many rounds", flow(loop(`{"type":"for","count":1,"maxIterations":1001}`)), []string{"Loop 'the-loop': maxIterations (1001) exceeds safety limit of 1000"}},
		{"38: no rounds", flow(loop(`{"type":"for","count":1,"maxIterations":0}`)), []string{"Loop 'the-loop': maxIterations must be a positive number, but it is 0"}},
		{"38: while without condition", flow(loop(`{"type":"while",` + round + `}`)), []string{"Loop 'the-loop': while loop requires a condition"}},
		{"38: for without count", flow(loop(`{"type":"for",` + round + `}`)), []string{"Loop 'the-loop': for loop requires a count"}},
		{"38: forEach without items", flow(loop(`{"type":"forEach",` + round + `}`)), []string{"Loop 'the-loop': forEach loop requires items"}},
		{"38: conditional body", flow(`{"id":"the-loop","type":"loop","title":"T","loop":{"type":"for","count":1,`+round+`},"body":"one-step"}`, step("one-step", `"runCondition":{"var":"x"}`)), []string{
			"Step 'one-step' is a loop body but has runCondition - this may cause conflicts (loop 'the-loop')",
		}},
		{"38: unknown function", flow(step("one-step", `"functionCalls":[{"name":"f","args":{}}]`)), []string{"Unknown function 'f' in functionCalls (in functionCalls[0] of step 'one-step')"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w, found, _ := parse(t, c.text)
			if w != nil {
				t.Error("it loads")
			}
			if diff := cmp.Diff(c.want, messages(found)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestNothingIsNoWorkflow(t *testing.T) {
	t.Parallel()
	for _, root := range []*doc.Node{nil, {Kind: doc.Array}, {Kind: doc.Null}} {
		if w, found := steps.Parse("x", root); w != nil || len(found) != 1 || found[0].Code != steps.CodeDefinitionObject {
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
		_, found, _ := parse(t, flow(step("one-step", `"`+given+`":"agentRole text"`)))
		i := slices.IndexFunc(found, func(d guideway.Diagnostic) bool { return d.Code == steps.CodeUnexpected })
		if i < 0 {
			// A key twice is another finding.
			continue
		}
		got, _ := strings.CutPrefix(found[i].Fix, "did you mean '")
		got = strings.TrimSuffix(got, "'?")
		if want == "" && strings.HasPrefix(found[i].Fix, "did you mean") || want != "" && got != want {
			t.Errorf("%s: %s", given, found[i].Fix)
		}
	}
}

// TestSource finds what the document says of steps in it.
func TestSource(t *testing.T) {
	t.Parallel()
	w, found, _ := parse(t, flow(
		say("one-step", "x", `"requireConfirmation": false, "runCondition": {"var":"a", "equals": 1.0}, "validationCriteria": [{"type":"contains", "value":"v", "message":"m"}]`),
		repeat(`{"type":"for","count":2,"maxIterations":3}`, `[`+say("in-line", "{\\\"body\\\":\\\"one-step\\\"}", "")+`]`),
		strings.Replace(repeat(`{"type":"while","condition":{"var":"a","equals":{"body":"the-body"}},"maxIterations":3}`, `"the-body"`), "the-loop", "two-loop", 1),
		say("the-body", "x", ""),
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
