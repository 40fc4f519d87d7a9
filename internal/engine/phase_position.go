package engine

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"github.com/guideway-dev/guideway/internal/workflow/expr"
	"github.com/guideway-dev/guideway/internal/workflow/phases"
	"github.com/guideway-dev/guideway/internal/workflow/template"
)

// PositionOf returns the position of the run. It contains only items that the run has
// reached. The state may result from any prefix of a run's events.
func (p *PhaseProgram) PositionOf(s State) Position {
	s = applyConsequences(p, s)
	pos := p.positionAt(s)
	pos.addRests(s)
	return pos
}

// positionAt returns the position of a run that has no pending consequences.
func (p *PhaseProgram) positionAt(s State) Position {
	if s.Ended != "" || !s.Started {
		return Position{Kind: PositionEnd}
	}
	ph := p.currentState(s)
	phase := p.phaseAt(ph)
	if phase == nil {
		return p.requiredVarsPosition(s)
	}
	var pos Position
	step := p.stepAt(ph)
	switch {
	case s.Gate != nil:
		pos = p.gatePosition(s, ph, phase)
	case step != nil && ph.Started && !ph.Done:
		pos = p.stepPosition(s, ph, phase, step)
	case len(p.instructions(ph)) > 0:
		pos = p.assertPosition(ph, phase)
	default:
		pos = p.waitPosition(s, ph, phase)
	}
	pos.Tools = phase.Tools.Within(nil)
	if ph.Part == PartLoops && ph.Index < len(phase.Loops) {
		pos.Tools = phase.Loops[ph.Index].Tools.Within(pos.Tools)
	}
	if step != nil {
		pos.Tools = step.Tools.Within(pos.Tools)
	}
	pos.Phase = &PhasePosition{ID: phase.ID, Number: ph.Phase, Of: len(p.Workflow.Phases)}
	if p.isPhaseStart(ph, phase) {
		pos.Phase.Title = phase.Name
	}
	return pos
}

// isPhaseStart reports whether this is the first position of the phase. Texts that apply to
// the whole phase are shown only there.
func (p *PhaseProgram) isPhaseStart(ph PhaseState, phase *phases.Phase) bool {
	switch ph.Part {
	case PartEntry:
		return true
	case PartSteps:
		return ph.Index == 0
	case PartLoops:
		return len(phase.Steps) == 0 && ph.Index == 0 && (ph.Loop == nil || ph.Loop.Round <= 1 && ph.Loop.Step == 0)
	case PartCheckpoints:
		return len(phase.Steps) == 0 && len(phase.Loops) == 0 && ph.Index == 0
	default:
		return false
	}
}

func (p *PhaseProgram) stepPosition(s State, ph PhaseState, phase *phases.Phase, step *phases.Step) Position {
	var b strings.Builder
	pos := Position{Kind: PositionStep, ID: step.ID, Title: step.Name}
	first := p.isPhaseStart(ph, phase)
	if first && phase.Description != "" {
		b.WriteString(phase.Description + "\n\n")
	}
	if first {
		pos.writeGuide(&b, phase.Guide, nil)
	}
	b.WriteString(cmp.Or(step.Description, step.Name) + "\n")
	pos.writeGuide(&b, step.Guide, phase.Guide)
	if ph.Loop != nil {
		pos.writeLoop(&b, &phase.Loops[ph.Index], ph.Loop)
	}
	for i := range step.Actions {
		if a := &step.Actions[i]; a.Action == phases.ActionValidate && !p.isVariable(a.Target) {
			pos.NeedsNotes = true
			pos.Criteria = append(pos.Criteria, "Describe in notes: "+instructionText(a))
		} else if a.Action == phases.ActionValidate {
			pos.Criteria = append(pos.Criteria, "In context: "+instructionText(a))
			if !p.ownsPath(a.Target) && !a.Holds(p.lookupVars(s)) {
				pos.Sets = append(pos.Sets, p.validateNeed(a))
			}
		}
	}
	vars := withoutNull(p.lookupVars(s))
	for _, line := range step.Criteria.Describe() {
		pos.Criteria = append(pos.Criteria, template.Render(template.Parse(line), vars))
	}
	pos.addChecks(step.Criteria, p.lookupVars(s), p.canSet)
	p.describeNeeds(pos.Sets)
	_, skippable := p.skippedTarget(s, phase)
	skippable = skippable && !phase.Required
	if step.Required && !skippable && p.refusesStep(s, step) {
		pos.DeadEnd = true
		pos.Message = "No call can complete this step: the step checks a variable that only the workflow sets. Fork the run at an earlier event, or abort it."
	}
	if !step.Required {
		b.WriteString("\nThe step is optional: skip it with a reason, if it does not apply.\n")
	} else if skippable {
		b.WriteString("\nThe phase is optional: skip the rest of it with a reason, if it does not apply.\n")
	}
	if s.Steps == 0 {
		pos.MetaGuidance = p.Workflow.Rules
	}
	pos.Prompt = strings.TrimRight(b.String(), "\n")
	return pos
}

// writeLoop adds the current round of a loop to the position, and describes its item.
func (pos *Position) writeLoop(b *strings.Builder, loop *phases.Loop, current *PhaseLoop) {
	pos.Loop = &LoopPosition{ID: loop.ID, Title: loop.Name, Round: current.Round}
	if loop.Type != phases.LoopForEach {
		return
	}
	pos.Loop.Rounds = min(len(current.Items), loop.MaxIterations)
	pos.Loop.Item = roundValue(loop, current)
	if len(current.Items) > loop.MaxIterations {
		fmt.Fprintf(b, "\nThe list has %d items, and the loop ends after %d of them (maxIterations).\n", len(current.Items), loop.MaxIterations)
	}
	if loop.Variable == "" {
		return
	}
	if text, err := json.Marshal(pos.Loop.Item); err == nil {
		fmt.Fprintf(b, "\nThis round is about %s: %s\n", loop.Variable, text)
	}
}

// refusesStep reports whether a validate action of a step refuses every call, because only
// the workflow sets its variable.
func (p *PhaseProgram) refusesStep(s State, step *phases.Step) bool {
	for i := range step.Actions {
		a := &step.Actions[i]
		switch {
		case a.Action == phases.ActionSet:
			s.Vars = mergeVars(s.Vars, phases.SetPath(s.Vars, a.Target, a.Value))
		case a.Action == phases.ActionValidate && p.ownsPath(a.Target) && !a.Holds(p.lookupVars(s)):
			return true
		}
	}
	return false
}

// writeGuide writes a reference to a guide. If the phase has already named the guide, it
// writes only the section, and nothing if the section is the same too.
func (pos *Position) writeGuide(b *strings.Builder, g, known *phases.Guide) {
	switch {
	case g == nil, known != nil && *g == *known:
		return
	case known != nil && g.Path == known.Path && g.Section != "":
		fmt.Fprintf(b, "Guide: section %q", g.Section)
	case g.Section != "":
		fmt.Fprintf(b, "Guide: %s, section %q", g.Path, g.Section)
	default:
		fmt.Fprintf(b, "Guide: %s", g.Path)
	}
	if g.Title != "" {
		fmt.Fprintf(b, " (%s)", g.Title)
	}
	b.WriteString("\n")
	if !strings.Contains(g.Path, "://") {
		pos.Guides = append(pos.Guides, GuideText{Path: g.Path, Section: g.Section})
	}
}

// assertPosition asks for a note on actions that only the caller can judge.
func (p *PhaseProgram) assertPosition(ph PhaseState, phase *phases.Phase) Position {
	verb := "Enter"
	if ph.Part == PartExit {
		verb = "Leave"
	}
	pos := Position{
		Kind: PositionStep, ID: phase.ID, Title: verb + " " + phase.Name,
		Prompt: "Check the following, and describe the results in notes.",
	}
	for _, a := range p.instructions(ph) {
		pos.Criteria = append(pos.Criteria, instructionText(&a))
	}
	return pos
}

func (p *PhaseProgram) gatePosition(s State, ph PhaseState, phase *phases.Phase) Position {
	pos := Position{Kind: PositionGate, ID: s.Gate.Step, Options: p.gateOptions(ph), Person: s.Gate.Person, Approval: s.Gate.Approval, Votes: s.Gate.Votes}
	if ph.Part == PartDecisions {
		pos.Branches = true
		d := &phase.Decisions[ph.Index]
		pos.Title, pos.Message = d.Name, cmp.Or(d.Description, "No condition decides which branch applies. Choose one.")
		return pos
	}
	c := &phase.Checkpoints[ph.Index]
	pos.Title, pos.Message, pos.Declinable = c.Name, c.Message, !c.Required
	var b strings.Builder
	if c.Prerequisite != "" {
		fmt.Fprintf(&b, "Before you ask: %s\n", c.Prerequisite)
	}
	if c.Guide != nil {
		pos.writeGuide(&b, c.Guide, phase.Guide)
	}
	pos.Prompt = strings.TrimSpace(b.String())
	return pos
}

// gateOptions returns the options of the open gate.
func (p *PhaseProgram) gateOptions(ph PhaseState) []Option {
	var options []Option
	if ph.Part == PartDecisions {
		for _, b := range p.offeredBranches(ph) {
			options = append(options, Option{ID: b.ID, Label: b.Label})
		}
		return options
	}
	for _, o := range p.phaseAt(ph).Checkpoints[ph.Index].Options {
		options = append(options, Option{ID: o.ID, Label: o.Label, Description: o.Description})
	}
	return options
}

// requiredVarsPosition returns the position of a run that waits for its required variables.
func (p *PhaseProgram) requiredVarsPosition(s State) Position {
	pos := Position{Kind: PositionContext, ID: p.Workflow.ID, Title: p.Workflow.Title, Message: "The workflow cannot start without these variables."}
	for _, name := range p.missingVars(s) {
		pos.Needs = append(pos.Needs, Need{Variable: name})
	}
	p.describeNeeds(pos.Needs)
	return pos
}

// waitPosition returns the position of a run that waits for variables, with the reason.
func (p *PhaseProgram) waitPosition(s State, ph PhaseState, phase *phases.Phase) Position {
	pos := Position{Kind: PositionContext, ID: phase.ID, Title: phase.Name}
	vars := p.lookupVars(s)
	decisions, transitions, noWay, fix := phase.Decisions, phase.Transitions, false, ""
	switch {
	case p.failingValidate(s) != nil:
		a := p.failingValidate(s)
		pos.Message = instructionText(a)
		need := p.validateNeed(a)
		if value, found, _ := vars.Path(a.Target); found {
			need.Found = describeFound(value)
		}
		pos.Needs = []Need{need}
	case ph.Part == PartLoops:
		loop := &phase.Loops[ph.Index]
		pos.ID, pos.Title = loop.ID, loop.Name
		if ph.Loop == nil {
			_, pos.Message = p.loopItems(s, loop)
			pos.Needs = []Need{{Variable: loop.Over, Type: string(phases.TypeArray)}}
			break
		}
		pos.Message = fmt.Sprintf("Whether '%s' continues depends on variables that are not set.", loop.Name)
		pos.Needs = toNeeds(loop.Condition.Needs(p.conditionVars(s, ph, loop)))
	case ph.Part == PartDecisions:
		d := &phase.Decisions[ph.Index]
		pos.ID, pos.Title = d.ID, d.Name
		pos.Message = fmt.Sprintf("The decision '%s' depends on variables that are not set.", d.Name)
		for i := range d.Branches {
			pos.addNeeds(d.Branches[i].Condition, vars)
		}
		if noWay = len(pos.Needs) == 0; noWay {
			pos.Message = fmt.Sprintf("No branch of '%s' applies to the values of the variables that its decisions read.", phase.Name)
			fix = noWayText
			pos.Needs = p.decidingVars(s, phase)
		}
	case ph.Part == PartTransitions:
		decisions = nil // The decisions have been taken.
		pos.Message = fmt.Sprintf("The phase after '%s' depends on variables that are not set.", phase.Name)
		for i := range phase.Transitions {
			pos.addNeeds(phase.Transitions[i].Condition, vars)
		}
		if noWay = len(pos.Needs) == 0; noWay {
			pos.Message = fmt.Sprintf("No transition of '%s' applies to the values of the variables that its transitions read.", phase.Name)
			fix = noWayText
			for i := range phase.Transitions {
				pos.addReads(phase.Transitions[i].Condition)
			}
		}
	case ph.Part == PartLeft && ph.Passed <= 2*len(p.Workflow.Phases):
		skipped := &p.Workflow.Phases[ph.To-1]
		pos.Message = fmt.Sprintf("'%s' is skipped, but the phase after it is not decided yet.", skipped.Name)
		pos.Needs = p.decidingVars(s, skipped)
		decisions, transitions, noWay = skipped.Decisions, skipped.Transitions, true
	default:
		pos.Message = "The transitions form a cycle of phases that are all skipped."
		fix = "Change the variables that decide the transitions, or abort the run."
		pos.Needs = p.allDecidingVars()
	}
	p.describeNeeds(pos.Needs)
	if noWay && !p.canLeave(s, decisions, transitions) || !slices.ContainsFunc(pos.Needs, func(n Need) bool { return p.canSet(n.Variable) }) {
		pos.DeadEnd = true
		fix = "No call can continue from here: fork the run at an earlier event, or abort it."
	}
	if fix != "" {
		pos.Message = strings.TrimRight(pos.Message, ".") + ". " + fix
	}
	return pos
}

// canLeave reports whether a caller can set variables so that a branch or a transition
// applies.
func (p *PhaseProgram) canLeave(s State, decisions []phases.Decision, transitions []phases.Transition) bool {
	var exits []*expr.Expr
	for i := range decisions {
		for _, b := range decisions[i].Branches {
			exits = append(exits, b.Condition)
		}
	}
	for _, t := range transitions {
		exits = append(exits, t.Condition)
	}
	return slices.ContainsFunc(exits, func(e *expr.Expr) bool { return e == nil || p.Workflow.CanHold(e, s.Vars) })
}

// noWayText explains how to continue if the definition has no transition for the values of
// the variables.
const noWayText = "The workflow defines no next phase for these values: if a fact has changed, set its variable; otherwise ask the user, fork the run, or abort it."

// describeNeeds adds the description and the type of each variable from its declaration.
func (p *PhaseProgram) describeNeeds(needs []Need) {
	for i := range needs {
		n := &needs[i]
		if v := p.Workflow.Variable(n.Variable); v != nil {
			n.Description, n.Type = v.Description, string(v.Type)
		}
		n.settle()
	}
}

// validateNeed returns the variable that a validate action requires.
func (p *PhaseProgram) validateNeed(a *phases.Action) Need {
	need := Need{Variable: a.Target}
	if _, isBool := a.Value.(bool); a.HasValue && isBool {
		need.Allowed = []any{true, false}
	} else if a.HasValue {
		need.Type, need.Compared = jsontext.TypeName(a.Value), []any{a.Value}
	}
	return need
}

// ownsPath reports whether only the engine sets the variable at the root of a path.
func (p *PhaseProgram) ownsPath(path string) bool {
	name, _, _ := strings.Cut(path, ".")
	return slices.Contains(p.owned, name)
}

// canSet reports whether a caller can set the variable at a path. A caller cannot set an
// engine variable or a member of a declared scalar.
func (p *PhaseProgram) canSet(path string) bool {
	if p.ownsPath(path) {
		return false
	}
	v := p.Workflow.Variable(expr.Root(path))
	return v == nil || v.Name == path || v.Type == phases.TypeObject || v.Type == phases.TypeArray
}

// decidingVars returns the variables that decide which phase follows the given one.
func (p *PhaseProgram) decidingVars(s State, phase *phases.Phase) []Need {
	var pos Position
	vars := p.hideUnsetOwned(expr.Map(s.Vars))
	for i := range phase.Decisions {
		for _, b := range phase.Decisions[i].Branches {
			pos.addNeeds(b.Condition, vars)
			pos.addReads(b.Condition)
		}
	}
	for _, t := range phase.Transitions {
		pos.addNeeds(t.Condition, vars)
		pos.addReads(t.Condition)
	}
	return pos.Needs
}

// allDecidingVars returns the variables that decide any branch or transition of the
// workflow.
func (p *PhaseProgram) allDecidingVars() []Need {
	var pos Position
	for i := range p.Workflow.Phases {
		for _, n := range p.decidingVars(State{}, &p.Workflow.Phases[i]) {
			pos.addNeed(n)
		}
	}
	return pos.Needs
}

// addNeeds adds the variables that an undecided condition waits for.
func (pos *Position) addNeeds(c *expr.Expr, vars expr.Lookup) {
	if c == nil || c.Decide(vars) != expr.Unknown {
		return
	}
	for _, n := range toNeeds(c.Needs(vars)) {
		pos.addNeed(n)
	}
}

// addReads adds the variables that a condition reads.
func (pos *Position) addReads(c *expr.Expr) {
	if c == nil {
		return
	}
	for _, name := range c.Variables() {
		pos.addNeed(Need{Variable: name, Tests: []string{c.String()}})
	}
}

func (pos *Position) addNeed(n Need) {
	for i := range pos.Needs {
		if old := &pos.Needs[i]; old.Variable == n.Variable {
			for _, v := range n.Allowed {
				if !slices.ContainsFunc(old.Allowed, func(have any) bool { return jsontext.Equal(have, v) }) {
					old.Allowed = append(old.Allowed, v)
				}
			}
			for _, text := range n.Tests {
				if !slices.Contains(old.Tests, text) && len(old.Allowed) == 0 {
					old.Tests = append(old.Tests, text)
				}
			}
			return
		}
	}
	pos.Needs = append(pos.Needs, n)
}

// toNeeds converts the needs of a condition to those of a position.
func toNeeds(needs []expr.Need) []Need {
	out := make([]Need, len(needs))
	for i, n := range needs {
		out[i] = Need{Variable: n.Variable, Allowed: n.Allowed}
		if len(n.Allowed) == 0 {
			out[i].Tests = n.Tests
		}
	}
	return out
}

// singleValue returns the value of a list of length one, or nil.
func singleValue(values []any) any {
	if len(values) != 1 {
		return nil
	}
	return values[0]
}
