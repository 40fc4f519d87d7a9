package httpapi_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/run"
)

// The checkpoints of a run can be listed, read and compared, and its context is shown by
// layer. Every answer matches the OpenAPI document, and the checkpoints of another user are
// hidden.
func TestRunCheckpoints(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	a, err := s.runs.Start(t.Context(), callerAnn(), run.StartRequest{
		WorkflowID: "plain", Context: map[string]any{"userGoal": "ship", "n": json.Number("12345678901234567890"), "debugLog": strings.Repeat("a line of a log\n", 60)},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.runs.Mark(t.Context(), callerAnn(), run.MarkRequest{Ref: run.Ref{RunID: a.RunID}, Keys: []string{"n"}, Tags: []string{"limit"}}); err != nil {
		t.Fatal(err)
	}
	a, err = s.runs.Continue(t.Context(), callerAnn(), run.ContinueRequest{Handle: a.Handle, Output: "the plan", Context: map[string]any{"size": "small"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.keeper.Close(); err != nil { // Close writes the pending checkpoints.
		t.Fatal(err)
	}
	runID := a.RunID
	if _, err := s.memory.Save(t.Context(), callerAnn().Principal, checkpoint.SaveRequest{
		Session: runID, Run: runID, RunSeq: 1, Context: json.RawMessage(`{"userGoal":"ship it","added":[1]}`), Name: "by hand", Tags: []string{"auth"},
	}); err != nil {
		t.Fatal(err)
	}

	var list struct {
		Count       int
		Checkpoints []struct {
			CheckpointID, Name, Kind string
			Head                     bool
		}
		Next      string
		Automatic struct{ Saved int }
	}
	s.wantStatus(t, 200, asAgent, "GET", "/api/runs/"+runID+"/checkpoints", "").decodeInto(t, &list)
	if list.Count != 2 || list.Checkpoints[0].Name != "by hand" || !list.Checkpoints[0].Head || list.Checkpoints[1].Name != "gate plan" || list.Checkpoints[1].Kind != "auto" || list.Automatic.Saved != 1 {
		t.Fatalf("listed %+v", list)
	}
	newest, gate := list.Checkpoints[0].CheckpointID, list.Checkpoints[1].CheckpointID
	for query, want := range map[string]int{
		"": 2, "?session=" + runID: 2, "?tag=auth": 1, "?workflow=plain": 1, "?q=ship": 2, "?q=zeppelin": 0, "?since=2999-01-01T00:00:00Z": 0, "?until=2000-01-01T00:00:00Z": 0,
	} {
		s.wantStatus(t, 200, asAgent, "GET", "/api/checkpoints"+query, "").decodeInto(t, &list)
		if list.Count != want {
			t.Errorf("/api/checkpoints%s: %d, want %d", query, list.Count, want)
		}
	}
	s.wantStatus(t, 200, asAgent, "GET", "/api/checkpoints?limit=1", "").decodeInto(t, &list)
	if list.Next == "" {
		t.Fatalf("the first page is %+v", list)
	}
	s.wantStatus(t, 200, asAgent, "GET", "/api/checkpoints?limit=1&cursor="+list.Next, "").decodeInto(t, &list)
	if list.Checkpoints[0].CheckpointID != gate {
		t.Errorf("the second page is %+v", list)
	}

	shown := s.wantStatus(t, 200, asAgent, "GET", "/api/checkpoints/"+gate, "")
	for _, want := range []string{"12345678901234567890", `"size":"small"`, `"kind":"gate"`, `"head":false`} {
		if !strings.Contains(string(shown.body), want) {
			t.Errorf("the checkpoint lacks %s: %s", want, shown.body)
		}
	}
	if strings.Contains(string(shown.body), `"_run"`) || strings.Contains(string(shown.body), "handle") {
		t.Errorf("the answer contains internal members: %s", shown.body)
	}
	diff := s.wantStatus(t, 200, asAgent, "GET", "/api/checkpoints/"+newest+"/diff", "")
	if !strings.Contains(string(diff.body), `"/added"`) {
		t.Errorf("the difference is %s", diff.body)
	}
	s.wantStatus(t, 200, asAgent, "GET", "/api/checkpoints/"+gate+"/diff?from="+newest, "")

	context := s.wantStatus(t, 200, asAgent, "GET", "/api/runs/"+runID+"/context", "")
	for _, want := range []string{`"rule":"mark"`, `"limit"`, `"key":"debugLog","layer":"ephemeral"`, `"cut":true`} {
		if !strings.Contains(string(context.body), want) {
			t.Errorf("the context lacks %s: %s", want, context.body)
		}
	}
	if now, err := s.runs.Status(t.Context(), callerAnn(), run.Ref{RunID: runID}); err != nil || now.Handle != a.Handle {
		t.Errorf("a read has changed the run: %+v, %v", now, err)
	}
	refusedReads(t, s, runID, newest, gate)
}

// refusedReads checks that reads of checkpoints that do not exist or belong to another user
// are refused.
func refusedReads(t *testing.T, s *rig, runID, newest, gate string) {
	t.Helper()
	_, bob := s.loginBrowser(t, "bob")
	for _, path := range []string{"/api/checkpoints/" + gate, "/api/checkpoints/" + gate + "/diff?from=" + newest, "/api/runs/" + runID + "/context"} {
		s.wantCode(t, 404, guideway.CodeNotFound, bob, "GET", path, "")
		s.wantStatus(t, 401, withoutCredential, "GET", path, "")
	}
	var list struct{ Count int }
	s.wantStatus(t, 200, bob, "GET", "/api/runs/"+runID+"/checkpoints", "").decodeInto(t, &list)
	if list.Count != 0 {
		t.Errorf("another user can list %d checkpoints", list.Count)
	}
	s.wantCode(t, 404, guideway.CodeNotFound, asAgent, "GET", "/api/checkpoints/c_nowhere", "")
	s.wantCode(t, 400, guideway.CodeInvalid, asAgent, "GET", "/api/checkpoints/"+gate+"/diff", "")
	s.wantCode(t, 400, guideway.CodeInvalid, asAgent, "GET", "/api/checkpoints?cursor=x", "")
	s.wantCode(t, 400, guideway.CodeInvalid, asAgent, "GET", "/api/checkpoints?limit=0", "")
}
