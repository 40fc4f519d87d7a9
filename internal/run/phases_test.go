package run_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/run"
)

// shippingWorkflow is a phase workflow with required and optional steps, a checkpoint, a
// decision and a human approval.
const shippingWorkflow = `{"id":"shipping","version":"1.0.0","title":"Ship it","initialPhase":"make",
"variables":[{"name":"approved","type":"boolean","required":false,"defaultValue":false},
  {"name":"tests","type":"number","required":false},{"name":"urgent","type":"boolean","required":false}],
"phases":[
 {"id":"make","name":"Make","required":true,
  "steps":[{"id":"write","name":"Write","required":true},{"id":"polish","name":"Polish","required":false}],
  "checkpoints":[{"id":"review","name":"Review","message":"Is it good?","required":true,"blocking":true,
    "options":[{"id":"good","label":"Good","effect":{"setVariable":{"approved":true}}},{"id":"bad","label":"Bad","effect":{"transitionTo":"make"}}]}],
  "decisions":[{"id":"enough","name":"Enough tests","branches":[
    {"id":"yes","label":"Yes","condition":{"type":"simple","variable":"tests","operator":">=","value":10},"transitionTo":"sign"},
    {"id":"no","label":"No","isDefault":true,"transitionTo":"make"}]}]},
 {"id":"sign","name":"Sign","required":true,
  "checkpoints":[{"id":"seal","name":"Seal","message":"SECRET SEAL","required":true,"blocking":true,"approval":"human","options":[{"id":"sealed","label":"Sealed"}]}],
  "transitions":[{"to":"ship","condition":{"type":"simple","variable":"approved","operator":"==","value":true}}]},
 {"id":"ship","name":"Ship","required":true,"steps":[{"id":"send","name":"SECRET LAST STEP","required":true}]}]}`

// TestPhaseRunsCannotBeCheated tries illegal moves at each position of a phase workflow,
// each time in a new process. Each move is refused by its rule and leaves the run
// unchanged, and then the legal move is accepted.
func TestPhaseRunsCannotBeCheated(t *testing.T) {
	t.Parallel()
	b := newTestBench(t)
	b.shelf["shipping"] = shippingWorkflow
	answer := func(option string) *engine.Answer { return &engine.Answer{OptionID: option} }
	type illegal struct {
		name, rule string
		request    run.ContinueRequest
	}
	always := []illegal{
		{"set a variable that only the workflow sets", engine.RuleServerVariable, run.ContinueRequest{Output: "o", Context: map[string]any{"approved": true}}},
		{"name the last step", engine.RuleWrongStep, run.ContinueRequest{Step: "send", Output: "o"}},
	}
	atGate := []illegal{
		{"an output instead of an answer", engine.RuleGateUnanswered, run.ContinueRequest{Output: "reviewed, it is good"}},
		{"nothing", engine.RuleGateUnanswered, run.ContinueRequest{}},
		{"an answer that is not offered", engine.RuleUnknownOption, run.ContinueRequest{Answer: answer("ship")}},
		{"decline a required checkpoint", engine.RuleGateRequired, run.ContinueRequest{Answer: &engine.Answer{Decline: true}}},
		{"an answer that sets the workflow's variable", engine.RuleServerVariable, run.ContinueRequest{Answer: answer("bad"), Context: map[string]any{"approved": true}}},
		{"skip it", engine.RuleGateUnanswered, run.ContinueRequest{Skip: &engine.Skip{Reason: "no time"}}},
	}
	walk := []struct {
		at      string
		illegal []illegal
		legal   run.ContinueRequest
		via     run.Via
	}{
		{"write", []illegal{
			{"skip a required step", engine.RuleStepRequired, run.ContinueRequest{Skip: &engine.Skip{Reason: "no time"}}},
			{"nothing", engine.RuleOutputMissing, run.ContinueRequest{}},
			{"an answer without a gate", engine.RuleNoGate, run.ContinueRequest{Answer: answer("good")}},
			{"a variable of a different type", engine.RuleVariableType, run.ContinueRequest{Output: "o", Context: map[string]any{"tests": "many"}}},
		}, run.ContinueRequest{Output: "written"}, ""},
		{"polish", nil, run.ContinueRequest{Skip: &engine.Skip{Reason: "a draft"}}, ""},
		{"review", atGate, run.ContinueRequest{Answer: answer("good")}, ""},
		{"enough", []illegal{
			{"claim that the condition holds", engine.RuleContextNeeded, run.ContinueRequest{Output: "all 12 tests pass"}},
			{"answer a gate that is not open", engine.RuleNoGate, run.ContinueRequest{Answer: answer("yes")}},
		}, run.ContinueRequest{Context: map[string]any{"tests": 9.0}}, ""},
		{"write", nil, run.ContinueRequest{Output: "written again", Context: map[string]any{"tests": 12.0}}, ""},
		{"polish", nil, run.ContinueRequest{Output: "polished"}, ""},
		{"review", atGate, run.ContinueRequest{Answer: answer("good")}, ""},
		{"seal", []illegal{
			{"answer for a person", engine.RulePerson, run.ContinueRequest{Answer: answer("sealed")}},
			{"an output instead of an answer", engine.RuleGateUnanswered, run.ContinueRequest{Output: "sealed"}},
		}, run.ContinueRequest{Answer: answer("sealed")}, run.ViaTerminal},
		{"send", []illegal{
			{"skip the last step", engine.RuleStepRequired, run.ContinueRequest{Skip: &engine.Skip{Reason: "sent"}}},
		}, run.ContinueRequest{Output: "sent"}, ""},
	}
	a := startRun(t, b.Service, "shipping", nil)
	for i, place := range walk {
		s := b.newService(t) // use a new process at each position
		now, err := s.Status(t.Context(), agentCaller(), run.Ref{RunID: a.RunID})
		if err != nil || now.Position.ID != place.at || now.Handle != a.Handle {
			t.Fatalf("%d: the run is at %+v (%v), want %s", i, now, err, place.at)
		}
		for _, try := range append(always, place.illegal...) {
			switch {
			case try.name == "name the last step" && place.at == "send":
				continue
			case try.rule == engine.RuleServerVariable && now.Position.Kind == engine.PositionGate:
				try.rule = engine.RuleGateUnanswered // the rule for open gates is checked first
			}
			try.request.Handle = a.Handle
			_, err := s.Continue(t.Context(), agentCaller(), try.request)
			r, ok := run.AsRefusal(err)
			if !ok || r.Rule != try.rule {
				t.Errorf("%d %s: %s: got %v, want a refusal by %s", i, place.at, try.name, err, try.rule)
				continue
			}
			if told, _ := json.Marshal(r); place.at != "send" && strings.Contains(string(told), "SECRET LAST") {
				t.Errorf("%d %s: %s: the refusal reveals later steps: %s", i, place.at, try.name, told)
			}
			same, err := s.Status(t.Context(), agentCaller(), run.Ref{RunID: a.RunID})
			if d := cmp.Diff(now, same); err != nil || d != "" {
				t.Fatalf("%d %s: %s: the run has changed (%v):\n%s", i, place.at, try.name, err, d)
			}
		}
		place.legal.Handle = a.Handle
		who := agentCaller()
		if place.via != "" {
			who = personCaller(place.via)
		}
		if a, err = s.Continue(t.Context(), who, place.legal); err != nil {
			t.Fatalf("%d %s: the legal command returned %v", i, place.at, err)
		}
	}
	if a.Status != engine.StatusCompleted {
		t.Errorf("at the end, the run is %+v", a)
	}
	if report, err := b.Verify(t.Context(), a.RunID); err != nil || len(report.Faults) > 0 {
		t.Errorf("verify: %v %v", report, err)
	}
}

// TestTheNextCallOfAPhaseRunIsLegal checks that a run accepts the call that an answer
// proposes.
func TestTheNextCallOfAPhaseRunIsLegal(t *testing.T) {
	t.Parallel()
	b := newTestBench(t)
	b.shelf["checked"] = `{"id":"checked","version":"1.0.0","title":"Checked","initialPhase":"a",
		"variables":[{"name":"names","type":"array","required":true},{"name":"size","type":"number"},{"name":"plan","type":"object"},{"name":"ready","type":"boolean"}],
		"phases":[{"id":"a","name":"A","required":true,
		"entryActions":[{"action":"validate","target":"desk","message":"Is the desk tidy?"}],
		"steps":[{"id":"s","name":"Do","required":true,"actions":[{"action":"validate","target":"lamp","message":"Is the lamp on?"},
			{"action":"validate","target":"size"},{"action":"validate","target":"names"},{"action":"validate","target":"ready","value":true}]}],
		"loops":[{"id":"l","name":"L","type":"forEach","over":"plan.parts.list","variable":"part","maxIterations":9,"steps":[{"id":"p","name":"Do it","required":true}]}],
		"checkpoints":[{"id":"c","name":"C","message":"Good?","required":true,"blocking":true,"options":[{"id":"yes","label":"Yes"}]}]}]}`
	a := startRun(t, b.Service, "checked", nil)
	var moves int
	for ; a.Next != nil; moves++ {
		a = mustContinue(t, b.Service, fillForm(t, a.Next, nil))
	}
	if moves != 6 || a.Status != engine.StatusCompleted {
		t.Errorf("%d moves, then %+v", moves, a)
	}
}

// TestDeadEnd checks that a run that waits for a variable that only the workflow sets
// reports a dead end, and suggests the fork at the event before the answer that led there.
func TestDeadEnd(t *testing.T) {
	t.Parallel()
	b := newTestBench(t)
	b.shelf["level"] = `{"id":"level","version":"1.0.0","title":"Level","initialPhase":"a",
		"variables":[{"name":"level","type":"number","defaultValue":4}],
		"phases":[{"id":"a","name":"A","required":true,
		"checkpoints":[{"id":"k","name":"K","message":"Leave?","required":true,"blocking":true,"options":[
			{"id":"j","label":"J","effect":{"setVariable":{"level":5}}},{"id":"n","label":"N","effect":{"setVariable":{"level":4}}}]}],
		"exitActions":[{"action":"validate","target":"level","value":4,"message":"level must be 4"}]}]}`
	a := startRun(t, b.Service, "level", nil)
	stuck := mustContinue(t, b.Service, run.ContinueRequest{Handle: a.Handle, Answer: &engine.Answer{OptionID: "j"}})
	if !stuck.Position.DeadEnd || stuck.Next == nil || stuck.Next.Tool != "workflow_fork" || stuck.Next.Arguments["seq"] == nil || len(stuck.Next.Fields) > 0 {
		t.Fatalf("at the dead end, the position is %+v, next %+v", stuck.Position, stuck.Next)
	}
	_, err := b.Continue(t.Context(), agentCaller(), run.ContinueRequest{Handle: stuck.Handle, Context: map[string]any{"level": 4}})
	if r := requireRefusal(t, err, engine.RuleServerVariable); r.Next == nil || r.Next.Tool != "workflow_fork" {
		t.Errorf("the refusal suggests %+v", r.Next)
	}
	fork, err := b.Fork(t.Context(), agentCaller(), run.ForkRequest{Ref: run.Ref{RunID: a.RunID}, Seq: stuck.Next.Arguments["seq"].(int64)})
	if err != nil || fork.Position.ID != "k" {
		t.Fatalf("Fork returned %+v, %v", fork, err)
	}
	if end := mustContinue(t, b.Service, run.ContinueRequest{Handle: fork.Handle, Answer: &engine.Answer{OptionID: "n"}}); end.Status != engine.StatusCompleted {
		t.Errorf("at the end, the run is %+v", end)
	}
}
