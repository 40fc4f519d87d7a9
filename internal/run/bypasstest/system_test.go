package bypasstest

import (
	"context"
	"encoding/json"

	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/evidence"
	parsed "github.com/guideway-dev/guideway/internal/workflow"
	"github.com/guideway-dev/guideway/internal/workflow/criteria"
)

// system is the service or the engine alone, with one run.
type system interface {
	start(vars map[string]any) (seen, *denial)
	// send sends a command with the current handle.
	send(c command) (seen, *denial)
	// look returns the position of the run without changing the run.
	look() seen
	// state returns everything that a refusal must not change.
	state() string
}

// seen is the content of an answer.
type seen struct {
	status   string
	position engine.Position
	// whole is the complete JSON.
	whole string
}

// denial is a refusal.
type denial struct {
	rule, message string
	whole         string
	// pending are the checks that the engine asks for.
	pending []criteria.PendingCheck
}

// flowEngine is the engine alone, without handles, stores and users.
type flowEngine struct {
	program *engine.Program
	run     engine.State
	// people is set if every gate requires human approval.
	people bool
}

func (e *flowEngine) start(vars map[string]any) (seen, *denial) {
	return e.applyCommand(engine.Command{Start: &engine.Start{Context: vars, Person: e.people}})
}

func (e *flowEngine) send(c command) (seen, *denial) {
	if c.kind == "abort" {
		return e.applyCommand(engine.Command{Abort: &engine.Abort{Reason: "enough"}})
	}
	do := &engine.Continue{Output: c.output, Notes: c.notes, Context: c.context, Step: c.step, Person: c.person}
	do.Answer, do.Skip = c.answerAndSkip()
	do.Checks = map[string]criteria.CheckOutcome{}
	for {
		answer, refused := e.applyCommand(engine.Command{Continue: do})
		if refused == nil || refused.rule != engine.RuleChecksPending {
			return answer, refused
		}
		for _, p := range refused.pending {
			if _, known := do.Checks[p.Key]; known {
				panic("the engine asks twice for the outcome of " + p.Key)
			}
			do.Checks[p.Key] = scriptedOutcome(c.checks, p.Rule)
		}
	}
}

// scriptedOutcome returns the outcome of a check by its name.
func scriptedOutcome(checks map[string]string, r *criteria.CheckRule) criteria.CheckOutcome {
	name := r.Check
	if r.Type == criteria.Command {
		name = r.Argv[0]
	}
	switch checks[name] {
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

// scripted is a checker whose outcomes are in the context of the call.
type scripted struct{}

type scriptKey struct{}

// withOutcomes returns a context in which a scripted checker has outcomes.
func withOutcomes(ctx context.Context, checks map[string]string) context.Context {
	return context.WithValue(ctx, scriptKey{}, checks)
}

func (scripted) Workspace(_ context.Context, dir string) (*evidence.Workspace, error) {
	return &evidence.Workspace{Root: dir}, nil
}

func (scripted) Check(ctx context.Context, r evidence.Request) (evidence.Result, error) {
	checks, _ := ctx.Value(scriptKey{}).(map[string]string)
	return evidence.Result{Type: r.Rule.Type, Describe: r.Rule.Describe(), CheckOutcome: scriptedOutcome(checks, r.Rule)}, nil
}

// answerAndSkip returns the answer and the skip of a command for the engine.
func (c command) answerAndSkip() (*engine.Answer, *engine.Skip) {
	var answer *engine.Answer
	if c.answer != nil {
		answer = &engine.Answer{OptionID: c.answer.option, Decline: c.answer.decline, Note: c.answer.note}
	}
	var skip *engine.Skip
	if c.skip {
		skip = &engine.Skip{Reason: "not needed"}
	}
	return answer, skip
}

func (e *flowEngine) applyCommand(c engine.Command) (seen, *denial) {
	events, refusal := e.program.Decide(e.run, c)
	if refusal != nil {
		return seen{}, &denial{refusal.Rule, refusal.Message, asJSON(refusal), refusal.Pending}
	}
	for _, ev := range events {
		e.run = engine.Apply(e.run, ev)
	}
	return e.look(), nil
}

func (e *flowEngine) look() seen {
	pos := e.program.PositionOf(e.run)
	return seen{status: string(e.program.Status(e.run)), position: pos, whole: asJSON(pos)}
}

func (e *flowEngine) state() string { return asJSON(e.run) }

// failer is implemented by testing.T and rapid.T.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
	Logf(format string, args ...any)
}

// parseDefinition parses a definition with the parser of the product.
func parseDefinition(t failer, document []byte) *parsed.Definition {
	t.Helper()
	def, found := parsed.Parse("random.json", document)
	if def == nil {
		t.Fatalf("the definition cannot be parsed: %+v\n%s", found, document)
	}
	return def
}

func asJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
