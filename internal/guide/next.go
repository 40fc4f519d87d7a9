package guide

import (
	"encoding/json"
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
	r := newReplay(p, req.Completed, req.Context)
	if n := ContextSize(r.own); n >= maxContextSize {
		return nil, guideway.Errorf(guideway.CodeTooLarge, "%s", contextTooLarge(n)).
			WithFix("send fewer or shorter variables; keep large results in files and put their paths into the context")
	}
	at, loop, unmet := r.find()
	res := &NextResult{Context: r.answerContext(loop)}
	if at == nil {
		res.IsComplete = len(unmet) == 0
		res.Guidance = Guidance{Prompt: "Workflow complete."}
		if !res.IsComplete {
			res.Guidance.Prompt = unmetPrompt(unmet, r.vars)
		}
		return res, nil
	}
	sc := scene{program: p, step: at, vars: r.vars, first: len(req.Completed) == 0, stateless: true}
	if loop != nil {
		lp := r.loops[loop.step.ID]
		sc.inLoop(loop, lp.round, lp.list)
		sc.begins = lp.round == 1 && at == r.firstOf(loop, sc.vars)
	}
	res.Step, res.Guidance = sc.view(), sc.guidance()
	return res, nil
}

// firstOf is the first step of a loop's body that applies.
func (r *replay) firstOf(it *item, vars condition.Lookup) *steps.Step {
	for _, b := range it.body {
		if b.RunCondition.Holds(vars) {
			return b
		}
	}
	return nil
}

// find gives the step to do, the loop that it belongs to, and, where there is
// no step, the conditions that could still make one apply.
func (r *replay) find() (at *steps.Step, loop *item, unmet []*condition.Expr) {
	// A loop that is under way goes on before anything else is looked at.
	if it := r.underWay(); it != nil {
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
func (r *replay) underWay() *item {
	var last string
	if len(r.completed) > 0 {
		last = r.completed[len(r.completed)-1]
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
		if s := "'" + inWords(v) + "'"; !slices.Contains(allowed, s) {
			allowed = append(allowed, s)
		}
	}
	switch {
	case len(allowed) > 0:
		return fmt.Sprintf("Set '%s' to one of: %s", n.Variable, strings.Join(allowed, ", "))
	case len(n.Tests) > 0:
		return fmt.Sprintf("Provide a value for '%s' (%s)", n.Variable, strings.Join(n.Tests, ", "))
	default:
		return fmt.Sprintf("Provide a value for '%s'", n.Variable)
	}
}

// inWords writes a JSON value for a sentence: a string as it is, anything else
// as JSON.
func inWords(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}
