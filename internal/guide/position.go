package guide

import (
	"fmt"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway/internal/condition"
	"github.com/guideway-dev/guideway/internal/definition/steps"
)

// PositionKind is what a run asks for.
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

// Position is what a run asks for now.
type Position struct {
	Kind   PositionKind `json:"kind"`
	ID     string       `json:"id,omitempty"`
	Title  string       `json:"title,omitempty"`
	Prompt string       `json:"prompt,omitempty"`
	// Guides are those that the prompt names and that lie beside the workflow.
	Guides []GuideText `json:"guides,omitempty"`
	// NeedsNotes says that the step is not done without notes.
	NeedsNotes bool `json:"needsNotes,omitempty"`
	// Criteria say in words what the output must meet.
	Criteria []string `json:"criteria,omitempty"`
	// MetaGuidance holds throughout; it comes until the first step is done.
	MetaGuidance []string `json:"metaGuidance,omitempty"`
	// Functions are the definitions that the step refers to, Calls its calls.
	Functions []steps.Function     `json:"functionDefinitions,omitempty"`
	Calls     []steps.FunctionCall `json:"functionCalls,omitempty"`
	// AskForFiles hints that the step wants files of the user.
	AskForFiles bool `json:"askForFiles,omitempty"`
	// Loop says which round of which loop the step belongs to.
	Loop *LoopPosition `json:"loop,omitempty"`
	// Message is what a gate asks, why a run waits, or what the person said
	// who sent a step back.
	Message string   `json:"message,omitempty"`
	Options []Option `json:"options,omitempty"`
	// Declinable says that the gate takes decline in place of an option.
	Declinable bool `json:"declinable,omitempty"`
	// Person says that only a person can answer the gate.
	Person bool `json:"person,omitempty"`
	// Phase says which phase the position belongs to, in a phase workflow.
	Phase *PhasePosition `json:"phase,omitempty"`
	// Needs are the variables that a waiting run needs.
	Needs []Need `json:"needs,omitempty"`
	// Sets are the variables without which the step is not done, for the next
	// call: its criteria say in words what they are.
	Sets []Need `json:"-"`
}

// PhasePosition is a phase of a workflow.
type PhasePosition struct {
	ID string `json:"id"`
	// Title is told where the phase begins.
	Title string `json:"title,omitempty"`
	// Number is 1-based, in the order of the document; Of is how many there are.
	Number int `json:"number"`
	Of     int `json:"of"`
}

// GuideText is a guide that a position names.
type GuideText struct {
	Path    string `json:"path"`
	Section string `json:"section,omitempty"`
	// Text is its section, or all of it: for whoever serves the position to fill
	// in, because guides are not part of a definition. It is as the library has
	// it now, whatever is pinned.
	Text string `json:"text,omitempty"`
}

// LoopPosition is a place in a loop.
type LoopPosition struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	// Round is 1-based; Rounds is 0 where nobody knows how many there will be.
	Round  int `json:"round"`
	Rounds int `json:"rounds,omitempty"`
	// Item is what the round is about, in a loop over a list of a phase
	// workflow; a step workflow writes it into the prompt.
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
	// Allowed are values that would decide; none where any value will do.
	Allowed []any `json:"allowed,omitempty"`
	// Tests are the comparisons that wait for it, in words, where no value
	// is named.
	Tests []string `json:"tests,omitempty"`
	// Found says what stands there where it is of the wrong kind.
	Found string `json:"found,omitempty"`
	// Example is a value that the run would take, for the next call; nil where
	// none is known.
	Example any `json:"-"`
}

// Values are a context that gives each of some needs a value that the run would
// take: the first that is allowed, the example, or dots to be filled in, also where
// there are several texts to choose from. A path becomes objects within each other.
func Values(needs []Need) map[string]any {
	values := map[string]any{}
	for _, n := range needs {
		var value any = "..."
		switch {
		case len(n.Allowed) > 1 && areTexts(n.Allowed): // the choice is not ours
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

func areTexts(values []any) bool {
	return !slices.ContainsFunc(values, func(v any) bool { _, text := v.(string); return !text })
}

// Status gives the status of a run.
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

// PositionOf gives what the run asks for. It shows the step that the run has
// reached and nothing behind it. The state may be any prefix of a run's events.
func (p *Program) PositionOf(s State) Position {
	if s.Started {
		for _, e := range p.settle(s) {
			s = Apply(s, e)
		}
	}
	switch {
	case s.Ended != "" || !s.Started:
		return Position{Kind: PositionEnd}
	case s.Gate != nil:
		return p.gatePosition(s)
	}
	step := p.current(s)
	if step == nil {
		return p.loopWaits(s)
	}
	vars := p.scope(s)
	if p.applies(s, step) == condition.Unknown {
		return p.waits(s, step, step.RunCondition.Needs(vars))
	}
	return p.stepPosition(s, step)
}

// sceneOf is the scene of a step or loop at the state.
func (p *Program) sceneOf(s State, step *steps.Step) *scene {
	sc := &scene{program: p, step: step, vars: p.told(s)}
	if s.Frame != nil && s.Frame.Round > 0 {
		sc.inLoop(p.items[s.Cursor], s.Frame.Round, s.Frame.List)
	}
	return sc
}

func (p *Program) stepPosition(s State, step *steps.Step) Position {
	sc := p.sceneOf(s, step)
	pos := Position{
		Kind: PositionStep, ID: step.ID, Title: sc.fill(step.Title),
		Prompt: sc.prompt(), Criteria: sc.fillAll(step.Criteria.Describe()),
		Functions: sc.functions(), Calls: step.Calls, AskForFiles: step.AskForFiles,
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

func (s *scene) loopPosition(f *Frame) *LoopPosition {
	loop := s.loop.step
	pos := &LoopPosition{ID: loop.ID, Title: s.fill(loop.Title), Round: f.Round}
	if f.Rounds >= 0 {
		pos.Rounds = min(f.Rounds, loop.Loop.MaxIterations)
	}
	return pos
}

func (p *Program) gatePosition(s State) Position {
	step := p.byID[s.Gate.Step]
	title := p.sceneOf(s, step).fill(step.Title)
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
		{ID: OptionConfirm, Label: "Confirm", Description: "The run goes on."},
		{ID: OptionRevise, Label: "Revise", Description: "The step is done again."},
	}
}

// loopWaits is a loop that cannot begin or go on before variables are set.
func (p *Program) loopWaits(s State) Position {
	step := p.items[s.Cursor].step
	l, vars := step.Loop, p.scope(s)
	if s.Frame != nil {
		return p.waits(s, step, l.Condition.Needs(p.inRound(s, s.Frame.Round+1)))
	}
	if step.RunCondition.Decide(vars) == condition.Unknown {
		return p.waits(s, step, step.RunCondition.Needs(vars))
	}
	pos := p.waits(s, step, nil)
	need := Need{Variable: extentVar(l), Example: 1}
	if l.Type == steps.LoopForEach {
		need.Example = []any{"..."}
	}
	if v, ok := vars(need.Variable); ok {
		need.Found = typeName(v)
	}
	pos.Needs = []Need{need}
	pos.Message = extentOf(l, vars).problem
	return pos
}

func (p *Program) waits(s State, step *steps.Step, needs []condition.Need) Position {
	title := p.sceneOf(s, step).fill(step.Title)
	pos := Position{
		Kind: PositionContext, ID: step.ID, Title: title,
		Message: fmt.Sprintf("Whether '%s' applies depends on variables that are not set.", title),
	}
	pos.Needs = needsOf(needs)
	for i := range pos.Needs {
		p.tellOthers(&pos.Needs[i])
	}
	return pos
}

// tellOthers adds to the values that would make one condition hold those that the
// workflow's other conditions know the variable by: one value alone would look as
// if it were the only one.
func (p *Program) tellOthers(n *Need) {
	if len(n.Allowed) == 0 {
		return
	}
	others := literals{need: n}
	for i := range p.Workflow.Steps {
		others.step(&p.Workflow.Steps[i])
	}
}

// literals collects the values that conditions compare a variable with.
type literals struct{ need *Need }

func (l literals) condition(e *condition.Expr) {
	l.need.Allowed = e.Literals(l.need.Variable, l.need.Allowed)
}

func (l literals) step(step *steps.Step) {
	l.condition(step.RunCondition)
	l.condition(step.Confirm)
	if step.Loop == nil {
		return
	}
	l.condition(step.Loop.Condition)
	for i := range step.Loop.Body {
		l.step(&step.Loop.Body[i])
	}
}
