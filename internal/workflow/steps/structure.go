package steps

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway/internal/platform/lists"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
	"github.com/guideway-dev/guideway/internal/workflow/shape"
)

// checkStructure checks the rules that a schema cannot express: IDs, bodies by ID, calls.
func (p *parser) checkStructure(at shape.Place, w *Workflow) {
	nodes := at.Node.Get("steps")
	if nodes == nil || nodes.Kind != doc.Array {
		return
	}
	steps, by := at.Key("steps"), newIndex(w)
	p.checkDuplicateIDs(steps, w)
	p.checkBodies(steps, w, by)
	for i := range w.Steps {
		p.checkStepCalls(steps.Index(i), w, i, by)
	}
}

// stepIndex indexes top-level steps.
type stepIndex struct {
	// step maps an ID to the index of the first step that has it. loop maps the ID of a
	// step to the index of the first loop whose body is that step.
	step, loop map[string]int
}

// newIndex returns the index of a workflow.
func newIndex(w *Workflow) stepIndex {
	by := stepIndex{step: make(map[string]int, len(w.Steps)), loop: map[string]int{}}
	for i := range w.Steps {
		setFirst(by.step, w.Steps[i].ID, i)
		if loop := w.Steps[i].Loop; loop != nil {
			setFirst(by.loop, loop.BodyRef, i)
		}
	}
	return by
}

// setFirst records the first index of a name.
func setFirst(numbers map[string]int, name string, i int) {
	if _, ok := numbers[name]; !ok && name != "" {
		numbers[name] = i
	}
}

// checkDuplicateIDs reports duplicate IDs of steps, including bodies.
func (p *parser) checkDuplicateIDs(steps shape.Place, w *Workflow) {
	seen := map[string]int{}
	for i := range w.Steps {
		p.checkDuplicateID(steps.Index(i), "", seen)
		if loop := w.Steps[i].Loop; loop != nil && len(loop.Body) > 0 {
			body := steps.Index(i).Key("body")
			for j := range loop.Body {
				p.checkDuplicateID(body.Index(j), " in loop body", seen)
			}
		}
	}
}

// checkDuplicateID reports an ID that was seen before.
func (p *parser) checkDuplicateID(step shape.Place, where string, seen map[string]int) {
	id := stepID(step.Node)
	if id == "" {
		return
	}
	if line, ok := seen[id]; ok {
		fix := "give each step a unique id"
		if line > 0 {
			fix = fmt.Sprintf("give each step a unique id; the first step with this id is on line %d", line)
		}
		p.Errorf(step.Key("id"), CodeDuplicateID, fix, "Duplicate step ID '%s'%s", id, where)
		return
	}
	seen[id] = step.Key("id").Line
}

// checkBodies checks loops whose body is the ID of a step.
func (p *parser) checkBodies(steps shape.Place, w *Workflow, by stepIndex) {
	for i := range w.Steps {
		loop := w.Steps[i].Loop
		if loop == nil || loop.BodyRef == "" && !isEmptyText(steps.Index(i).Node.Get("body")) {
			continue
		}
		body := steps.Index(i).Key("body")
		var target *Step
		if at, ok := by.step[loop.BodyRef]; ok {
			target = &w.Steps[at]
		}
		switch {
		case target == nil:
			fix := "write the id of a top-level step, or the steps themselves as a list"
			fix = p.Guess(loop.BodyRef, func() []string { return stepIDs(w) }, fix)
			p.Errorf(body, CodeBodyMissing, fix, "Loop body references non-existent step '%s' (loop '%s')", loop.BodyRef, w.Steps[i].ID)
		case target.Loop != nil:
			p.Errorf(body, CodeBodyIsLoop, "refer to a step that is not a loop", "Nested loops are not currently supported. Step '%s' is a loop (the body of loop '%s')", loop.BodyRef, w.Steps[i].ID)
		case target.RunCondition != nil:
			p.Errorf(body, CodeBodyCondition, fmt.Sprintf("move the condition to the loop, or write the step into the body as a list: \"body\": [{\"id\": \"%s\", ...}]", target.ID),
				"Step '%s' is a loop body but has runCondition - this may cause conflicts (loop '%s')", target.ID, w.Steps[i].ID)
		}
	}
}

// isEmptyText reports whether the node is an empty text.
func isEmptyText(n *doc.Node) bool {
	return n != nil && n.Kind == doc.String && n.Text == ""
}

// stepIDs returns the IDs of the top-level steps that can be a body.
func stepIDs(w *Workflow) []string {
	var out []string
	for i := range w.Steps {
		if w.Steps[i].Loop == nil && w.Steps[i].ID != "" && len(out) < shape.MaxNames {
			out = append(out, w.Steps[i].ID)
		}
	}
	return out
}

// checkStepCalls checks the calls of a top-level step and of its body.
func (p *parser) checkStepCalls(at shape.Place, w *Workflow, i int, by stepIndex) {
	step := &w.Steps[i]
	scope := [][]Function{step.Functions, w.Functions}
	if loop, ok := by.loop[step.ID]; ok {
		scope = [][]Function{step.Functions, w.Steps[loop].Functions, w.Functions}
	}
	p.checkCalls(at.Key("functionCalls"), step, scope)
	if step.Loop == nil {
		return
	}
	for j := range step.Loop.Body {
		body := &step.Loop.Body[j]
		p.checkCalls(at.Key("body").Index(j).Key("functionCalls"), body, [][]Function{body.Functions, step.Functions, w.Functions})
	}
}

// findFunction returns a function of the scopes, innermost first, or nil.
func findFunction(scope [][]Function, name string) *Function {
	for _, functions := range scope {
		if f := lists.Find(functions, func(f *Function) bool { return f.Name == name }); f != nil {
			return f
		}
	}
	return nil
}

// checkCalls checks calls against the definitions in scope.
func (p *parser) checkCalls(at shape.Place, step *Step, scope [][]Function) {
	if at.Node == nil || at.Node.Kind != doc.Array || len(step.Calls) != len(at.Node.Items) {
		return
	}
	for i, call := range step.Calls {
		one := at.Index(i)
		one.Where = fmt.Sprintf("in %s of step '%s'", one.Name, step.ID)
		f := findFunction(scope, call.Name)
		if f == nil {
			if call.Name != "" {
				p.reportUnknownFunction(one, call.Name, scope)
			}
			continue
		}
		for _, parameter := range f.Parameters {
			p.checkArgument(one, f, parameter)
		}
	}
}

// reportUnknownFunction reports a call of an undefined function.
func (p *parser) reportUnknownFunction(at shape.Place, name string, scope [][]Function) {
	fix := "define the function in functionDefinitions of the workflow, the loop or the step"
	known := func() []string {
		var names []string
		for _, functions := range scope {
			for i := range functions {
				names = append(names, functions[i].Name)
			}
		}
		return names
	}
	p.Errorf(at.Key("name"), CodeFunctionUnknown, p.Guess(name, known, fix), "Unknown function '%s' in functionCalls (%s)", name, at.Where)
}

// checkArgument checks the argument for one parameter.
func (p *parser) checkArgument(call shape.Place, f *Function, parameter Parameter) {
	args := call.Key("args")
	at := args.Key(parameter.Name)
	switch {
	case args.Node == nil || args.Node.Kind != doc.Object:
	case at.Node == nil && parameter.Required && parameter.Default == nil:
		p.Errorf(args, CodeArgumentMissing, fmt.Sprintf("add \"%s\" to args", parameter.Name),
			"Missing required parameter '%s' for function '%s' (%s)", parameter.Name, f.Name, call.Where)
	case at.Node == nil:
	case parameter.Type != "" && at.Node.Kind.String() != parameter.Type:
		p.Errorf(at, CodeArgumentType, "give "+shape.WithArticle(parameter.Type),
			"Invalid type for '%s.%s': expected %s, got %s (%s)", f.Name, parameter.Name, parameter.Type, at.Node.Kind, call.Where)
	case len(parameter.Enum) > 0 && !slices.ContainsFunc(parameter.Enum, func(v any) bool { return reflect.DeepEqual(v, at.Node.Any()) }):
		p.Errorf(at, CodeArgumentValue, "use one of: "+joinValues(parameter.Enum),
			"Invalid value for '%s.%s': expected one of %s, got %s (%s)", f.Name, parameter.Name, joinValues(parameter.Enum), shape.Describe(at.Node), call.Where)
	}
}

// joinValues joins the values for a sentence.
func joinValues(values []any) string {
	words := lists.Map(values, func(v any) string { return fmt.Sprintf("%v", v) })
	return shape.List(words)
}

// readFunctions reads the definitions of functions.
func (p *parser) readFunctions(at shape.Place) []Function {
	if !p.Array(at, "a list of function definitions") {
		return nil
	}
	out := make([]Function, 0, len(at.Node.Items))
	for i := range at.Node.Items {
		out = append(out, p.readFunction(at.Index(i)))
	}
	return out
}

// readFunction reads one definition.
func (p *parser) readFunction(at shape.Place) Function {
	at, ok := p.Element(at, "name", "definition", "parameters", "scope")
	if !ok {
		return Function{}
	}
	p.Require(at, "name", "definition")
	f := Function{
		Name:       p.readIdentifier(at.Key("name")),
		Definition: p.Text(at.Key("definition"), 0, 0),
		Scope:      p.Choice(at.Key("scope"), shape.CodeEnum, "workflow", "loop", "step"),
	}
	parameters := at.Key("parameters")
	if p.Array(parameters, "a list of parameters") {
		for i := range parameters.Node.Items {
			f.Parameters = append(f.Parameters, p.readParameter(parameters.Index(i)))
		}
	}
	return f
}

// readParameter reads one parameter of a function.
func (p *parser) readParameter(at shape.Place) Parameter {
	at, ok := p.Element(at, "name", "type", "required", "description", "enum", "default")
	if !ok {
		return Parameter{}
	}
	p.Require(at, "name", "type")
	out := Parameter{
		Name:        p.readIdentifier(at.Key("name")),
		Type:        p.Choice(at.Key("type"), shape.CodeEnum, "string", "number", "boolean", "array", "object"),
		Required:    p.Flag(at.Key("required")),
		Description: p.Text(at.Key("description"), 0, 0),
	}
	if value := at.Node.Get("default"); value != nil {
		out.Default = value.Any()
	}
	enum := at.Key("enum")
	if !p.Array(enum, "a list of values") {
		return out
	}
	if len(enum.Node.Items) == 0 {
		p.Errorf(enum, shape.CodeEmptyList, "list the allowed values, or remove enum", "Field 'enum' %s is empty.", at.Where)
	}
	for i, item := range enum.Node.Items {
		if item.Kind != doc.String && item.Kind != doc.Number && item.Kind != doc.Bool {
			p.WrongType(enum.Index(i), "a string, a number or a boolean")
		}
		out.Enum = append(out.Enum, item.Any())
	}
	return out
}

// readCalls reads the functions that a step calls.
func (p *parser) readCalls(at shape.Place) []FunctionCall {
	if !p.Array(at, "a list of function calls") {
		return nil
	}
	var out []FunctionCall
	for i := range at.Node.Items {
		call, ok := p.Element(at.Index(i), "name", "args")
		if !ok {
			continue
		}
		p.Require(call, "name", "args")
		args := call.Key("args")
		read := FunctionCall{Name: p.readIdentifier(call.Key("name"))}
		if args.Node != nil && args.Node.Kind != doc.Object {
			p.WrongType(args, "an object")
		} else if args.Node != nil {
			read.Args, _ = args.Node.Any().(map[string]any)
		}
		out = append(out, read)
	}
	return out
}

// readReferences reads the functions that a step mentions, each in the form name().
func (p *parser) readReferences(at shape.Place) []string {
	if !p.Array(at, "a list of function names") {
		return nil
	}
	out := make([]string, 0, len(at.Node.Items))
	for i, item := range at.Node.Items {
		one := at.Index(i)
		text := p.Text(one, 0, 0)
		out = append(out, text)
		if item.Kind == doc.String && !isReference(text) {
			fix := "write the function's name and an empty pair of parentheses, such as checkBuild()"
			if shape.IsIdentifier(text) {
				fix = fmt.Sprintf("write '%s()'", text)
			}
			p.Errorf(one, shape.CodePattern, fix, "Field '%s' %s has the value %s; a reference is a name with parentheses.", one.Name, one.Where, shape.Quote(text))
		}
	}
	return out
}

// isReference reports whether the text is a name with empty parentheses.
func isReference(text string) bool {
	name, ok := strings.CutSuffix(text, "()")
	return ok && shape.IsIdentifier(name)
}
