package steps

import (
	"fmt"
	"reflect"

	"github.com/guideway-dev/guideway/internal/definition/doc"
)

// structure checks what the schema cannot say: ids, bodies by id, calls.
func (p *parser) structure(at place, w *Workflow) {
	nodes := at.node.Get("steps")
	if nodes == nil || nodes.Kind != doc.Array {
		return
	}
	steps, by := at.key("steps"), newIndex(w)
	p.duplicateIDs(steps, w)
	p.bodies(steps, w, by)
	for i := range w.Steps {
		p.stepCalls(steps.index(i), w, i, by)
	}
}

// index finds top-level steps.
type index struct {
	// step has the first step of each id, loop the first loop whose body is the
	// step of that id.
	step, loop map[string]int
}

// newIndex makes the index of a workflow.
func newIndex(w *Workflow) index {
	by := index{step: make(map[string]int, len(w.Steps)), loop: map[string]int{}}
	for i := range w.Steps {
		note(by.step, w.Steps[i].ID, i)
		if loop := w.Steps[i].Loop; loop != nil {
			note(by.loop, loop.BodyRef, i)
		}
	}
	return by
}

// note keeps the first number of a name.
func note(numbers map[string]int, name string, i int) {
	if _, ok := numbers[name]; !ok && name != "" {
		numbers[name] = i
	}
}

// duplicateIDs reports ids that two steps share, bodies included.
func (p *parser) duplicateIDs(steps place, w *Workflow) {
	seen := map[string]int{}
	for i := range w.Steps {
		p.duplicateID(steps.index(i), "", seen)
		if loop := w.Steps[i].Loop; loop != nil && len(loop.Body) > 0 {
			body := steps.index(i).key("body")
			for j := range loop.Body {
				p.duplicateID(body.index(j), " in loop body", seen)
			}
		}
	}
}

// duplicateID reports an id that was seen before.
func (p *parser) duplicateID(step place, where string, seen map[string]int) {
	id := stepID(step.node)
	if id == "" {
		return
	}
	if line, ok := seen[id]; ok {
		fix := "give each step an id of its own"
		if line > 0 {
			fix = fmt.Sprintf("give each step an id of its own; the first stands on line %d", line)
		}
		p.errorf(step.key("id"), CodeDuplicateID, fix, "Duplicate step ID '%s'%s", id, where)
		return
	}
	seen[id] = step.key("id").line
}

// bodies checks the loops whose body is the id of a step.
func (p *parser) bodies(steps place, w *Workflow, by index) {
	for i := range w.Steps {
		loop := w.Steps[i].Loop
		if loop == nil || loop.BodyRef == "" && !isEmptyText(steps.index(i).node.Get("body")) {
			continue
		}
		body := steps.index(i).key("body")
		var target *Step
		if at, ok := by.step[loop.BodyRef]; ok {
			target = &w.Steps[at]
		}
		switch {
		case target == nil:
			fix := "write the id of a top-level step, or the steps themselves as a list"
			if guess := p.guess(loop.BodyRef, func() []string { return ids(w) }); guess != "" {
				fix = fmt.Sprintf("did you mean '%s'?", guess)
			}
			p.errorf(body, CodeBodyMissing, fix, "Loop body references non-existent step '%s' (loop '%s')", loop.BodyRef, w.Steps[i].ID)
		case target.Loop != nil:
			p.errorf(body, CodeBodyIsLoop, "name a step that is no loop", "Nested loops are not currently supported. Step '%s' is a loop (the body of loop '%s')", loop.BodyRef, w.Steps[i].ID)
		case target.RunCondition != nil:
			p.errorf(body, CodeBodyCondition, fmt.Sprintf("move the condition to the loop, or write the step into the body as a list: \"body\": [{\"id\": \"%s\", ...}]", target.ID),
				"Step '%s' is a loop body but has runCondition - this may cause conflicts (loop '%s')", target.ID, w.Steps[i].ID)
		}
	}
}

// guess is the closest of names that are many, unless nobody will read it.
func (p *parser) guess(name string, known func() []string) string {
	if p.full() {
		return ""
	}
	return closest(name, known())
}

// isEmptyText says whether the node is a text without characters.
func isEmptyText(n *doc.Node) bool {
	return n != nil && n.Kind == doc.String && n.Text == ""
}

// ids gives the ids of the top-level steps that can be a body.
func ids(w *Workflow) []string {
	var out []string
	for i := range w.Steps {
		if w.Steps[i].Loop == nil && w.Steps[i].ID != "" && len(out) < maxNames {
			out = append(out, w.Steps[i].ID)
		}
	}
	return out
}

// stepCalls checks the calls of a top-level step and of its body.
func (p *parser) stepCalls(at place, w *Workflow, i int, by index) {
	step := &w.Steps[i]
	scope := [][]Function{step.Functions, w.Functions}
	if loop, ok := by.loop[step.ID]; ok {
		scope = [][]Function{step.Functions, w.Steps[loop].Functions, w.Functions}
	}
	p.checkCalls(at.key("functionCalls"), step, scope)
	if step.Loop == nil {
		return
	}
	for j := range step.Loop.Body {
		body := &step.Loop.Body[j]
		p.checkCalls(at.key("body").index(j).key("functionCalls"), body, [][]Function{body.Functions, step.Functions, w.Functions})
	}
}

// lookup finds a function in the scopes, innermost first.
func lookup(scope [][]Function, name string) *Function {
	for _, functions := range scope {
		for i := range functions {
			if functions[i].Name == name {
				return &functions[i]
			}
		}
	}
	return nil
}

// checkCalls checks calls against the definitions in scope.
func (p *parser) checkCalls(at place, step *Step, scope [][]Function) {
	if at.node == nil || at.node.Kind != doc.Array || len(step.Calls) != len(at.node.Items) {
		return
	}
	for i, call := range step.Calls {
		one := at.index(i)
		one.where = fmt.Sprintf("in %s of step '%s'", one.name, step.ID)
		f := lookup(scope, call.Name)
		if f == nil {
			if call.Name != "" {
				p.unknownFunction(one, call.Name, scope)
			}
			continue
		}
		for _, parameter := range f.Parameters {
			p.argument(one, f, parameter)
		}
	}
}

// unknownFunction reports a call of what is not defined.
func (p *parser) unknownFunction(at place, name string, scope [][]Function) {
	fix := "define it in functionDefinitions of the workflow, the loop or the step"
	known := func() []string {
		var names []string
		for _, functions := range scope {
			for i := range functions {
				names = append(names, functions[i].Name)
			}
		}
		return names
	}
	if guess := p.guess(name, known); guess != "" {
		fix = fmt.Sprintf("did you mean '%s'?", guess)
	}
	p.errorf(at.key("name"), CodeFunctionUnknown, fix, "Unknown function '%s' in functionCalls (%s)", name, at.where)
}

// argument checks what a call gives for one parameter.
func (p *parser) argument(call place, f *Function, parameter Parameter) {
	args := call.key("args")
	at := args.key(parameter.Name)
	switch {
	case args.node == nil || args.node.Kind != doc.Object:
	case at.node == nil && parameter.Required && parameter.Default == nil:
		p.errorf(args, CodeArgumentMissing, fmt.Sprintf("add \"%s\" to args", parameter.Name),
			"Missing required parameter '%s' for function '%s' (%s)", parameter.Name, f.Name, call.where)
	case at.node == nil:
	case parameter.Type != "" && at.node.Kind.String() != parameter.Type:
		p.errorf(at, CodeArgumentType, "give "+withArticle(parameter.Type),
			"Invalid type for '%s.%s': expected %s, got %s (%s)", f.Name, parameter.Name, parameter.Type, at.node.Kind, call.where)
	case len(parameter.Enum) > 0 && !contains(parameter.Enum, at.node.Any()):
		p.errorf(at, CodeArgumentValue, "give one of: "+listed(parameter.Enum),
			"Invalid value for '%s.%s': expected one of %s (%s)", f.Name, parameter.Name, listed(parameter.Enum), call.where)
	}
}

// withArticle puts an article before a type.
func withArticle(kind string) string {
	if kind == "array" || kind == "object" {
		return "an " + kind
	}
	return "a " + kind
}

// contains says whether the value is in the list.
func contains(values []any, value any) bool {
	for _, v := range values {
		if reflect.DeepEqual(v, value) {
			return true
		}
	}
	return false
}

// listed writes the values for a sentence.
func listed(values []any) string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = fmt.Sprintf("%v", v)
	}
	return list(words)
}
