package phases

import (
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
