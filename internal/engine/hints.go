package engine

import (
	"maps"
	"slices"

	"github.com/guideway-dev/guideway/internal/contexts/compress"
	"github.com/guideway-dev/guideway/internal/workflow/criteria"
	"github.com/guideway-dev/guideway/internal/workflow/expr"
	"github.com/guideway-dev/guideway/internal/workflow/phases"
	"github.com/guideway-dev/guideway/internal/workflow/steps"
	"github.com/guideway-dev/guideway/internal/workflow/template"
)

// Admit implements Flow.
func (p *Program) Admit(s State, context map[string]any) *Refusal { return p.checkContext(s, context) }

// Admit implements Flow.
func (p *PhaseProgram) Admit(s State, context map[string]any) *Refusal {
	return p.checkContext(s, context)
}

// readSet collects the variables that a definition uses.
type readSet map[string]bool

func (r readSet) addCondition(e *expr.Expr) {
	if e == nil {
		return
	}
	for _, name := range e.Variables() {
		r[expr.Root(name)] = true
	}
}

func (r readSet) addText(texts ...string) {
	for _, text := range texts {
		for _, part := range template.Parse(text) {
			if part.Expr && len(part.Path) > 0 {
				r[part.Path[0]] = true
			}
		}
	}
}

func (r readSet) sortedNames() []string {
	delete(r, "")
	return slices.Sorted(maps.Keys(r))
}

// Hints implements Flow.
func (p *Program) Hints() compress.Hints {
	r := readSet{}
	for i := range p.Workflow.Steps {
		r.addStep(&p.Workflow.Steps[i])
	}
	return compress.Hints{Rules: p.Workflow.ContextRules, Variables: r.sortedNames()}
}

func (r readSet) addStep(step *steps.Step) {
	r.addCondition(step.RunCondition)
	r.addCondition(step.Confirm)
	r.addCriteria(step.Criteria)
	r.addText(step.Title, step.Prompt, step.AgentRole)
	r.addText(step.Guidance...)
	l := step.Loop
	if l == nil {
		return
	}
	r.addCondition(l.Condition)
	r[expr.Root(boundsVar(l))] = true
	for _, name := range l.Variables() {
		r[name] = true
	}
	for i := range l.Body {
		r.addStep(&l.Body[i])
	}
}

// addCriteria adds the variables of the conditions and checks of criteria.
func (r readSet) addCriteria(c *criteria.Criterion) {
	if c == nil {
		return
	}
	r.addCondition(c.Condition)
	if c.CheckRule != nil {
		for _, text := range c.CheckRule.Texts() {
			r.addText(text.Text)
		}
	}
	for _, part := range c.Of {
		r.addCriteria(part)
	}
}

// Hints implements Flow.
func (p *PhaseProgram) Hints() compress.Hints {
	r := readSet{}
	for i := range p.Workflow.Phases {
		r.addPhase(&p.Workflow.Phases[i])
	}
	for _, name := range p.owned {
		r[name] = true
	}
	for _, v := range p.Workflow.Variables {
		if v.Required {
			r[v.Name] = true
		}
	}
	return compress.Hints{Rules: p.Workflow.ContextRules, Variables: r.sortedNames()}
}

func (r readSet) addPhase(phase *phases.Phase) {
	for i := range phase.Decisions {
		for _, b := range phase.Decisions[i].Branches {
			r.addCondition(b.Condition)
		}
	}
	for _, t := range phase.Transitions {
		r.addCondition(t.Condition)
	}
	for i := range phase.Loops {
		l := &phase.Loops[i]
		r.addCondition(l.Condition)
		r.addCondition(l.BreakCondition)
		r[expr.Root(l.Over)] = true
		r[l.Variable] = true
		for j := range l.Steps {
			r.addCriteria(l.Steps[j].Criteria)
		}
	}
	actions := func(list []phases.Action) {
		for i := range list {
			if list[i].Action == phases.ActionValidate {
				r[expr.Root(list[i].Target)] = true
			}
		}
	}
	actions(phase.EntryActions)
	actions(phase.ExitActions)
	for i := range phase.Steps {
		actions(phase.Steps[i].Actions)
		r.addCriteria(phase.Steps[i].Criteria)
	}
}
