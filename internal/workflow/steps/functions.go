package steps

import (
	"fmt"
	"strings"

	"github.com/guideway-dev/guideway/internal/workflow/doc"
	"github.com/guideway-dev/guideway/internal/workflow/shape"
)

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
