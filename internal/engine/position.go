package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/workflow/expr"
	"github.com/guideway-dev/guideway/internal/workflow/steps"
	"github.com/guideway-dev/guideway/internal/workflow/toolpolicy"
)

// PositionKind is the kind of input that a run asks for.
type PositionKind string

// The kinds of positions.
const (
	// PositionStep asks for a step's output.
	PositionStep PositionKind = "step"
	// PositionGate asks for an answer.
	PositionGate PositionKind = "gate"
	// PositionContext asks for variables.
	PositionContext PositionKind = "context"
	// PositionEnd asks for nothing.
	PositionEnd PositionKind = "end"
)

// Position is the input that a run asks for now.
type Position struct {
	Kind   PositionKind `json:"kind"`
	ID     string       `json:"id,omitempty"`
	Title  string       `json:"title,omitempty"`
	Prompt string       `json:"prompt,omitempty"`
	// Guides are the guides in the workflow's directory that the prompt names.
	Guides []GuideText `json:"guides,omitempty"`
	// NeedsNotes is set if the step requires notes.
	NeedsNotes bool `json:"needsNotes,omitempty"`
	// Criteria describe the requirements for output, notes and context.
	Criteria []string `json:"criteria,omitempty"`
	// Checks are the checks among the criteria; Criteria describes them, too.
	Checks []CheckInfo `json:"checks,omitempty"`
	// Checked are the indexes of the criteria that contain checks, in increasing order. The
	// other criteria are about what the agent claims.
	Checked []int `json:"checkedCriteria,omitempty"`
	// MetaGuidance applies to the whole run; it is included until the first step is done.
	MetaGuidance []string `json:"metaGuidance,omitempty"`
	// Functions are the function definitions that the step refers to, Calls its calls.
	Functions []steps.Function     `json:"functionDefinitions,omitempty"`
	Calls     []steps.FunctionCall `json:"functionCalls,omitempty"`
	// AskForFiles hints that the step needs files of the user.
	AskForFiles bool `json:"askForFiles,omitempty"`
	// Loop is the loop and the round that the step belongs to.
	Loop *LoopPosition `json:"loop,omitempty"`
	// Tools restricts the tools of the agent at this position; nil restricts none.
	Tools *toolpolicy.Policy `json:"tools,omitempty"`
	// Message is the question of a gate, the reason why a run waits, or the note of the
	// person who sent a step back. It also reports loops that maxIterations ended early.
	Message string   `json:"message,omitempty"`
	Options []Option `json:"options,omitempty"`
	// Declinable is set if the gate can be declined.
	Declinable bool `json:"declinable,omitempty"`
	// Person is set if the gate requires human approval.
	Person bool `json:"person,omitempty"`
	// Approval names the persons that the gate needs, if not one approver. Votes are the
	// answers of persons so far.
	Approval *guideway.Approval `json:"approval,omitempty"`
	Votes    []Vote             `json:"votes,omitempty"`
	// Branches is set if the options of a gate are branches that the caller decides.
	Branches bool `json:"-"`
	// Phase is the phase of the position in a phase workflow.
	Phase *PhasePosition `json:"phase,omitempty"`
	// Needs are the variables that a waiting run needs.
	Needs []Need `json:"needs,omitempty"`
	// DeadEnd is set if no input continues the run: it can be forked at an earlier event,
	// or aborted.
	DeadEnd bool `json:"deadEnd,omitempty"`
	// Sets are the variables that the step's next call must set; Criteria describes them in
	// words.
	Sets []Need `json:"-"`
}

// PhasePosition is a phase of a workflow.
type PhasePosition struct {
	ID string `json:"id"`
	// Title is set at the first position of a phase.
	Title string `json:"title,omitempty"`
	// Number is 1-based, in the order of the document; Of is the number of phases.
	Number int `json:"number"`
	Of     int `json:"of"`
}

// GuideText is a guide that a position names.
type GuideText struct {
	Path    string `json:"path"`
	Section string `json:"section,omitempty"`
	// Text is the section, or the whole guide. The server fills it in when it serves the
	// position, because guides are not part of a definition: it is the current text of the
	// library, even if the run has a pinned definition.
	Text string `json:"text,omitempty"`
}

// LoopPosition is a place in a loop.
type LoopPosition struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	// Round is 1-based; Rounds is 0 if the number of rounds is unknown.
	Round  int `json:"round"`
	Rounds int `json:"rounds,omitempty"`
	// Item is the current item of a forEach loop of a phase workflow; a step workflow
	// writes it into the prompt.
	Item any `json:"item,omitempty"`
}

// Option is a possible answer to a gate.
type Option struct {
	ID          string `json:"id"`
	Label       string `json:"label"`
	Description string `json:"description,omitempty"`
}

// Need is a variable that a run waits for, or that a step's next call must set.
type Need struct {
	Variable string `json:"variable"`
	// Description describes the variable, if a description is known. Type is its JSON type;
	// it is empty if the type is unknown or string.
	Description string `json:"description,omitempty"`
	Type        string `json:"type,omitempty"`
	// Allowed are the values that conditions compare the variable with, if there are
	// several.
	Allowed []any `json:"allowed,omitempty"`
	// Exhaustive is set if no other value than the allowed ones is meaningful.
	Exhaustive bool `json:"-"`
	// Tests are the comparisons that wait for the variable, as text, if it has neither a
	// description nor allowed values.
	Tests []string `json:"tests,omitempty"`
	// Found describes the current value if it is wrong.
	Found string `json:"found,omitempty"`
	// Compared are the values that conditions compare the variable with, also a single one.
	Compared []any `json:"-"`
}

// settle replaces a single allowed value by a test, because it would look like the expected
// answer. A boolean allows both values.
func (n *Need) settle() {
	n.Compared = append(n.Compared, n.Allowed...)
	if b, ok := singleValue(n.Allowed).(bool); ok {
		n.Allowed = []any{b, !b}
	}
	isBool := func(v any) bool { _, ok := v.(bool); return ok }
	switch {
	case len(n.Allowed) == 1:
		n.Tests, n.Allowed = append(n.Tests, "compared with "+describeValue(n.Allowed[0])), nil
	case len(n.Allowed) > 1 && !slices.ContainsFunc(n.Allowed, func(v any) bool { return !isBool(v) }):
		n.Allowed, n.Exhaustive, n.Type = []any{true, false}, true, "boolean"
	}
	if n.Description != "" || len(n.Allowed) > 0 {
		n.Tests = nil
	}
	if n.Type == "string" {
		n.Type = ""
	}
}

// Status returns the status of a run.
func (p *Program) Status(s State) Status {
	if s.Ended != "" {
		return s.Ended
	}
	switch p.PositionOf(s).Kind {
	case PositionGate, PositionContext:
		return StatusWaiting
	default:
		return StatusRunning
	}
}

// PositionOf returns the position of the run. It contains only the step that the run has
// reached. The state may be any prefix of a run's events.
func (p *Program) PositionOf(s State) Position {
	s = applyConsequences(p, s)
	pos := p.positionAt(s)
	pos.Tools = p.toolsAt(s, pos.ID)
	pos.addRests(s)
	return pos
}

// toolsAt returns the policy of the step or loop with an ID, within the policy of the loop
// that runs.
func (p *Program) toolsAt(s State, id string) *toolpolicy.Policy {
	step := p.byID[id]
	if step == nil {
		return nil
	}
	if s.Frame == nil || step.Loop != nil {
		return step.Tools.Within(nil)
	}
	return step.Tools.Within(p.items[s.Cursor].step.Tools)
}

// positionAt returns the position of a run that has no pending consequences.
func (p *Program) positionAt(s State) Position {
	switch {
	case s.Ended != "" || !s.Started:
		return Position{Kind: PositionEnd}
	case s.Gate != nil:
		return p.gatePosition(s)
	}
	step := p.currentStep(s)
	if step == nil {
		return p.loopWaitPosition(s)
	}
	vars := p.currentVars(s)
	if p.stepVerdict(s, step) == expr.Unknown {
		return p.waitPosition(s, step, step.RunCondition.Needs(vars))
	}
	return p.stepPosition(s, step)
}

// addRests reports the loops that ended after the last step without running all their
// rounds, and at the end of the run all such loops.
func (pos *Position) addRests(s State) {
	var texts []string
	for _, r := range s.Rest {
		if r.Steps == s.Steps || s.Ended == StatusCompleted {
			texts = append(texts, fmt.Sprintf("Loop '%s' ended after round %d of %d because of maxIterations. Rounds left out: %d.", r.Loop, r.Done, r.Rounds, r.Rounds-r.Done))
		}
	}
	if len(texts) > 0 {
		pos.Message = strings.TrimSpace(pos.Message + "\n" + strings.Join(texts, " "))
	}
}

// newStepText returns the text builder for a step or loop at the state.
func (p *Program) newStepText(s State, step *steps.Step) *stepText {
	sc := &stepText{program: p, step: step, vars: p.textVars(s)}
	if s.Frame != nil && s.Frame.Round > 0 {
		sc.enterRound(p.items[s.Cursor], s.Frame.Round, s.Frame.List)
	}
	return sc
}

func (p *Program) stepPosition(s State, step *steps.Step) Position {
	sc := p.newStepText(s, step)
	sc.startsRound = sc.loop != nil && s.Frame.Worked == 0
	pos := Position{
		Kind: PositionStep, ID: step.ID, Title: sc.fillText(step.Title),
		Prompt: sc.buildPrompt(), Criteria: sc.fillAll(step.Criteria.Describe()),
		Functions: sc.listFunctions(), Calls: step.Calls, AskForFiles: step.AskForFiles,
	}
	if s.Steps == 0 {
		pos.MetaGuidance = p.Workflow.MetaGuidance
	}
	if s.Revise != "" {
		pos.Message = "The person sent this step back: " + s.Revise
	}
	if sc.loop != nil {
		pos.Loop = sc.loopPosition(s.Frame)
	}
	pos.addChecks(step.Criteria, p.currentVars(s), func(path string) bool { return !p.isServerVar(expr.Root(path)) })
	return pos
}

func (s *stepText) loopPosition(f *Frame) *LoopPosition {
	loop := s.loop.step
	pos := &LoopPosition{ID: loop.ID, Title: s.fillText(loop.Title), Round: f.Round}
	if f.Rounds >= 0 {
		pos.Rounds = min(f.Rounds, loop.Loop.MaxIterations)
	}
	return pos
}

func (p *Program) gatePosition(s State) Position {
	step := p.byID[s.Gate.Step]
	title := p.newStepText(s, step).fillText(step.Title)
	message := fmt.Sprintf("Confirm the result of '%s'.", title)
	if s.Gate.Before {
		message = fmt.Sprintf("Confirm that '%s' may begin.", title)
	}
	return Position{
		Kind: PositionGate, ID: s.Gate.Step, Title: title,
		Message: message, Options: gateOptions(s.Gate), Person: s.Gate.Person, Approval: s.Gate.Approval, Votes: s.Gate.Votes,
	}
}

func gateOptions(g *OpenGate) []Option {
	if g.Before {
		return []Option{
			{ID: OptionConfirm, Label: "Begin"},
			{ID: OptionSkip, Label: "Skip", Description: "The loop does not run."},
		}
	}
	return []Option{
		{ID: OptionConfirm, Label: "Confirm", Description: "The run continues."},
		{ID: OptionRevise, Label: "Revise", Description: "The step is repeated."},
	}
}

// loopWaitPosition returns the position of a loop that waits for variables.
func (p *Program) loopWaitPosition(s State) Position {
	step := p.items[s.Cursor].step
	l, vars := step.Loop, p.currentVars(s)
	if s.Frame != nil {
		return p.waitPosition(s, step, l.Condition.Needs(p.varsInRound(s, s.Frame.Round+1)))
	}
	if step.RunCondition.Decide(vars) == expr.Unknown {
		return p.waitPosition(s, step, step.RunCondition.Needs(vars))
	}
	pos := p.waitPosition(s, step, nil)
	need := Need{Variable: boundsVar(l), Type: "number", Description: "the number of rounds"}
	if l.Type == steps.LoopForEach {
		need.Type, need.Description = "array", "the list of items"
	}
	if v, found, _ := vars.Path(need.Variable); found {
		need.Found = describeFound(v)
	}
	pos.Needs = []Need{need}
	pos.Message = resolveBounds(l, vars).reason
	return pos
}

func (p *Program) waitPosition(s State, step *steps.Step, needs []expr.Need) Position {
	title := p.newStepText(s, step).fillText(step.Title)
	pos := Position{
		Kind: PositionContext, ID: step.ID, Title: title,
		Message: fmt.Sprintf("Whether '%s' applies depends on variables that are not set.", title),
	}
	pos.Needs = toNeeds(needs)
	for i := range pos.Needs {
		p.addOtherLiterals(&pos.Needs[i])
		pos.Needs[i].settle()
	}
	return pos
}

// describeFound returns a value as text for a message, or only the name of its type if the
// text is long.
func describeFound(v any) string {
	const longest = 40
	if text := formatValue(v); len(text) <= longest {
		return text
	}
	return typeName(v)
}

// addOtherLiterals adds the values that other conditions of the workflow compare the
// variable with. A single value would look like the only valid one.
func (p *Program) addOtherLiterals(n *Need) {
	if len(n.Allowed) == 0 {
		return
	}
	for i := range p.Workflow.Steps {
		for _, c := range conditionsOf(&p.Workflow.Steps[i]) {
			n.Allowed = c.Literals(n.Variable, n.Allowed)
		}
	}
}

// conditionsOf returns the conditions of a step, including those of a loop and its body.
func conditionsOf(step *steps.Step) []*expr.Expr {
	all := []*expr.Expr{step.RunCondition, step.Confirm}
	if step.Loop == nil {
		return all
	}
	all = append(all, step.Loop.Condition)
	for i := range step.Loop.Body {
		all = append(all, conditionsOf(&step.Loop.Body[i])...)
	}
	return all
}
