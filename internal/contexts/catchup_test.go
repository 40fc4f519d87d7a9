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

// hasty is the server that is killed between an answer and the checkpoint beside it:
// it answers so many commands, saves so many checkpoints, and then no more.
func hasty(dir, flow string) error {
	ctx := context.Background()
	steps, err := strconv.Atoi(os.Getenv(childSteps))
	if err != nil {
		return err
	}
	saves, err := strconv.Atoi(os.Getenv(childSaves))
	if err != nil {
		return err
	}
	gate := &some{saved: make(chan struct{}, saves), most: saves}
	r, err := open(ctx, dir, func(p *parts) {
		gate.Checkpoints, err = checkpoint.New(p.checkpoint)
		p.keeper.Checkpoints = gate
	})
	if err != nil {
		return err
	}
	a, err := walk(ctx, r, flow, steps)
	if err != nil {
		return err
	}
	for range saves {
		<-gate.saved
	}
	if err := json.NewEncoder(os.Stdout).Encode(stood{Run: a.RunID, Handle: a.Handle, Position: a.Position}); err != nil {
		return err
	}
	_, err = io.ReadAll(os.Stdin) // until it is killed
	return err
}

// some saves so many, and then hangs.
type some struct {
	contexts.Checkpoints
	saved chan struct{}
	most  int
}

func (s *some) Save(ctx context.Context, who guideway.Principal, r checkpoint.SaveRequest) (*checkpoint.Saved, error) {
	if s.most == 0 {
		select {} // the process is killed meanwhile
	}
	s.most--
	saved, err := s.Checkpoints.Save(ctx, who, r)
	s.saved <- struct{}{}
	return saved, err
}

// walk starts a run and carries out so many commands.
func walk(ctx context.Context, r *rig, flow string, steps int) (*run.Answer, error) {
	vars := map[string]any{"service": "login", "files": []any{"a.go", "b.go"}, "strict": true}
	if flow == "release" {
		vars = map[string]any{"parts": []any{"api", "ui"}}
	}
	a, err := r.runs.Start(ctx, ada(), run.StartRequest{WorkflowID: flow, Context: vars})
	for i := 0; err == nil && i < steps; i++ {
		a, err = goOn(ctx, r, a)
	}
	return a, err
}

// goOn does what a position asks for.
func goOn(ctx context.Context, r *rig, a *run.Answer) (*run.Answer, error) {
	if a.Position.Kind == engine.PositionGate {
		return answer(ctx, r, a, a.Position.Options[0].ID)
	}
	return step(ctx, r, a, fmt.Sprintf("Did %s.", a.Position.ID))
}

// names are those of a run's checkpoints, the oldest first.
func names(t *testing.T, r *rig, id string) []string {
	t.Helper()
	page, err := r.checkpoints.List(t.Context(), ada().Principal, checkpoint.ListRequest{Session: id, Limit: 200})
	must(t, err)
	var list []string
	for i := range page.Checkpoints {
		rec := page.Checkpoints[len(page.Checkpoints)-1-i]
		list = append(list, fmt.Sprintf("%d %s %v", rec.RunSeq, rec.Name, rec.Tags))
	}
	return list
}

// TestKilledBeforeTheCheckpoint: a run whose server was killed between the answer
// and the checkpoint has that checkpoint once the run was seen again, whichever way:
// it is what would be there had the server lived.
func TestKilledBeforeTheCheckpoint(t *testing.T) {
	t.Parallel()
	looks := map[string]func(*testing.T, *rig, stood){
		"status": func(t *testing.T, r *rig, was stood) {
			_, err := r.runs.Status(t.Context(), ada(), run.Ref{Handle: was.Handle})
			must(t, err)
		},
		"resume": func(t *testing.T, r *rig, _ stood) {
			_, err := r.runs.Resume(t.Context(), ada(), run.ResumeRequest{})
			must(t, err)
		},
		"list of runs": func(t *testing.T, r *rig, _ stood) {
			_, err := r.runs.List(t.Context(), ada(), run.Filter{})
			must(t, err)
		},
		"continue": func(t *testing.T, r *rig, was stood) {
			_, err := goOn(t.Context(), r, &run.Answer{Handle: was.Handle, Position: was.Position})
			must(t, err)
		},
	}
	for _, flow := range []string{"move", "release"} {
		for how, look := range looks {
			for _, steps := range []int{1, 4} {
				t.Run(fmt.Sprint(flow, " ", how, " ", steps), func(t *testing.T) {
					t.Parallel()
					want := undisturbed(t, flow, steps)
					saved := len(want)
					if how == "continue" {
						want = undisturbed(t, flow, steps+1)
					}

					dir := t.TempDir()
					was := killed(t, dir, flow, childSteps+"="+strconv.Itoa(steps), childSaves+"="+strconv.Itoa(max(saved-1, 0)))
					r := reopen(t, dir)
					if before := names(t, r, was.Run); saved > 0 && len(before) != saved-1 {
						t.Fatalf("before the kill %v were saved", before)
					}
					look(t, r, was)
					must(t, r.keeper.Close())
					if d := cmp.Diff(want, names(t, r, was.Run)); d != "" {
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

// undisturbed are the checkpoints of a run whose server was not killed.
func undisturbed(t *testing.T, flow string, steps int) []string {
	t.Helper()
	r := setup(t)
	a, err := walk(t.Context(), r, flow, steps)
	must(t, err)
	must(t, r.keeper.Close())
	return names(t, r, a.RunID)
}

// TestLoadFindsTheLastOne: who asks for the last checkpoint of a run gets the one
// that belongs to its last boundary, also where that was still to be saved.
func TestLoadFindsTheLastOne(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	was := killed(t, dir, "release", childSteps+"=1", childSaves+"=0")
	r := reopen(t, dir)
	loaded, err := r.Load(t.Context(), ada(), contexts.LoadRequest{Session: was.Run})
	must(t, err)
	if loaded.Name != "end of phase prepare" || loaded.Forked || loaded.Handle != was.Handle {
		t.Errorf("loaded %+v", loaded)
	}
	stranger := run.Caller{Principal: guideway.Principal{User: "eve"}}
	if _, err := r.Load(t.Context(), stranger, contexts.LoadRequest{Session: was.Run}); guideway.ErrorCode(err) != guideway.CodeNotFound {
		t.Errorf("somebody else loads: %v", err)
	}
}

// TestMadeUpForOnce: several processes that see a run at once save what is missing
// once, what was deleted is not made again, a fork has none of its parent's, and
// nothing comes behind what is newer.
func TestMadeUpForOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	was := killed(t, dir, "release", childSteps+"=3", childSaves+"=0")
	rigs := []*rig{reopen(t, dir), reopen(t, dir), reopen(t, dir)}
	for _, r := range rigs {
		_, err := r.runs.List(t.Context(), ada(), run.Filter{})
		must(t, err)
	}
	for _, r := range rigs {
		must(t, r.keeper.Close())
	}
	r := reopen(t, dir)
	have := names(t, r, was.Run)
	if len(have) != 1 {
		t.Fatalf("saved %v", have)
	}
	if report, err := r.checkpoints.Verify(t.Context()); err != nil || len(report.Damaged) > 0 {
		t.Errorf("verified %+v, %v", report, err)
	}
	_, err := r.checkpoints.Delete(t.Context(), ada().Principal, checkpoint.DeleteRequest{Session: was.Run})
	must(t, err)
	forked, err := r.runs.Fork(t.Context(), ada(), run.ForkRequest{Ref: run.Ref{RunID: was.Run}})
	must(t, err)
	again := reopen(t, dir)
	_, err = again.runs.List(t.Context(), ada(), run.Filter{})
	must(t, err)
	must(t, again.keeper.Close())
	for _, id := range []string{was.Run, forked.RunID} {
		if got := names(t, again, id); len(got) != 0 {
			t.Errorf("%s has %v", id, got)
		}
	}
	if h := again.Health(); h.Failed+h.Saved != 0 {
		t.Errorf("health %+v", h)
	}
}

// TestOldRunsAreLeftAlone: what a run of long ago lacks may have been retired, and is
// not made again.
func TestOldRunsAreLeftAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	was := killed(t, dir, "release", childSteps+"=1", childSaves+"=0")
	for _, at := range []struct{ days, want int }{{20, 0}, {10, 1}} {
		r := reopen(t, dir, func(p *parts) {
			p.keeper.Now = func() time.Time { return time.Now().AddDate(0, 0, at.days) }
		})
		_, err := r.runs.List(t.Context(), ada(), run.Filter{})
		must(t, err)
		must(t, r.keeper.Close())
		if got := names(t, r, was.Run); len(got) != at.want {
			t.Errorf("%d days later: %v", at.days, got)
		}
	}
}

// TestRefusedOnce holds the store to what it says of checkpoints that are there once.
func TestRefusedOnce(t *testing.T) {
	t.Parallel()
	r := setup(t)
	request := func(seq int64) checkpoint.SaveRequest {
		return checkpoint.SaveRequest{
			Session: "r_line", Run: "r_line", RunSeq: seq, Context: json.RawMessage(fmt.Sprintf(`{"n":%d}`, seq)),
			Kind: checkpoint.KindAuto, Once: true,
		}
	}
	who := ada().Principal
	one, err := r.checkpoints.Save(t.Context(), who, request(1))
	must(t, err)
	three, err := r.checkpoints.Save(t.Context(), who, request(3))
	must(t, err)
	same, err := r.checkpoints.Save(t.Context(), who, request(1))
	must(t, err)
	if same.ID != one.ID || same.Number != one.Number || three.ID == one.ID {
		t.Errorf("saved %s and %s, and again %s", one.ID, three.ID, same.ID)
	}
	if _, err := r.checkpoints.Save(t.Context(), who, request(2)); guideway.ErrorCode(err) != guideway.CodeRefused {
		t.Errorf("behind its successor: %v", err)
	}
	_, err = r.checkpoints.Delete(t.Context(), who, checkpoint.DeleteRequest{IDs: []string{three.ID}})
	must(t, err)
	if _, err := r.checkpoints.Save(t.Context(), who, request(3)); guideway.ErrorCode(err) != guideway.CodeRefused {
		t.Errorf("what was deleted: %v", err)
	}
	_, err = r.checkpoints.Save(t.Context(), who, request(4))
	must(t, err)
}
