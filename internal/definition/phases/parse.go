package phases

import (
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/definition/doc"
	"github.com/guideway-dev/guideway/internal/definition/shape"
)

// Parse checks a document against the phases dialect and reads it as a workflow.
// All problems are reported at once, in the order of the document; the workflow
// is nil if there is one.
func Parse(file string, root *doc.Node) (*Workflow, []guideway.Diagnostic) {
	p, at := newParser(file), shape.Root(root, "workflow")
	if !p.Document(at, "A workflow", "write one object with id, version, title, initialPhase and phases") {
		return nil, p.Found
	}
	p.Canonical = doc.Mark(root)
	w := p.workflow(at)
	w.Canonical = p.Canonical
	p.structure(at, w)
	if len(p.Found) > 0 {
		return nil, p.Findings(guideway.SeverityError)
	}
	return w, nil
}

// workflow reads the root.
func (p *parser) workflow(at shape.Place) *Workflow {
	p.Object(at, "$schema", "id", "version", "title", "description", "author", "tags", "rules", "variables", "contextRules", "initialPhase", "phases")
	p.Require(at, "id", "version", "title", "initialPhase", "phases")
	p.text(at.Key("$schema"))
	w := &Workflow{
		ID:           p.id(at.Key("id")),
		Version:      p.version(at.Key("version")),
		Title:        p.text(at.Key("title")),
		Description:  p.text(at.Key("description")),
		Author:       p.text(at.Key("author")),
		Tags:         p.Texts(at.Key("tags"), 0, 0),
		Rules:        p.Texts(at.Key("rules"), 0, 0),
		Variables:    list(p, at.Key("variables"), "variable", p.variable),
		ContextRules: p.ContextRules(at.Key("contextRules")),
		InitialPhase: p.id(at.Key("initialPhase")),
		Phases:       list(p, at.Key("phases"), "phase", p.phase),
	}
	p.filled(at.Key("phases"), "add a phase with id and name: a workflow has at least one")
	return w
}

// variable reads a declaration.
func (p *parser) variable(at shape.Place) Variable {
	p.Object(at, "name", "type", "description", "defaultValue", "required")
	p.Require(at, "name", "type")
	value := at.Node.Get("defaultValue")
	return Variable{
		Name:         p.id(at.Key("name")),
		Type:         VariableType(p.Choice(at.Key("type"), CodeEnum, types()...)),
		Description:  p.text(at.Key("description")),
		DefaultValue: value.Any(),
		HasDefault:   value != nil,
		Required:     p.Flag(at.Key("required")),
	}
}

// types are the names of the types of variables.
func types() []string {
	return []string{string(TypeString), string(TypeNumber), string(TypeBoolean), string(TypeArray), string(TypeObject)}
}

// phase reads one stage.
func (p *parser) phase(at shape.Place) Phase {
	p.Object(at, "id", "name", "description", "required", "estimatedTime", "guide", "entryActions", "exitActions",
		"steps", "checkpoints", "decisions", "loops", "transitions")
	p.Require(at, "id", "name")
	return Phase{
		ID:            p.id(at.Key("id")),
		Name:          p.text(at.Key("name")),
		Description:   p.text(at.Key("description")),
		Required:      p.flag(at.Key("required"), true),
		EstimatedTime: p.estimate(at.Key("estimatedTime")),
		Guide:         p.guide(at.Key("guide")),
		EntryActions:  list(p, at.Key("entryActions"), "action", p.action),
		ExitActions:   list(p, at.Key("exitActions"), "action", p.action),
		Steps:         list(p, at.Key("steps"), "step", p.step),
		Checkpoints:   list(p, at.Key("checkpoints"), "checkpoint", p.checkpoint),
		Decisions:     list(p, at.Key("decisions"), "decision", p.decision),
		Loops:         list(p, at.Key("loops"), "loop", p.loop),
		Transitions:   list(p, at.Key("transitions"), "transition", p.transition),
		Source:        p.Source(at),
	}
}

// estimate reads how long a phase takes.
func (p *parser) estimate(at shape.Place) string {
	text := p.text(at)
	if at.Node == nil || at.Node.Kind != doc.String || isEstimate(text) {
		return text
	}
	fix := "write a number or a range and one of m, min, h, hr, hour, hours, d, day, days: 10-15m, 1 hour, 90"
	if better := strings.ToLower(text); isEstimate(better) {
		fix = "write '" + better + "': units are small letters"
	}
	p.Errorf(at, CodePattern, fix, "Field '%s' %s has the value %s, which is no estimate.", at.Name, at.Where, shape.Quote(text))
	return text
}

// isEstimate says whether the text is a number or a range, and a unit or none.
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

// guide reads a reference to a text; nil where there is none.
func (p *parser) guide(at shape.Place) *Guide {
	at, ok := p.nested(at, "path", "section", "title")
	if !ok {
		return nil
	}
	p.Require(at, "path")
	return &Guide{Path: p.id(at.Key("path")), Section: p.text(at.Key("section")), Title: p.text(at.Key("title"))}
}

// action reads something to do.
func (p *parser) action(at shape.Place) Action {
	p.Object(at, "action", "target", "message", "value")
	p.Require(at, "action")
	value := at.Node.Get("value")
	return Action{
		Action: ActionKind(p.Choice(at.Key("action"), CodeEnum, string(ActionLog), string(ActionValidate), string(ActionSet), string(ActionEmit))),
		Target: p.text(at.Key("target")), Message: p.text(at.Key("message")),
		Value: value.Any(), HasValue: value != nil,
	}
}

// step reads a task.
func (p *parser) step(at shape.Place) Step {
	p.Object(at, "id", "name", "description", "guide", "required", "actions")
	p.Require(at, "id", "name")
	return Step{
		ID:          p.id(at.Key("id")),
		Name:        p.text(at.Key("name")),
		Description: p.text(at.Key("description")),
		Guide:       p.guide(at.Key("guide")),
		Required:    p.flag(at.Key("required"), true),
		Actions:     list(p, at.Key("actions"), "action", p.action),
	}
}
