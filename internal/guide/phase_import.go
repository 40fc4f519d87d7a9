package guide

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/condition"
	"github.com/guideway-dev/guideway/internal/definition/phases"
)

// Import gives the event that begins a run where a state document says: one that
// is valid against the state schema. What it says was done is believed; where
// it does not fit the workflow, or has ended, it is an error with
// guideway.CodeInvalid.
func (p *PhaseProgram) Import(document []byte) (Event, error) {
	var d StateDocument
	dec := json.NewDecoder(bytes.NewReader(document))
	dec.UseNumber()
	if err := dec.Decode(&d); err != nil {
		return Event{}, guideway.Errorf(guideway.CodeInvalid, "the state does not read: %w", err)
	}
	if err := p.checkDocument(&d); err != nil {
		return Event{}, err
	}
	var value any
	dec = json.NewDecoder(bytes.NewReader(document))
	dec.UseNumber()
	if err := dec.Decode(&value); err != nil {
		return Event{}, guideway.Errorf(guideway.CodeInvalid, "the state does not read: %w", err)
	}
	vars := map[string]any{}
	for _, v := range p.Workflow.Variables {
		if v.HasDefault {
			vars[v.Name] = v.DefaultValue
		}
	}
	for name, v := range d.Variables {
		vars[name] = v
	}
	count := 0
	for _, list := range d.CompletedSteps {
		count += len(list)
	}
	return Event{Kind: EventStateImported, Vars: vars, Value: value, Count: count, State: p.place(&d, vars)}, nil
}

// checkDocument says what of a document does not fit the workflow.
func (p *PhaseProgram) checkDocument(d *StateDocument) error {
	bad := func(format string, args ...any) error {
		return guideway.Errorf(guideway.CodeInvalid, "the state does not fit the workflow: "+format, args...)
	}
	n := len(p.Workflow.Phases)
	switch {
	case d.WorkflowID != p.Workflow.ID:
		return bad("it is of %q, not of %q", d.WorkflowID, p.Workflow.ID)
	case d.CurrentPhase < 1 || d.CurrentPhase > n:
		return bad("it is in phase %d, and there are %d", d.CurrentPhase, n)
	case d.Status == "completed" || d.Status == "aborted":
		return bad("it is %s: there is nothing to go on with", d.Status)
	}
	if problem := p.checkNumbers(d); problem != "" {
		return bad("%s", problem)
	}
	if problem := p.checkChoices(d); problem != "" {
		return bad("%s", problem)
	}
	if r := boundedContext(State{}, d.Variables); r != nil {
		return bad("%s", r.Message)
	}
	for name, value := range d.Variables {
		if v := p.Workflow.Variable(name); v != nil && value != nil && !fitsType(v.Type, value) {
			return bad("the variable '%s' is %s there, not %s", name, anyOf(jsonType(value)), anyOf(string(v.Type)))
		}
	}
	return nil
}

// checkNumbers says which phase, step or loop a document names that is not there,
// or "".
func (p *PhaseProgram) checkNumbers(d *StateDocument) string {
	n := len(p.Workflow.Phases)
	for _, number := range slices.Concat(d.CompletedPhases, d.SkippedPhases) {
		if number < 1 || number > n {
			return fmt.Sprintf("it names phase %d, and there are %d", number, n)
		}
	}
	if has := len(p.Workflow.Phases[d.CurrentPhase-1].Steps); d.CurrentStep > has+1 {
		return fmt.Sprintf("it is at step %d of phase %d, which has %d", d.CurrentStep, d.CurrentPhase, has)
	}
	for _, k := range slices.Sorted(maps.Keys(d.CompletedSteps)) {
		number, err := strconv.Atoi(k)
		if err != nil || number < 1 || number > n {
			return fmt.Sprintf("it names phase %s, and there are %d", k, n)
		}
		for _, step := range d.CompletedSteps[k] {
			if has := len(p.Workflow.Phases[number-1].Steps); step < 1 || step > has {
				return fmt.Sprintf("it has completed step %d of phase %d, which has %d", step, number, has)
			}
		}
	}
	for _, loop := range d.ActiveLoops {
		if loop.PhaseIndex < 1 || loop.PhaseIndex > n {
			return fmt.Sprintf("it is in a loop of phase %d, and there are %d", loop.PhaseIndex, n)
		}
		if has := len(p.Workflow.Phases[loop.PhaseIndex-1].Loops); loop.LoopIndex < 1 || loop.LoopIndex > has {
			return fmt.Sprintf("it is in loop %d of phase %d, which has %d", loop.LoopIndex, loop.PhaseIndex, has)
		}
	}
	return ""
}

// checkChoices says which answer or branch of a document is not there, or "".
func (p *PhaseProgram) checkChoices(d *StateDocument) string {
	for _, k := range slices.Sorted(maps.Keys(d.CheckpointResponses)) {
		phase, i := p.entry(k)
		if phase == nil || i >= len(phase.Checkpoints) {
			return fmt.Sprintf("it answers checkpoint %s, which is not there", k)
		}
		c, r := &phase.Checkpoints[i], d.CheckpointResponses[k]
		known := slices.ContainsFunc(c.Options, func(o phases.Option) bool { return o.ID == r.OptionID })
		if !known && (c.Required || r.OptionID != declined) {
			return fmt.Sprintf("it answers checkpoint %s with %q, and '%s' has no such option", k, r.OptionID, c.ID)
		}
		if e := r.Effects; e != nil && !p.areThere(append(e.PhasesSkipped, e.TransitionedTo)) {
			return fmt.Sprintf("the answer to checkpoint %s leads to a phase that is not there", k)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(d.DecisionOutcomes)) {
		phase, i := p.entry(k)
		if phase == nil || i >= len(phase.Decisions) {
			return fmt.Sprintf("it decides %s, which is not there", k)
		}
		o, decision := d.DecisionOutcomes[k], &phase.Decisions[i]
		if !slices.ContainsFunc(decision.Branches, func(b phases.Branch) bool { return b.ID == o.BranchID }) {
			return fmt.Sprintf("it decides %s by the branch %q, and '%s' has no such branch", k, o.BranchID, decision.ID)
		}
		if !p.areThere([]int{o.TransitionedTo}) {
			return fmt.Sprintf("the decision %s leads to a phase that is not there", k)
		}
	}
	return ""
}

// entry reads a key such as "2-1": a phase, nil where there is none, and the
// 0-based index of what is in it.
func (p *PhaseProgram) entry(k string) (phase *phases.Phase, index int) {
	first, second, _ := strings.Cut(k, "-")
	n, errN := strconv.Atoi(first)
	i, errI := strconv.Atoi(second)
	if errN != nil || errI != nil || n < 1 || n > len(p.Workflow.Phases) || i < 1 {
		return nil, 0
	}
	return &p.Workflow.Phases[n-1], i - 1
}

// areThere says whether all numbers are those of phases; 0 is of none.
func (p *PhaseProgram) areThere(numbers []int) bool {
	return !slices.ContainsFunc(numbers, func(n int) bool { return n < 0 || n > len(p.Workflow.Phases) })
}

// jsonType names the type of a value as variables have it.
func jsonType(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case []any:
		return string(phases.TypeArray)
	default:
		return typeName(v)
	}
}

// anyOf puts an article before a type.
func anyOf(kind string) string {
	if strings.ContainsAny(kind[:1], "ao") {
		return "an " + kind
	}
	return "a " + kind
}

// place is where a document says that the run stands: before the first phase, at
// the entry of one, at the step that it names, in the loop that is under way, or
// behind what is done.
func (p *PhaseProgram) place(d *StateDocument, vars map[string]any) *PhaseState {
	visit, entered := d.visit()
	if len(d.History) > 0 && !entered && len(d.CompletedPhases) == 0 && d.CurrentStep <= 1 && len(d.CompletedSteps) == 0 {
		return &PhaseState{}
	}
	phase := &p.Workflow.Phases[d.CurrentPhase-1]
	ph := &PhaseState{Phase: d.CurrentPhase, Part: PartSteps, Skips: p.toSkip(d)}
	done := d.CompletedSteps[strconv.Itoa(d.CurrentPhase)]
	if len(visit) == 0 && len(done) == 0 && d.CurrentStep <= 1 && len(d.ActiveLoops) == 0 {
		ph.Part = PartEntry
		return ph
	}
	ph.Index = max(d.CurrentStep-1, 0)
	for d.CurrentStep == 0 && slices.Contains(done, ph.Index+1) {
		ph.Index++
	}
	for _, l := range d.ActiveLoops {
		if l.PhaseIndex == d.CurrentPhase {
			placeInLoop(ph, &phase.Loops[l.LoopIndex-1], l, visit, vars)
			return ph
		}
	}
	if ph.Index >= len(phase.Steps) {
		p.placeBehindSteps(d, phase, ph)
	}
	return ph
}

// visit is the history since the current phase was last entered, without the
// variables that were set, and whether any phase was entered at all.
func (d *StateDocument) visit() (list []HistoryEntry, entered bool) {
	for _, h := range d.History {
		switch {
		case EventKind(h.Type) == EventPhaseEntered:
			entered = true
			if h.Phase == d.CurrentPhase {
				list = nil
			}
		case h.Phase == d.CurrentPhase && EventKind(h.Type) != EventVariableSet && EventKind(h.Type) != EventError:
			list = append(list, h)
		}
	}
	return list, entered
}

// toSkip are the phases that answers have had skipped, those of earlier visits
// included. Where a document says no more than which were, it is those.
func (p *PhaseProgram) toSkip(d *StateDocument) []int {
	list := []int{}
	for _, r := range d.CheckpointResponses {
		if r.Effects != nil {
			list = append(list, r.Effects.PhasesSkipped...)
		}
	}
	for _, h := range d.History {
		option, _ := h.Data["optionId"].(string)
		if EventKind(h.Type) != EventCheckpointAnswer || h.Phase < 1 || h.Phase > len(p.Workflow.Phases) {
			continue
		}
		checkpoints := p.Workflow.Phases[h.Phase-1].Checkpoints
		if h.Checkpoint < 1 || h.Checkpoint > len(checkpoints) {
			continue
		}
		for _, o := range checkpoints[h.Checkpoint-1].Options {
			for _, id := range o.Effect.SkipPhases {
				if o.ID == option {
					list = append(list, p.numbers[id])
				}
			}
		}
	}
	if len(d.History) == 0 {
		list = append(list, d.SkippedPhases...)
	}
	return slices.Compact(slices.Sorted(slices.Values(list)))
}

// pinned is the list that a loop began with, as the history has it, or nil.
func pinned(loop int, visit []HistoryEntry) []any {
	var items []any
	for _, h := range visit {
		if h.Loop == loop && EventKind(h.Type) == EventLoopStarted {
			items, _ = h.Data["items"].([]any)
		}
	}
	return items
}

// placeInLoop finds the step of the round that is under way.
func placeInLoop(ph *PhaseState, loop *phases.Loop, l ActiveLoop, visit []HistoryEntry, vars map[string]any) {
	ph.Part, ph.Index = PartLoops, l.LoopIndex-1
	ph.Loop = &PhaseLoop{Round: max(l.CurrentIteration, 0)}
	if loop.Type == phases.LoopForEach {
		ph.Loop.Items = pinned(l.LoopIndex, visit)
		if ph.Loop.Items == nil {
			value, _, _ := condition.Map(vars).Path(loop.Over)
			ph.Loop.Items, _ = value.([]any)
		}
		ph.Loop.Round = min(ph.Loop.Round, len(ph.Loop.Items))
	}
	if ph.Loop.Round == 0 {
		ph.Loop.Step = endOfRound
		return
	}
	for _, h := range visit {
		switch {
		case h.Loop != l.LoopIndex:
		case EventKind(h.Type) == EventLoopIteration:
			ph.Loop.Step = 0
		case EventKind(h.Type) == EventStepStarted: // those before it may have been skipped
			ph.Loop.Step = h.Step - 1
		case EventKind(h.Type) == EventStepCompleted:
			ph.Loop.Step = h.Step
		}
	}
}

// placeBehindSteps finds the first loop, checkpoint or decision of the current
// phase that the document does not say to be over.
func (p *PhaseProgram) placeBehindSteps(d *StateDocument, phase *phases.Phase, ph *PhaseState) {
	for i := range phase.Decisions {
		if o, ok := d.DecisionOutcomes[key(d.CurrentPhase, i+1)]; ok && o.TransitionedTo > 0 && o.TransitionedTo <= len(p.Workflow.Phases) {
			ph.leave(o.TransitionedTo)
			return
		}
	}
	answered := 0
	for answered < len(phase.Checkpoints) {
		r, ok := d.CheckpointResponses[key(d.CurrentPhase, answered+1)]
		if !ok {
			break
		}
		if e := r.Effects; e != nil && e.TransitionedTo > 0 && e.TransitionedTo <= len(p.Workflow.Phases) {
			ph.leave(e.TransitionedTo)
			return
		}
		answered++
	}
	ph.Part, ph.Index = PartLoops, d.loopsDone()
	if answered > 0 || ph.Index >= len(phase.Loops) {
		ph.Part, ph.Index = PartCheckpoints, answered
	}
}

// loopsDone is the number of the last loop that is over since the current phase
// was entered.
func (d *StateDocument) loopsDone() int {
	done := 0
	for _, h := range d.History {
		if h.Phase != d.CurrentPhase {
			continue
		}
		switch EventKind(h.Type) {
		case EventPhaseEntered:
			done = 0
		case EventLoopCompleted, EventLoopBroken:
			done = max(done, h.Loop)
		}
	}
	return done
}

// imported begins a run where a state document says.
func (s State) imported(e Event) State {
	s.Person = e.Person
	s.Started, s.Vars, s.Steps = true, merged(nil, e.Vars), e.Count
	if e.State != nil {
		ph := *e.State
		s.Phases = &ph
	}
	return s
}

// imported is the document that a run began with, without what only is so now.
func imported(d StateDocument, e Event) StateDocument {
	text, err := json.Marshal(e.Value)
	if err != nil {
		return d
	}
	from := newStateDocument(d.WorkflowID, d.WorkflowVersion)
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	if dec.Decode(&from) != nil {
		return d
	}
	from.WorkflowVersion, from.UpdatedAt = d.WorkflowVersion, d.UpdatedAt
	from.ActiveLoops, from.Variables = []ActiveLoop{}, map[string]any{}
	return from
}

// fitsImport says whether an import is what its document gives.
func (p *PhaseProgram) fitsImport(e Event) bool {
	text, err := json.Marshal(e.Value)
	if err != nil {
		return false
	}
	want, err := p.Import(text)
	want.Person = e.Person
	return err == nil && sameJSON(want, e)
}

// fitsType says whether a value is of a declared type.
func fitsType(t phases.VariableType, value any) bool {
	if n, ok := value.(json.Number); ok {
		f, err := n.Float64()
		return err == nil && t.Fits(f)
	}
	return t.Fits(value)
}
