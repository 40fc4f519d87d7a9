package enginetest

import (
	"encoding/json"
	"slices"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/workflow/criteria"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
	"github.com/guideway-dev/guideway/internal/workflow/phases"
)

// flowEngine is the product's engine with one run.
type flowEngine struct {
	program *engine.PhaseProgram
	run     engine.State
	// events are all events of the run; last are those of the last command.
	events, last []engine.Event
}

// engineView is the answer to a command.
type engineView struct {
	status   string
	position engine.Position
	// whole is the position as JSON.
	whole string
}

type refusalView struct {
	rule, message string
	whole         string
}

func (e *flowEngine) sendCommand(c command) (engineView, *refusalView) {
	do := c.forEngine()
	events, refusal := e.program.Decide(e.run, do)
	for refusal != nil && refusal.Rule == engine.RuleChecksPending && !c.recorded {
		for _, p := range refusal.Pending {
			if _, known := do.Continue.Checks[p.Key]; known {
				panic("the engine asks twice for the outcome of " + p.Key)
			}
			do.Continue.Checks[p.Key] = scriptedOutcome(c.checks[p.Key])
		}
		events, refusal = e.program.Decide(e.run, do)
	}
	if refusal != nil {
		return engineView{}, &refusalView{refusal.Rule, refusal.Message, asJSON(refusal)}
	}
	for _, ev := range events {
		e.run = engine.Apply(e.run, ev)
	}
	e.last = events
	e.events = append(e.events, events...)
	return e.currentView(), nil
}

// forEngine converts a command to the engine's type.
func (c command) forEngine() engine.Command {
	switch c.kind {
	case "start":
		return engine.Command{Start: &engine.Start{Context: c.context, Person: c.person}}
	case "abort":
		return engine.Command{Abort: &engine.Abort{Reason: "enough"}}
	}
	do := &engine.Continue{Output: c.output, Notes: c.notes, Context: c.context, Step: c.step, Person: c.person}
	if c.checks != nil {
		do.Checks = map[string]criteria.CheckOutcome{}
	}
	if c.recorded {
		for key, outcome := range c.checks {
			do.Checks[key] = scriptedOutcome(outcome)
		}
	}
	if c.answer != nil {
		do.Answer = &engine.Answer{OptionID: c.answer.option, Decline: c.answer.decline, Note: c.answer.note}
	}
	if c.skip {
		do.Skip = &engine.Skip{Reason: "not needed"}
	}
	return engine.Command{Continue: do}
}

// scriptedOutcome returns the outcome with a name.
func scriptedOutcome(name string) criteria.CheckOutcome {
	switch name {
	case checkPasses:
		return criteria.CheckOutcome{Passed: true}
	case checkUndefined:
		return criteria.CheckOutcome{Undefined: true}
	case checkInconclusive:
		return criteria.CheckOutcome{Inconclusive: true, Issue: "it took too long"}
	default:
		return criteria.CheckOutcome{Issue: "exit code 1"}
	}
}

func (e *flowEngine) currentView() engineView {
	pos := e.program.PositionOf(e.run)
	return engineView{status: string(e.program.Status(e.run)), position: pos, whole: asJSON(pos)}
}

func (e *flowEngine) stateJSON() string { return asJSON(e.run) }

// testReporter is implemented by testing.T and rapid.T.
type testReporter interface {
	Helper()
	Fatalf(format string, args ...any)
	Logf(format string, args ...any)
}

// compileWorkflow compiles a workflow as the product does. It returns nil for a workflow
// with a cycle of skipped phases, which must not load.
func compileWorkflow(t testReporter, document []byte) *engine.PhaseProgram {
	t.Helper()
	root, found := doc.Parse("random.json", document, doc.Limits{})
	if root == nil {
		t.Fatalf("the document cannot be parsed: %+v\n%s", found, document)
	}
	w, found := phases.Parse("random.json", root)
	if len(found) > 0 && !slices.ContainsFunc(found, func(f guideway.Diagnostic) bool { return f.Code != phases.CodeSkipCycle }) {
		return nil
	}
	if w == nil {
		t.Fatalf("the workflow cannot be parsed: %+v\n%s", found, document)
	}
	return engine.CompilePhases(w)
}

func asJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
