package enginetest

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// command is a request to a run.
type command struct {
	// kind is start, continue or abort.
	kind          string
	output, notes string
	context       map[string]any
	// checks are the outcomes of the step's checks by the pointers of their rules; nil if
	// checks are not executed. recorded is set if the outcomes are those of a recorded
	// event.
	checks   map[string]string
	recorded bool
	answer   *reply
	skip     bool
	// step is the step that the caller expects.
	step string
	// person is set if a person sent the command; for a start, if all gates
	// require human approval.
	person bool
}

// reply is an answer to a gate.
type reply struct {
	option  string
	decline bool
	note    string
}

// place is the position of a run.
type place struct {
	// kind is step, gate, context or end; status is the status in answers.
	kind, status string
	id, title    string
	// phase is nil before the first phase.
	phase *phase
	// loop is the loop of the step; rounds is 0 if the number of rounds is unknown.
	loop          *loop
	round, rounds int
	item          any
	// options are the options of the gate. human is set if the gate requires human
	// approval, declinable if the gate can be declined.
	options           []string
	human, declinable bool
	// needs are the variables that the run waits for.
	needs []string
	// step is the requested step; nil if a note on instructions is requested.
	step *step
	// must is the validate action that the variables must meet.
	must *action
	// unordered is set if the order of needs is arbitrary.
	unordered bool
	// stuck is set if no command except an abort continues the run; the text of the
	// position is not checked then.
	stuck bool
	// part is the current part of the phase.
	part string
	// vars are the variables that were set, scope looks up all visible variables.
	vars  map[string]any
	scope lookup
	// done counts the completed steps; revealed are the elements whose texts may be known,
	// visible those whose names are shown now.
	done              int
	revealed, visible []element
}

func (p place) String() string {
	return fmt.Sprintf("%s %q (%s) round %d of %d, options %v, needs %v, %s", p.kind, p.id, p.part, p.round, p.rounds, p.options, p.needs, p.status)
}

// replayModel returns the position of a run after its accepted commands. It executes the
// workflow from the start every time, and consumes a command at each position.
func replayModel(d *definition, accepted []command) (at place) {
	w := &modelRun{visited: map[int]element{}, def: d, rest: accepted[1:], vars: map[string]any{}, humanOnly: accepted[0].person, skips: map[int]bool{}}
	for _, v := range d.vars {
		if v.hasValue {
			w.vars[v.name] = v.value
		}
	}
	maps.Copy(w.vars, accepted[0].context)
	defer func() {
		if r := recover(); r != nil {
			stop, ok := r.(stopWalk)
			if !ok {
				panic(r)
			}
			at = stop.at
		}
	}()
	w.waitForRequired()
	for to := d.initial; to >= 0; {
		to = w.skipPhases(w.runPhase(d.phases[to]))
	}
	if len(w.rest) > 0 {
		panic("a command was accepted after the end")
	}
	return w.completePlace(place{kind: "end", status: "completed"})
}

// stopWalk ends the execution at the position of the run.
type stopWalk struct{ at place }

// The targets that are not phases.
const (
	endOfRun  = -1
	undecided = -2
)

// modelRun executes a workflow.
type modelRun struct {
	def  *definition
	rest []command
	vars map[string]any
	// humanOnly is set if all gates require human approval.
	humanOnly bool
	// skips are the phases that answers have skipped.
	skips map[int]bool
	in    *phase
	// loop is the active loop, with its round and its current item.
	loop     *loop
	round    int
	item     any
	done     int
	revealed []element
	// list is the list of the loop, cutLoops are the loops that ended before their lists.
	list     []any
	cutLoops []element
	// phasesSinceInput counts the phases entered since the last command; visited are those
	// phases.
	phasesSinceInput int
	visited          map[int]element
}

// completePlace adds the common fields of a place.
func (w *modelRun) completePlace(p place) place {
	seen := *w
	p.vars, p.scope, p.done, p.revealed, p.phase = w.vars, seen.lookupVar, w.done, slices.Clone(w.revealed), w.in
	p.visible = append(p.visible, w.cutLoops...)
	if w.in != nil && p.kind != "end" {
		p.visible = append(p.visible, w.in.element)
	}
	return p
}

// nextCommand returns the next command, or ends the execution after the last one.
func (w *modelRun) nextCommand(p place) command {
	if len(w.rest) == 0 {
		panic(stopWalk{w.completePlace(p)})
	}
	c := w.rest[0]
	w.rest = w.rest[1:]
	w.phasesSinceInput, w.visited = 0, map[int]element{}
	if c.kind == "abort" {
		panic(stopWalk{w.completePlace(place{kind: "end", status: "aborted"})})
	}
	return c
}

// waitForVars consumes a command with variables.
func (w *modelRun) waitForVars(p place) {
	p.kind, p.status = "context", "waiting"
	w.setVars(withMembers(w.vars, w.nextCommand(p).context))
}

// setVars sets variables in a copy, because earlier places refer to the old values.
func (w *modelRun) setVars(vars map[string]any) {
	w.vars = maps.Clone(w.vars)
	maps.Copy(w.vars, vars)
}

// setAtPath returns the variable that changes if a value is set at a path.
func setAtPath(vars map[string]any, path string, value any) map[string]any {
	name, rest, deep := strings.Cut(path, ".")
	if !deep {
		return map[string]any{path: value}
	}
	inner := map[string]any{}
	if old, ok := vars[name].(map[string]any); ok {
		maps.Copy(inner, old)
	}
	maps.Copy(inner, setAtPath(inner, rest, value))
	return map[string]any{name: inner}
}

// lookupVar returns a variable: the active loop's own, or else one that was set. A variable
// that only the server sets is null until then, so that no condition waits for it.
func (w *modelRun) lookupVar(name string) (any, bool) {
	if w.loop != nil && name == w.loop.variable && name != "" {
		return w.item, true
	}
	v, ok := w.vars[name]
	if !ok && w.def.isServerVar(name) {
		return nil, true
	}
	return v, ok
}

// isServerVar reports whether only the server sets a variable.
func (d *definition) isServerVar(name string) bool { return slices.Contains(d.serverVars(), name) }

// canSet reports whether an agent can set the variable at a path: not one of the server, nor
// a member of a declared text, number or boolean.
func (d *definition) canSet(path string) bool {
	if d.isServerVar(rootName(path)) {
		return false
	}
	v := d.findVariable(rootName(path))
	return v == nil || v.name == path || v.kind == "object" || v.kind == "array"
}

// serverVars returns the variables that only the server sets: those that an effect, a set
// action or a loop writes.
func (d *definition) serverVars() []string {
	var names []string
	for _, a := range d.allActions() {
		if a.kind == "set" {
			names = append(names, rootName(a.target))
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
					names = append(names, rootName(path))
				}
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// checksVariable reports whether a validate action is about a variable.
func (d *definition) checksVariable(a *action) bool {
	return d.findVariable(rootName(a.target)) != nil || d.isServerVar(rootName(a.target))
}

// holdsFor reports whether a validate action on a variable holds: the variable equals the
// value, or exists if the action has no value.
func (a *action) holdsFor(vars lookup) bool {
	value, found, _ := vars.lookupPath(a.target)
	if !a.hasValue {
		return found && value != nil
	}
	return found && reflect.DeepEqual(value, a.value)
}

// waitForRequired waits for the required variables.
func (w *modelRun) waitForRequired() {
	for {
		var needs []string
		for _, v := range w.def.vars {
			if v.required && w.vars[v.name] == nil && !w.def.isServerVar(v.name) {
				needs = append(needs, v.name)
			}
		}
		if len(needs) == 0 {
			return
		}
		w.waitForVars(place{id: w.def.id, title: "Random", needs: needs, part: "required"})
	}
}

// runPhase runs a phase and returns its target: entry actions, steps, loops, checkpoints,
// decisions, transitions, exit actions.
func (w *modelRun) runPhase(ph *phase) int {
	w.in = ph
	w.revealTexts(ph.element)
	w.visited[ph.serial] = ph.element
	if w.phasesSinceInput++; w.phasesSinceInput > 1000 {
		w.waitForever("a cycle of phases")
	}
	w.runActions(ph.entry, "Enter", "entry")
	to, skipped := w.runPhaseBody(ph)
	if skipped {
		return to
	}
	w.runActions(ph.exit, "Leave", "exit")
	return to
}

// runPhaseBody runs a phase without entry and exit, and returns its target. skipped reports
// whether the rest of the phase was skipped.
func (w *modelRun) runPhaseBody(ph *phase) (to int, skipped bool) {
	for _, s := range ph.steps {
		if !w.runStep(ph, s) {
			return w.skippedTarget(ph), true
		}
	}
	for _, l := range ph.loops {
		if !w.runLoop(ph, l) {
			return w.skippedTarget(ph), true
		}
	}
	for _, c := range ph.checkpoints {
		if o := w.askCheckpoint(c); o != nil && o.to >= 0 {
			return o.to, false
		}
	}
	return w.chooseTarget(ph), false
}

// waitForever ends the execution of a run that is stuck. Its position may be any of the
// visited phases.
func (w *modelRun) waitForever(why string) {
	passed := slices.Collect(maps.Values(w.visited))
	for {
		w.waitForVars(place{stuck: true, part: why, visible: passed})
	}
}

func (w *modelRun) revealTexts(more ...element) { w.revealed = append(w.revealed, more...) }

// runActions runs the actions of entry or exit. It asks for one note on consecutive actions
// that only the caller can judge.
func (w *modelRun) runActions(list []*action, verb, why string) {
	for i := 0; i < len(list); {
		a := list[i]
		switch {
		case a.kind == "set":
			w.setVars(setAtPath(w.vars, a.target, a.value))
			i++
		case a.kind != "validate":
			i++
		case w.def.checksVariable(a):
			w.revealTexts(a.element)
			for !a.holdsFor(w.lookupVar) {
				w.waitForVars(place{id: w.in.elementID(), title: w.in.titleText(), needs: []string{a.target}, must: a, part: why})
			}
			i++
		default:
			for ; i < len(list) && list[i].kind == "validate" && !w.def.checksVariable(list[i]); i++ {
				w.revealTexts(list[i].element)
			}
			c := w.nextCommand(place{kind: "step", status: "running", id: w.in.elementID(), title: verb + " " + w.in.titleText(), part: why})
			w.setVars(withMembers(w.vars, c.context))
		}
	}
}

// runStep asks for a step. It returns false if the rest of the phase was skipped.
func (w *modelRun) runStep(ph *phase, s *step) bool {
	w.revealTexts(s.element)
	for _, a := range s.actions {
		if a.kind == "validate" {
			w.revealTexts(a.element)
		}
	}
	p := place{kind: "step", status: "running", id: s.elementID(), title: s.titleText(), step: s, visible: []element{s.element}, part: "steps"}
	if w.loop != nil {
		p.loop, p.round, p.item, p.part = w.loop, w.round, w.item, "loop"
		p.visible = append(p.visible, w.loop.element)
		if w.loop.kind != "forEach" {
			p.item = nil
		} else {
			p.rounds = min(w.roundCount(), w.loop.maxRounds)
		}
	}
	c := w.nextCommand(p)
	switch {
	case c.skip && s.optional:
		return true
	case c.skip:
		return false
	}
	w.setVars(withMembers(w.vars, c.context))
	w.done++
	for _, a := range s.actions {
		if a.kind == "set" {
			w.setVars(setAtPath(w.vars, a.target, a.value))
		}
	}
	return true
}
