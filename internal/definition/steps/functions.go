package steps

import (
	"fmt"
	"strings"

	"github.com/guideway-dev/guideway/internal/definition/doc"
)

// functions reads the definitions of functions.
func (p *parser) functions(at place) []Function {
	if !p.array(at, "a list of function definitions") {
		return nil
	}
	out := make([]Function, 0, len(at.node.Items))
	for i := range at.node.Items {
		out = append(out, p.function(at.index(i)))
	}
	return out
}

// function reads one definition.
func (p *parser) function(at place) Function {
	at, ok := p.element(at, "name", "definition", "parameters", "scope")
	if !ok {
		return Function{}
	}
	p.require(at, "name", "definition")
	f := Function{
		Name:       p.identifier(at.key("name")),
		Definition: p.text(at.key("definition"), 0, 0),
		Scope:      p.choice(at.key("scope"), CodeEnum, "workflow", "loop", "step"),
	}
	parameters := at.key("parameters")
	if p.array(parameters, "a list of parameters") {
		for i := range parameters.node.Items {
			f.Parameters = append(f.Parameters, p.parameter(parameters.index(i)))
		}
	}
	return f
}

// parameter reads one parameter of a function.
func (p *parser) parameter(at place) Parameter {
	at, ok := p.element(at, "name", "type", "required", "description", "enum", "default")
	if !ok {
		return Parameter{}
	}
	p.require(at, "name", "type")
	out := Parameter{
		Name:        p.identifier(at.key("name")),
		Type:        p.choice(at.key("type"), CodeEnum, "string", "number", "boolean", "array", "object"),
		Required:    p.flag(at.key("required")),
		Description: p.text(at.key("description"), 0, 0),
	}
	if value := at.node.Get("default"); value != nil {
		out.Default = value.Any()
	}
	enum := at.key("enum")
	if !p.array(enum, "a list of values") {
		return out
	}
	if len(enum.node.Items) == 0 {
		p.errorf(enum, CodeEmptyList, "list the allowed values, or leave enum out", "Field 'enum' %s is empty.", at.where)
	}
	for i, item := range enum.node.Items {
		if item.Kind != doc.String && item.Kind != doc.Number && item.Kind != doc.Bool {
			p.wrongType(enum.index(i), "a string, a number or a boolean")
		}
		out.Enum = append(out.Enum, item.Any())
	}
	return out
}

// calls reads the functions that a step calls.
func (p *parser) calls(at place) []FunctionCall {
	if !p.array(at, "a list of function calls") {
		return nil
	}
	var out []FunctionCall
	for i := range at.node.Items {
		call, ok := p.element(at.index(i), "name", "args")
		if !ok {
			continue
		}
		p.require(call, "name", "args")
		args := call.key("args")
		read := FunctionCall{Name: p.identifier(call.key("name"))}
		if args.node != nil && args.node.Kind != doc.Object {
			p.wrongType(args, "an object")
		} else if args.node != nil {
			read.Args, _ = args.node.Any().(map[string]any)
		}
		out = append(out, read)
	}
	return out
}

// references reads the functions that a step mentions, each written as name().
func (p *parser) references(at place) []string {
	if !p.array(at, "a list of function names") {
		return nil
	}
	out := make([]string, 0, len(at.node.Items))
	for i, item := range at.node.Items {
		one := at.index(i)
		text := p.text(one, 0, 0)
		out = append(out, text)
		if item.Kind == doc.String && !isReference(text) {
			fix := "write the function's name and an empty pair of brackets, such as checkBuild()"
			if isIdentifier(text) {
				fix = fmt.Sprintf("write '%s()'", text)
			}
			p.errorf(one, CodePattern, fix, "Field '%s' %s has the value %s; a reference is a name with brackets.", one.name, one.where, quote(text))
		}
	}
	return out
}

// isReference says whether the text is a name with an empty pair of brackets.
func isReference(text string) bool {
	name, ok := strings.CutSuffix(text, "()")
	return ok && isIdentifier(name)
}
