package contexts_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/guideway-dev/guideway/internal/contexts"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"github.com/guideway-dev/guideway/internal/run"
)

const childDir, childFlow = "GUIDEWAY_MEMORY_TEST_DIR", "GUIDEWAY_MEMORY_TEST_FLOW"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		end := runVictim
		if os.Getenv(childSteps) != "" {
			end = runHastyServer
		}
		if err := end(dir, os.Getenv(childFlow)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// savedState is the state of a run before its server was killed.
type savedState struct {
	Run, Handle, Checkpoint string
	Position                engine.Position
	Variables               map[string]any
}

// runVictim runs the server that is killed: it runs a workflow into a loop, saves a
// checkpoint, continues, and blocks.
func runVictim(dir, flow string) error {
	ctx := context.Background()
	r, err := openRig(ctx, dir)
	if err != nil {
		return err
	}
	a, err := runToLoop(ctx, r, flow)
	if err != nil {
		return err
	}
	saved, err := r.Save(ctx, testCaller(), contexts.SaveRequest{Handle: a.Handle, Name: "the middle"})
	if err != nil {
		return err
	}
	d, err := r.runs.Get(ctx, testCaller(), run.Ref{RunID: a.RunID})
	if err != nil {
		return err
	}
	if _, err = handIn(ctx, r, a, "This is after the checkpoint."); err != nil {
		return err
	}
	err = json.NewEncoder(os.Stdout).Encode(savedState{Run: a.RunID, Handle: a.Handle, Checkpoint: saved.ID, Position: a.Position, Variables: d.Variables})
	if err != nil {
		return err
	}
	_, err = io.ReadAll(os.Stdin) // block until the process is killed
	return err
}

// TestKilledAndResumed checks that a complex workflow whose server was killed is resumed
// exactly from its checkpoint, in the middle of a loop, in both dialects, by an agent that has
// not seen the rounds before.
func TestKilledAndResumed(t *testing.T) {
	t.Parallel()
	for _, flow := range []string{"move", "release"} {
		t.Run(flow, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			was := runAndKill(t, dir, flow)
			r := reopenRig(t, dir)
			loaded, err := r.Load(t.Context(), testCaller(), contexts.LoadRequest{ID: was.Checkpoint})
			mustSucceed(t, err)
			if !loaded.Forked || loaded.Handle == "" || loaded.RunID == was.Run {
				t.Fatalf("loaded %+v", loaded)
			}
			if d := cmp.Diff(was.Position, *loaded.Position); d != "" {
				t.Errorf("position (-before +after):\n%s", d)
			}
			if d := cmp.Diff(asJSON(t, was.Variables), string(loaded.Context)); d != "" {
				t.Errorf("context (-before +after):\n%s", d)
			}
			now, err := r.runs.Get(t.Context(), testCaller(), run.Ref{Handle: loaded.Handle})
			mustSucceed(t, err)
			if d := cmp.Diff(asJSON(t, was.Variables), asJSON(t, now.Variables)); d != "" {
				t.Errorf("the run's variables (-before +after):\n%s", d)
			}
			// The resumed run continues like an uninterrupted one.
			whole := setupRig(t)
			a, err := runToLoop(t.Context(), whole, flow)
			mustSucceed(t, err)
			want, err := finishRun(t.Context(), whole, a)
			mustSucceed(t, err)
			if flow == "move" && (loaded.Position.Loop.Round == 1 || strings.Contains(loaded.Position.Prompt, "first iteration")) {
				t.Errorf("the prompt of round %d refers to an earlier round: %s", loaded.Position.Loop.Round, loaded.Position.Prompt)
			}
			got, err := finishRun(t.Context(), r, &run.Answer{Handle: loaded.Handle, Position: *loaded.Position, Status: loaded.Status})
			mustSucceed(t, err)
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("the positions up to the end (-never interrupted +resumed):\n%s", d)
			}
			if report, err := r.runs.Verify(t.Context(), ""); err != nil || len(report.Faults) > 0 {
				t.Errorf("verify: %+v, %v", report, err)
			}
			// The original run keeps the command that was acknowledged after the checkpoint.
			if old, err := r.runs.Status(t.Context(), testCaller(), run.Ref{RunID: was.Run}); err != nil || old.Handle == was.Handle {
				t.Errorf("the status of the original run is %+v, %v", old, err)
			}
		})
	}
}

// runAndKill runs a server on a directory and kills it after it has reported its state.
func runAndKill(t *testing.T, dir, flow string, env ...string) savedState {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	child.Env = append(append(os.Environ(), childDir+"="+dir, childFlow+"="+flow), env...)
	child.Stderr = os.Stderr
	stdin, err := child.StdinPipe()
	mustSucceed(t, err)
	defer func() { _ = stdin.Close() }()
	out, err := child.StdoutPipe()
	mustSucceed(t, err)
	mustSucceed(t, child.Start())
	line, err := bufio.NewReader(out).ReadBytes('\n')
	_ = child.Process.Kill()
	_ = child.Wait()
	mustSucceed(t, err)
	var was savedState
	dec := json.NewDecoder(bytesOf(line))
	dec.UseNumber()
	mustSucceed(t, dec.Decode(&was))
	return was
}

// TestLoopRoundTrip checks that a checkpoint that is saved in the middle of a loop is loaded
// with the same position and context, whether or not the run has continued.
func TestLoopRoundTrip(t *testing.T) {
	t.Parallel()
	for _, flow := range []string{"move", "release"} {
		t.Run(flow, func(t *testing.T) {
			t.Parallel()
			r := setupRig(t)
			a, err := runToLoop(t.Context(), r, flow)
			mustSucceed(t, err)
			saved, err := r.Save(t.Context(), testCaller(), contexts.SaveRequest{Handle: a.Handle})
			mustSucceed(t, err)
			still, err := r.Load(t.Context(), testCaller(), contexts.LoadRequest{Session: a.RunID})
			mustSucceed(t, err)
			if still.ID != saved.ID || still.Forked || still.Handle != a.Handle || len(still.NotSet) > 0 {
				t.Fatalf("loading a checkpoint of an unchanged run returned %+v", still)
			}
			_, err = handIn(t.Context(), r, a, "gone on")
			mustSucceed(t, err)
			on, err := r.Load(t.Context(), testCaller(), contexts.LoadRequest{ID: saved.ID})
			mustSucceed(t, err)
			for name, loaded := range map[string]*contexts.Loaded{"still": still, "gone on": on} {
				if d := cmp.Diff(a.Position, *loaded.Position); d != "" {
					t.Errorf("%s: position (-want +got):\n%s", name, d)
				}
			}
			if d := cmp.Diff(string(still.Context), string(on.Context)); d != "" {
				t.Errorf("context (-unchanged +continued):\n%s", d)
			}
			if on.Position.Loop == nil || on.Position.Loop.Round != 2 {
				t.Errorf("the loop is at %+v", on.Position.Loop)
			}
		})
	}
}

// TestSavedContextIsCanonical checks that a context that a tool passes decoded is stored like
// the same context as JSON, with the same warnings.
func TestSavedContextIsCanonical(t *testing.T) {
	t.Parallel()
	r := setupRig(t)
	const text = `{"b":{"z":1.50,"a":"<é\u2028>"},"a":[12345678901234567890,null,true],"password":"hunter2horse"}`
	var decoded map[string]any
	mustSucceed(t, jsontext.Decode([]byte(text), &decoded))
	one, err := r.Save(t.Context(), testCaller(), contexts.SaveRequest{Session: "one", Context: decoded})
	mustSucceed(t, err)
	two, err := r.checkpoints.Save(t.Context(), testCaller().Principal, checkpoint.SaveRequest{Session: "two", Context: json.RawMessage(text)})
	mustSucceed(t, err)
	got, err := r.checkpoints.Get(t.Context(), testCaller().Principal, one.ID)
	mustSucceed(t, err)
	if !bytes.Equal(got.Sum, two.Sum) || len(one.Warnings) != 1 || cmp.Diff(one.Warnings, two.Warnings) != "" {
		t.Errorf("saved with the hash %x and %+v, and as JSON with %x and %+v", got.Sum, one.Warnings, two.Sum, two.Warnings)
	}
}
