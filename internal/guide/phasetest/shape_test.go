package phasetest

import (
	"encoding/json"
	"fmt"
	"slices"
)

// definition is a random phase workflow: what the model reads, and what becomes
// the document that the product reads. Phases are referred to by their place in
// the list; none is -1.
type definition struct {
	id      string
	rules   bool
	vars    []*variable
	initial int
	phases  []*phase
}

// variable is a declared variable.
type variable struct {
	name, kind string
	value      any
	hasValue   bool
	required   bool
}

// named is what has an id, and texts that only who has reached it may see.
type named struct {
	letter string
	serial int
}

type phase struct {
	named
	optional    bool
	entry, exit []*action
	steps       []*step
	loops       []*loop
	checkpoints []*checkpoint
	decisions   []*decision
	ways        []*way
}

type action struct {
	named
	kind, target string
	value        any
	hasValue     bool
}

type step struct {
	named
	optional bool
	actions  []*action
}

type loop struct {
	named
	kind, variable, over string
	when, stop           *test
	most                 int
	steps                []*step
}

type checkpoint struct {
	named
	optional, human bool
	options         []*option
}

type option struct {
	named
	sets  map[string]any
	to    int
	skips []int
}

type decision struct {
	named
	branches []*branch
}

type branch struct {
	named
	when     *test
	to       int
	fallback bool
}

// way is a transition.
type way struct {
	when     *test
	to       int
	fallback bool
}

// test is a condition. and, or and not have operands, the others a variable.
type test struct {
	op       string
	variable string
	value    any
	of       []*test
}

// The marks by which a test finds in an answer what belongs to an element.
func (n named) id() string     { return fmt.Sprintf("%s-%d-id", n.letter, n.serial) }
func (n named) title() string  { return fmt.Sprintf("Title TITLE-%d-", n.serial) }
func (n named) secret() string { return fmt.Sprintf("SECRET-%d-", n.serial) }

// variable finds a declaration, or nil.
func (d *definition) variable(name string) *variable {
	for _, v := range d.vars {
		if v.name == name {
			return v
		}
	}
	return nil
}

// actions are all actions.
func (d *definition) actions() []*action {
	var list []*action
	for _, ph := range d.phases {
		list = append(append(list, ph.entry...), ph.exit...)
		for _, s := range ph.allSteps() {
			list = append(list, s.actions...)
		}
	}
	return list
}

// allSteps are the steps of a phase and of its loops.
func (ph *phase) allSteps() []*step {
	list := slices.Clone(ph.steps)
	for _, l := range ph.loops {
		list = append(list, l.steps...)
	}
	return list
}

// all gives every element that has an id.
func (d *definition) all() []named {
	var list []named
	for _, ph := range d.phases {
		list = append(list, ph.named)
		for _, s := range ph.allSteps() {
			list = append(list, s.named)
		}
		for _, l := range ph.loops {
			list = append(list, l.named)
		}
		for _, c := range ph.checkpoints {
			list = append(list, c.named)
			for _, o := range c.options {
				list = append(list, o.named)
			}
		}
		for _, dec := range ph.decisions {
			list = append(list, dec.named)
			for _, b := range dec.branches {
				list = append(list, b.named)
			}
		}
	}
	return list
}

type object = map[string]any

// document is the definition as the product reads it.
func (d *definition) document() []byte {
	m := object{"id": d.id, "version": "1.0.0", "title": "Random", "initialPhase": d.phases[d.initial].id()}
	if d.rules {
		m["rules"] = []any{"Hold to this throughout."}
	}
	put(m, "variables", d.vars, func(v *variable) object {
		o := object{"name": v.name, "type": v.kind, "required": v.required}
		if v.hasValue {
			o["defaultValue"] = v.value
		}
		return o
	})
	put(m, "phases", d.phases, func(ph *phase) object { return ph.document(d) })
	text, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		panic(err) // of values that the generator has made
	}
	return text
}

func put[T any](m object, key string, list []T, document func(T) object) {
	if len(list) == 0 {
		return
	}
	out := make([]any, len(list))
	for i, item := range list {
		out[i] = document(item)
	}
	m[key] = out
}

func (ph *phase) document(d *definition) object {
	m := object{"id": ph.id(), "name": ph.title(), "description": "About " + ph.secret(), "required": !ph.optional}
	put(m, "entryActions", ph.entry, (*action).document)
	put(m, "exitActions", ph.exit, (*action).document)
	put(m, "steps", ph.steps, (*step).document)
	put(m, "loops", ph.loops, (*loop).document)
	put(m, "checkpoints", ph.checkpoints, func(c *checkpoint) object {
		o := object{"id": c.id(), "name": c.title(), "message": "Asks " + c.secret(), "required": !c.optional, "blocking": true}
		if c.human {
			o["approval"] = "human"
		}
		put(o, "options", c.options, func(o *option) object { return o.document(d) })
		return o
	})
	put(m, "decisions", ph.decisions, func(dec *decision) object {
		o := object{"id": dec.id(), "name": dec.title(), "description": "Decides " + dec.secret()}
		put(o, "branches", dec.branches, func(b *branch) object {
			o := object{"id": b.id(), "label": "Branch " + b.secret(), "transitionTo": d.phases[b.to].id(), "isDefault": b.fallback}
			if b.when != nil {
				o["condition"] = b.when.document()
			}
			return o
		})
		return o
	})
	put(m, "transitions", ph.ways, func(w *way) object {
		o := object{"to": d.phases[w.to].id(), "isDefault": w.fallback}
		if w.when != nil {
			o["condition"] = w.when.document()
		}
		return o
	})
	return m
}

func (o *option) document(d *definition) object {
	effect := object{}
	if len(o.sets) > 0 {
		effect["setVariable"] = o.sets
	}
	if o.to >= 0 {
		effect["transitionTo"] = d.phases[o.to].id()
	}
	if len(o.skips) > 0 {
		ids := make([]any, len(o.skips))
		for i, n := range o.skips {
			ids[i] = d.phases[n].id()
		}
		effect["skipPhases"] = ids
	}
	m := object{"id": o.id(), "label": "Option " + o.secret()}
	if len(effect) > 0 {
		m["effect"] = effect
	}
	return m
}

func (a *action) document() object {
	m := object{"action": a.kind, "message": "Mind " + a.secret()}
	if a.target != "" {
		m["target"] = a.target
	}
	if a.hasValue {
		m["value"] = a.value
	}
	return m
}

func (s *step) document() object {
	m := object{"id": s.id(), "name": s.title(), "description": "Do " + s.secret(), "required": !s.optional}
	put(m, "actions", s.actions, (*action).document)
	return m
}

func (l *loop) document() object {
	m := object{"id": l.id(), "name": l.title(), "type": l.kind, "maxIterations": l.most}
	for key, text := range map[string]string{"variable": l.variable, "over": l.over} {
		if text != "" {
			m[key] = text
		}
	}
	for key, condition := range map[string]*test{"condition": l.when, "breakCondition": l.stop} {
		if condition != nil {
			m[key] = condition.document()
		}
	}
	put(m, "steps", l.steps, (*step).document)
	return m
}

func (t *test) document() object {
	switch t.op {
	case "and", "or":
		m := object{"type": t.op}
		put(m, "conditions", t.of, (*test).document)
		return m
	case "not":
		return object{"type": "not", "condition": t.of[0].document()}
	case "exists", "notExists":
		return object{"type": "simple", "variable": t.variable, "operator": t.op}
	default:
		return object{"type": "simple", "variable": t.variable, "operator": t.op, "value": t.value}
	}
}
