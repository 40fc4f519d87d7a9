package engine

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"github.com/guideway-dev/guideway/internal/platform/lists"
	"github.com/guideway-dev/guideway/internal/workflow/expr"
	"github.com/guideway-dev/guideway/internal/workflow/phases"
	"github.com/guideway-dev/guideway/internal/workflow/shape"
)

// Import returns the event that starts a run at the position of a state document, which
// must be valid against the state schema. It trusts the document about completed work. A
// document that does not match the workflow, or whose run has ended, is an error with
// guideway.CodeInvalid.
func (p *PhaseProgram) Import(document []byte) (Event, error) {
	var d StateDocument
	if err := jsontext.Decode(document, &d); err != nil {
		return Event{}, guideway.Errorf(guideway.CodeInvalid, "the state document is not valid JSON: %w", err).
			WithFix("write a state document as guideway schema phases --kind state describes it")
	}
	if err := p.checkDocument(&d); err != nil {
		return Event{}, err
	}
	var value any
	_ = jsontext.Decode(document, &value) // the document was already decoded above
	vars := p.defaultVars()
	maps.Copy(vars, d.Variables)
	count := 0
	for _, list := range d.CompletedSteps {
		count += len(list)
	}
	return Event{Kind: EventStateImported, Vars: vars, Value: value, Count: count, State: p.importPosition(&d, vars)}, nil
}

// checkDocument returns an error if a document does not match the workflow or its run has
// ended.
func (p *PhaseProgram) checkDocument(d *StateDocument) error {
	bad := func(format string, args ...any) error {
		return guideway.Errorf(guideway.CodeInvalid, "the state document does not match the workflow: "+format, args...).
			WithFix("correct the state document, or serve the version of the workflow that it was written for")
	}
	n := len(p.Workflow.Phases)
	switch {
	case d.WorkflowID != p.Workflow.ID:
		return bad("workflowId is %q, not %q", d.WorkflowID, p.Workflow.ID)
	case d.CurrentPhase < 1 || d.CurrentPhase > n:
		return bad("currentPhase is %d, but the workflow has %s", d.CurrentPhase, shape.Count(n, "phase"))
	case d.Status == "completed" || d.Status == "aborted":
		return guideway.Errorf(guideway.CodeInvalid, "the state document cannot be imported: a run that is %s cannot continue", d.Status).
			WithFix("import the document of a run that has not ended, or start a new run")
	}
	if problem := p.checkNumbers(d); problem != "" {
		return bad("%s", problem)
	}
	if problem := p.checkChoices(d); problem != "" {
		return bad("%s", problem)
	}
	if r := checkContextBounds(State{}, d.Variables); r != nil {
		return guideway.Errorf(guideway.CodeInvalid, "the state document cannot be imported: %s", r.Message).
			WithFix("shorten or remove variables of the state document")
	}
	for name, value := range d.Variables {
		if v := p.Workflow.Variable(name); v != nil && value != nil && !fitsType(v.Type, value) {
			return bad("the variable '%s' is %s, not %s", name, shape.WithArticle(jsontext.TypeName(value)), shape.WithArticle(string(v.Type)))
		}
	}
	return nil
}

// checkNumbers describes a number in a document that is not the number of a phase, step or
// loop, or returns "".
func (p *PhaseProgram) checkNumbers(d *StateDocument) string {
	n := len(p.Workflow.Phases)
	for _, number := range slices.Concat(d.CompletedPhases, d.SkippedPhases) {
		if number < 1 || number > n {
			return fmt.Sprintf("phase %d does not exist: the workflow has %s", number, shape.Count(n, "phase"))
		}
	}
	if has := len(p.Workflow.Phases[d.CurrentPhase-1].Steps); d.CurrentStep > has+1 {
		return fmt.Sprintf("step %d of phase %d is current, but the phase has %s", d.CurrentStep, d.CurrentPhase, shape.Count(has, "step"))
	}
	for _, k := range slices.Sorted(maps.Keys(d.CompletedSteps)) {
		number, err := strconv.Atoi(k)
		if err != nil || number < 1 || number > n {
			return fmt.Sprintf("phase %s does not exist: the workflow has %s", k, shape.Count(n, "phase"))
		}
		for _, step := range d.CompletedSteps[k] {
			if has := len(p.Workflow.Phases[number-1].Steps); step < 1 || step > has {
				return fmt.Sprintf("step %d of phase %d is completed, but the phase has %s", step, number, shape.Count(has, "step"))
			}
		}
	}
	for _, loop := range d.ActiveLoops {
		if loop.PhaseIndex < 1 || loop.PhaseIndex > n {
			return fmt.Sprintf("a loop of phase %d is active, but the workflow has %s", loop.PhaseIndex, shape.Count(n, "phase"))
		}
		if has := len(p.Workflow.Phases[loop.PhaseIndex-1].Loops); loop.LoopIndex < 1 || loop.LoopIndex > has {
			return fmt.Sprintf("loop %d of phase %d is active, but the phase has %s", loop.LoopIndex, loop.PhaseIndex, shape.Count(has, "loop"))
		}
	}
	return ""
}

// checkChoices describes an answer or branch of a document that does not exist or leads to
// a phase that does not exist, or returns "".
func (p *PhaseProgram) checkChoices(d *StateDocument) string {
	for _, k := range slices.Sorted(maps.Keys(d.CheckpointResponses)) {
		phase, i := p.findPhaseItem(k)
		if phase == nil || i >= len(phase.Checkpoints) {
			return fmt.Sprintf("checkpointResponses has the checkpoint %s, which does not exist in the workflow", k)
		}
		c, r := &phase.Checkpoints[i], d.CheckpointResponses[k]
		known := slices.ContainsFunc(c.Options, func(o phases.Option) bool { return o.ID == r.OptionID })
		if !known && (c.Required || r.OptionID != optionDeclined) {
			ids := lists.Map(c.Options, func(o phases.Option) string { return o.ID })
			if !c.Required {
				ids = append(ids, optionDeclined)
			}
			return fmt.Sprintf("checkpoint %s is answered with %q, but '%s' accepts only %s", k, r.OptionID, c.ID, strings.Join(ids, ", "))
		}
		if e := r.Effects; e != nil && !p.validPhases(append(e.PhasesSkipped, e.TransitionedTo)) {
			return fmt.Sprintf("the answer to checkpoint %s leads to or skips a phase that does not exist: the workflow has %s", k, shape.Count(len(p.Workflow.Phases), "phase"))
		}
	}
	for _, k := range slices.Sorted(maps.Keys(d.DecisionOutcomes)) {
		phase, i := p.findPhaseItem(k)
		if phase == nil || i >= len(phase.Decisions) {
			return fmt.Sprintf("decisionOutcomes has the decision %s, which does not exist in the workflow", k)
		}
		o, decision := d.DecisionOutcomes[k], &phase.Decisions[i]
		if !slices.ContainsFunc(decision.Branches, func(b phases.Branch) bool { return b.ID == o.BranchID }) {
			ids := lists.Map(decision.Branches, func(b phases.Branch) string { return b.ID })
			return fmt.Sprintf("decision %s takes the branch %q, but '%s' has only the branches %s", k, o.BranchID, decision.ID, strings.Join(ids, ", "))
		}
		if !p.validPhases([]int{o.TransitionedTo}) {
			return fmt.Sprintf("decision %s leads to phase %d, which does not exist: the workflow has %s", k, o.TransitionedTo, shape.Count(len(p.Workflow.Phases), "phase"))
		}
	}
	return ""
}

// findPhaseItem parses a key such as "2-1" and returns the phase and the 0-based index of
// the item in it. The phase is nil if the key is invalid.
func (p *PhaseProgram) findPhaseItem(k string) (phase *phases.Phase, index int) {
	first, second, _ := strings.Cut(k, "-")
	n, errN := strconv.Atoi(first)
	i, errI := strconv.Atoi(second)
	if errN != nil || errI != nil || n < 1 || n > len(p.Workflow.Phases) || i < 1 {
		return nil, 0
	}
	return &p.Workflow.Phases[n-1], i - 1
}

// validPhases reports whether all numbers are 0 or numbers of phases.
func (p *PhaseProgram) validPhases(numbers []int) bool {
	return !slices.ContainsFunc(numbers, func(n int) bool { return n < 0 || n > len(p.Workflow.Phases) })
}

// importPosition returns the position of a document: before the first phase, at the entry
// of a phase, at the step that the document names, in the active loop, or after the
// completed items.
func (p *PhaseProgram) importPosition(d *StateDocument, vars map[string]any) *PhaseState {
	visit, entered := d.currentVisit()
	if len(d.History) > 0 && !entered && len(d.CompletedPhases) == 0 && d.CurrentStep <= 1 && len(d.CompletedSteps) == 0 {
		return &PhaseState{}
	}
	phase := &p.Workflow.Phases[d.CurrentPhase-1]
	ph := &PhaseState{Phase: d.CurrentPhase, Part: PartSteps, Skips: p.phasesToSkip(d)}
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
			setLoopPosition(ph, &phase.Loops[l.LoopIndex-1], l, visit, vars)
			return ph
		}
	}
	if ph.Index >= len(phase.Steps) {
		p.setPositionAfterSteps(d, phase, ph)
	}
	return ph
}

// currentVisit returns the history since the current phase was last entered, without
// variables and errors, and whether any phase was entered at all.
func (d *StateDocument) currentVisit() (list []HistoryEntry, entered bool) {
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

// phasesToSkip returns the phases that answers have skipped, including earlier visits. If
// the document contains no history, it also returns the document's list of skipped phases.
func (p *PhaseProgram) phasesToSkip(d *StateDocument) []int {
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

// pinnedItems returns the list that the history recorded at the start of a loop, or nil.
func pinnedItems(loop int, visit []HistoryEntry) []any {
	var items []any
	for _, h := range visit {
		if h.Loop == loop && EventKind(h.Type) == EventLoopStarted {
			items, _ = h.Data["items"].([]any)
		}
	}
	return items
}

// setLoopPosition sets the position to the current step of the active round.
func setLoopPosition(ph *PhaseState, loop *phases.Loop, l ActiveLoop, visit []HistoryEntry, vars map[string]any) {
	ph.Part, ph.Index = PartLoops, l.LoopIndex-1
	ph.Loop = &PhaseLoop{Round: max(l.CurrentIteration, 0)}
	if loop.Type == phases.LoopForEach {
		ph.Loop.Items = pinnedItems(l.LoopIndex, visit)
		if ph.Loop.Items == nil {
			value, _, _ := expr.Map(vars).Path(loop.Over)
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
		case EventKind(h.Type) == EventStepStarted: // earlier steps of the round may have been skipped
			ph.Loop.Step = h.Step - 1
		case EventKind(h.Type) == EventStepCompleted:
			ph.Loop.Step = h.Step
		}
	}
}

// setPositionAfterSteps sets the position to the exit of the current phase if a decision or
// an answer in the document leads to another phase. Otherwise it sets the position to the
// first loop or checkpoint that has not ended according to the document.
func (p *PhaseProgram) setPositionAfterSteps(d *StateDocument, phase *phases.Phase, ph *PhaseState) {
	for i := range phase.Decisions {
		if o, ok := d.DecisionOutcomes[itemKey(d.CurrentPhase, i+1)]; ok && o.TransitionedTo > 0 && o.TransitionedTo <= len(p.Workflow.Phases) {
			ph.startExit(o.TransitionedTo)
			return
		}
	}
	answered := 0
	for answered < len(phase.Checkpoints) {
		r, ok := d.CheckpointResponses[itemKey(d.CurrentPhase, answered+1)]
		if !ok {
			break
		}
		if e := r.Effects; e != nil && e.TransitionedTo > 0 && e.TransitionedTo <= len(p.Workflow.Phases) {
			ph.startExit(e.TransitionedTo)
			return
		}
		answered++
	}
	ph.Part, ph.Index = PartLoops, d.lastEndedLoop()
	if answered > 0 || ph.Index >= len(phase.Loops) {
		ph.Part, ph.Index = PartCheckpoints, answered
	}
}

// lastEndedLoop returns the highest number of a loop that ended since the current phase was
// entered, or 0.
func (d *StateDocument) lastEndedLoop() int {
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

// applyImport starts a run at the position of a state document.
func (s State) applyImport(e Event) State {
	s.Person = e.Person
	s.Started, s.Vars, s.Steps = true, mergeVars(nil, e.Vars), e.Count
	if e.State != nil {
		ph := *e.State
		s.Phases = &ph
	}
	return s
}

// importedDocument returns the document that a run was imported from, without its variables
// and active loops, which addPosition adds.
func importedDocument(d StateDocument, e Event) StateDocument {
	text, err := json.Marshal(e.Value)
	if err != nil {
		return d
	}
	from := newStateDocument(d.WorkflowID, d.WorkflowVersion)
	if jsontext.Decode(text, &from) != nil {
		return d
	}
	from.WorkflowVersion, from.UpdatedAt = d.WorkflowVersion, d.UpdatedAt
	from.ActiveLoops, from.Variables = []ActiveLoop{}, map[string]any{}
	return from
}

// acceptsImport reports whether an import event matches the document that it contains.
func (p *PhaseProgram) acceptsImport(e Event) bool {
	text, err := json.Marshal(e.Value)
	if err != nil {
		return false
	}
	want, err := p.Import(text)
	want.Person = e.Person
	return err == nil && jsontext.Equal(want, e)
}

// fitsType reports whether a value is of a declared type.
func fitsType(t phases.VariableType, value any) bool {
	if n, ok := value.(json.Number); ok {
		f, err := n.Float64()
		return err == nil && t.Fits(f)
	}
	return t.Fits(value)
}
