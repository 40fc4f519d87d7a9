package steps

import (
	"fmt"
	"slices"

	"github.com/guideway-dev/guideway/internal/criterion"
	"github.com/guideway-dev/guideway/internal/definition/doc"
)

// criteria reads the criteria of a step: a list of rules or a composition.
func (p *parser) criteria(at place) *criterion.Criterion {
	if at.node == nil {
		return nil
	}
	before := len(p.found)
	switch at.node.Kind {
	case doc.Array:
		for i := range at.node.Items {
			p.rule(at.index(i))
		}
	case doc.Object:
		if at.node.Get("type") != nil {
			p.errorf(at, CodeType, "put the rule into a list: [{...}]", "Field '%s' %s must be a list of rules or a composition with and, or or not, but it is one rule.", at.name, at.where)
			return nil
		}
		p.composition(at)
	default:
		p.wrongType(at, "a list of rules or a composition with and, or or not")
	}
	if len(p.found) > before {
		return nil
	}
	read := criterion.Parse(at.node.Any())
	p.judged = append(p.judged, judged{at, read})
	p.faults(at, read.Faults())
	return read
}

// judged are criteria that were read, and where they stand.
type judged struct {
	at       place
	criteria *criterion.Criterion
}

// faults reports what package criterion says of criteria.
func (p *parser) faults(at place, problems []criterion.Problem) {
	for _, problem := range problems {
		if !problem.Warning {
			p.errorf(at.below(problem.Path), problem.Code, problem.Fix, "%s (%s %s)", problem.Message, at.name, at.where)
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

// below goes to a value by a pointer relative to this place; what is missing
// stands where its parent does.
func (p place) below(pointer string) place {
	p.at(p.node.Find(pointer))
	p.ptr, p.keyed = p.pointer()+doc.Pointer(pointer), false
	return p
}

// criterion reads a rule or a composition.
func (p *parser) criterion(at place) {
	if at.node.Kind == doc.Object && at.node.Get("type") == nil &&
		(at.node.Get("and") != nil || at.node.Get("or") != nil || at.node.Get("not") != nil) {
		p.composition(at)
		return
	}
	p.rule(at)
}

// rule reads one rule. What its type needs is checked by package criterion.
func (p *parser) rule(at place) {
	where := fmt.Sprintf("in %s %s", at.name, at.where)
	if at.node.Kind != doc.Object {
		p.wrongType(at, "a rule such as {\"type\": \"contains\", \"value\": \"...\", \"message\": \"...\"}")
		return
	}
	at.where = where
	hint := ""
	if at.node.Get("and") != nil || at.node.Get("or") != nil || at.node.Get("not") != nil {
		hint = "write validationCriteria as one object with and, or or not, without a list around it"
	}
	p.closed(at, hint, []string{"type", "value", "pattern", "flags", "min", "max", "message", "schema", "condition"})
	p.require(at, "type", "message")
	p.choice(at.key("type"), CodeEnum, "contains", "regex", "length", "schema")
	for _, key := range []string{"value", "pattern", "flags", "message"} {
		p.text(at.key(key), 0, 0)
	}
	for _, key := range []string{"min", "max"} {
		if bound := at.key(key); bound.node != nil && bound.node.Kind != doc.Number {
			p.wrongType(bound, "a number")
		}
	}
	if schema := at.key("schema"); schema.node != nil && schema.node.Kind != doc.Object {
		p.wrongType(schema, "a JSON schema object")
	}
	if when := at.key("condition"); when.node != nil {
		p.conditionShape(when)
	}
}

// composition reads an object with exactly one of and, or and not.
func (p *parser) composition(at place) {
	outer := at.where
	at.where = fmt.Sprintf("in %s %s", at.name, at.where)
	p.closed(at, "", []string{"and", "or", "not"})
	kinds := 0
	for _, key := range []string{"and", "or", "not"} {
		part := at.key(key).in(outer)
		if part.node == nil {
			continue
		}
		kinds++
		part.name = at.name + "." + key
		if key == "not" {
			p.criterion(part)
			continue
		}
		if !p.array(part, "a list of criteria") {
			continue
		}
		if len(part.node.Items) == 0 {
			p.errorf(part, CodeEmptyList, "add a rule, or remove the composition", "Field '%s' %s is empty.", part.name, outer)
		}
		for i := range part.node.Items {
			p.criterion(part.index(i))
		}
	}
	if kinds != 1 {
		p.errorf(at, CodeComposition, "write exactly one of: and, or, not; nest them for more", "Field '%s' %s must have exactly one of 'and', 'or' and 'not', but it has %d.", at.name, outer, kinds)
	}
}
