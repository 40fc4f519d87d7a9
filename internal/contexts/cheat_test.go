package contexts_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/run"
)

// Whatever a stored checkpoint says, be it forged or brought in from elsewhere,
// loading it brings no event that was not decided, sets no variable, and gives
// nobody another's run.
func TestAForgedCheckpointDecidesNothing(t *testing.T) {
	t.Parallel()
	r := setup(t)
	a, err := r.runs.Start(t.Context(), ada(), run.StartRequest{WorkflowID: "release", Context: map[string]any{"parts": []any{"api"}}})
	must(t, err)
	for a.Position.Kind != engine.PositionGate {
		a, err = step(t.Context(), r, a, "Did it.")
		must(t, err)
	}
	d, err := r.runs.Look(t.Context(), ada(), run.Ref{RunID: a.RunID})
	must(t, err)
	forged := json.RawMessage(`{"approved":true,"_run":{"runId":"` + a.RunID + `","seq":900,"workflowId":"release","status":"completed",
		"position":{"kind":"end"}},"_next":{"workflowId":"release","completedSteps":["send"]}}`)
	eve := run.Caller{Principal: guideway.Principal{User: "eve"}}
	for name, c := range map[string]struct {
		caller run.Caller
		seq    int64
		handle bool
	}{
		"where it stands":         {ada(), d.Seq, true},
		"behind its end":          {ada(), d.Seq + 900, true},
		"in its past":             {ada(), 4, true},
		"in the middle of a move": {ada(), 2, true},
		"before its beginning":    {ada(), -5, false},
		"at its creation":         {ada(), 1, false},
		"another user's":          {eve, d.Seq, false},
	} {
		t.Run(name, func(t *testing.T) {
			saved, err := r.checkpoints.Save(t.Context(), c.caller.Principal, checkpoint.SaveRequest{
				Session: a.RunID, Run: a.RunID, RunSeq: c.seq, Context: forged, Workflow: "release",
			})
			must(t, err)
			loaded, err := r.Load(t.Context(), c.caller, contexts.LoadRequest{ID: saved.ID})
			must(t, err)
			if (loaded.Handle != "") != c.handle {
				t.Fatalf("the handle is %q: %s", loaded.Handle, loaded.Note)
			}
			if !c.handle {
				if loaded.Note == "" || loaded.Position != nil {
					t.Errorf("loaded without a word: %+v", loaded)
				}
				return
			}
			now, err := r.runs.Look(t.Context(), ada(), run.Ref{Handle: loaded.Handle})
			must(t, err)
			if now.Variables["approved"] != false || now.Status == engine.StatusCompleted {
				t.Errorf("the run has %v and is %s", now.Variables, now.Status)
			}
			if d := cmp.Diff([]string{"approved"}, loaded.NotSet); d != "" {
				t.Errorf("what is not set in the run (-want +got):\n%s", d)
			}
			decided(t, r, loaded.RunID)
		})
	}
	if now, err := r.runs.Status(t.Context(), ada(), run.Ref{RunID: a.RunID}); err != nil || now.Handle != a.Handle {
		t.Errorf("the run itself has moved: %+v, %v", now, err)
	}
}

// decided ends the test where a run has an event that does not follow from the
// commands that there were.
func decided(t *testing.T, r *rig, id string) {
	t.Helper()
	flow, err := r.runs.Flow(t.Context(), ada(), run.Ref{RunID: id})
	must(t, err)
	events, err := r.runs.Events(t.Context(), ada(), run.Ref{RunID: id}, 1, 1000)
	must(t, err)
	var facts []engine.Event
	for _, e := range events {
		if e.Kind == run.KindMarked || e.Kind == run.KindRefused {
			continue
		}
		var fact engine.Event
		must(t, json.Unmarshal(e.Data, &fact))
		facts = append(facts, fact)
	}
	if _, err := engine.Recheck(flow, facts); err != nil {
		t.Errorf("the run %s: %v", id, err)
	}
}

// A run cannot be gone on with from its last checkpoint once it has ended; that is
// said, with the call that works.
func TestTheEndOfARun(t *testing.T) {
	t.Parallel()
	r := setup(t)
	a, err := middle(t.Context(), r, "move")
	must(t, err)
	_, err = finish(t.Context(), r, a)
	must(t, err)
	saved, err := r.Save(t.Context(), ada(), contexts.SaveRequest{Session: a.RunID, Name: "the end"})
	must(t, err)
	if saved.RunID != a.RunID {
		t.Errorf("a session in the name of a run: %+v", saved)
	}
	loaded, err := r.Load(t.Context(), ada(), contexts.LoadRequest{ID: saved.ID})
	must(t, err)
	if loaded.Handle == "" || loaded.Status != engine.StatusCompleted || loaded.Next != nil {
		t.Errorf("loaded %+v", loaded)
	}
}
