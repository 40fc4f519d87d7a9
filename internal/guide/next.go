package guide

import (
	"fmt"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/condition"
	"github.com/guideway-dev/guideway/internal/definition/steps"
)

// NextRequest is what a stateless caller knows of its walk.
type NextRequest struct {
	// Completed lists the ids of completed steps in order, a body step once
	// for each round.
	Completed []string
	// Context holds the caller's variables. The context of the previous answer
	// may be sent back whole; so may the caller's own variables alone.
	Context map[string]any
}

// NextResult is the next thing to do.
type NextResult struct {
	// Step is nil where there is none.
	Step *StepView
	// Guidance is what the agent is told.
	Guidance Guidance
	// IsComplete says that every step that applies is done.
	IsComplete bool
	// Context is to be sent back with the next call.
	Context map[string]any
}

// Next answers the stateless call: the first step that is not completed and
// whose condition holds (seed 000, "Workflow Execution Flow"). It errs only on a
// context that is too large, with guideway.CodeTooLarge.
func (p *Program) Next(req NextRequest) (*NextResult, error) {
	if n := ContextSize(withoutEngineKeys(req.Context)); n >= maxContextSize {
		return nil, guideway.Errorf(guideway.CodeTooLarge, "%s", contextTooLarge(n)).
			WithFix("send fewer or shorter variables; keep large results in files and put their paths into the context")
	}
	r := newReplay(p, req.Completed, req.Context)
	at, loop, unmet := r.find(req.Completed)
	res := &NextResult{Context: r.answerContext(req.Context, loop)}
	if at == nil {
		res.IsComplete = len(unmet) == 0
		res.Guidance = Guidance{Prompt: "Workflow complete."}
		if !res.IsComplete {
			res.Guidance.Prompt = unmetPrompt(unmet, r.vars)
		}
		return res, nil
	}
	sc := scene{program: p, step: at, vars: r.vars, first: len(req.Completed) == 0}
	if loop != nil {
		lp := r.loops[loop.step.ID]
		sc.loop, sc.round, sc.list = loop, lp.round, lp.list
		sc.vars = over(roundVars(loop.step.Loop, lp.round, lp.list), r.vars)
	}
	res.Step, res.Guidance = sc.view(), sc.guidance()
	return res, nil
}

// find gives the step to do, the loop that it belongs to, and, where there is
// no step, the conditions that could still make one apply.
func (r *replay) find(completed []string) (at *steps.Step, loop *item, unmet []*condition.Expr) {
	// A loop that is under way goes on before anything else is looked at.
	if it := r.underWay(completed); it != nil {
		return r.loops[it.step.ID].at, it, nil
	}
	for _, it := range r.p.items {
		if !it.isLoop() && r.done[it.step.ID] {
			continue
		}
		lp := r.loops[it.step.ID]
		if lp != nil && lp.done {
			continue
		}
		if lp != nil && lp.at != nil {
			return lp.at, it, nil
		}
		if c := it.step.RunCondition; !c.Holds(r.vars) {
			if c.Decide(r.vars) == condition.Unknown {
				unmet = append(unmet, c)
			}
			continue
		}
		if lp == nil {
			return it.step, nil, nil
		}
		if lp = r.enter(it); lp.at != nil {
			return lp.at, it, nil
		}
	}
	return nil, nil, unmet
}

// underWay finds the loop that the last completed step belongs to, or that the
// caller says it is in, if that loop asks for a step.
func (r *replay) underWay(completed []string) *item {
	var last string
	if len(completed) > 0 {
		last = completed[len(completed)-1]
	}
	for _, it := range r.p.items {
		if !it.isLoop() {
			continue
		}
		lp := r.loops[it.step.ID]
		if lp.at != nil && (it.inBody[last] || r.echoed[it.step.ID].iteration > 0) {
			return it
		}
	}
	return nil
}

// unmetPrompt says which variables would decide what is left.
func unmetPrompt(unmet []*condition.Expr, vars condition.Lookup) string {
	var b strings.Builder
	b.WriteString("No eligible step due to unmet conditions. Please update context:")
	for _, n := range (&condition.Expr{Op: condition.Or, Of: unmet}).Needs(vars) {
		b.WriteString("\n- ")
		b.WriteString(needLine(n))
	}
	return b.String()
}

func needLine(n condition.Need) string {
	allowed := make([]string, 0, len(n.Allowed))
	for _, v := range n.Allowed {
		if s := fmt.Sprintf("'%v'", v); !slices.Contains(allowed, s) {
			allowed = append(allowed, s)
		}
	}
	list := strings.Join(allowed, ", ")
	switch {
	case len(allowed) == 0:
		return fmt.Sprintf("Provide a value for '%s'", n.Variable)
	case n.Set:
		return fmt.Sprintf("Adjust '%s' to one of: %s (current '%v')", n.Variable, list, n.Current)
	default:
		return fmt.Sprintf("Set '%s' to one of: %s", n.Variable, list)
	}
}
