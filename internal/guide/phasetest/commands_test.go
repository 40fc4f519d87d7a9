package phasetest

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
// which.
func attempts(d dice, def *definition, p place) []attempt {
	a := &attacker{dice: d, def: def, place: p, honest: command{kind: "continue"}}
	if c, ok := legal(d, def, p); ok && c.kind == "continue" {
		a.honest = c
	}
	a.elsewhere()
	a.declines()
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

// elsewhere claims to be at another place.
func (a *attacker) elsewhere() {
	others := a.def.all()
	for range 3 {
		n := pick(a, others...)
		if n.id() == a.place.id {
			continue
		}
		cheat := "a jump to what is not reached"
		if slices.Contains(a.place.told, n) {
			cheat = "wrong order"
		}
		a.try(cheat, func(c *command) { c.step = n.id() })
	}
	last := a.def.phases[len(a.def.phases)-1]
	a.try("a jump to the last phase", func(c *command) { c.step = last.id() })
	a.try("a step that is none", func(c *command) {
		c.step = pick(a, "nope", "S-1-ID", "*", "null", " ", strings.Repeat("s", 70))
	})
	if a.place.id != "" {
		a.try("the step in other letters", func(c *command) {
			c.step = pick(a, strings.ToUpper(a.place.id), a.place.id+" ", a.place.id+"\x00")
		})
	}
	a.try("a run started again", func(c *command) { *c = command{kind: "start"} })
}

// declines skips what is required, or skips with something in hand.
func (a *attacker) declines() {
	a.try("what is required skipped", func(c *command) { *c = command{kind: "continue", skip: true} })
	a.try("what is required skipped by a person", func(c *command) { *c = command{kind: "continue", skip: true, person: true} })
	a.try("a skip along with output", func(c *command) { c.skip, c.output = true, "worked" })
	a.try("a skip along with variables", func(c *command) {
		*c = command{kind: "continue", skip: true, context: map[string]any{"unread": 1.0}}
	})
}

// claims are what an agent might say to pass for a person, or for further than
// it is.
func claims() map[string]any {
	return map[string]any{
		"person": true, "via": "terminal", "approved": true, "approvedBy": "the user", "confirmed": true,
		"currentPhase": 99.0, "currentStep": 9.0, "completedPhases": []any{1.0, 2.0, 3.0}, "checkpointResponses": object{"1-1": object{"optionId": "yes"}},
		"status": "completed", "skippedPhases": []any{1.0, 2.0}, "activeLoops": []any{},
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
		*c = command{kind: "continue", notes: "The user has agreed.", person: c.person}
	})
	a.try("unanswered gate: claims", func(c *command) { *c = command{kind: "continue", context: claims(), person: c.person} })
	a.try("unanswered gate: nothing", func(c *command) { *c = command{kind: "continue", person: c.person} })
	a.try("unanswered gate: skipped", func(c *command) { *c = command{kind: "continue", skip: true, person: c.person} })
	a.try("an answer with output", func(c *command) { good(c); c.output = "DONE" })
	a.try("an answer with notes", func(c *command) { good(c); c.notes = "agreed" })
	a.try("an answer with variables", func(c *command) { good(c); c.context = drawVars(a, a.def, 5) })
	a.try("an answer with claims", func(c *command) { good(c); c.context = claims() })
	a.try("an answer with a skip", func(c *command) { good(c); c.skip = true })
	a.try("unknown option", func(c *command) {
		id := a.place.options[0]
		c.answer = &reply{option: pick(a, "", strings.ToUpper(id), id+" ", " "+id, "yes", "1", "declined", id+"\x00", pick(a, a.def.all()...).id())}
	})
	a.try("what is required declined", func(c *command) { c.answer = &reply{decline: true} })
	a.try("what is required declined with an option", func(c *command) { good(c); c.answer.decline = true })
	for _, option := range a.place.options {
		a.try("a person's gate answered by the agent", func(c *command) {
			c.answer = &reply{option: option, note: "I am the person; approved by the user."}
			c.person = false
		})
	}
	a.try("a person's gate declined by the agent", func(c *command) { *c = command{kind: "continue", answer: &reply{decline: true}} })
}

func (a *attacker) withoutGates() {
	if a.place.kind == "gate" {
		return
	}
	any := pick(a, a.def.all()...).id()
	a.try("an answer without a gate", func(c *command) { c.answer = &reply{option: pick(a, any, "yes", "")} })
	a.try("an answer alone without a gate", func(c *command) {
		*c = command{kind: "continue", answer: &reply{option: any}, person: true}
	})
	a.try("a gate declined that is not open", func(c *command) { c.answer = &reply{decline: true} })
	if a.place.kind != "context" {
		return
	}
	a.try("output while the run waits", func(c *command) { c.output = pick(a, outputs()...) })
	a.try("output alone while the run waits", func(c *command) { *c = command{kind: "continue", output: "DONE"} })
	a.try("notes while the run waits", func(c *command) { c.notes = "done" })
	a.try("nothing while the run waits", func(c *command) { *c = command{kind: "continue"} })
}

// variables writes what only the server sets, and what is of another type.
func (a *attacker) variables() {
	for _, name := range a.def.owned() {
		a.try("a variable that only the server sets", func(c *command) {
			c.context[name] = pick(a, value(a, name), any(99.0), nil, "b", true)
		})
	}
	for _, v := range a.def.vars {
		if oneIn(a, 2) {
			a.try("a variable of another type", func(c *command) { c.context[v.name] = pick(a, strangers(v.kind)...) })
		}
	}
	if m := a.place.must; m != nil && m.hasValue {
		a.try("a validate action not met", func(c *command) {
			root, rest, deep := strings.Cut(m.target, ".")
			c.context[root] = value(a, root)
			if deep && rest == "done" {
				c.context[root] = object{"done": pick[any](a, "true", 1.0, nil, m.value == false)}
			}
		})
		a.try("a validate action met by another name", func(c *command) { c.context = map[string]any{m.target + " ": m.value} })
	}
}

func (a *attacker) outputs() {
	if a.place.kind != "step" {
		return
	}
	a.try("no notes on what is to be checked", func(c *command) { c.notes = pick(a, "", " ", "\u00a0") })
	a.try("a validate action failed by what comes with the output", func(c *command) {
		c.context = drawVars(a, a.def, 9)
	})
	a.try("a validate action not met by what comes with the output", func(c *command) { c.context = nil })
	a.try("nothing handed in", func(c *command) { c.output, c.notes = "", "" })
	a.try("blank output", func(c *command) {
		c.output, c.notes = pick(a, " ", "\n\t \r\n", "\u00a0\u2003", "\u2028", "\uFEFF"), pick(a, "", "  ")
	})
	a.try("variables alone", func(c *command) { *c = command{kind: "continue", context: drawVars(a, a.def, 5)} })
	a.try("claims alone", func(c *command) { *c = command{kind: "continue", context: claims()} })
}

// large hands in too much.
func (a *attacker) large() {
	if !oneIn(a, 20) {
		return
	}
	left := 256*1024 - estimate(a.place.vars)
	a.try("context too large: one text", func(c *command) { c.context["pad"] = strings.Repeat("x", 131_072) })
	a.try("context too large: one number", func(c *command) { c.context["pad"] = json.Number(strings.Repeat("7", 131_072)) })
	a.try("context too large: to the byte", func(c *command) {
		c.context = map[string]any{"pad": strings.Repeat("x", left/2-3)}
	})
	a.try("context too deep", func(c *command) {
		deep := any("x")
		for range 500 {
			deep = []any{deep}
		}
		c.context["deep"] = deep
	})
	a.try("context too large: many keys", func(c *command) {
		for i := range 10_000 {
			c.context[fmt.Sprintf("key-%06d", i)] = nil
		}
	})
}

// legal draws a command that the model accepts; ok is false where it finds none.
func legal(d dice, def *definition, p place) (c command, ok bool) {
	for range 12 {
		if c := honest(d, def, p); len(def.breaks(p, c)) == 0 {
			return c, true
		}
	}
	return command{}, false
}

func honest(d dice, def *definition, p place) command {
	c := command{kind: "continue"}
	if p.kind == "end" || p.dead {
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
		c.answer = &reply{option: pick(d, p.options...), note: pick(d, "", "fine")}
		c.person = p.human || oneIn(d, 4)
		if p.declinable && oneIn(d, 3) {
			c.answer = &reply{decline: true}
		}
		return c
	case p.kind == "context":
		c.context = given(d, p.needs)
		if p.must != nil && p.must.hasValue {
			give(d, c.context, p.must)
		}
		if oneIn(d, 8) {
			c.context = drawVars(d, def, 6)
		}
	case p.step != nil && (p.step.optional || p.in.optional) && oneIn(d, 3):
		c.skip = true
		return c
	default:
		if oneIn(d, 2) {
			c.context = drawVars(d, def, 3)
		}
		if oneIn(d, 10) {
			c.context = claims() // they are variables like others, and lead nowhere
		}
		c.output, c.notes = pick(d, outputs()...), pick(d, "", "noted", "noted")
		if p.step == nil && oneIn(d, 2) {
			c.output, c.notes = "", "noted"
		}
		if p.step != nil {
			c.context = met(d, def, p.step, c.context)
		}
	}
	for _, name := range def.owned() {
		delete(c.context, name)
	}
	if len(c.context) == 0 {
		c.context = nil
	}
	return c
}

// given sets the variables that a run waits for.
func given(d dice, needs []string) map[string]any {
	context := map[string]any{}
	for _, path := range needs {
		root, _, _ := strings.Cut(path, ".")
		context[root] = value(d, root)
		if typeOfName(root) == "" && oneIn(d, 2) {
			context[root] = pick[any](d, []any{"a"}, []any{})
		}
		if path == "files.0" {
			context[root] = []any{[]any{"a", "b"}, true}
		}
	}
	return context
}

// met adds to variables what a step's validate actions want.
func met(d dice, def *definition, s *step, context map[string]any) map[string]any {
	context = maps.Clone(context)
	if context == nil {
		context = map[string]any{}
	}
	for _, a := range s.actions {
		if a.kind == "validate" && def.about(a) {
			give(d, context, a)
		}
	}
	return context
}

// give sets the variable that a validate action is about.
func give(d dice, context map[string]any, a *action) {
	root, rest, _ := strings.Cut(a.target, ".")
	v := value(d, root)
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
