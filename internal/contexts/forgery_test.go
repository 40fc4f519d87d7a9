package contexts_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/run"
)

// TestForgedCheckpointDecidesNothing checks that loading a forged or imported checkpoint
// adds no event, sets no variable, and gives no access to the run of another user.
func TestForgedCheckpointDecidesNothing(t *testing.T) {
	t.Parallel()
	r := setupRig(t)
	a, err := r.runs.Start(t.Context(), testCaller(), run.StartRequest{WorkflowID: "release", Context: map[string]any{"parts": []any{"api"}}})
	mustSucceed(t, err)
	for a.Position.Kind != engine.PositionGate {
		a, err = handIn(t.Context(), r, a, "Did it.")
		mustSucceed(t, err)
	}
	d, err := r.runs.Get(t.Context(), testCaller(), run.Ref{RunID: a.RunID})
	mustSucceed(t, err)
	forged := json.RawMessage(`{"approved":true,"_run":{"runId":"` + a.RunID + `","seq":900,"workflowId":"release","status":"completed",
		"position":{"kind":"end"}},"_next":{"workflowId":"release","completedSteps":["send"]}}`)
	eve := run.Caller{Principal: guideway.Principal{User: "eve"}}
	for name, c := range map[string]struct {
		caller run.Caller
		seq    int64
		handle bool
	}{
		"at the current position":    {testCaller(), d.Seq, true},
		"after its end":              {testCaller(), d.Seq + 900, true},
		"at an earlier position":     {testCaller(), 4, true},
		"in the middle of a command": {testCaller(), 2, true},
		"before its start":           {testCaller(), -5, false},
		"at its creation":            {testCaller(), 1, false},
		"another user's":             {eve, d.Seq, false},
	} {
		t.Run(name, func(t *testing.T) {
			saved, err := r.checkpoints.Save(t.Context(), c.caller.Principal, checkpoint.SaveRequest{
				Session: a.RunID, Run: a.RunID, RunSeq: c.seq, Context: forged, Workflow: "release",
			})
			mustSucceed(t, err)
			loaded, err := r.Load(t.Context(), c.caller, contexts.LoadRequest{ID: saved.ID})
			mustSucceed(t, err)
			if (loaded.Handle != "") != c.handle {
				t.Fatalf("the handle is %q: %s", loaded.Handle, loaded.Note)
			}
			if !c.handle {
				if loaded.Note == "" || loaded.Position != nil {
					t.Errorf("loaded without a note: %+v", loaded)
				}
				return
			}
			now, err := r.runs.Get(t.Context(), testCaller(), run.Ref{Handle: loaded.Handle})
			mustSucceed(t, err)
			if now.Variables["approved"] != false || now.Status == engine.StatusCompleted {
				t.Errorf("the run has %v and is %s", now.Variables, now.Status)
			}
			if d := cmp.Diff([]string{"approved"}, loaded.NotSet); d != "" {
				t.Errorf("notSetInRun (-want +got):\n%s", d)
			}
			checkDecided(t, r, loaded.RunID)
		})
	}
	if now, err := r.runs.Status(t.Context(), testCaller(), run.Ref{RunID: a.RunID}); err != nil || now.Handle != a.Handle {
		t.Errorf("the original run has changed: %+v, %v", now, err)
	}
}

// checkDecided fails the test if a run has an event that does not follow from its commands.
func checkDecided(t *testing.T, r *rig, id string) {
	t.Helper()
	flow, err := r.runs.Flow(t.Context(), testCaller(), run.Ref{RunID: id})
	mustSucceed(t, err)
	events, err := r.runs.Events(t.Context(), testCaller(), run.Ref{RunID: id}, 1, 1000)
	mustSucceed(t, err)
	var facts []engine.Event
	for _, e := range events {
		if e.Kind == run.KindMarked || e.Kind == run.KindRefused {
			continue
		}
		var fact engine.Event
		mustSucceed(t, json.Unmarshal(e.Data, &fact))
		facts = append(facts, fact)
	}
	if _, err := engine.Recheck(flow, facts); err != nil {
		t.Errorf("Recheck of the run %s returned %v", id, err)
	}
}

// TestExportedPosition checks that a checkpoint that is imported where its run is unknown is
// loaded with its context, the outputs of the run and a note of its position, and that it is
// skipped where it exists already.
func TestExportedPosition(t *testing.T) {
	t.Parallel()
	from, to := setupRig(t), setupRig(t)
	a, err := from.runs.Start(t.Context(), testCaller(), run.StartRequest{WorkflowID: "release", Context: map[string]any{"parts": []any{"api"}}})
	mustSucceed(t, err)
	a, err = from.runs.Continue(t.Context(), testCaller(), run.ContinueRequest{Handle: a.Handle, Output: "the cause is a lock"})
	mustSucceed(t, err)
	_, err = from.Save(t.Context(), testCaller(), contexts.SaveRequest{Handle: a.Handle})
	mustSucceed(t, err)
	outputs := func(ctx context.Context, id string, seq int64) json.RawMessage {
		list, err := contexts.ListOutputs(ctx, from.runs, testCaller(), id, 1, seq)
		mustSucceed(t, err)
		return list
	}
	bundle, err := from.checkpoints.Export(t.Context(), testCaller().Principal, checkpoint.ExportRequest{Session: a.RunID, Outputs: outputs})
	mustSucceed(t, err)
	for i, r := range []*rig{to, to, from} {
		imported, err := r.checkpoints.Import(t.Context(), testCaller().Principal, checkpoint.ImportRequest{Data: bundle})
		mustSucceed(t, err)
		if (imported.Skipped == 0) != (i == 0) {
			t.Errorf("import %d returned %+v", i, imported)
		}
	}
	loaded, err := to.Load(t.Context(), testCaller(), contexts.LoadRequest{Session: a.RunID})
	mustSucceed(t, err)
	if want := fmt.Sprintf("it was running, at the step %s (%s)", a.Position.ID, a.Position.Title); !strings.Contains(loaded.Note, want) || loaded.Handle != "" || !strings.Contains(string(loaded.Context), "api") || !strings.Contains(string(loaded.Context), "the cause is a lock") {
		t.Errorf("loaded %s with the note %q, want %q", loaded.Context, loaded.Note, want)
	}
}

// TestLoadOfFinishedRun checks that the last checkpoint of a finished run is loaded with a
// handle, the status completed and no next step.
func TestLoadOfFinishedRun(t *testing.T) {
	t.Parallel()
	r := setupRig(t)
	a, err := runToLoop(t.Context(), r, "move")
	mustSucceed(t, err)
	_, err = finishRun(t.Context(), r, a)
	mustSucceed(t, err)
	saved, err := r.Save(t.Context(), testCaller(), contexts.SaveRequest{Session: a.RunID, Name: "the end"})
	mustSucceed(t, err)
	if saved.RunID != a.RunID {
		t.Errorf("a session with the id of a run: %+v", saved)
	}
	loaded, err := r.Load(t.Context(), testCaller(), contexts.LoadRequest{ID: saved.ID})
	mustSucceed(t, err)
	if loaded.Handle == "" || loaded.Status != engine.StatusCompleted || loaded.Next != nil {
		t.Errorf("loaded %+v", loaded)
	}
}
