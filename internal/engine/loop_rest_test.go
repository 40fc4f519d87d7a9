package engine_test

import (
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/workflow/phases"
)

// eachFile has a loop over files that maxIterations ends after two items, with two steps in
// its body, and a step after the loop.
const eachFile = `[{"id":"each","type":"loop","title":"Each","prompt":"Change {{f}} alone.","loop":{"type":"forEach","items":"files","itemVar":"f","maxIterations":2},
	"body":[{"id":"one","title":"One","prompt":"Look."},{"id":"two","title":"Two","prompt":"Work."}]},{"id":"end-step","title":"End","prompt":"End."}]`

// TestLoopRestIsReported checks that a run reports a loop that maxIterations ends before
// the end of its list: in the rounds of the loop, after it, and at the end of the run.
func TestLoopRestIsReported(t *testing.T) {
	t.Parallel()
	p := compileSteps(t, eachFile)
	s := applyToProgram(t, p, engine.State{}, startCommand(map[string]any{"files": []any{"a", "b", "c", "d", "e"}}))
	if pos := p.PositionOf(s); !strings.Contains(pos.Prompt, "the loop ends after item 2") {
		t.Errorf("in the loop: %q", pos.Prompt)
	}
	work := outputCommand("done", nil)
	s = applyToProgram(t, p, s, work, work, work, work)
	const left = "Loop 'each' ended after round 2 of 5 because of maxIterations. Rounds left out: 3."
	if pos := p.PositionOf(s); pos.ID != "end-step" || pos.Message != left {
		t.Errorf("after the loop: %+v", pos)
	}
	s = applyToProgram(t, p, s, work)
	if pos := p.PositionOf(s); pos.Kind != engine.PositionEnd || pos.Message != left {
		t.Errorf("at the end: %+v", pos)
	}
	s = applyToProgram(t, p, engine.State{}, startCommand(map[string]any{"files": []any{"a", "b"}}), work, work, work, work, work)
	if pos := p.PositionOf(s); pos.Kind != engine.PositionEnd || pos.Message != "" {
		t.Errorf("without a rest: %+v", pos)
	}
}

// TestPhaseLoopRestIsReported checks that a run of a phase workflow reports a loop that
// maxIterations ends before the end of its list: in the rounds of the loop, and at the gate
// after it.
func TestPhaseLoopRestIsReported(t *testing.T) {
	t.Parallel()
	p := engine.CompilePhases(&phases.Workflow{ID: "w", InitialPhase: "a", Phases: []phases.Phase{{
		ID: "a", Name: "A", Required: true,
		Loops: []phases.Loop{{
			ID: "l", Name: "L", Type: phases.LoopForEach, Over: "files", MaxIterations: 1,
			Steps: []phases.Step{{ID: "s", Name: "S", Required: true}},
		}},
		Checkpoints: []phases.Checkpoint{{ID: "c", Name: "C", Message: "Good?", Required: true, Options: []phases.Option{{ID: "yes", Label: "Yes"}}}},
	}}})
	s := applyCommands(t, p, engine.State{}, startCommand(map[string]any{"files": []any{"a", "b"}}))
	if pos := p.PositionOf(s); !strings.Contains(pos.Prompt, "The list has 2 items, and the loop ends after 1") {
		t.Errorf("in the loop: %q", pos.Prompt)
	}
	s = applyCommands(t, p, s, outputCommand("done", nil))
	if pos := p.PositionOf(s); pos.ID != "c" || !strings.HasPrefix(pos.Message, "Good?\nLoop 'l'") || !strings.HasSuffix(pos.Message, "Rounds left out: 1.") {
		t.Errorf("at the gate: %+v", pos)
	}
}

// TestLoopPrompt checks that a loop's prompt comes with the first step of each round.
func TestLoopPrompt(t *testing.T) {
	t.Parallel()
	p := compileSteps(t, eachFile)
	s := applyToProgram(t, p, engine.State{}, startCommand(map[string]any{"files": []any{"a", "b"}}))
	for _, want := range []string{"Change a alone.", "", "Change b alone.", ""} {
		prompt := p.PositionOf(s).Prompt
		if got := strings.Contains(prompt, "alone"); got != (want != "") || !strings.Contains(prompt, want) {
			t.Errorf("want %q in %q", want, prompt)
		}
		s = applyToProgram(t, p, s, outputCommand("done", nil))
	}
	if res := callNext(t, p, []string{"one"}, `{"files":["a","b"]}`); strings.Contains(res.Guidance.Prompt, "alone") {
		t.Errorf("the second step: %q", res.Guidance.Prompt)
	}
	if res := callNext(t, p, []string{"one", "two"}, `{"files":["a","b"]}`); !strings.Contains(res.Guidance.Prompt, "Change b alone.") {
		t.Errorf("the second round: %q", res.Guidance.Prompt)
	}
}

// TestNextReportsSkippedItems checks that the prompt of a stateless call reports a loop
// that was skipped because it has no list. A loop that left out items is reported once.
func TestNextReportsSkippedItems(t *testing.T) {
	t.Parallel()
	p := compileSteps(t, eachFile)
	for files, want := range map[string]string{
		`{}`:            "Loop 'each': Expected array for forEach items 'files', got undefined; the loop was skipped",
		`{"files":"a"}`: "got string; the loop was skipped",
	} {
		if res := callNext(t, p, nil, files); stepID(res) != "end-step" || !strings.Contains(res.Guidance.Prompt, want) {
			t.Errorf("%s: %q", files, res.Guidance.Prompt)
		}
	}
	done := []string{"one", "two", "one", "two"}
	res := callNext(t, p, done, `{"files":["a","b","c","d","e"]}`)
	if want := "Maximum iterations (2) reached; items that were not handed out: 3 of 5"; !strings.Contains(res.Guidance.Prompt, want) {
		t.Errorf("after the loop: %q", res.Guidance.Prompt)
	}
	again, err := p.Next(engine.NextRequest{Completed: append(done, "end-step"), Context: roundTripJSON(t, res.Context)})
	if err != nil || !again.IsComplete || again.Guidance.Prompt != "Workflow complete." {
		t.Errorf("at the end: %+v, %v", again, err)
	}
}

// TestOptionalPhaseSaysSo checks that the prompt of a required step of an optional phase
// states that the rest of the phase can be skipped, and that the skip leaves the phase. A
// required phase cannot be skipped.
func TestOptionalPhaseSaysSo(t *testing.T) {
	t.Parallel()
	step := func(id string) phases.Step { return phases.Step{ID: id, Name: id, Required: true} }
	p := engine.CompilePhases(&phases.Workflow{ID: "w", InitialPhase: "a", Phases: []phases.Phase{
		{ID: "a", Name: "A", Steps: []phases.Step{step("s1"), step("s2"), step("s3")}, Transitions: []phases.Transition{{To: "b"}}},
		{ID: "b", Name: "B", Required: true, Steps: []phases.Step{step("t1")}},
	}})
	s := applyCommands(t, p, engine.State{}, startCommand(nil), outputCommand("done", nil))
	if pos := p.PositionOf(s); pos.ID != "s2" || !strings.Contains(pos.Prompt, "The phase is optional: skip the rest of it") {
		t.Errorf("at the second step: %+v", pos)
	}
	s = applyCommands(t, p, s, skipCommand())
	if pos := p.PositionOf(s); pos.ID != "t1" || strings.Contains(pos.Prompt, "optional") {
		t.Errorf("after the skip: %+v", pos)
	}
	if _, refusal := p.Decide(s, skipCommand()); refusal == nil || refusal.Rule != engine.RuleStepRequired {
		t.Errorf("a skip of a required phase: %+v", refusal)
	}
}
