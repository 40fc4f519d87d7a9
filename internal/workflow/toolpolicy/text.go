package toolpolicy

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway/internal/platform/lists"
)

// MarshalJSON returns the name of the tool if the rule has no other member, because that
// is how definitions write it, and otherwise an object.
func (r Rule) MarshalJSON() ([]byte, error) {
	if len(r.Annotations)+len(r.Arguments) == 0 {
		return json.Marshal(r.Tool)
	}
	type object Rule
	return json.Marshal(object(r))
}

// UnmarshalJSON accepts the name of a tool, or an object with known members only.
func (r *Rule) UnmarshalJSON(text []byte) error {
	*r = Rule{}
	if len(text) > 0 && text[0] == '"' {
		return json.Unmarshal(text, &r.Tool)
	}
	type object Rule
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode((*object)(r))
}

// String returns the rule for a message: the pattern of the tool, and the conditions on its
// annotations and arguments.
func (r *Rule) String() string {
	var conditions []string
	for _, name := range slices.Sorted(maps.Keys(r.Annotations)) {
		if r.Annotations[name] {
			conditions = append(conditions, name)
		} else {
			conditions = append(conditions, "not "+name)
		}
	}
	for _, at := range slices.Sorted(maps.Keys(r.Arguments)) {
		conditions = append(conditions, at+" = "+r.Arguments[at])
	}
	if len(conditions) == 0 {
		return r.Tool
	}
	return r.Tool + " (" + strings.Join(conditions, ", ") + ")"
}

// String describes the policy in one line, "only github__*; never Bash; after approval:
// slack__post", or returns "" if it allows every call.
func (p *Policy) String() string {
	if p.IsZero() {
		return ""
	}
	var parts []string
	for ; p != nil; p = p.Outer {
		switch {
		case p.Allow != nil && len(p.Allow) == 0:
			parts = append(parts, "none")
		case p.Allow != nil:
			parts = append(parts, "only "+joinRules(p.Allow))
		}
		if len(p.Deny) > 0 {
			parts = append(parts, "never "+joinRules(p.Deny))
		}
		if len(p.Hold) > 0 {
			parts = append(parts, "after approval "+joinRules(p.Hold))
		}
	}
	return strings.Join(parts, "; ")
}

func joinRules(rules []Rule) string {
	texts := lists.Map(rules, func(r Rule) string { return r.String() })
	return strings.Join(texts, ", ")
}
