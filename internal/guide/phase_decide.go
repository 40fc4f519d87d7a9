package guide

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway/internal/definition/phases"
)

// The rules that a command on a phase workflow can break besides the others.
const (
	// RuleVariableType is a variable of another type than declared.
	RuleVariableType = "variable-type"
	// RuleValidate is a validate action that does not hold.
	RuleValidate = "validate-failed"
	// RuleNoteMissing is a move without the note on what was checked.
	RuleNoteMissing = "note-missing"
)

// Decide gives the events of a legal command, as Program.Decide does.
func (p *PhaseProgram) Decide(s State, c Command) ([]Event, *Refusal) {
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

func (p *PhaseProgram) decideStart(s State, c *Start) ([]Event, *Refusal) {
	if s.Started {
		return nil, &Refusal{Rule: RuleStarted, Message: "the run has started already"}
	}
	if r := p.checkContext(s, c.Context); r != nil {
		return nil, r
	}
	vars := map[string]any{}
	for _, v := range p.Workflow.Variables {
		if v.HasDefault {
			vars[v.Name] = v.DefaultValue
		}
	}
	maps.Copy(vars, c.Context)
	return p.settle(s, Event{Kind: EventRunStarted, Vars: vars, Person: c.Person}), nil
}

func (p *PhaseProgram) decideContinue(s State, c *Continue) ([]Event, *Refusal) {
	if at := p.PositionOf(s).ID; c.Step != "" && c.Step != at {
		return nil, &Refusal{Rule: RuleWrongStep, Given: c.Step, Allowed: at, Message: "the run is not at that step"}
	}
	if s.Gate != nil {
		return p.decideGate(s, c)
	}
	if c.Answer != nil {
		return nil, &Refusal{Rule: RuleNoGate, Message: "there is no gate to answer", Given: c.Answer.OptionID}
	}
	if r := p.checkContext(s, c.Context); r != nil {
		return nil, r
	}
	ph := p.at(s)
	step := p.step(ph)
	switch {
	case step != nil && ph.Started && !ph.Done && c.Skip != nil:
		return p.decideSkip(s, ph, step, c)
	case c.Skip != nil:
		return nil, &Refusal{Rule: RuleStepRequired, Message: "there is nothing here that can be skipped"}
	case step != nil && ph.Started && !ph.Done:
		return p.decideStep(s, ph, step, c)
	case len(p.instructions(ph)) > 0:
		return p.decideAssert(s, ph, c)
	default:
		return p.decideWait(s, c)
	}
}

// decideStep takes a step's output. Its validate actions are judged with the
// variables that come with it; those that only the caller can judge want a note.
func (p *PhaseProgram) decideStep(s State, ph PhaseState, step *phases.Step, c *Continue) ([]Event, *Refusal) {
	if blank(c.Output) && blank(c.Notes) {
		return nil, &Refusal{Rule: RuleOutputMissing, Message: "the step wants its output, or notes on what was done"}
	}
	e := Event{
		Kind: EventStepCompleted, Phase: ph.Phase, Item: p.stepNumber(ph), Step: step.ID,
		Output: c.Output, Notes: c.Notes, Vars: c.Context,
	}
	after := s
	after.Vars = merged(s.Vars, c.Context)
	if ph.Loop != nil {
		e.Round = ph.Loop.Round
	}
	for i := range step.Actions {
		a := &step.Actions[i]
		switch {
		case a.Action == phases.ActionSet: // what follows sees it
			after.Vars = merged(after.Vars, assign(after.Vars, a.Target, a.Value))
		case a.Action != phases.ActionValidate:
		case !p.isVariable(a.Target):
			if blank(c.Notes) {
				return nil, &Refusal{
					Rule: RuleNoteMissing, Allowed: instruction(a),
					Message: "the step is to be checked, and notes must say what was found",
				}
			}
		case !holds(a, p.vars(after)):
			return nil, p.invalid(a, p.vars(after))
		}
	}
	return p.settle(s, e), nil
}

// stepNumber is the 1-based number of the step at work, in its phase or loop.
func (p *PhaseProgram) stepNumber(ph PhaseState) int {
	if ph.Loop != nil {
		return ph.Loop.Step + 1
	}
	return ph.Index + 1
}

// invalid refuses a move that a validate action does not let pass.
func (p *PhaseProgram) invalid(a *phases.Action, vars func(string) (any, bool)) *Refusal {
	r := &Refusal{Rule: RuleValidate, Message: a.Message}
	if r.Message == "" {
		r.Message = instruction(a)
	}
	name, _, _ := strings.Cut(a.Target, ".")
	if value, ok := vars(name); ok {
		r.Given = map[string]any{name: value}
	}
	if a.HasValue {
		r.Allowed = map[string]any{a.Target: a.Value}
	}
	return r
}

// decideSkip declines an optional step, or what is left of an optional phase.
func (p *PhaseProgram) decideSkip(s State, ph PhaseState, step *phases.Step, c *Continue) ([]Event, *Refusal) {
	if !blank(c.Output) || !blank(c.Notes) || len(c.Context) > 0 {
		return nil, &Refusal{Rule: RuleStepRequired, Message: "what is skipped has no output, notes or context"}
	}
	phase := p.phase(ph)
	switch {
	case !step.Required:
		e := Event{Kind: EventStepSkipped, Phase: ph.Phase, Item: p.stepNumber(ph), Step: step.ID, Reason: c.Skip.Reason}
		if ph.Loop != nil {
			e.Round = ph.Loop.Round
		}
		return p.settle(s, e), nil
	case !phase.Required:
		to, ok := p.wayOn(s, phase)
		if !ok {
			return nil, &Refusal{Rule: RuleContextNeeded, Message: "where the phase leads is not decided yet, so that it cannot be skipped", Allowed: p.ways(s, phase)}
		}
		return p.settle(s, Event{Kind: EventPhaseSkipped, Phase: ph.Phase, Step: phase.ID, To: to, Reason: c.Skip.Reason}), nil
	default:
		return nil, &Refusal{Rule: RuleStepRequired, Message: "the step is required and cannot be skipped"}
	}
}

// decideAssert takes the note on what only the caller can judge.
func (p *PhaseProgram) decideAssert(s State, ph PhaseState, c *Continue) ([]Event, *Refusal) {
	if blank(c.Notes) && blank(c.Output) {
		return nil, &Refusal{Rule: RuleNoteMissing, Message: "notes must say what was found"}
	}
	e := Event{Kind: EventAsserted, Phase: ph.Phase, Part: ph.Part, Count: len(p.instructions(ph)), Notes: c.Notes, Vars: c.Context}
	if blank(c.Notes) {
		e.Notes = c.Output
	}
	return p.settle(s, e), nil
}

// decideWait takes the variables that a run waits for, and nothing else. Where
// it waits for a validate action, they must meet it.
func (p *PhaseProgram) decideWait(s State, c *Continue) ([]Event, *Refusal) {
	if len(c.Context) == 0 || !blank(c.Output) || !blank(c.Notes) {
		needs := p.PositionOf(s).Needs
		names := make([]string, len(needs))
		for i, n := range needs {
			names[i] = n.Variable
		}
		return nil, &Refusal{Rule: RuleContextNeeded, Allowed: needs, Message: "the run waits for variables: " + strings.Join(names, ", ")}
	}
	set := Event{Kind: EventContextSet, Vars: c.Context}
	after := Apply(s, set)
	if a := p.failing(after); a != nil {
		return nil, p.invalid(a, p.vars(after))
	}
	return p.settle(s, set), nil
}

// failing is the validate action of an entry or exit that stops the run, or nil.
func (p *PhaseProgram) failing(s State) *phases.Action {
	ph := p.at(s)
	phase := p.phase(ph)
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
	if a.Action != phases.ActionValidate || holds(a, p.vars(s)) {
		return nil
	}
	return a
}

// decideGate takes the answer to a checkpoint, or to a decision that offers its
// branches.
func (p *PhaseProgram) decideGate(s State, c *Continue) ([]Event, *Refusal) {
	ph := p.at(s)
	options := p.options(ph)
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
	if c.Answer.Decline && (ph.Part != PartCheckpoints || p.phase(ph).Checkpoints[ph.Index].Required) {
		return nil, &Refusal{Rule: RuleGateRequired, Allowed: ids, Message: "the gate must be answered and cannot be declined"}
	}
	if !c.Answer.Decline && !slices.Contains(ids, c.Answer.OptionID) {
		return nil, &Refusal{Rule: RuleUnknownOption, Given: c.Answer.OptionID, Allowed: ids, Message: "the gate has no such option"}
	}
	var e Event
	if ph.Part == PartCheckpoints {
		option := c.Answer.OptionID
		if c.Answer.Decline {
			option = ""
		}
		e, _ = p.checkpointAnswer(s, ph, option)
	} else {
		i := slices.IndexFunc(p.offered(ph), func(b phases.Branch) bool { return b.ID == c.Answer.OptionID })
		branch := p.offered(ph)[i]
		e = Event{Kind: EventBranchTaken, Option: branch.ID, To: p.numbers[branch.TransitionTo]}
	}
	e.Phase, e.Item, e.Step, e.Notes = ph.Phase, ph.Index+1, s.Gate.Step, c.Answer.Note
	return p.settle(s, e), nil
}

// checkpointAnswer is the event of an answer at the checkpoint that is at work,
// with its effects; an empty option declines.
func (p *PhaseProgram) checkpointAnswer(s State, ph PhaseState, option string) (Event, bool) {
	c := &p.phase(ph).Checkpoints[ph.Index]
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
		e.Vars = merged(e.Vars, assign(merged(s.Vars, e.Vars), set.Name, set.Value))
	}
	e.To = p.numbers[effect.TransitionTo]
	if e.To > 0 {
		e.Undone = p.undone(ph)
	}
	for _, id := range effect.SkipPhases {
		e.Skips = append(e.Skips, p.numbers[id])
	}
	slices.Sort(e.Skips)
	return e, true
}

// undone names what is left out where an answer leaves the phase at once.
func (p *PhaseProgram) undone(ph PhaseState) []string {
	var ids []string
	phase := p.phase(ph)
	for _, c := range phase.Checkpoints[ph.Index+1:] {
		ids = append(ids, c.ID)
	}
	for _, d := range phase.Decisions {
		ids = append(ids, d.ID)
	}
	return ids
}

// checkContext refuses variables that are the engine's, or of another type than
// declared, and a context that is too large.
func (p *PhaseProgram) checkContext(s State, context map[string]any) *Refusal {
	var owned []string
	for _, name := range slices.Sorted(maps.Keys(context)) {
		if slices.Contains(p.owned, name) {
			owned = append(owned, name)
		}
	}
	if len(owned) > 0 {
		return &Refusal{Rule: RuleServerVariable, Given: owned, Message: "only the server sets " + strings.Join(owned, ", ")}
	}
	for _, name := range slices.Sorted(maps.Keys(context)) {
		v := p.Workflow.Variable(name)
		if v != nil && context[name] != nil && !fitsType(v.Type, context[name]) {
			return &Refusal{
				Rule: RuleVariableType, Given: map[string]any{name: jsonType(context[name])}, Allowed: map[string]any{name: v.Type},
				Message: fmt.Sprintf("'%s' is %s", name, anyOf(string(v.Type))),
			}
		}
	}
	return boundedContext(s, context)
}

// instruction says a validate action in words.
func instruction(a *phases.Action) string {
	text := a.Message
	switch {
	case text != "":
	case a.Target != "" && a.HasValue:
		text = fmt.Sprintf("make sure that %s is %v", a.Target, a.Value)
	case a.Target != "":
		text = "make sure of: " + a.Target
	default:
		text = "make sure that all is well"
	}
	return text
}
