// Package engine is the engine for guided runs. It is pure: no clock, no I/O and no
// internal state, so equal input always leads to equal output.
//
// The engine has two interfaces to a program. [Program.Next] is the stateless call of the
// tool workflow_next: it derives the progress from the request. [Flow.Decide], [Apply] and
// [Flow.PositionOf] keep the state of a run as a fold of its events and refuse illegal commands.
package engine

import (
	"github.com/guideway-dev/guideway/internal/contexts/compress"
	"github.com/guideway-dev/guideway/internal/workflow/steps"
)

// Flow is a compiled guided definition. Each dialect has its own rules for commands; in all
// dialects a run is a fold of events.
type Flow interface {
	// Decide returns the events of a legal command in the order in which to apply them, or
	// a refusal.
	Decide(s State, c Command) ([]Event, *Refusal)
	// PositionOf returns the position of the run.
	PositionOf(s State) Position
	// Status returns the status of the run.
	Status(s State) Status
	Documenter
	// FoldFrom returns the state after events, or an error if an event is not possible.
	FoldFrom(s State, events []Event) (State, error)
	// Admit refuses a context that a caller must not set.
	Admit(s State, context map[string]any) *Refusal
	// HasChecks reports whether a step of the definition has a check.
	HasChecks() bool
	// Hints returns the definition's hints for compressing a context.
	Hints() compress.Hints
}

var _ Flow = (*Program)(nil)

// Program is a definition compiled for the engine. It is immutable and safe for concurrent
// use.
type Program struct {
	// Workflow is the compiled definition.
	Workflow *steps.Workflow

	items []*item
	// byID contains every step, loop and body step.
	byID map[string]*steps.Step
	// owners maps each loop variable to the loop that writes it.
	owners map[string]*item
	// functions are the workflow's functions by name.
	functions map[string]steps.Function
}

// item is one top-level entry of the program: a step, or a loop with its body.
type item struct {
	step  *steps.Step
	index int
	body  []*steps.Step
	// inBody is the set of IDs of the body.
	inBody map[string]bool
	// shared is set if a later loop has the same body.
	shared bool
}

func (it *item) isLoop() bool { return it.step.Loop != nil }

// Compile compiles a parsed workflow. The workflow must not change afterwards.
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
	for _, s := range w.Walked() {
		p.addItem(s)
	}
	return p
}

func (p *Program) addItem(s *steps.Step) {
	it := &item{step: s, index: len(p.items)}
	p.items = append(p.items, it)
	p.byID[s.ID] = s
	if s.Loop == nil {
		return
	}
	for _, name := range s.Loop.Variables() {
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

// Step returns a step by its ID, including steps in loop bodies.
func (p *Program) Step(id string) (*steps.Step, bool) {
	s, ok := p.byID[id]
	return s, ok
}

// StepIDs returns the IDs of the steps that an agent can be asked for, in document order.
// It includes steps in loop bodies and omits loops.
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

// HasChecks implements Flow.
func (p *Program) HasChecks() bool {
	for _, s := range p.byID {
		if s.Criteria.HasCheck() {
			return true
		}
	}
	return false
}

// TotalSteps returns the number of top-level steps; a loop counts as one.
func (p *Program) TotalSteps() int { return len(p.items) }
