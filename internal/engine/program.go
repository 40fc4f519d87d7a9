// Package engine is the engine for guided runs. It is pure: no clock, no I/O and no
// internal state, so equal input always leads to equal output.
//
// The engine has two interfaces to a program. [Program.Next] is the stateless call of the
// tool workflow_next: it derives the progress from the request. [Flow.Decide], [Apply] and
// [Flow.PositionOf] keep the state of a run as a fold of its events and refuse illegal commands.
package engine

import (
	"fmt"
	"maps"

	"github.com/guideway-dev/guideway"
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

// dialect is the part of the command rules that differs between the guided dialects.
type dialect interface {
	PositionOf(s State) Position
	checkContext(s State, context map[string]any) *Refusal
	// defaultVars returns the variables that the definition sets at the start.
	defaultVars() map[string]any
	decideAnswer(s State, c *Continue) ([]Event, *Refusal)
	decideContinue(s State, c *Continue) ([]Event, *Refusal)
	nextEvent(s State) (Event, bool)
	acceptsEvent(s State, e Event) bool
}

var (
	_ dialect = (*Program)(nil)
	_ dialect = (*PhaseProgram)(nil)
)

// Decide returns the events of a legal command in the order in which to apply them, or a
// refusal. It is pure: equal states and commands lead to equal results. The state may
// result from any prefix of a run's events; pending consequences of the prefix come first
// in the result.
func (p *Program) Decide(s State, c Command) ([]Event, *Refusal) { return decide(p, s, c) }

// Decide returns the events of a legal command, or a refusal, as Program.Decide does.
func (p *PhaseProgram) Decide(s State, c Command) ([]Event, *Refusal) { return decide(p, s, c) }

// FoldFrom is like Fold for the events that follow a state of the same program.
func (p *Program) FoldFrom(s State, events []Event) (State, error) { return foldFrom(p, s, events) }

// FoldFrom is like Program.FoldFrom. Automatic events must match those that the engine
// derives, except for texts and values.
func (p *PhaseProgram) FoldFrom(s State, events []Event) (State, error) {
	return foldFrom(p, s, events)
}

func (*Program) defaultVars() map[string]any { return nil }

func (p *PhaseProgram) defaultVars() map[string]any {
	vars := map[string]any{}
	for _, v := range p.Workflow.Variables {
		if v.HasDefault {
			vars[v.Name] = v.DefaultValue
		}
	}
	return vars
}

func decide(d dialect, s State, c Command) ([]Event, *Refusal) {
	if s.Started {
		if pending := addConsequences(d, s); len(pending) > 0 {
			for _, e := range pending {
				s = Apply(s, e)
			}
			events, refusal := decide(d, s, c)
			if refusal != nil {
				return nil, refusal
			}
			return append(pending, events...), nil
		}
	}
	switch {
	case c.Start != nil:
		return decideStart(d, s, c.Start)
	case !s.Started:
		return nil, &Refusal{Rule: RuleNotStarted, Message: "the run has not started"}
	case s.Ended != "":
		return nil, &Refusal{Rule: RuleEnded, Message: "the run has ended with the status " + string(s.Ended)}
	case c.Abort != nil:
		return []Event{{Kind: EventRunAborted, Reason: c.Abort.Reason}}, nil
	case c.Continue == nil:
		return nil, &Refusal{Rule: RuleOutputMissing, Message: "the command is empty"}
	}
	pos := d.PositionOf(s)
	if c.Continue.Step != "" && c.Continue.Step != pos.ID {
		return nil, &Refusal{Rule: RuleWrongStep, Given: c.Continue.Step, Allowed: pos.ID, Message: fmt.Sprintf("the run is not at the step %.80q, but at %q", c.Continue.Step, pos.ID)}
	}
	if r := checkPlaceholders(&pos, c.Continue, s.Vars); r != nil {
		return nil, r
	}
	if s.Gate != nil {
		return d.decideAnswer(s, c.Continue)
	}
	in := *c.Continue
	in.Context = mergeMembers(s.Vars, in.Context)
	return d.decideContinue(s, &in)
}

func decideStart(d dialect, s State, c *Start) ([]Event, *Refusal) {
	if s.Started {
		return nil, &Refusal{Rule: RuleStarted, Message: "the run has already started"}
	}
	if r := d.checkContext(s, c.Context); r != nil {
		return nil, r
	}
	if r := checkPlaceholders(&Position{}, &Continue{Context: c.Context}, d.defaultVars()); r != nil {
		return nil, r
	}
	vars := c.Context
	if defaults := d.defaultVars(); defaults != nil {
		vars = defaults
		maps.Copy(vars, c.Context)
	}
	return addConsequences(d, s, Event{Kind: EventRunStarted, Vars: vars, Person: c.Person}), nil
}

// addConsequences appends the events that follow automatically from the given ones, such as
// skipped steps, actions, rounds of loops, transitions and the end of the run.
func addConsequences(d dialect, s State, events ...Event) []Event {
	for _, e := range events {
		s = Apply(s, e)
	}
	for {
		e, ok := d.nextEvent(s)
		if !ok {
			return events
		}
		events = append(events, e)
		s = Apply(s, e)
	}
}

// applyConsequences returns the state after the events that follow automatically. A run
// that has not started has no such events.
func applyConsequences(d dialect, s State) State {
	if s.Started {
		for _, e := range addConsequences(d, s) {
			s = Apply(s, e)
		}
	}
	return s
}

func foldFrom(d dialect, s State, events []Event) (State, error) {
	for _, e := range events {
		if !d.acceptsEvent(s, e) {
			return s, guideway.Errorf(guideway.CodeConflict,
				"the event (%s) is not possible at this position of the run: the event belongs to a different definition, or a newer version of Guideway wrote the event", describeEvent(e))
		}
		s = Apply(s, e)
	}
	return s, nil
}
