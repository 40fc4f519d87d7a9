package mcp

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"github.com/guideway-dev/guideway/internal/platform/lists"
	"github.com/guideway-dev/guideway/internal/platform/spelling"
	"github.com/guideway-dev/guideway/internal/run"
)

// suggestArguments returns the arguments that the caller most likely meant, with the names
// and types of the parameters. They are only for the call that an error suggests.
func (t *tool) suggestArguments(in arguments) arguments {
	out := maps.Clone(in)
	for _, name := range sortedKeys(in) {
		p, member := t.guessParam(in, name)
		v := in[name]
		switch {
		case p == nil || v == nil:
			continue
		case member != "":
			v = map[string]any{member: v}
		}
		if v, ok := p.fitValue(v); ok {
			out[p.Name] = v
			delete(out, name)
		}
	}
	for i := range t.Params {
		p := &t.Params[i]
		if v := out[p.Name]; v != nil && p.checkValue(v) != "" {
			if v, ok := p.fitValue(v); ok {
				out[p.Name] = v
			}
		}
	}
	return out
}

// guessParam returns the parameter that an unknown name most likely means. If the name
// resembles that of a parameter's member, it returns the parameter and the member. It
// returns nil if the name is known or ambiguous, or if the call already has that parameter.
func (t *tool) guessParam(in arguments, name string) (p *param, member string) {
	var free []param
	for _, p := range t.Params {
		if p.Name == name {
			return nil, ""
		}
		if in[p.Name] == nil {
			free = append(free, p)
		}
	}
	if close := spelling.Closest(name, paramNames(free)); close != "" {
		return findParam(free, close), ""
	}
	for i := range free {
		members := paramNames(free[i].Members)
		if findParam(free[i].Members, name) != nil {
			return &free[i], name
		}
		if close := spelling.Closest(name, members); close != "" {
			return &free[i], close
		}
	}
	// A longer or shorter name may match exactly one parameter: workflowId matches id,
	// session matches sessionId, and budget matches budgetTokens.
	var only *param
	for i := range free {
		if isLikeName(name, free[i].Name) {
			if only != nil {
				return nil, ""
			}
			only = &free[i]
		}
	}
	return only, ""
}

func findParam(params []param, name string) *param {
	return lists.Find(params, func(p *param) bool { return p.Name == name })
}

// isLikeName reports whether a given name is a shorter form of a parameter's name, or for
// the parameter "id" a longer form.
func isLikeName(given, name string) bool {
	const least = 4
	given, name = normalizeName(given), normalizeName(name)
	if name == "id" { // In a tool of workflows, the parameter "id" is the workflow id.
		return given == "workflow" || given == "workflowid"
	}
	return len(given) >= least && (strings.HasPrefix(name, given) || strings.HasSuffix(name, given))
}

func normalizeName(name string) string {
	return strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(name))
}

// fitValue converts a value to the parameter's type, and reports whether it can.
func (p param) fitValue(v any) (any, bool) {
	if p.checkValue(v) == "" {
		return v, true
	}
	out := p.convertValue(v)
	return out, out != nil && p.checkValue(out) == ""
}

// convertValue returns a value converted to the parameter's type, or nil if that is not
// possible.
func (p param) convertValue(v any) any {
	text, isText := v.(string)
	switch {
	case p.Kind == kindObject && isText:
		return p.parseObject(text)
	case p.Kind == kindObject:
		m, _ := v.(map[string]any)
		return p.renameMembers(m)
	case p.Kind == kindStrings && isText:
		if list, ok := decodeJSON(text).([]any); ok {
			return list
		}
		return []any{text}
	case p.Kind == kindString && !isText:
		return valueText(v)
	case p.Kind == kindBool && isText:
		if b, err := strconv.ParseBool(strings.ToLower(text)); err == nil {
			return b
		}
	case isText: // The text of a number.
		return decodeJSON(text)
	}
	return nil
}

// parseObject returns the object that a text encodes, or an object with the text as its
// first member, such as an answer with an option.
func (p param) parseObject(text string) any {
	if m, ok := decodeJSON(text).(map[string]any); ok {
		return m
	}
	if len(p.Members) > 0 && p.Members[0].Kind == kindString {
		return map[string]any{p.Members[0].Name: text}
	}
	return nil
}

// renameMembers returns an object with misspelt member names corrected.
func (p param) renameMembers(m map[string]any) any {
	if p.Members == nil || m == nil {
		return nil
	}
	out := map[string]any{}
	for _, name := range sortedKeys(m) {
		to := name
		if findParam(p.Members, name) == nil {
			to = spelling.Closest(name, paramNames(p.Members))
		}
		if to != "" && m[name] != nil {
			out[to] = m[name]
		}
	}
	return out
}

// valueText returns a value as text, for a parameter that is a string.
func valueText(v any) any {
	switch v.(type) {
	case json.Number, bool, map[string]any, []any:
		text, err := jsontext.Marshal(v)
		if err != nil {
			return nil
		}
		return string(text)
	}
	return nil
}

// decodeJSON returns the JSON value that a text encodes, or nil.
func decodeJSON(text string) any {
	var v any
	if !json.Valid([]byte(text)) || jsontext.Decode([]byte(text), &v) != nil {
		return nil
	}
	return v
}

// isRunTool reports whether a run is the only object of the tool's calls.
func (t *tool) isRunTool() bool {
	p := findParam(t.Params, "handle")
	return p != nil && (p.Required || findParam(t.Params, "runId") != nil)
}

// unknownParam returns the error about an argument that the tool does not have.
func (t *tool) unknownParam(in arguments, name string) error {
	err := t.badCall(in, name, fmt.Sprintf("%s has no parameter %q", t.Name, shortenValue(name)))
	err.Given = nil
	err.Allowed = paramNames(t.Params)
	id, _ := in[name].(string)
	switch p, member := t.guessParam(in, name); {
	case p != nil && member != "":
		err.Fix = fmt.Sprintf("%s is a member of %s", member, p.Name)
	case p != nil:
		err.Fix = fmt.Sprintf("did you mean %q?", p.Name)
		err.Next = t.nextCall(in, p.Name)
	case normalizeName(name) == "runid" && id != "" && findParam(t.Params, "handle") != nil:
		err.Fix = "the run's handle is in the answer of workflow_status"
		err.Next = &run.Call{Tool: "workflow_status", Arguments: map[string]any{"runId": shortenValue(id)}}
	}
	return err
}
