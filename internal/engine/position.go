package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway/internal/workflow/expr"
	"github.com/guideway-dev/guideway/internal/workflow/steps"
)

// PositionKind is the kind of input that a run asks for.
type PositionKind string

// The kinds of positions.
const (
	// PositionStep asks for a step's output.
	PositionStep PositionKind = "step"
	// PositionGate asks for an answer.
	PositionGate PositionKind = "gate"
	// PositionContext asks for variables that a condition or a loop reads.
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
	// Criteria describe the requirements for the output.
	Criteria []string `json:"criteria,omitempty"`
	// MetaGuidance applies to the whole run; it is included until the first step is done.
	MetaGuidance []string `json:"metaGuidance,omitempty"`
	// Functions are the function definitions that the step refers to, Calls its calls.
	Functions []steps.Function     `json:"functionDefinitions,omitempty"`
	Calls     []steps.FunctionCall `json:"functionCalls,omitempty"`
	// AskForFiles hints that the step needs files of the user.
	AskForFiles bool `json:"askForFiles,omitempty"`
	// Loop is the loop and the round that the step belongs to.
	Loop *LoopPosition `json:"loop,omitempty"`
	// Message is the question of a gate, the reason why a run waits, or the note of the
	// person who sent a step back.
	Message string   `json:"message,omitempty"`
	Options []Option `json:"options,omitempty"`
	// Declinable is set if the gate can be declined.
	Declinable bool `json:"declinable,omitempty"`
	// Person is set if the gate requires human approval.
	Person bool `json:"person,omitempty"`
	// Phase is the phase of the position in a phase workflow.
	Phase *PhasePosition `json:"phase,omitempty"`
	// Needs are the variables that a waiting run needs.
	Needs []Need `json:"needs,omitempty"`
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

// Need is a variable that a run waits for.
type Need struct {
	Variable string `json:"variable"`
	// Allowed are values that decide the condition; empty if any value does.
	Allowed []any `json:"allowed,omitempty"`
	// Tests are the comparisons that wait for the variable, as text, if no specific value
	// is known.
	Tests []string `json:"tests,omitempty"`
	// Found is the type of the current value if that type is wrong.
	Found string `json:"found,omitempty"`
	// Example is a value that the run would accept, for the next call; nil if none is
	// known.
	Example any `json:"-"`
}

// Values returns a context with an acceptable value for each need: the first allowed value,
// the example, or a placeholder, which also replaces a choice among several strings. A
// dotted path becomes nested objects.
func Values(needs []Need) map[string]any {
	values := map[string]any{}
	for _, n := range needs {
		var value any = "..."
		switch {
		case len(n.Allowed) > 1 && allStrings(n.Allowed): // the caller must choose
		case len(n.Allowed) > 0:
			value = n.Allowed[0]
		case n.Example != nil:
			value = n.Example
		}
		in := values
		name, rest, nested := strings.Cut(n.Variable, ".")
		for ; nested; name, rest, nested = strings.Cut(rest, ".") {
			inner, ok := in[name].(map[string]any)
			if !ok {
				inner = map[string]any{}
				in[name] = inner
			}
			in = inner
		}
		in[name] = value
	}
	return values
}

func allStrings(values []any) bool {
	return !slices.ContainsFunc(values, func(v any) bool { _, text := v.(string); return !text })
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

// PositionOf returns the position of the run. It shows only the step that the run has
// reached. The state may be any prefix of a run's events.
func (p *Program) PositionOf(s State) Position {
	s = applyConsequences(p, s)
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
		Message: message, Options: gateOptions(s.Gate), Person: s.Gate.Person,
	}
}

func gateOptions(g *OpenGate) []Option {
	if g.Before {
		return []Option{
			{ID: OptionConfirm, Label: "Begin"},
			{ID: OptionSkip, Label: "Pass over", Description: "The loop does not run."},
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
	need := Need{Variable: boundsVar(l), Example: 1}
	if l.Type == steps.LoopForEach {
		need.Example = []any{"..."}
	}
	if v, ok := vars(need.Variable); ok {
		need.Found = typeName(v)
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
	}
	return pos
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
