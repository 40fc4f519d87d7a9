package phases

import (
	"cmp"
	"math"
	"slices"

	"github.com/guideway-dev/guideway/internal/workflow/doc"
	"github.com/guideway-dev/guideway/internal/workflow/shape"
	"github.com/guideway-dev/guideway/internal/workflow/toolpolicy"
)

// readCheckpoint parses a checkpoint.
func (p *parser) readCheckpoint(at shape.Place) Checkpoint {
	p.Object(at, "id", "name", "message", "prerequisite", "guide", "options", "required", "blocking", "approval")
	p.Require(at, "id", "name", "message", "options")
	if blocking := at.Key("blocking"); !p.readFlag(blocking, true) && blocking.Node.Kind == doc.Bool {
		p.Errorf(blocking, CodeNotBlocking, "remove 'blocking', and write \"required\": false if the user may decline the question",
			"Field 'blocking' %s must be true: a checkpoint always blocks.", at.Where)
	}
	options := at.Key("options")
	p.NotEmpty(options, "add an option with id and label: a question without options cannot be answered")
	person, approval := p.Approval(at.Key("approval"))
	return Checkpoint{
		ID:           p.readID(at.Key("id")),
		Name:         p.readText(at.Key("name")),
		Message:      p.readText(at.Key("message")),
		Prerequisite: p.readText(at.Key("prerequisite")),
		Guide:        p.readGuide(at.Key("guide")),
		Options:      readList(p, options, "option", p.readOption),
		Required:     p.readFlag(at.Key("required"), true),
		Blocking:     true,
		Person:       person,
		Approval:     approval,
		Source:       p.Source(at),
	}
}

// readOption parses an option.
func (p *parser) readOption(at shape.Place) Option {
	p.Object(at, "id", "label", "description", "effect")
	p.Require(at, "id", "label")
	return Option{
		ID: p.readID(at.Key("id")), Label: p.readText(at.Key("label")), Description: p.readText(at.Key("description")),
		Effect: p.readEffect(at.Key("effect")),
	}
}

// readEffect parses the effect of an option.
func (p *parser) readEffect(at shape.Place) Effect {
	at, ok := p.openNested(at, "setVariable", "transitionTo", "skipPhases")
	if !ok {
		return Effect{}
	}
	e := Effect{TransitionTo: p.readID(at.Key("transitionTo")), SkipPhases: p.Texts(at.Key("skipPhases"), 1, 0)}
	set := at.Key("setVariable")
	if p.Open(set) {
		for _, m := range set.Node.Members {
			e.SetVariable = append(e.SetVariable, Assignment{Name: m.Key, Value: m.Value.Any()})
		}
		slices.SortFunc(e.SetVariable, func(a, b Assignment) int { return cmp.Compare(a.Name, b.Name) })
	}
	return e
}

// readDecision parses a decision.
func (p *parser) readDecision(at shape.Place) Decision {
	p.Object(at, "id", "name", "description", "guide", "branches")
	p.Require(at, "id", "name", "branches")
	branches := at.Key("branches")
	d := Decision{
		ID: p.readID(at.Key("id")), Name: p.readText(at.Key("name")), Description: p.readText(at.Key("description")),
		Guide:    p.readGuide(at.Key("guide")),
		Branches: readList(p, branches, "branch", p.readBranch),
	}
	if branches.Node != nil && branches.Node.Kind == doc.Array && len(branches.Node.Items) < 2 {
		p.Errorf(branches, CodeFewBranches, "add a branch, or write a transition if there is only one path",
			"Field 'branches' %s must have at least 2 branches, but it has %d.", at.Where, len(branches.Node.Items))
	}
	return d
}

// readBranch parses a branch of a decision.
func (p *parser) readBranch(at shape.Place) Branch {
	p.Object(at, "id", "label", "condition", "transitionTo", "isDefault")
	p.Require(at, "id", "label", "transitionTo")
	return Branch{
		ID: p.readID(at.Key("id")), Label: p.readText(at.Key("label")), Condition: p.readCondition(at.Key("condition")),
		TransitionTo: p.readID(at.Key("transitionTo")), IsDefault: p.Flag(at.Key("isDefault")),
	}
}

// readTransition parses a transition.
func (p *parser) readTransition(at shape.Place) Transition {
	p.Object(at, "to", "condition", "isDefault")
	p.Require(at, "to")
	return Transition{To: p.readID(at.Key("to")), Condition: p.readCondition(at.Key("condition")), IsDefault: p.Flag(at.Key("isDefault"))}
}

// readLoop parses a loop.
func (p *parser) readLoop(at shape.Place) Loop {
	p.Object(at, "id", "name", "type", "variable", "over", "condition", "maxIterations", "breakCondition", "tools", "steps", "phases")
	p.Require(at, "id", "name", "type")
	l := Loop{
		ID:             p.readID(at.Key("id")),
		Name:           p.readText(at.Key("name")),
		Type:           LoopType(p.Choice(at.Key("type"), CodeLoopType, string(LoopForEach), string(LoopWhile), string(LoopDoWhile))),
		Variable:       p.readID(at.Key("variable")),
		Over:           p.readID(at.Key("over")),
		Condition:      p.readCondition(at.Key("condition")),
		MaxIterations:  p.readMaxIterations(at.Key("maxIterations")),
		BreakCondition: p.readCondition(at.Key("breakCondition")),
		Tools:          toolpolicy.Read(&p.Report, at.Key("tools")),
		Steps:          readList(p, at.Key("steps"), "step", p.readStep),
		Phases:         p.Texts(at.Key("phases"), 0, 0),
	}
	switch l.Type {
	case LoopForEach:
		if at.Node.Get("over") == nil {
			p.Errorf(at, CodeLoopOver, `add "over": the variable that holds the list, such as "tasks" or "plan.tasks"`,
				"%s: a forEach loop needs 'over'.", shape.CapitalWhere(at.Where))
		}
	case LoopWhile, LoopDoWhile:
		if at.Node.Get("condition") == nil {
			p.Errorf(at, CodeLoopCondition, `add "condition": {"type": "simple", "variable": "...", "operator": "==", "value": ...}`,
				"%s: a %s loop needs a condition.", shape.CapitalWhere(at.Where), l.Type)
		}
	}
	return l
}

// readMaxIterations reads the limit of a loop.
func (p *parser) readMaxIterations(at shape.Place) int {
	if at.Node == nil {
		return DefaultMaxIterations
	}
	if at.Node.Kind != doc.Number {
		p.WrongType(at, "a number")
		return DefaultMaxIterations
	}
	if at.Node.Num < 1 || at.Node.Num != math.Trunc(at.Node.Num) {
		p.Errorf(at, CodeLoopMax, "write a whole number, 1 or more", "Field 'maxIterations' %s must be a whole number of at least 1, but it is %s.", at.Where, at.Node.Text)
		return DefaultMaxIterations
	}
	return int(min(at.Node.Num, math.MaxInt32))
}
