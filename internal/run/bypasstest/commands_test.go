package bypasstest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// cheatAttempt is a command with the name of the attempted bypass.
type cheatAttempt struct {
	cheat string
	command
}

// illegalAttempts returns commands for a position. Nearly all of them are illegal; the
// model decides which.
func illegalAttempts(d randomSource, def *definition, p position) []cheatAttempt {
	a := &attacker{randomSource: d, def: def, place: p, honest: command{kind: "continue"}}
	if c, ok := legalCommand(d, def, p); ok && c.kind == "continue" {
		a.honest = c
	}
	a.tryOtherSteps()
	a.atGates()
	a.withoutGates()
	a.tryServerVars()
	a.tryOutputs()
	a.tryLargeInput()
	return a.list
}

// attacker collects attempts. Many are legal commands with one error.
type attacker struct {
	randomSource
	def    *definition
	place  position
	honest command
	list   []cheatAttempt
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
	a.list = append(a.list, cheatAttempt{cheat, c})
}

// tryOtherSteps adds attempts that name another step.
func (a *attacker) tryOtherSteps() {
	current := -1
	if a.place.at != nil {
		current = a.place.at.serial
	}
	others := a.def.allSteps()
	for range min(3, len(others)) {
		s := pickOne(a, others...)
		cheat := "skipped step"
		switch {
		case s.serial == current:
			continue
		case slices.Contains(a.place.reached, s):
			cheat = "wrong order"
		case a.place.in != nil && !slices.Contains(a.place.in.loop.body, s):
			cheat = "false loop exit: a step after the loop"
		}
		a.addAttempt(cheat, func(c *command) { c.step = s.id })
	}
	a.addAttempt("an unknown step ID", func(c *command) {
		c.step = pickOne(a, "nope", "S-1-ID", "*", "null", " ", strings.Repeat("s", 70))
	})
	if a.place.at != nil {
		a.addAttempt("the step ID in a different case", func(c *command) {
			c.step = pickOne(a, strings.ToUpper(a.place.at.id), a.place.at.id+" ", a.place.at.id+"\x00")
		})
	}
	a.addAttempt("a required step declined", func(c *command) { *c = command{kind: "continue", skip: true} })
	a.addAttempt("a required step declined along with its output", func(c *command) { c.skip = true })
}

// falseClaims returns variables with which an agent might claim to be a person or to have
// completed steps.
func falseClaims() map[string]any {
	return map[string]any{
		"person": true, "Person": true, "via": "terminal", "approved": true, "approvedBy": "the user", "confirmed": true,
		"answer": "confirm", "gate": nil, "status": "completed", "cursor": 99.0, "completedSteps": []any{"all"},
	}
}

func (a *attacker) atGates() {
	if a.place.kind != "gate" {
		return
	}
	good := func(c *command) { c.answer = &reply{option: pickOne(a, a.place.options...)} }
	a.addAttempt("unanswered gate: output", func(c *command) {
		*c = command{kind: "continue", output: pickOne(a, sampleOutputs()...), person: c.person}
	})
	a.addAttempt("unanswered gate: notes", func(c *command) {
		*c = command{kind: "continue", notes: "The user has confirmed it.", person: c.person}
	})
	a.addAttempt("unanswered gate: claims", func(c *command) { *c = command{kind: "continue", context: falseClaims(), person: c.person} })
	a.addAttempt("unanswered gate: no input", func(c *command) { *c = command{kind: "continue", person: c.person} })
	a.addAttempt("an answer with output", func(c *command) { good(c); c.output = "DONE" })
	a.addAttempt("an answer with notes", func(c *command) { good(c); c.notes = "confirmed" })
	a.addAttempt("an answer with variables", func(c *command) { good(c); c.context = drawVars(a, 5) })
	a.addAttempt("an answer with claims", func(c *command) { good(c); c.context = falseClaims() })
	a.addAttempt("unknown option", func(c *command) {
		c.answer = &reply{option: pickOne(a, "", "Confirm", "CONFIRM", "confirm ", " confirm", "yes", "approve", "skip", "revise", "decline", "confirm\x00", "{\"optionId\":\"confirm\"}")}
	})
	a.addAttempt("a gate declined", func(c *command) { c.answer = &reply{decline: true} })
	a.addAttempt("a gate declined with an option", func(c *command) { good(c); c.answer.decline = true })
	for _, option := range a.place.options {
		a.addAttempt("a human approval answered by the agent: "+option, func(c *command) {
			c.answer = &reply{option: option, note: "I am the person; approved by the user."}
			c.person = false
		})
	}
}

func (a *attacker) withoutGates() {
	if a.place.kind == "gate" {
		return
	}
	placeholder := pickOne(a, "...", "…", "TODO", "<value>")
	a.addAttempt("a placeholder as output", func(c *command) { c.output = placeholder })
	a.addAttempt("a placeholder as notes", func(c *command) { c.notes = placeholder })
	a.addAttempt("a placeholder in a variable", func(c *command) {
		if c.context == nil {
			c.context = map[string]any{}
		}
		c.context["about"] = []any{map[string]any{"text": placeholder}}
	})
	a.addAttempt("an answer without a gate", func(c *command) { c.answer = &reply{option: pickOne(a, "confirm", "skip", "revise", "")} })
	a.addAttempt("only an answer, without a gate", func(c *command) {
		*c = command{kind: "continue", answer: &reply{option: pickOne(a, "confirm", "skip", "revise")}, person: true}
	})
	if a.place.kind != "context" {
		return
	}
	a.addAttempt("output while the run waits", func(c *command) { c.output = pickOne(a, sampleOutputs()...) })
	a.addAttempt("output alone while the run waits", func(c *command) { *c = command{kind: "continue", output: "DONE"} })
	a.addAttempt("notes while the run waits", func(c *command) { c.notes = "done" })
	a.addAttempt("no input while the run waits", func(c *command) { *c = command{kind: "continue"} })
}

// tryServerVars adds attempts to set variables that only the server sets.
func (a *attacker) tryServerVars() {
	for _, name := range a.def.serverVars() {
		if !oneIn(a, 3) {
			continue
		}
		cheat := "context that contradicts the run: a loop's variable"
		if a.place.in != nil {
			cheat = "false loop exit: the loop's variable written"
		}
		if strings.HasPrefix(name, "_") {
			cheat = "context that contradicts the run: the engine's state"
		}
		a.addAttempt(cheat, func(c *command) { c.context[name] = pickOne[any](a, 99.0, 0.0, nil, "b", []any{}, true) })
	}
	if a.place.in == nil {
		return
	}
	a.addAttempt("false loop exit: the loop claimed as done", func(c *command) {
		c.context["_loopState"] = map[string]any{a.place.in.id: map[string]any{"iteration": 99.0, "done": true}}
	})
	a.addAttempt("false loop exit: a step outside of the loop", func(c *command) { c.context["_currentLoop"] = nil })
}

func (a *attacker) tryOutputs() {
	if a.place.kind != "step" {
		return
	}
	for range 3 {
		text := pickOne(a, sampleOutputs()...)
		a.addAttempt("output that fails its criteria", func(c *command) { c.output = text })
		a.addAttempt("output that fails its criteria, with variables that disable them", func(c *command) {
			c.output, c.context = text, a.freeVars(drawVars(a, 9))
		})
	}
	for _, outcome := range []string{checkFails, checkInconclusive, checkUndefined} {
		a.addAttempt("a check: "+outcome, func(c *command) { c.checks = sameOutcomes(outcome) })
	}
	a.addAttempt("other outcomes of checks", func(c *command) { c.checks = drawOutcomes(a) })
	a.addAttempt("a check that fails, with variables that disable it", func(c *command) {
		c.checks, c.context = sameOutcomes(checkFails), a.freeVars(drawVars(a, 9))
	})
	a.addAttempt("a check without its variable", func(c *command) { c.context["size"] = nil })
	a.addAttempt("criteria met only in the notes", func(c *command) { c.notes, c.output = c.output, pickOne(a, "", "x") })
	a.addAttempt("criteria met only in variables", func(c *command) {
		c.context["output"], c.output = c.output, pickOne(a, "", "x")
	})
	a.addAttempt("output in a different case", func(c *command) { c.output = strings.ToLower(c.output) })
	a.addAttempt("no output and no notes", func(c *command) { c.output, c.notes = "", "" })
	a.addAttempt("blank output", func(c *command) {
		c.output, c.notes = pickOne(a, " ", "\n\t \r\n", "\u00a0\u2003", "\u2028", "\uFEFF"), pickOne(a, "", "  ")
	})
	a.addAttempt("variables alone", func(c *command) { *c = command{kind: "continue", context: a.freeVars(drawVars(a, 5))} })
}

// tryLargeInput adds attempts that exceed the limits.
func (a *attacker) tryLargeInput() {
	if !oneIn(a, 8) {
		return
	}
	left := 256*1024 - estimateSize(a.place.vars)
	a.addAttempt("context too large: one string", func(c *command) { c.context["pad"] = strings.Repeat("x", 262_144) })
	a.addAttempt("context too large: one number", func(c *command) { c.context["pad"] = json.Number(strings.Repeat("7", 262_144)) })
	a.addAttempt("context too deep", func(c *command) { c.context["deep"] = nestedValue(500) })
	a.addAttempt("context too large: by one byte", func(c *command) {
		c.context = map[string]any{"pad": strings.Repeat("x", max(0, left-9))}
	})
	a.addAttempt("context too large: nested", func(c *command) {
		deep := any(strings.Repeat("\U0001F600", 70_000))
		for range 50 {
			deep = map[string]any{"d": []any{deep}}
		}
		c.context["deep"] = deep
	})
	if !oneIn(a, 5) {
		return
	}
	a.addAttempt("context too large: many keys", func(c *command) {
		for i := range 20_000 {
			c.context[fmt.Sprintf("key-%06d", i)] = nil
		}
	})
}

// freeVars removes the variables of the server.
func (a *attacker) freeVars(vars map[string]any) map[string]any {
	return withoutServerVars(vars, a.def)
}

func withoutServerVars(vars map[string]any, def *definition) map[string]any {
	maps.DeleteFunc(vars, func(name string, _ any) bool { return def.isServerVar(name) })
	return vars
}

// legalCommand draws a command that the model accepts. ok is false if it finds none.
func legalCommand(d randomSource, def *definition, p position) (c command, ok bool) {
	for range 6 {
		if c := honestCommand(d, def, p); len(def.brokenRules(p, c)) == 0 {
			return c, true
		}
	}
	return command{}, false
}

func honestCommand(d randomSource, def *definition, p position) command {
	c := command{kind: "continue"}
	if p.kind == "end" {
		return c
	}
	if oneIn(d, 150) {
		return command{kind: "abort"}
	}
	if oneIn(d, 3) {
		c.step = p.at.id
	}
	switch p.kind {
	case "gate":
		c.answer = &reply{option: pickOne(d, append([]string{"confirm"}, p.options...)...), note: pickOne(d, "", "fine", "once more")}
		c.person = p.human || oneIn(d, 4)
	case "context":
		c.context = map[string]any{}
		for _, name := range p.needs {
			c.context[name] = drawValue(d, name)
		}
		if oneIn(d, 5) {
			c.context = drawVars(d, 6)
		}
	default:
		if oneIn(d, 2) {
			c.context = drawVars(d, 3)
		}
		if oneIn(d, 10) {
			c.context = falseClaims() // these variables have no effect in the workflow
		}
		c.notes = pickOne(d, "", "", "noted")
		if p.at.criteria.needsSize(p.scopesWith(c.context)) {
			c.context = maps.Clone(c.context)
			if c.context == nil {
				c.context = map[string]any{}
			}
			c.context["size"] = pickOne[any](d, "large", "2", true, 3.0)
		}
		c.output, c.checks = validOutput(d, p, withoutServerVars(maps.Clone(c.context), def))
	}
	c.context = withoutServerVars(c.context, def)
	if len(c.context) == 0 {
		c.context = nil
	}
	return c
}

// validOutput draws an output that meets the criteria, with the outcomes of checks. It
// returns "" if none exists.
func validOutput(d randomSource, p position, vars map[string]any) (output string, checks map[string]string) {
	type submission struct {
		output string
		checks map[string]string
	}
	var fit []submission
	worlds := []map[string]string{sameOutcomes(checkPasses)}
	if p.at.criteria.hasCheck() {
		worlds = append(worlds, sameOutcomes(checkFails), drawOutcomes(d), drawOutcomes(d))
	}
	for _, checks := range worlds {
		for _, text := range sampleOutputs() {
			if !slices.ContainsFunc(p.scopesWith(vars), func(scope lookup) bool { return !p.at.criteria.acceptsOutput(text, scope, checks) }) {
				fit = append(fit, submission{text, checks})
			}
		}
	}
	if len(fit) == 0 {
		return "", nil
	}
	one := pickOne(d, fit...)
	return one.output, one.checks
}
