package guide

import (
	"slices"
	"strings"

	"github.com/guideway-dev/guideway/internal/condition"
	"github.com/guideway-dev/guideway/internal/definition/steps"
)

// Command is a request to change a run. One of the fields is set.
type Command struct {
	Start    *Start
	Continue *Continue
	Abort    *Abort
}

// Start begins a run.
type Start struct {
	// Context holds the first variables.
	Context map[string]any
}

// Continue hands in what the position asked for.
type Continue struct {
	// Output is judged by the step's criteria. Where a step has none, Output or
	// Notes must say something.
	Output string
	Notes  string
	// Context sets variables.
	Context map[string]any
	// Answer answers a gate with the id of an option.
	Answer *Answer
}

// Answer is the answer to a gate.
type Answer struct {
	OptionID string
	Note     string
}

// Abort ends a run for good.
type Abort struct{ Reason string }

// Refusal is the answer to an illegal command. The state stays as it was.
type Refusal struct {
	// Rule names what was broken; it is stable.
	Rule string `json:"rule"`
	// Message says what was wrong.
	Message string `json:"message"`
	// Given and Allowed show the difference.
	Given   any `json:"given,omitempty"`
	Allowed any `json:"allowed,omitempty"`
	// Issues are the criteria that an output failed.
	Issues []string `json:"issues,omitempty"`
}

// Error implements error.
func (r *Refusal) Error() string { return r.Message }

// The rules that a command can break.
const (
	RuleNotStarted       = "run-not-started"
	RuleStarted          = "run-started"
	RuleEnded            = "run-ended"
	RuleReservedVariable = "reserved-variable"
	RuleServerVariable   = "server-variable"
	RuleContextTooLarge  = "context-too-large"
	RuleGateUnanswered   = "gate-unanswered"
	RuleUnknownOption    = "unknown-option"
	RuleNoGate           = "no-gate"
	RuleContextNeeded    = "context-needed"
	RuleOutputMissing    = "output-missing"
	RuleCriteria         = "criteria-failed"
	RuleDefinition       = "definition-broken"
)

// Decide gives the events of a legal command, in order and ready to be applied,
// or a refusal. It is pure: the same state and command give the same answer.
func (p *Program) Decide(s State, c Command) ([]Event, *Refusal) {
	switch {
	case c.Start != nil:
		return p.decideStart(s, c.Start)
	case !s.Started:
		return nil, &Refusal{Rule: RuleNotStarted, Message: "the run has not started"}
	case s.Ended != "":
		return nil, &Refusal{Rule: RuleEnded, Message: "the run has ended: it is " + string(s.Ended)}
	case c.Abort != nil:
		return []Event{{Kind: EventRunAborted, Reason: c.Abort.Reason}}, nil
	case c.Continue != nil:
		return p.decideContinue(s, c.Continue)
	default:
		return nil, &Refusal{Rule: RuleOutputMissing, Message: "the command is empty"}
	}
}

func (p *Program) decideStart(s State, c *Start) ([]Event, *Refusal) {
	if s.Started {
		return nil, &Refusal{Rule: RuleStarted, Message: "the run has started already"}
	}
	if r := p.checkContext(s, c.Context); r != nil {
		return nil, r
	}
	return p.settle(s, Event{Kind: EventRunStarted, Vars: c.Context}), nil
}

func (p *Program) decideContinue(s State, c *Continue) ([]Event, *Refusal) {
	if s.Gate != nil {
		return p.decideAnswer(s, c)
	}
	if c.Answer != nil {
		return nil, &Refusal{Rule: RuleNoGate, Message: "there is no gate to answer", Given: c.Answer.OptionID}
	}
	if r := p.checkContext(s, c.Context); r != nil {
		return nil, r
	}
	var events []Event
	if len(c.Context) > 0 {
		events = append(events, Event{Kind: EventContextSet, Vars: c.Context})
	}
	pos := p.PositionOf(s)
	if pos.Kind == PositionContext {
		if len(events) == 0 || c.Output != "" {
			return nil, &Refusal{
				Rule: RuleContextNeeded, Allowed: pos.Needs,
				Message: "the run waits for variables: " + strings.Join(needNames(pos.Needs), ", "),
			}
		}
		return p.settle(s, events...), nil
	}
	step := p.current(s)
	done, r := p.judge(s, step, c)
	if r != nil {
		return nil, r
	}
	return p.settle(s, append(events, done...)...), nil
}

// judge checks a step's output and gives the events of its completion. The
// confirmation, too, sees the variables that come with the output.
func (p *Program) judge(s State, step *steps.Step, c *Continue) ([]Event, *Refusal) {
	vars := p.scope(Apply(s, Event{Kind: EventContextSet, Vars: c.Context}))
	if step.Criteria == nil {
		if strings.TrimSpace(c.Output) == "" && strings.TrimSpace(c.Notes) == "" {
			return nil, &Refusal{Rule: RuleOutputMissing, Message: "the step wants its output, or notes on what was done"}
		}
	} else {
		res, err := step.Criteria.Check(c.Output, vars)
		if err != nil {
			return nil, &Refusal{Rule: RuleDefinition, Message: err.Error()}
		}
		if !res.Valid {
			return nil, &Refusal{Rule: RuleCriteria, Message: "the output does not meet the step's criteria", Issues: res.Issues}
		}
	}
	round := 0
	if s.Frame != nil {
		round = s.Frame.Round
	}
	events := []Event{{Kind: EventStepCompleted, Step: step.ID, Round: round, Output: c.Output, Notes: c.Notes}}
	if step.Confirm != nil && step.Confirm.Decide(vars) != condition.No {
		events = append(events, Event{Kind: EventGateOpened, Step: step.ID, Round: round})
	}
	return events, nil
}

func (p *Program) decideAnswer(s State, c *Continue) ([]Event, *Refusal) {
	options := gateOptions(s.Gate)
	ids := make([]string, len(options))
	for i, o := range options {
		ids[i] = o.ID
	}
	if c.Answer == nil || c.Output != "" || len(c.Context) > 0 {
		return nil, &Refusal{
			Rule: RuleGateUnanswered, Allowed: ids,
			Message: "a gate is open: the run takes nothing but an answer to it",
		}
	}
	if !slices.Contains(ids, c.Answer.OptionID) {
		return nil, &Refusal{
			Rule: RuleUnknownOption, Given: c.Answer.OptionID, Allowed: ids,
			Message: "the gate has no such option",
		}
	}
	return p.settle(s, Event{
		Kind: EventGateAnswered, Step: s.Gate.Step, Option: c.Answer.OptionID, Notes: c.Answer.Note,
	}), nil
}

// checkContext refuses variables that are the server's, and a context that is
// too large.
func (p *Program) checkContext(s State, context map[string]any) *Refusal {
	for name := range context {
		if slices.Contains(engineKeys(), name) {
			return &Refusal{Rule: RuleReservedVariable, Message: "'" + name + "' is the server's own", Given: name}
		}
		if it := p.loopWriting(name); it != nil {
			return &Refusal{
				Rule: RuleServerVariable, Given: name,
				Message: "'" + name + "' is set by the loop '" + it.step.ID + "' and by nobody else",
			}
		}
	}
	if n := ContextSize(merged(s.Vars, context)); n >= maxContextSize {
		return &Refusal{Rule: RuleContextTooLarge, Message: contextTooLarge(n)}
	}
	return nil
}

func (p *Program) loopWriting(name string) *item {
	for _, it := range p.items {
		if it.isLoop() && slices.Contains(loopVarNames(it.step.Loop), name) {
			return it
		}
	}
	return nil
}

// settle adds to the given events what follows from them without anybody's
// doing: skipped steps, loops and rounds that begin and end, the end of the run.
func (p *Program) settle(s State, events ...Event) []Event {
	for _, e := range events {
		s = Apply(s, e)
	}
	for {
		e, ok := p.move(s)
		if !ok {
			return events
		}
		events = append(events, e)
		s = Apply(s, e)
	}
}

// move gives the one event that follows from the state, if any does.
func (p *Program) move(s State) (Event, bool) {
	if s.Ended != "" || s.Gate != nil {
		return Event{}, false
	}
	if s.Cursor >= len(p.items) {
		return Event{Kind: EventRunCompleted}, true
	}
	it := p.items[s.Cursor]
	switch {
	case s.Frame != nil && s.Frame.Body >= len(it.body):
		return p.moveRound(s, it)
	case s.Frame != nil:
		return p.skip(s, it.body[s.Frame.Body])
	case !it.isLoop():
		return p.skip(s, it.step)
	default:
		return p.moveLoop(s, it)
	}
}

// skip passes over a step whose condition is false. One that cannot be decided
// waits.
func (p *Program) skip(s State, step *steps.Step) (Event, bool) {
	if step.RunCondition.Decide(p.scope(s)) != condition.No {
		return Event{}, false
	}
	e := Event{Kind: EventStepSkipped, Step: step.ID, Reason: "condition is false: " + step.RunCondition.String()}
	if s.Frame != nil {
		e.Round = s.Frame.Round
	}
	return e, true
}

func (p *Program) moveLoop(s State, it *item) (Event, bool) {
	vars := p.scope(s)
	switch it.step.RunCondition.Decide(vars) {
	case condition.No:
		return p.skip(s, it.step)
	case condition.Unknown:
		return Event{}, false
	}
	x := extentOf(it.step.Loop, vars)
	if x.problem != "" {
		return Event{}, false
	}
	if c := it.step.Confirm; c != nil && !s.Confirmed && c.Decide(vars) != condition.No {
		return Event{Kind: EventGateOpened, Step: it.step.ID, Before: true}, true
	}
	return Event{Kind: EventLoopEntered, Step: it.step.ID, Rounds: x.rounds, List: x.list}, true
}

// moveRound decides at the end of a round whether there is another.
func (p *Program) moveRound(s State, it *item) (Event, bool) {
	l, f := it.step.Loop, s.Frame
	end := func(reason string) (Event, bool) {
		return Event{Kind: EventLoopEnded, Step: it.step.ID, Round: f.Round, Reason: reason}, true
	}
	if f.Rounds >= 0 && f.Round >= f.Rounds {
		return end("all rounds are done")
	}
	if l.Type == steps.LoopWhile || l.Type == steps.LoopUntil {
		vars := over(roundVars(l, f.Round+1, f.List), condition.Map(s.Vars))
		switch verdict := l.Condition.Decide(vars); {
		case verdict == condition.Unknown:
			return Event{}, false
		case (verdict == condition.Yes) != (l.Type == steps.LoopWhile):
			return end(string(l.Type) + " " + l.Condition.String())
		}
		if f.Round > 0 && f.Worked == 0 && !p.changesByItself(it) {
			return end("no step of the loop applies any more")
		}
	}
	if f.Round >= l.MaxIterations {
		return end(maximumReached(l))
	}
	return Event{Kind: EventRoundStarted, Step: it.step.ID, Round: f.Round + 1}, true
}

// changesByItself says whether a loop can go on without anybody's work, because
// a condition reads the loop's own variables.
func (p *Program) changesByItself(it *item) bool {
	l := it.step.Loop
	return readsLoop(l, l.Condition) || slices.ContainsFunc(it.body, func(b *steps.Step) bool {
		return readsLoop(l, b.RunCondition)
	})
}
