package engine

import (
	"slices"
	"strings"

	"github.com/guideway-dev/guideway/internal/workflow/expr"
	"github.com/guideway-dev/guideway/internal/workflow/phases"
)

// PhaseProgram is a phase workflow compiled for the engine; see docs/phases.md. It is
// immutable and safe for concurrent use.
type PhaseProgram struct {
	// Workflow is the compiled definition.
	Workflow *phases.Workflow

	// numbers maps the IDs of phases to their 1-based numbers.
	numbers map[string]int
	// owned are the variables that an effect, a set action or a loop writes.
	owned []string
}

var _ Flow = (*PhaseProgram)(nil)

// CompilePhases compiles a parsed workflow. The workflow must not change afterwards.
func CompilePhases(w *phases.Workflow) *PhaseProgram {
	p := &PhaseProgram{Workflow: w, numbers: make(map[string]int, len(w.Phases))}
	for _, name := range w.Owned() {
		root, _, _ := strings.Cut(name, ".") // a write to a path into an object makes the engine own the whole object
		if !slices.Contains(p.owned, root) {
			p.owned = append(p.owned, root)
		}
	}
	for i := range w.Phases {
		p.numbers[w.Phases[i].ID] = i + 1
	}
	return p
}

// AsksPersons reports whether the workflow has a gate that requires human approval.
func (p *PhaseProgram) AsksPersons() bool {
	return slices.ContainsFunc(p.Workflow.Phases, func(phase phases.Phase) bool {
		return slices.ContainsFunc(phase.Checkpoints, func(c phases.Checkpoint) bool { return c.Person })
	})
}

// HasChecks implements Flow.
func (p *PhaseProgram) HasChecks() bool {
	hasCheck := func(step phases.Step) bool { return step.Criteria.HasCheck() }
	return slices.ContainsFunc(p.Workflow.Phases, func(phase phases.Phase) bool {
		return slices.ContainsFunc(phase.Steps, hasCheck) ||
			slices.ContainsFunc(phase.Loops, func(l phases.Loop) bool { return slices.ContainsFunc(l.Steps, hasCheck) })
	})
}

// phaseAt returns the current phase, or nil before the first one.
func (p *PhaseProgram) phaseAt(ph PhaseState) *phases.Phase {
	if ph.Phase < 1 || ph.Phase > len(p.Workflow.Phases) {
		return nil
	}
	return &p.Workflow.Phases[ph.Phase-1]
}

// currentState returns the state of the run in its phases, after skipping completed parts.
func (p *PhaseProgram) currentState(s State) PhaseState {
	if s.Phases == nil {
		return PhaseState{}
	}
	ph := *s.Phases
	phase := p.phaseAt(ph)
	if phase == nil {
		return ph
	}
	next := func(part Part) {
		ph.Part, ph.Index, ph.Act, ph.Started, ph.Done, ph.Loop = part, 0, 0, false, false, nil
	}
	if ph.Part == PartEntry && ph.Act >= len(phase.EntryActions) {
		next(PartSteps)
	}
	if ph.Part == PartSteps {
		if ph.Done && ph.Act >= len(phase.Steps[ph.Index].Actions) {
			ph.advanceStep()
		}
		if ph.Index >= len(phase.Steps) {
			next(PartLoops)
		}
	}
	if ph.Part == PartLoops {
		if step := p.loopStep(ph); step != nil && ph.Done && ph.Act >= len(step.Actions) {
			ph.advanceStep()
		}
		if ph.Index >= len(phase.Loops) {
			next(PartCheckpoints)
		}
	}
	if ph.Part == PartCheckpoints && ph.Index >= len(phase.Checkpoints) {
		next(PartDecisions)
	}
	if ph.Part == PartDecisions && ph.Index >= len(phase.Decisions) {
		next(PartTransitions)
	}
	if ph.Part == PartTransitions && phase.Terminal() {
		ph.startExit(0)
	}
	return ph
}

// loopStep returns the current step of the active round, or nil.
func (p *PhaseProgram) loopStep(ph PhaseState) *phases.Step {
	phase := p.phaseAt(ph)
	if ph.Part != PartLoops || ph.Loop == nil || ph.Loop.Round == 0 || ph.Index >= len(phase.Loops) {
		return nil
	}
	if steps := phase.Loops[ph.Index].Steps; ph.Loop.Step < len(steps) {
		return &steps[ph.Loop.Step]
	}
	return nil
}

// stepAt returns the step that the run asks for, or whose actions run.
func (p *PhaseProgram) stepAt(ph PhaseState) *phases.Step {
	if ph.Part == PartSteps {
		return &p.phaseAt(ph).Steps[ph.Index]
	}
	return p.loopStep(ph)
}

// lookupVars returns a lookup of the run's variables including the variable of the active
// loop. A variable that only the engine writes counts as null until the engine has written
// it, so that no condition waits for it.
func (p *PhaseProgram) lookupVars(s State) expr.Lookup {
	base := p.hideUnsetOwned(expr.Map(s.Vars))
	ph := p.currentState(s)
	if ph.Part != PartLoops || ph.Loop == nil || ph.Loop.Round == 0 {
		return base
	}
	loop := &p.phaseAt(ph).Loops[ph.Index]
	if loop.Variable == "" {
		return base
	}
	value := roundValue(loop, ph.Loop)
	return func(name string) (any, bool) {
		if name == loop.Variable {
			return value, true
		}
		return base(name)
	}
}

func (p *PhaseProgram) hideUnsetOwned(vars expr.Lookup) expr.Lookup {
	return func(name string) (any, bool) {
		value, ok := vars(name)
		if !ok && slices.Contains(p.owned, name) {
			return nil, true
		}
		return value, ok
	}
}

// roundValue returns the value of a loop's variable: the item of the list, or the number of
// the round.
func roundValue(loop *phases.Loop, l *PhaseLoop) any {
	if loop.Type != phases.LoopForEach {
		return float64(l.Round)
	}
	if l.Round <= len(l.Items) {
		return l.Items[l.Round-1]
	}
	return nil
}

// Status returns the status of the run.
func (p *PhaseProgram) Status(s State) Status {
	switch pos := p.PositionOf(s); {
	case s.Ended != "":
		return s.Ended
	case pos.Kind == PositionEnd:
		return StatusCompleted
	case pos.Kind == PositionStep:
		return StatusRunning
	default:
		return StatusWaiting
	}
}

// acceptsEvent reports whether an event is possible in the state.
func (p *PhaseProgram) acceptsEvent(s State, e Event) bool {
	if !s.Started || s.Ended != "" {
		return !s.Started && (e.Kind == EventRunStarted || e.Kind == EventStateImported && p.acceptsImport(e))
	}
	if e.Kind == EventRunAborted {
		return true
	}
	if e.To < 0 || e.To > len(p.Workflow.Phases) {
		return false
	}
	if next, ok := p.nextEvent(s); ok {
		return matchesEvent(next, e)
	}
	if s.Gate != nil {
		return p.acceptsAnswer(s, e)
	}
	if e.Kind == EventContextSet {
		return true
	}
	ph := p.currentState(s)
	return ph.Phase > 0 && ph.Phase == e.Phase && p.acceptsCommandEvent(ph, e)
}

// matchesEvent reports whether two events have the same kind and the same place in the
// workflow. It does not compare texts and values.
func matchesEvent(a, b Event) bool {
	return a.Kind == b.Kind && a.Phase == b.Phase && a.Item == b.Item && a.Step == b.Step &&
		a.Round == b.Round && a.To == b.To && a.Part == b.Part && a.Count == b.Count && a.Target == b.Target
}

// acceptsCommandEvent reports whether an event can be the result of a command at this
// position.
func (p *PhaseProgram) acceptsCommandEvent(ph PhaseState, e Event) bool {
	step := p.stepAt(ph)
	atStep := ph.Started && !ph.Done && step != nil
	switch e.Kind {
	case EventStepCompleted:
		return atStep && step.ID == e.Step && e.Item == p.stepNumber(ph) && (ph.Loop == nil || ph.Loop.Round == e.Round)
	case EventStepSkipped:
		return atStep && step.ID == e.Step && !step.Required
	case EventPhaseSkipped:
		return atStep && !p.phaseAt(ph).Required && p.phaseAt(ph).ID == e.Step
	case EventAsserted:
		return e.Count == len(p.instructions(ph)) && e.Count > 0
	default:
		return false
	}
}

// acceptsAnswer reports whether the open gate offers the answer of an event.
func (p *PhaseProgram) acceptsAnswer(s State, e Event) bool {
	ph := p.currentState(s)
	if e.Step != s.Gate.Step || e.Phase != ph.Phase {
		return false
	}
	if e.Kind == EventGateApproved {
		return e.Option == "" && ph.Part == PartCheckpoints || slices.ContainsFunc(p.gateOptions(ph), func(o Option) bool { return o.ID == e.Option })
	}
	if e.Kind == EventBranchTaken {
		return ph.Part == PartDecisions && slices.ContainsFunc(p.offeredBranches(ph), func(b phases.Branch) bool {
			return b.ID == e.Option && p.numbers[b.TransitionTo] == e.To
		})
	}
	if ph.Part != PartCheckpoints || e.Kind != EventCheckpointAnswer {
		return false
	}
	want, ok := p.checkpointAnswer(s, ph, e.Option)
	return ok && want.Item == e.Item && want.To == e.To && slices.Equal(want.Skips, e.Skips)
}

// Through returns the phase that a run with the state document d enters after a transition
// to phase number to. It passes through the phases that answers have skipped and returns
// them in past. end is 0 if the run ends. ok is false if the target of a skipped phase is
// undecided or the skipped phases form a cycle.
func (p *PhaseProgram) Through(d *StateDocument, to int) (end int, past []int, ok bool) {
	skips := p.phasesToSkip(d)
	s := State{Vars: d.Variables}
	for end = to; end > 0 && end <= len(p.Workflow.Phases) && slices.Contains(skips, end); {
		if slices.Contains(past, end) {
			return 0, past, false
		}
		past = append(past, end)
		if end, ok = p.skippedTarget(s, &p.Workflow.Phases[end-1]); !ok {
			return 0, past, false
		}
	}
	return end, past, true
}
