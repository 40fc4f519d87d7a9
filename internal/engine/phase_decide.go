package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"github.com/guideway-dev/guideway/internal/workflow/expr"
	"github.com/guideway-dev/guideway/internal/workflow/phases"
	"github.com/guideway-dev/guideway/internal/workflow/shape"
)

// The additional rules for commands on phase workflows.
const (
	// RuleVariableType rejects a variable whose type differs from the declaration.
	RuleVariableType = "variable-type"
	// RuleValidate rejects a command if a validate action does not hold.
	RuleValidate = "validate-failed"
	// RuleNoteMissing rejects a command without the required note on a check.
	RuleNoteMissing = "note-missing"
)

func (p *PhaseProgram) decideContinue(s State, c *Continue) ([]Event, *Refusal) {
	if c.Answer != nil {
		return nil, &Refusal{Rule: RuleNoGate, Message: "the run has no open gate to answer", Given: c.Answer.OptionID}
	}
	if r := p.checkContext(s, c.Context); r != nil {
		return nil, r
	}
	ph := p.currentState(s)
	step := p.stepAt(ph)
	switch {
	case step != nil && ph.Started && !ph.Done && c.Skip != nil:
		return p.decideSkip(s, ph, step, c)
	case c.Skip != nil:
		return nil, &Refusal{Rule: RuleStepRequired, Message: "nothing can be skipped at this position"}
	case step != nil && ph.Started && !ph.Done:
		return p.decideStep(s, ph, step, c)
	case len(p.instructions(ph)) > 0:
		return p.decideAssert(s, ph, c)
	default:
		return p.decideWait(s, c)
	}
}

// decideStep accepts a step's output that meets its criteria. Validate actions on variables
// are evaluated with the variables of the call; those that only the caller can judge require
// a note. The criteria are evaluated with the variables before and after the call, so that a
// call cannot disable its own rules.
func (p *PhaseProgram) decideStep(s State, ph PhaseState, step *phases.Step, c *Continue) ([]Event, *Refusal) {
	if isBlank(c.Output) && isBlank(c.Notes) {
		return nil, &Refusal{Rule: RuleOutputMissing, Message: "the step requires an output, or notes on the work"}
	}
	e := Event{
		Kind: EventStepCompleted, Phase: ph.Phase, Item: p.stepNumber(ph), Step: step.ID,
		Output: c.Output, Notes: c.Notes, Vars: c.Context,
	}
	after := s
	after.Vars = mergeVars(s.Vars, c.Context)
	if ph.Loop != nil {
		e.Round = ph.Loop.Round
	}
	for i := range step.Actions {
		a := &step.Actions[i]
		switch {
		case a.Action == phases.ActionSet: // later actions see the new value
			after.Vars = mergeVars(after.Vars, phases.SetPath(after.Vars, a.Target, a.Value))
		case a.Action != phases.ActionValidate:
		case !p.isVariable(a.Target):
			if isBlank(c.Notes) {
				return nil, &Refusal{
					Rule: RuleNoteMissing, Allowed: instructionText(a),
					Message: "notes are missing; they must describe the result of this instruction: " + instructionText(a),
				}
			}
		case !a.Holds(p.lookupVars(after)):
			return nil, p.refuseValidate(a, p.lookupVars(after))
		}
	}
	scopes := []expr.Lookup{p.lookupVars(s)}
	if len(c.Context) > 0 {
		now := s
		now.Vars = mergeVars(s.Vars, c.Context)
		scopes = append(scopes, p.lookupVars(now))
	}
	var r *Refusal
	if e.Evidence, r = judgeCriteria(step.Criteria, c, scopes); r != nil {
		return nil, r
	}
	return addConsequences(p, s, e), nil
}

// stepNumber returns the 1-based number of the current step in its phase or loop.
func (p *PhaseProgram) stepNumber(ph PhaseState) int {
	if ph.Loop != nil {
		return ph.Loop.Step + 1
	}
	return ph.Index + 1
}

// refuseValidate returns the refusal for a validate action that does not hold.
func (p *PhaseProgram) refuseValidate(a *phases.Action, vars func(string) (any, bool)) *Refusal {
	r := &Refusal{Rule: RuleValidate, Message: instructionText(a)}
	name, _, _ := strings.Cut(a.Target, ".")
	if value, ok := vars(name); ok {
		r.Given = map[string]any{name: value}
	}
	return r
}

// decideSkip skips an optional step, or the rest of an optional phase.
func (p *PhaseProgram) decideSkip(s State, ph PhaseState, step *phases.Step, c *Continue) ([]Event, *Refusal) {
	if !isBlank(c.Output) || !isBlank(c.Notes) || len(c.Context) > 0 {
		return nil, &Refusal{Rule: RuleStepRequired, Message: "a call with skip cannot have output, notes or context"}
	}
	phase := p.phaseAt(ph)
	switch {
	case !step.Required:
		e := Event{Kind: EventStepSkipped, Phase: ph.Phase, Item: p.stepNumber(ph), Step: step.ID, Reason: c.Skip.Reason}
		if ph.Loop != nil {
			e.Round = ph.Loop.Round
		}
		return addConsequences(p, s, e), nil
	case !phase.Required:
		to, ok := p.skippedTarget(s, phase)
		if !ok {
			return nil, &Refusal{Rule: RuleContextNeeded, Message: "the phase cannot be skipped before the variables that decide the next phase are set", Allowed: p.decidingVars(s, phase)}
		}
		return addConsequences(p, s, Event{Kind: EventPhaseSkipped, Phase: ph.Phase, Step: phase.ID, To: to, Reason: c.Skip.Reason}), nil
	default:
		return nil, &Refusal{Rule: RuleStepRequired, Message: "the step is required and cannot be skipped"}
	}
}

// decideAssert accepts the note on actions that only the caller can judge.
func (p *PhaseProgram) decideAssert(s State, ph PhaseState, c *Continue) ([]Event, *Refusal) {
	if isBlank(c.Notes) && isBlank(c.Output) {
		return nil, &Refusal{Rule: RuleNoteMissing, Message: "notes are missing; they must describe the results of the instructions at this position"}
	}
	e := Event{Kind: EventAsserted, Phase: ph.Phase, Part: ph.Part, Count: len(p.instructions(ph)), Notes: c.Notes, Vars: c.Context}
	if isBlank(c.Notes) {
		e.Notes = c.Output
	}
	return addConsequences(p, s, e), nil
}

// decideWait accepts variables, and no other input. If the run waits for a validate action,
// the variables must meet it.
func (p *PhaseProgram) decideWait(s State, c *Continue) ([]Event, *Refusal) {
	if len(c.Context) == 0 || !isBlank(c.Output) || !isBlank(c.Notes) {
		return nil, newWaitRefusal(p.PositionOf(s).Needs)
	}
	set := Event{Kind: EventContextSet, Vars: c.Context}
	after := Apply(s, set)
	if a := p.failingValidate(after); a != nil {
		return nil, p.refuseValidate(a, p.lookupVars(after))
	}
	return addConsequences(p, s, set), nil
}

// failingValidate returns the validate action of an entry or exit that blocks the run, or
// nil.
func (p *PhaseProgram) failingValidate(s State) *phases.Action {
	ph := p.currentState(s)
	phase := p.phaseAt(ph)
	if phase == nil || len(p.instructions(ph)) > 0 {
		return nil
	}
	actions := phase.EntryActions
	if ph.Part == PartExit {
		actions = phase.ExitActions
	}
	if ph.Part != PartEntry && ph.Part != PartExit || ph.Act >= len(actions) {
		return nil
	}
	a := &actions[ph.Act]
	if a.Action != phases.ActionValidate || a.Holds(p.lookupVars(s)) {
		return nil
	}
	return a
}

// decideAnswer accepts the answer to a checkpoint, or to a decision that offers its branches.
func (p *PhaseProgram) decideAnswer(s State, c *Continue) ([]Event, *Refusal) {
	ph := p.currentState(s)
	declinable := ph.Part == PartCheckpoints && !p.phaseAt(ph).Checkpoints[ph.Index].Required
	if r := checkAnswer(s, c, p.gateOptions(ph), declinable); r != nil {
		return nil, r
	}
	if e, waits := s.Gate.awaitOthers(c); waits {
		e.Phase = ph.Phase
		return []Event{e}, nil
	}
	var e Event
	if ph.Part == PartCheckpoints {
		option := c.Answer.OptionID
		if c.Answer.Decline {
			option = ""
		}
		e, _ = p.checkpointAnswer(s, ph, option)
	} else {
		i := slices.IndexFunc(p.offeredBranches(ph), func(b phases.Branch) bool { return b.ID == c.Answer.OptionID })
		branch := p.offeredBranches(ph)[i]
		e = Event{Kind: EventBranchTaken, Option: branch.ID, To: p.numbers[branch.TransitionTo]}
	}
	e.Phase, e.Item, e.Step, e.Notes = ph.Phase, ph.Index+1, s.Gate.Step, c.Answer.Note
	return addConsequences(p, s, e), nil
}

// checkpointAnswer returns the event of an answer to the current checkpoint, with its
// effects; an empty option declines.
func (p *PhaseProgram) checkpointAnswer(s State, ph PhaseState, option string) (Event, bool) {
	c := &p.phaseAt(ph).Checkpoints[ph.Index]
	e := Event{Kind: EventCheckpointAnswer, Phase: ph.Phase, Item: ph.Index + 1, Step: c.ID, Option: option}
	if option == "" {
		e.Reason = "declined"
		return e, !c.Required
	}
	i := slices.IndexFunc(c.Options, func(o phases.Option) bool { return o.ID == option })
	if i < 0 {
		return e, false
	}
	effect := c.Options[i].Effect
	for _, set := range effect.SetVariable {
		e.Vars = mergeVars(e.Vars, phases.SetPath(mergeVars(s.Vars, e.Vars), set.Name, set.Value))
	}
	e.To = p.numbers[effect.TransitionTo]
	if e.To > 0 {
		e.Undone = p.omittedItems(ph)
	}
	for _, id := range effect.SkipPhases {
		e.Skips = append(e.Skips, p.numbers[id])
	}
	slices.Sort(e.Skips)
	return e, true
}

// omittedItems returns the IDs of the items that are left out if an answer leaves the phase
// immediately.
func (p *PhaseProgram) omittedItems(ph PhaseState) []string {
	var ids []string
	phase := p.phaseAt(ph)
	for _, c := range phase.Checkpoints[ph.Index+1:] {
		ids = append(ids, c.ID)
	}
	for _, d := range phase.Decisions {
		ids = append(ids, d.ID)
	}
	return ids
}

// checkContext refuses variables that only the server sets, values of another type than
// declared, and a context that is nested too deep or too large.
func (p *PhaseProgram) checkContext(s State, context map[string]any) *Refusal {
	if r := checkOwned(context, func(name string) bool { return slices.Contains(p.owned, name) }); r != nil {
		return r
	}
	for _, name := range slices.Sorted(maps.Keys(context)) {
		v := p.Workflow.Variable(name)
		if v != nil && context[name] != nil && !fitsType(v.Type, context[name]) {
			return &Refusal{
				Rule: RuleVariableType, Given: map[string]any{name: jsontext.TypeName(context[name])}, Allowed: map[string]any{name: v.Type},
				Message: fmt.Sprintf("the variable '%s' must be %s, not %s", name, shape.WithArticle(string(v.Type)), shape.WithArticle(jsontext.TypeName(context[name]))),
			}
		}
	}
	return checkContextBounds(s, context)
}

// instructionText returns a validate action as text.
func instructionText(a *phases.Action) string {
	switch {
	case a.Message != "":
		return a.Message
	case a.Target != "" && a.HasValue:
		return fmt.Sprintf("make sure that %s is %v", a.Target, a.Value)
	case a.Target != "":
		return "check: " + a.Target
	default:
		return "check the work so far"
	}
}
