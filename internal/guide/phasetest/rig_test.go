package phasetest

import (
	"encoding/json"
	"slices"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/definition/doc"
	"github.com/guideway-dev/guideway/internal/definition/phases"
	"github.com/guideway-dev/guideway/internal/guide"
)

// engine is guide with one run in it.
type engine struct {
	program *guide.PhaseProgram
	run     guide.State
	// events are all of the run's, last those of the last command.
	events, last []guide.Event
}

// seen is what an answer shows.
type seen struct {
	status   string
	position guide.Position
	// whole is the JSON of all of it.
	whole string
}

// denial is a refusal.
type denial struct {
	rule, message string
	whole         string
}

func (e *engine) send(c command) (seen, *denial) {
	events, refusal := e.program.Decide(e.run, c.forEngine())
	if refusal != nil {
		return seen{}, &denial{refusal.Rule, refusal.Message, asJSON(refusal)}
	}
	for _, ev := range events {
		e.run = guide.Apply(e.run, ev)
	}
	e.last = events
	e.events = append(e.events, events...)
	return e.look(), nil
}

// forEngine gives a command as the engine takes it.
func (c command) forEngine() guide.Command {
	switch c.kind {
	case "start":
		return guide.Command{Start: &guide.Start{Context: c.context, Person: c.person}}
	case "abort":
		return guide.Command{Abort: &guide.Abort{Reason: "enough"}}
	}
	do := &guide.Continue{Output: c.output, Notes: c.notes, Context: c.context, Step: c.step, Person: c.person}
	if c.answer != nil {
		do.Answer = &guide.Answer{OptionID: c.answer.option, Decline: c.answer.decline, Note: c.answer.note}
	}
	if c.skip {
		do.Skip = &guide.Skip{Reason: "not needed"}
	}
	return guide.Command{Continue: do}
}

func (e *engine) look() seen {
	pos := e.program.PositionOf(e.run)
	return seen{status: string(e.program.Status(e.run)), position: pos, whole: asJSON(pos)}
}

func (e *engine) state() string { return asJSON(e.run) }

// failer is a test, of testing or of rapid.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
	Logf(format string, args ...any)
}

// compile reads a workflow as the product does. It gives nil for one whose
// skipped phases lead in a circle, which is not to be loaded.
func compile(t failer, document []byte) *guide.PhaseProgram {
	t.Helper()
	root, found := doc.Parse("random.json", document, doc.Limits{})
	if root == nil {
		t.Fatalf("the document does not read: %+v\n%s", found, document)
	}
	w, found := phases.Parse("random.json", root)
	if len(found) > 0 && !slices.ContainsFunc(found, func(f guideway.Diagnostic) bool { return f.Code != phases.CodeSkipCycle }) {
		return nil
	}
	if w == nil {
		t.Fatalf("the workflow does not parse: %+v\n%s", found, document)
	}
	return guide.CompilePhases(w)
}

func asJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
