package httpapi_test

import (
	"bytes"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/workflow"
	"github.com/guideway-dev/guideway/internal/workflow/phases"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// wantState requests the state of a run and checks it against the published schema. The rig
// checks it against the OpenAPI document.
func (s *rig) wantState(t *testing.T, who credential, id string) engine.StateDocument {
	t.Helper()
	got := s.wantStatus(t, 200, who, "GET", "/api/runs/"+id+"/state", "")
	text := workflow.Schema(workflow.As{Dialect: guideway.DialectPhases, Kind: phases.KindState})
	published, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("state.json", published); err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(got.body))
	if err == nil {
		err = c.MustCompile("state.json").Validate(value)
	}
	if err != nil {
		t.Errorf("%v\n%s", err, got.body)
	}
	var d engine.StateDocument
	got.decodeInto(t, &d)
	return d
}

// A phase workflow is served like other workflows: it is listed, a person answers its
// checkpoint, and its state can be read at every position.
func TestPhaseWorkflow(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	_, browser := s.loginBrowser(t, "ann")
	var shown struct {
		Workflow struct{ ID, Name, Dialect string }
	}
	s.wantStatus(t, 200, asAgent, "GET", "/api/workflows/phased", "").decodeInto(t, &shown)
	if shown.Workflow.ID != "phased" || shown.Workflow.Name != "Phased" || shown.Workflow.Dialect != "phases" {
		t.Errorf("%+v", shown)
	}
	var a run.Answer
	s.wantStatus(t, 201, asAgent, "POST", "/api/runs", `{"workflowId":"phased","context":{"list":["a",{"b":1}]}}`).decodeInto(t, &a)
	if a.Position.ID != "draft" || a.Position.Phase == nil || a.Position.Phase.Number != 1 || a.Position.Phase.Of != 4 {
		t.Fatalf("%+v", a.Position)
	}
	if d := s.wantState(t, asAgent, a.RunID); d.WorkflowID != "phased" || d.CurrentPhase != 1 || d.CurrentStep != 1 || d.Status != "running" {
		t.Errorf("%+v", d)
	}
	next := func(r run.ContinueRequest) {
		t.Helper()
		r.Handle = a.Handle
		got, err := s.runs.Continue(t.Context(), callerAnn(), r)
		if err != nil {
			t.Fatal(err)
		}
		a = *got
	}
	next(run.ContinueRequest{Output: "a draft"})
	if d := s.wantState(t, asAgent, a.RunID); d.Status != "paused" {
		t.Errorf("%+v", d)
	}
	// The agent's token cannot answer the checkpoint, because only a person may.
	s.wantCode(t, 403, guideway.CodeRefused, asAgent, "POST", "/api/runs/"+a.RunID+"/answer", `{"optionId":"good"}`)
	s.wantStatus(t, 200, browser, "POST", "/api/runs/"+a.RunID+"/answer", `{"optionId":"good","note":"it is","stepId":"word"}`).decodeInto(t, &a)
	if a.Position.Loop == nil || a.Position.Loop.Item != "a" || a.Position.Phase.ID != "work" {
		t.Fatalf("%+v", a.Position)
	}
	next(run.ContinueRequest{Output: "made"})
	d := s.wantState(t, asAgent, a.RunID)
	if d.CurrentPhase != 3 || len(d.ActiveLoops) != 1 || d.ActiveLoops[0].CurrentIteration != 2 || d.CheckpointResponses["1-1"].OptionID != "good" || d.DecisionOutcomes["1-1"].BranchID != "on" {
		t.Errorf("%+v", d)
	}
	s.wantStatus(t, 200, asAgent, "GET", "/api/runs/"+a.RunID, "")
	s.wantStatus(t, 200, asAgent, "GET", "/api/runs", "")
	next(run.ContinueRequest{Output: "made"})
	next(run.ContinueRequest{Output: "told"})
	if d := s.wantState(t, asAgent, a.RunID); d.Status != "completed" || d.CompletedAt == nil {
		t.Errorf("%+v", d)
	}
}

// The state of a run of a step workflow is in phase 1. The state of another user's run is
// hidden.
func TestStepWorkflowState(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	a := s.startAtGate(t, callerAnn(), "plain", "g")
	if d := s.wantState(t, asAgent, a.RunID); d.WorkflowID != "plain" || d.CurrentPhase != 1 || d.Status != "paused" {
		t.Errorf("%+v", d)
	}
	ben := callerAnn()
	ben.User = "ben"
	other := s.startAtGate(t, ben, "plain", "g")
	s.wantCode(t, 404, guideway.CodeNotFound, asAgent, "GET", "/api/runs/"+other.RunID+"/state", "")
	s.wantCode(t, 404, guideway.CodeNotFound, asAgent, "GET", "/api/runs/r_00000000000000000000000/state", "")
	s.wantStatus(t, 401, withoutCredential, "GET", "/api/runs/"+a.RunID+"/state", "")
}
