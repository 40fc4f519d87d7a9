package cli

import (
	"encoding/json"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// known are values for names whose kind alone says too little.
var known = map[string]string{
	"run": "r_06bmyb2ad4ft47c6abwmtxs", "runId": "r_06bmyb2ad4ft47c6abwmtxs",
	"machine-run": "m_0123456789abcdefghjkmnp", "checkpoint": "c_0dx3k2v9q8f7m5n4p1r6t0w",
	"checkpointId": "c_0dx3k2v9q8f7m5n4p1r6t0w", "from": "c_0dx3k2v9q8f7m5n4p1r6t0w",
	"request": "q_06bmyb2ad4ft47c6abwmtxs", "workflow": "coding-task", "workflowId": "coding-task", "machine": "support-desk",
	"hook": "redact-secrets", "hook-module": "redact-secrets.js", "session": "DASH-001", "sessionId": "DASH-001", "upstream": "files", "upstreamId": "files",
	"token": "laptop", "q": "login", "id": "coding-task", "dialect": "steps", "project": "1a2b3c4d5e6f",
	"tool": "workflow_list", "user": "ann", "version": "1.0.0",
}

// saidBodies are bodies that take more than the members that are required of all.
var saidBodies = map[string]string{
	"answerGate":   `{"optionId": "confirm", "note": "looks good"}`,
	"startMachine": `{"machine": "support-desk", "demo": true}`,
}

// example is JSON that fits a schema: its required members, and for each the first of
// what is allowed.
func (o *openAPI) example(n *yaml.Node, name string, depth int) string {
	n = o.resolve(n)
	if fixed := o.fixed(n); fixed != nil {
		var value any
		if err := fixed.Decode(&value); err != nil {
			o.t.Fatal(err)
		}
		text, err := json.Marshal(value)
		if err != nil {
			o.t.Fatal(err)
		}
		return string(text)
	}
	for _, either := range []string{"oneOf", "anyOf", "allOf"} {
		if of := o.at(n, either); of != nil {
			return o.example(of.Content[0], name, depth)
		}
	}
	kind := o.at(n, "type")
	if kind != nil && kind.Kind == yaml.SequenceNode {
		kind = kind.Content[0]
	}
	switch {
	case kind == nil:
		return `"…"`
	case kind.Value == "object":
		return o.exampleObject(n, depth)
	case kind.Value == "array":
		if depth > 3 && o.at(n, "minItems") == nil {
			return "[]"
		}
		return laidOut("[", []string{o.example(o.at(n, "items"), strings.TrimSuffix(name, "s"), depth+1)}, "]")
	case kind.Value == "string":
		return o.exampleText(n, name)
	case kind.Value == "boolean":
		return "true"
	case kind.Value == "null":
		return "null"
	}
	if least := o.text(n, "minimum"); least != "" && least != "0" {
		return least
	}
	return "1"
}

// fixed is the value that a schema itself names.
func (o *openAPI) fixed(n *yaml.Node) *yaml.Node {
	for _, name := range []string{"const", "default"} {
		if value := o.at(n, name); value != nil {
			return value
		}
	}
	for _, name := range []string{"examples", "enum"} {
		if values := o.at(n, name); values != nil && values.Kind == yaml.SequenceNode && len(values.Content) > 0 {
			return values.Content[0]
		}
	}
	return nil
}

func (o *openAPI) exampleObject(n *yaml.Node, depth int) string {
	var parts []string
	required := o.at(n, "required")
	for _, p := range members(o.at(n, "properties")) {
		if required == nil || !slices.ContainsFunc(required.Content, func(r *yaml.Node) bool { return r.Value == p[0].Value }) {
			continue
		}
		key, err := json.Marshal(p[0].Value)
		if err != nil {
			o.t.Fatal(err)
		}
		parts = append(parts, string(key)+": "+o.example(p[1], p[0].Value, depth+1))
	}
	return laidOut("{", parts, "}")
}

// laidOut has parts in one line where there is room, else in a line each.
func laidOut(begin string, parts []string, end string) string {
	if line := begin + strings.Join(parts, ", ") + end; len(line) <= 90 && !strings.Contains(line, "\n") {
		return line
	}
	return begin + "\n  " + strings.ReplaceAll(strings.Join(parts, ",\n"), "\n", "\n  ") + "\n" + end
}

func (o *openAPI) exampleText(n *yaml.Node, name string) string {
	switch value := known[name]; {
	case strings.HasPrefix(o.text(n, "pattern"), "^sha256:"):
		return `"sha256:` + strings.Repeat("0", 64) + `"`
	case o.text(n, "format") == "date-time":
		return `"2026-11-21T10:00:00Z"`
	case value != "" && o.at(n, "pattern") == nil:
		return `"` + value + `"`
	}
	return `"…"`
}
