package phasetest

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"
)

// The rules that a command can break. They are part of the contract.
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
	ruleValidate       = "validate-failed"
	ruleEnded          = "run-ended"
	ruleStarted        = "run-started"
	rulePerson         = "gate-needs-person"
	ruleStep           = "step-not-reached"
	ruleRequired       = "step-required"
	ruleDecline        = "gate-required"
)

// breaks gives the rules that a command breaks at a place; none if it is legal.
func (d *definition) breaks(p place, c command) []string {
	r := &broken{}
	switch {
	case c.kind == "start":
		r.add(true, ruleStarted)
		return r.rules
	case p.kind == "end":
		r.add(true, ruleEnded)
		r.add(c.step != "", ruleStep)
		return r.rules
	case c.kind == "abort":
		return nil
	}
	r.context(d, p, c.context)
	r.add(c.step != "" && c.step != p.id, ruleStep)
	handedIn := !blank(c.output) || !blank(c.notes)
	switch {
	case p.kind == "gate":
		r.gate(p, c)
		return r.rules
	case c.skip:
		r.skip(d, p, c, handedIn)
	case p.kind == "context":
		r.add(handedIn || len(c.context) == 0, ruleContext)
		r.add(p.must != nil && !p.must.met(over(c.context, p.scope)), ruleValidate)
	case p.step == nil:
		r.add(!handedIn, ruleNote)
	default:
		r.add(!handedIn, ruleOutput)
		r.checks(d, p, c)
	}
	r.add(c.answer != nil, ruleNoGate)
	return r.rules
}

// broken collects the rules that are broken.
type broken struct{ rules []string }

func (r *broken) add(broken bool, rule string) {
	if broken && !slices.Contains(r.rules, rule) {
		r.rules = append(r.rules, rule)
	}
}

// context judges variables: only the server sets its own, the others must be of
// their type, and all of it has a bound.
func (r *broken) context(d *definition, p place, context map[string]any) {
	for name, value := range context {
		r.add(d.owns(name), ruleServerVariable)
		if v := d.variable(name); v != nil && value != nil {
			r.add(typeOf(value) != v.kind, ruleType)
		}
	}
	after := maps.Clone(p.vars)
	maps.Copy(after, context)
	r.add(len(context) > 0 && estimate(after) >= 256*1024, ruleTooLarge)
	r.add(depth(context) > 128, ruleTooDeep)
}

// gate judges an answer: nothing else may come with it.
func (r *broken) gate(p place, c command) {
	r.add(c.answer == nil || c.output != "" || c.notes != "" || len(c.context) > 0 || c.skip, ruleGate)
	r.add(p.human && !c.person, rulePerson)
	if c.answer != nil && c.answer.decline {
		r.add(!p.declinable, ruleDecline)
	} else if c.answer != nil {
		r.add(!slices.Contains(p.options, c.answer.option), ruleOption)
	}
}

// checks judges a step's validate actions, with what comes with the output and
// what the actions before them set.
func (r *broken) checks(d *definition, p place, c command) {
	vars := maps.Clone(p.vars)
	maps.Copy(vars, c.context)
	scope := over(c.context, p.scope)
	for _, a := range p.step.actions {
		switch {
		case a.kind == "set":
			set := assigned(vars, a.target, a.value)
			maps.Copy(vars, set)
			scope = over(set, scope)
		case a.kind == "validate" && d.about(a):
			r.add(!a.met(scope), ruleValidate)
		case a.kind == "validate":
			r.add(blank(c.notes), ruleNote)
		}
	}
}

// skip judges what is declined: an optional step, or the rest of an optional
// phase.
func (r *broken) skip(d *definition, p place, c command, handedIn bool) {
	optional := p.step != nil && (p.step.optional || p.in.optional)
	r.add(!optional || handedIn || len(c.context) > 0, ruleRequired)
	if optional && !p.step.optional {
		w := &walker{def: d, vars: p.vars} // outside of loops
		r.add(w.wayOn(p.in) == nowhere, ruleContext)
	}
}

// typeOf is the type of a value in the words of the dialect.
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

// over puts variables before others. The server's cannot be among them.
func over(vars map[string]any, below lookup) lookup {
	return func(name string) (any, bool) {
		if v, ok := vars[name]; ok {
			return v, true
		}
		return below(name)
	}
}

// estimate is the size of a context (facts/steps.md 1.6).
func estimate(v any) int {
	text := func(s string) int { return 2 * len(utf16.Encode([]rune(s))) }
	switch v := v.(type) {
	case string:
		return text(v)
	case float64:
		return 8
	case json.Number:
		return max(8, 2*len(v))
	case []any:
		n := 4
		for _, part := range v {
			n += estimate(part)
		}
		return n
	case map[string]any:
		n := 4
		for k, part := range v {
			n += text(k) + estimate(part)
		}
		return n
	}
	return 4
}

// depth counts the levels of nesting.
func depth(v any) int {
	deepest := 0
	switch v := v.(type) {
	case []any:
		for _, part := range v {
			deepest = max(deepest, 1+depth(part))
		}
	case map[string]any:
		for _, part := range v {
			deepest = max(deepest, 1+depth(part))
		}
	}
	return deepest
}

// blank says whether a text has nothing to read, as JavaScript's trim sees it.
func blank(text string) bool {
	return strings.TrimFunc(text, func(r rune) bool {
		return r == '\uFEFF' || unicode.IsSpace(r) && r != '\u0085'
	}) == ""
}
