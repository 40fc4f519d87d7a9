package steps

import (
	"fmt"
	"slices"

	"github.com/guideway-dev/guideway/internal/criterion"
	"github.com/guideway-dev/guideway/internal/definition/doc"
	"github.com/guideway-dev/guideway/internal/definition/shape"
)

// criteria reads the criteria of a step: a list of rules or a composition.
func (p *parser) criteria(at shape.Place) *criterion.Criterion {
	if at.Node == nil {
		return nil
	}
	before := len(p.Found)
	switch at.Node.Kind {
	case doc.Array:
		for i := range at.Node.Items {
			p.rule(at.Index(i))
		}
	case doc.Object:
		if at.Node.Get("type") != nil {
			p.Errorf(at, CodeType, "put the rule into a list: [{...}]", "Field '%s' %s must be a list of rules or a composition with and, or or not, but it is one rule.", at.Name, at.Where)
			return nil
		}
		p.composition(at)
	default:
		p.WrongType(at, "a list of rules or a composition with and, or or not")
	}
	if len(p.Found) > before {
		return nil
	}
	read := criterion.Parse(at.Node.Any())
	p.judged = append(p.judged, judged{at, read})
	p.faults(at, read.Faults())
	return read
}

// judged are criteria that were read, and where they stand.
type judged struct {
	at       shape.Place
	criteria *criterion.Criterion
}

// faults reports what package criterion says of criteria.
func (p *parser) faults(at shape.Place, problems []criterion.Problem) {
	for _, problem := range problems {
		if !problem.Warning {
			p.Errorf(at.Below(problem.Path), problem.Code, problem.Fix, "%s (%s %s)", problem.Message, at.Name, at.Where)
		}
	}
}

// deepFaults looks for the patterns and schemas that do not compile. A
// definition loads with them, because to compile all is slow and few are ever
// used; so Lint reports them. Where a definition does not load anyway, its
// author is told of everything at once.
func (p *parser) deepFaults() {
	for _, j := range p.judged {
		shallow := j.criteria.Faults()
		p.faults(j.at, slices.DeleteFunc(j.criteria.Problems(), func(problem criterion.Problem) bool {
			return slices.Contains(shallow, problem)
		}))
	}
}

// criterion reads a rule or a composition.
func (p *parser) criterion(at shape.Place) {
	if at.Node.Kind == doc.Object && at.Node.Get("type") == nil &&
		(at.Node.Get("and") != nil || at.Node.Get("or") != nil || at.Node.Get("not") != nil) {
		p.composition(at)
		return
	}
	p.rule(at)
}

// rule reads one rule. What its type needs is checked by package criterion.
func (p *parser) rule(at shape.Place) {
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
	p.Choice(at.Key("type"), CodeEnum, "contains", "regex", "length", "schema")
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
		p.conditionShape(when)
	}
}

// composition reads an object with exactly one of and, or and not.
func (p *parser) composition(at shape.Place) {
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
			p.criterion(part)
			continue
		}
		if !p.Array(part, "a list of criteria") {
			continue
		}
		if len(part.Node.Items) == 0 {
			p.Errorf(part, CodeEmptyList, "add a rule, or remove the composition", "Field '%s' %s is empty.", part.Name, outer)
		}
		for i := range part.Node.Items {
			p.criterion(part.Index(i))
		}
	}
	if kinds != 1 {
		p.Errorf(at, CodeComposition, "write exactly one of: and, or, not; nest them for more", "Field '%s' %s must have exactly one of 'and', 'or' and 'not', but it has %d.", at.Name, outer, kinds)
	}
}
