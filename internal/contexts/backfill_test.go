package contexts_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/run"
)

const childSteps, childSaves = "GUIDEWAY_MEMORY_TEST_STEPS", "GUIDEWAY_MEMORY_TEST_SAVES"

// runHastyServer runs a server that executes the given number of commands, saves the given
// number of checkpoints, and then blocks until it is killed.
func runHastyServer(dir, flow string) error {
	ctx := context.Background()
	steps, err := strconv.Atoi(os.Getenv(childSteps))
	if err != nil {
		return err
	}
	saves, err := strconv.Atoi(os.Getenv(childSaves))
	if err != nil {
		return err
	}
	gate := &limitedCheckpoints{saved: make(chan struct{}, saves), most: saves}
	r, err := openRig(ctx, dir, func(p *parts) {
		gate.Checkpoints, err = checkpoint.New(p.checkpoint)
		p.saver.Checkpoints = gate
	})
	if err != nil {
		return err
	}
	a, err := stepsWalk(ctx, r, flow, steps)
	if err != nil {
		return err
	}
	for range saves {
		<-gate.saved
	}
	if err := json.NewEncoder(os.Stdout).Encode(savedState{Run: a.RunID, Handle: a.Handle, Position: a.Position}); err != nil {
		return err
	}
	_, err = io.ReadAll(os.Stdin) // block until the process is killed
	return err
}

// limitedCheckpoints saves a limited number of checkpoints, and then blocks.
type limitedCheckpoints struct {
	contexts.Checkpoints
	saved chan struct{}
	most  int
}

func (s *limitedCheckpoints) Save(ctx context.Context, who guideway.Principal, r checkpoint.SaveRequest) (*checkpoint.Saved, error) {
	if s.most == 0 {
		select {} // block until the process is killed
	}
	s.most--
	saved, err := s.Checkpoints.Save(ctx, who, r)
	s.saved <- struct{}{}
	return saved, err
}

// stepsWalk starts a run and executes the given number of commands.
func stepsWalk(ctx context.Context, r *rig, flow string, steps int) (*run.Answer, error) {
	vars := map[string]any{"service": "login", "files": []any{"a.go", "b.go"}, "strict": true}
	if flow == "release" {
		vars = map[string]any{"parts": []any{"api", "ui"}}
	}
	a, err := r.runs.Start(ctx, testCaller(), run.StartRequest{WorkflowID: flow, Context: vars})
	for i := 0; err == nil && i < steps; i++ {
		a, err = continueRun(ctx, r, a)
	}
	return a, err
}

// continueRun completes the current position.
func continueRun(ctx context.Context, r *rig, a *run.Answer) (*run.Answer, error) {
	if a.Position.Kind == engine.PositionGate {
		return answerGate(ctx, r, a, a.Position.Options[0].ID)
	}
	return handIn(ctx, r, a, fmt.Sprintf("Did %s.", a.Position.ID))
}

// checkpointNames returns the names of a run's checkpoints, the oldest first.
func checkpointNames(t *testing.T, r *rig, id string) []string {
	t.Helper()
	page, err := r.checkpoints.List(t.Context(), testCaller().Principal, checkpoint.ListRequest{Session: id, Limit: 200})
	mustSucceed(t, err)
	var list []string
	for i := range page.Checkpoints {
		rec := page.Checkpoints[len(page.Checkpoints)-1-i]
		list = append(list, fmt.Sprintf("%d %s %v", rec.RunSeq, rec.Name, rec.Tags))
	}
	return list
}

// TestKilledBeforeSave checks that a run whose server was killed between the answer and the
// save has all its checkpoints after another process has loaded it.
func TestKilledBeforeSave(t *testing.T) {
	t.Parallel()
	looks := map[string]func(*testing.T, *rig, savedState){
		"status": func(t *testing.T, r *rig, was savedState) {
			_, err := r.runs.Status(t.Context(), testCaller(), run.Ref{Handle: was.Handle})
			mustSucceed(t, err)
		},
		"resume": func(t *testing.T, r *rig, _ savedState) {
			_, err := r.runs.Resume(t.Context(), testCaller(), run.ResumeRequest{})
			mustSucceed(t, err)
		},
		"list of runs": func(t *testing.T, r *rig, _ savedState) {
			_, err := r.runs.List(t.Context(), testCaller(), run.Filter{})
			mustSucceed(t, err)
		},
		"continue": func(t *testing.T, r *rig, was savedState) {
			_, err := continueRun(t.Context(), r, &run.Answer{Handle: was.Handle, Position: was.Position})
			mustSucceed(t, err)
		},
	}
	for _, flow := range []string{"move", "release"} {
		for how, look := range looks {
			for _, steps := range []int{1, 4} {
				t.Run(fmt.Sprint(flow, " ", how, " ", steps), func(t *testing.T) {
					t.Parallel()
					want := expectedNames(t, flow, steps)
					saved := len(want)
					if how == "continue" {
						want = expectedNames(t, flow, steps+1)
					}

					dir := t.TempDir()
					was := runAndKill(t, dir, flow, childSteps+"="+strconv.Itoa(steps), childSaves+"="+strconv.Itoa(max(saved-1, 0)))
					r := reopenRig(t, dir)
					if before := checkpointNames(t, r, was.Run); saved > 0 && len(before) != saved-1 {
						t.Fatalf("before the kill %v were saved", before)
					}
					look(t, r, was)
					mustSucceed(t, r.saver.Close())
					if d := cmp.Diff(want, checkpointNames(t, r, was.Run)); d != "" {
						t.Errorf("checkpoints (-never killed +killed and seen again):\n%s", d)
					}
					if h := r.Health(); h.Failed > 0 {
						t.Errorf("health %+v", h)
					}
				})
			}
		}
	}
}

// expectedNames returns the checkpoint names of a run whose server was not killed.
func expectedNames(t *testing.T, flow string, steps int) []string {
	t.Helper()
	r := setupRig(t)
	a, err := stepsWalk(t.Context(), r, flow, steps)
	mustSucceed(t, err)
	mustSucceed(t, r.saver.Close())
	return checkpointNames(t, r, a.RunID)
}

// TestLoadWaitsForSaves checks that Load by session loads a checkpoint that the killed
// server did not save, and that another user cannot load it.
func TestLoadWaitsForSaves(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	was := runAndKill(t, dir, "release", childSteps+"=1", childSaves+"=0")
	r := reopenRig(t, dir)
	loaded, err := r.Load(t.Context(), testCaller(), contexts.LoadRequest{Session: was.Run})
	mustSucceed(t, err)
	if loaded.Name != "end of phase prepare" || loaded.Forked || loaded.Handle != was.Handle {
		t.Errorf("loaded %+v", loaded)
	}
	stranger := run.Caller{Principal: guideway.Principal{User: "eve"}}
	if _, err := r.Load(t.Context(), stranger, contexts.LoadRequest{Session: was.Run}); guideway.ErrorCode(err) != guideway.CodeNotFound {
		t.Errorf("Load by another user returned %v", err)
	}
}

// TestBackfillOnce checks that several processes backfill a run once, that deleted
// checkpoints are not saved again, and that a fork does not get the checkpoints of its
// parent.
func TestBackfillOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	was := runAndKill(t, dir, "release", childSteps+"=3", childSaves+"=0")
	rigs := []*rig{reopenRig(t, dir), reopenRig(t, dir), reopenRig(t, dir)}
	for _, r := range rigs {
		_, err := r.runs.List(t.Context(), testCaller(), run.Filter{})
		mustSucceed(t, err)
	}
	for _, r := range rigs {
		mustSucceed(t, r.saver.Close())
	}
	r := reopenRig(t, dir)
	have := checkpointNames(t, r, was.Run)
	if len(have) != 1 {
		t.Fatalf("saved %v", have)
	}
	if report, err := r.checkpoints.Verify(t.Context()); err != nil || len(report.Damaged) > 0 {
		t.Errorf("verified %+v, %v", report, err)
	}
	_, err := r.checkpoints.Delete(t.Context(), testCaller().Principal, checkpoint.DeleteRequest{Session: was.Run})
	mustSucceed(t, err)
	forked, err := r.runs.Fork(t.Context(), testCaller(), run.ForkRequest{Ref: run.Ref{RunID: was.Run}})
	mustSucceed(t, err)
	again := reopenRig(t, dir)
	_, err = again.runs.List(t.Context(), testCaller(), run.Filter{})
	mustSucceed(t, err)
	mustSucceed(t, again.saver.Close())
	for _, id := range []string{was.Run, forked.RunID} {
		if got := checkpointNames(t, again, id); len(got) != 0 {
			t.Errorf("%s has %v", id, got)
		}
	}
	if h := again.Health(); h.Failed+h.Saved != 0 {
		t.Errorf("health %+v", h)
	}
}

// TestOldRunsAreNotBackfilled checks that an old run is not backfilled, since its checkpoints
// may have been removed by retention.
func TestOldRunsAreNotBackfilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	was := runAndKill(t, dir, "release", childSteps+"=1", childSaves+"=0")
	for _, at := range []struct{ days, want int }{{20, 0}, {10, 1}} {
		r := reopenRig(t, dir, func(p *parts) {
			p.saver.Now = func() time.Time { return time.Now().AddDate(0, 0, at.days) }
		})
		_, err := r.runs.List(t.Context(), testCaller(), run.Filter{})
		mustSucceed(t, err)
		mustSucceed(t, r.saver.Close())
		if got := checkpointNames(t, r, was.Run); len(got) != at.want {
			t.Errorf("after %d days, the checkpoints are %v", at.days, got)
		}
	}
}

// TestRefusedOnce checks that a save with Once returns the checkpoint if it exists, and is
// refused if the checkpoint was deleted or a later one exists.
func TestRefusedOnce(t *testing.T) {
	t.Parallel()
	r := setupRig(t)
	request := func(seq int64) checkpoint.SaveRequest {
		return checkpoint.SaveRequest{
			Session: "r_line", Run: "r_line", RunSeq: seq, Context: json.RawMessage(fmt.Sprintf(`{"n":%d}`, seq)),
			Kind: checkpoint.KindAuto, Once: true,
		}
	}
	who := testCaller().Principal
	one, err := r.checkpoints.Save(t.Context(), who, request(1))
	mustSucceed(t, err)
	three, err := r.checkpoints.Save(t.Context(), who, request(3))
	mustSucceed(t, err)
	same, err := r.checkpoints.Save(t.Context(), who, request(1))
	mustSucceed(t, err)
	if same.ID != one.ID || same.Number != one.Number || three.ID == one.ID {
		t.Errorf("saved %s and %s, then the first one again as %s", one.ID, three.ID, same.ID)
	}
	if _, err := r.checkpoints.Save(t.Context(), who, request(2)); guideway.ErrorCode(err) != guideway.CodeRefused {
		t.Errorf("Save after its successor returned %v", err)
	}
	_, err = r.checkpoints.Delete(t.Context(), who, checkpoint.DeleteRequest{IDs: []string{three.ID}})
	mustSucceed(t, err)
	if _, err := r.checkpoints.Save(t.Context(), who, request(3)); guideway.ErrorCode(err) != guideway.CodeRefused {
		t.Errorf("Save of a deleted checkpoint returned %v", err)
	}
	_, err = r.checkpoints.Save(t.Context(), who, request(4))
	mustSucceed(t, err)
}
