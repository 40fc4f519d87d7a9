package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/workflow/expr"
	"github.com/guideway-dev/guideway/internal/workflow/steps"
)

// NextRequest is the state that a stateless caller keeps.
type NextRequest struct {
	// Completed lists the IDs of completed steps in order, a body step once for each round.
	Completed []string
	// Context holds the caller's variables. It may be the whole context of the previous
	// answer or the caller's own variables only.
	Context map[string]any
}

// NextResult is the next step.
type NextResult struct {
	// Step is nil if no step is left or eligible.
	Step *StepView
	// Guidance is the text for the agent.
	Guidance Guidance
	// IsComplete is set if all applicable steps are done.
	IsComplete bool
	// Context must be sent with the next call.
	Context map[string]any
}

// Next returns the first step that is not completed and whose condition holds. The step of
// a loop that has started takes precedence. The only error is a context that is too large,
// with guideway.CodeTooLarge.
func (p *Program) Next(req NextRequest) (*NextResult, error) {
	r := newReplay(p, req.Completed, req.Context)
	if n := ContextSize(r.callerVars); n >= maxContextSize {
		return nil, guideway.Errorf(guideway.CodeTooLarge, "%s", contextTooLarge(n)).
			WithFix("send fewer or shorter variables; keep large results in files and put their paths into the context")
	}
	at, loop, unmet := r.findStep()
	res := &NextResult{Context: r.buildContext(loop)}
	if at == nil {
		res.IsComplete = len(unmet) == 0
		res.Guidance = Guidance{Prompt: "Workflow complete."}
		if !res.IsComplete {
			res.Guidance.Prompt = p.waitPrompt(unmet, r.vars)
		}
		res.Guidance.Prompt += r.warningText()
		return res, nil
	}
	sc := stepText{program: p, step: at, vars: r.vars, first: len(req.Completed) == 0, stateless: true}
	if loop != nil {
		lp := r.loops[loop.step.ID]
		sc.enterRound(loop, lp.round, lp.list)
		sc.startsRound = at == r.firstStep(loop, sc.vars)
		sc.startsLoop = lp.round == 1 && sc.startsRound
	}
	res.Step, res.Guidance = sc.stepView(), sc.buildGuidance()
	res.Guidance.Prompt += r.warningText()
	return res, nil
}

// warningText returns the warnings of loops that this call adds to those that the caller
// sent, as a section of the prompt.
func (r *replay) warningText() string {
	var b strings.Builder
	for _, it := range r.p.items {
		if !it.isLoop() {
			continue
		}
		lp := r.loops[it.step.ID]
		for _, w := range lp.warnings {
			if slices.Contains(r.echoed[it.step.ID].warnings, w) {
				continue
			}
			fmt.Fprintf(&b, "\n- Loop '%s': %s", it.step.ID, w)
			if rest := len(lp.list) - lp.round; rest > 0 && w == maxReachedText(it.step.Loop) {
				fmt.Fprintf(&b, "; items that were not handed out: %d of %d", rest, len(lp.list))
			} else if lp.round <= 0 {
				b.WriteString("; the loop was skipped")
			}
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return "\n\n## Warnings" + b.String()
}

// firstStep returns the first applicable step of a loop's body.
func (r *replay) firstStep(it *item, vars expr.Lookup) *steps.Step {
	for _, b := range it.body {
		if b.RunCondition.Holds(vars) {
			return b
		}
	}
	return nil
}

// findStep returns the next step and its loop. If there is no step, it returns the
// undecided conditions that could make a step applicable.
func (r *replay) findStep() (at *steps.Step, loop *item, unmet []*expr.Expr) {
	// A loop that has started takes precedence.
	if it := r.activeLoop(); it != nil {
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
			if c.Decide(r.vars) == expr.Unknown {
				unmet = append(unmet, c)
			}
			continue
		}
		if lp == nil {
			return it.step, nil, nil
		}
		if lp = r.enterLoop(it); lp.at != nil {
			return lp.at, it, nil
		}
	}
	return nil, nil, unmet
}

// activeLoop returns the first loop that asks for a step and is active: the last completed
// step belongs to it, or the caller's loop state contains a round of it.
func (r *replay) activeLoop() *item {
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

// waitPrompt lists the variables that decide the remaining conditions.
func (p *Program) waitPrompt(unmet []*expr.Expr, vars expr.Lookup) string {
	var b strings.Builder
	b.WriteString("No eligible step due to unmet conditions. Please update context:")
	for _, n := range toNeeds((&expr.Expr{Op: expr.Or, Of: unmet}).Needs(vars)) {
		p.addOtherLiterals(&n)
		n.settle()
		b.WriteString("\n- ")
		b.WriteString(formatNeed(n))
	}
	return b.String()
}

// formatNeed describes a variable as the WorkRail specification does, with all values that
// the workflow names.
func formatNeed(n Need) string {
	allowed := make([]string, 0, len(n.Allowed))
	for _, v := range n.Allowed {
		if s := "'" + formatValue(v) + "'"; !slices.Contains(allowed, s) {
			allowed = append(allowed, s)
		}
	}
	switch {
	case len(n.Allowed) > 0:
		return fmt.Sprintf("Set '%s' to one of: %s", n.Variable, strings.Join(allowed, ", "))
	case len(n.Tests) > 0:
		return fmt.Sprintf("Provide a value for '%s' (%s)", n.Variable, strings.Join(n.Tests, ", "))
	default:
		return fmt.Sprintf("Provide a value for '%s'", n.Variable)
	}
}

// describeValue is like formatValue, but quotes a string that would be lost in a sentence:
// one that is empty, or begins or ends with a blank.
func describeValue(v any) string {
	if s, ok := v.(string); ok && (s == "" || s != strings.TrimSpace(s)) {
		return strconv.Quote(s)
	}
	return formatValue(v)
}

// formatValue formats a JSON value for a sentence: a string without quotes, any other value
// as JSON.
func formatValue(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}
