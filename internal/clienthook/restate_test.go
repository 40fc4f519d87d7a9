package clienthook_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/guideway-dev/guideway/internal/clienthook"
	"github.com/guideway-dev/guideway/internal/contexts/compress"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/platform/shortid"
)

// restated returns the text that a session gets after a compaction.
func restated(t interface {
	Helper()
	Fatal(args ...any)
	Context() context.Context
}, r *rig, session string,
) string {
	t.Helper()
	out := r.Answer(t.Context(), "SessionStart", strings.NewReader(`{"session_id":"`+session+`","source":"compact"}`))
	var a struct {
		HookSpecificOutput struct{ AdditionalContext string }
	}
	if err := json.Unmarshal(out.Out, &a); err != nil {
		t.Fatal(err, string(out.Out))
	}
	return a.HookSpecificOutput.AdditionalContext
}

// TestRestatedPositionIsBounded checks that the position, the criteria and the last steps
// have at most 1,500 tokens by the exact count, for texts of any kind, and that the handle is
// never cut off.
func TestRestatedPositionIsBounded(t *testing.T) {
	t.Parallel()
	counter := compress.NewTokenizer()
	r := newRig(t, "claude-code")
	r.bind(t)
	session := sessionOf(t, r)
	words := rapid.SampledFrom([]string{
		"the plan names every place ", "retryWithBackoff(ctx, 3) ", "x9Zq0LmA7", "{}[]();=>&& ", "需要测试的内容", "🧪🛠️👩‍👩‍👧", "Überprüfung ", "0123456789", "\n\t- ", "kzxqjvw", "kzxqjvw ", "ЁЖЩЪ", "\u0e01\u0e33\u0e25\u0e31\u0e07",
	})
	long := rapid.Custom(func(rt *rapid.T) string {
		return strings.Repeat(strings.Join(rapid.SliceOfN(words, 1, 6).Draw(rt, "words"), ""), rapid.SampledFrom([]int{1, 10, 120}).Draw(rt, "times"))
	})
	rapid.Check(t, func(rt *rapid.T) {
		r.runs.run.Goal = long.Draw(rt, "goal")
		r.runs.run.Position = engine.Position{
			Kind: engine.PositionStep, ID: "plan", Title: long.Draw(rt, "title"), Prompt: long.Draw(rt, "prompt"), Criteria: []string{long.Draw(rt, "criteria"), long.Draw(rt, "more")},
		}
		r.runs.steps = []clienthook.CompletedStep{{Step: "a", Output: long.Draw(rt, "a")}, {Step: "b", Output: long.Draw(rt, "b")}, {Step: "c", Output: long.Draw(rt, "c")}}
		text := restated(rt, r, session)
		if n := counter.Count(text); n > 1500 {
			rt.Fatalf("the text has %d tokens, want at most 1500:\n%s", n, text)
		}
		if !strings.Contains(text, handle) {
			rt.Fatalf("the text has no handle:\n%s", text)
		}
		r.runs.run.Position.Sets = []engine.Need{{Variable: long.Draw(rt, "variable"), Type: "string"}, {Variable: long.Draw(rt, "another"), Type: "string"}}
		r.runs.run.Handle = shortid.Token("h_") // a new position, so that the stop is refused
		text = refusedStop(rt, r, session)
		if n := counter.Count(text); n > 1500 || !strings.Contains(text, r.runs.run.Handle) {
			rt.Fatalf("the refusal of a stop has %d tokens, want at most 1500 and the handle:\n%s", n, text)
		}
		r.runs.run.Handle = handle
	})
}

// refusedStop returns the reason of a refused stop.
func refusedStop(t interface {
	Helper()
	Fatal(args ...any)
	Context() context.Context
}, r *rig, session string,
) string {
	t.Helper()
	out := r.Answer(t.Context(), "Stop", strings.NewReader(`{"session_id":"`+session+`"}`))
	var a struct{ Decision, Reason string }
	if err := json.Unmarshal(out.Out, &a); err != nil || a.Decision != "block" {
		t.Fatal(err, string(out.Out))
	}
	return a.Reason
}

// TestRefusedStopStatesThePosition checks that an agent whose stop is refused reads the
// title of the step, its criteria, and the next call with its arguments.
func TestRefusedStopStatesThePosition(t *testing.T) {
	t.Parallel()
	r := newRig(t, "claude-code")
	r.bind(t)
	r.runs.run.Position.NeedsNotes = true
	r.runs.run.Position.Sets = []engine.Need{{Variable: "severity", Description: "how bad it is", Allowed: []any{"low", "high"}, Exhaustive: true}}
	text := refusedStop(t, r, sessionOf(t, r))
	for _, want := range []string{
		runID, "demo", "Current step: Plan", "- Name the places to edit.", "workflow_continue with handle " + handle,
		"- output: the step's full result", "- notes: ", "severity: how bad it is; one of: low, high", "workflow_abort",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the text lacks %q:\n%s", want, text)
		}
	}
}

// TestRestatedPosition checks what an agent reads after a compaction.
func TestRestatedPosition(t *testing.T) {
	t.Parallel()
	r := newRig(t, "claude-code")
	r.bind(t)
	text := restated(t, r, sessionOf(t, r))
	for _, want := range []string{runID, "demo", "Goal: add retries", "look: cart.go:12 retries nothing", "Current step: Plan", "Write the plan.", "Name the places to edit.", "Tools: never Edit", "workflow_continue with handle " + handle} {
		if !strings.Contains(text, want) {
			t.Errorf("the text lacks %q:\n%s", want, text)
		}
	}
}
