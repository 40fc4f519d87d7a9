package steps

import (
	"fmt"
	"slices"

	criteriapkg "github.com/guideway-dev/guideway/internal/workflow/criteria"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
	"github.com/guideway-dev/guideway/internal/workflow/shape"
)

// readCriteria reads the criteria of a step: a list of rules or a composition.
func (p *parser) readCriteria(at shape.Place) *criteriapkg.Criterion {
	if at.Node == nil {
		return nil
	}
	before := len(p.Found)
	switch at.Node.Kind {
	case doc.Array:
		for i := range at.Node.Items {
			p.readRule(at.Index(i))
		}
	case doc.Object:
		if at.Node.Get("type") != nil {
			p.Errorf(at, shape.CodeType, "wrap the rule in a list: [{...}]", "Field '%s' %s must be a list of rules or a composition with and, or or not, but it is one rule.", at.Name, at.Where)
			return nil
		}
		p.readComposition(at)
	default:
		p.WrongType(at, "a list of rules or a composition with and, or or not")
	}
	if len(p.Found) > before {
		return nil
	}
	read := criteriapkg.Parse(at.Node.Any())
	p.criteria = append(p.criteria, placedCriteria{at, read})
	p.reportCriteria(at, read.Errors())
	return read
}

// placedCriteria are criteria with their place.
type placedCriteria struct {
	at       shape.Place
	criteria *criteriapkg.Criterion
}

// reportCriteria reports the errors of package criteria.
func (p *parser) reportCriteria(at shape.Place, diagnostics []criteriapkg.Diagnostic) {
	for _, diagnostic := range diagnostics {
		if !diagnostic.Warning {
			p.Errorf(at.Below(diagnostic.Path), diagnostic.Code, diagnostic.Fix, "%s (%s %s)", diagnostic.Message, at.Name, at.Where)
		}
	}
}

// reportDeepErrors reports patterns and schemas that do not compile. A definition loads
// with them, because compiling all of them is slow and few are used, so Lint reports them.
// If a definition does not load anyway, they are reported together with its other errors.
func (p *parser) reportDeepErrors() {
	for _, j := range p.criteria {
		shallow := j.criteria.Errors()
		p.reportCriteria(j.at, slices.DeleteFunc(j.criteria.Diagnostics(), func(diagnostic criteriapkg.Diagnostic) bool {
			return slices.Contains(shallow, diagnostic)
		}))
	}
}

// readCriterion reads a rule or a composition.
func (p *parser) readCriterion(at shape.Place) {
	if at.Node.Kind == doc.Object && at.Node.Get("type") == nil &&
		(at.Node.Get("and") != nil || at.Node.Get("or") != nil || at.Node.Get("not") != nil) {
		p.readComposition(at)
		return
	}
	p.readRule(at)
}

// readRule reads one rule. Package criteria checks the fields that its type needs.
func (p *parser) readRule(at shape.Place) {
	where := fmt.Sprintf("in %s %s", at.Name, at.Where)
	if at.Node.Kind != doc.Object {
		p.WrongType(at, "a rule such as {\"type\": \"contains\", \"value\": \"...\", \"message\": \"...\"}")
		return
	}
	at.Where = where
	hint := ""
	if at.Node.Get("and") != nil || at.Node.Get("or") != nil || at.Node.Get("not") != nil {
		hint = "write validationCriteria as one object with and, or or not, without a list around it"
	}
	p.Closed(at, hint, []string{"type", "value", "pattern", "flags", "min", "max", "message", "schema", "condition"})
	p.Require(at, "type", "message")
	p.Choice(at.Key("type"), shape.CodeEnum, "contains", "regex", "length", "schema")
	for _, key := range []string{"value", "pattern", "flags", "message"} {
		p.Text(at.Key(key), 0, 0)
	}
	for _, key := range []string{"min", "max"} {
		if bound := at.Key(key); bound.Node != nil && bound.Node.Kind != doc.Number {
			p.WrongType(bound, "a number")
		}
	}
	if schema := at.Key("schema"); schema.Node != nil && schema.Node.Kind != doc.Object {
		p.WrongType(schema, "a JSON schema object")
	}
	if when := at.Key("condition"); when.Node != nil {
		p.checkCondition(when)
	}
}

// readComposition reads an object with exactly one of and, or and not.
func (p *parser) readComposition(at shape.Place) {
	outer := at.Where
	at.Where = fmt.Sprintf("in %s %s", at.Name, at.Where)
	p.Closed(at, "", []string{"and", "or", "not"})
	kinds := 0
	for _, key := range []string{"and", "or", "not"} {
		part := at.Key(key).In(outer)
		if part.Node == nil {
			continue
		}
		kinds++
		part.Name = at.Name + "." + key
		if key == "not" {
			p.readCriterion(part)
			continue
		}
		if !p.Array(part, "a list of criteria") {
			continue
		}
		if len(part.Node.Items) == 0 {
			p.Errorf(part, shape.CodeEmptyList, "add a rule, or remove the composition", "Field '%s' %s is empty.", part.Name, outer)
		}
		for i := range part.Node.Items {
			p.readCriterion(part.Index(i))
		}
	}
	if kinds != 1 {
		p.Errorf(at, CodeComposition, "write exactly one of: and, or, not; nest them for more", "Field '%s' %s must have exactly one of 'and', 'or' and 'not', but it has %d.", at.Name, outer, kinds)
	}
}
