package guide

import (
	"maps"
	"slices"

	"github.com/guideway-dev/guideway/internal/condition"
	"github.com/guideway-dev/guideway/internal/definition/steps"
)

// Status is where a run stands.
type Status string

// The statuses.
const (
	// StatusRunning asks for a step's output.
	StatusRunning Status = "running"
	// StatusWaiting asks for a gate's answer or for variables.
	StatusWaiting Status = "waiting"
	// StatusCompleted and StatusAborted are final.
	StatusCompleted Status = "completed"
	StatusAborted   Status = "aborted"
)

// State is a run as the fold of its events. The zero State is a run that has
// not started.
type State struct {
	// Started says that there was a run_started event.
	Started bool
	// Ended is StatusCompleted or StatusAborted once the run has ended.
	Ended Status
	// Vars are the run's variables, those of loops left out.
	Vars map[string]any
	// Cursor is the top-level item that the run is at.
	Cursor int
	// Frame is set inside a loop.
	Frame *Frame
	// Gate is set while a gate waits for its answer.
	Gate *OpenGate
	// Person says that only a person opens the run's gates.
	Person bool
	// Confirmed says that the loop at the cursor was confirmed and may begin.
	Confirmed bool
	// Again says that the step at the cursor was sent back. It is done again
	// whatever its condition says now: an agent must not get out of it by the
	// variables that came with the output.
	Again bool
	// Revise is what the person said who sent it back.
	Revise string
	// Phases is where a run of a phase workflow stands; nil in a step workflow,
	// which Cursor, Frame, Confirmed, Again and Revise are for.
	Phases *PhaseState `json:",omitempty"`
	// Steps counts the completed steps, Seq the events.
	Steps, Seq int
}

// Frame is where a run stands in a loop.
type Frame struct {
	// Round is 1-based; 0 before the first round.
	Round int
	// Body is the position in the body; its length means the end of a round.
	Body int
	// Worked counts the steps completed in this round.
	Worked int
	// Rounds is the number of rounds that the count or the list allows, or -1.
	Rounds int
	// List is the list of a forEach loop, as it was when the loop began.
	List []any
}

// OpenGate is a gate that waits for its answer.
type OpenGate struct {
	// Step is the step or loop that the gate belongs to.
	Step string
	// Before is true for the gate of a loop, which comes before its first
	// round; a step's gate comes after its output.
	Before bool
	// Person says that only a person may answer.
	Person bool
}

// EventKind names what happened.
type EventKind string

// The kinds of events.
const (
	EventRunStarted    EventKind = "run_started"
	EventContextSet    EventKind = "context_set"
	EventStepCompleted EventKind = "step_completed"
	EventStepSkipped   EventKind = "step_skipped"
	EventLoopEntered   EventKind = "loop_entered"
	EventRoundStarted  EventKind = "round_started"
	EventLoopEnded     EventKind = "loop_ended"
	EventGateOpened    EventKind = "gate_opened"
	EventGateAnswered  EventKind = "gate_answered"
	EventRunCompleted  EventKind = "run_completed"
	EventRunAborted    EventKind = "run_aborted"
)

// The kinds of events that runs of phase workflows have besides those of the
// run, the context and the completed step. Most are the history events of the
// state schema (seed 002).
const (
	EventPhaseEntered      EventKind = "phase_entered"
	EventPhaseExited       EventKind = "phase_exited"
	EventPhaseSkipped      EventKind = "phase_skipped"
	EventStepStarted       EventKind = "step_started"
	EventCheckpointReached EventKind = "checkpoint_reached"
	EventCheckpointAnswer  EventKind = "checkpoint_response"
	EventDecisionReached   EventKind = "decision_reached"
	EventDecisionOffered   EventKind = "decision_offered"
	EventDecisionPassed    EventKind = "decision_passed"
	EventBranchTaken       EventKind = "decision_branch_taken"
	EventTransitionTaken   EventKind = "transition_taken"
	EventLoopStarted       EventKind = "loop_started"
	EventLoopIteration     EventKind = "loop_iteration"
	EventLoopCompleted     EventKind = "loop_completed"
	EventLoopBroken        EventKind = "loop_break"
	EventVariableSet       EventKind = "variable_set"
	// EventLogged and EventEmitted are log and emit actions, EventChecked a
	// validate action on a variable, EventAsserted what the caller says of
	// validate actions that the engine cannot judge.
	EventLogged   EventKind = "action_logged"
	EventEmitted  EventKind = "action_emitted"
	EventChecked  EventKind = "action_checked"
	EventAsserted EventKind = "action_asserted"
	// EventStateImported begins a run in the middle, where a state document
	// says.
	EventStateImported EventKind = "state_imported"
)

// Event is an immutable fact of a run.
type Event struct {
	Kind EventKind `json:"kind"`
	// Step is the step or loop that the event is about.
	Step string `json:"step,omitempty"`
	// Round is the loop's round, 1-based.
	Round int `json:"round,omitempty"`
	// Vars are the variables that were set. Those that come with an output
	// stand in its completion: a command is one event and what follows from it,
	// so that no prefix of a run has the variables without what they came with.
	Vars map[string]any `json:"vars,omitempty"`
	// Output and Notes are what the agent handed in.
	Output string `json:"output,omitempty"`
	Notes  string `json:"notes,omitempty"`
	// Rounds and List pin the extent of a loop; Rounds is -1 for while and
	// until.
	Rounds int   `json:"rounds,omitempty"`
	List   []any `json:"list,omitempty"`
	// Gate says that the completed step must be confirmed. It stands in the
	// completion itself, so that no prefix of a run is behind a step and past
	// its gate.
	Gate bool `json:"gate,omitempty"`
	// Person says that only a person may open the gate; of a run that has
	// started, that this holds for all of its gates.
	Person bool `json:"person,omitempty"`
	// Option is the answer to a gate.
	Option string `json:"option,omitempty"`
	// Reason says why something was skipped, ended or aborted.
	Reason string `json:"reason,omitempty"`
	// Phase is the number of a phase, To that of the phase that a way leads to
	// and Skips those of phases to be passed through, all 1-based. Item is the
	// 1-based number of the step, checkpoint, decision or loop in its phase or
	// loop; 0 in a To is the end of the run.
	Phase int   `json:"phase,omitempty"`
	Item  int   `json:"item,omitempty"`
	To    int   `json:"to,omitempty"`
	Skips []int `json:"skips,omitempty"`
	// Part says which actions an action is of. Count is how many actions an
	// assertion covers.
	Part  Part `json:"part,omitempty"`
	Count int  `json:"count,omitempty"`
	// Message, Target and Value are an action's, Value also the item of a
	// round and an imported state.
	Message string `json:"message,omitempty"`
	Target  string `json:"target,omitempty"`
	Value   any    `json:"value,omitempty"`
	// Undone are the ids of what an answer that leaves the phase has left out.
	Undone []string `json:"undone,omitempty"`
	// State is where an imported run begins.
	State *PhaseState `json:"state,omitempty"`
}

// The options of a confirmation.
const (
	// OptionConfirm goes on.
	OptionConfirm = "confirm"
	// OptionRevise, at a step's gate, does the step again.
	OptionRevise = "revise"
	// OptionSkip, at a loop's gate, passes over the loop.
	OptionSkip = "skip"
)

// Apply gives the state after an event that fits it, as all that Decide returns
// do; the state that it is given is left as it was. Events from elsewhere go
// through Fold, which checks that they fit.
func Apply(s State, e Event) State {
	s.Seq++
	if s.Phases != nil || e.Kind == EventPhaseEntered || e.Kind == EventStateImported {
		return applyPhases(s, e)
	}
	switch e.Kind {
	case EventRunStarted:
		s.Started, s.Person = true, e.Person
		s.Vars = merged(s.Vars, e.Vars)
	case EventContextSet:
		s.Vars = merged(s.Vars, e.Vars)
	case EventStepCompleted:
		if len(e.Vars) > 0 {
			s.Vars = merged(s.Vars, e.Vars)
		}
		s = s.passed(true)
		s.Steps++
		s.Again, s.Revise = false, ""
		if e.Gate {
			s.Gate = &OpenGate{Step: e.Step, Person: e.Person}
		}
	case EventStepSkipped:
		s = s.passed(false)
	case EventLoopEntered:
		// Body is set behind the end, so that the next move decides on round 1.
		s.Frame = &Frame{Rounds: e.Rounds, List: e.List, Body: endOfRound}
		s.Confirmed = false
	case EventRoundStarted:
		f := *s.Frame
		f.Round, f.Body, f.Worked = e.Round, 0, 0
		s.Frame = &f
	case EventLoopEnded:
		s.Frame = nil
		s.Cursor++
	case EventGateOpened:
		s.Gate = &OpenGate{Step: e.Step, Before: true, Person: e.Person}
	case EventGateAnswered:
		s = s.answered(e)
	case EventRunCompleted:
		s.Ended = StatusCompleted
	case EventRunAborted:
		s.Ended, s.Gate = StatusAborted, nil
	}
	return s
}

// endOfRound is a body position behind every body.
const endOfRound = 1 << 30

// passed moves behind the step at the cursor.
func (s State) passed(worked bool) State {
	if s.Frame == nil {
		s.Cursor++
		return s
	}
	f := *s.Frame
	f.Body++
	if worked {
		f.Worked++
	}
	s.Frame = &f
	return s
}

// answered closes the gate. A step that is to be revised is where it was before
// it was completed.
func (s State) answered(e Event) State {
	before := s.Gate.Before
	s.Gate = nil
	switch e.Option {
	case OptionConfirm:
		s.Confirmed = before
	case OptionSkip:
		s.Cursor++
	case OptionRevise:
		s.Again, s.Revise = true, e.Notes
		s.Steps--
		if s.Frame == nil {
			s.Cursor--
			return s
		}
		f := *s.Frame
		f.Body--
		f.Worked--
		s.Frame = &f
	}
	return s
}

func merged(base, top map[string]any) map[string]any {
	out := make(map[string]any, len(base)+len(top))
	maps.Copy(out, base)
	maps.Copy(out, top)
	return out
}

// variables looks up the run's variables. One that only a loop or the engine
// writes is never anybody's to set, so outside of its loop it counts as null:
// nothing waits for it.
func (p *Program) variables(s State) condition.Lookup {
	vars := condition.Map(s.Vars)
	return func(name string) (any, bool) {
		if p.owned(name) {
			return nil, true
		}
		return vars(name)
	}
}

// told looks up the variables that texts name: one that only a loop sets is not
// set outside of it, and its placeholder stays as it is.
func (p *Program) told(s State) condition.Lookup {
	vars := condition.Map(s.Vars)
	return func(name string) (any, bool) {
		if p.owned(name) {
			return nil, false
		}
		return vars(name)
	}
}

// owned says whether a variable is the server's.
func (p *Program) owned(name string) bool {
	return p.owners[name] != nil || slices.Contains(engineKeys(), name)
}

// scope gives the variables that conditions and texts see now.
func (p *Program) scope(s State) condition.Lookup {
	if s.Frame == nil || s.Frame.Round == 0 {
		return p.variables(s)
	}
	return p.inRound(s, s.Frame.Round)
}

// inRound gives the variables that a round of the loop at the cursor sees.
func (p *Program) inRound(s State, round int) condition.Lookup {
	return over(roundVars(p.items[s.Cursor].step.Loop, round, s.Frame.List), p.variables(s))
}

// current gives the step that the state is at, or nil at the end of the program
// or of a round, and at a loop that has not begun.
func (p *Program) current(s State) *steps.Step {
	if s.Ended != "" || s.Cursor >= len(p.items) {
		return nil
	}
	it := p.items[s.Cursor]
	switch {
	case s.Frame == nil && !it.isLoop():
		return it.step
	case s.Frame != nil && s.Frame.Body < len(it.body):
		return it.body[s.Frame.Body]
	default:
		return nil
	}
}
