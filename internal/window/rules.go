package window

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Rule is one entry of a definition's contextRules: what its author knows of
// the workflow's variables.
type Rule struct {
	// Keys are names of variables; a * stands for any run of characters. Case
	// counts.
	Keys []string `json:"keys"`
	// Layer is where items of these keys belong.
	Layer Layer `json:"layer"`
	// Why is the author's reason, if one was given.
	Why string `json:"why,omitempty"`
}

// Rules are the contextRules of a definition; the first that matches a key
// decides.
type Rules []Rule

// Problem is what is wrong with a definition's contextRules, and where.
type Problem struct {
	// Pointer is a JSON pointer below the contextRules.
	Pointer string
	Message string
	Fix     string
}

// Limits of contextRules: a definition is untrusted.
const (
	maxRules   = 100
	maxKeys    = 100
	maxPattern = 200
)

// RulesSchema is the JSON Schema of contextRules, for the schemas of the
// dialects.
const RulesSchema = `{
  "type": "array",
  "maxItems": 100,
  "description": "What the variables of this workflow are worth when a context must shrink. The first rule whose key matches decides.",
  "items": {
    "type": "object",
    "required": ["keys", "layer"],
    "additionalProperties": false,
    "properties": {
      "keys": {"type": "array", "minItems": 1, "maxItems": 100, "items": {"type": "string", "minLength": 1, "maxLength": 200}},
      "layer": {"enum": ["critical", "important", "useful", "ephemeral"]},
      "why": {"type": "string"}
    }
  }
}`

// ParseRules reads the contextRules of a definition. Rules that are wrong are
// left out and told as problems, all of them at once; the others hold.
func ParseRules(text []byte) (Rules, []Problem) {
	if trimmed := bytes.TrimSpace(text); len(trimmed) == 0 || bytes.Equal(trimmed, []byte("null")) {
		return nil, nil
	}
	var raw []json.RawMessage
	if err := json.Unmarshal(text, &raw); err != nil {
		return nil, []Problem{{
			Message: "contextRules is no list of rules",
			Fix:     `write [{"keys": ["buildLog*"], "layer": "useful"}]`,
		}}
	}
	var problems []Problem
	if len(raw) > maxRules {
		problems = append(problems, Problem{
			Message: fmt.Sprintf("%d rules; at most %d are read", len(raw), maxRules),
			Fix:     "join rules of one layer, or use * in their keys",
		})
		raw = raw[:maxRules]
	}
	var rules Rules
	for i, entry := range raw {
		rule, wrong := parseRule(entry, fmt.Sprintf("/%d", i))
		problems = append(problems, wrong...)
		if len(wrong) == 0 {
			rules = append(rules, rule)
		}
	}
	return rules, problems
}

func parseRule(text json.RawMessage, pointer string) (Rule, []Problem) {
	var rule Rule
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&rule); err != nil {
		return rule, []Problem{{
			Pointer: pointer, Message: "a rule has keys (a list of texts), a layer and perhaps a why: " + err.Error(),
			Fix: `write {"keys": ["buildLog*"], "layer": "useful"}`,
		}}
	}
	var problems []Problem
	if !slices.Contains(Layers(), rule.Layer) {
		problems = append(problems, Problem{
			Pointer: pointer + "/layer", Message: fmt.Sprintf("no layer %q", rule.Layer),
			Fix: "take critical, important, useful or ephemeral",
		})
	}
	if len(rule.Keys) == 0 || len(rule.Keys) > maxKeys {
		problems = append(problems, Problem{
			Pointer: pointer + "/keys", Message: fmt.Sprintf("a rule has 1 to %d keys", maxKeys), Fix: "name the variables it is for",
		})
	}
	for i, key := range rule.Keys {
		if key == "" || len(key) > maxPattern {
			problems = append(problems, Problem{
				Pointer: fmt.Sprintf("%s/keys/%d", pointer, i), Message: fmt.Sprintf("a key has 1 to %d bytes", maxPattern),
				Fix: "name a variable, or use *",
			})
		}
	}
	return rule, problems
}

// find gives the first rule for key.
func (r Rules) find(key string) (rule Rule, pattern string, ok bool) {
	for _, rule := range r {
		for _, pattern := range rule.Keys {
			if matches(pattern, key) {
				return rule, pattern, true
			}
		}
	}
	return Rule{}, "", false
}

// matches tells whether the whole key is what the pattern says. Each part
// between two stars is taken at its first place, so the time is bounded by the
// product of the lengths.
func matches(pattern, key string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == key
	}
	first, last := parts[0], parts[len(parts)-1]
	if !strings.HasPrefix(key, first) {
		return false
	}
	key = key[len(first):]
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(key, part)
		if i < 0 {
			return false
		}
		key = key[i+len(part):]
	}
	return strings.HasSuffix(key, last)
}
