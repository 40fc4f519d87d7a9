package phasetest

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// command is what somebody asks of a run.
type command struct {
	// kind is start, continue or abort.
	kind          string
	output, notes string
	context       map[string]any
	answer        *reply
	skip          bool
	// step is the step that the caller believes to be at.
	step string
	// person says that the command came by a way that proves a person; of a
	// start, that only people open the run's gates.
	person bool
}

// reply is an answer to a gate.
type reply struct {
	option  string
	decline bool
	note    string
}

// place is where a run stands.
type place struct {
	// kind is step, gate, context or end; status is as in answers.
	kind, status string
	id, title    string
	// in is the phase, nil before the first one.
	in *phase
	// loop is the loop that a step is asked for in; rounds is 0 where nobody
	// knows how many there will be.
	loop          *loop
	round, rounds int
	item          any
	// options are those of a gate, human says that only a person answers,
	// declinable that it need not be answered.
	options           []string
	human, declinable bool
	// needs are the variables that the run waits for.
	needs []string
	// step is the one that is asked for; nil where a note on instructions is.
	step *step
	// must is the validate action that the variables must meet.
	must *action
	// unordered says that the order of needs is free.
	unordered bool
	// dead says that nothing leads on; what the position says of it is free.
	dead bool
	// why says which part of a phase the run is in.
	why string
	// vars are the variables that were set, scope looks up all that can be seen.
	vars  map[string]any
	scope lookup
	// done counts the steps that are done; told are the elements whose texts
	// may be known, seen those whose names are told now.
	done       int
	told, seen []named
}

func (p place) String() string {
	return fmt.Sprintf("%s %q (%s) round %d of %d, options %v, needs %v, %s", p.kind, p.id, p.why, p.round, p.rounds, p.options, p.needs, p.status)
}

// whereIs says where a run stands after the commands that it has accepted. It
// goes through the workflow from its beginning every time, and takes a command
// wherever the workflow asks for something.
func whereIs(d *definition, accepted []command) (at place) {
	w := &walker{passed: map[int]named{}, def: d, rest: accepted[1:], vars: map[string]any{}, people: accepted[0].person, skips: map[int]bool{}}
	for _, v := range d.vars {
		if v.hasValue {
			w.vars[v.name] = v.value
		}
	}
	maps.Copy(w.vars, accepted[0].context)
	defer func() {
		if r := recover(); r != nil {
			stop, ok := r.(halt)
			if !ok {
				panic(r)
			}
			at = stop.at
		}
	}()
	w.required()
	for to := d.initial; to >= 0; {
		to = w.onward(w.phase(d.phases[to]))
	}
	if len(w.rest) > 0 {
		panic("a command was accepted after the end")
	}
	return w.stamp(place{kind: "end", status: "completed"})
}

// halt ends the walk where the run stands.
type halt struct{ at place }

// The ways out of a phase that are no phases.
const (
	finish  = -1
	nowhere = -2
)

// walker goes through a workflow.
type walker struct {
	def  *definition
	rest []command
	vars map[string]any
	// people says that only people open gates, whatever the definition says.
	people bool
	// skips are the phases that answers have skipped.
	skips map[int]bool
	in    *phase
	// loop is the loop that the walk is in, with its round and its item.
	loop  *loop
	round int
	item  any
	done  int
	told  []named
	// list is what the loop goes through.
	list []any
	// idle counts the phases entered since somebody has last done something;
	// passed are those phases.
	idle   int
	passed map[int]named
}

// stamp adds to a place what there is everywhere.
func (w *walker) stamp(p place) place {
	seen := *w
	p.vars, p.scope, p.done, p.told, p.in = w.vars, seen.lookup, w.done, slices.Clone(w.told), w.in
	if w.in != nil && p.kind != "end" {
		p.seen = append(p.seen, w.in.named)
	}
	return p
}

// ask takes the next command, or ends the walk because the run stands here.
func (w *walker) ask(p place) command {
	if len(w.rest) == 0 {
		panic(halt{w.stamp(p)})
	}
	c := w.rest[0]
	w.rest = w.rest[1:]
	w.idle, w.passed = 0, map[int]named{}
	if c.kind == "abort" {
		panic(halt{w.stamp(place{kind: "end", status: "aborted"})})
	}
	return c
}

// wait takes variables.
func (w *walker) wait(p place) {
	p.kind, p.status = "context", "waiting"
	w.set(w.ask(p).context)
}

// set takes over variables. The earlier ones stay as they were for who looks at
// them still.
func (w *walker) set(vars map[string]any) {
	w.vars = maps.Clone(w.vars)
	maps.Copy(w.vars, vars)
}

// assigned gives the variable that changes where a value is set at a path.
func assigned(vars map[string]any, path string, value any) map[string]any {
	name, rest, deep := strings.Cut(path, ".")
	if !deep {
		return map[string]any{path: value}
	}
	inner := map[string]any{}
	if old, ok := vars[name].(map[string]any); ok {
		maps.Copy(inner, old)
	}
	maps.Copy(inner, assigned(inner, rest, value))
	return map[string]any{name: inner}
}

// lookup finds a variable: a loop's own in it, else what was set. What only the
// server sets is null until it does, so that nothing waits for it.
func (w *walker) lookup(name string) (any, bool) {
	if w.loop != nil && name == w.loop.variable && name != "" {
		return w.item, true
	}
	v, ok := w.vars[name]
	if !ok && w.def.owns(name) {
		return nil, true
	}
	return v, ok
}

// owns says whether only the server sets a variable.
func (d *definition) owns(name string) bool { return slices.Contains(d.owned(), name) }

// owned are the variables that only the server sets: those that an effect, a set
// action or a loop writes (DESIGN 4).
func (d *definition) owned() []string {
	var names []string
	for _, a := range d.actions() {
		if a.kind == "set" {
			names = append(names, root(a.target))
		}
	}
	for _, ph := range d.phases {
		for _, l := range ph.loops {
			if l.variable != "" {
				names = append(names, l.variable)
			}
		}
		for _, c := range ph.checkpoints {
			for _, o := range c.options {
				for path := range o.sets {
					names = append(names, root(path))
				}
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// about says whether a validate action is about a variable.
func (d *definition) about(a *action) bool {
	return d.variable(root(a.target)) != nil || d.owns(root(a.target))
}

// met says whether a validate action on a variable holds: it equals the value,
// or exists where there is none (DESIGN 4).
func (a *action) met(vars lookup) bool {
	value, found, _ := vars.path(a.target)
	if !a.hasValue {
		return found && value != nil
	}
	return found && reflect.DeepEqual(value, a.value)
}

// required waits for the variables that the workflow cannot begin without.
func (w *walker) required() {
	for {
		var needs []string
		for _, v := range w.def.vars {
			if v.required && w.vars[v.name] == nil && !w.def.owns(v.name) {
				needs = append(needs, v.name)
			}
		}
		if len(needs) == 0 {
			return
		}
		w.wait(place{id: w.def.id, title: "Random", needs: needs, why: "required"})
	}
}

// phase goes through a phase, and says where it leads: entry actions, steps,
// loops, checkpoints, decisions, transitions, exit actions.
func (w *walker) phase(ph *phase) int {
	w.in = ph
	w.tell(ph.named)
	w.passed[ph.serial] = ph.named
	if w.idle++; w.idle > 1000 {
		w.stuck("a circle of phases")
	}
	w.actions(ph.entry, "Enter", "entry")
	to, skipped := w.inside(ph)
	if skipped {
		return to
	}
	w.actions(ph.exit, "Leave", "exit")
	return to
}

// inside goes through a phase, and says where it leads. Skipped says that the
// rest of it was declined.
func (w *walker) inside(ph *phase) (to int, skipped bool) {
	for _, s := range ph.steps {
		if !w.step(ph, s) {
			return w.wayOn(ph), true
		}
	}
	for _, l := range ph.loops {
		if !w.repeat(ph, l) {
			return w.wayOn(ph), true
		}
	}
	for _, c := range ph.checkpoints {
		if o := w.checkpoint(c); o != nil && o.to >= 0 {
			return o.to, false
		}
	}
	return w.leads(ph), false
}

// stuck ends the walk where nothing leads on. Any of the phases passed through
// may be the one where the run is said to stand.
func (w *walker) stuck(why string) {
	passed := slices.Collect(maps.Values(w.passed))
	for {
		w.wait(place{dead: true, why: why, seen: passed})
	}
}

func (w *walker) tell(more ...named) { w.told = append(w.told, more...) }

// actions carries out those of entry or exit. What only the caller can judge is
// asked for together.
func (w *walker) actions(list []*action, verb, why string) {
	for i := 0; i < len(list); {
		a := list[i]
		switch {
		case a.kind == "set":
			w.set(assigned(w.vars, a.target, a.value))
			i++
		case a.kind != "validate":
			i++
		case w.def.about(a):
			w.tell(a.named)
			for !a.met(w.lookup) {
				w.wait(place{id: w.in.id(), title: w.in.title(), needs: []string{a.target}, must: a, why: why})
			}
			i++
		default:
			for ; i < len(list) && list[i].kind == "validate" && !w.def.about(list[i]); i++ {
				w.tell(list[i].named)
			}
			c := w.ask(place{kind: "step", status: "running", id: w.in.id(), title: verb + " " + w.in.title(), why: why})
			w.set(c.context)
		}
	}
}

// step asks for a step. It says false where the rest of the phase was declined.
func (w *walker) step(ph *phase, s *step) bool {
	w.tell(s.named)
	for _, a := range s.actions {
		if a.kind == "validate" {
			w.tell(a.named)
		}
	}
	p := place{kind: "step", status: "running", id: s.id(), title: s.title(), step: s, seen: []named{s.named}, why: "steps"}
	if w.loop != nil {
		p.loop, p.round, p.item, p.why = w.loop, w.round, w.item, "loop"
		p.seen = append(p.seen, w.loop.named)
		if w.loop.kind != "forEach" {
			p.item = nil
		} else {
			p.rounds = min(w.rounds(), w.loop.most)
		}
	}
	c := w.ask(p)
	switch {
	case c.skip && s.optional:
		return true
	case c.skip:
		return false
	}
	w.set(c.context)
	w.done++
	for _, a := range s.actions {
		if a.kind == "set" {
			w.set(assigned(w.vars, a.target, a.value))
		}
	}
	return true
}
