// Package guide is the engine for guided runs. It is pure: no clock, no I/O and
// no state of its own, so that the same input always gives the same output.
//
// Two ways lead through the same program. [Next] is the stateless call of the
// seed's workflow_next: it rebuilds the progress from what the caller sends.
// [Decide], [Apply] and [PositionOf] hold a run's state as a fold of its events
// and refuse what is illegal.
package guide

import (
	"github.com/guideway-dev/guideway/internal/definition/steps"
	"github.com/guideway-dev/guideway/internal/window"
)

// Flow is a guided definition that is ready to be run. The dialects differ in
// what they decide; a run is a fold of events in all of them.
type Flow interface {
	// Decide gives the events of a legal command, in order and ready to be
	// applied, or a refusal.
	Decide(s State, c Command) ([]Event, *Refusal)
	// PositionOf gives what the run asks for.
	PositionOf(s State) Position
	// Status gives where the run stands.
	Status(s State) Status
	Documented
	// FoldFrom gives the state after events, and refuses those that do not fit.
	FoldFrom(s State, events []Event) (State, error)
	// Admit says whether a caller may set variables, or what is wrong with it.
	Admit(s State, context map[string]any) *Refusal
	// Hints gives what the definition says of its variables' worth.
	Hints() window.Hints
}

var _ Flow = (*Program)(nil)

// Program is a definition compiled for the engine. It is immutable and safe for
// use by many goroutines.
type Program struct {
	// Workflow is the definition that the program was compiled from.
	Workflow *steps.Workflow

	items []*item
	// byID finds every step, loop and body step.
	byID map[string]*steps.Step
	// owners tells for a variable that a loop writes which loop that is.
	owners map[string]*item
	// functions are the workflow's by name.
	functions map[string]steps.Function
}

// item is one entry of the top level that is walked in order: a step, or a loop
// with its body.
type item struct {
	step  *steps.Step
	index int
	body  []*steps.Step
	// inBody tells which ids belong to the body.
	inBody map[string]bool
	// shared says that a later loop has the same body.
	shared bool
}

func (it *item) isLoop() bool { return it.step.Loop != nil }

// Compile prepares a parsed workflow. The workflow must not change afterwards.
func Compile(w *steps.Workflow) *Program {
	p := &Program{
		Workflow:  w,
		byID:      make(map[string]*steps.Step),
		owners:    make(map[string]*item),
		functions: make(map[string]steps.Function, len(w.Functions)),
	}
	for _, f := range w.Functions {
		p.functions[f.Name] = f
	}
	bodies := make(map[string]bool)
	for i := range w.Steps {
		if l := w.Steps[i].Loop; l != nil && l.BodyRef != "" {
			bodies[l.BodyRef] = true
		}
	}
	for i := range w.Steps {
		if s := &w.Steps[i]; !bodies[s.ID] {
			p.add(s)
		}
	}
	return p
}

func (p *Program) add(s *steps.Step) {
	it := &item{step: s, index: len(p.items)}
	p.items = append(p.items, it)
	p.byID[s.ID] = s
	if s.Loop == nil {
		return
	}
	for _, name := range loopVarNames(s.Loop) {
		p.owners[name] = it
	}
	it.inBody = make(map[string]bool, len(s.Loop.Body))
	for i := range s.Loop.Body {
		b := &s.Loop.Body[i]
		it.body = append(it.body, b)
		it.inBody[b.ID] = true
		if p.byID[b.ID] == nil {
			p.byID[b.ID] = b
		}
	}
	for _, earlier := range p.items[:it.index] {
		earlier.shared = earlier.shared || s.Loop.BodyRef != "" && earlier.inBody[s.Loop.BodyRef]
	}
}

// Step finds a step by id, those in loop bodies included.
func (p *Program) Step(id string) (*steps.Step, bool) {
	s, ok := p.byID[id]
	return s, ok
}

// StepIDs lists the ids of the steps that an agent can be asked for, in the
// order of the document, those in loop bodies included and loops left out.
func (p *Program) StepIDs() []string {
	var ids []string
	for _, it := range p.items {
		if !it.isLoop() {
			ids = append(ids, it.step.ID)
			continue
		}
		for _, b := range it.body {
			ids = append(ids, b.ID)
		}
	}
	return ids
}

// TotalSteps counts the top-level steps that are walked, a loop as one.
func (p *Program) TotalSteps() int { return len(p.items) }
