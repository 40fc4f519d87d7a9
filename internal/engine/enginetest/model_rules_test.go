package enginetest

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// The rules that a command can violate. They are part of the contract.
const (
	ruleServerVariable = "server-variable"
	ruleType           = "variable-type"
	ruleTooLarge       = "context-too-large"
	ruleTooDeep        = "context-too-deep"
	ruleGate           = "gate-unanswered"
	ruleOption         = "unknown-option"
	ruleNoGate         = "no-gate"
	ruleContext        = "context-needed"
	ruleOutput         = "output-missing"
	ruleNote           = "note-missing"
	ruleCriteria       = "criteria-failed"
	ruleCheckVariable  = "check-variable"
	ruleValidate       = "validate-failed"
	ruleEnded          = "run-ended"
	ruleStarted        = "run-started"
	rulePerson         = "gate-needs-person"
	ruleStep           = "step-not-reached"
	ruleRequired       = "step-required"
	ruleDecline        = "gate-required"
	rulePlaceholder    = "placeholder"
)

// brokenRules returns the rules that a command violates at a place.
func (d *definition) brokenRules(p place, c command) []string {
	r := &ruleSet{}
	switch {
	case c.kind == "start":
		r.addIf(true, ruleStarted)
		return r.rules
	case p.kind == "end":
		r.addIf(true, ruleEnded)
		r.addIf(c.step != "", ruleStep)
		return r.rules
	case c.kind == "abort":
		return nil
	}
	r.addIf(isPlaceholder(c.output) || isPlaceholder(c.notes) || hasEllipsis(c.context), rulePlaceholder)
	r.checkContext(d, p, c.context)
	c.context = withMembers(p.vars, c.context)
	r.addIf(c.step != "" && c.step != p.id, ruleStep)
	handedIn := !isBlank(c.output) || !isBlank(c.notes)
	switch {
	case p.kind == "gate":
		r.checkAnswer(p, c)
		return r.rules
	case c.skip:
		r.checkSkip(d, p, c, handedIn)
	case p.kind == "context":
		r.addIf(handedIn || len(c.context) == 0, ruleContext)
		r.addIf(p.must != nil && !p.must.holdsFor(overlayVars(c.context, p.scope)), ruleValidate)
	case p.step == nil:
		r.addIf(!handedIn, ruleNote)
	default:
		r.addIf(!handedIn, ruleOutput)
		r.checkActions(d, p, c)
		r.checkCriteria(p, c)
	}
	r.addIf(c.answer != nil, ruleNoGate)
	return r.rules
}

// ruleSet collects violated rules.
type ruleSet struct{ rules []string }

func (r *ruleSet) addIf(broken bool, rule string) {
	if broken && !slices.Contains(r.rules, rule) {
		r.rules = append(r.rules, rule)
	}
}

// checkContext checks that variables are not the server's, have the declared type, and are
// not too large.
func (r *ruleSet) checkContext(d *definition, p place, context map[string]any) {
	for name, value := range context {
		r.addIf(d.isServerVar(rootName(name)), ruleServerVariable)
		if v := d.findVariable(name); v != nil && value != nil {
			r.addIf(typeOf(value) != v.kind, ruleType)
		}
	}
	after := maps.Clone(p.vars)
	maps.Copy(after, withMembers(p.vars, context))
	r.addIf(len(context) > 0 && contextSize(after) > 256*1024, ruleTooLarge)
	r.addIf(nestingDepth(context) > 128, ruleTooDeep)
}

// checkAnswer checks an answer, which must be the only input.
func (r *ruleSet) checkAnswer(p place, c command) {
	r.addIf(c.answer == nil || c.output != "" || c.notes != "" || len(c.context) > 0 || c.skip, ruleGate)
	r.addIf(p.human && !c.person, rulePerson)
	if c.answer != nil && c.answer.decline {
		r.addIf(!p.declinable, ruleDecline)
	} else if c.answer != nil {
		r.addIf(!slices.Contains(p.options, c.answer.option), ruleOption)
	}
}

// checkActions evaluates a step's validate actions with the variables of the command and of
// earlier set actions.
func (r *ruleSet) checkActions(d *definition, p place, c command) {
	vars := maps.Clone(p.vars)
	maps.Copy(vars, c.context)
	scope := overlayVars(c.context, p.scope)
	for _, a := range p.step.actions {
		switch {
		case a.kind == "set":
			set := setAtPath(vars, a.target, a.value)
			maps.Copy(vars, set)
			scope = overlayVars(set, scope)
		case a.kind == "validate" && d.checksVariable(a):
			r.addIf(!a.holdsFor(scope), ruleValidate)
		case a.kind == "validate":
			r.addIf(isBlank(c.notes), ruleNote)
		}
	}
}

// checkSkip checks the skip of an optional step, or of the rest of an optional phase.
func (r *ruleSet) checkSkip(d *definition, p place, c command, handedIn bool) {
	optional := p.step != nil && (p.step.optional || p.phase.optional)
	r.addIf(!optional || handedIn || len(c.context) > 0, ruleRequired)
	if optional && !p.step.optional {
		w := &modelRun{def: d, vars: p.vars} // the run outside of loops
		r.addIf(w.skippedTarget(p.phase) == undecided, ruleContext)
	}
}

// typeOf returns the type of a value as the dialect names it.
func typeOf(v any) string {
	switch v.(type) {
	case string:
		return "string"
	case float64, json.Number:
		return "number"
	case bool:
		return "boolean"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	}
	return "null"
}

// overlayVars returns a lookup that prefers vars to below. vars must not contain server
// variables.
func overlayVars(vars map[string]any, below lookup) lookup {
	return func(name string) (any, bool) {
		if v, ok := vars[name]; ok {
			return v, true
		}
		return below(name)
	}
}

// contextSize returns the size of a context.
func contextSize(v any) int {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return 0
	}
	return b.Len() - 1
}

// nestingDepth returns the number of nested levels.
func nestingDepth(v any) int {
	deepest := 0
	switch v := v.(type) {
	case []any:
		for _, part := range v {
			deepest = max(deepest, 1+nestingDepth(part))
		}
	case map[string]any:
		for _, part := range v {
			deepest = max(deepest, 1+nestingDepth(part))
		}
	}
	return deepest
}

// isBlank reports whether a text is white space, as JavaScript's trim defines it.
func isBlank(text string) bool {
	return strings.TrimFunc(text, func(r rune) bool {
		return r == '\uFEFF' || unicode.IsSpace(r) && r != '\u0085'
	}) == ""
}

// withMembers returns the variables of a command. To each object it adds the members of the
// existing object that the command does not name.
func withMembers(vars, given map[string]any) map[string]any {
	out := maps.Clone(given)
	for name, value := range given {
		now, ok := vars[name].(map[string]any)
		members, both := value.(map[string]any)
		if ok && both {
			merged := withMembers(now, members)
			for key, old := range now {
				if _, named := members[key]; !named {
					merged[key] = old
				}
			}
			out[name] = merged
		}
	}
	return out
}

// isPlaceholder reports whether an output or notes are one of the generator's placeholders.
func isPlaceholder(text string) bool {
	return slices.Contains([]string{"...", "…", "TODO", "<value>"}, text)
}

// hasEllipsis reports whether a text in the value is an ellipsis. The other placeholders
// may be data of the user; the generator sends none for a variable that a position asks for.
func hasEllipsis(v any) bool {
	switch v := v.(type) {
	case string:
		return v == "..." || v == "…"
	case []any:
		return slices.ContainsFunc(v, hasEllipsis)
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(v)), hasEllipsis)
	}
	return false
}
