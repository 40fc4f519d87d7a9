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

// Runs save themselves at the end of each phase and loop, at each gate and at the
// end, in both dialects, and nowhere else.
func TestRunsSaveThemselves(t *testing.T) {
	t.Parallel()
	for flow, want := range map[string][]string{
		"move":    {"gate plan", "end of loop each", "end of the run"},
		"release": {"end of phase prepare", "end of loop rounds; gate ok", "end of phase build", "end of phase ship; end of the run"},
	} {
		t.Run(flow, func(t *testing.T) {
			t.Parallel()
			r := setup(t)
			a, err := middle(t.Context(), r, flow)
			must(t, err)
			_, err = finish(t.Context(), r, a)
			must(t, err)
			must(t, r.keeper.Close()) // what waits is saved before it ends
			page, err := r.List(t.Context(), ada(), checkpoint.ListRequest{Session: a.RunID})
			must(t, err)
			var names []string
			for i := range page.Checkpoints {
				rec := page.Checkpoints[len(page.Checkpoints)-1-i]
				names = append(names, rec.Name)
				if rec.Kind != checkpoint.KindAuto || rec.Run != a.RunID || rec.RunSeq == 0 || rec.Tokens == 0 || len(rec.Tags) == 0 {
					t.Errorf("saved %+v", rec)
				}
				// Each stands where the run stood then.
				loaded, err := r.Load(t.Context(), ada(), contexts.LoadRequest{ID: rec.ID})
				must(t, err)
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

// failing saves nothing.
type failing struct {
	contexts.Checkpoints
	err error
}

func (f failing) Save(context.Context, guideway.Principal, checkpoint.SaveRequest) (*checkpoint.Saved, error) {
	return nil, f.err
}

// What cannot be saved beside the answers fails none, and is told.
func TestAFailedCheckpointFailsNoAnswer(t *testing.T) {
	t.Parallel()
	r := setup(t, func(p *parts) {
		p.keeper.Checkpoints = failing{err: errors.New("the disk is full")}
	})
	a, err := middle(t.Context(), r, "move")
	must(t, err)
	must(t, r.keeper.Close())
	h := r.Health()
	if h.Failed == 0 || !strings.Contains(h.Error, "disk is full") || h.ErrorAt.IsZero() {
		t.Errorf("health %+v", h)
	}
	b, err := r.Brief(t.Context(), ada(), a.RunID)
	must(t, err)
	if !strings.Contains(b.Problem, "disk is full") {
		t.Errorf("an agent is told %q", b.Problem)
	}
}

// stuck saves when it is let.
type stuck struct {
	contexts.Checkpoints
	let chan struct{}
}

func (s stuck) Save(ctx context.Context, who guideway.Principal, r checkpoint.SaveRequest) (*checkpoint.Saved, error) {
	<-s.let
	return s.Checkpoints.Save(ctx, who, r)
}

// The queue is bounded: what finds it full is left out and counted, what is in it
// is saved, and the end waits for that.
func TestTheQueueIsBounded(t *testing.T) {
	t.Parallel()
	let := make(chan struct{})
	r := setup(t, func(p *parts) { p.keeper.Queue = 3 })
	k, err := contexts.NewKeeper(contexts.KeeperOptions{Checkpoints: stuck{r.checkpoints, let}, Queue: 3})
	must(t, err)
	const walks = 20
	for i := range walks {
		k.Walked(ada().Principal, "move", []string{"plan"}, map[string]any{"_sessionId": "line", "n": i})
	}
	h := k.Health()
	if h.Dropped < walks-4 || h.Dropped > walks-3 || int64(h.Waiting) != walks-h.Dropped {
		t.Errorf("health %+v", h)
	}
	close(let)
	must(t, k.Close())
	must(t, k.Close()) // once more is no harm
	if after := k.Health(); after.Saved != walks-h.Dropped || after.Waiting != 0 {
		t.Errorf("health at the end %+v", after)
	}
	k.Walked(ada().Principal, "move", nil, map[string]any{"_sessionId": "line", "late": true})
}

// A walk is saved where it names a session of its own, once for each context, and
// keeps the session's marks.
func TestWalked(t *testing.T) {
	t.Parallel()
	r := setup(t)
	_, err := r.Mark(t.Context(), ada(), contexts.MarkRequest{Session: "line", Keys: []string{"contract"}})
	must(t, err)
	walked := func(vars map[string]any) { r.Walked(ada().Principal, "move", []string{"plan"}, vars) }
	for range 3 {
		walked(map[string]any{"_sessionId": "line", "contract": "c"})
	}
	walked(map[string]any{"contract": "c"})
	walked(map[string]any{"_sessionId": "", "contract": "c"})
	walked(map[string]any{"_sessionId": 7, "contract": "c"})
	walked(map[string]any{"_sessionId": "r_0123456789abcdefghjkmnp", "contract": "c"})
	must(t, r.keeper.Close())
	if h := r.Health(); h.Saved != 1 {
		t.Errorf("health %+v", h)
	}
	loaded, err := r.Load(t.Context(), ada(), contexts.LoadRequest{Session: "line"})
	must(t, err)
	want := `{"_critical":{"keys":["contract"]},"_sessionId":"line","contract":"c"}`
	if string(loaded.Context) != want || len(loaded.Completed) != 1 {
		t.Errorf("loaded %s, completed %v; want %s", loaded.Context, loaded.Completed, want)
	}
}

// A context over the threshold is told of with the answers, and what an agent will
// ask for is made before it asks.
func TestALargeContextIsTold(t *testing.T) {
	t.Parallel()
	r := setup(t, func(p *parts) { p.memory.LimitTokens, p.memory.AnswerTokens = 4000, 1000 })
	small, err := r.runs.Start(t.Context(), ada(), run.StartRequest{WorkflowID: "move", Context: map[string]any{"service": "s"}})
	must(t, err)
	large, err := r.runs.Start(t.Context(), ada(), run.StartRequest{WorkflowID: "move", Context: map[string]any{"service": "s", "analysis": long("analysis", 300)}})
	must(t, err)
	if n := r.Notice(small.RunID); n != "" {
		t.Errorf("of a small context: %q", n)
	}
	if n := r.Notice(large.RunID); !strings.Contains(n, "of 4000") {
		t.Errorf("of a large context: %q", n)
	}
	must(t, r.keeper.Close())
	b, err := r.Brief(t.Context(), ada(), large.RunID)
	must(t, err)
	if len(b.Omitted) != 1 || b.Omitted[0].Key != "analysis" || b.Note == "" || b.Tokens < 3200 {
		t.Errorf("brief %+v", b)
	}
	shrunk, err := r.runs.Continue(t.Context(), ada(), run.ContinueRequest{Handle: large.Handle, Output: "x", Context: map[string]any{"analysis": nil}})
	must(t, err)
	if n := r.Notice(shrunk.RunID); n != "" {
		t.Errorf("once it is small again: %q", n)
	}
}

// Options that cannot work are refused, and the others have defaults.
func TestOptions(t *testing.T) {
	t.Parallel()
	if _, err := contexts.New(contexts.Options{}); guideway.ErrorCode(err) != guideway.CodeInternal {
		t.Errorf("no checkpoints: %v", err)
	}
	if _, err := contexts.NewKeeper(contexts.KeeperOptions{}); guideway.ErrorCode(err) != guideway.CodeInternal {
		t.Errorf("a keeper without checkpoints: %v", err)
	}
	off := setup(t, func(p *parts) { p.keeper.Off = true })
	a, err := middle(t.Context(), off, "move")
	must(t, err)
	must(t, off.keeper.Close())
	if page, err := off.List(t.Context(), ada(), checkpoint.ListRequest{}); err != nil || len(page.Checkpoints) != 0 || !off.Health().Off {
		t.Errorf("switched off, %d checkpoints of %s, %v", len(page.Checkpoints), a.RunID, err)
	}
	alone, err := contexts.New(contexts.Options{Checkpoints: off.checkpoints})
	must(t, err)
	if _, err := alone.Save(t.Context(), ada(), contexts.SaveRequest{Handle: a.Handle}); guideway.ErrorCode(err) != guideway.CodeInvalid {
		t.Errorf("a handle where no runs are kept: %v", err)
	}
	saved, err := alone.Save(t.Context(), ada(), contexts.SaveRequest{Context: map[string]any{"goal": "g"}})
	must(t, err)
	again, err := alone.Save(t.Context(), ada(), contexts.SaveRequest{Context: map[string]any{"goal": "g"}})
	must(t, err)
	if saved.Session == again.Session || fmt.Sprint(saved.Store.Mode) != "sqlite" || saved.Tokens == 0 {
		t.Errorf("two sessions that begin alike: %+v, %+v", saved, again)
	}
}

// Checkpoints have the tags of what is marked, so that lists find them by those:
// those of a run from the mark on, saved by itself or by an agent, and those of a
// session and of a walk.
func TestTagsOfMarks(t *testing.T) {
	t.Parallel()
	r := setup(t)
	a, err := r.runs.Start(t.Context(), ada(), run.StartRequest{WorkflowID: "move", Context: map[string]any{"service": "s", "files": []any{}}})
	must(t, err)
	_, err = r.Mark(t.Context(), ada(), contexts.MarkRequest{Handle: a.Handle, Keys: []string{"service"}, Tags: []string{"billing", "q3"}})
	must(t, err)
	_, err = r.Save(t.Context(), ada(), contexts.SaveRequest{Handle: a.Handle, Tags: []string{"mine"}})
	must(t, err)
	_, err = step(t.Context(), r, a, "The plan.") // and a gate opens
	must(t, err)

	context := map[string]any{"goal": "g", "contract": "c"}
	_, err = r.Save(t.Context(), ada(), contexts.SaveRequest{Session: "line", Context: context})
	must(t, err)
	_, err = r.Mark(t.Context(), ada(), contexts.MarkRequest{Session: "line", Keys: []string{"contract"}, Tags: []string{"billing"}})
	must(t, err)
	_, err = r.Mark(t.Context(), ada(), contexts.MarkRequest{Session: "line", Keys: []string{"goal"}, Tags: []string{"q3"}})
	must(t, err)
	_, err = r.Save(t.Context(), ada(), contexts.SaveRequest{Session: "line", Context: context, Tags: []string{"mine"}})
	must(t, err)
	r.Walked(ada().Principal, "move", nil, map[string]any{"_sessionId": "line", "n": 1})
	must(t, r.keeper.Close())

	for tag, want := range map[string]map[string]int{
		"billing": {a.RunID: 2, "line": 4}, "q3": {a.RunID: 2, "line": 3}, "mine": {a.RunID: 1, "line": 1},
	} {
		page, err := r.List(t.Context(), ada(), checkpoint.ListRequest{Tags: []string{tag}})
		must(t, err)
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
	saved, err := r.Save(t.Context(), ada(), contexts.SaveRequest{Session: "line", Context: context, Tags: many})
	must(t, err)
	if rec, err := r.Get(t.Context(), ada(), saved.ID); err != nil || len(rec.Tags) != 23 {
		t.Errorf("beside %d tags of the caller's: %v, %v", len(many), rec.Tags, err)
	}
	if _, err := r.Save(t.Context(), ada(), contexts.SaveRequest{Session: "line", Context: context, Tags: append(many, "one more")}); guideway.ErrorCode(err) != guideway.CodeInvalid {
		t.Errorf("too many tags: %v", err)
	}
}

// A list has what was saved beside the answers that came before it.
func TestAListHasWhatCameBefore(t *testing.T) {
	t.Parallel()
	r := setup(t)
	a, err := r.runs.Start(t.Context(), ada(), run.StartRequest{WorkflowID: "move", Context: map[string]any{"service": "s", "files": []any{}}})
	must(t, err)
	_, err = step(t.Context(), r, a, "The plan.")
	must(t, err)
	page, err := r.List(t.Context(), ada(), checkpoint.ListRequest{Tags: []string{"gate"}})
	must(t, err)
	if len(page.Checkpoints) != 1 || r.Health().Waiting != 0 {
		t.Errorf("listed %+v, health %+v", page.Checkpoints, r.Health())
	}
}
