package bypasstest

import (
	"encoding/json"

	"github.com/guideway-dev/guideway/internal/engine"
	parsed "github.com/guideway-dev/guideway/internal/workflow"
)

// rig is the product, or its engine alone, with one run in it.
type rig interface {
	// start begins the run.
	start(vars map[string]any) (seen, *denial)
	// send hands a command in, with the current handle.
	send(c command) (seen, *denial)
	// look says where the run is, and changes nothing.
	look() seen
	// state is all of the run that a refusal must leave alone.
	state() string
}

// seen is what an answer shows.
type seen struct {
	status   string
	position engine.Position
	// whole is the JSON of all of it.
	whole string
}

// denial is a refusal.
type denial struct {
	rule, message string
	whole         string
}

// flowEngine is guide alone: the rules without handles, stores and users.
type flowEngine struct {
	program *engine.Program
	run     engine.State
	// people has only people open gates.
	people bool
}

func (e *flowEngine) start(vars map[string]any) (seen, *denial) {
	return e.decide(engine.Command{Start: &engine.Start{Context: vars, Person: e.people}})
}

func (e *flowEngine) send(c command) (seen, *denial) {
	if c.kind == "abort" {
		return e.decide(engine.Command{Abort: &engine.Abort{Reason: "enough"}})
	}
	do := &engine.Continue{Output: c.output, Notes: c.notes, Context: c.context, Step: c.step, Person: c.person}
	do.Answer, do.Skip = c.parts()
	return e.decide(engine.Command{Continue: do})
}

// parts gives a command's answer and skip as the engine takes them.
func (c command) parts() (*engine.Answer, *engine.Skip) {
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

func (e *flowEngine) decide(c engine.Command) (seen, *denial) {
	events, refusal := e.program.Decide(e.run, c)
	if refusal != nil {
		return seen{}, &denial{refusal.Rule, refusal.Message, asJSON(refusal)}
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

// failer is a test, of testing or of rapid.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
	Logf(format string, args ...any)
}

// parse reads a definition as the product does.
func parse(t failer, document []byte) *parsed.Definition {
	t.Helper()
	def, found := parsed.Parse("random.json", document)
	if def == nil {
		t.Fatalf("the definition does not parse: %+v\n%s", found, document)
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
