package driver_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	machinedef "github.com/guideway-dev/guideway/internal/machine/definition"
	"github.com/guideway-dev/guideway/internal/machine/driver"
	machineengine "github.com/guideway-dev/guideway/internal/machine/engine"
	"github.com/guideway-dev/guideway/internal/run"
)

// replayRecording replays a recording after a round trip through JSON, with different
// handlers if given.
func replayRecording(t *testing.T, r *rig, d *machinedef.Definition, recording *driver.Recording, h handlers) *driver.ReplayResult {
	t.Helper()
	text, err := json.Marshal(recording)
	if err != nil {
		t.Fatal(err)
	}
	var kept driver.Recording
	if err := json.Unmarshal(text, &kept); err != nil {
		t.Fatal(err)
	}
	if h == nil {
		h = r.handlers
	}
	out, err := driver.Replay(t.Context(), driver.Options{Journal: newMemory(), Key: journalKey(), Machines: r.shelf, Handlers: h}, d, &kept)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestReplay checks that replays have the recorded outcomes, without a model, tool or
// person. It replays a run in which a person decided on a lost tool call, and a run whose
// sub-machine waits for a person.
func TestReplay(t *testing.T) {
	t.Parallel()
	journal := newMemory()
	r := newTen(t, journal)
	id := r.startRun("ten", map[string]any{"task": "x"})
	r.tools.call = func(c machineengine.ToolCall) (machineengine.ToolResult, error) {
		if c.Name == "s__ask" && len(r.tools.calls) == 3 {
			return machineengine.ToolResult{}, errKilled // the outcome is unknown
		}
		return machineengine.ToolResult{Content: "done " + c.Arguments, Error: c.Name == "s__safe"}, nil
	}
	if s := r.driveRun(id); s.Pause == nil || s.Pause.Code != machineengine.ErrorKindUnknownOutcome {
		t.Fatalf("the run stopped with the status %+v", s)
	}
	if _, err := r.Decide(t.Context(), anna, id, driver.OutcomeAnswer{Decision: machineengine.DecideDone, Result: "done by hand"}); err != nil {
		t.Fatal(err)
	}
	want := outcomeOf(r.driveRun(id))
	recording, d, err := r.Record(t.Context(), anna, id)
	if err != nil || len(recording.Responses) != 10 || len(recording.Tools) != 12 || recording.Tools[2].Result.Content != "done by hand" {
		t.Fatalf("%+v, %v", recording, err)
	}
	asked, called := len(r.model.requests), len(r.tools.calls)
	out := replayRecording(t, r, d, recording, nil)
	if len(out.Differences) > 0 || outcomeOf(out.Status).Output != want.Output || len(r.model.requests) != asked || len(r.tools.calls) != called {
		t.Errorf("%q", out.Differences)
	}

	within := newRig(t, newMemory(), []*machinedef.Definition{parseMachine(t, waiting, smallRoles), parseMachine(t, outer, smallRoles)}, handlers{},
		`[{"content": "one"}, {"content": "two"}, {"content": "three"}]`)
	id = within.startRun("outer", map[string]any{"what": "the plan"})
	within.driveRun(id)
	person := anna
	person.Via = run.ViaTerminal
	if _, err := within.answerInput(person, id, json.RawMessage(`"yes"`)); err != nil {
		t.Fatal(err)
	}
	within.driveRun(id)
	recording, d, err = within.Record(t.Context(), anna, id)
	if err != nil || len(recording.Responses) != 3 || len(recording.Given) != 1 {
		t.Fatalf("%+v, %v", recording, err)
	}
	if out := replayRecording(t, within, d, recording, nil); len(out.Differences) > 0 || string(out.Status.Output) != `"yes"` {
		t.Errorf("%q", out.Differences)
	}
}

// TestReplayDiffers checks that each difference from the recording is reported.
func TestReplayDiffers(t *testing.T) {
	t.Parallel()
	r := newTen(t, newMemory())
	id := r.startRun("ten", map[string]any{"task": "x"})
	r.driveRun(id)
	other := tenHandlers()
	other["more"] = func(*this) (any, error) { return "stop", nil }
	tests := []struct {
		name, want string
		change     func(*driver.Recording)
		handlers   handlers
	}{
		{"the script skips a round", "the states: recorded start, again, now start", nil, other},
		{"calls that are no longer made", "recorded tool calls that were not made: 6", nil, other},
		{"another output", "the output", func(r *driver.Recording) { r.Output = json.RawMessage(`"else"`) }, nil},
		{"another call", "tool call: recorded s__key {}", func(r *driver.Recording) {
			r.Tools = slices.Clone(r.Tools)
			r.Tools[0].Name, r.Tools[0].Arguments = "s__key", "{}"
		}, nil},
		{"one recorded call missing", "is not in the recording", func(r *driver.Recording) { r.Tools = r.Tools[:11] }, nil},
		{"one recorded answer missing", "the status: recorded completed, now paused", func(r *driver.Recording) { r.Responses = r.Responses[:9] }, nil},
		{"an input that is not requested", "were not requested", func(r *driver.Recording) { r.Given = []json.RawMessage{json.RawMessage(`1`)} }, nil},
	}
	for _, tt := range tests {
		recording, d, err := r.Record(t.Context(), anna, id)
		if err != nil {
			t.Fatal(err)
		}
		if tt.change != nil {
			tt.change(recording)
		}
		out := replayRecording(t, r, d, recording, tt.handlers)
		if !slices.ContainsFunc(out.Differences, func(text string) bool { return strings.Contains(text, tt.want) }) {
			t.Errorf("%s: %q", tt.name, out.Differences)
		}
	}
}
