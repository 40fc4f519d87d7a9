package guide

import (
	"maps"
	"slices"

	"github.com/guideway-dev/guideway/internal/condition"
	"github.com/guideway-dev/guideway/internal/definition/phases"
	"github.com/guideway-dev/guideway/internal/definition/steps"
	"github.com/guideway-dev/guideway/internal/definition/template"
	"github.com/guideway-dev/guideway/internal/window"
)

// Admit implements Flow.
func (p *Program) Admit(s State, context map[string]any) *Refusal { return p.checkContext(s, context) }

// Admit implements Flow.
func (p *PhaseProgram) Admit(s State, context map[string]any) *Refusal {
	return p.checkContext(s, context)
}

// reads collects the variables that a definition reads.
type reads map[string]bool

func (r reads) condition(e *condition.Expr) {
	if e == nil {
		return
	}
	for _, name := range e.Variables() {
		r[condition.Root(name)] = true
	}
}

func (r reads) text(texts ...string) {
	for _, text := range texts {
		for _, part := range template.Parse(text) {
			if part.Expr && len(part.Path) > 0 {
				r[part.Path[0]] = true
			}
		}
	}
}

func (r reads) names() []string {
	delete(r, "")
	return slices.Sorted(maps.Keys(r))
}

// Hints implements Flow.
func (p *Program) Hints() window.Hints {
	r := reads{}
	for i := range p.Workflow.Steps {
		r.step(&p.Workflow.Steps[i])
	}
	return window.Hints{Rules: p.Workflow.ContextRules, Variables: r.names()}
}

func (r reads) step(step *steps.Step) {
	r.condition(step.RunCondition)
	r.condition(step.Confirm)
	r.text(step.Title, step.Prompt, step.AgentRole)
	r.text(step.Guidance...)
	l := step.Loop
	if l == nil {
		return
	}
	r.condition(l.Condition)
	r[extentVar(l)] = true
	for _, name := range loopVarNames(l) {
		r[name] = true
	}
	for i := range l.Body {
		r.step(&l.Body[i])
	}
}

// Hints implements Flow.
func (p *PhaseProgram) Hints() window.Hints {
	r := reads{}
	for i := range p.Workflow.Phases {
		r.phase(&p.Workflow.Phases[i])
	}
	for _, name := range p.owned {
		r[name] = true
	}
	for _, v := range p.Workflow.Variables {
		if v.Required {
			r[v.Name] = true
		}
	}
	return window.Hints{Rules: p.Workflow.ContextRules, Variables: r.names()}
}

func (r reads) phase(phase *phases.Phase) {
	for i := range phase.Decisions {
		for _, b := range phase.Decisions[i].Branches {
			r.condition(b.Condition)
		}
	}
	for _, t := range phase.Transitions {
		r.condition(t.Condition)
	}
	for i := range phase.Loops {
		l := &phase.Loops[i]
		r.condition(l.Condition)
		r.condition(l.BreakCondition)
		r[condition.Root(l.Over)] = true
		r[l.Variable] = true
	}
	actions := func(list []phases.Action) {
		for i := range list {
			if list[i].Action == phases.ActionValidate {
				r[condition.Root(list[i].Target)] = true
			}
		}
	}
	actions(phase.EntryActions)
	actions(phase.ExitActions)
	for i := range phase.Steps {
		actions(phase.Steps[i].Actions)
	}
}
