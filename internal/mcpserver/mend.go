package mcpserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"strconv"
	"strings"

	"github.com/guideway-dev/guideway/internal/jsontext"
	"github.com/guideway-dev/guideway/internal/spelling"
)

// mended are the arguments as the caller most likely meant them: a value below the
// name that the parameter has, and of its type. It decides nothing, and is for the
// call that an error suggests: what a caller copies must say what it has said.
func (t *tool) mended(in arguments) arguments {
	out := maps.Clone(in)
	for _, name := range sortedKeys(in) {
		p, member := t.meant(in, name)
		v := in[name]
		switch {
		case p == nil || v == nil:
			continue
		case member != "":
			v = map[string]any{member: v}
		}
		if v, ok := p.mend(v); ok {
			out[p.name] = v
			delete(out, name)
		}
	}
	for i := range t.params {
		p := &t.params[i]
		if v := out[p.name]; v != nil && p.check(v) != "" {
			if v, ok := p.mend(v); ok {
				out[p.name] = v
			}
		}
	}
	return out
}

// meant is the parameter that a name which is none stands for, and the member of
// it if it is one's name; nil where nobody can tell, or where that parameter is
// given, too.
func (t *tool) meant(in arguments, name string) (p *param, member string) {
	var free []param
	for _, p := range t.params {
		if p.name == name {
			return nil, ""
		}
		if in[p.name] == nil {
			free = append(free, p)
		}
	}
	if close := spelling.Closest(name, paramNames(free)); close != "" {
		return find(free, close), ""
	}
	for i := range free {
		members := paramNames(free[i].members)
		if find(free[i].members, name) != nil {
			return &free[i], name
		}
		if close := spelling.Closest(name, members); close != "" {
			return &free[i], close
		}
	}
	// workflowId for id, session for sessionId, budget for budgetTokens: a longer or
	// a shorter name, where one alone can be meant.
	var only *param
	for i := range free {
		if sameName(name, free[i].name) {
			if only != nil {
				return nil, ""
			}
			only = &free[i]
		}
	}
	return only, ""
}

func find(params []param, name string) *param {
	for i := range params {
		if params[i].name == name {
			return &params[i]
		}
	}
	return nil
}

// sameName says whether two names are one, more or less said.
func sameName(given, name string) bool {
	const least = 4
	given, name = plainName(given), plainName(name)
	if name == "id" { // only workflows are named so
		return given == "workflow" || given == "workflowid"
	}
	return len(given) >= least && (strings.HasPrefix(name, given) || strings.HasSuffix(name, given))
}

func plainName(name string) string {
	return strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(name))
}

// mend gives a value as one that fits the parameter, where it can be told.
func (p param) mend(v any) (any, bool) {
	if p.check(v) == "" {
		return v, true
	}
	out := p.converted(v)
	return out, out != nil && p.check(out) == ""
}

// converted is a value as one of the parameter's type, nil where it says no such
// value.
func (p param) converted(v any) any {
	text, isText := v.(string)
	switch {
	case p.kind == kindObject && isText:
		return p.objectOf(text)
	case p.kind == kindObject:
		m, _ := v.(map[string]any)
		return p.renamed(m)
	case p.kind == kindStrings && isText:
		if list, ok := decoded(text).([]any); ok {
			return list
		}
		return []any{text}
	case p.kind == kindString && !isText:
		return textOf(v)
	case p.kind == kindBool && isText:
		if b, err := strconv.ParseBool(strings.ToLower(text)); err == nil {
			return b
		}
	case isText: // a number
		return decoded(text)
	}
	return nil
}

// objectOf is the object that a text holds, or one of which it is the first
// member, as the option is of an answer.
func (p param) objectOf(text string) any {
	if m, ok := decoded(text).(map[string]any); ok {
		return m
	}
	if len(p.members) > 0 && p.members[0].kind == kindString {
		return map[string]any{p.members[0].name: text}
	}
	return nil
}

// renamed has the members of an object by the names that they have here.
func (p param) renamed(m map[string]any) any {
	if p.members == nil || m == nil {
		return nil
	}
	out := map[string]any{}
	for _, name := range sortedKeys(m) {
		to := name
		if find(p.members, name) == nil {
			to = spelling.Closest(name, paramNames(p.members))
		}
		if to != "" && m[name] != nil {
			out[to] = m[name]
		}
	}
	return out
}

// textOf writes a value that stands where a text belongs.
func textOf(v any) any {
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

// decoded is the JSON value that a text holds, or nil.
func decoded(text string) any {
	dec := json.NewDecoder(bytes.NewReader([]byte(text)))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return nil
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil
	}
	return v
}

// ofRuns says whether the tool is about one run, and about nothing else.
func (t *tool) ofRuns() bool {
	p := find(t.params, "handle")
	return p != nil && (p.required || find(t.params, "runId") != nil)
}

// unknownParam is the error about an argument that the tool does not know.
func (t *tool) unknownParam(in arguments, name string) error {
	err := t.badCall(in, name, fmt.Sprintf("%s has no parameter %q", t.name, shorten(name)))
	err.Given = nil
	err.Allowed = paramNames(t.params)
	id, _ := in[name].(string)
	switch p, member := t.meant(in, name); {
	case p != nil && member != "":
		err.Fix = fmt.Sprintf("%s is a member of %s", member, p.name)
	case p != nil:
		err.Fix = fmt.Sprintf("did you mean %q?", p.name)
		err.Next = t.nextCall(in, p.name)
	case plainName(name) == "runid" && id != "" && find(t.params, "handle") != nil:
		err.Fix = "the run's handle is in the answer of workflow_status"
		err.Next = &nextCall{Tool: "workflow_status", Arguments: map[string]any{"runId": shorten(id)}}
	}
	return err
}
