package guide

import (
	"fmt"

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
	// Criteria say in words what the output must meet.
	Criteria []string `json:"criteria,omitempty"`
	// Functions are the definitions that the step refers to.
	Functions []steps.Function `json:"functionDefinitions,omitempty"`
	// Loop says which round of which loop the step belongs to.
	Loop *LoopPosition `json:"loop,omitempty"`
	// Message is what a gate asks.
	Message string   `json:"message,omitempty"`
	Options []Option `json:"options,omitempty"`
	// Needs are the variables that a waiting run needs.
	Needs []Need `json:"needs,omitempty"`
}

// LoopPosition is a place in a loop.
type LoopPosition struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	// Round is 1-based; Rounds is 0 where nobody knows how many there will be.
	Round  int `json:"round"`
	Rounds int `json:"rounds,omitempty"`
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
	// Found says what stands there where it is of the wrong kind.
	Found string `json:"found,omitempty"`
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
// reached and nothing behind it.
func (p *Program) PositionOf(s State) Position {
	switch {
	case s.Ended != "":
		return Position{Kind: PositionEnd}
	case s.Gate != nil:
		return p.gatePosition(s)
	case s.Cursor >= len(p.items):
		return Position{Kind: PositionEnd}
	}
	it := p.items[s.Cursor]
	step := p.current(s)
	if step == nil {
		return p.contextPosition(s, it)
	}
	vars := p.scope(s)
	if step.RunCondition.Decide(vars) == condition.Unknown {
		return waitsFor(step, step.RunCondition.Needs(vars))
	}
	return p.stepPosition(s, it, step, vars)
}

func (p *Program) stepPosition(s State, it *item, step *steps.Step, vars condition.Lookup) Position {
	sc := scene{program: p, step: step, vars: vars}
	pos := Position{Kind: PositionStep, ID: step.ID, Title: sc.fill(step.Title)}
	if s.Frame != nil {
		sc.loop, sc.round, sc.list = it, s.Frame.Round, s.Frame.List
		pos.Loop = loopPosition(it, s.Frame)
	}
	pos.Prompt, pos.Functions = sc.prompt(), sc.functions()
	pos.Criteria = step.Criteria.Describe()
	return pos
}

func loopPosition(it *item, f *Frame) *LoopPosition {
	return &LoopPosition{ID: it.step.ID, Title: it.step.Title, Round: f.Round, Rounds: max(f.Rounds, 0)}
}

func (p *Program) gatePosition(s State) Position {
	n := p.byID[s.Gate.Step]
	message := fmt.Sprintf("Confirm the result of '%s'.", n.step.Title)
	if s.Gate.Before {
		message = fmt.Sprintf("Confirm that '%s' may begin.", n.step.Title)
	}
	return Position{
		Kind: PositionGate, ID: s.Gate.Step, Title: n.step.Title,
		Message: message, Options: gateOptions(s.Gate),
	}
}

func gateOptions(g *OpenGate) []Option {
	if g.Before {
		return []Option{
			{ID: OptionConfirm, Label: "Begin"},
			{ID: OptionRevise, Label: "Pass over", Description: "The loop does not run."},
		}
	}
	return []Option{
		{ID: OptionConfirm, Label: "Confirm", Description: "The run goes on."},
		{ID: OptionRevise, Label: "Revise", Description: "The step is done again."},
	}
}

// contextPosition is a loop that cannot begin or go on before variables are set.
func (p *Program) contextPosition(s State, it *item) Position {
	l, vars := it.step.Loop, p.scope(s)
	if s.Frame != nil {
		next := over(roundVars(l, s.Frame.Round+1, s.Frame.List), condition.Map(s.Vars))
		return waitsFor(it.step, l.Condition.Needs(next))
	}
	if it.step.RunCondition.Decide(vars) == condition.Unknown {
		return waitsFor(it.step, it.step.RunCondition.Needs(vars))
	}
	name := l.CountVar
	if l.Type == steps.LoopForEach {
		name = l.Items
	}
	pos := waitsFor(it.step, nil)
	need := Need{Variable: name}
	if v, ok := vars(name); ok {
		need.Found = typeName(v)
	}
	pos.Needs = []Need{need}
	pos.Message = extentOf(l, vars).problem
	return pos
}

func waitsFor(step *steps.Step, needs []condition.Need) Position {
	pos := Position{Kind: PositionContext, ID: step.ID, Title: step.Title}
	for _, n := range needs {
		if n.Set {
			continue
		}
		pos.Needs = append(pos.Needs, Need{Variable: n.Variable, Allowed: n.Allowed})
	}
	return pos
}

func needNames(needs []Need) []string {
	names := make([]string, len(needs))
	for i, n := range needs {
		names[i] = n.Variable
	}
	return names
}
