package phases

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"github.com/guideway-dev/guideway/internal/platform/lists"
	"github.com/guideway-dev/guideway/internal/workflow/expr"
)

// valueSet contains the possible values of a variable.
type valueSet struct {
	// values are the values, and texts the same values as JSON.
	values []any
	texts  []string
	// unknown is set if the variable can have any value.
	unknown bool
}

// valueSets maps each variable that only the engine writes to the values that it can have
// at a point of a workflow. It is nil at a point that no run reaches.
type valueSets map[string]valueSet

// mostValues is the number of values above which a set is unknown.
const mostValues = 16

// newValueSet returns the set of values.
func newValueSet(values ...any) valueSet {
	var set valueSet
	for _, value := range values {
		text, err := jsontext.Marshal(value)
		if err != nil {
			return valueSet{unknown: true}
		}
		set = set.add(value, string(text))
	}
	return set
}

// add returns the set with a value.
func (s valueSet) add(value any, text string) valueSet {
	if s.unknown || slices.Contains(s.texts, text) {
		return s
	}
	if len(s.values) >= mostValues {
		return valueSet{unknown: true}
	}
	return valueSet{values: append(slices.Clip(s.values), value), texts: append(slices.Clip(s.texts), text)}
}

// join returns, for each variable, the values of both sets, and whether the result differs
// from v. It is used at points that several paths lead to.
func (v valueSets) join(other valueSets) (joined valueSets, changed bool) {
	switch {
	case other == nil:
		return v, false
	case v == nil:
		return other, true
	}
	joined = maps.Clone(v)
	for name, set := range other {
		sum := v[name]
		if set.unknown {
			sum = set
		}
		for i, value := range set.values {
			sum = sum.add(value, set.texts[i])
		}
		changed = changed || sum.unknown != v[name].unknown || len(sum.values) != len(v[name].values)
		joined[name] = sum
	}
	return joined, changed
}

// assign returns the possible values after value was written to the variable, or to the
// member of a variable, at path.
func (v valueSets) assign(path string, value any) valueSets {
	name := expr.Root(path)
	set := v[name]
	if v == nil || set.unknown {
		return v
	}
	after := lists.Map(set.values, func(old any) any { return SetPath(map[string]any{name: old}, path, value)[name] })
	out := maps.Clone(v)
	out[name] = newValueSet(after...)
	return out
}

// withHolding returns the possible values after a validate action. The variable of the
// action keeps only the values that the action accepts. If the action accepts none of them,
// the result is nil.
func (v valueSets) withHolding(a *Action) valueSets {
	name := expr.Root(a.Target)
	set, ok := v[name]
	if !ok || set.unknown {
		return v
	}
	var after valueSet
	for i, value := range set.values {
		if a.Holds(expr.Map(map[string]any{name: value})) {
			after = after.add(value, set.texts[i])
		}
	}
	if len(after.values) == 0 {
		return nil
	}
	out := maps.Clone(v)
	out[name] = after
	return out
}

// flowNode is a phase in a run that skips some phases.
type flowNode struct {
	phase int
	// skips are the numbers of the phases to skip, sorted, as text.
	skips string
}

// valueFlow computes which values the engine's variables can have at the points of a
// workflow. It assumes that every condition can hold, so the result contains all values
// that a run can have, and maybe others.
type valueFlow struct {
	l *linter
	// in maps a phase and the phases to skip to the possible values when a run enters the
	// phase.
	in map[flowNode]valueSets
	// actions, loops and exits are the values at each action, at the start of each loop and
	// at the decisions of each phase.
	actions map[*Action]valueSets
	loops   map[*Loop]valueSets
	exits   map[*Phase]valueSets
	// leads maps a phase to the phases that a run can enter next, and ends marks the phases
	// in which a run can end.
	leads map[int][]int
	ends  map[int]bool
	// queue are the nodes whose values have changed.
	queue []flowNode
	// cost counts the values that were computed, because a hostile workflow could have very
	// many. If it reaches maxFlowCost, the valueFlow has no values.
	cost int
}

// maxFlowCost limits valueFlow.cost.
const maxFlowCost = 1_000_000

// newValueFlow computes the values of a workflow.
func newValueFlow(l *linter) *valueFlow {
	f := &valueFlow{
		l: l, in: map[flowNode]valueSets{},
		actions: map[*Action]valueSets{}, loops: map[*Loop]valueSets{}, exits: map[*Phase]valueSets{},
		leads: map[int][]int{}, ends: map[int]bool{},
	}
	start := valueSets{}
	for _, name := range l.w.Owned() {
		name = expr.Root(name)
		start[name] = newValueSet(nil)
		if v := l.vars.declared[name]; l.vars.loops[name] {
			start[name] = valueSet{unknown: true}
		} else if v != nil && v.HasDefault {
			start[name] = newValueSet(v.DefaultValue)
		}
	}
	f.enterPhase(flowNode{phase: l.graph.numbers[l.w.InitialPhase]}, start)
	for len(f.queue) > 0 && f.cost < maxFlowCost {
		at := f.queue[0]
		f.queue = f.queue[1:]
		f.flowPhase(at)
	}
	if f.cost >= maxFlowCost {
		return &valueFlow{l: l}
	}
	return f
}

// reaches reports whether a run can enter a phase.
func (f *valueFlow) reaches(phase int) bool {
	for at := range f.in {
		if at.phase == phase && !at.isSkipped() {
			return true
		}
	}
	return false
}

// isSkipped reports whether the run passes through the phase.
func (n flowNode) isSkipped() bool {
	return slices.Contains(strings.Fields(n.skips), strconv.Itoa(n.phase))
}

// addSkips returns the phases to skip after an answer.
func addSkips(skips string, phases []int) string {
	all := strings.Fields(skips)
	for _, at := range phases {
		all = append(all, strconv.Itoa(at))
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), " ")
}

// leadTo records that a run can enter at.phase after the phase from, and adds values to the
// possible values at its entry.
func (f *valueFlow) leadTo(from int, at flowNode, values valueSets) {
	if !slices.Contains(f.leads[from], at.phase) {
		f.leads[from] = append(f.leads[from], at.phase)
	}
	f.enterPhase(at, values)
}

// findEndless marks the phases that a run can enter but from which it never ends.
func (f *valueFlow) findEndless() []bool {
	endless := make([]bool, len(f.l.w.Phases))
	back := make([][]int, len(endless))
	var ends []int
	for i := range endless {
		endless[i] = f.reaches(i)
		if f.ends[i] {
			ends = append(ends, i)
		}
		for _, to := range f.leads[i] {
			back[to] = append(back[to], i)
		}
	}
	for i, ok := range (&phaseGraph{targets: back}).reachableFrom(ends, true) {
		endless[i] = endless[i] && !ok
	}
	return endless
}

// enterPhase adds values to the possible values at the entry of a phase, and queues the
// phase if they changed.
func (f *valueFlow) enterPhase(at flowNode, values valueSets) {
	f.cost += 1 + len(values) + len(at.skips)
	joined, changed := f.in[at].join(values)
	f.in[at] = joined
	if changed && !slices.Contains(f.queue, at) {
		f.queue = append(f.queue, at)
	}
}

// passPhase handles a skipped phase: it adds values to the possible values at the entry of
// each phase that can follow.
func (f *valueFlow) passPhase(at flowNode, values valueSets) {
	targets := f.l.graph.targets[at.phase]
	if to := f.l.graph.defaultTarget(&f.l.w.Phases[at.phase]); to >= 0 {
		targets = []int{to}
	}
	for _, to := range targets {
		f.leadTo(at.phase, flowNode{to, at.skips}, values)
	}
	f.ends[at.phase] = f.ends[at.phase] || len(targets) == 0
}

// flowPhase computes the values in a phase.
func (f *valueFlow) flowPhase(at flowNode) {
	p := &f.l.w.Phases[at.phase]
	if at.isSkipped() {
		f.passPhase(at, f.in[at])
		return
	}
	values := f.flowActions(f.in[at], p.EntryActions)
	values, seen := f.flowSteps(values, p.Steps)
	for i := range p.Loops {
		var inLoop valueSets
		values, inLoop = f.flowLoop(values, &p.Loops[i])
		seen, _ = seen.join(inLoop)
	}
	if !p.Required && seen != nil { // at each step, a run can skip the remaining steps of the phase
		f.passPhase(at, seen)
	}
	open := map[string]valueSets{at.skips: values}
	exits := map[flowNode]valueSets{}
	for i := range p.Checkpoints {
		open = f.flowCheckpoint(&p.Checkpoints[i], open, exits)
	}
	for skips, values := range open {
		f.exits[p], _ = f.exits[p].join(values)
		for _, to := range f.targets(p, values) {
			n := flowNode{to, skips}
			exits[n], _ = exits[n].join(values)
		}
		if p.Terminal() && values != nil {
			f.ends[at.phase] = f.flowActions(values, p.ExitActions) != nil || f.ends[at.phase]
		}
	}
	for to, values := range exits {
		if values = f.flowActions(values, p.ExitActions); values != nil {
			f.leadTo(at.phase, to, values)
		}
	}
}

// flowActions records the possible values before each action, and returns the possible
// values after the last action.
func (f *valueFlow) flowActions(values valueSets, actions []Action) valueSets {
	for i := range actions {
		if f.cost += 1 + len(values); f.cost >= maxFlowCost {
			return nil
		}
		a := &actions[i]
		f.actions[a], _ = f.actions[a].join(values)
		switch a.Action {
		case ActionSet:
			values = values.assign(a.Target, a.Value)
		case ActionValidate:
			values = values.withHolding(a)
		}
	}
	return values
}

// flowSteps computes the possible values after all steps, and in seen the union of the
// possible values before each step.
func (f *valueFlow) flowSteps(values valueSets, steps []Step) (after, seen valueSets) {
	for i := range steps {
		seen, _ = seen.join(values)
		done := f.flowActions(values, steps[i].Actions)
		if !steps[i].Required {
			done, _ = done.join(values)
		}
		values = done
	}
	return values, seen
}

// flowLoop computes the possible values after any number of rounds of a loop, and in seen
// the union of the possible values before each of its steps.
func (f *valueFlow) flowLoop(values valueSets, loop *Loop) (after, seen valueSets) {
	f.loops[loop], _ = f.loops[loop].join(values)
	after = values
	for changed := true; changed && f.cost < maxFlowCost; {
		var round valueSets
		round, seen = f.flowSteps(after, loop.Steps)
		after, changed = after.join(round)
	}
	return after, seen
}

// flowCheckpoint returns the possible values after a checkpoint. Like open, which has the
// values before the checkpoint, the result has one entry for each set of phases to skip.
// The values after answers that leave the phase are added to exits instead.
func (f *valueFlow) flowCheckpoint(c *Checkpoint, open map[string]valueSets, exits map[flowNode]valueSets) map[string]valueSets {
	after := map[string]valueSets{}
	for skips, values := range open {
		if values == nil {
			continue
		}
		if !c.Required {
			after[skips], _ = after[skips].join(values)
		}
		for _, o := range c.Options {
			f.cost += 1 + len(values)*(1+len(o.Effect.SetVariable))
			answered := values
			for _, set := range o.Effect.SetVariable {
				answered = answered.assign(set.Name, set.Value)
			}
			then := addSkips(skips, f.l.graph.indicesOf(o.Effect.SkipPhases))
			if to, ok := f.l.graph.numbers[o.Effect.TransitionTo]; ok {
				n := flowNode{to, then}
				exits[n], _ = exits[n].join(answered)
			} else {
				after[then], _ = after[then].join(answered)
			}
		}
	}
	return after
}

// targets returns the phases that the decisions and transitions of a phase can lead to.
func (f *valueFlow) targets(p *Phase, values valueSets) []int {
	if values == nil {
		return nil
	}
	var found []int
	add := func(id string, c *expr.Expr, isDefault bool) {
		to, ok := f.l.graph.numbers[id]
		if ok && !slices.Contains(found, to) && (c == nil || isDefault || f.decideCondition(c, values) != expr.No) {
			found = append(found, to)
		}
	}
	certain := false
	for i := range p.Decisions {
		for _, b := range p.Decisions[i].Branches {
			add(b.TransitionTo, b.Condition, b.IsDefault)
			certain = certain || b.IsDefault || b.Condition == nil
		}
		if certain {
			return found
		}
	}
	for _, t := range p.Transitions {
		add(t.To, t.Condition, t.IsDefault)
	}
	return found
}

// decideCondition evaluates a condition for all values that its variables can have. The result is
// Unknown if it depends on the value.
func (f *valueFlow) decideCondition(e *expr.Expr, values valueSets) expr.Verdict {
	f.cost += 10
	path, ok := onlyPath(e)
	switch {
	case ok && values[expr.Root(path)].values != nil && !values[expr.Root(path)].unknown:
		return decideFor(e, path, values[expr.Root(path)].values)
	case ok:
		if value, constant := constantIn(e, f.l.vars.domainOf(path)); constant {
			return verdictOf(value)
		}
		return expr.Unknown
	}
	switch e.Op {
	case expr.Not:
		return f.decideCondition(e.Of[0], values).Negate()
	case expr.And, expr.Or:
		decisive := verdictOf(e.Op == expr.Or)
		result := decisive.Negate()
		for _, part := range e.Of {
			switch f.decideCondition(part, values) {
			case decisive:
				return decisive
			case expr.Unknown:
				result = expr.Unknown
			}
		}
		return result
	default:
		return expr.Unknown
	}
}

// CanHold reports whether a condition can hold for some values, of the declared types, of
// the variables that a caller can set; vars has the current values of all other variables.
// It may return true for a condition that compares several paths and cannot hold.
func (w *Workflow) CanHold(e *expr.Expr, vars map[string]any) bool {
	f := valueFlow{l: &linter{w: w, vars: newVariables(w)}}
	values := valueSets{}
	for _, path := range w.Owned() {
		values[expr.Root(path)] = newValueSet(vars[expr.Root(path)])
	}
	return f.decideCondition(e, values) != expr.No
}

// decideFor evaluates a condition on one path for the possible values of its variable.
func decideFor(e *expr.Expr, path string, values []any) expr.Verdict {
	holds, fails := false, false
	for _, v := range values {
		value, found, _ := expr.Map(map[string]any{expr.Root(path): v}).Path(path)
		if e.HoldsWith(value, found) {
			holds = true
		} else {
			fails = true
		}
	}
	if holds && fails {
		return expr.Unknown
	}
	return verdictOf(holds)
}

// verdictOf returns the verdict of a decided condition.
func verdictOf(value bool) expr.Verdict {
	if value {
		return expr.Yes
	}
	return expr.No
}
