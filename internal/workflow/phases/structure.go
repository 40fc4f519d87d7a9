package phases

import (
	"fmt"
	"slices"

	"github.com/guideway-dev/guideway/internal/workflow/shape"
)

// checkStructure checks rules that the schema cannot express: ids, references between
// phases, and the types of values.
func (p *parser) checkStructure(at shape.Place, w *Workflow) {
	phases := at.Key("phases")
	numbers := p.checkUnique(phases, len(w.Phases), "phase", func(i int) string { return w.Phases[i].ID })
	declared := p.checkDeclarations(at.Key("variables"), w)
	c := checker{parser: p, w: w, numbers: numbers, declared: declared, graph: newGraph(w, numbers)}
	c.checkReference(at.Key("initialPhase"), w.InitialPhase)
	for i := range w.Phases {
		phase := phases.Index(i)
		c.checkPhase(phase.In(entryLocation(phase, "phase", i)), &w.Phases[i])
	}
}

// checker checks the parts of phases against the whole workflow.
type checker struct {
	*parser
	w *Workflow
	// numbers maps the id of a phase to its index.
	numbers map[string]int
	// declared maps names to variables.
	declared map[string]*Variable
	graph    *phaseGraph
}

// checkUnique reports repeated ids of a list, and returns the index of each id.
func (p *parser) checkUnique(at shape.Place, n int, noun string, id func(int) string) map[string]int {
	seen := make(map[string]int, n)
	for i := range n {
		p.checkTaken(at.Index(i).Key("id"), seen, i, noun, id(i))
	}
	return seen
}

// checkTaken reports an id that was seen before.
func (p *parser) checkTaken(at shape.Place, seen map[string]int, i int, noun, id string) {
	if id == "" {
		return
	}
	if _, ok := seen[id]; ok {
		p.Errorf(at, CodeDuplicateID, fmt.Sprintf("give each %s a unique id", noun),
			"Duplicate %s id '%s': an earlier %s already has it.", noun, id, noun)
		return
	}
	seen[id] = i
}

// checkDeclarations checks names and defaults of variables.
func (p *parser) checkDeclarations(at shape.Place, w *Workflow) map[string]*Variable {
	declared := make(map[string]*Variable, len(w.Variables))
	for i := range w.Variables {
		v := &w.Variables[i]
		one := at.Index(i)
		if declared[v.Name] != nil {
			p.Errorf(one.Key("name"), CodeVariableDuplicate, "keep one of the two declarations", "Variable '%s' is declared twice.", v.Name)
			continue
		}
		if v.Name != "" {
			declared[v.Name] = v
		}
		if v.HasDefault {
			p.checkType(one.Key("defaultValue"), v, v.DefaultValue, "the default")
		}
	}
	return declared
}

// checkType reports a value that is not of its variable's type. Null fits every type.
func (p *parser) checkType(at shape.Place, v *Variable, value any, what string) {
	if v == nil || value == nil || !slices.Contains(typeNames(), string(v.Type)) || v.Type.Fits(value) {
		return
	}
	p.Errorf(at, CodeVariableType, fmt.Sprintf("write %s, or change the variable's type", shape.WithArticle(string(v.Type))),
		"Variable '%s' is %s, but %s is %s.", v.Name, shape.WithArticle(string(v.Type)), what, shape.Describe(at.Node))
}

// checkReference checks that a phase exists. It reports nothing if the workflow has no
// phases, because that was already reported.
func (c *checker) checkReference(at shape.Place, id string) {
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

// manyPhases is the number of phases above which messages do not list them.
const manyPhases = 12

// checkPhase checks one phase.
func (c *checker) checkPhase(at shape.Place, phase *Phase) {
	c.checkActions(at.Key("entryActions"), phase.EntryActions)
	c.checkActions(at.Key("exitActions"), phase.ExitActions)
	c.checkSteps(at, phase)
	c.checkCheckpoints(at.Key("checkpoints"), phase)
	decisions := at.Key("decisions")
	c.checkUnique(decisions, len(phase.Decisions), "decision", func(i int) string { return phase.Decisions[i].ID })
	for i := range phase.Decisions {
		d := &phase.Decisions[i]
		branches := decisions.Index(i).Key("branches")
		c.checkUnique(branches, len(d.Branches), "branch", func(i int) string { return d.Branches[i].ID })
		for j := range d.Branches {
			to := branches.Index(j).Key("transitionTo")
			c.checkReference(to.In(fmt.Sprintf("in branch '%s' of decision '%s'", d.Branches[j].ID, d.ID)), d.Branches[j].TransitionTo)
		}
	}
	transitions := at.Key("transitions")
	for i := range phase.Transitions {
		to := transitions.Index(i).Key("to")
		c.checkReference(to.In(entryLocation(transitions.Index(i), "transition", i)), phase.Transitions[i].To)
	}
}

// checkSteps checks the steps of a phase and of its loops: an id is unique in the
// whole phase.
func (c *checker) checkSteps(at shape.Place, phase *Phase) {
	seen := map[string]int{}
	check := func(at shape.Place, steps []Step) {
		for i := range steps {
			c.checkTaken(at.Index(i).Key("id"), seen, i, "step", steps[i].ID)
			c.checkActions(at.Index(i).Key("actions"), steps[i].Actions)
		}
	}
	check(at.Key("steps"), phase.Steps)
	loops := at.Key("loops")
	c.checkUnique(loops, len(phase.Loops), "loop", func(i int) string { return phase.Loops[i].ID })
	for i := range phase.Loops {
		check(loops.Index(i).Key("steps"), phase.Loops[i].Steps)
	}
}

// checkActions checks the values of set actions.
func (c *checker) checkActions(at shape.Place, actions []Action) {
	for i := range actions {
		if a := &actions[i]; a.Action == ActionSet && a.HasValue {
			c.checkType(at.Index(i).Key("value"), c.declared[a.Target], a.Value, "the value to set")
		}
	}
}

// checkCheckpoints checks the options of checkpoints.
func (c *checker) checkCheckpoints(at shape.Place, phase *Phase) {
	c.checkUnique(at, len(phase.Checkpoints), "checkpoint", func(i int) string { return phase.Checkpoints[i].ID })
	for i := range phase.Checkpoints {
		checkpoint := &phase.Checkpoints[i]
		options := at.Index(i).Key("options")
		c.checkUnique(options, len(checkpoint.Options), "option", func(i int) string { return checkpoint.Options[i].ID })
		for j := range checkpoint.Options {
			where := fmt.Sprintf("in option '%s' of checkpoint '%s'", checkpoint.Options[j].ID, checkpoint.ID)
			c.checkEffect(options.Index(j).Key("effect").In(where), phase, &checkpoint.Options[j].Effect)
		}
	}
}

// checkEffect checks the effect of an option.
func (c *checker) checkEffect(at shape.Place, phase *Phase, e *Effect) {
	c.checkReference(at.Key("transitionTo"), e.TransitionTo)
	set := at.Key("setVariable")
	for _, assignment := range e.SetVariable {
		c.checkType(set.Key(assignment.Name), c.declared[assignment.Name], assignment.Value, "the value to set")
	}
	skips := at.Key("skipPhases")
	for i, id := range e.SkipPhases {
		c.checkReference(skips.Index(i), id)
		if id == phase.ID && id != "" {
			c.Errorf(skips.Index(i), CodeSkipsItself, "remove the phase from 'skipPhases'; to leave the phase immediately, write \"transitionTo\"",
				"An answer in phase '%s' cannot skip that phase (%s).", id, at.Where)
		}
	}
	if circle := c.graph.skipCycle(c.graph.indicesOf(e.SkipPhases)); circle != nil {
		c.Errorf(skips, CodeSkipCycle, "let the default transition of one of the skipped phases lead to a phase that is not skipped",
			"The skipped phases %s form a cycle, so a run that reaches them never leaves the cycle (%s).", shape.QuotedAll(c.graph.idsOf(circle)), at.Where)
	}
}

// The codes of errors that the published schema of the kind also detects.
const (
	CodeVersion        = "version-format"
	CodeFewBranches    = "decision-branches"
	CodeFewConditions  = "condition-operands"
	CodeConditionType  = "condition-type"
	CodeConditionValue = "condition-value"
	CodeNotBlocking    = "checkpoint-blocking"
	CodeLoopType       = "loop-type"
	CodeLoopMax        = "loop-max-iterations"
	CodeLoopOver       = "loop-over-missing"
	CodeLoopCondition  = "loop-condition-missing"
	CodeTime           = "time-format"
	CodeStateKey       = "state-key"
)

// The codes of rules that a schema cannot express.
const (
	CodePhaseUnknown      = "phase-unknown"
	CodeSkipsItself       = "phase-skips-itself"
	CodeSkipCycle         = "phase-skip-cycle"
	CodeDuplicateID       = "id-duplicate"
	CodeVariableDuplicate = "variable-duplicate"
	CodeVariableType      = "variable-type"
)
