package contexts_test

import (
	"context"
	"errors"
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

// TestAutomaticSaves checks that runs are saved at the end of each phase and loop, at
// each gate and at the end, in both dialects, and at no other point.
func TestAutomaticSaves(t *testing.T) {
	t.Parallel()
	for flow, want := range map[string][]string{
		"move":    {"gate plan", "end of loop each", "end of the run"},
		"release": {"end of phase prepare", "end of loop rounds; gate ok", "end of phase build", "end of phase ship; end of the run"},
	} {
		t.Run(flow, func(t *testing.T) {
			t.Parallel()
			r := setupRig(t)
			a, err := runToLoop(t.Context(), r, flow)
			mustSucceed(t, err)
			_, err = finishRun(t.Context(), r, a)
			mustSucceed(t, err)
			mustSucceed(t, r.saver.Close()) // Close waits until the pending checkpoints are saved
			page, err := r.List(t.Context(), testCaller(), checkpoint.ListRequest{Session: a.RunID})
			mustSucceed(t, err)
			var names []string
			for i := range page.Checkpoints {
				rec := page.Checkpoints[len(page.Checkpoints)-1-i]
				names = append(names, rec.Name)
				if rec.Kind != checkpoint.KindAuto || rec.Run != a.RunID || rec.RunSeq == 0 || rec.Tokens == 0 || len(rec.Tags) == 0 {
					t.Errorf("saved %+v", rec)
				}
				// A checkpoint of a gate is loaded at the gate, and each checkpoint is
				// loaded with a handle.
				loaded, err := r.Load(t.Context(), testCaller(), contexts.LoadRequest{ID: rec.ID})
				mustSucceed(t, err)
				if strings.Contains(rec.Name, "gate") && loaded.Position.Kind != engine.PositionGate {
					t.Errorf("%s: the run is at %+v", rec.Name, loaded.Position)
				}
				if loaded.Handle == "" {
					t.Errorf("%s: no handle: %s", rec.Name, loaded.Note)
				}
			}
			if d := cmp.Diff(want, names); d != "" {
				t.Errorf("checkpoints (-want +got):\n%s", d)
			}
			if h := r.Health(); h.Saved != int64(len(want)) || h.Failed+h.Dropped != 0 || h.Waiting != 0 {
				t.Errorf("health %+v", h)
			}
		})
	}
}

// failingCheckpoints fails every save.
type failingCheckpoints struct {
	contexts.Checkpoints
	err error
}

func (f failingCheckpoints) Save(context.Context, guideway.Principal, checkpoint.SaveRequest) (*checkpoint.Saved, error) {
	return nil, f.err
}

// TestFailedSaveFailsNoAnswer checks that a failed background save fails no call and
// is reported.
func TestFailedSaveFailsNoAnswer(t *testing.T) {
	t.Parallel()
	r := setupRig(t, func(p *parts) {
		p.saver.Checkpoints = failingCheckpoints{err: errors.New("the disk is full")}
	})
	a, err := runToLoop(t.Context(), r, "move")
	mustSucceed(t, err)
	mustSucceed(t, r.saver.Close())
	h := r.Health()
	if h.Failed == 0 || !strings.Contains(h.Error, "disk is full") || h.ErrorAt.IsZero() {
		t.Errorf("health %+v", h)
	}
	b, err := r.Brief(t.Context(), testCaller(), a.RunID)
	mustSucceed(t, err)
	if !strings.Contains(b.Problem, "disk is full") {
		t.Errorf("the notice is %q", b.Problem)
	}
}

// blockedCheckpoints blocks every save until it is released.
type blockedCheckpoints struct {
	contexts.Checkpoints
	let chan struct{}
}

func (s blockedCheckpoints) Save(ctx context.Context, who guideway.Principal, r checkpoint.SaveRequest) (*checkpoint.Saved, error) {
	<-s.let
	return s.Checkpoints.Save(ctx, who, r)
}

// TestQueueIsBounded checks that a job is dropped and counted if the queue is full, and
// that Close waits for the queued jobs.
func TestQueueIsBounded(t *testing.T) {
	t.Parallel()
	let := make(chan struct{})
	r := setupRig(t, func(p *parts) { p.saver.Queue = 3 })
	k, err := contexts.NewAutoSaver(contexts.AutoSaverOptions{Checkpoints: blockedCheckpoints{r.checkpoints, let}, Queue: 3})
	mustSucceed(t, err)
	const walks = 20
	for i := range walks {
		k.Walked(testCaller().Principal, "move", []string{"plan"}, map[string]any{"_sessionId": "line", "n": i})
	}
	h := k.Health()
	if h.Dropped < walks-4 || h.Dropped > walks-3 || int64(h.Waiting) != walks-h.Dropped {
		t.Errorf("health %+v", h)
	}
	close(let)
	mustSucceed(t, k.Close())
	mustSucceed(t, k.Close()) // closing twice is allowed
	if after := k.Health(); after.Saved != walks-h.Dropped || after.Waiting != 0 {
		t.Errorf("health at the end %+v", after)
	}
	k.Walked(testCaller().Principal, "move", nil, map[string]any{"_sessionId": "line", "late": true})
}

// TestWalked checks that a walk with a session id is saved once per context and keeps the
// marks of the session, and that a walk without a valid session id is not saved.
func TestWalked(t *testing.T) {
	t.Parallel()
	r := setupRig(t)
	_, err := r.Mark(t.Context(), testCaller(), contexts.MarkRequest{Session: "line", Keys: []string{"contract"}})
	mustSucceed(t, err)
	walked := func(vars map[string]any) { r.Walked(testCaller().Principal, "move", []string{"plan"}, vars) }
	for range 3 {
		walked(map[string]any{"_sessionId": "line", "contract": "c"})
	}
	walked(map[string]any{"contract": "c"})
	walked(map[string]any{"_sessionId": "", "contract": "c"})
	walked(map[string]any{"_sessionId": 7, "contract": "c"})
	walked(map[string]any{"_sessionId": "r_0123456789abcdefghjkmnp", "contract": "c"})
	mustSucceed(t, r.saver.Close())
	if h := r.Health(); h.Saved != 1 {
		t.Errorf("health %+v", h)
	}
	loaded, err := r.Load(t.Context(), testCaller(), contexts.LoadRequest{Session: "line"})
	mustSucceed(t, err)
	want := `{"_critical":{"keys":["contract"]},"_sessionId":"line","contract":"c"}`
	if string(loaded.Context) != want || len(loaded.Completed) != 1 {
		t.Errorf("loaded %s, completed %v; want %s", loaded.Context, loaded.Completed, want)
	}
}

// TestLargeContextIsReported checks that a context above the threshold has a notice until it
// is small again, and that its brief omits the large variable.
func TestLargeContextIsReported(t *testing.T) {
	t.Parallel()
	r := setupRig(t, func(p *parts) { p.memory.LimitTokens, p.memory.AnswerTokens = 4000, 1000 })
	small, err := r.runs.Start(t.Context(), testCaller(), run.StartRequest{WorkflowID: "move", Context: map[string]any{"service": "s"}})
	mustSucceed(t, err)
	large, err := r.runs.Start(t.Context(), testCaller(), run.StartRequest{WorkflowID: "move", Context: map[string]any{"service": "s", "analysis": longText("analysis", 300)}})
	mustSucceed(t, err)
	if n := r.Notice(small.RunID, nil); n != "" {
		t.Errorf("the notice of a small context is %q", n)
	}
	if n := r.Notice(large.RunID, nil); !strings.Contains(n, "limit: 4000") {
		t.Errorf("the notice of a large context is %q", n)
	}
	mustSucceed(t, r.saver.Close())
	b, err := r.Brief(t.Context(), testCaller(), large.RunID)
	mustSucceed(t, err)
	if len(b.Omitted) != 1 || b.Omitted[0].Keys[0] != "analysis" || b.Note == "" || b.Tokens < 3200 {
		t.Errorf("brief %+v", b)
	}
	shrunk, err := r.runs.Continue(t.Context(), testCaller(), run.ContinueRequest{Handle: large.Handle, Output: "x", Context: map[string]any{"analysis": nil}})
	mustSucceed(t, err)
	if n := r.Notice(shrunk.RunID, nil); n != "" {
		t.Errorf("after the context is small again, the notice is %q", n)
	}
}

// TestOptions checks invalid options and defaults.
func TestOptions(t *testing.T) {
	t.Parallel()
	if _, err := contexts.New(contexts.Options{}); guideway.ErrorCode(err) != guideway.CodeInternal {
		t.Errorf("New without checkpoints returned %v", err)
	}
	if _, err := contexts.NewAutoSaver(contexts.AutoSaverOptions{}); guideway.ErrorCode(err) != guideway.CodeInternal {
		t.Errorf("NewAutoSaver without checkpoints returned %v", err)
	}
	off := setupRig(t, func(p *parts) { p.saver.Off = true })
	a, err := runToLoop(t.Context(), off, "move")
	mustSucceed(t, err)
	mustSucceed(t, off.saver.Close())
	if page, err := off.List(t.Context(), testCaller(), checkpoint.ListRequest{}); err != nil || len(page.Checkpoints) != 0 || !off.Health().Off {
		t.Errorf("with automatic saves disabled, there are %d checkpoints of %s, %v", len(page.Checkpoints), a.RunID, err)
	}
	alone, err := contexts.New(contexts.Options{Checkpoints: off.checkpoints})
	mustSucceed(t, err)
	if _, err := alone.Save(t.Context(), testCaller(), contexts.SaveRequest{Handle: a.Handle}); guideway.ErrorCode(err) != guideway.CodeInvalid {
		t.Errorf("Save of a handle without a run service returned %v", err)
	}
	saved, err := alone.Save(t.Context(), testCaller(), contexts.SaveRequest{Context: map[string]any{"goal": "g"}})
	mustSucceed(t, err)
	again, err := alone.Save(t.Context(), testCaller(), contexts.SaveRequest{Context: map[string]any{"goal": "g"}})
	mustSucceed(t, err)
	if saved.Session == again.Session || fmt.Sprint(saved.Store.Mode) != "sqlite" || saved.Tokens == 0 {
		t.Errorf("two new sessions: %+v, %+v", saved, again)
	}
}

// TestTagsOfMarks checks that lists find checkpoints by the tags of marked variables, and
// that these tags do not count against the limit for the tags of a caller.
func TestTagsOfMarks(t *testing.T) {
	t.Parallel()
	r := setupRig(t)
	a, err := r.runs.Start(t.Context(), testCaller(), run.StartRequest{WorkflowID: "move", Context: map[string]any{"service": "s", "files": []any{}}})
	mustSucceed(t, err)
	_, err = r.Mark(t.Context(), testCaller(), contexts.MarkRequest{Handle: a.Handle, Keys: []string{"service"}, Tags: []string{"billing", "q3"}})
	mustSucceed(t, err)
	_, err = r.Save(t.Context(), testCaller(), contexts.SaveRequest{Handle: a.Handle, Tags: []string{"mine"}})
	mustSucceed(t, err)
	_, err = handIn(t.Context(), r, a, "The plan.") // the output leads to a gate
	mustSucceed(t, err)

	context := map[string]any{"goal": "g", "contract": "c"}
	_, err = r.Save(t.Context(), testCaller(), contexts.SaveRequest{Session: "line", Context: context})
	mustSucceed(t, err)
	_, err = r.Mark(t.Context(), testCaller(), contexts.MarkRequest{Session: "line", Keys: []string{"contract"}, Tags: []string{"billing"}})
	mustSucceed(t, err)
	_, err = r.Mark(t.Context(), testCaller(), contexts.MarkRequest{Session: "line", Keys: []string{"goal"}, Tags: []string{"q3"}})
	mustSucceed(t, err)
	_, err = r.Save(t.Context(), testCaller(), contexts.SaveRequest{Session: "line", Context: context, Tags: []string{"mine"}})
	mustSucceed(t, err)
	r.Walked(testCaller().Principal, "move", nil, map[string]any{"_sessionId": "line", "n": 1})
	mustSucceed(t, r.saver.Close())

	for tag, want := range map[string]map[string]int{
		"billing": {a.RunID: 2, "line": 4}, "q3": {a.RunID: 2, "line": 3}, "mine": {a.RunID: 1, "line": 1},
	} {
		page, err := r.List(t.Context(), testCaller(), checkpoint.ListRequest{Tags: []string{tag}})
		mustSucceed(t, err)
		got := map[string]int{}
		for _, rec := range page.Checkpoints {
			got[rec.Session]++
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("found by %q (-want +got):\n%s", tag, d)
		}
	}
	many := make([]string, 20)
	for i := range many {
		many[i] = fmt.Sprint("tag-", i)
	}
	saved, err := r.Save(t.Context(), testCaller(), contexts.SaveRequest{Session: "line", Context: context, Tags: many})
	mustSucceed(t, err)
	if rec, err := r.Get(t.Context(), testCaller(), saved.ID); err != nil || len(rec.Tags) != 23 {
		t.Errorf("with %d tags of the caller, the checkpoint has %v, %v", len(many), rec.Tags, err)
	}
	if _, err := r.Save(t.Context(), testCaller(), contexts.SaveRequest{Session: "line", Context: context, Tags: append(many, "one more")}); guideway.ErrorCode(err) != guideway.CodeInvalid {
		t.Errorf("Save with too many tags returned %v", err)
	}
}

// TestListWaitsForSaves checks that a list contains the automatic checkpoints of all
// earlier answers.
func TestListWaitsForSaves(t *testing.T) {
	t.Parallel()
	r := setupRig(t)
	a, err := r.runs.Start(t.Context(), testCaller(), run.StartRequest{WorkflowID: "move", Context: map[string]any{"service": "s", "files": []any{}}})
	mustSucceed(t, err)
	_, err = handIn(t.Context(), r, a, "The plan.")
	mustSucceed(t, err)
	page, err := r.List(t.Context(), testCaller(), checkpoint.ListRequest{Tags: []string{"gate"}})
	mustSucceed(t, err)
	if len(page.Checkpoints) != 1 || r.Health().Waiting != 0 {
		t.Errorf("listed %+v, health %+v", page.Checkpoints, r.Health())
	}
}
