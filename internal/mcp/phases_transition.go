package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"github.com/guideway-dev/guideway/internal/platform/lists"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/workflow"
	"github.com/guideway-dev/guideway/internal/workflow/expr"
	"github.com/guideway-dev/guideway/internal/workflow/phases"
)

// transition is one way to leave a phase: a transition, a branch or an option.
type transition struct {
	// By is "transition", "branch" or "option".
	By string `json:"by"`
	// ID names the branch or the option with its parent: "decision/branch".
	ID string `json:"id,omitempty"`
	To string `json:"to"`
	// Condition is the text of the condition.
	Condition string `json:"condition,omitempty"`
	Default   bool   `json:"isDefault,omitempty"`
	// Holds is the value of the condition; absent if there is none or it was not evaluated.
	// An option of an answered checkpoint does not hold.
	Holds string `json:"holds,omitempty"`
	// Skipped are the phases before the target that an answer has skipped.
	Skipped []string `json:"past,omitempty"`

	expr *expr.Expr
	// target is the next phase: To, or the first phase after it that is not skipped. It is
	// "" at the end of the run, or if the phase is not decided yet.
	target    string
	undecided bool
}

// outgoingTransitions returns all transitions from a phase, in the order of the original
// server: transitions, branches, options.
func outgoingTransitions(phase *phases.Phase) []transition {
	var out []transition
	add := func(w transition, e *expr.Expr) {
		if w.expr = e; e != nil {
			w.Condition = e.String()
		}
		out = append(out, w)
	}
	for _, t := range phase.Transitions {
		add(transition{By: "transition", To: t.To, Default: t.IsDefault}, t.Condition)
	}
	for _, d := range phase.Decisions {
		for _, b := range d.Branches {
			add(transition{By: "branch", ID: d.ID + "/" + b.ID, To: b.TransitionTo, Default: b.IsDefault}, b.Condition)
		}
	}
	for _, c := range phase.Checkpoints {
		for _, o := range c.Options {
			if to := o.Effect.TransitionTo; to != "" {
				add(transition{By: "option", ID: c.ID + "/" + o.ID, To: to}, nil)
			}
		}
	}
	return out
}

// transitionAnswer is the answer of validate_transition.
type transitionAnswer struct {
	Valid  bool   `json:"valid"`
	Reason string `json:"reason,omitempty"`
	// Transitions are the transitions that lead to the given phase or, if the call has
	// variables, all transitions from the phase.
	Transitions []transition `json:"ways,omitempty"`
	// LeadsTo is the next phase with these variables.
	LeadsTo string `json:"leads_to,omitempty"`
	// Waits are the variables that undecided conditions need.
	Waits []string `json:"waits_for,omitempty"`
	// First is the position that the run must complete before it leaves the phase.
	First string `json:"first,omitempty"`
	// Allowed are the ids of all phases, if a given phase is not found.
	Allowed []string `json:"allowed,omitempty"`
}

func (p *phaseTools) validateTransition(ctx context.Context, c call) (any, error) {
	w, err := p.findWorkflow(c)
	if err != nil {
		return nil, err
	}
	judge, position, w, err := p.newJudge(ctx, c, w)
	if err != nil {
		return nil, err
	}
	from, to, missing := p.findEnds(c, w)
	if missing != "" {
		return textAnswer{structure: transitionAnswer{Reason: missing, Allowed: phaseIDs(w)}}, nil
	}
	if n := position.phase; n > 0 && &w.Phases[n-1] != from {
		return textAnswer{structure: transitionAnswer{Reason: fmt.Sprintf("The current phase is %s, not %s", w.Phases[n-1].ID, from.ID)}}, nil
	}
	out := checkStatic(position.outgoing(from), to)
	switch {
	case judge == nil || !out.Valid:
	case len(position.decidedTarget) > 0:
		taken := position.resolveTarget(transition{To: position.decidedTarget})
		out.LeadsTo = taken.target
		out.Valid, out.Reason = out.LeadsTo == to.ID, "An answer or decision has already chosen "+taken.targetText()
	default:
		out = checkDynamic(from, to, judge, position)
	}
	out.First = position.nextPosition()
	return textAnswer{structure: out}, nil
}

// findEnds returns both phases, or a message about the missing one in the wording of the
// original server.
func (p *phaseTools) findEnds(c call, w *phases.Workflow) (from, to *phases.Phase, missing string) {
	from, err := p.findPhase(c, w, "from_phase")
	if err != nil {
		return nil, nil, fmt.Sprintf("Source phase not found: %v", shortenValue(c.textArg("from_phase")))
	}
	to, err = p.findPhase(c, w, "to_phase")
	if err != nil {
		return nil, nil, fmt.Sprintf("Target phase not found: %v", shortenValue(c.textArg("to_phase")))
	}
	return from, to, ""
}

// checkStatic reports, as the original server does, whether any transition leads to a
// phase.
func checkStatic(list []transition, to *phases.Phase) transitionAnswer {
	var out transitionAnswer
	var targets []string
	for _, w := range list {
		if w.target != "" && !slices.Contains(targets, w.target) {
			targets = append(targets, w.target)
		}
		if w.target == to.ID {
			out.Transitions = append(out.Transitions, w)
		}
	}
	if out.Valid = len(out.Transitions) > 0; !out.Valid {
		valid := "none"
		if len(targets) > 0 {
			valid = strings.Join(targets, ", ")
		}
		out.Reason = "No valid transition. Valid: " + valid
	}
	return out
}

// conditionJudge evaluates a condition, and returns the variables that it still needs.
type conditionJudge func(*expr.Expr) (expr.Verdict, []string)

// checkDynamic answers with known variables. As in a run, decisions are evaluated in order
// and before transitions. The options of an unanswered checkpoint are always valid: a
// person may choose any.
func checkDynamic(from, to *phases.Phase, decide conditionJudge, s runPosition) transitionAnswer {
	out := transitionAnswer{}
	all := s.outgoing(from)
	for i := range all {
		w := &all[i]
		if w.By == "option" {
			if checkpoint, _, _ := strings.Cut(w.ID, "/"); s.answered[checkpoint] {
				w.Holds = expr.No.String()
			} else if w.target == to.ID {
				out.Valid, out.Reason = true, "The answer "+w.ID+" leads to "+to.ID
			}
			continue
		}
		if w.expr == nil {
			continue
		}
		verdict, waits := decide(w.expr)
		if w.Holds = verdict.String(); verdict == expr.Unknown {
			out.Waits = append(out.Waits, waits...)
		}
	}
	slices.Sort(out.Waits)
	out.Waits, out.Transitions = slices.Compact(out.Waits), all
	taken, offered := takenTransition(from, all)
	if taken != nil {
		out.LeadsTo = taken.target
	}
	switch {
	case out.Valid:
	case taken != nil && taken.target == to.ID:
		out.Valid = true
		out.Reason = to.ID + " is next: " + taken.reasonText()
	case slices.Contains(offered, to.ID):
		out.Valid, out.Reason = true, "A person may choose the branch to "+to.ID+": no other transition applies"
	case taken != nil:
		out.Reason = fmt.Sprintf("The variables lead to %s: %s", taken.targetText(), taken.reasonText())
	case len(out.Waits) > 0:
		out.Reason = "No transition or branch applies yet: set " + strings.Join(out.Waits, ", ")
	default:
		out.Reason = "No condition of a transition or branch holds, and there is no default"
	}
	return out
}

// targetText describes the target of a transition.
func (w *transition) targetText() string {
	switch past := strings.Join(w.Skipped, ", "); {
	case past == "":
		return w.target
	case w.undecided:
		return w.To + " (an answer has skipped it; the phase after it is not decided yet)"
	case w.target == "":
		return "the end of the run (an answer has skipped " + past + ")"
	default:
		return w.target + " (an answer has skipped " + past + ")"
	}
}

// reasonText describes why a transition applies.
func (w *transition) reasonText() string {
	switch {
	case w.Holds == expr.Yes.String():
		return "the " + w.By + " applies because " + w.Condition
	case w.Default:
		return "the default " + w.By + " applies"
	default:
		return "a " + w.By + " without a condition applies"
	}
}

// takenTransition returns the transition that applies, or the targets of the branches that
// a decision offers. The conditions are already evaluated. An undecided condition blocks
// the ones after it.
func takenTransition(from *phases.Phase, all []transition) (taken *transition, offered []string) {
	pick := func(list []*transition, unconditional bool) (*transition, bool) {
		var fallback *transition
		for _, w := range list {
			switch {
			case w.Holds == expr.Yes.String(), w.Holds == "" && !w.Default && unconditional:
				return w, false
			case w.Holds == expr.Unknown.String():
				return nil, true
			}
			if w.Default && fallback == nil {
				fallback = w
			}
		}
		return fallback, false
	}
	for _, d := range from.Decisions {
		branches := filterTransitions(all, func(w *transition) bool { return w.By == "branch" && strings.HasPrefix(w.ID, d.ID+"/") })
		branch, undecided := pick(branches, false)
		if branch != nil || undecided {
			return branch, nil
		}
		for _, b := range branches {
			if b.expr == nil {
				offered = append(offered, b.target)
			}
		}
		if len(offered) > 0 {
			return nil, offered
		}
	}
	taken, _ = pick(filterTransitions(all, func(w *transition) bool { return w.By == "transition" }), true)
	return taken, nil
}

func filterTransitions(all []transition, wanted func(*transition) bool) []*transition {
	var some []*transition
	for i := range all {
		if wanted(&all[i]) {
			some = append(some, &all[i])
		}
	}
	return some
}

// runPosition is the position of a run or of a state document.
type runPosition struct {
	// phase is the number of the current phase; 0 if the call names no position.
	phase int
	// answered are the ids of the phase's answered checkpoints.
	answered map[string]bool
	// decidedTarget is the phase that an answer or a decision has already chosen, or "".
	decidedTarget string
	// resolve returns the first phase that is not skipped, starting with to, and the
	// skipped phases before it; ok is false if that phase is not decided yet. resolve is
	// nil if no skipped phases are known.
	resolve func(to string) (end string, past []string, ok bool)
	engine.Position
}

// outgoing returns the transitions of a phase with their targets.
func (s runPosition) outgoing(from *phases.Phase) []transition {
	out := outgoingTransitions(from)
	for i := range out {
		out[i] = s.resolveTarget(out[i])
	}
	return out
}

func (s runPosition) resolveTarget(w transition) transition {
	w.target = w.To
	if s.resolve != nil {
		end, past, ok := s.resolve(w.To)
		w.target, w.Skipped, w.undecided = end, past, !ok
	}
	return w
}

// positionOf returns the position of a state document.
func positionOf(w *phases.Workflow, d *engine.StateDocument) runPosition {
	s := runPosition{phase: d.CurrentPhase, answered: map[string]bool{}, resolve: newResolver(w, d)}
	leaves := 0
	current := &w.Phases[d.CurrentPhase-1]
	for i := range current.Checkpoints {
		if r, ok := d.CheckpointResponses[fmt.Sprintf("%d-%d", s.phase, i+1)]; ok {
			s.answered[current.Checkpoints[i].ID] = true
			if r.Effects != nil && r.Effects.TransitionedTo > 0 {
				leaves = r.Effects.TransitionedTo
			}
		}
	}
	for i := range current.Decisions {
		if o, ok := d.DecisionOutcomes[fmt.Sprintf("%d-%d", s.phase, i+1)]; ok && o.TransitionedTo > 0 {
			leaves = o.TransitionedTo
		}
	}
	if leaves > 0 && leaves <= len(w.Phases) {
		s.decidedTarget = w.Phases[leaves-1].ID
	}
	return s
}

// newResolver returns a function that finds the first phase that no answer has skipped.
func newResolver(w *phases.Workflow, d *engine.StateDocument) func(string) (string, []string, bool) {
	program := engine.CompilePhases(w)
	ids := phaseIDs(w)
	return func(to string) (end string, past []string, ok bool) {
		number, skipped, ok := program.Through(d, slices.Index(ids, to)+1)
		for _, n := range skipped {
			past = append(past, ids[n-1])
		}
		if number > 0 {
			end = ids[number-1]
		}
		return end, past, ok
	}
}

// nextPosition returns the position in words.
func (s runPosition) nextPosition() string {
	if s.Kind == "" || s.Kind == engine.PositionEnd {
		return ""
	}
	return strings.TrimSpace(string(s.Kind) + " " + s.ID)
}

// newJudge returns a judge with the variables of a call, and the position that the
// variables belong to. The judge is nil if the call has no variables. As in the original
// server, a variable that the call or its state document lacks has no value; a run waits
// for variables that were never set. For a run, the returned workflow is the run's pinned
// definition.
func (p *phaseTools) newJudge(ctx context.Context, c call, w *phases.Workflow) (conditionJudge, runPosition, *phases.Workflow, error) {
	byTable := func(vars map[string]any) conditionJudge {
		lookup := expr.Map(vars)
		return func(e *expr.Expr) (expr.Verdict, []string) {
			if e.Holds(lookup) {
				return expr.Yes, nil
			}
			return expr.No, nil
		}
	}
	given := lists.Filter([]string{"variables", "state", "handle"}, func(name string) bool { return c.arguments[name] != nil })
	switch {
	case len(given) == 0:
		return nil, runPosition{}, w, nil
	case len(given) > 1:
		return nil, runPosition{}, w, c.badCall(given[1], "pass only one of "+strings.Join(given, " and "))
	case given[0] == "handle":
		return p.newRunJudge(ctx, c, w)
	case given[0] == "variables":
		return byTable(c.objectArg("variables")), runPosition{}, w, nil
	}
	d, message := readState(c.objectArg("state"), w)
	if message != "" {
		return nil, runPosition{}, w, c.badCall("state", message)
	}
	return byTable(d.Variables), positionOf(w, d), w, nil
}

// newRunJudge returns a judge with the variables of a run, and the run's pinned definition.
func (p *phaseTools) newRunJudge(ctx context.Context, c call, w *phases.Workflow) (conditionJudge, runPosition, *phases.Workflow, error) {
	details, err := p.runs.Get(ctx, c.caller, run.Ref{Handle: c.textArg("handle")})
	if err != nil {
		return nil, runPosition{}, w, err
	}
	switch {
	case details.Workflow != w.ID:
		return nil, runPosition{}, w, c.badCall("handle", fmt.Sprintf("run %s follows the workflow %s, not %s; pass the workflow_id of the run", details.ID, details.Workflow, w.ID))
	case details.Position.Phase == nil:
		return nil, runPosition{}, w, c.badCall("handle", fmt.Sprintf("run %s is not in a phase, because its status is %s; pass variables or state instead of handle", details.ID, details.Status))
	}
	pinned, found := workflow.Parse(w.ID+".json", []byte(details.Definition))
	if pinned == nil || pinned.Phases == nil {
		return nil, runPosition{}, w, fmt.Errorf("read the pinned definition of run %s: %v", details.ID, found)
	}
	w = pinned.Phases
	state, err := p.runs.State(ctx, c.caller, run.Ref{RunID: details.ID})
	if err != nil {
		return nil, runPosition{}, w, err
	}
	stands := positionOf(w, state)
	stands.Position = details.Position
	vars, owned := details.Variables, w.Owned()
	lookup := func(name string) (any, bool) {
		value, ok := vars[name]
		return value, ok || slices.Contains(owned, name)
	}
	return func(e *expr.Expr) (expr.Verdict, []string) {
		waits := lists.Map(e.Needs(lookup), func(need expr.Need) string { return need.Variable })
		return e.Decide(lookup), waits
	}, stands, w, nil
}

// readState reads a state document, which must have at least the current phase.
func readState(members map[string]any, w *phases.Workflow) (d *engine.StateDocument, message string) {
	number, ok := members["currentPhase"].(json.Number)
	n, err := number.Int64()
	if !ok || err != nil || n < 1 || n > int64(len(w.Phases)) {
		return nil, fmt.Sprintf("state.currentPhase must be a whole number from 1 to %d, not %v", len(w.Phases), shortenValue(members["currentPhase"]))
	}
	if id, given := members["workflowId"]; given && id != w.ID {
		return nil, fmt.Sprintf("the state belongs to the workflow %v, not to %s", id, w.ID)
	}
	text, err := jsontext.Marshal(members)
	if err != nil {
		return nil, "the state cannot be read: " + err.Error()
	}
	d = &engine.StateDocument{}
	if err := jsontext.Decode(text, d); err != nil {
		return nil, "the state cannot be read: " + err.Error()
	}
	return d, ""
}
