package phases

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
	"github.com/guideway-dev/guideway/internal/workflow/shape"
	"github.com/guideway-dev/guideway/internal/workflow/toolpolicy"
)

// Parse checks a document against the phases dialect and parses it as a workflow. It
// returns all errors in document order; the workflow is nil if there are any.
func Parse(file string, root *doc.Node) (*Workflow, []guideway.Diagnostic) {
	p, at := newParser(file), shape.Root(root, "workflow")
	if !p.Document(at, "A workflow", "write one object with id, version, title, initialPhase and phases") {
		return nil, p.Found
	}
	p.Canonical = doc.Mark(root)
	w := p.readWorkflow(at)
	w.Canonical = p.Canonical
	p.checkStructure(at, w)
	if len(p.Found) > 0 {
		p.criteria.ReportDeepErrors()
		return nil, p.Findings(guideway.SeverityError)
	}
	return w, nil
}

// readWorkflow parses the root.
func (p *parser) readWorkflow(at shape.Place) *Workflow {
	p.Object(at, "$schema", "id", "version", "title", "description", "author", "tags", "rules", "variables", "contextRules", "initialPhase", "phases")
	p.Require(at, "id", "version", "title", "initialPhase", "phases")
	p.readText(at.Key("$schema"))
	w := &Workflow{
		ID:           p.readID(at.Key("id")),
		Version:      p.readVersion(at.Key("version")),
		Title:        p.readText(at.Key("title")),
		Description:  p.readText(at.Key("description")),
		Author:       p.readText(at.Key("author")),
		Tags:         p.Texts(at.Key("tags"), 0, 0),
		Rules:        p.Texts(at.Key("rules"), 0, 0),
		Variables:    readList(p, at.Key("variables"), "variable", p.readVariable),
		ContextRules: p.ContextRules(at.Key("contextRules")),
		InitialPhase: p.readID(at.Key("initialPhase")),
		Phases:       readList(p, at.Key("phases"), "phase", p.readPhase),
	}
	p.NotEmpty(at.Key("phases"), "add a phase with id and name: a workflow has at least one")
	return w
}

// readVariable parses a declaration.
func (p *parser) readVariable(at shape.Place) Variable {
	p.Object(at, "name", "type", "description", "defaultValue", "required")
	p.Require(at, "name", "type")
	value := at.Node.Get("defaultValue")
	return Variable{
		Name:         p.readID(at.Key("name")),
		Type:         VariableType(p.Choice(at.Key("type"), shape.CodeEnum, typeNames()...)),
		Description:  p.readText(at.Key("description")),
		DefaultValue: value.Any(),
		HasDefault:   value != nil,
		Required:     p.Flag(at.Key("required")),
	}
}

// typeNames returns the names of the variable types.
func typeNames() []string {
	return []string{string(TypeString), string(TypeNumber), string(TypeBoolean), string(TypeArray), string(TypeObject)}
}

// readPhase parses a phase.
func (p *parser) readPhase(at shape.Place) Phase {
	p.Object(at, "id", "name", "description", "required", "estimatedTime", "guide", "entryActions", "exitActions",
		"steps", "checkpoints", "decisions", "loops", "transitions", "tools")
	p.Require(at, "id", "name")
	return Phase{
		ID:            p.readID(at.Key("id")),
		Name:          p.readText(at.Key("name")),
		Description:   p.readText(at.Key("description")),
		Required:      p.readFlag(at.Key("required"), true),
		EstimatedTime: p.readEstimate(at.Key("estimatedTime")),
		Guide:         p.readGuide(at.Key("guide")),
		EntryActions:  readList(p, at.Key("entryActions"), "action", p.readAction),
		ExitActions:   readList(p, at.Key("exitActions"), "action", p.readAction),
		Steps:         readList(p, at.Key("steps"), "step", p.readStep),
		Checkpoints:   readList(p, at.Key("checkpoints"), "checkpoint", p.readCheckpoint),
		Decisions:     readList(p, at.Key("decisions"), "decision", p.readDecision),
		Loops:         readList(p, at.Key("loops"), "loop", p.readLoop),
		Transitions:   readList(p, at.Key("transitions"), "transition", p.readTransition),
		Tools:         toolpolicy.Read(&p.Report, at.Key("tools")),
		Source:        p.Source(at),
	}
}

// readEstimate reads the estimated time of a phase.
func (p *parser) readEstimate(at shape.Place) string {
	text := p.readText(at)
	if at.Node == nil || at.Node.Kind != doc.String || isEstimate(text) {
		return text
	}
	fix := "write a number or a range and one of m, min, h, hr, hour, hours, d, day, days: 10-15m, 1 hour, 90"
	if better := strings.ToLower(text); isEstimate(better) {
		fix = "write '" + better + "': units are in lower case"
	}
	p.Errorf(at, shape.CodePattern, fix, "Field '%s' %s has the value %s, which is not a duration estimate.", at.Name, at.Where, shape.Quote(text))
	return text
}

// isEstimate reports whether the text is a number or a range with an optional unit.
func isEstimate(text string) bool {
	unit := strings.TrimLeft(text, "0123456789-")
	low, high, ranged := strings.Cut(text[:len(text)-len(unit)], "-")
	if !isDigits(low) || ranged && !isDigits(high) {
		return false
	}
	switch strings.TrimLeft(unit, " \t") {
	case "":
		return true
	case "m", "min", "h", "hr", "hour", "hours", "d", "day", "days":
		return true
	default:
		return false
	}
}

// readGuide parses a reference to a guide, or returns nil.
func (p *parser) readGuide(at shape.Place) *Guide {
	at, ok := p.openNested(at, "path", "section", "title")
	if !ok {
		return nil
	}
	p.Require(at, "path")
	return &Guide{Path: p.readID(at.Key("path")), Section: p.readText(at.Key("section")), Title: p.readText(at.Key("title"))}
}

// readAction parses an action.
func (p *parser) readAction(at shape.Place) Action {
	p.Object(at, "action", "target", "message", "value")
	p.Require(at, "action")
	value := at.Node.Get("value")
	return Action{
		Action: ActionKind(p.Choice(at.Key("action"), shape.CodeEnum, string(ActionLog), string(ActionValidate), string(ActionSet), string(ActionEmit))),
		Target: p.readText(at.Key("target")), Message: p.readText(at.Key("message")),
		Value: value.Any(), HasValue: value != nil,
	}
}

// readStep parses a step.
func (p *parser) readStep(at shape.Place) Step {
	p.Object(at, "id", "name", "description", "guide", "required", "validationCriteria", "tools", "actions")
	p.Require(at, "id", "name")
	return Step{
		ID:          p.readID(at.Key("id")),
		Name:        p.readText(at.Key("name")),
		Description: p.readText(at.Key("description")),
		Guide:       p.readGuide(at.Key("guide")),
		Required:    p.readFlag(at.Key("required"), true),
		Criteria:    p.readCriteria(at.Key("validationCriteria")),
		Tools:       toolpolicy.Read(&p.Report, at.Key("tools")),
		Actions:     readList(p, at.Key("actions"), "action", p.readAction),
	}
}

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
