package engine

import (
	"maps"
	"slices"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/workflow/expr"
	"github.com/guideway-dev/guideway/internal/workflow/steps"
)

// Status is the status of a run.
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

// State is a run as the fold of its events. The zero State is a run that has not started.
type State struct {
	// Started is set if the run has a run_started event.
	Started bool
	// Ended is StatusCompleted or StatusAborted after the end of the run.
	Ended Status
	// Vars are the run's variables without those of loops.
	Vars map[string]any
	// Cursor is the index of the current top-level item.
	Cursor int
	// Frame is set inside a loop.
	Frame *Frame
	// Gate is set while a gate waits for its answer.
	Gate *OpenGate
	// Person is set if all gates of the run require human approval.
	Person bool
	// Confirmed is set if the loop at the cursor was confirmed and may start.
	Confirmed bool
	// Again is set if the step at the cursor was sent back. The step must be repeated
	// regardless of its condition, so that an agent cannot avoid it with the variables of
	// its output.
	Again bool
	// Before are the variables from before the first submission of the step whose gate is
	// open, or which is repeated.
	Before map[string]any `json:",omitempty"`
	// Revise is the note of the person who sent the step back.
	Revise string
	// Phases is the state in a phase workflow. It is nil in a step workflow, which uses
	// Cursor, Frame, Confirmed, Again and Revise instead.
	Phases *PhaseState `json:",omitempty"`
	// Rest are the loops that ended before the end of their list or count.
	Rest []LoopRest `json:",omitempty"`
	// Steps counts the completed steps, Seq the events.
	Steps, Seq int
}

// LoopRest describes a loop that maxIterations ended before all of its rounds.
type LoopRest struct {
	// Loop is the ID of the loop.
	Loop string
	// Done is the number of completed rounds, Rounds the number of rounds that the list or
	// the count calls for.
	Done, Rounds int
	// Steps is the number of completed steps of the run at the end of the loop.
	Steps int
}

// addRest records a loop that ends after some, but not all, of its rounds.
func (s State) addRest(loop string, done, rounds int) State {
	if done > 0 && done < rounds {
		s.Rest = append(slices.Clip(s.Rest), LoopRest{Loop: loop, Done: done, Rounds: rounds, Steps: s.Steps})
	}
	return s
}

// Frame is the state of a run in a loop.
type Frame struct {
	// Round is 1-based; 0 before the first round.
	Round int
	// Body is the index in the body. The length of the body means the end of a round.
	Body int
	// Worked counts the steps completed in this round.
	Worked int
	// Rounds is the number of rounds that the count or the list allows, or -1.
	Rounds int
	// List is the list of a forEach loop at the start of the loop.
	List []any
}

// OpenGate is a gate that waits for its answer.
type OpenGate struct {
	// Step is the step or loop that the gate belongs to.
	Step string
	// Before is true for the gate of a loop, which comes before its first round; a step's
	// gate comes after its output.
	Before bool
	// Person is set if the gate requires human approval, and Approval names the persons.
	Person   bool
	Approval *guideway.Approval `json:",omitempty"`
	// Votes are the answers of persons while the gate waits for others.
	Votes []Vote `json:",omitempty"`
}

// Vote is the answer of a person at a gate that needs several.
type Vote struct {
	User   string `json:"user"`
	Option string `json:"option"`
	// Local is set for the local user, who is one person under any name.
	Local bool `json:"local,omitempty"`
}

// isOfAuthor reports whether the vote is of the person whose answer an event is.
func (v Vote) isOfAuthor(e Event) bool { return v.User == e.User || v.Local && e.Local }

// awaitOthers returns the event of an answer if the gate then waits for the same answer of
// others.
func (g *OpenGate) awaitOthers(c *Continue) (e Event, waits bool) {
	e = Event{Kind: EventGateApproved, Step: g.Step, Option: c.Answer.OptionID, Notes: c.Answer.Note, User: c.By.User, Local: c.By.Roles == nil}
	same := 1
	for _, v := range g.Votes {
		if v.Option == e.Option && !v.isOfAuthor(e) {
			same++
		}
	}
	return e, g.Person && same < g.Approval.Persons()
}

// addVote returns the gate with the answer of an event, which replaces an earlier one of the
// person.
func (g OpenGate) addVote(e Event) *OpenGate {
	g.Votes = append(slices.DeleteFunc(slices.Clone(g.Votes), func(v Vote) bool { return v.isOfAuthor(e) }), Vote{User: e.User, Option: e.Option, Local: e.Local})
	return &g
}

// EventKind is the kind of an event.
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
	// EventGateApproved is an answer at a gate that waits for the same answer of others.
	EventGateApproved EventKind = "gate_approved"
	EventRunCompleted EventKind = "run_completed"
	EventRunAborted   EventKind = "run_aborted"
)

// The additional kinds of events of phase workflows. Most are history events of the state
// schema.
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
	// EventLogged and EventEmitted are log and emit actions, EventChecked is a validate
	// action on a variable, EventAsserted is the caller's note on validate actions that the
	// engine cannot evaluate.
	EventLogged   EventKind = "action_logged"
	EventEmitted  EventKind = "action_emitted"
	EventChecked  EventKind = "action_checked"
	EventAsserted EventKind = "action_asserted"
	// EventStateImported starts a run at the position of a state document.
	EventStateImported EventKind = "state_imported"
)

// Event is an immutable fact of a run.
type Event struct {
	Kind EventKind `json:"kind"`
	// Step is the ID of the step, loop, phase, checkpoint or decision that the event is
	// about.
	Step string `json:"step,omitempty"`
	// Round is the loop's round, 1-based.
	Round int `json:"round,omitempty"`
	// Vars are the variables that were set. Variables that come with an output are part of
	// the completion event, so that no prefix of a run has the variables without the
	// output.
	Vars map[string]any `json:"vars,omitempty"`
	// Evidence are the outcomes of the checks of a completed step.
	Evidence []Evidence `json:"evidence,omitempty"`
	// Output and Notes are the agent's claim. Notes is also the note on an answer.
	Output string `json:"output,omitempty"`
	Notes  string `json:"notes,omitempty"`
	// Rounds and List pin the bounds of a loop; Rounds is -1 if neither a count nor a list
	// bounds it.
	Rounds int   `json:"rounds,omitempty"`
	List   []any `json:"list,omitempty"`
	// Gate is set if the completed step must be confirmed. It is part of the completion
	// event, so that no prefix of a run has passed a step without its gate.
	Gate bool `json:"gate,omitempty"`
	// Person is set if the gate requires human approval; for a start event, if
	// all gates of the run do.
	Person bool `json:"person,omitempty"`
	// Approval names the persons that the gate needs, and User is one that answered,
	// Local if it is the local user.
	Approval *guideway.Approval `json:"approval,omitempty"`
	User     string             `json:"user,omitempty"`
	Local    bool               `json:"local,omitempty"`
	// Option is the ID of the chosen option or branch.
	Option string `json:"option,omitempty"`
	// Reason explains a skip, an end or an abort.
	Reason string `json:"reason,omitempty"`
	// Phase is the number of a phase, To the number of the target phase, and Skips are the
	// numbers of the phases to pass through, all 1-based. Item is the 1-based number of the
	// step, checkpoint, decision or loop in its phase or loop. A To of 0 is the end of the
	// run.
	Phase int   `json:"phase,omitempty"`
	Item  int   `json:"item,omitempty"`
	To    int   `json:"to,omitempty"`
	Skips []int `json:"skips,omitempty"`
	// Part is the list that an action belongs to. Count is the number of actions that an
	// assertion covers, or the number of completed steps of an imported run.
	Part  Part `json:"part,omitempty"`
	Count int  `json:"count,omitempty"`
	// Message, Target and Value belong to an action. Value is also the item of a round or
	// an imported state document.
	Message string `json:"message,omitempty"`
	Target  string `json:"target,omitempty"`
	Value   any    `json:"value,omitempty"`
	// Undone are the IDs of the items that were left out because an answer left the phase.
	Undone []string `json:"undone,omitempty"`
	// State is the initial state of an imported run.
	State *PhaseState `json:"state,omitempty"`
}

// The options of a confirmation.
const (
	// OptionConfirm continues the run.
	OptionConfirm = "confirm"
	// OptionRevise, at a step's gate, repeats the step.
	OptionRevise = "revise"
	// OptionSkip, at a loop's gate, skips the loop.
	OptionSkip = "skip"
)

// Apply returns the state after an event. The event must be possible in the state, as all
// events of Decide are; s does not change. Use Fold for events from other sources, because
// it checks them.
func Apply(s State, e Event) State {
	s.Seq++
	if e.Kind == EventGateApproved {
		s.Gate = s.Gate.addVote(e)
		return s
	}
	if s.Phases != nil || e.Kind == EventPhaseEntered || e.Kind == EventStateImported {
		return applyPhases(s, e)
	}
	switch e.Kind {
	case EventRunStarted:
		s.Started, s.Person = true, e.Person
		s.Vars = mergeVars(s.Vars, e.Vars)
	case EventContextSet:
		s.Vars = mergeVars(s.Vars, e.Vars)
	case EventStepCompleted:
		if !s.Again {
			s.Before = s.Vars
		}
		if len(e.Vars) > 0 {
			s.Vars = mergeVars(s.Vars, e.Vars)
		}
		s = s.advanceCursor(true)
		s.Steps++
		s.Again, s.Revise = false, ""
		if e.Gate {
			s.Gate = &OpenGate{Step: e.Step, Person: e.Person, Approval: e.Approval}
		} else {
			s.Before = nil
		}
	case EventStepSkipped:
		s = s.advanceCursor(false)
	case EventLoopEntered:
		// Body is past the end, so that the next event decides about round 1.
		s.Frame = &Frame{Rounds: e.Rounds, List: e.List, Body: endOfRound}
		s.Confirmed = false
	case EventRoundStarted:
		f := *s.Frame
		f.Round, f.Body, f.Worked = e.Round, 0, 0
		s.Frame = &f
	case EventLoopEnded:
		s = s.addRest(e.Step, s.Frame.Round, s.Frame.Rounds)
		s.Frame = nil
		s.Cursor++
	case EventGateOpened:
		s.Gate = &OpenGate{Step: e.Step, Before: true, Person: e.Person, Approval: e.Approval}
	case EventGateAnswered:
		s = s.applyAnswer(e)
	case EventRunCompleted:
		s.Ended = StatusCompleted
	case EventRunAborted:
		s.Ended, s.Gate, s.Before = StatusAborted, nil, nil
	}
	return s
}

// endOfRound is an index past the end of every body.
const endOfRound = 1 << 30

// advanceCursor moves past the step at the cursor.
func (s State) advanceCursor(worked bool) State {
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

// applyAnswer closes the gate. A step to revise returns to the state before its completion.
func (s State) applyAnswer(e Event) State {
	before := s.Gate.Before
	s.Gate = nil
	switch e.Option {
	case OptionConfirm:
		s.Confirmed, s.Before = before, nil
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

func mergeVars(base, top map[string]any) map[string]any {
	out := make(map[string]any, len(base)+len(top))
	maps.Copy(out, base)
	maps.Copy(out, top)
	return out
}

// mergeMembers returns the variables of a call, with the existing members that its objects
// do not mention: setting a member of an object keeps the others. A list is replaced.
func mergeMembers(vars, call map[string]any) map[string]any {
	var out map[string]any
	for name, v := range call {
		now, isObject := vars[name].(map[string]any)
		given, ok := v.(map[string]any)
		if !isObject || !ok {
			continue
		}
		if out == nil {
			out = maps.Clone(call)
		}
		out[name] = mergeVars(now, mergeMembers(now, given))
	}
	if out == nil {
		return call
	}
	return out
}

// lookupVars returns a lookup of the run's variables. A variable that only a loop or the
// engine writes counts as null outside its loop, so that no condition waits for it.
func (p *Program) lookupVars(s State) expr.Lookup {
	vars := expr.Map(s.Vars)
	return func(name string) (any, bool) {
		if p.isServerVar(name) {
			return nil, true
		}
		return vars(name)
	}
}

// textVars returns a lookup for texts: a variable that only a loop sets is unset outside
// its loop, so its placeholder remains.
func (p *Program) textVars(s State) expr.Lookup {
	vars := expr.Map(s.Vars)
	return func(name string) (any, bool) {
		if p.isServerVar(name) {
			return nil, false
		}
		return vars(name)
	}
}

// isServerVar reports whether only the server sets a variable.
func (p *Program) isServerVar(name string) bool {
	return p.owners[name] != nil || slices.Contains(engineKeys(), name)
}

// currentVars returns the variables for conditions and criteria.
func (p *Program) currentVars(s State) expr.Lookup {
	if s.Frame == nil || s.Frame.Round == 0 {
		return p.lookupVars(s)
	}
	return p.varsInRound(s, s.Frame.Round)
}

// varsInRound returns the variables in a round of the loop at the cursor.
func (p *Program) varsInRound(s State, round int) expr.Lookup {
	return overlayVars(roundVars(p.items[s.Cursor].step.Loop, round, s.Frame.List), p.lookupVars(s))
}

// currentStep returns the current step, or nil at the end of the program or of a round, and
// at a loop that has not started.
func (p *Program) currentStep(s State) *steps.Step {
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

// Fold returns the state after events. An event that is not possible in the state before
// it, for example an event of a different definition or of an unknown kind, is an error
// with guideway.CodeConflict that names the event.
func (p *Program) Fold(events []Event) (State, error) {
	return foldFrom(p, State{}, events)
}

// acceptsEvent reports whether an event is possible in the state.
func (p *Program) acceptsEvent(s State, e Event) bool {
	if !s.Started || s.Ended != "" {
		return !s.Started && e.Kind == EventRunStarted
	}
	if s.Gate != nil {
		return e.Kind == EventRunAborted || (e.Kind == EventGateAnswered || e.Kind == EventGateApproved) && p.acceptsAnswer(s, e)
	}
	step, loop := p.currentStep(s), p.loopAt(s)
	switch e.Kind {
	case EventContextSet, EventRunAborted:
		return true
	case EventRunCompleted:
		return s.Cursor >= len(p.items)
	case EventStepCompleted:
		return step != nil && step.ID == e.Step
	case EventStepSkipped:
		if step == nil && s.Frame == nil {
			step = loop
		}
		return step != nil && step.ID == e.Step
	default:
		return loop != nil && loop.ID == e.Step && acceptsLoopEvent(s, e, step)
	}
}

// acceptsLoopEvent reports whether an event of the loop at the cursor is possible; step is
// the current step of its body, or nil.
func acceptsLoopEvent(s State, e Event, step *steps.Step) bool {
	switch e.Kind {
	case EventGateOpened, EventLoopEntered:
		return s.Frame == nil
	case EventRoundStarted:
		return s.Frame != nil && step == nil && e.Round == s.Frame.Round+1
	case EventLoopEnded:
		return s.Frame != nil && step == nil
	default:
		return false
	}
}

// acceptsAnswer reports whether the open gate offers the answer of an event.
func (p *Program) acceptsAnswer(s State, e Event) bool {
	return e.Step == s.Gate.Step && slices.ContainsFunc(gateOptions(s.Gate), func(o Option) bool { return o.ID == e.Option })
}

// loopAt returns the loop at the cursor, or nil.
func (p *Program) loopAt(s State) *steps.Step {
	if s.Cursor >= len(p.items) || !p.items[s.Cursor].isLoop() {
		return nil
	}
	return p.items[s.Cursor].step
}
