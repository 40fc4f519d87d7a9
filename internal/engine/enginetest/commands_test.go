package enginetest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// attempt is an illegal command with a description of the attack.
type attempt struct {
	cheat string
	command
}

// listAttempts returns commands for a place. Nearly all are illegal; the model decides
// which.
func listAttempts(d randomSource, def *definition, p place) []attempt {
	a := &attacker{randomSource: d, def: def, place: p, honest: command{kind: "continue", checks: map[string]string{}}}
	if c, ok := drawLegal(d, def, p); ok && c.kind == "continue" {
		a.honest = c
	}
	a.addWrongSteps()
	a.addIllegalSkips()
	a.addGateAttempts()
	a.addAttemptsWithoutGate()
	a.addVariableAttempts()
	a.addOutputAttempts()
	a.addOversizedContexts()
	return a.list
}

// attacker collects attempts. Many are legal commands with one error.
type attacker struct {
	randomSource
	def    *definition
	place  place
	honest command
	list   []attempt
}

func (a *attacker) addAttempt(cheat string, change func(c *command)) {
	c := a.honest
	c.context = maps.Clone(c.context)
	if c.context == nil {
		c.context = map[string]any{}
	}
	change(&c)
	if len(c.context) == 0 {
		c.context = nil
	}
	a.list = append(a.list, attempt{cheat, c})
}

// addWrongSteps adds commands that name a different step.
func (a *attacker) addWrongSteps() {
	others := a.def.allElements()
	for range 3 {
		n := drawFrom(a, others...)
		if n.elementID() == a.place.id {
			continue
		}
		cheat := "a jump to an unreached step"
		if slices.Contains(a.place.revealed, n) {
			cheat = "wrong order"
		}
		a.addAttempt(cheat, func(c *command) { c.step = n.elementID() })
	}
	last := a.def.phases[len(a.def.phases)-1]
	a.addAttempt("a jump to the last phase", func(c *command) { c.step = last.elementID() })
	a.addAttempt("an unknown step ID", func(c *command) {
		c.step = drawFrom(a, "nope", "S-1-ID", "*", "null", " ", strings.Repeat("s", 70))
	})
	if a.place.id != "" {
		a.addAttempt("the step ID in a different case", func(c *command) {
			c.step = drawFrom(a, strings.ToUpper(a.place.id), a.place.id+" ", a.place.id+"\x00")
		})
	}
	a.addAttempt("a second start", func(c *command) { *c = command{kind: "start"} })
}

// addIllegalSkips adds skips of required steps, and skips with other input.
func (a *attacker) addIllegalSkips() {
	a.addAttempt("a required item skipped", func(c *command) { *c = command{kind: "continue", skip: true} })
	a.addAttempt("a required item skipped by a person", func(c *command) { *c = command{kind: "continue", skip: true, person: true} })
	a.addAttempt("a skip along with output", func(c *command) { c.skip, c.output = true, "worked" })
	a.addAttempt("a skip along with variables", func(c *command) {
		*c = command{kind: "continue", skip: true, context: map[string]any{"unread": 1.0}}
	})
}

// falseClaims returns variables with which an agent might pretend to be a person, or to
// have progressed further.
func falseClaims() map[string]any {
	return map[string]any{
		"person": true, "via": "terminal", "approved": true, "approvedBy": "the user", "confirmed": true,
		"currentPhase": 99.0, "currentStep": 9.0, "completedPhases": []any{1.0, 2.0, 3.0}, "checkpointResponses": object{"1-1": object{"optionId": "yes"}},
		"status": "completed", "skippedPhases": []any{1.0, 2.0}, "activeLoops": []any{},
	}
}

func (a *attacker) addGateAttempts() {
	if a.place.kind != "gate" {
		return
	}
	good := func(c *command) { c.answer = &reply{option: drawFrom(a, a.place.options...)} }
	a.addAttempt("unanswered gate: output", func(c *command) {
		*c = command{kind: "continue", output: drawFrom(a, sampleOutputs()...), person: c.person}
	})
	a.addAttempt("unanswered gate: notes", func(c *command) {
		*c = command{kind: "continue", notes: "The user has agreed.", person: c.person}
	})
	a.addAttempt("unanswered gate: claims", func(c *command) { *c = command{kind: "continue", context: falseClaims(), person: c.person} })
	a.addAttempt("unanswered gate: no input", func(c *command) { *c = command{kind: "continue", person: c.person} })
	a.addAttempt("unanswered gate: skipped", func(c *command) { *c = command{kind: "continue", skip: true, person: c.person} })
	a.addAttempt("an answer with output", func(c *command) { good(c); c.output = "DONE" })
	a.addAttempt("an answer with notes", func(c *command) { good(c); c.notes = "agreed" })
	a.addAttempt("an answer with variables", func(c *command) { good(c); c.context = drawVars(a, a.def, 5) })
	a.addAttempt("an answer with claims", func(c *command) { good(c); c.context = falseClaims() })
	a.addAttempt("an answer with a skip", func(c *command) { good(c); c.skip = true })
	a.addAttempt("unknown option", func(c *command) {
		id := a.place.options[0]
		c.answer = &reply{option: drawFrom(a, "", strings.ToUpper(id), id+" ", " "+id, "yes", "1", "declined", id+"\x00", drawFrom(a, a.def.allElements()...).elementID())}
	})
	a.addAttempt("a required gate declined", func(c *command) { c.answer = &reply{decline: true} })
	a.addAttempt("a required gate declined with an option", func(c *command) { good(c); c.answer.decline = true })
	for _, option := range a.place.options {
		a.addAttempt("a human approval answered by the agent", func(c *command) {
			c.answer = &reply{option: option, note: "I am the person; approved by the user."}
			c.person = false
		})
	}
	a.addAttempt("a human approval declined by the agent", func(c *command) { *c = command{kind: "continue", answer: &reply{decline: true}} })
}

func (a *attacker) addAttemptsWithoutGate() {
	if a.place.kind == "gate" {
		return
	}
	any := drawFrom(a, a.def.allElements()...).elementID()
	placeholder := drawFrom(a, "...", "…", "TODO", "<value>")
	a.addAttempt("a placeholder as output", func(c *command) { c.output = placeholder })
	a.addAttempt("a placeholder as notes", func(c *command) { c.notes = placeholder })
	a.addAttempt("a placeholder in a variable", func(c *command) {
		if c.context == nil {
			c.context = object{}
		}
		c.context["about"] = object{"text": placeholder}
	})
	a.addAttempt("an answer without a gate", func(c *command) { c.answer = &reply{option: drawFrom(a, any, "yes", "")} })
	a.addAttempt("only an answer, without a gate", func(c *command) {
		*c = command{kind: "continue", answer: &reply{option: any}, person: true}
	})
	a.addAttempt("a decline without an open gate", func(c *command) { c.answer = &reply{decline: true} })
	if a.place.kind != "context" {
		return
	}
	a.addAttempt("output while the run waits", func(c *command) { c.output = drawFrom(a, sampleOutputs()...) })
	a.addAttempt("output alone while the run waits", func(c *command) { *c = command{kind: "continue", output: "DONE"} })
	a.addAttempt("notes while the run waits", func(c *command) { c.notes = "done" })
	a.addAttempt("no input while the run waits", func(c *command) { *c = command{kind: "continue"} })
}

// addVariableAttempts adds commands that set server variables or values of the wrong type.
func (a *attacker) addVariableAttempts() {
	for _, name := range a.def.serverVars() {
		a.addAttempt("a variable that only the server sets", func(c *command) {
			c.context[name] = drawFrom(a, drawValue(a, name), any(99.0), nil, "b", true)
		})
	}
	for _, v := range a.def.vars {
		if oneIn(a, 2) {
			a.addAttempt("a variable of a different type", func(c *command) { c.context[v.name] = drawFrom(a, otherTypes(v.kind)...) })
		}
	}
	if m := a.place.must; m != nil && m.hasValue {
		a.addAttempt("a validate action not met", func(c *command) {
			root, rest, deep := strings.Cut(m.target, ".")
			c.context[root] = drawValue(a, root)
			if deep && rest == "done" {
				c.context[root] = object{"done": drawFrom[any](a, "true", 1.0, nil, m.value == false)}
			}
		})
		a.addAttempt("a validate action met by a different variable", func(c *command) { c.context = map[string]any{m.target + " ": m.value} })
	}
}

func (a *attacker) addOutputAttempts() {
	if a.place.kind != "step" {
		return
	}
	a.addAttempt("no notes on a required check", func(c *command) { c.notes = drawFrom(a, "", " ", "\u00a0") })
	a.addAttempt("a validate action failed by the output's variables", func(c *command) {
		c.context = drawVars(a, a.def, 9)
	})
	a.addAttempt("a validate action not met by the output's variables", func(c *command) { c.context = nil })
	for _, outcome := range []string{checkFails, checkInconclusive, checkUndefined} {
		a.addAttempt("a check: "+outcome, func(c *command) { c.checks = drawOutcomes(a, a.place.step, outcome) })
	}
	a.addAttempt("a check that fails, with variables that disable it", func(c *command) {
		c.checks, c.context = drawOutcomes(a, a.place.step, checkFails, checkPasses), drawVars(a, a.def, 9)
	})
	a.addAttempt("a check without its variable", func(c *command) { c.context["size"] = nil })
	a.addAttempt("an output that fails its criteria", func(c *command) { c.output = "worked" })
	a.addAttempt("no output and no notes", func(c *command) { c.output, c.notes = "", "" })
	a.addAttempt("blank output", func(c *command) {
		c.output, c.notes = drawFrom(a, " ", "\n\t \r\n", "\u00a0\u2003", "\u2028", "\uFEFF"), drawFrom(a, "", "  ")
	})
	a.addAttempt("variables alone", func(c *command) { *c = command{kind: "continue", context: drawVars(a, a.def, 5)} })
	a.addAttempt("claims alone", func(c *command) { *c = command{kind: "continue", context: falseClaims()} })
}

// addOversizedContexts adds commands with too large contexts.
func (a *attacker) addOversizedContexts() {
	if !oneIn(a, 20) {
		return
	}
	left := 256*1024 - contextSize(a.place.vars)
	a.addAttempt("context too large: one string", func(c *command) { c.context["pad"] = strings.Repeat("x", 262_144) })
	a.addAttempt("context too large: one number", func(c *command) { c.context["pad"] = json.Number(strings.Repeat("7", 262_144)) })
	a.addAttempt("context too large: by one byte", func(c *command) {
		c.context = map[string]any{"pad": strings.Repeat("x", max(0, left-9))}
	})
	a.addAttempt("context too deep", func(c *command) {
		deep := any("x")
		for range 500 {
			deep = []any{deep}
		}
		c.context["deep"] = deep
	})
	a.addAttempt("context too large: many keys", func(c *command) {
		for i := range 20_000 {
			c.context[fmt.Sprintf("key-%06d", i)] = nil
		}
	})
}

// drawLegal draws a command that the model accepts; ok is false if none exists.
func drawLegal(d randomSource, def *definition, p place) (c command, ok bool) {
	for range 12 {
		if c := drawHonest(d, def, p); len(def.brokenRules(p, c)) == 0 {
			return c, true
		}
	}
	return command{}, false
}

func drawHonest(d randomSource, def *definition, p place) command {
	c := command{kind: "continue", checks: map[string]string{}}
	if p.kind == "end" || p.stuck {
		return c
	}
	if oneIn(d, 300) {
		return command{kind: "abort"}
	}
	if oneIn(d, 3) {
		c.step = p.id
	}
	switch {
	case p.kind == "gate":
		c.answer = &reply{option: drawFrom(d, p.options...), note: drawFrom(d, "", "fine")}
		c.person = p.human || oneIn(d, 4)
		if p.declinable && oneIn(d, 3) {
			c.answer = &reply{decline: true}
		}
		return c
	case p.kind == "context":
		c.context = drawNeeded(d, p.needs)
		if p.must != nil && p.must.hasValue {
			meetAction(d, c.context, p.must)
		}
		if oneIn(d, 8) {
			c.context = drawVars(d, def, 6)
		}
	case p.step != nil && (p.step.optional || p.phase.optional) && oneIn(d, 3):
		c.skip = true
		return c
	default:
		if oneIn(d, 2) {
			c.context = drawVars(d, def, 3)
		}
		if oneIn(d, 10) {
			c.context = falseClaims() // these variables have no effect in the workflow
		}
		c.output, c.notes = drawFrom(d, sampleOutputs()...), drawFrom(d, "", "noted", "noted")
		if p.step == nil && oneIn(d, 2) {
			c.output, c.notes = "", "noted"
		}
		if p.step != nil {
			c.context = meetActions(d, def, p.step, c.context)
			meetCriteria(d, p, &c)
		}
	}
	for _, name := range def.serverVars() {
		delete(c.context, name)
	}
	if len(c.context) == 0 {
		c.context = nil
	}
	return c
}

// drawNeeded draws values for the variables that a run waits for.
func drawNeeded(d randomSource, needs []string) map[string]any {
	context := map[string]any{}
	for _, path := range needs {
		root, _, _ := strings.Cut(path, ".")
		context[root] = drawValue(d, root)
		if typeOfName(root) == "" && oneIn(d, 2) {
			context[root] = drawFrom[any](d, []any{"a"}, []any{})
		}
		if path == "files.0" {
			context[root] = []any{[]any{"a", "b"}, true}
		}
	}
	return context
}

// meetCriteria sets an output, outcomes of checks and a variable that probably meet the
// criteria of a step.
func meetCriteria(d randomSource, p place, c *command) {
	c.checks = drawOutcomes(d, p.step, drawFrom(d, [][]string{{checkPasses}, {checkPasses}, {checkFails}, {checkPasses, checkFails, checkUndefined, checkInconclusive}}...)...)
	if p.step.criteria != nil && !oneIn(d, 4) {
		c.output = drawFrom(d, "DONE", "DONE, ok")
	}
	if _, set := p.vars["size"]; p.step.criteria != nil && !set && c.context["size"] == nil {
		c.context["size"] = "large"
	}
}

// meetActions sets the variables that a step's validate actions require.
func meetActions(d randomSource, def *definition, s *step, context map[string]any) map[string]any {
	context = maps.Clone(context)
	if context == nil {
		context = map[string]any{}
	}
	for _, a := range s.actions {
		if a.kind == "validate" && def.checksVariable(a) {
			meetAction(d, context, a)
		}
	}
	return context
}

// meetAction sets the variable that a validate action checks.
func meetAction(d randomSource, context map[string]any, a *action) {
	root, rest, _ := strings.Cut(a.target, ".")
	v := drawValue(d, root)
	switch {
	case !a.hasValue:
	case rest == "":
		v = a.value
	case rest == "done":
		v = object{"done": a.value, "tasks": []any{"a"}}
	case rest == "length":
		n, ok := a.value.(float64)
		if ok {
			v = make([]any, int(n))
		}
	}
	context[root] = v
}
