package contexts_test

import (
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/run"
)

// The members of a project read the checkpoints of each other's runs in it, and add to them.
// Checkpoints of other runs, of sessions, and of a stranger who uses the id of a run as the name
// of a session stay private.
func TestMembersShareCheckpointsOfRuns(t *testing.T) {
	t.Parallel()
	const shared = "0123456789ab"
	r := setupRig(t, func(p *parts) {
		p.run.Shares = run.Shares{{Project: shared, Members: []string{"ada", "bob"}}}
	})
	ada, bob, eve := testCaller(), testCaller(), testCaller()
	bob.User, eve.User = "bob", "eve"
	save := func(c run.Caller, q contexts.SaveRequest) *contexts.Saved {
		t.Helper()
		saved, err := r.Save(t.Context(), c, q)
		mustSucceed(t, err)
		return saved
	}
	start := func(project string) (string, *contexts.Saved) {
		a, err := r.runs.Start(t.Context(), ada, run.StartRequest{WorkflowID: "move", Goal: "x", Context: map[string]any{"secret": "s3cret"}, Project: run.Project{ID: project}})
		mustSucceed(t, err)
		return a.RunID, save(ada, contexts.SaveRequest{Handle: a.Handle})
	}
	open, openSaved := start(shared)
	private, privateSaved := start("aaaaaaaaaaaa")
	session := save(ada, contexts.SaveRequest{Session: "notes", Context: map[string]any{"secret": "s3cret"}})
	planted, err := r.checkpoints.Save(t.Context(), eve.Principal, checkpoint.SaveRequest{Session: open, Context: []byte(`{"planted":true}`)})
	mustSucceed(t, err)
	sees := func(c run.Caller, runID, id string) bool {
		t.Helper()
		if id == "" {
			page, err := r.List(t.Context(), c, checkpoint.ListRequest{Session: runID})
			mustSucceed(t, err)
			for _, rec := range page.Checkpoints {
				if rec.ID == planted.ID && c.User != "eve" {
					t.Errorf("%s sees the checkpoint of a stranger", c.User)
				}
			}
			return len(page.Checkpoints) > 0
		}
		_, getErr := r.Get(t.Context(), c, id)
		_, showErr := r.Show(t.Context(), c, id)
		_, diffErr := r.Diff(t.Context(), c, id, id)
		if (getErr == nil) != (showErr == nil) || (getErr == nil) != (diffErr == nil) || getErr != nil && guideway.ErrorCode(getErr) != guideway.CodeNotFound {
			t.Errorf("%s gets %v, %v, %v", c.User, getErr, showErr, diffErr)
		}
		return getErr == nil
	}
	for name, tt := range map[string]struct {
		who     run.Caller
		run, id string
		want    bool
	}{
		"a stranger, by id":              {eve, "", openSaved.ID, false},
		"a private run":                  {bob, private, "", false},
		"a private run, by id":           {bob, "", privateSaved.ID, false},
		"a session":                      {bob, "notes", "", false},
		"a session, by id":               {bob, "", session.ID, false},
		"a checkpoint of a stranger":     {bob, "", planted.ID, false},
		"the owner, of a stranger":       {ada, "", planted.ID, false},
		"a member":                       {bob, open, "", true},
		"a member, by id":                {bob, "", openSaved.ID, true},
		"the owner":                      {ada, open, "", true},
		"the owner of a private run":     {ada, private, privateSaved.ID, true},
		"a stranger, the own checkpoint": {eve, open, "", true},
	} {
		if got := sees(tt.who, tt.run, tt.id); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if _, err := r.Load(t.Context(), eve, contexts.LoadRequest{ID: openSaved.ID}); guideway.ErrorCode(err) != guideway.CodeNotFound {
		t.Errorf("a stranger loads: %v", err)
	}
	loaded, err := r.Load(t.Context(), bob, contexts.LoadRequest{Session: open})
	if err != nil || loaded.RunID != open || loaded.Handle == "" {
		t.Fatalf("a member loads %+v, %v", loaded, err)
	}
	added := save(bob, contexts.SaveRequest{Handle: loaded.Handle, Name: "by bob"})
	if rec, err := r.Get(t.Context(), ada, added.ID); err != nil || rec.User != "ada" || rec.Agent != "suite" {
		t.Errorf("the checkpoint of bob is %+v, %v", rec, err)
	}
}
