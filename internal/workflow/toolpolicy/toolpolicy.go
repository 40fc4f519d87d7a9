// Package toolpolicy decides which tools an agent may call while a step is current
// (DESIGN section 16). The gateway applies a policy to the tools of upstreams, a client hook
// to the client's own tools. Guideway's own tools are never restricted.
package toolpolicy

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/guideway-dev/guideway/internal/platform/wildcard"
)

// Policy restricts the calls of tools. The zero value allows every call, and so does a nil
// policy.
type Policy struct {
	// Allow lists the allowed calls. All calls are allowed if it is nil, and none if it is
	// empty.
	Allow []Rule `json:"allow,omitzero"`
	// Deny lists calls that are refused, also if Allow contains them.
	Deny []Rule `json:"deny,omitempty"`
	// Hold lists calls that wait for the approval of a person.
	Hold []Rule `json:"hold,omitempty"`
	// Outer is the policy of the enclosing loop or phase, which applies too, or nil.
	Outer *Policy `json:"outer,omitempty"`
}

// Rule describes calls. A call matches if it matches every member that is set.
type Rule struct {
	// Tool is the name of the tool, in which * matches any text.
	Tool string `json:"tool"`
	// Annotations are hints of the tool: readOnly, destructive, idempotent, openWorld. A
	// hint that the tool does not declare has the default of the protocol.
	Annotations map[string]bool `json:"annotations,omitempty"`
	// Arguments are patterns of arguments by JSON pointer or name. A text is compared as it
	// is, another value in compact JSON. A missing argument matches nothing.
	Arguments map[string]string `json:"arguments,omitempty"`
}

// Annotations are the names of the hints that a rule can name, with the value that the
// protocol assumes if a tool does not declare them.
var Annotations = map[string]bool{"readOnly": false, "destructive": true, "idempotent": false, "openWorld": true}

// Call is a call of a tool.
type Call struct {
	Tool string
	// Annotations are the hints that the tool declares.
	Annotations map[string]bool
	Arguments   json.RawMessage
}

// Verdict is the decision about a call. A larger verdict is stricter.
type Verdict int

// The verdicts.
const (
	Allowed Verdict = iota
	Held
	Denied
)

// Decide returns the verdict on a call and the rule that led to it. The rule is nil if the
// call is allowed, or denied because Allow does not contain it. The strictest verdict of the
// policy and its outer policies applies.
func (p *Policy) Decide(c Call) (Verdict, *Rule) {
	verdict, rule := Allowed, (*Rule)(nil)
	for ; p != nil; p = p.Outer {
		if v, r := p.decideAlone(c); v > verdict {
			verdict, rule = v, r
		}
	}
	return verdict, rule
}

// decideAlone is like Decide without the outer policies.
func (p *Policy) decideAlone(c Call) (Verdict, *Rule) {
	if r := find(p.Deny, c); r != nil {
		return Denied, r
	}
	if p.Allow != nil && find(p.Allow, c) == nil {
		return Denied, nil
	}
	if r := find(p.Hold, c); r != nil {
		return Held, r
	}
	return Allowed, nil
}

// IsZero reports whether the policy allows every call.
func (p *Policy) IsZero() bool {
	return p == nil || p.Allow == nil && len(p.Deny)+len(p.Hold) == 0 && p.Outer.IsZero()
}

// Within returns the policy with an outer policy. It does not change p, whose own outer
// policy must be nil. It returns nil if both allow every call.
func (p *Policy) Within(outer *Policy) *Policy {
	switch {
	case p.IsZero() && outer.IsZero():
		return nil
	case p.IsZero():
		return outer
	case outer.IsZero():
		return p
	}
	inner := *p
	inner.Outer = outer
	return &inner
}

// find returns the first rule that matches a call, or nil.
func find(rules []Rule, c Call) *Rule {
	i := slices.IndexFunc(rules, func(r Rule) bool { return r.matches(c) })
	if i < 0 {
		return nil
	}
	return &rules[i]
}

// matches reports whether the call is one that the rule describes.
func (r *Rule) matches(c Call) bool {
	if !wildcard.Match(r.Tool, c.Tool) {
		return false
	}
	for name, want := range r.Annotations {
		got, declared := c.Annotations[name]
		if !declared {
			got = Annotations[name]
		}
		if got != want {
			return false
		}
	}
	for at, pattern := range r.Arguments {
		text, ok := argument(c.Arguments, at)
		if !ok || !wildcard.Match(pattern, text) {
			return false
		}
	}
	return true
}

// argument returns the argument at a JSON pointer or with a name, as text.
func argument(arguments json.RawMessage, at string) (string, bool) {
	if !strings.HasPrefix(at, "/") {
		at = "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(at)
	}
	raw := arguments
	for token := range strings.SplitSeq(at[1:], "/") {
		var ok bool
		if raw, ok = member(raw, strings.NewReplacer("~1", "/", "~0", "~").Replace(token)); !ok {
			return "", false
		}
	}
	var text *string
	if json.Unmarshal(raw, &text) == nil && text != nil {
		return *text, true
	}
	var compact bytes.Buffer
	err := json.Compact(&compact, raw)
	return compact.String(), err == nil
}

// member returns the member of an object, or the item of a list with the index.
func member(raw json.RawMessage, name string) (json.RawMessage, bool) {
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) == nil {
		value, ok := object[name]
		return value, ok
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return nil, false
	}
	i, err := strconv.Atoi(name)
	if err != nil || i < 0 || i >= len(list) {
		return nil, false
	}
	return list[i], true
}
