package gateway

import (
	"encoding/json"

	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
	"github.com/guideway-dev/guideway/internal/workflow/toolpolicy"
)

// annotate returns a tool with the annotations of its rule. A tool that the rule declares
// read-only is not destructive, and a destructive one is not read-only, even if the upstream
// declares it.
func annotate(raw json.RawMessage, rule config.UpstreamTool) json.RawMessage {
	no := false
	if rule.ReadOnly != nil && *rule.ReadOnly {
		rule.Destructive = &no
	} else if rule.Destructive != nil && *rule.Destructive {
		rule.ReadOnly = &no
	}
	var set []jsonrpc.Member
	add := func(key string, value *bool) {
		if value != nil {
			text, _ := json.Marshal(*value) // a boolean always marshals
			set = append(set, jsonrpc.Member{Key: key, Value: text})
		}
	}
	add("readOnlyHint", rule.ReadOnly)
	add("destructiveHint", rule.Destructive)
	add("idempotentHint", rule.Idempotent)
	add("openWorldHint", rule.OpenWorld)
	if set == nil {
		return raw
	}
	annotations, err := jsonrpc.With(jsonrpc.ObjectMember(raw, "annotations"), set...)
	if err != nil { // The tool was parsed before.
		return raw
	}
	if out, err := jsonrpc.With(raw, jsonrpc.Member{Key: "annotations", Value: annotations}); err == nil {
		return out
	}
	return raw
}

// policyCall returns the description of a call of the tool on which policies decide.
func (t *tool) policyCall(arguments json.RawMessage) toolpolicy.Call {
	c := toolpolicy.Call{Tool: t.full, Annotations: annotationsOf(t.shown), Arguments: arguments}
	if t.name != t.full {
		c.Short = t.name
	}
	return c
}

// annotationsOf returns the annotations that a tool declares, by their names in the
// configuration.
func annotationsOf(raw json.RawMessage) map[string]bool {
	var declared map[string]any
	if json.Unmarshal(jsonrpc.ObjectMember(raw, "annotations"), &declared) != nil {
		return nil
	}
	hints := map[string]bool{}
	for name := range toolpolicy.Annotations {
		if set, ok := declared[name+"Hint"].(bool); ok {
			hints[name] = set
		}
	}
	return hints
}
