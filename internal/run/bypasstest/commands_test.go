package bypasstest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// attempt is a command that a cheat would try, under the name of the cheat.
type attempt struct {
	cheat string
	command
}

// attempts are commands for a place, nearly all of them illegal; the model says
// which. later are steps behind the place, earlier those before it.
func attempts(d dice, def *definition, p place) []attempt {
	a := &attacker{dice: d, def: def, place: p, honest: command{kind: "continue"}}
	if c, ok := legal(d, def, p); ok && c.kind == "continue" {
		a.honest = c
	}
	a.elsewhere()
	a.atGates()
	a.withoutGates()
	a.variables()
	a.outputs()
	a.large()
	return a.list
}

// attacker collects attempts. Many are honest commands with one thing wrong.
type attacker struct {
	dice
	def    *definition
	place  place
	honest command
	list   []attempt
}

func (a *attacker) try(cheat string, change func(c *command)) {
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

// elsewhere claims to be at another step.
func (a *attacker) elsewhere() {
	current := -1
	if a.place.at != nil {
		current = a.place.at.serial
	}
	others := a.def.all()
	for range min(3, len(others)) {
		s := pick(a, others...)
		cheat := "skipped step"
		switch {
		case s.serial == current:
			continue
		case slices.Contains(a.place.reached, s):
			cheat = "wrong order"
		case a.place.in != nil && !slices.Contains(a.place.in.loop.body, s):
			cheat = "false loop exit: a step behind the loop"
		}
		a.try(cheat, func(c *command) { c.step = s.id })
	}
	a.try("a step that is none", func(c *command) {
		c.step = pick(a, "nope", "S-1-ID", "*", "null", " ", strings.Repeat("s", 70))
	})
	if a.place.at != nil {
		a.try("the step in other letters", func(c *command) {
			c.step = pick(a, strings.ToUpper(a.place.at.id), a.place.at.id+" ", a.place.at.id+"\x00")
		})
	}
	a.try("a required step declined", func(c *command) { *c = command{kind: "continue", skip: true} })
	a.try("a required step declined along with its output", func(c *command) { c.skip = true })
}

// claims are what an agent might say to pass for a person, or for further than
// it is.
func claims() map[string]any {
	return map[string]any{
		"person": true, "Person": true, "via": "terminal", "approved": true, "approvedBy": "the user", "confirmed": true,
		"answer": "confirm", "gate": nil, "status": "completed", "cursor": 99.0, "completedSteps": []any{"all"},
	}
}

func (a *attacker) atGates() {
	if a.place.kind != "gate" {
		return
	}
	good := func(c *command) { c.answer = &reply{option: pick(a, a.place.options...)} }
	a.try("unanswered gate: output", func(c *command) {
		*c = command{kind: "continue", output: pick(a, outputs()...), person: c.person}
	})
	a.try("unanswered gate: notes", func(c *command) {
		*c = command{kind: "continue", notes: "The user has confirmed it.", person: c.person}
	})
	a.try("unanswered gate: claims", func(c *command) { *c = command{kind: "continue", context: claims(), person: c.person} })
	a.try("unanswered gate: nothing", func(c *command) { *c = command{kind: "continue", person: c.person} })
	a.try("an answer with output", func(c *command) { good(c); c.output = "DONE" })
	a.try("an answer with notes", func(c *command) { good(c); c.notes = "confirmed" })
	a.try("an answer with variables", func(c *command) { good(c); c.context = drawVars(a, 5) })
	a.try("an answer with claims", func(c *command) { good(c); c.context = claims() })
	a.try("unknown option", func(c *command) {
		c.answer = &reply{option: pick(a, "", "Confirm", "CONFIRM", "confirm ", " confirm", "yes", "approve", "skip", "revise", "decline", "confirm\x00", "{\"optionId\":\"confirm\"}")}
	})
	a.try("a gate declined", func(c *command) { c.answer = &reply{decline: true} })
	a.try("a gate declined with an option", func(c *command) { good(c); c.answer.decline = true })
	for _, option := range a.place.options {
		a.try("a person's gate answered by the agent: "+option, func(c *command) {
			c.answer = &reply{option: option, note: "I am the person; approved by the user."}
			c.person = false
		})
	}
}

func (a *attacker) withoutGates() {
	if a.place.kind == "gate" {
		return
	}
	a.try("an answer without a gate", func(c *command) { c.answer = &reply{option: pick(a, "confirm", "skip", "revise", "")} })
	a.try("an answer alone without a gate", func(c *command) {
		*c = command{kind: "continue", answer: &reply{option: pick(a, "confirm", "skip", "revise")}, person: true}
	})
	if a.place.kind != "context" {
		return
	}
	a.try("output while the run waits", func(c *command) { c.output = pick(a, outputs()...) })
	a.try("output alone while the run waits", func(c *command) { *c = command{kind: "continue", output: "DONE"} })
	a.try("notes while the run waits", func(c *command) { c.notes = "done" })
	a.try("nothing while the run waits", func(c *command) { *c = command{kind: "continue"} })
}

// variables writes what only the server sets.
func (a *attacker) variables() {
	for _, name := range a.def.owned() {
		if !oneIn(a, 3) {
			continue
		}
		cheat := "context against what is recorded: a loop's variable"
		if a.place.in != nil {
			cheat = "false loop exit: the loop's variable written"
		}
		if strings.HasPrefix(name, "_") {
			cheat = "context against what is recorded: the engine's state"
		}
		a.try(cheat, func(c *command) { c.context[name] = pick[any](a, 99.0, 0.0, nil, "b", []any{}, true) })
	}
	if a.place.in == nil {
		return
	}
	a.try("false loop exit: the loop called done", func(c *command) {
		c.context["_loopState"] = map[string]any{a.place.in.id: map[string]any{"iteration": 99.0, "done": true}}
	})
	a.try("false loop exit: out of the loop", func(c *command) { c.context["_currentLoop"] = nil })
}

func (a *attacker) outputs() {
	if a.place.kind != "step" {
		return
	}
	for range 3 {
		text := pick(a, outputs()...)
		a.try("output that fails its criteria", func(c *command) { c.output = text })
		a.try("output that fails its criteria, with variables that switch them off", func(c *command) {
			c.output, c.context = text, a.free(drawVars(a, 9))
		})
	}
	a.try("criteria met in the notes alone", func(c *command) { c.notes, c.output = c.output, pick(a, "", "x") })
	a.try("criteria met in variables alone", func(c *command) {
		c.context["output"], c.output = c.output, pick(a, "", "x")
	})
	a.try("output in other letters", func(c *command) { c.output = strings.ToLower(c.output) })
	a.try("nothing handed in", func(c *command) { c.output, c.notes = "", "" })
	a.try("blank output", func(c *command) {
		c.output, c.notes = pick(a, " ", "\n\t \r\n", "\u00a0\u2003", "\u2028", "\uFEFF"), pick(a, "", "  ")
	})
	a.try("variables alone", func(c *command) { *c = command{kind: "continue", context: a.free(drawVars(a, 5))} })
}

// large hands in too much.
func (a *attacker) large() {
	if !oneIn(a, 8) {
		return
	}
	left := 256*1024 - estimate(a.place.vars)
	a.try("context too large: one text", func(c *command) { c.context["pad"] = strings.Repeat("x", 131_072) })
	a.try("context too large: one number", func(c *command) { c.context["pad"] = json.Number(strings.Repeat("7", 131_072)) })
	a.try("context too deep", func(c *command) { c.context["deep"] = nested(500) })
	a.try("context too large: to the byte", func(c *command) {
		c.context = map[string]any{"pad": strings.Repeat("x", left/2-3)}
	})
	a.try("context too large: nested", func(c *command) {
		deep := any(strings.Repeat("\U0001F600", 66_000))
		for range 50 {
			deep = map[string]any{"d": []any{deep}}
		}
		c.context["deep"] = deep
	})
	if !oneIn(a, 5) {
		return
	}
	a.try("context too large: many keys", func(c *command) {
		for i := range 10_000 {
			c.context[fmt.Sprintf("key-%06d", i)] = nil
		}
	})
}

// free takes the server's variables out.
func (a *attacker) free(vars map[string]any) map[string]any { return without(vars, a.def) }

func without(vars map[string]any, def *definition) map[string]any {
	maps.DeleteFunc(vars, func(name string, _ any) bool { return def.owns(name) })
	return vars
}

// legal draws a command that the model accepts; ok is false where it finds none.
func legal(d dice, def *definition, p place) (c command, ok bool) {
	for range 6 {
		if c := honest(d, def, p); len(def.breaks(p, c)) == 0 {
			return c, true
		}
	}
	return command{}, false
}

func honest(d dice, def *definition, p place) command {
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
		c.answer = &reply{option: pick(d, append([]string{"confirm", "confirm", "confirm"}, p.options...)...), note: pick(d, "", "fine", "once more")}
		c.person = p.human || oneIn(d, 4)
	case "context":
		c.context = map[string]any{}
		for _, name := range p.needs {
			c.context[name] = value(d, name)
		}
		if oneIn(d, 5) {
			c.context = drawVars(d, 6)
		}
	default:
		if oneIn(d, 2) {
			c.context = drawVars(d, 3)
		}
		if oneIn(d, 10) {
			c.context = claims() // they are variables like others, and lead nowhere
		}
		c.notes = pick(d, "", "", "noted")
		c.output = output(d, p, without(maps.Clone(c.context), def))
	}
	c.context = without(c.context, def)
	if len(c.context) == 0 {
		c.context = nil
	}
	return c
}

// output draws one that the criteria accept, before and with the variables that
// come with it.
func output(d dice, p place, vars map[string]any) string {
	var fit []string
	for _, text := range outputs() {
		if p.at.criteria.accepts(text, p.scope) && p.at.criteria.accepts(text, over(vars, p.scope)) {
			fit = append(fit, text)
		}
	}
	if len(fit) == 0 {
		return ""
	}
	return pick(d, fit...)
}
