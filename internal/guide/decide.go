package guide

import (
	"maps"
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
	// Person has only a person open the run's gates, whatever the definition
	// says.
	Person bool
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
	// Skip declines a step that is not required.
	Skip *Skip
	// Step, if set, must be the id of the position: a caller that thinks that it
	// is elsewhere is told so.
	Step string
	// Person says that a person stands behind the command, as far as the server
	// can know. Some gates open for nobody else.
	Person bool
}

// Answer is the answer to a gate.
type Answer struct {
	OptionID string
	// Decline passes over a gate that need not be answered.
	Decline bool
	Note    string
}

// Skip declines a step that is not required.
type Skip struct{ Reason string }

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
	RuleNotStarted      = "run-not-started"
	RuleStarted         = "run-started"
	RuleEnded           = "run-ended"
	RuleServerVariable  = "server-variable"
	RuleContextTooLarge = "context-too-large"
	RuleContextTooDeep  = "context-too-deep"
	RuleGateUnanswered  = "gate-unanswered"
	RuleUnknownOption   = "unknown-option"
	RuleNoGate          = "no-gate"
	RuleContextNeeded   = "context-needed"
	RuleOutputMissing   = "output-missing"
	RuleCriteria        = "criteria-failed"
	RuleDefinition      = "definition-broken"
	RuleWrongStep       = "step-not-reached"
	RuleStepRequired    = "step-required"
	RuleGateRequired    = "gate-required"
	RulePerson          = "gate-needs-person"
)

// Decide gives the events of a legal command, in order and ready to be applied,
// or a refusal. It is pure: the same state and command give the same answer. The
// state may be any prefix of a run's events; what follows from it by itself comes
// first in the answer.
func (p *Program) Decide(s State, c Command) ([]Event, *Refusal) {
	if s.Started {
		if pending := p.settle(s); len(pending) > 0 {
			for _, e := range pending {
				s = Apply(s, e)
			}
			events, refusal := p.Decide(s, c)
			if refusal != nil {
				return nil, refusal
			}
			return append(pending, events...), nil
		}
	}
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
	return p.settle(s, Event{Kind: EventRunStarted, Vars: c.Context, Person: c.Person}), nil
}

func (p *Program) decideContinue(s State, c *Continue) ([]Event, *Refusal) {
	if at := p.PositionOf(s).ID; c.Step != "" && c.Step != at {
		return nil, &Refusal{Rule: RuleWrongStep, Given: c.Step, Allowed: at, Message: "the run is not at that step"}
	}
	if s.Gate != nil {
		return p.decideAnswer(s, c)
	}
	if c.Skip != nil {
		return nil, &Refusal{Rule: RuleStepRequired, Message: "the step is required and cannot be skipped"}
	}
	if c.Answer != nil {
		return nil, &Refusal{Rule: RuleNoGate, Message: "there is no gate to answer", Given: c.Answer.OptionID}
	}
	if r := p.checkContext(s, c.Context); r != nil {
		return nil, r
	}
	step := p.current(s)
	if step == nil || p.applies(s, step) == condition.Unknown {
		return p.decideWait(s, c)
	}
	done, r := p.judge(s, step, c)
	if r != nil {
		return nil, r
	}
	done.Vars = c.Context
	return p.settle(s, done), nil
}

// decideWait takes the variables that a run waits for, and nothing else.
func (p *Program) decideWait(s State, c *Continue) ([]Event, *Refusal) {
	handedIn := !blank(c.Output) || !blank(c.Notes)
	if len(c.Context) > 0 && !handedIn {
		return p.settle(s, Event{Kind: EventContextSet, Vars: c.Context}), nil
	}
	needs := p.PositionOf(s).Needs
	names := make([]string, len(needs))
	for i, n := range needs {
		names[i] = n.Variable
	}
	message := "the run waits for variables: " + strings.Join(names, ", ")
	if handedIn {
		message += "; no step is under way that could take an output"
	}
	return nil, &Refusal{Rule: RuleContextNeeded, Allowed: needs, Message: message}
}

// judge checks a step's output and gives the event of its completion. Criteria
// and confirmation are looked at under the variables before and after those that
// come with the output, so that no call can switch off what guards it.
func (p *Program) judge(s State, step *steps.Step, c *Continue) (Event, *Refusal) {
	if blank(c.Output) && blank(c.Notes) {
		return Event{}, &Refusal{Rule: RuleOutputMissing, Message: "the step wants its output, or notes on what was done"}
	}
	e := Event{Kind: EventStepCompleted, Step: step.ID, Output: c.Output, Notes: c.Notes}
	if s.Frame != nil {
		e.Round = s.Frame.Round
	}
	scopes := []condition.Lookup{p.scope(s)}
	if len(c.Context) > 0 {
		scopes = append(scopes, p.scope(Apply(s, Event{Kind: EventContextSet, Vars: c.Context})))
	}
	for _, vars := range scopes {
		if r := meets(step, c.Output, vars); r != nil {
			return Event{}, r
		}
		e.Gate = e.Gate || asks(step.Confirm, vars)
	}
	e.Person = e.Gate && (step.Person || s.Person)
	return e, nil
}

// blank says whether a text has nothing but space, as criteria see it.
func blank(text string) bool { return strings.TrimFunc(text, condition.IsSpace) == "" }

// meets says which criteria an output fails. A step without criteria takes
// notes in place of an output.
func meets(step *steps.Step, output string, vars condition.Lookup) *Refusal {
	if step.Criteria == nil {
		return nil
	}
	res, err := step.Criteria.Check(output, vars)
	if err != nil {
		return &Refusal{Rule: RuleDefinition, Message: err.Error()}
	}
	if !res.Valid {
		return &Refusal{Rule: RuleCriteria, Message: "the output does not meet the step's criteria", Issues: res.Issues}
	}
	return nil
}

func (p *Program) decideAnswer(s State, c *Continue) ([]Event, *Refusal) {
	options := gateOptions(s.Gate)
	ids := make([]string, len(options))
	for i, o := range options {
		ids[i] = o.ID
	}
	if c.Answer == nil || c.Skip != nil || c.Output != "" || c.Notes != "" || len(c.Context) > 0 {
		return nil, &Refusal{
			Rule: RuleGateUnanswered, Allowed: ids,
			Message: "a gate is open: the run takes nothing but an answer to it",
		}
	}
	if s.Gate.Person && !c.Person {
		return nil, &Refusal{Rule: RulePerson, Message: "only a person can open this gate, by a way that an agent does not have"}
	}
	if c.Answer.Decline {
		return nil, &Refusal{Rule: RuleGateRequired, Allowed: ids, Message: "the gate must be answered and cannot be declined"}
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
	var owned []string
	for _, name := range slices.Sorted(maps.Keys(context)) {
		if p.owned(name) {
			owned = append(owned, name)
		}
	}
	if len(owned) > 0 {
		return &Refusal{
			Rule: RuleServerVariable, Given: owned,
			Message: "only the server sets " + strings.Join(owned, ", "),
		}
	}
	return boundedContext(s, context)
}

// boundedContext refuses a context that is too deep or too large.
func boundedContext(s State, context map[string]any) *Refusal {
	if tooDeep(context, maxContextDepth) {
		return &Refusal{Rule: RuleContextTooDeep, Allowed: maxContextDepth, Message: "the context is nested too deep"}
	}
	if n := ContextSize(merged(s.Vars, context)); n >= maxContextSize {
		return &Refusal{Rule: RuleContextTooLarge, Message: contextTooLarge(n)}
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

// applies says whether the step at the cursor is to be done.
func (p *Program) applies(s State, step *steps.Step) condition.Verdict {
	if s.Again {
		return condition.Yes
	}
	return step.RunCondition.Decide(p.scope(s))
}

// skip passes over a step whose condition is false. One that cannot be decided
// waits.
func (p *Program) skip(s State, step *steps.Step) (Event, bool) {
	if p.applies(s, step) != condition.No {
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
	l := it.step.Loop
	switch it.step.RunCondition.Decide(vars) {
	case condition.No:
		return p.skip(s, it.step)
	case condition.Unknown:
		return Event{}, false
	}
	x := extentOf(l, vars)
	if x.problem != "" {
		if p.owned(extentVar(l)) {
			return Event{Kind: EventStepSkipped, Step: it.step.ID, Reason: x.problem + ", which only a loop sets"}, true
		}
		return Event{}, false
	}
	if !s.Confirmed && asks(it.step.Confirm, vars) {
		return Event{Kind: EventGateOpened, Step: it.step.ID, Person: it.step.Person || s.Person}, true
	}
	e := Event{Kind: EventLoopEntered, Step: it.step.ID, Rounds: x.rounds}
	if len(x.list) > 0 {
		e.List = slices.Clone(x.list)
	}
	return e, true
}

// moveRound decides at the end of a round whether there is another.
func (p *Program) moveRound(s State, it *item) (Event, bool) {
	l, f := it.step.Loop, s.Frame
	end := func(reason string) (Event, bool) {
		return Event{Kind: EventLoopEnded, Step: it.step.ID, Round: f.Round, Reason: reason}, true
	}
	switch {
	case f.Rounds >= 0 && f.Round >= f.Rounds:
		return end("all rounds are done")
	case f.Round >= l.MaxIterations:
		return end(maximumReached(l))
	}
	if l.Type == steps.LoopWhile || l.Type == steps.LoopUntil {
		switch verdict := l.Condition.Decide(p.inRound(s, f.Round+1)); {
		case verdict == condition.Unknown:
			return Event{}, false
		case (verdict == condition.Yes) != (l.Type == steps.LoopWhile):
			return end(string(l.Type) + " " + l.Condition.String())
		}
		if f.Round > 0 && f.Worked == 0 && !p.changesByItself(it) {
			return end("no step of the loop applies any more")
		}
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
