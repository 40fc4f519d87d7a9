package toolpolicy

import (
	"maps"
	"strings"

	"github.com/guideway-dev/guideway/internal/platform/wildcard"
	"github.com/guideway-dev/guideway/internal/workflow/shape"
)

// The codes of the linter. All its diagnostics are warnings.
const (
	CodeEmpty   = "tools-empty"
	CodeHidden  = "tools-hidden"
	CodeOutside = "tools-hold-outside"
	CodeOwn     = "tools-own"
)

// Lint reports legal but probably unintended parts of a policy. subject names its owner:
// "step 'plan'".
func Lint(r *shape.Report, at shape.Place, p *Policy, subject string) {
	if p == nil {
		return
	}
	if p.IsZero() {
		r.Warnf(at, CodeEmpty, "add allow, deny or hold, or remove tools", "The tools of %s restrict nothing.", subject)
	}
	for _, list := range []struct {
		name  string
		rules []Rule
	}{{"allow", p.Allow}, {"deny", p.Deny}, {"hold", p.Hold}} {
		for i := range list.rules {
			lintRule(r, at.Key(list.name).Index(i), p, &list.rules[i], list.name, subject)
		}
	}
}

// lintRule checks a rule of the list with a name.
func lintRule(r *shape.Report, at shape.Place, p *Policy, rule *Rule, list, subject string) {
	if isOwnTool(rule.Tool) {
		r.Warnf(at, CodeOwn, "remove the entry; write SERVER__TOOL for the tool of an upstream",
			"'%s' is a tool of Guideway, which the tools of %s never restrict.", rule.Tool, subject)
		return
	}
	if list == "deny" {
		return
	}
	for i := range p.Deny {
		if p.Deny[i].covers(rule) {
			r.Warnf(at, CodeHidden, "remove the entry, or narrow deny", "The entry '%s' in %s of %s has no effect, because deny contains '%s'.", rule, list, subject, &p.Deny[i])
			return
		}
	}
	if list != "hold" || p.Allow == nil {
		return
	}
	for i := range p.Allow {
		if overlap(p.Allow[i].Tool, rule.Tool) {
			return
		}
	}
	r.Warnf(at, CodeOutside, "add the tool to allow too: hold does not allow a call", "The entry '%s' in hold of %s has no effect, because allow contains no such tool.", rule, subject)
}

// isOwnTool reports whether a pattern names a tool of Guideway.
func isOwnTool(pattern string) bool {
	if strings.Contains(pattern, "__") { // the tool of an upstream
		return false
	}
	return pattern == "tool_search" || pattern == "tool_call" ||
		strings.HasPrefix(pattern, "workflow_") || strings.HasPrefix(pattern, "workrail_") || strings.HasPrefix(pattern, "machine_")
}

// covers reports whether the rule matches each call that another rule matches. It may
// return false if the names of both contain several stars.
func (r *Rule) covers(other *Rule) bool {
	if !wildcard.Match(r.Tool, other.Tool) {
		return false
	}
	for name, value := range r.Annotations {
		if want, ok := other.Annotations[name]; !ok || want != value {
			return false
		}
	}
	return len(r.Arguments) == 0 || maps.Equal(r.Arguments, other.Arguments)
}

// overlap reports whether a text exists that both patterns match.
func overlap(a, b string) bool {
	headA, tailA, starA := splitPattern(a)
	headB, tailB, starB := splitPattern(b)
	switch {
	case !starA:
		return wildcard.Match(b, a)
	case !starB:
		return wildcard.Match(a, b)
	default:
		return (strings.HasPrefix(headA, headB) || strings.HasPrefix(headB, headA)) &&
			(strings.HasSuffix(tailA, tailB) || strings.HasSuffix(tailB, tailA))
	}
}

// splitPattern returns the parts of a pattern before its first star and after its last one.
func splitPattern(pattern string) (head, tail string, star bool) {
	head, _, star = strings.Cut(pattern, "*")
	return head, pattern[strings.LastIndexByte(pattern, '*')+1:], star
}
