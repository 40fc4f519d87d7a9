package steps

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
	exprpkg "github.com/guideway-dev/guideway/internal/workflow/expr"
	"github.com/guideway-dev/guideway/internal/workflow/shape"
	"github.com/guideway-dev/guideway/internal/workflow/toolpolicy"
)

// maxRounds is the maximum of maxIterations and of a literal count.
const maxRounds = 1000

// readLoopStep reads a loop.
func (p *parser) readLoopStep(at shape.Place) Step {
	p.Closed(at, "a loop does not support this property: set it on a step of its body", []string{
		"id", "type", "title", "prompt", "loop", "body", "functionDefinitions", "requireConfirmation", "approval", "runCondition", "tools",
	})
	p.Require(at, "id", "title", "loop", "body")
	p.checkLoopType(at)
	loop := p.readLoop(at.Key("loop"), at)
	p.readBody(at.Key("body"), loop)
	confirm, person, approval := p.readConfirmation(at)
	return Step{
		ID:           p.readID(at.Key("id")),
		Title:        p.Text(at.Key("title"), 1, 128),
		Prompt:       p.Text(at.Key("prompt"), 1, 8192),
		Functions:    p.readFunctions(at.Key("functionDefinitions")),
		Confirm:      confirm,
		Person:       person,
		Approval:     approval,
		RunCondition: p.readCondition(at.Key("runCondition")),
		Tools:        toolpolicy.Read(&p.Report, at.Key("tools")),
		Loop:         loop,
		Source: Source{
			Loop:      p.Source(at),
			Confirm:   p.Source(at.Key("requireConfirmation")),
			Condition: p.Source(at.Key("runCondition")),
		},
	}
}

// checkLoopType checks that a loop has the type "loop".
func (p *parser) checkLoopType(at shape.Place) {
	const fix = `add "type": "loop"`
	kind := at.Key("type")
	switch {
	case kind.Node == nil:
		p.Errorf(at, shape.CodeRequired, fix, "Missing required field 'type' %s. This field is mandatory and must be provided.", at.Where)
	case kind.Node.Kind != doc.String || kind.Node.Text != "loop":
		p.Errorf(kind, shape.CodeEnum, `write "type": "loop" in the step, and while, until, for or forEach as the type inside "loop"`,
			"Field 'type' %s must be 'loop', but it is %s.", at.Where, shape.Describe(kind.Node))
	}
}

// readLoop reads the configuration of a loop.
func (p *parser) readLoop(at, step shape.Place) *Loop {
	loop := &Loop{IterationVar: "currentIteration", ItemVar: "currentItem", IndexVar: "currentIndex"}
	if at.Node == nil {
		return loop
	}
	if at.Node.Kind != doc.Object {
		p.WrongType(at, "an object")
		return loop
	}
	p.Closed(at, "", []string{"type", "condition", "items", "count", "maxIterations", "iterationVar", "itemVar", "indexVar"})
	p.Require(at, "type")
	p.readLoopType(at, loop)
	loop.MaxIterations = p.readMaxIterations(at)
	loop.Condition = p.readCondition(at.Key("condition"))
	p.readCount(at.Key("count"), loop)
	p.readItems(at.Key("items"), loop)
	p.readVariableName(at.Key("iterationVar"), &loop.IterationVar)
	p.readVariableName(at.Key("itemVar"), &loop.ItemVar)
	p.readVariableName(at.Key("indexVar"), &loop.IndexVar)
	return loop
}

// readVariableName reads the optional name of one of the loop's variables.
func (p *parser) readVariableName(at shape.Place, name *string) {
	if text := p.readIdentifier(at); text != "" {
		*name = text
	}
}

// readLoopType reads the type and checks that its required members exist.
func (p *parser) readLoopType(at shape.Place, loop *Loop) {
	kind := at.Key("type")
	if kind.Node == nil {
		return
	}
	if kind.Node.Kind != doc.String {
		p.WrongType(kind, "a string")
		return
	}
	loop.Type = LoopType(kind.Node.Text)
	subject := shape.CapitalWhere(at.Where)
	switch loop.Type {
	case LoopWhile, LoopUntil:
		if at.Node.Get("condition") == nil {
			p.Errorf(at, CodeLoopCondition, `add "condition": {"var": "...", "equals": ...}`, "%s: %s loop requires a condition", subject, loop.Type)
		}
	case LoopFor:
		if at.Node.Get("count") == nil {
			p.Errorf(at, CodeLoopCount, `add "count": a number, or the name of a variable that holds one`, "%s: for loop requires a count", subject)
		}
	case LoopForEach:
		if at.Node.Get("items") == nil {
			p.Errorf(at, CodeLoopItems, `add "items": the name of a variable that holds a list`, "%s: forEach loop requires items", subject)
		}
	default:
		fix := p.Suggest(kind.Node.Text, []string{"while", "until", "for", "forEach"}, "write one of: while, until, for, forEach")
		p.Errorf(kind, CodeLoopType, fix, "%s: Invalid loop type %s. Must be one of: while, until, for, forEach", subject, shape.Quote(kind.Node.Text))
	}
}

// readMaxIterations reads the maximum of the loop. It rounds a fraction up: a loop that
// counts rounds while they are below the fraction has that many rounds.
func (p *parser) readMaxIterations(loop shape.Place) int {
	at, subject := loop.Key("maxIterations"), shape.CapitalWhere(loop.Where)
	switch {
	case at.Node == nil:
		p.Errorf(loop, shape.CodeRequired, `add "maxIterations": a number from 1 to 1000 that the loop never needs to reach`,
			"Missing required field 'maxIterations' %s. This field is mandatory and must be provided.", loop.Where)
	case at.Node.Kind != doc.Number:
		p.WrongType(at, "a number")
	case at.Node.Num <= 0:
		p.Errorf(at, CodeLoopMax, "write a number from 1 to 1000", "%s: maxIterations must be a positive number, but it is %s", subject, at.Node.Text)
	case at.Node.Num < 1:
		p.Errorf(at, CodeLoopMax, "write a number from 1 to 1000", "%s: maxIterations must be at least 1, but it is %s", subject, at.Node.Text)
	case at.Node.Num > maxRounds:
		p.Errorf(at, CodeLoopMax, "write a number from 1 to 1000", "%s: maxIterations (%s) exceeds safety limit of 1000", subject, at.Node.Text)
	default:
		return int(math.Ceil(at.Node.Num))
	}
	return 0
}

// readCount reads a literal count or the name of its variable.
func (p *parser) readCount(at shape.Place, loop *Loop) {
	if at.Node == nil {
		return
	}
	subject := shape.CapitalWhere(at.Where)
	switch {
	case at.Node.Kind == doc.String && at.Node.Text != "":
		loop.CountVar = at.Node.Text
	case at.Node.Kind == doc.String && loop.Type == LoopFor:
		p.Errorf(at, CodeVariableEmpty, "write a number, or the name of a variable that holds one", "%s: for loop requires a count, but it is empty", subject)
	case at.Node.Kind == doc.String:
	case at.Node.Kind != doc.Number:
		p.Errorf(at, shape.CodeType, "write a number from 0 to 1000, or the name of a variable that holds one",
			"%s: for loop count must be a positive number or context variable name, but it is %s", subject, shape.Describe(at.Node))
	case at.Node.Num < 0 || at.Node.Num > maxRounds:
		p.Errorf(at, shape.CodeRange, "write a number from 0 to 1000, or the name of a variable that holds one",
			"%s: for loop count must be a positive number or context variable name; %s is outside 0 to 1000", subject, at.Node.Text)
	default:
		loop.Count = int(math.Ceil(at.Node.Num))
	}
}

// readItems reads the name of the variable with the list of a forEach loop.
func (p *parser) readItems(at shape.Place, loop *Loop) {
	loop.Items = p.Text(at, 0, 0)
	if at.Node != nil && at.Node.Kind == doc.String && loop.Items == "" && loop.Type == LoopForEach {
		p.Errorf(at, CodeVariableEmpty, "write the name of a variable that holds a list", "%s: forEach loop requires items, but the name is empty", shape.CapitalWhere(at.Where))
	}
}

// readBody reads the steps of a round, or the ID of a top-level step.
func (p *parser) readBody(at shape.Place, loop *Loop) {
	if at.Node == nil {
		return
	}
	switch at.Node.Kind {
	case doc.String:
		loop.BodyRef = at.Node.Text
	case doc.Array:
		if len(at.Node.Items) == 0 {
			p.Errorf(at, shape.CodeEmptyList, "add a step with id, title and prompt, or write the id of a top-level step", "%s: Loop body array cannot be empty", shape.CapitalWhere(at.Where))
		}
		loop.Body = make([]Step, 0, len(at.Node.Items))
		for i := range at.Node.Items {
			loop.Body = append(loop.Body, p.readBodyStep(at.Index(i), i))
		}
	default:
		p.Errorf(at, shape.CodeType, "write a list of steps, or the id of a top-level step",
			"%s: the body must be a list of steps or the id of a step, but it is %s", shape.CapitalWhere(at.Where), shape.Describe(at.Node))
	}
}

// readBodyStep reads a step of an inline body. A nested loop is reported as a single error.
func (p *parser) readBodyStep(at shape.Place, i int) Step {
	if at.Node.Kind == doc.Object && isLoop(at.Node) {
		name := cmp.Or(stepID(at.Node), at.Name)
		p.Errorf(at, CodeNested, "move the inner loop to the top level, or write its steps into this body",
			"%s: Nested loops are not currently supported. Step '%s' is a loop", shape.CapitalWhere(at.Where), name)
		return Step{ID: name}
	}
	where := fmt.Sprintf("in body step %d%s of %s", i+1, idSuffix(at.Node), at.Where[len("in "):])
	return p.readStep(at.In(where), "")
}

// resolveBodies copies each step that a loop names as its body into the loop, and the JSON
// of the step into the source of the loop.
func (p *parser) resolveBodies(steps shape.Place, w *Workflow) {
	by := newIndex(w)
	for i := range w.Steps {
		loop := w.Steps[i].Loop
		if loop == nil || loop.BodyRef == "" {
			continue
		}
		body := by.step[loop.BodyRef]
		loop.Body = []Step{w.Steps[body]}
		at := steps.Index(i)
		begin, end := at.Node.Span()
		from, to := at.Key("body").Node.Span()
		w.Steps[i].Source.Loop = p.Canonical[begin:from] + "[" + p.Source(steps.Index(body)) + "]" + p.Canonical[to:end]
	}
}

// readCondition reads a condition; it returns nil if none exists.
func (p *parser) readCondition(at shape.Place) *exprpkg.Expr {
	if at.Node == nil || !p.checkCondition(at) {
		return nil
	}
	return exprpkg.Parse(at.Node.Any())
}

// readConfirmation reads when a person must confirm: never, always, or under a condition.
func (p *parser) readConfirmation(step shape.Place) (confirm *exprpkg.Expr, person bool, approval *guideway.Approval) {
	confirm = p.readRequireConfirmation(step.Key("requireConfirmation"))
	person, approval = p.Approval(step.Key("approval"))
	if person && confirm == nil {
		confirm = &exprpkg.Expr{Op: exprpkg.Always}
	}
	return confirm, person, approval
}

func (p *parser) readRequireConfirmation(at shape.Place) *exprpkg.Expr {
	if at.Node == nil {
		return nil
	}
	switch at.Node.Kind {
	case doc.Bool:
		if at.Node.Flag {
			return &exprpkg.Expr{Op: exprpkg.Always}
		}
		return nil
	case doc.Object:
		if expr := p.readCondition(at); expr != nil {
			return expr
		}
		return &exprpkg.Expr{Op: exprpkg.Always}
	default:
		p.WrongType(at, "true, false or a condition")
		return nil
	}
}

// checkCondition checks a condition at every depth. Diagnostics name the location of the
// whole condition.
func (p *parser) checkCondition(at shape.Place) bool {
	if at.Node.Kind != doc.Object {
		p.WrongType(at, "a condition such as {\"var\": \"done\", \"equals\": true}")
		return false
	}
	before := len(p.Found)
	known := []string{
		"var", "equals", "not_equals", "gt", "gte", "lt", "lte",
		"contains", "startsWith", "endsWith", "matches", "and", "or", "not",
	}
	named := at
	named.Where = "in " + topName(at.Name) + " " + at.Where
	p.Closed(named, unknownOperator(at.Node), known)
	for i := range at.Node.Members {
		m := &at.Node.Members[i]
		part := at.Key(m.Key)
		part.Name = at.Name + "." + m.Key
		switch m.Key {
		case "var", "contains", "startsWith", "endsWith", "matches":
			p.Text(part, 0, 0)
		case "gt", "gte", "lt", "lte":
			if m.Value.Kind != doc.Number {
				p.WrongType(part, "a number")
			}
		case "not":
			p.checkCondition(part)
		case "and", "or":
			if p.Array(part, "a list of conditions") {
				for j := range m.Value.Items {
					p.checkCondition(part.Index(j))
				}
			}
		}
	}
	return len(p.Found) == before
}

// topName returns the field that contains a condition.
func topName(name string) string {
	if end := strings.IndexAny(name, ".["); end >= 0 {
		return name[:end]
	}
	return name
}

// unknownOperator returns the fix for an operator that exists in other languages.
func unknownOperator(n *doc.Node) string {
	if n.Get("in") != nil {
		return `the operator 'in' is not supported: write {"or": [{"var": "v", "equals": "a"}, {"var": "v", "equals": "b"}]}`
	}
	if n.Get("exists") != nil {
		return `the operator 'exists' is not supported: write {"var": "v", "not_equals": null}`
	}
	return ""
}
