package steps

import (
	"fmt"
	"math"

	"github.com/guideway-dev/guideway/internal/condition"
	"github.com/guideway-dev/guideway/internal/definition/doc"
)

// The bounds of maxIterations and of a literal count.
const maxRounds = 1000

// loopStep reads a step that repeats others.
func (p *parser) loopStep(at place) Step {
	p.closed(at, "a loop has no such property: put it on a step of its body", []string{
		"id", "type", "title", "loop", "body", "functionDefinitions", "requireConfirmation", "approval", "runCondition",
	})
	p.require(at, "id", "title", "loop", "body")
	p.loopMark(at)
	loop := p.loop(at.key("loop"), at)
	p.body(at.key("body"), loop)
	confirm, person := p.confirmation(at)
	return Step{
		ID:           p.id(at.key("id")),
		Title:        p.text(at.key("title"), 1, 128),
		Functions:    p.functions(at.key("functionDefinitions")),
		Confirm:      confirm,
		Person:       person,
		RunCondition: p.condition(at.key("runCondition")),
		Loop:         loop,
		Source: Source{
			Loop:      p.source(at),
			Confirm:   p.source(at.key("requireConfirmation")),
			Condition: p.source(at.key("runCondition")),
		},
	}
}

// loopMark checks that the loop says it is one.
func (p *parser) loopMark(at place) {
	const fix = `add "type": "loop"`
	kind := at.key("type")
	switch {
	case kind.node == nil:
		p.errorf(at, CodeRequired, fix, "Missing required field 'type' %s. This field is mandatory and must be provided.", at.where)
	case kind.node.Kind != doc.String || kind.node.Text != "loop":
		p.errorf(kind, CodeEnum, `write "type": "loop" here; the loop's own type stands inside "loop"`,
			"Field 'type' %s must be 'loop', but it is %s.", at.where, describe(kind.node))
	}
}

// loop reads how often to repeat and until when.
func (p *parser) loop(at, step place) *Loop {
	loop := &Loop{IterationVar: "currentIteration", ItemVar: "currentItem", IndexVar: "currentIndex"}
	if at.node == nil {
		return loop
	}
	if at.node.Kind != doc.Object {
		p.wrongType(at, "an object")
		return loop
	}
	p.closed(at, "", []string{"type", "condition", "items", "count", "maxIterations", "iterationVar", "itemVar", "indexVar"})
	p.require(at, "type")
	p.loopType(at, loop)
	loop.MaxIterations = p.maxIterations(at)
	loop.Condition = p.condition(at.key("condition"))
	p.count(at.key("count"), loop)
	p.items(at.key("items"), loop)
	p.variable(at.key("iterationVar"), &loop.IterationVar)
	p.variable(at.key("itemVar"), &loop.ItemVar)
	p.variable(at.key("indexVar"), &loop.IndexVar)
	return loop
}

// variable reads the name of one of the loop's variables, if it has one.
func (p *parser) variable(at place, name *string) {
	if text := p.identifier(at); text != "" {
		*name = text
	}
}

// loopType reads the type and checks that what it needs is there.
func (p *parser) loopType(at place, loop *Loop) {
	kind := at.key("type")
	if kind.node == nil {
		return
	}
	if kind.node.Kind != doc.String {
		p.wrongType(kind, "a string")
		return
	}
	loop.Type = LoopType(kind.node.Text)
	subject := titled(at.where)
	switch loop.Type {
	case LoopWhile, LoopUntil:
		if at.node.Get("condition") == nil {
			p.errorf(at, CodeLoopCondition, `add "condition": {"var": "...", "equals": ...}`, "%s: %s loop requires a condition", subject, loop.Type)
		}
	case LoopFor:
		if at.node.Get("count") == nil {
			p.errorf(at, CodeLoopCount, `add "count": a number, or the name of a variable that holds one`, "%s: for loop requires a count", subject)
		}
	case LoopForEach:
		if at.node.Get("items") == nil {
			p.errorf(at, CodeLoopItems, `add "items": the name of a variable that holds a list`, "%s: forEach loop requires items", subject)
		}
	default:
		fix := "write one of: while, until, for, forEach"
		if guess := closest(kind.node.Text, []string{"while", "until", "for", "forEach"}); guess != "" {
			fix = fmt.Sprintf("did you mean '%s'?", guess)
		}
		p.errorf(kind, CodeLoopType, fix, "%s: Invalid loop type %s. Must be one of: while, until, for, forEach", subject, quote(kind.node.Text))
	}
}

// titled makes the subject of a sentence of where something stands.
func titled(where string) string {
	if len(where) > 3 && where[:3] == "in " {
		return string(where[3]-'a'+'A') + where[4:]
	}
	return where
}

// maxIterations reads the bound of the loop. A fraction is rounded up, as a
// counter that is compared with it would.
func (p *parser) maxIterations(loop place) int {
	at, subject := loop.key("maxIterations"), titled(loop.where)
	switch {
	case at.node == nil:
		p.errorf(loop, CodeRequired, `add "maxIterations": a number from 1 to 1000 that the loop never needs to reach`,
			"Missing required field 'maxIterations' %s. This field is mandatory and must be provided.", loop.where)
	case at.node.Kind != doc.Number:
		p.wrongType(at, "a number")
	case at.node.Num < 1:
		p.errorf(at, CodeLoopMax, "write a number from 1 to 1000", "%s: maxIterations must be a positive number, but it is %s", subject, at.node.Text)
	case at.node.Num > maxRounds:
		p.errorf(at, CodeLoopMax, "write a number from 1 to 1000", "%s: maxIterations (%s) exceeds safety limit of 1000", subject, at.node.Text)
	default:
		return int(math.Ceil(at.node.Num))
	}
	return 0
}

// count reads a literal count or the name of the variable that holds it.
func (p *parser) count(at place, loop *Loop) {
	if at.node == nil {
		return
	}
	subject := titled(at.where)
	switch {
	case at.node.Kind == doc.String && at.node.Text != "":
		loop.CountVar = at.node.Text
	case at.node.Kind == doc.String && loop.Type == LoopFor:
		p.errorf(at, CodeVariableEmpty, "write a number, or the name of a variable that holds one", "%s: for loop requires a count, but it is empty", subject)
	case at.node.Kind == doc.String:
	case at.node.Kind != doc.Number:
		p.errorf(at, CodeType, "write a number from 0 to 1000, or the name of a variable that holds one",
			"%s: for loop count must be a positive number or context variable name, but it is %s", subject, describe(at.node))
	case at.node.Num < 0 || at.node.Num > maxRounds:
		p.errorf(at, CodeRange, "write a number from 0 to 1000, or the name of a variable that holds one",
			"%s: for loop count must be a positive number or context variable name; %s is outside 0 to 1000", subject, at.node.Text)
	default:
		loop.Count = int(math.Ceil(at.node.Num))
	}
}

// items reads the name of the variable that forEach goes through.
func (p *parser) items(at place, loop *Loop) {
	loop.Items = p.text(at, 0, 0)
	if at.node != nil && at.node.Kind == doc.String && loop.Items == "" && loop.Type == LoopForEach {
		p.errorf(at, CodeVariableEmpty, "write the name of a variable that holds a list", "%s: forEach loop requires items, but the name is empty", titled(at.where))
	}
}

// body reads the steps of a round, or the id of the one that is.
func (p *parser) body(at place, loop *Loop) {
	if at.node == nil {
		return
	}
	switch at.node.Kind {
	case doc.String:
		loop.BodyRef = at.node.Text
	case doc.Array:
		if len(at.node.Items) == 0 {
			p.errorf(at, CodeEmptyList, "add a step with id, title and prompt, or write the id of a top-level step", "%s: Loop body array cannot be empty", titled(at.where))
		}
		loop.Body = make([]Step, 0, len(at.node.Items))
		for i := range at.node.Items {
			loop.Body = append(loop.Body, p.bodyStep(at.index(i), i))
		}
	default:
		p.errorf(at, CodeType, "write a list of steps, or the id of a top-level step",
			"%s: the body must be a list of steps or the id of a step, but it is %s", titled(at.where), describe(at.node))
	}
}

// bodyStep reads a step of an inline body. A loop among them is one finding.
func (p *parser) bodyStep(at place, i int) Step {
	if at.node.Kind == doc.Object && isLoop(at.node) {
		name := stepID(at.node)
		if name == "" {
			name = at.name
		}
		p.errorf(at, CodeNested, "move the inner loop to the top level, or write its steps into this body",
			"%s: Nested loops are not currently supported. Step '%s' is a loop", titled(at.where), name)
		return Step{ID: name}
	}
	where := fmt.Sprintf("in body step %d%s of %s", i+1, idSuffix(at.node), at.where[len("in "):])
	return p.step(at.in(where), "")
}

// resolveBodies copies the steps that loops name by id into their loops, and
// their text into the loops' source.
func (p *parser) resolveBodies(steps place, w *Workflow) {
	by := newIndex(w)
	for i := range w.Steps {
		loop := w.Steps[i].Loop
		if loop == nil || loop.BodyRef == "" {
			continue
		}
		body := by.step[loop.BodyRef]
		loop.Body = []Step{w.Steps[body]}
		at := steps.index(i)
		begin, end := at.node.Span()
		from, to := at.key("body").node.Span()
		w.Steps[i].Source.Loop = p.canonical[begin:from] + "[" + p.source(steps.index(body)) + "]" + p.canonical[to:end]
	}
}

// condition reads a condition; nil where there is none.
func (p *parser) condition(at place) *condition.Expr {
	if at.node == nil || !p.conditionShape(at) {
		return nil
	}
	return condition.Parse(at.node.Any())
}

// confirmation reads whether a person is asked first: never, always, or under a
// condition.
func (p *parser) confirmation(step place) (confirm *condition.Expr, person bool) {
	confirm = p.requireConfirmation(step.key("requireConfirmation"))
	person = p.choice(step.key("approval"), CodeEnum, "agent", "human") == "human"
	if person && confirm == nil {
		confirm = &condition.Expr{Op: condition.Always}
	}
	return confirm, person
}

func (p *parser) requireConfirmation(at place) *condition.Expr {
	if at.node == nil {
		return nil
	}
	switch at.node.Kind {
	case doc.Bool:
		if at.node.Flag {
			return &condition.Expr{Op: condition.Always}
		}
		return nil
	case doc.Object:
		if expr := p.condition(at); expr != nil {
			return expr
		}
		return &condition.Expr{Op: condition.Always}
	default:
		p.wrongType(at, "true, false or a condition")
		return nil
	}
}

// conditionShape checks a condition at every depth. The words for its place are
// those of the whole condition.
func (p *parser) conditionShape(at place) bool {
	if at.node.Kind != doc.Object {
		p.wrongType(at, "a condition such as {\"var\": \"done\", \"equals\": true}")
		return false
	}
	before := len(p.found)
	known := []string{
		"var", "equals", "not_equals", "gt", "gte", "lt", "lte",
		"contains", "startsWith", "endsWith", "matches", "and", "or", "not",
	}
	named := at
	named.where = "in " + topName(at.name) + " " + at.where
	p.closed(named, unknownOperator(at.node), known)
	for i := range at.node.Members {
		m := &at.node.Members[i]
		part := at.key(m.Key)
		part.name = at.name + "." + m.Key
		switch m.Key {
		case "var", "contains", "startsWith", "endsWith", "matches":
			p.text(part, 0, 0)
		case "gt", "gte", "lt", "lte":
			if m.Value.Kind != doc.Number {
				p.wrongType(part, "a number")
			}
		case "not":
			p.conditionShape(part)
		case "and", "or":
			if p.array(part, "a list of conditions") {
				for j := range m.Value.Items {
					p.conditionShape(part.index(j))
				}
			}
		}
	}
	return len(p.found) == before
}

// topName is the field that a condition belongs to.
func topName(name string) string {
	for i := range len(name) {
		if name[i] == '.' || name[i] == '[' {
			return name[:i]
		}
	}
	return name
}

// unknownOperator says what to write in place of an operator that other
// languages have.
func unknownOperator(n *doc.Node) string {
	if n.Get("in") != nil {
		return `there is no 'in': write {"or": [{"var": "v", "equals": "a"}, {"var": "v", "equals": "b"}]}`
	}
	if n.Get("exists") != nil {
		return `there is no 'exists': write {"var": "v", "not_equals": null}`
	}
	return ""
}
