package mcp

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"github.com/guideway-dev/guideway/internal/platform/lists"
	"github.com/guideway-dev/guideway/internal/run"
)

// param is one parameter of a tool.
type param struct {
	// Use is the key of a shared parameter in tools.json.
	Use               string
	Name, Description string
	Kind              valueKind
	Required          bool
	// AcceptsNumber accepts a number in place of a string: 1 for "1".
	AcceptsNumber bool
	// AcceptsJSON accepts any value in place of a string: true for "true".
	AcceptsJSON bool
	Enum        []string
	// Members are the allowed members of an object; nil allows any.
	Members []param
	// MaxLength bounds a string in characters; 0 is maxText.
	MaxLength int
	// Example is used in the call that an error suggests.
	Example any
	// Form makes a suggested call ask for the parameter in a field instead of adding an
	// example, for a value that only the caller can know.
	Form bool
}

// valueKind is the kind of a parameter, or of a member of an answer.
type valueKind string

const (
	kindString  valueKind = "string"
	kindStrings valueKind = "list of strings"
	kindObject  valueKind = "object"
	kindBool    valueKind = "boolean"
	kindInteger valueKind = "integer"
	kindNumber  valueKind = "number"

	// These are kinds of members of an answer only.
	kindObjects      valueKind = "list of objects"
	kindList         valueKind = "array"
	kindObjectOrNull valueKind = "object or null"
)

func (k valueKind) jsonSchema() map[string]any {
	switch k {
	case kindStrings:
		return map[string]any{"type": "array", "items": kindString.jsonSchema()}
	case kindObjects:
		return map[string]any{"type": "array", "items": kindObject.jsonSchema()}
	case kindObjectOrNull:
		return map[string]any{"anyOf": []any{kindObject.jsonSchema(), map[string]any{"type": "null"}}}
	default:
		return map[string]any{"type": string(k)}
	}
}

const (
	// maxText bounds a string argument without a maxLength, in characters.
	maxText = 1 << 18
	// maxList bounds every list argument. It leaves room for completedSteps of a workflow
	// with thousands of loop rounds.
	maxList = 100_000
	// maxDepth bounds the nesting of every object argument. A definition has up to 64
	// levels, and the server nests loop variables under additional keys of a context: a client
	// must be able to send back every context that it received.
	maxDepth = 80
)

func (p param) jsonSchema() map[string]any {
	s := p.Kind.jsonSchema()
	if p.Members != nil {
		s = inputSchema(p.Members)
	}
	if p.Description != "" {
		s["description"] = p.Description
	}
	if p.Enum != nil {
		s["enum"] = p.Enum
	}
	return s
}

func inputSchema(params []param) map[string]any {
	properties := make(map[string]any, len(params))
	required := []string{}
	for _, p := range params {
		properties[p.Name] = p.jsonSchema()
		if p.Required {
			required = append(required, p.Name)
		}
	}
	s := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

// arguments are the arguments of a call, checked against the tool's parameters.
type arguments map[string]any

func (a arguments) textArg(name string) string {
	s, _ := a[name].(string)
	return s
}

func (a arguments) textsArg(name string) []string {
	list, _ := a[name].([]any)
	out := make([]string, len(list))
	for i, v := range list {
		out[i], _ = v.(string)
	}
	return out
}

// boolArg returns a flag, or false if it is absent.
func (a arguments) boolArg(name string) bool {
	b, _ := a[name].(bool)
	return b
}

// intArg returns a whole number, or 0 if it is absent.
func (a arguments) intArg(name string) int64 {
	n, _ := a[name].(json.Number)
	i, _ := n.Int64()
	return i
}

// floatArg returns a number, or 0 if it is absent.
func (a arguments) floatArg(name string) float64 {
	n, _ := a[name].(json.Number)
	f, _ := n.Float64()
	return f
}

// isBelow reports whether a number is present and less than least.
func (a arguments) isBelow(name string, least float64) bool {
	_, given := a[name]
	return given && a.floatArg(name) < least
}

// membersArg returns an object with checked members, or nil if it is absent.
func (a arguments) membersArg(name string) arguments { return a.objectArg(name) }

func (a arguments) objectArg(name string) map[string]any {
	m, _ := a[name].(map[string]any)
	return m
}

// readArguments decodes and checks the arguments of a call to t. An error suggests a
// corrected call.
func readArguments(t *tool, raw json.RawMessage) (arguments, error) {
	in := arguments{}
	if len(raw) > 0 && string(raw) != "null" {
		value, _ := jsontext.Parse(raw)
		object, ok := value.(map[string]any)
		if !ok {
			return nil, t.badCall(nil, "", "the arguments are not a JSON object")
		}
		in = object
	}
	for _, name := range sortedKeys(in) {
		if findParam(t.Params, name) == nil {
			return nil, t.unknownParam(in, name)
		}
	}
	for _, p := range t.Params {
		v, given := in[p.Name]
		if !given || v == nil {
			if p.Required {
				return nil, t.badCall(in, p.Name, p.Name+" parameter is required")
			}
			delete(in, p.Name)
			continue
		}
		if _, isNumber := v.(json.Number); isNumber && p.AcceptsNumber || p.AcceptsJSON {
			v = cmp.Or(valueText(v), v)
			in[p.Name] = v
		}
		if message := p.checkValue(v); message != "" {
			err := t.badCall(in, p.Name, message)
			if p.Enum != nil {
				err.Allowed = p.Enum
			}
			if s, ok := v.(string); ok && p.Kind != kindString && strings.ContainsAny(s, "[{") {
				err.Fix = "send a JSON value, not a string that contains JSON"
			}
			return nil, err
		}
	}
	return in, nil
}

// checkValue returns an error message about a value, or "" if the value is valid.
func (p param) checkValue(v any) string {
	wrongType := ""
	switch p.Kind {
	case kindString:
		if s, ok := v.(string); ok {
			return p.checkText(s)
		}
		wrongType = "a string"
	case kindStrings:
		if list, ok := v.([]any); ok {
			return p.checkTexts(list)
		}
		wrongType = "a list of strings"
	case kindObject:
		if m, ok := v.(map[string]any); ok {
			return p.checkObject(m)
		}
		wrongType = "an object"
	case kindBool:
		if _, ok := v.(bool); ok {
			return ""
		}
		wrongType = "true or false"
	case kindInteger, kindNumber:
		if n, ok := v.(json.Number); ok {
			return p.checkNumber(n)
		}
		wrongType = "a number"
		if p.Kind == kindInteger {
			wrongType = "a whole number"
		}
	}
	return fmt.Sprintf("%s must be %s, not %s", p.Name, wrongType, jsonType(v))
}

func (p param) checkNumber(n json.Number) string {
	_, err := n.Int64()
	if p.Kind == kindInteger && err != nil && !errors.Is(err, strconv.ErrRange) {
		return p.Name + " must be a whole number, without a decimal point or an exponent"
	}
	if p.Kind == kindInteger && err != nil {
		return p.Name + " must be a whole number of 64 bits, from -9223372036854775808 to 9223372036854775807"
	}
	if _, err := n.Float64(); err != nil {
		return p.Name + " must be a number from -1.7e308 to 1.7e308"
	}
	return ""
}

func (p param) checkText(s string) string {
	limit := cmp.Or(p.MaxLength, maxText)
	if n := utf8.RuneCountInString(s); n > limit {
		return fmt.Sprintf("%s has %d characters; at most %d are allowed", p.Name, n, limit)
	}
	if p.Enum != nil && !slices.Contains(p.Enum, s) {
		return fmt.Sprintf("%s must be one of %s", p.Name, strings.Join(p.Enum, ", "))
	}
	return ""
}

func (p param) checkTexts(list []any) string {
	if len(list) > maxList {
		return fmt.Sprintf("%s has %d entries; at most %d are allowed", p.Name, len(list), maxList)
	}
	for i, item := range list {
		if _, ok := item.(string); !ok {
			return fmt.Sprintf("%s[%d] must be a string, not %s", p.Name, i, jsonType(item))
		}
	}
	return ""
}

func (p param) checkObject(m map[string]any) string {
	if measureDepth(m, maxDepth) > maxDepth {
		return fmt.Sprintf("%s is nested deeper than %d levels", p.Name, maxDepth)
	}
	if p.Members == nil {
		return ""
	}
	names := paramNames(p.Members)
	for _, name := range sortedKeys(m) {
		if !slices.Contains(names, name) {
			return fmt.Sprintf("%s has no member %q, only %s", p.Name, shortenValue(name), strings.Join(names, ", "))
		}
	}
	for _, member := range p.Members {
		v := m[member.Name]
		member.Name = p.Name + "." + member.Name
		switch {
		case v != nil:
			if message := member.checkValue(v); message != "" {
				return message
			}
		case member.Required:
			return member.Name + " is required"
		}
	}
	return ""
}

// badCall returns an error about one field of a call, with a suggested call.
func (t *tool) badCall(in arguments, field, message string) *callError {
	e := &callError{Code: guideway.CodeInvalid, Message: message, Field: field, Next: t.nextCall(in, field)}
	if given := in[field]; given != nil {
		e.Given = shortenValue(given)
		switch given.(type) {
		case map[string]any, []any:
			e.Given = jsonType(given)
		}
	}
	return e
}

// nextCall returns the caller's call with corrections. It has an example for each argument
// that is wrong or too long to repeat, for each missing required one, and for the field
// that the error is about. It adds no optional argument, which might not fit the others.
// There is no example of a handle that works: a caller without a handle finds the run with
// workflow_resume.
func (t *tool) nextCall(in arguments, field string) *run.Call {
	const longest = 512
	in = t.suggestArguments(in)
	call := &run.Call{Tool: t.Name, Arguments: map[string]any{}}
	for _, p := range t.Params {
		v := in[p.Name]
		if v != nil && p.checkValue(v) == "" {
			if text, err := jsontext.Marshal(v); err == nil && len(text) <= longest {
				call.Arguments[p.Name] = v
				continue
			}
		}
		switch wanted := p.Required || v != nil || p.Name == field; {
		case wanted && p.Form:
			call.Fields = append(call.Fields, p.toField())
		case wanted && p.Example != nil:
			call.Arguments[p.Name] = p.Example
		}
	}
	if p := findParam(t.Params, "handle"); t.isRunTool() && call.Arguments["handle"] == p.Example {
		return &run.Call{Tool: "workflow_resume", Arguments: map[string]any{}}
	}
	return call
}

// toField returns the parameter as a field of a suggested call.
func (p param) toField() engine.Field {
	f := engine.Field{Name: p.Name, Description: p.Description}
	if p.Kind != kindString {
		f.Type = string(p.Kind)
	}
	for _, choice := range p.Enum {
		f.Choices = append(f.Choices, choice)
	}
	return f
}

func jsonType(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case json.Number:
		return "a number"
	case string:
		return "a string"
	case []any:
		return "a list"
	default:
		return "an object"
	}
}

// measureDepth counts the levels of nesting, up to limit.
func measureDepth(v any, limit int) int {
	if limit < 0 {
		return 1
	}
	deepest := 0
	switch x := v.(type) {
	case []any:
		for _, item := range x {
			deepest = max(deepest, measureDepth(item, limit-1))
		}
	case map[string]any:
		for _, item := range x {
			deepest = max(deepest, measureDepth(item, limit-1))
		}
	default:
		return 0
	}
	return deepest + 1
}

func paramNames(params []param) []string {
	return lists.Map(params, func(p param) string { return p.Name })
}

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }
