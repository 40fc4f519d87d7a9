package httpapi_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/evidence"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/workflow/criteria"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// testChecker executes no command: a check passes if its name is "test". Its results have
// every member.
type testChecker struct{}

func (testChecker) Workspace(context.Context, string) (*evidence.Workspace, error) {
	return &evidence.Workspace{
		Root: "/src/a", Host: "desk", Commit: strings.Repeat("c", 40), Tree: strings.Repeat("d", 40), WorkTree: strings.Repeat("e", 40),
		Dirty: []string{"a.go"}, DirtyCount: 1, DirtyHash: "f", DirtyStates: []string{"100644 f"}, IgnoreFiles: []string{"100644 f .gitignore"},
	}, nil
}

func (c testChecker) Check(ctx context.Context, r evidence.Request) (evidence.Result, error) {
	exit := 1
	result := evidence.Result{
		Type: r.Rule.Type, Name: r.Rule.Check, Describe: r.Rule.Describe(), Hash: "h", Argv: []string{"go", r.Rule.Check, "./..."}, Dir: ".",
		ExitCode: &exit, DurationMS: 1200, OutputHash: "o", OutputBytes: 9000, Head: "=== RUN\n", Tail: "FAIL\n",
		Instance: "i", Killed: 1, Reused: true, Sandboxed: true,
	}
	result.Workspace, _ = c.Workspace(ctx, "")
	switch r.Rule.Check {
	case "test":
		exit, result.Passed = 0, true
	case "lint":
		result.Undefined = true
	default:
		result.Inconclusive, result.Issue = true, "the check took too long"
	}
	return result, nil
}

const checkedWorkflow = `{"id":"checked","name":"Checked","description":"d","version":"1.0.0","steps":[
	{"id":"build","title":"Build","prompt":"Build it.","approval":"human","validationCriteria":[
		{"type":"contains","value":"BUILT","message":"say BUILT"},
		{"type":"check","check":"test"},{"type":"check","check":"lint"}]},
	{"id":"slow","title":"Slow","prompt":"Slow.","validationCriteria":[{"type":"check","check":"slow"}]}]}`

// TestCheckedRun checks that the position, the events and the submission of a run with checks
// have the labels and the results, in the form of the OpenAPI document.
func TestCheckedRun(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	a, err := s.runs.Start(t.Context(), callerAnn(), run.StartRequest{WorkflowID: "checked", Project: run.Project{Path: "/src/a"}})
	if err != nil {
		t.Fatal(err)
	}
	type checkedDetails struct {
		Handle     string
		Position   engine.Position
		Submission *run.Submission
		Events     []run.Event
	}
	get := func() (d checkedDetails) {
		t.Helper()
		s.wantStatus(t, 200, asAgent, "GET", "/api/runs/"+a.RunID, "").decodeInto(t, &d)
		return d
	}
	d := get()
	if !slices.Equal(d.Position.Checked, []int{1, 2}) || len(d.Position.Checks) != 2 || d.Position.Checks[0].Name != "test" {
		t.Errorf("the position is %+v", d.Position)
	}
	if _, err := s.runs.Continue(t.Context(), callerAnn(), run.ContinueRequest{Handle: d.Handle, Output: "BUILT"}); err != nil {
		t.Fatal(err)
	}
	d = get()
	if d.Submission == nil || d.Submission.Label != engine.LabelEvidence || len(d.Submission.Checks) != 2 || !d.Submission.Checks[1].Undefined {
		t.Errorf("the submission is %+v", d.Submission)
	}
	var kinds []string
	for _, e := range d.Events {
		kinds = append(kinds, strings.TrimSpace(e.Kind+" "+e.Label))
	}
	if want := []string{"run_created", "run_started", "check_run", "check_run", "step_completed evidence"}; !slices.Equal(kinds, want) {
		t.Errorf("the events are %v", kinds)
	}
	var result evidence.Result
	if err := json.Unmarshal(d.Events[2].Data, &result); err != nil || result.Type != criteria.NamedCheck || !result.Passed || result.Workspace.DirtyCount != 1 {
		t.Errorf("the result is %+v, %v", result, err)
	}
}

// TestContractTypesCheckRun checks that the OpenAPI document accepts only results of checks as
// the data of check_run.
func TestContractTypesCheckRun(t *testing.T) {
	t.Parallel()
	c := newContract(t, newHandler(t, nil))
	const event = `{"seq":1,"at":"2026-05-14T09:12:00Z","by":{"via":"server"},"kind":`
	const result = `"step":"build","key":"/1","type":"check","describe":"d","passed":true,"durationMs":1`
	for text, valid := range map[string]bool{
		event + `"check_run","data":{` + result + `}}`:                           true,
		event + `"check_run","data":{` + result + `,"stdout":"x"}}`:              false,
		event + `"check_run","data":{` + result + `,"workspace":{"root":1}}}`:    false,
		event + `"check_run","data":{"step":"build","output":"all tests pass"}}`: false,
		event + `"check_run"}`:                                               false,
		event + `"step_completed","data":{"step":"build"}}`:                  true,
		event + `"step_completed","label":"proved","data":{"step":"build"}}`: false,
	} {
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.componentSchema(t, "Event").Validate(value); (err == nil) != valid {
			t.Errorf("%s: %v", text, err)
		}
	}
}
