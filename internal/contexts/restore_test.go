package contexts_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/guideway-dev/guideway/internal/contexts"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/run"
)

const childDir, childFlow = "GUIDEWAY_MEMORY_TEST_DIR", "GUIDEWAY_MEMORY_TEST_FLOW"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		end := victim
		if os.Getenv(childSteps) != "" {
			end = hasty
		}
		if err := end(dir, os.Getenv(childFlow)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// stood is where a run stood before its server was killed.
type stood struct {
	Run, Handle, Checkpoint string
	Position                engine.Position
	Variables               map[string]any
}

// victim is the server that is going to be killed: it leads a run into a loop,
// saves a checkpoint, goes on, and waits.
func victim(dir, flow string) error {
	ctx := context.Background()
	r, err := open(ctx, dir)
	if err != nil {
		return err
	}
	a, err := middle(ctx, r, flow)
	if err != nil {
		return err
	}
	saved, err := r.Save(ctx, ada(), contexts.SaveRequest{Handle: a.Handle, Name: "the middle"})
	if err != nil {
		return err
	}
	d, err := r.runs.Look(ctx, ada(), run.Ref{RunID: a.RunID})
	if err != nil {
		return err
	}
	if _, err = step(ctx, r, a, "This is already behind the checkpoint."); err != nil {
		return err
	}
	err = json.NewEncoder(os.Stdout).Encode(stood{Run: a.RunID, Handle: a.Handle, Checkpoint: saved.ID, Position: a.Position, Variables: d.Variables})
	if err != nil {
		return err
	}
	_, err = io.ReadAll(os.Stdin) // until it is killed
	return err
}

// TestKilledAndResumed is the acceptance story of the context's design: a complex
// workflow is started, the server is killed, and the workflow is resumed exactly
// from its checkpoint, in the middle of a loop, in both dialects.
func TestKilledAndResumed(t *testing.T) {
	t.Parallel()
	for _, flow := range []string{"move", "release"} {
		t.Run(flow, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			was := killed(t, dir, flow)
			r := reopen(t, dir)
			loaded, err := r.Load(t.Context(), ada(), contexts.LoadRequest{ID: was.Checkpoint})
			must(t, err)
			if !loaded.Forked || loaded.Handle == "" || loaded.RunID == was.Run {
				t.Fatalf("loaded %+v", loaded)
			}
			if d := cmp.Diff(was.Position, *loaded.Position); d != "" {
				t.Errorf("position (-before +after):\n%s", d)
			}
			if d := cmp.Diff(asJSON(t, was.Variables), string(loaded.Context)); d != "" {
				t.Errorf("context (-before +after):\n%s", d)
			}
			now, err := r.runs.Look(t.Context(), ada(), run.Ref{Handle: loaded.Handle})
			must(t, err)
			if d := cmp.Diff(asJSON(t, was.Variables), asJSON(t, now.Variables)); d != "" {
				t.Errorf("the run's variables (-before +after):\n%s", d)
			}
			// It goes on as a run does that was never interrupted.
			whole := setup(t)
			a, err := middle(t.Context(), whole, flow)
			must(t, err)
			want, err := finish(t.Context(), whole, a)
			must(t, err)
			got, err := finish(t.Context(), r, &run.Answer{Handle: loaded.Handle, Position: *loaded.Position, Status: loaded.Status})
			must(t, err)
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("the way to the end (-never interrupted +resumed):\n%s", d)
			}
			if report, err := r.runs.Verify(t.Context(), ""); err != nil || len(report.Faults) > 0 {
				t.Errorf("verify: %+v, %v", report, err)
			}
			// The run that was killed is where it was, too: nothing acknowledged
			// is lost.
			if old, err := r.runs.Status(t.Context(), ada(), run.Ref{RunID: was.Run}); err != nil || old.Handle == was.Handle {
				t.Errorf("the old run: %+v, %v", old, err)
			}
		})
	}
}

// killed runs a server on a directory and kills it where it says that it stands.
func killed(t *testing.T, dir, flow string, env ...string) stood {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	child.Env = append(append(os.Environ(), childDir+"="+dir, childFlow+"="+flow), env...)
	child.Stderr = os.Stderr
	stdin, err := child.StdinPipe()
	must(t, err)
	defer func() { _ = stdin.Close() }()
	out, err := child.StdoutPipe()
	must(t, err)
	must(t, child.Start())
	line, err := bufio.NewReader(out).ReadBytes('\n')
	_ = child.Process.Kill()
	_ = child.Wait()
	must(t, err)
	var was stood
	dec := json.NewDecoder(bytesOf(line))
	dec.UseNumber()
	must(t, dec.Decode(&was))
	return was
}

// TestMiddleOfALoop: prepare and restore in the middle of a loop give the same
// back, whether the run stands still or has gone on.
func TestMiddleOfALoop(t *testing.T) {
	t.Parallel()
	for _, flow := range []string{"move", "release"} {
		t.Run(flow, func(t *testing.T) {
			t.Parallel()
			r := setup(t)
			a, err := middle(t.Context(), r, flow)
			must(t, err)
			saved, err := r.Save(t.Context(), ada(), contexts.SaveRequest{Handle: a.Handle})
			must(t, err)
			still, err := r.Load(t.Context(), ada(), contexts.LoadRequest{Session: a.RunID})
			must(t, err)
			if still.ID != saved.ID || still.Forked || still.Handle != a.Handle || len(still.NotSet) > 0 {
				t.Fatalf("where the run stands still: %+v", still)
			}
			_, err = step(t.Context(), r, a, "gone on")
			must(t, err)
			on, err := r.Load(t.Context(), ada(), contexts.LoadRequest{ID: saved.ID})
			must(t, err)
			for name, loaded := range map[string]*contexts.Loaded{"still": still, "gone on": on} {
				if d := cmp.Diff(a.Position, *loaded.Position); d != "" {
					t.Errorf("%s: position (-want +got):\n%s", name, d)
				}
			}
			if d := cmp.Diff(string(still.Context), string(on.Context)); d != "" {
				t.Errorf("context (-still +gone on):\n%s", d)
			}
			if on.Position.Loop == nil || on.Position.Loop.Round != 2 {
				t.Errorf("the loop is at %+v", on.Position.Loop)
			}
		})
	}
}
