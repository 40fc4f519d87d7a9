package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"github.com/guideway-dev/guideway/internal/platform/lists"
	"github.com/guideway-dev/guideway/internal/workflow/criteria"
	"github.com/guideway-dev/guideway/internal/workflow/expr"
	"github.com/guideway-dev/guideway/internal/workflow/steps"
)

// Command is a request to change a run. Exactly one field is set.
type Command struct {
	Start    *Start
	Continue *Continue
	Abort    *Abort
}

// Start starts a run.
type Start struct {
	// Context holds the initial variables.
	Context map[string]any
	// Person requires human approval for all gates of the run, even if the definition does
	// not.
	Person bool
}

// Continue submits the input that the position asks for.
type Continue struct {
	// At a step, Output or Notes must not be blank. The step's criteria check only Output.
	Output string
	Notes  string
	// Context sets variables.
	Context map[string]any
	// Answer answers or declines a gate.
	Answer *Answer
	// Skip skips an optional step, or the rest of an optional phase.
	Skip *Skip
	// Step, if set, must be the ID of the position; the command is refused if the run is at
	// a different step.
	Step string
	// Checks are the outcomes of the step's checks, by their keys. If it is nil, the caller
	// cannot execute checks, and they are skipped. If a check is missing that decides the
	// verdict, the command is refused with RuleChecksPending.
	Checks map[string]criteria.CheckOutcome
	// Person is set if a person sent the command, as far as the server can know. Some gates
	// require a person. By is the person, with the roles that a gate may require.
	Person bool
	By     guideway.Principal
}

// Answer is the answer to a gate.
type Answer struct {
	OptionID string
	// Decline skips a gate that is not required.
	Decline bool
	Note    string
}

// Skip skips an optional step, or the rest of an optional phase.
type Skip struct{ Reason string }

// Abort ends a run permanently.
type Abort struct{ Reason string }

// Refusal is the response to an illegal command. The state does not change.
type Refusal struct {
	// Rule is the stable name of the violated rule.
	Rule string `json:"rule"`
	// Message describes the violation.
	Message string `json:"message"`
	// Given and Allowed depend on the rule. Given is usually the rejected value, and
	// Allowed the accepted values or the limit.
	Given   any `json:"given,omitempty"`
	Allowed any `json:"allowed,omitempty"`
	// Issues are the criteria that an output does not meet.
	Issues []string `json:"issues,omitempty"`
	// Pending are the checks whose outcomes decide the command.
	Pending []criteria.PendingCheck `json:"-"`
}

// Error implements error.
func (r *Refusal) Error() string { return r.Message }

// Rules that a command can violate.
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
	RuleChecksPending   = "checks-pending"
	RuleCheckVariable   = "check-variable"
	RuleWrongStep       = "step-not-reached"
	RuleStepRequired    = "step-required"
	RuleGateRequired    = "gate-required"
	RulePerson          = "gate-needs-person"
	RuleRole            = "gate-needs-role"
	RuleApproved        = "gate-needs-another-person"
)

func (p *Program) decideContinue(s State, c *Continue) ([]Event, *Refusal) {
	step := p.currentStep(s)
	waits := step == nil || p.stepVerdict(s, step) == expr.Unknown
	switch {
	case c.Skip != nil && waits:
		return nil, &Refusal{Rule: RuleStepRequired, Message: "nothing can be skipped at this position"}
	case c.Skip != nil:
		return nil, &Refusal{Rule: RuleStepRequired, Message: "the step is required and cannot be skipped"}
	case c.Answer != nil:
		return nil, &Refusal{Rule: RuleNoGate, Message: "the run has no open gate to answer", Given: c.Answer.OptionID}
	}
	if r := p.checkContext(s, c.Context); r != nil {
		return nil, r
	}
	if waits {
		return p.decideWait(s, c)
	}
	done, r := p.judgeOutput(s, step, c)
	if r != nil {
		return nil, r
	}
	done.Vars = c.Context
	return addConsequences(p, s, done), nil
}

// decideWait accepts variables, and no other input.
func (p *Program) decideWait(s State, c *Continue) ([]Event, *Refusal) {
	handedIn := !isBlank(c.Output) || !isBlank(c.Notes)
	if len(c.Context) > 0 && !handedIn {
		return addConsequences(p, s, Event{Kind: EventContextSet, Vars: c.Context}), nil
	}
	r := newWaitRefusal(p.PositionOf(s).Needs)
	if handedIn {
		r.Message += "; no step is active that could accept output or notes"
	}
	return nil, r
}

// newWaitRefusal returns the refusal of an input other than variables, when the run waits
// for variables.
func newWaitRefusal(needs []Need) *Refusal {
	names := lists.Map(needs, func(n Need) string { return n.Variable })
	return &Refusal{Rule: RuleContextNeeded, Allowed: needs, Message: "the run waits for variables: " + strings.Join(names, ", ")}
}

// judgeOutput checks a step's output and returns the completion event. It evaluates
// criteria and confirmation with the variables before and after the call's own variables,
// so that a call cannot disable its own checks. A step that was sent back is also judged
// with the variables from before its first submission, and always needs confirmation.
func (p *Program) judgeOutput(s State, step *steps.Step, c *Continue) (Event, *Refusal) {
	if isBlank(c.Output) && isBlank(c.Notes) {
		return Event{}, &Refusal{Rule: RuleOutputMissing, Message: "the step requires an output, or notes on the work"}
	}
	e := Event{Kind: EventStepCompleted, Step: step.ID, Output: c.Output, Notes: c.Notes, Gate: s.Again}
	if s.Frame != nil {
		e.Round = s.Frame.Round
	}
	var scopes []expr.Lookup
	if s.Again {
		first := s
		first.Vars = s.Before
		scopes = append(scopes, p.currentVars(first))
	}
	scopes = append(scopes, p.currentVars(s))
	if len(c.Context) > 0 {
		scopes = append(scopes, p.currentVars(Apply(s, Event{Kind: EventContextSet, Vars: c.Context})))
	}
	evidence, r := judgeCriteria(step.Criteria, c, scopes)
	if r != nil {
		return Event{}, r
	}
	e.Evidence = evidence
	for _, vars := range scopes {
		e.Gate = e.Gate || needsConfirmation(step.Confirm, vars)
	}
	if e.Person = e.Gate && (step.Person || s.Person); e.Person {
		e.Approval = step.Approval
	}
	return e, nil
}

// isBlank reports whether a text consists of white space, as defined for criteria.
func isBlank(text string) bool { return strings.TrimFunc(text, expr.IsSpace) == "" }

func (p *Program) decideAnswer(s State, c *Continue) ([]Event, *Refusal) {
	if r := checkAnswer(s, c, gateOptions(s.Gate), false); r != nil {
		return nil, r
	}
	if e, waits := s.Gate.awaitOthers(c); waits && c.Answer.OptionID != OptionRevise {
		return []Event{e}, nil
	}
	return addConsequences(p, s, Event{
		Kind: EventGateAnswered, Step: s.Gate.Step, Option: c.Answer.OptionID, Notes: c.Answer.Note,
	}), nil
}

// checkAnswer refuses an input that is not a permitted answer to the open gate.
func checkAnswer(s State, c *Continue, options []Option, declinable bool) *Refusal {
	ids := lists.Map(options, func(o Option) string { return o.ID })
	switch {
	case c.Answer == nil || c.Skip != nil || c.Output != "" || c.Notes != "" || len(c.Context) > 0:
		return &Refusal{
			Rule: RuleGateUnanswered, Allowed: ids,
			Message: "a gate is open: the run accepts only an answer to the gate, without output, notes, context or skip",
		}
	case s.Gate.Person && !c.Person:
		return &Refusal{Rule: RulePerson, Message: "this gate requires human approval, which an agent cannot give"}
	case s.Gate.Person && !s.Gate.Approval.Accepts(c.By):
		return &Refusal{
			Rule: RuleRole, Allowed: s.Gate.Approval.Roles(),
			Message: fmt.Sprintf("this gate requires the approval of a person with another role, and %q has %s", c.By.User, joinRoles(c.By.Roles)),
		}
	case c.Answer.Decline && !declinable:
		return &Refusal{Rule: RuleGateRequired, Allowed: ids, Message: "the gate must be answered and cannot be declined"}
	case !c.Answer.Decline && !slices.Contains(ids, c.Answer.OptionID):
		return &Refusal{Rule: RuleUnknownOption, Given: c.Answer.OptionID, Allowed: ids, Message: fmt.Sprintf("the gate has no option %.80q", c.Answer.OptionID)}
	}
	by := Event{User: c.By.User, Local: c.By.Roles == nil}
	if c.By.User != "" && slices.ContainsFunc(s.Gate.Votes, func(v Vote) bool { return v.Option == c.Answer.OptionID && v.isOfAuthor(by) }) {
		return &Refusal{Rule: RuleApproved, Given: c.By.User, Message: fmt.Sprintf("%q has already given this answer; the gate waits for the same answer of others", c.By.User)}
	}
	return nil
}

// joinRoles returns roles as a text.
func joinRoles(roles []guideway.Role) string {
	if len(roles) == 0 {
		return "no role"
	}
	return strings.Join(lists.Map(roles, func(r guideway.Role) string { return string(r) }), ", ")
}

// checkContext refuses variables that only the server sets, and a context that is nested
// too deep or too large.
func (p *Program) checkContext(s State, context map[string]any) *Refusal {
	if r := checkOwned(context, p.isServerVar); r != nil {
		return r
	}
	return checkContextBounds(s, context)
}

// checkOwned refuses variables that only the server sets.
func checkOwned(context map[string]any, isOwned func(name string) bool) *Refusal {
	owned := slices.DeleteFunc(slices.Sorted(maps.Keys(context)), func(name string) bool { return !isOwned(expr.Root(name)) })
	if len(owned) == 0 {
		return nil
	}
	return &Refusal{Rule: RuleServerVariable, Given: owned, Message: "only the server sets " + strings.Join(owned, ", ")}
}

// checkContextBounds refuses a context that is nested too deep or too large.
func checkContextBounds(s State, context map[string]any) *Refusal {
	if exceedsDepth(context, maxContextDepth) {
		return &Refusal{Rule: RuleContextTooDeep, Allowed: maxContextDepth, Message: fmt.Sprintf("the context is nested deeper than %d levels", maxContextDepth)}
	}
	if len(context) == 0 {
		return nil
	}
	text, err := jsontext.Marshal(mergeVars(s.Vars, context))
	if err != nil {
		return &Refusal{Rule: RuleContextTooLarge, Allowed: maxContextSize, Message: "the context cannot be encoded as JSON: " + err.Error()}
	}
	if n := len(text); n > maxContextSize {
		return &Refusal{
			Rule: RuleContextTooLarge, Given: n, Allowed: maxContextSize,
			Message: fmt.Sprintf("the variables of the run have %d bytes as JSON, more than the %d that are allowed", n, maxContextSize),
		}
	}
	return nil
}

// nextEvent returns the next event that follows automatically from the state, if any.
func (p *Program) nextEvent(s State) (Event, bool) {
	if s.Ended != "" || s.Gate != nil {
		return Event{}, false
	}
	if s.Cursor >= len(p.items) {
		return Event{Kind: EventRunCompleted}, true
	}
	it := p.items[s.Cursor]
	switch {
	case s.Frame != nil && s.Frame.Body >= len(it.body):
		return p.nextRoundEvent(s, it)
	case s.Frame != nil:
		return p.skipStep(s, it.body[s.Frame.Body])
	case !it.isLoop():
		return p.skipStep(s, it.step)
	default:
		return p.nextLoopEvent(s, it)
	}
}

// stepVerdict returns the verdict of the run condition of the step at the cursor.
func (p *Program) stepVerdict(s State, step *steps.Step) expr.Verdict {
	if s.Again {
		return expr.Yes
	}
	return step.RunCondition.Decide(p.currentVars(s))
}

// skipStep skips a step whose condition is false. If the condition is undecided, the run
// waits.
func (p *Program) skipStep(s State, step *steps.Step) (Event, bool) {
	if p.stepVerdict(s, step) != expr.No {
		return Event{}, false
	}
	e := Event{Kind: EventStepSkipped, Step: step.ID, Reason: "condition is false: " + step.RunCondition.String()}
	if s.Frame != nil {
		e.Round = s.Frame.Round
	}
	return e, true
}

func (p *Program) nextLoopEvent(s State, it *item) (Event, bool) {
	vars := p.currentVars(s)
	l := it.step.Loop
	switch it.step.RunCondition.Decide(vars) {
	case expr.No:
		return p.skipStep(s, it.step)
	case expr.Unknown:
		return Event{}, false
	}
	x := resolveBounds(l, vars)
	if x.reason != "" {
		if p.isServerVar(expr.Root(boundsVar(l))) {
			return Event{Kind: EventStepSkipped, Step: it.step.ID, Reason: x.reason + "; only the server sets this variable, so the loop was skipped"}, true
		}
		return Event{}, false
	}
	if !s.Confirmed && needsConfirmation(it.step.Confirm, vars) {
		return Event{Kind: EventGateOpened, Step: it.step.ID, Person: it.step.Person || s.Person, Approval: it.step.Approval}, true
	}
	e := Event{Kind: EventLoopEntered, Step: it.step.ID, Rounds: x.rounds}
	if len(x.list) > 0 {
		e.List = slices.Clone(x.list)
	}
	return e, true
}

// nextRoundEvent starts another round at the end of a round, or ends the loop.
func (p *Program) nextRoundEvent(s State, it *item) (Event, bool) {
	l, f := it.step.Loop, s.Frame
	end := func(reason string) (Event, bool) {
		return Event{Kind: EventLoopEnded, Step: it.step.ID, Round: f.Round, Reason: reason}, true
	}
	switch {
	case f.Rounds >= 0 && f.Round >= f.Rounds:
		return end("all rounds are done")
	case f.Round >= l.MaxIterations:
		return end(maxReachedText(l))
	}
	if l.Type == steps.LoopWhile || l.Type == steps.LoopUntil {
		switch verdict := l.Condition.Decide(p.varsInRound(s, f.Round+1)); {
		case verdict == expr.Unknown:
			return Event{}, false
		case (verdict == expr.Yes) != (l.Type == steps.LoopWhile):
			return end(string(l.Type) + " " + l.Condition.String())
		}
		if f.Round > 0 && f.Worked == 0 && !p.readsOwnVars(it) {
			return end("no step of the loop applies any more")
		}
	}
	return Event{Kind: EventRoundStarted, Step: it.step.ID, Round: f.Round + 1}, true
}

// readsOwnVars reports whether a loop can progress without new input because one of its
// conditions reads the loop's own variables.
func (p *Program) readsOwnVars(it *item) bool {
	l := it.step.Loop
	return readsLoop(l, l.Condition) || slices.ContainsFunc(it.body, func(b *steps.Step) bool {
		return readsLoop(l, b.RunCondition)
	})
}
