package guide

import (
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/condition"
	"github.com/guideway-dev/guideway/internal/definition/phases"
)

// PhaseProgram is a phase workflow compiled for the engine (seed 002, decided
// where it is silent by DESIGN 4). It is immutable and safe for use by many
// goroutines.
type PhaseProgram struct {
	// Workflow is the definition that the program was compiled from.
	Workflow *phases.Workflow

	// numbers are the 1-based numbers of the phases by id.
	numbers map[string]int
	// owned are the variables that an effect, a set action or a loop writes.
	owned []string
}

var _ Flow = (*PhaseProgram)(nil)

// CompilePhases prepares a parsed workflow. The workflow must not change
// afterwards.
func CompilePhases(w *phases.Workflow) *PhaseProgram {
	p := &PhaseProgram{Workflow: w, numbers: make(map[string]int, len(w.Phases))}
	for _, name := range w.Owned() {
		root, _, _ := strings.Cut(name, ".") // a path into an object owns all of it
		if !slices.Contains(p.owned, root) {
			p.owned = append(p.owned, root)
		}
	}
	for i := range w.Phases {
		p.numbers[w.Phases[i].ID] = i + 1
	}
	return p
}

// AsksPersons says whether the workflow has a gate that only a person opens.
func (p *PhaseProgram) AsksPersons() bool {
	return slices.ContainsFunc(p.Workflow.Phases, func(phase phases.Phase) bool {
		return slices.ContainsFunc(phase.Checkpoints, func(c phases.Checkpoint) bool { return c.Person })
	})
}

// phase is the current phase, or nil before the first one.
func (p *PhaseProgram) phase(ph PhaseState) *phases.Phase {
	if ph.Phase < 1 || ph.Phase > len(p.Workflow.Phases) {
		return nil
	}
	return &p.Workflow.Phases[ph.Phase-1]
}

// at is where the run stands, behind all that is over.
func (p *PhaseProgram) at(s State) PhaseState {
	if s.Phases == nil {
		return PhaseState{}
	}
	ph := *s.Phases
	phase := p.phase(ph)
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
			ph.pass()
		}
		if ph.Index >= len(phase.Steps) {
			next(PartLoops)
		}
	}
	if ph.Part == PartLoops {
		if step := p.loopStep(ph); step != nil && ph.Done && ph.Act >= len(step.Actions) {
			ph.pass()
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
		ph.leave(0)
	}
	return ph
}

// loopStep is the step of the round that is under way, or nil.
func (p *PhaseProgram) loopStep(ph PhaseState) *phases.Step {
	phase := p.phase(ph)
	if ph.Part != PartLoops || ph.Loop == nil || ph.Loop.Round == 0 || ph.Index >= len(phase.Loops) {
		return nil
	}
	if steps := phase.Loops[ph.Index].Steps; ph.Loop.Step < len(steps) {
		return &steps[ph.Loop.Step]
	}
	return nil
}

// step is the step that the run asks for, or whose actions are carried out.
func (p *PhaseProgram) step(ph PhaseState) *phases.Step {
	if ph.Part == PartSteps {
		return &p.phase(ph).Steps[ph.Index]
	}
	return p.loopStep(ph)
}

// vars looks up the run's variables, with that of the loop under way. One that
// the engine writes and has not written yet is never anybody else's to set, so
// it counts as null: nothing waits for it.
func (p *PhaseProgram) vars(s State) condition.Lookup {
	base := p.own(condition.Map(s.Vars))
	ph := p.at(s)
	if ph.Part != PartLoops || ph.Loop == nil || ph.Loop.Round == 0 {
		return base
	}
	loop := &p.phase(ph).Loops[ph.Index]
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

func (p *PhaseProgram) own(vars condition.Lookup) condition.Lookup {
	return func(name string) (any, bool) {
		value, ok := vars(name)
		if !ok && slices.Contains(p.owned, name) {
			return nil, true
		}
		return value, ok
	}
}

// roundValue is what a loop's variable holds: the item of the list, or the
// number of the round.
func roundValue(loop *phases.Loop, l *PhaseLoop) any {
	if loop.Type != phases.LoopForEach {
		return float64(l.Round)
	}
	if l.Round <= len(l.Items) {
		return l.Items[l.Round-1]
	}
	return nil
}

// Status says where the run stands.
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

// FoldFrom gives the state after the events that follow a state. An event that
// does not fit is an error with guideway.CodeConflict that names it: one that
// follows by itself must be the one that the engine would give.
func (p *PhaseProgram) FoldFrom(s State, events []Event) (State, error) {
	for i, e := range events {
		if !p.fits(s, e) {
			return s, guideway.Errorf(guideway.CodeConflict,
				"event %d (%s %s) does not fit the run: it is of another definition or of a newer version", i+1, e.Kind, e.Step)
		}
		s = Apply(s, e)
	}
	return s, nil
}

// fits says whether an event can follow in the state.
func (p *PhaseProgram) fits(s State, e Event) bool {
	if !s.Started || s.Ended != "" {
		return !s.Started && (e.Kind == EventRunStarted || e.Kind == EventStateImported && p.fitsImport(e))
	}
	if e.Kind == EventRunAborted {
		return true
	}
	if e.To < 0 || e.To > len(p.Workflow.Phases) {
		return false
	}
	if next, ok := p.move(s); ok {
		return sameMove(next, e)
	}
	if s.Gate != nil {
		return p.fitsGate(s, e)
	}
	if e.Kind == EventContextSet {
		return true
	}
	ph := p.at(s)
	return ph.Phase > 0 && ph.Phase == e.Phase && p.fitsCommand(ph, e)
}

// sameMove says whether an event is the one that follows by itself.
func sameMove(a, b Event) bool {
	return a.Kind == b.Kind && a.Phase == b.Phase && a.Item == b.Item && a.Step == b.Step &&
		a.Round == b.Round && a.To == b.To && a.Part == b.Part && a.Count == b.Count && a.Target == b.Target
}

// fitsCommand says whether an event can be what somebody has done there.
func (p *PhaseProgram) fitsCommand(ph PhaseState, e Event) bool {
	step := p.step(ph)
	atStep := ph.Started && !ph.Done && step != nil
	switch e.Kind {
	case EventStepCompleted:
		return atStep && step.ID == e.Step && e.Item == p.stepNumber(ph) && (ph.Loop == nil || ph.Loop.Round == e.Round)
	case EventStepSkipped:
		return atStep && step.ID == e.Step && !step.Required
	case EventPhaseSkipped:
		return atStep && !p.phase(ph).Required && p.phase(ph).ID == e.Step
	case EventAsserted:
		return e.Count == len(p.instructions(ph)) && e.Count > 0
	default:
		return false
	}
}

// fitsGate says whether an answer is one that the open gate offers.
func (p *PhaseProgram) fitsGate(s State, e Event) bool {
	ph := p.at(s)
	if e.Step != s.Gate.Step || e.Phase != ph.Phase {
		return false
	}
	if e.Kind == EventBranchTaken {
		return ph.Part == PartDecisions && slices.ContainsFunc(p.offered(ph), func(b phases.Branch) bool {
			return b.ID == e.Option && p.numbers[b.TransitionTo] == e.To
		})
	}
	if ph.Part != PartCheckpoints || e.Kind != EventCheckpointAnswer {
		return false
	}
	want, ok := p.checkpointAnswer(s, ph, e.Option)
	return ok && want.Item == e.Item && want.To == e.To && slices.Equal(want.Skips, e.Skips)
}
