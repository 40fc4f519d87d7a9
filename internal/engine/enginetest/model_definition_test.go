package enginetest

import (
	"encoding/json"
	"fmt"
	"slices"
)

// definition is a random phase workflow. The model reads it, and the product reads the
// document made from it. Phases are referred to by their index in the list; -1 is no phase.
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

// element has an ID, and texts that a run must reach before it reveals them.
type element struct {
	letter string
	serial int
}

type phase struct {
	element
	optional    bool
	entry, exit []*action
	steps       []*step
	loops       []*loop
	checkpoints []*checkpoint
	decisions   []*decision
	transitions []*transition
}

type action struct {
	element
	kind, target string
	value        any
	hasValue     bool
}

type step struct {
	element
	optional bool
	criteria *rule
	actions  []*action
}

type loop struct {
	element
	kind, variable, over string
	when, breakWhen      *conditionSpec
	maxRounds            int
	steps                []*step
}

type checkpoint struct {
	element
	optional, human bool
	options         []*option
}

type option struct {
	element
	sets  map[string]any
	to    int
	skips []int
}

type decision struct {
	element
	branches []*branch
}

type branch struct {
	element
	when     *conditionSpec
	to       int
	fallback bool
}

// transition leads to another phase.
type transition struct {
	when     *conditionSpec
	to       int
	fallback bool
}

// conditionSpec is a condition. and, or and not have operands, all others a variable.
type conditionSpec struct {
	op       string
	variable string
	value    any
	of       []*conditionSpec
}

// The texts contain marks that identify the element.
func (n element) elementID() string  { return fmt.Sprintf("%s-%d-id", n.letter, n.serial) }
func (n element) titleText() string  { return fmt.Sprintf("Title TITLE-%d-", n.serial) }
func (n element) secretText() string { return fmt.Sprintf("SECRET-%d-", n.serial) }

// findVariable returns a declaration, or nil.
func (d *definition) findVariable(name string) *variable {
	for _, v := range d.vars {
		if v.name == name {
			return v
		}
	}
	return nil
}

// allActions returns all actions of the definition.
func (d *definition) allActions() []*action {
	var list []*action
	for _, ph := range d.phases {
		list = append(append(list, ph.entry...), ph.exit...)
		for _, s := range ph.allSteps() {
			list = append(list, s.actions...)
		}
	}
	return list
}

// allSteps returns the steps of a phase and of its loops.
func (ph *phase) allSteps() []*step {
	list := slices.Clone(ph.steps)
	for _, l := range ph.loops {
		list = append(list, l.steps...)
	}
	return list
}

// allElements returns every element with an ID.
func (d *definition) allElements() []element {
	var list []element
	for _, ph := range d.phases {
		list = append(list, ph.element)
		for _, s := range ph.allSteps() {
			list = append(list, s.element)
		}
		for _, l := range ph.loops {
			list = append(list, l.element)
		}
		for _, c := range ph.checkpoints {
			list = append(list, c.element)
			for _, o := range c.options {
				list = append(list, o.element)
			}
		}
		for _, dec := range ph.decisions {
			list = append(list, dec.element)
			for _, b := range dec.branches {
				list = append(list, b.element)
			}
		}
	}
	return list
}

type object = map[string]any

// toDocument returns the definition as a document for the product.
func (d *definition) toDocument() []byte {
	m := object{"id": d.id, "version": "1.0.0", "title": "Random", "initialPhase": d.phases[d.initial].elementID()}
	if d.rules {
		m["rules"] = []any{"Hold to this throughout."}
	}
	setList(m, "variables", d.vars, func(v *variable) object {
		o := object{"name": v.name, "type": v.kind, "required": v.required}
		if v.hasValue {
			o["defaultValue"] = v.value
		}
		return o
	})
	setList(m, "phases", d.phases, func(ph *phase) object { return ph.toDocument(d) })
	text, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		panic(err) // impossible for generated values
	}
	return text
}

func setList[T any](m object, key string, list []T, document func(T) object) {
	if len(list) == 0 {
		return
	}
	out := make([]any, len(list))
	for i, item := range list {
		out[i] = document(item)
	}
	m[key] = out
}

func (ph *phase) toDocument(d *definition) object {
	m := object{"id": ph.elementID(), "name": ph.titleText(), "description": "About " + ph.secretText(), "required": !ph.optional}
	setList(m, "entryActions", ph.entry, (*action).toDocument)
	setList(m, "exitActions", ph.exit, (*action).toDocument)
	setList(m, "steps", ph.steps, (*step).toDocument)
	setList(m, "loops", ph.loops, (*loop).toDocument)
	setList(m, "checkpoints", ph.checkpoints, func(c *checkpoint) object {
		o := object{"id": c.elementID(), "name": c.titleText(), "message": "Asks " + c.secretText(), "required": !c.optional, "blocking": true}
		if c.human {
			o["approval"] = "human"
		}
		setList(o, "options", c.options, func(o *option) object { return o.toDocument(d) })
		return o
	})
	setList(m, "decisions", ph.decisions, func(dec *decision) object {
		o := object{"id": dec.elementID(), "name": dec.titleText(), "description": "Decides " + dec.secretText()}
		setList(o, "branches", dec.branches, func(b *branch) object {
			o := object{"id": b.elementID(), "label": "Branch " + b.secretText(), "transitionTo": d.phases[b.to].elementID(), "isDefault": b.fallback}
			if b.when != nil {
				o["condition"] = b.when.toDocument()
			}
			return o
		})
		return o
	})
	setList(m, "transitions", ph.transitions, func(w *transition) object {
		o := object{"to": d.phases[w.to].elementID(), "isDefault": w.fallback}
		if w.when != nil {
			o["condition"] = w.when.toDocument()
		}
		return o
	})
	return m
}

func (o *option) toDocument(d *definition) object {
	effect := object{}
	if len(o.sets) > 0 {
		effect["setVariable"] = o.sets
	}
	if o.to >= 0 {
		effect["transitionTo"] = d.phases[o.to].elementID()
	}
	if len(o.skips) > 0 {
		ids := make([]any, len(o.skips))
		for i, n := range o.skips {
			ids[i] = d.phases[n].elementID()
		}
		effect["skipPhases"] = ids
	}
	m := object{"id": o.elementID(), "label": "Option " + o.secretText()}
	if len(effect) > 0 {
		m["effect"] = effect
	}
	return m
}

func (a *action) toDocument() object {
	m := object{"action": a.kind, "message": "Mind " + a.secretText()}
	if a.target != "" {
		m["target"] = a.target
	}
	if a.hasValue {
		m["value"] = a.value
	}
	return m
}

func (s *step) toDocument() object {
	m := object{"id": s.elementID(), "name": s.titleText(), "description": "Do " + s.secretText(), "required": !s.optional}
	setList(m, "actions", s.actions, (*action).toDocument)
	if s.criteria != nil {
		m["validationCriteria"] = s.criteria.toDocument()
	}
	return m
}

func (l *loop) toDocument() object {
	m := object{"id": l.elementID(), "name": l.titleText(), "type": l.kind, "maxIterations": l.maxRounds}
	for key, text := range map[string]string{"variable": l.variable, "over": l.over} {
		if text != "" {
			m[key] = text
		}
	}
	for key, condition := range map[string]*conditionSpec{"condition": l.when, "breakCondition": l.breakWhen} {
		if condition != nil {
			m[key] = condition.toDocument()
		}
	}
	setList(m, "steps", l.steps, (*step).toDocument)
	return m
}

func (t *conditionSpec) toDocument() object {
	switch t.op {
	case "and", "or":
		m := object{"type": t.op}
		setList(m, "conditions", t.of, (*conditionSpec).toDocument)
		return m
	case "not":
		return object{"type": "not", "condition": t.of[0].toDocument()}
	case "exists", "notExists":
		return object{"type": "simple", "variable": t.variable, "operator": t.op}
	default:
		return object{"type": "simple", "variable": t.variable, "operator": t.op, "value": t.value}
	}
}
