package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway/internal/condition"
	"github.com/guideway-dev/guideway/internal/definition"
	"github.com/guideway-dev/guideway/internal/definition/phases"
	"github.com/guideway-dev/guideway/internal/guide"
	"github.com/guideway-dev/guideway/internal/jsontext"
	"github.com/guideway-dev/guideway/internal/run"
)

// way is one way out of a phase.
type way struct {
	// By is transition, branch or option.
	By string `json:"by"`
	// ID names the branch or the option and what it belongs to: "decision/branch".
	ID string `json:"id,omitempty"`
	To string `json:"to"`
	// Condition is what the way depends on, in words.
	Condition string `json:"condition,omitempty"`
	Default   bool   `json:"isDefault,omitempty"`
	// Holds is the verdict on the condition; absent where nobody asked.
	Holds string `json:"holds,omitempty"`
	// Past are the phases on this way that an answer has had skipped.
	Past []string `json:"past,omitempty"`

	expr *condition.Expr
	// leads is where the way arrives: To, or what lies behind the skipped phases;
	// "" where that is the end, or not decided yet (open).
	leads string
	open  bool
}

// waysOut are all ways out of a phase, in the order in which the original looks at
// them: transitions, branches, options.
func waysOut(phase *phases.Phase) []way {
	var ways []way
	add := func(w way, e *condition.Expr) {
		if w.expr = e; e != nil {
			w.Condition = e.String()
		}
		ways = append(ways, w)
	}
	for _, t := range phase.Transitions {
		add(way{By: "transition", To: t.To, Default: t.IsDefault}, t.Condition)
	}
	for _, d := range phase.Decisions {
		for _, b := range d.Branches {
			add(way{By: "branch", ID: d.ID + "/" + b.ID, To: b.TransitionTo, Default: b.IsDefault}, b.Condition)
		}
	}
	for _, c := range phase.Checkpoints {
		for _, o := range c.Options {
			if to := o.Effect.TransitionTo; to != "" {
				add(way{By: "option", ID: c.ID + "/" + o.ID, To: to}, nil)
			}
		}
	}
	return ways
}

// transition is the answer of validate_transition.
type transition struct {
	Valid  bool   `json:"valid"`
	Reason string `json:"reason,omitempty"`
	// Ways are those that lead to the phase asked for; with variables all that
	// were looked at.
	Ways []way `json:"ways,omitempty"`
	// LeadsTo is where the phase leads with these variables.
	LeadsTo string `json:"leads_to,omitempty"`
	// Waits are the variables without which the way cannot be decided.
	Waits []string `json:"waits_for,omitempty"`
	// First is what the run asks for before it leaves the phase.
	First string `json:"first,omitempty"`
	// Allowed are the phases that there are, where one is not found.
	Allowed []string `json:"allowed,omitempty"`
}

func (p *phaseTools) validateTransition() *tool {
	t := &tool{
		name: "validate_transition", title: "Check a move between phases",
		description: "Check whether a workflow can go from one phase to another. Without variables: whether there is such a way at all, and its conditions. " +
			"With variables, a state document or a run's handle: whether that way is the one taken.",
		params: []param{
			workflowIDParam(), phaseParam("from_phase", "Phase id or 1-based number"), phaseParam("to_phase", "Phase id or 1-based number"),
			{name: "variables", kind: kindObject, description: "Values that the conditions read"},
			{name: "state", kind: kindObject, description: "State document, instead of variables"},
		},
		output: object(map[string]any{
			"valid": typed("boolean"), "reason": typed("string"), "ways": listOf(typed("object")),
			"leads_to": typed("string"), "waits_for": listOf(typed("string")), "first": typed("string"), "allowed": listOf(typed("string")),
		}),
	}
	if p.runs != nil {
		handle := handleParam(false)
		handle.description = "Handle of a run, instead of variables"
		t.params = append(t.params, handle)
	}
	t.handle = func(ctx context.Context, in arguments) (any, error) {
		w, err := p.workflow(t.name, in)
		if err != nil {
			return nil, err
		}
		judge, position, w, err := p.judge(ctx, t, in, w)
		if err != nil {
			return nil, err
		}
		from, to, missing := p.ends(in, w)
		if missing != "" {
			return worded{structure: transition{Reason: missing, Allowed: phaseIDs(w)}}, nil
		}
		if n := position.phase; n > 0 && &w.Phases[n-1] != from {
			return worded{structure: transition{Reason: fmt.Sprintf("The current phase is %s, not %s", w.Phases[n-1].ID, from.ID)}}, nil
		}
		out := static(position.ways(from), to)
		switch {
		case judge == nil || !out.Valid:
		case len(position.leaves) > 0:
			taken := position.way(way{To: position.leaves})
			out.LeadsTo = taken.leads
			out.Valid, out.Reason = out.LeadsTo == to.ID, "It is decided already that the phase leads to "+taken.arrival()
		default:
			out = dynamic(from, to, judge, position)
		}
		out.First = position.first()
		return worded{structure: out}, nil
	}
	return t
}

// ends finds both phases, or says which one is missing, in the words of the
// original.
func (p *phaseTools) ends(in arguments, w *phases.Workflow) (from, to *phases.Phase, missing string) {
	from, err := p.phase("", in, w, "from_phase")
	if err != nil {
		return nil, nil, fmt.Sprintf("Source phase not found: %v", shorten(in.text("from_phase")))
	}
	to, err = p.phase("", in, w, "to_phase")
	if err != nil {
		return nil, nil, fmt.Sprintf("Target phase not found: %v", shorten(in.text("to_phase")))
	}
	return from, to, ""
}

// static is the answer of the original: whether there is a way at all.
func static(ways []way, to *phases.Phase) transition {
	var out transition
	var targets []string
	for _, w := range ways {
		if w.leads != "" && !slices.Contains(targets, w.leads) {
			targets = append(targets, w.leads)
		}
		if w.leads == to.ID {
			out.Ways = append(out.Ways, w)
		}
	}
	if out.Valid = len(out.Ways) > 0; !out.Valid {
		valid := "none"
		if len(targets) > 0 {
			valid = strings.Join(targets, ", ")
		}
		out.Reason = "No valid transition. Valid: " + valid
	}
	return out
}

// judge decides a condition, and names the variables that it waits for.
type judge func(*condition.Expr) (condition.Verdict, []string)

// dynamic is the answer where the variables are known: decisions in order, then
// transitions, as DESIGN 4 has it; and the options of checkpoints, which a person
// may choose whatever the variables are, unless the checkpoint is answered.
func dynamic(from, to *phases.Phase, decide judge, s standing) transition {
	out := transition{}
	all := s.ways(from)
	for i := range all {
		w := &all[i]
		if w.By == "option" {
			if checkpoint, _, _ := strings.Cut(w.ID, "/"); s.answered[checkpoint] {
				w.Holds = condition.No.String()
			} else if w.leads == to.ID {
				out.Valid, out.Reason = true, "by the answer "+w.ID
			}
			continue
		}
		if w.expr == nil {
			continue
		}
		verdict, waits := decide(w.expr)
		if w.Holds = verdict.String(); verdict == condition.Unknown {
			out.Waits = append(out.Waits, waits...)
		}
	}
	slices.Sort(out.Waits)
	out.Waits, out.Ways = slices.Compact(out.Waits), all
	taken, offered := takenWay(from, all)
	if taken != nil {
		out.LeadsTo = taken.leads
	}
	switch {
	case out.Valid:
	case taken != nil && taken.leads == to.ID:
		out.Valid = true
		out.Reason = "by the " + taken.By + taken.because()
	case slices.Contains(offered, to.ID):
		out.Valid, out.Reason = true, "if a person chooses the branch: nothing else applies"
	case taken != nil:
		out.Reason = fmt.Sprintf("The variables lead to %s, by the %s%s", taken.arrival(), taken.By, taken.because())
	case len(out.Waits) > 0:
		out.Reason = "No way can be taken yet: set " + strings.Join(out.Waits, ", ")
	default:
		out.Reason = "No condition holds, and there is no default"
	}
	return out
}

// arrival says where a way leads, in words.
func (w *way) arrival() string {
	switch past := strings.Join(w.Past, ", "); {
	case past == "":
		return w.leads
	case w.open:
		return w.To + ", which an answer has had skipped; where that leads on is not decided yet"
	case w.leads == "":
		return "the end of the run, past " + past + " that an answer has had skipped"
	default:
		return w.leads + ", past " + past + " that an answer has had skipped"
	}
}

// because says what a way is taken for.
func (w *way) because() string {
	switch {
	case w.Holds == condition.Yes.String():
		return ", because " + w.Condition
	case w.Default:
		return " that is the default"
	default:
		return " without a condition"
	}
}

// takenWay is the way that is taken, and the phases of branches that a decision
// offers instead. The conditions of the ways are judged. Nothing is taken behind
// one that cannot be decided.
func takenWay(from *phases.Phase, all []way) (taken *way, offered []string) {
	pick := func(ways []*way, unconditional bool) (*way, bool) {
		var fallback *way
		for _, w := range ways {
			switch {
			case w.Holds == condition.Yes.String(), w.Holds == "" && !w.Default && unconditional:
				return w, false
			case w.Holds == condition.Unknown.String():
				return nil, true
			}
			if w.Default && fallback == nil {
				fallback = w
			}
		}
		return fallback, false
	}
	for _, d := range from.Decisions {
		branches := choose(all, func(w *way) bool { return w.By == "branch" && strings.HasPrefix(w.ID, d.ID+"/") })
		branch, undecided := pick(branches, false)
		if branch != nil || undecided {
			return branch, nil
		}
		for _, b := range branches {
			if b.expr == nil {
				offered = append(offered, b.leads)
			}
		}
		if len(offered) > 0 {
			return nil, offered
		}
	}
	taken, _ = pick(choose(all, func(w *way) bool { return w.By == "transition" }), true)
	return taken, nil
}

func choose(all []way, wanted func(*way) bool) []*way {
	var some []*way
	for i := range all {
		if wanted(&all[i]) {
			some = append(some, &all[i])
		}
	}
	return some
}

// standing is where a run or a state stands.
type standing struct {
	// phase is the number of the current phase, 0 where nothing stands.
	phase int
	// answered are the ids of the phase's checkpoints that are answered.
	answered map[string]bool
	// leaves is the phase that an answer or a decision already leads to, or "".
	leaves string
	// through says where the way to a phase leads past what is to be skipped; nil
	// where nothing is known of that.
	through func(to string) (end string, past []string, ok bool)
	guide.Position
}

// ways are the ways out of a phase, each with where it arrives.
func (s standing) ways(from *phases.Phase) []way {
	ways := waysOut(from)
	for i := range ways {
		ways[i] = s.way(ways[i])
	}
	return ways
}

func (s standing) way(w way) way {
	w.leads = w.To
	if s.through != nil {
		end, past, ok := s.through(w.To)
		w.leads, w.Past, w.open = end, past, !ok
	}
	return w
}

// standingOf says where a state document stands.
func standingOf(w *phases.Workflow, d *guide.StateDocument) standing {
	s := standing{phase: d.CurrentPhase, answered: map[string]bool{}, through: past(w, d)}
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
		s.leaves = w.Phases[leaves-1].ID
	}
	return s
}

// past follows ways through the phases that answers have had skipped.
func past(w *phases.Workflow, d *guide.StateDocument) func(string) (string, []string, bool) {
	program := guide.CompilePhases(w)
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

// first says what the run asks for.
func (s standing) first() string {
	if s.Kind == "" || s.Kind == guide.PositionEnd {
		return ""
	}
	return strings.TrimSpace(string(s.Kind) + " " + s.ID)
}

// judge makes a judge of the variables that a call gives, nil where it gives none,
// and says where what it gives stands. Of variables that are given, one that is
// missing is missing (facts/phases.md 6); a run waits for those that were never
// set. Of a run the workflow is the one that it has pinned.
func (p *phaseTools) judge(ctx context.Context, t *tool, in arguments, w *phases.Workflow) (judge, standing, *phases.Workflow, error) {
	byTable := func(vars map[string]any) judge {
		lookup := condition.Map(vars)
		return func(e *condition.Expr) (condition.Verdict, []string) {
			if e.Holds(lookup) {
				return condition.Yes, nil
			}
			return condition.No, nil
		}
	}
	given := []string{}
	for _, name := range []string{"variables", "state", "handle"} {
		if in[name] != nil {
			given = append(given, name)
		}
	}
	switch {
	case len(given) == 0:
		return nil, standing{}, w, nil
	case len(given) > 1:
		return nil, standing{}, w, t.badCall(in, given[1], "give one of variables, state and handle")
	case given[0] == "handle":
		return p.judgeRun(ctx, t, in, w)
	case given[0] == "variables":
		return byTable(in.object("variables")), standing{}, w, nil
	}
	d, problem := readState(in.object("state"), w)
	if problem != "" {
		return nil, standing{}, w, t.badCall(in, "state", problem)
	}
	return byTable(d.Variables), standingOf(w, d), w, nil
}

// judgeRun judges by the variables of a run of the workflow, and by the definition
// that the run has pinned.
func (p *phaseTools) judgeRun(ctx context.Context, t *tool, in arguments, w *phases.Workflow) (judge, standing, *phases.Workflow, error) {
	caller, err := callerFrom(ctx)
	if err != nil {
		return nil, standing{}, w, err
	}
	details, err := p.runs.Look(ctx, caller, run.Ref{Handle: in.text("handle")})
	if err != nil {
		return nil, standing{}, w, err
	}
	if details.Workflow != w.ID || details.Position.Phase == nil {
		return nil, standing{}, w, t.badCall(in, "handle", fmt.Sprintf("the run is of the workflow %s and not in a phase of %s", details.Workflow, w.ID))
	}
	pinned, found := definition.Parse(w.ID+".json", []byte(details.Definition))
	if pinned == nil || pinned.Phases == nil {
		return nil, standing{}, w, fmt.Errorf("read the pinned definition of run %s: %v", details.ID, found)
	}
	w = pinned.Phases
	state, err := p.runs.State(ctx, caller, run.Ref{RunID: details.ID})
	if err != nil {
		return nil, standing{}, w, err
	}
	stands := standingOf(w, state)
	stands.Position = details.Position
	vars, owned := details.Variables, w.Owned()
	lookup := func(name string) (any, bool) {
		value, ok := vars[name]
		return value, ok || slices.Contains(owned, name)
	}
	return func(e *condition.Expr) (condition.Verdict, []string) {
		var waits []string
		for _, need := range e.Needs(lookup) {
			waits = append(waits, need.Variable)
		}
		return e.Decide(lookup), waits
	}, stands, w, nil
}

// readState reads what a call gives of a state document: at least the current
// phase of the workflow.
func readState(members map[string]any, w *phases.Workflow) (d *guide.StateDocument, problem string) {
	number, ok := members["currentPhase"].(json.Number)
	n, err := number.Int64()
	if !ok || err != nil || n < 1 || n > int64(len(w.Phases)) {
		return nil, fmt.Sprintf("state.currentPhase must be a whole number from 1 to %d", len(w.Phases))
	}
	if id, given := members["workflowId"]; given && id != w.ID {
		return nil, fmt.Sprintf("the state is of the workflow %v, not of %s", id, w.ID)
	}
	text, err := jsontext.Marshal(members)
	if err != nil {
		return nil, "the state does not read: " + err.Error()
	}
	d = &guide.StateDocument{}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	if err := dec.Decode(d); err != nil {
		return nil, "the state does not read: " + err.Error()
	}
	return d, ""
}
