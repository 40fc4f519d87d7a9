package enginetest

import (
	"slices"
	"strconv"
	"strings"
)

// rule is a criterion: a list, a composition, a text that the output contains, or a check.
type rule struct {
	kind string
	// text is the text to contain, or the name of the check.
	text string
	when *conditionSpec
	// template reports whether the check reads the variable size; only a rule in a list
	// does.
	template bool
	of       []*rule
}

// The outcomes of checks. A check without an outcome fails.
const (
	checkPasses       = "passes"
	checkFails        = "fails"
	checkUndefined    = "undefined"
	checkInconclusive = "inconclusive"
)

// judgment is the verdict of a criterion on an output.
type judgment int

const (
	skipped judgment = iota
	accepted
	// unsure is the judgment of a check that did not run to its end: neither the rule nor
	// its negation passes.
	unsure
	rejected
)

// accepts reports whether an output meets the criteria (docs/phases.md). checks are the
// outcomes by the pointers of the rules; if it is nil, checks are not executed and are
// skipped.
func (r *rule) accepts(output string, vars lookup, checks map[string]string) bool {
	if r == nil {
		return true
	}
	v := r.judge("", output, vars, checks)
	return v == accepted || v == skipped
}

// judge returns the judgment of the criterion at a pointer.
func (r *rule) judge(at, output string, vars lookup, checks map[string]string) judgment {
	if !r.when.holds(vars) {
		return skipped
	}
	var parts []judgment
	for i, part := range r.of {
		parts = append(parts, part.judge(r.pathTo(at, i), output, vars, checks))
	}
	switch {
	case r.kind == "list" || r.kind == "and":
		return slices.Max(parts)
	case r.kind == "not":
		return map[judgment]judgment{skipped: skipped, accepted: rejected, unsure: unsure, rejected: accepted}[parts[0]]
	case r.kind == "or":
		for _, v := range []judgment{accepted, unsure, rejected} {
			if slices.Contains(parts, v) {
				return v
			}
		}
		return skipped
	case r.kind == "check" && checks == nil:
		return skipped
	case r.kind == "check":
		return map[string]judgment{"": rejected, checkFails: rejected, checkPasses: accepted, checkUndefined: skipped, checkInconclusive: unsure}[checks[at]]
	case strings.Contains(output, r.text):
		return accepted
	default:
		return rejected
	}
}

// pathTo returns the pointer to a part of the criterion at a pointer.
func (r *rule) pathTo(at string, part int) string {
	switch r.kind {
	case "list":
		return at + "/" + strconv.Itoa(part)
	case "not":
		return at + "/not"
	default:
		return at + "/" + r.kind + "/" + strconv.Itoa(part)
	}
}

// checkKeys returns the pointers of the checks.
func (r *rule) checkKeys(at string) []string {
	if r == nil {
		return nil
	}
	if r.kind == "check" {
		return []string{at}
	}
	var keys []string
	for i, part := range r.of {
		keys = append(keys, part.checkKeys(r.pathTo(at, i))...)
	}
	return keys
}

// holds reports whether a condition holds. A variable that was never set counts as missing.
func (t *conditionSpec) holds(vars lookup) bool {
	if t == nil {
		return true
	}
	switch t.op {
	case "not":
		return !t.of[0].holds(vars)
	case "and":
		return !slices.ContainsFunc(t.of, func(part *conditionSpec) bool { return !part.holds(vars) })
	case "or":
		return slices.ContainsFunc(t.of, func(part *conditionSpec) bool { return part.holds(vars) })
	}
	value, found, _ := vars.lookupPath(t.variable)
	return t.compareValue(value, found)
}

// toDocument returns the criterion as it is written in a document.
func (r *rule) toDocument() any {
	list := make([]any, len(r.of))
	for i, part := range r.of {
		list[i] = part.toDocument()
	}
	switch r.kind {
	case "list":
		return list
	case "and", "or":
		return object{r.kind: list}
	case "not":
		return object{"not": list[0]}
	}
	m := object{"type": "contains", "value": r.text, "message": "Say it"}
	if r.kind == "check" {
		m = object{"type": "check", "check": r.text}
		if r.template {
			m["with"] = object{"package": "{{size}}"}
		}
	}
	if r.when != nil {
		m["condition"] = r.when.toDocument()
	}
	return m
}

// checkCriteria judges an output with the variables before and after the command. A check
// needs its variable after the command.
func (r *ruleSet) checkCriteria(p place, c command) {
	criteria := p.step.criteria
	if criteria == nil {
		return
	}
	before, after := p.scope, overlayVars(c.context, p.scope)
	r.addIf(!criteria.accepts(c.output, before, c.checks) || !criteria.accepts(c.output, after, c.checks), ruleCriteria)
	size, set := after("size")
	for _, part := range criteria.of {
		needed := part.template && (part.when.holds(before) || part.when.holds(after))
		r.addIf(needed && (!set || size == nil) && c.checks != nil && !c.recorded, ruleCheckVariable)
	}
}
