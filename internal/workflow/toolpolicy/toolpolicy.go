// Package toolpolicy decides which tools an agent may call while a step is current
// (DESIGN section 16). The gateway applies a policy to the tools of upstreams, a client hook
// to the client's own tools. Guideway's own tools are never restricted.
package toolpolicy

import (
	"encoding/json"

	"github.com/guideway-dev/guideway/internal/platform/lists"
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
	// Tool is the full or the short name of the tool, or a pattern in which * matches any
	// text; see Call.
	Tool string `json:"tool"`
	// Annotations are hints of the tool: readOnly, destructive, idempotent, openWorld. A
	// hint that the tool does not declare has the default of the protocol; a tool that is
	// readOnly is not destructive.
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
	// Tool is the full name of the tool. Short is the name that the gateway advertises if
	// the full name is too long for clients; otherwise it is empty.
	Tool, Short string
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

// decideAlone is like Decide without the outer policies. A call that may match a rule,
// depending on how the tool reads its arguments, is denied or held by it, but not allowed.
func (p *Policy) decideAlone(c Call) (Verdict, *Rule) {
	if r := find(p.Deny, c, possible); r != nil {
		return Denied, r
	}
	if p.Allow != nil && find(p.Allow, c, certain) == nil {
		return Denied, nil
	}
	if r := find(p.Hold, c, possible); r != nil {
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

// find returns the first rule that matches a call with at least a certainty, or nil.
func find(rules []Rule, c Call, least certainty) *Rule {
	return lists.Find(rules, func(r *Rule) bool { return r.match(c) >= least })
}
