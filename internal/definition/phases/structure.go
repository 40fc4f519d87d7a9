package phases

import (
	"fmt"

	"github.com/guideway-dev/guideway/internal/definition/shape"
)

// structure checks what the schema cannot say: ids, references between phases,
// and the types of values.
func (p *parser) structure(at shape.Place, w *Workflow) {
	phases := at.Key("phases")
	numbers := p.unique(phases, len(w.Phases), "phase", func(i int) string { return w.Phases[i].ID })
	declared := p.declarations(at.Key("variables"), w)
	c := checker{parser: p, w: w, numbers: numbers, declared: declared, graph: newGraph(w, numbers)}
	c.reference(at.Key("initialPhase"), w.InitialPhase)
	for i := range w.Phases {
		phase := phases.Index(i)
		c.phase(phase.In(entry(phase, "phase", i)), &w.Phases[i])
	}
}

// checker checks the parts of phases against the whole.
type checker struct {
	*parser
	w *Workflow
	// numbers are the positions of phases by id.
	numbers map[string]int
	// declared are the variables by name.
	declared map[string]*Variable
	graph    *graph
}

// unique reports the ids of a list that occur twice, and gives the position of
// each.
func (p *parser) unique(at shape.Place, n int, noun string, id func(int) string) map[string]int {
	seen := make(map[string]int, n)
	for i := range n {
		p.taken(at.Index(i).Key("id"), seen, i, noun, id(i))
	}
	return seen
}

// taken reports an id that was seen before.
func (p *parser) taken(at shape.Place, seen map[string]int, i int, noun, id string) {
	if id == "" {
		return
	}
	if first, ok := seen[id]; ok {
		p.Errorf(at, CodeDuplicateID, fmt.Sprintf("give each %s an id of its own", noun),
			"Duplicate %s id '%s': %s %d has it already.", noun, id, noun, first+1)
		return
	}
	seen[id] = i
}

// declarations checks names and defaults of variables.
func (p *parser) declarations(at shape.Place, w *Workflow) map[string]*Variable {
	declared := make(map[string]*Variable, len(w.Variables))
	for i := range w.Variables {
		v := &w.Variables[i]
		one := at.Index(i)
		if declared[v.Name] != nil {
			p.Errorf(one.Key("name"), CodeVariableDuplicate, "keep one of the two", "Variable '%s' is declared twice.", v.Name)
			continue
		}
		if v.Name != "" {
			declared[v.Name] = v
		}
		if v.HasDefault {
			p.typed(one.Key("defaultValue"), v, v.DefaultValue, "the default")
		}
	}
	return declared
}

// typed reports a value that is not of its variable's type. Null is the absence
// of a value and fits every variable.
func (p *parser) typed(at shape.Place, v *Variable, value any, what string) {
	if v == nil || value == nil || !known(v.Type) || v.Type.Fits(value) {
		return
	}
	p.Errorf(at, CodeVariableType, fmt.Sprintf("write %s, or change the variable's type", shape.WithArticle(string(v.Type))),
		"Variable '%s' is %s, but %s is %s.", v.Name, shape.WithArticle(string(v.Type)), what, shape.Describe(at.Node))
}

// known says whether there is such a type.
func known(t VariableType) bool {
	for _, name := range types() {
		if string(t) == name {
			return true
		}
	}
	return false
}

// reference checks that a phase is there. Without any phases, that there are none
// is what is wrong.
func (c *checker) reference(at shape.Place, id string) {
	if _, ok := c.numbers[id]; ok || id == "" || len(c.w.Phases) == 0 {
		return
	}
	ids := func() []string {
		names := make([]string, 0, len(c.w.Phases))
		for i := range c.w.Phases {
			if id := c.w.Phases[i].ID; c.numbers[id] == i {
				names = append(names, id)
			}
		}
		return names
	}
	fix := "write the id of a phase of this workflow"
	if len(c.w.Phases) <= manyPhases {
		fix += ": " + shape.List(ids())
	}
	c.Errorf(at, CodePhaseUnknown, c.Guess(id, ids, fix), "Field '%s' %s refers to the phase '%s', which does not exist.", at.Name, at.Where, id)
}

// manyPhases is the number of phases from which on a message does not list them.
const manyPhases = 12

// phase checks one phase.
func (c *checker) phase(at shape.Place, phase *Phase) {
	c.actions(at.Key("entryActions"), phase.EntryActions)
	c.actions(at.Key("exitActions"), phase.ExitActions)
	c.steps(at, phase)
	c.checkpoints(at.Key("checkpoints"), phase)
	decisions := at.Key("decisions")
	c.unique(decisions, len(phase.Decisions), "decision", func(i int) string { return phase.Decisions[i].ID })
	for i := range phase.Decisions {
		d := &phase.Decisions[i]
		branches := decisions.Index(i).Key("branches")
		c.unique(branches, len(d.Branches), "branch", func(i int) string { return d.Branches[i].ID })
		for j := range d.Branches {
			to := branches.Index(j).Key("transitionTo")
			c.reference(to.In(fmt.Sprintf("in branch '%s' of decision '%s'", d.Branches[j].ID, d.ID)), d.Branches[j].TransitionTo)
		}
	}
	transitions := at.Key("transitions")
	for i := range phase.Transitions {
		to := transitions.Index(i).Key("to")
		c.reference(to.In(entry(transitions.Index(i), "transition", i)), phase.Transitions[i].To)
	}
}

// steps checks the steps of a phase and of its loops: an id is unique in the
// whole phase.
func (c *checker) steps(at shape.Place, phase *Phase) {
	seen := map[string]int{}
	check := func(at shape.Place, steps []Step) {
		for i := range steps {
			c.taken(at.Index(i).Key("id"), seen, i, "step", steps[i].ID)
			c.actions(at.Index(i).Key("actions"), steps[i].Actions)
		}
	}
	check(at.Key("steps"), phase.Steps)
	loops := at.Key("loops")
	c.unique(loops, len(phase.Loops), "loop", func(i int) string { return phase.Loops[i].ID })
	for i := range phase.Loops {
		check(loops.Index(i).Key("steps"), phase.Loops[i].Steps)
	}
}

// actions checks the values that set actions give.
func (c *checker) actions(at shape.Place, actions []Action) {
	for i := range actions {
		if a := &actions[i]; a.Action == ActionSet && a.HasValue {
			c.typed(at.Index(i).Key("value"), c.declared[a.Target], a.Value, "the value to set")
		}
	}
}

// checkpoints checks the options of checkpoints.
func (c *checker) checkpoints(at shape.Place, phase *Phase) {
	c.unique(at, len(phase.Checkpoints), "checkpoint", func(i int) string { return phase.Checkpoints[i].ID })
	for i := range phase.Checkpoints {
		checkpoint := &phase.Checkpoints[i]
		options := at.Index(i).Key("options")
		c.unique(options, len(checkpoint.Options), "option", func(i int) string { return checkpoint.Options[i].ID })
		for j := range checkpoint.Options {
			where := fmt.Sprintf("in option '%s' of checkpoint '%s'", checkpoint.Options[j].ID, checkpoint.ID)
			c.effect(options.Index(j).Key("effect").In(where), phase, &checkpoint.Options[j].Effect)
		}
	}
}

// effect checks what an answer brings about.
func (c *checker) effect(at shape.Place, phase *Phase, e *Effect) {
	c.reference(at.Key("transitionTo"), e.TransitionTo)
	set := at.Key("setVariable")
	for _, assignment := range e.SetVariable {
		c.typed(set.Key(assignment.Name), c.declared[assignment.Name], assignment.Value, "the value to set")
	}
	skips := at.Key("skipPhases")
	for i, id := range e.SkipPhases {
		c.reference(skips.Index(i), id)
		if id == phase.ID && id != "" {
			c.Errorf(skips.Index(i), CodeSkipsItself, "remove it; to leave the phase at once, write \"transitionTo\"",
				"Phase '%s' cannot be skipped by an answer in it (%s).", id, at.Where)
		}
	}
	if circle := c.graph.skipCycle(c.graph.positions(e.SkipPhases)); circle != nil {
		c.Errorf(skips, CodeSkipCycle, "let one of them lead on to a phase that is not skipped, by its default way",
			"The skipped phases %s lead to each other in a circle, so a run that comes to them never gets out (%s).", shape.QuotedAll(c.graph.names(circle)), at.Where)
	}
}
