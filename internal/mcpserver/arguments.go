package mcpserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/jsontext"
)

// param is one parameter of a tool.
type param struct {
	name, description string
	kind              paramKind
	required          bool
	// numbered lets a string be given as the whole number that it holds: 1 for
	// "1".
	numbered bool
	enum     []string
	// members, of an object, are the ones it may have; nil allows any.
	members []param
	// maxLength bounds a string in characters; 0 is maxText.
	maxLength int
	// example is used in the call that an error suggests.
	example any
}

type paramKind string

const (
	kindString  paramKind = "string"
	kindStrings paramKind = "list of strings"
	kindObject  paramKind = "object"
	kindBool    paramKind = "boolean"
	kindInteger paramKind = "integer"
	kindNumber  paramKind = "number"
)

const (
	// maxText bounds every string argument, in characters.
	maxText = 1 << 18
	// maxList bounds every list argument: a walk of some thousand rounds fits.
	maxList = 100_000
	// maxDepth bounds the nesting of every object argument. A definition nests
	// up to 64 levels, and the context that we give holds a loop's below keys of
	// its own: what we gave must come back.
	maxDepth = 80
)

func (p param) schema() map[string]any {
	var s map[string]any
	switch p.kind {
	case kindStrings:
		s = listOf(typed("string"))
	case kindObject:
		s = typed("object")
		if p.members != nil {
			s = inputSchema(p.members)
		}
	case kindBool:
		s = typed("boolean")
	case kindInteger:
		s = typed("integer")
	case kindNumber:
		s = typed("number")
	default:
		s = typed("string")
	}
	if p.description != "" {
		s["description"] = p.description
	}
	if p.enum != nil {
		s["enum"] = p.enum
	}
	return s
}

func inputSchema(params []param) map[string]any {
	properties := make(map[string]any, len(params))
	required := []string{}
	for _, p := range params {
		properties[p.name] = p.schema()
		if p.required {
			required = append(required, p.name)
		}
	}
	s := object(properties)
	s["additionalProperties"] = false
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

// arguments are the arguments of a call, checked against the tool's parameters.
type arguments map[string]any

func (a arguments) text(name string) string {
	s, _ := a[name].(string)
	return s
}

func (a arguments) texts(name string) []string {
	list, _ := a[name].([]any)
	out := make([]string, len(list))
	for i, v := range list {
		out[i], _ = v.(string)
	}
	return out
}

// flag is false where the argument is absent.
func (a arguments) flag(name string) bool {
	b, _ := a[name].(bool)
	return b
}

// integer is 0 where the argument is absent.
func (a arguments) integer(name string) int64 {
	n, _ := a[name].(json.Number)
	i, _ := n.Int64()
	return i
}

// number is 0 where the argument is absent.
func (a arguments) number(name string) float64 {
	n, _ := a[name].(json.Number)
	f, _ := n.Float64()
	return f
}

// below says whether a number is given and less than the least.
func (a arguments) below(name string, least float64) bool {
	_, given := a[name]
	return given && a.number(name) < least
}

// members gives an object whose members were checked, or nil if it is absent.
func (a arguments) members(name string) arguments { return a.object(name) }

func (a arguments) object(name string) map[string]any {
	m, _ := a[name].(map[string]any)
	return m
}

// readArguments decodes and checks the arguments of a call to t. Everything that
// is wrong is told with a call that would work.
func readArguments(t *tool, raw json.RawMessage) (arguments, error) {
	in := arguments{}
	if len(raw) > 0 && string(raw) != "null" {
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.UseNumber() // a float would round what the caller gets back
		if err := dec.Decode(&in); err != nil {
			return nil, t.badCall(nil, "", "the arguments are not a JSON object")
		}
		if _, err := dec.Token(); !errors.Is(err, io.EOF) {
			return nil, t.badCall(nil, "", "there is more than one JSON value in the arguments")
		}
	}
	for _, name := range sortedKeys(in) {
		if !slices.ContainsFunc(t.params, func(p param) bool { return p.name == name }) {
			return nil, t.unknownParam(in, name)
		}
	}
	for _, p := range t.params {
		v, given := in[p.name]
		if !given || v == nil {
			if p.required {
				return nil, t.badCall(in, p.name, p.name+" parameter is required")
			}
			delete(in, p.name)
			continue
		}
		if n, ok := v.(json.Number); ok && p.numbered {
			v = n.String()
			in[p.name] = v
		}
		if problem := p.check(v); problem != "" {
			err := t.badCall(in, p.name, problem)
			if p.enum != nil {
				err.Allowed = p.enum
			}
			if s, ok := v.(string); ok && p.kind != kindString && strings.ContainsAny(s, "[{") {
				err.Fix = "send the JSON itself, not a string that holds it"
			}
			return nil, err
		}
	}
	return in, nil
}

// check says what is wrong with a value, or "".
func (p param) check(v any) string {
	wrongType := ""
	switch p.kind {
	case kindString:
		s, ok := v.(string)
		if ok {
			return p.checkText(s)
		}
		wrongType = "a string"
	case kindStrings:
		list, ok := v.([]any)
		if ok {
			return p.checkTexts(list)
		}
		wrongType = "a list of strings"
	case kindObject:
		m, ok := v.(map[string]any)
		if ok {
			return p.checkObject(m)
		}
		wrongType = "an object"
	case kindBool:
		if _, ok := v.(bool); ok {
			return ""
		}
		wrongType = "true or false"
	case kindInteger:
		n, ok := v.(json.Number)
		if !ok {
			wrongType = "a whole number"
			break
		}
		if _, err := n.Int64(); err != nil {
			return p.name + " must be a whole number"
		}
		return ""
	case kindNumber:
		n, ok := v.(json.Number)
		if !ok {
			wrongType = "a number"
			break
		}
		if _, err := n.Float64(); err != nil {
			return p.name + " is out of range"
		}
		return ""
	}
	return fmt.Sprintf("%s must be %s, not %s", p.name, wrongType, jsonType(v))
}

func (p param) checkText(s string) string {
	most := p.maxLength
	if most == 0 {
		most = maxText
	}
	if n := utf8.RuneCountInString(s); n > most {
		return fmt.Sprintf("%s has %d characters; at most %d are allowed", p.name, n, most)
	}
	if p.enum != nil && !slices.Contains(p.enum, s) {
		return fmt.Sprintf("%s must be one of %s", p.name, strings.Join(p.enum, ", "))
	}
	return ""
}

func (p param) checkTexts(list []any) string {
	if len(list) > maxList {
		return fmt.Sprintf("%s has %d entries; at most %d are allowed", p.name, len(list), maxList)
	}
	for i, item := range list {
		if _, ok := item.(string); !ok {
			return fmt.Sprintf("%s[%d] must be a string, not %s", p.name, i, jsonType(item))
		}
	}
	return ""
}

func (p param) checkObject(m map[string]any) string {
	if depth(m, maxDepth) > maxDepth {
		return fmt.Sprintf("%s is nested deeper than %d levels", p.name, maxDepth)
	}
	if p.members == nil {
		return ""
	}
	names := paramNames(p.members)
	for _, name := range sortedKeys(m) {
		if !slices.Contains(names, name) {
			return fmt.Sprintf("%s has no member %q, only %s", p.name, shorten(name), strings.Join(names, ", "))
		}
	}
	for _, member := range p.members {
		v := m[member.name]
		member.name = p.name + "." + member.name
		switch {
		case v != nil:
			if problem := member.check(v); problem != "" {
				return problem
			}
		case member.required:
			return member.name + " is required"
		}
	}
	return ""
}

// badCall is an error about one field of a call, with a call that would work.
func (t *tool) badCall(in arguments, field, message string) *callError {
	e := &callError{Code: guideway.CodeInvalid, Message: message, Field: field, Next: t.nextCall(in, field)}
	if given := in[field]; given != nil {
		e.Given = shorten(given)
		switch given.(type) {
		case map[string]any, []any:
			e.Given = jsonType(given)
		}
	}
	return e
}

// nextCall is the caller's call, mended where it can be told what was meant, with
// an example in place of each argument that is wrong or too long to be repeated, of
// the required ones that are missing, and of the field that the call was refused
// for. What may be left out and was is left out: it might not go with the rest.
// There is no example of a handle that would work: who has none looks for the run.
func (t *tool) nextCall(in arguments, field string) *nextCall {
	const longest = 512
	in = t.mended(in)
	call := &nextCall{Tool: t.name, Arguments: map[string]any{}}
	for _, p := range t.params {
		v := in[p.name]
		if v != nil && p.check(v) == "" {
			if text, err := jsontext.Marshal(v); err == nil && len(text) <= longest {
				call.Arguments[p.name] = v
				continue
			}
		}
		if p.example != nil && (p.required || v != nil || p.name == field) {
			call.Arguments[p.name] = p.example
		}
	}
	if call.Arguments["handle"] == exampleHandle && t.ofRuns() {
		return &nextCall{Tool: "workflow_resume", Arguments: map[string]any{}}
	}
	return call
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

// depth counts the levels of nesting, and stops counting behind most.
func depth(v any, most int) int {
	if most < 0 {
		return 1
	}
	deepest := 0
	switch x := v.(type) {
	case []any:
		for _, item := range x {
			deepest = max(deepest, depth(item, most-1))
		}
	case map[string]any:
		for _, item := range x {
			deepest = max(deepest, depth(item, most-1))
		}
	default:
		return 0
	}
	return deepest + 1
}

func paramNames(params []param) []string {
	names := make([]string, len(params))
	for i, p := range params {
		names[i] = p.name
	}
	return names
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
