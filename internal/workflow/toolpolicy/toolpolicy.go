// Package toolpolicy decides which tools an agent may call while a step is current
// (DESIGN section 16). The gateway applies a policy to the tools of upstreams, a client hook
// to the client's own tools. Guideway's own tools are never restricted.
package toolpolicy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

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

// Scope is the policy of the current step of a run. A Scope in which only Policy is set is
// the policy of calls without a run.
type Scope struct {
	Run, Workflow, Step string
	Policy              *Policy
}

// String names the scope in a message.
func (s *Scope) String() string {
	if s.Run == "" {
		return "the configuration"
	}
	return fmt.Sprintf("step %q of run %s (%s)", s.Step, s.Run, s.Workflow)
}

// Decision is the verdict on a call with the scope and the rule that led to it. Both are nil
// if the call is allowed. Rule is nil if the call is denied because allow does not contain
// it.
type Decision struct {
	Verdict Verdict
	Scope   *Scope
	Rule    *Rule
}

// DecideAll returns the strictest verdict of several scopes; of equal verdicts the first
// one. Without scopes a call is allowed.
func DecideAll(scopes []Scope, c Call) Decision {
	var d Decision
	for i := range scopes {
		if v, rule := scopes[i].Policy.Decide(c); v > d.Verdict {
			d = Decision{Verdict: v, Scope: &scopes[i], Rule: rule}
		}
	}
	return d
}

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
