package guide

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// StateDocument is a run of a phase workflow as the state schema has it (seed
// 002): numbers for ids, 1-based.
type StateDocument struct {
	WorkflowID      string `json:"workflowId"`
	WorkflowVersion string `json:"workflowVersion"`
	// StateVersion is that of the schema.
	StateVersion        int                        `json:"stateVersion"`
	StartedAt           time.Time                  `json:"startedAt"`
	UpdatedAt           time.Time                  `json:"updatedAt"`
	CompletedAt         *time.Time                 `json:"completedAt,omitempty"`
	CurrentPhase        int                        `json:"currentPhase"`
	CurrentStep         int                        `json:"currentStep,omitempty"`
	CompletedPhases     []int                      `json:"completedPhases"`
	SkippedPhases       []int                      `json:"skippedPhases"`
	CompletedSteps      map[string][]int           `json:"completedSteps"`
	CheckpointResponses map[string]StateResponse   `json:"checkpointResponses"`
	DecisionOutcomes    map[string]DecisionOutcome `json:"decisionOutcomes"`
	ActiveLoops         []ActiveLoop               `json:"activeLoops"`
	Variables           map[string]any             `json:"variables"`
	History             []HistoryEntry             `json:"history"`
	Status              string                     `json:"status"`
	LastError           *StateError                `json:"lastError,omitempty"`
}

// StateResponse is an answer at a checkpoint.
type StateResponse struct {
	OptionID    string        `json:"optionId"`
	RespondedAt time.Time     `json:"respondedAt"`
	Effects     *StateEffects `json:"effects,omitempty"`
}

// StateEffects are what an answer has brought about.
type StateEffects struct {
	VariablesSet   map[string]any `json:"variablesSet,omitempty"`
	TransitionedTo int            `json:"transitionedTo,omitempty"`
	PhasesSkipped  []int          `json:"phasesSkipped,omitempty"`
}

// DecisionOutcome is the branch that a decision took.
type DecisionOutcome struct {
	BranchID       string    `json:"branchId"`
	DecidedAt      time.Time `json:"decidedAt"`
	TransitionedTo int       `json:"transitionedTo"`
}

// ActiveLoop is a loop that is under way.
type ActiveLoop struct {
	PhaseIndex       int       `json:"phaseIndex"`
	LoopIndex        int       `json:"loopIndex"`
	CurrentIteration int       `json:"currentIteration"`
	TotalItems       *int      `json:"totalItems,omitempty"`
	CurrentItem      any       `json:"currentItem,omitempty"`
	StartedAt        time.Time `json:"startedAt"`
}

// HistoryEntry is an event of the history.
type HistoryEntry struct {
	Timestamp  time.Time      `json:"timestamp"`
	Type       string         `json:"type"`
	Phase      int            `json:"phase,omitempty"`
	Step       int            `json:"step,omitempty"`
	Checkpoint int            `json:"checkpoint,omitempty"`
	Decision   int            `json:"decision,omitempty"`
	Loop       int            `json:"loop,omitempty"`
	Data       map[string]any `json:"data,omitempty"`
	Error      *HistoryError  `json:"error,omitempty"`
}

// HistoryError is what went wrong in an event.
type HistoryError struct {
	Message string `json:"message"`
	Code    string `json:"code,omitempty"`
}

// StateError is the last thing that went wrong.
type StateError struct {
	Message   string    `json:"message"`
	Code      string    `json:"code,omitempty"`
	Phase     int       `json:"phase,omitempty"`
	Step      int       `json:"step,omitempty"`
	Timestamp time.Time `json:"timestamp"`
}

// TimedEvent is an event with its time. One of the kind EventError is an attempt
// that was refused; its Message says why and its Reason names the rule.
type TimedEvent struct {
	At time.Time
	Event
}

// EventError stands for a refused attempt in a document's history. No run has
// it.
const EventError EventKind = "error"

// declined is the option of a checkpoint that was declined, in documents.
const declined = "declined"

// Document gives a run as a state document. The events are all of the run's.
func (p *PhaseProgram) Document(events []TimedEvent) StateDocument {
	d := newStateDocument(p.Workflow.ID, p.Workflow.Version)
	d.CurrentPhase = p.current(PhaseState{})
	var s State
	started := map[int]time.Time{}
	for i, e := range events {
		if i == 0 {
			d.StartedAt = e.At
		}
		d.UpdatedAt = e.At
		if e.Kind == EventError {
			d.refused(e, p.current(p.at(s)), p.stepOf(s))
			continue
		}
		if e.Kind == EventStateImported {
			d = imported(d, e.Event)
		}
		d.note(e, p.at(s))
		if e.Kind == EventLoopStarted {
			started[e.Item] = e.At
		}
		s = Apply(s, e.Event)
	}
	p.finish(&d, s, started)
	return d
}

func newStateDocument(id, version string) StateDocument {
	return StateDocument{
		WorkflowID: id, WorkflowVersion: version, StateVersion: 1, CurrentPhase: 1,
		CompletedPhases: []int{}, SkippedPhases: []int{}, CompletedSteps: map[string][]int{},
		CheckpointResponses: map[string]StateResponse{}, DecisionOutcomes: map[string]DecisionOutcome{},
		ActiveLoops: []ActiveLoop{}, Variables: map[string]any{}, History: []HistoryEntry{},
	}
}

// current is the 1-based number of the phase that the run is in: before it is in
// any, that of the first.
func (p *PhaseProgram) current(ph PhaseState) int {
	if ph.Phase > 0 {
		return ph.Phase
	}
	return p.numbers[p.Workflow.InitialPhase]
}

// stepOf is the 1-based number of the step that the run is at: the one behind the
// last where the steps of the phase are over.
func (p *PhaseProgram) stepOf(s State) int {
	ph := p.at(s)
	phase := p.phase(ph)
	switch {
	case phase == nil || ph.Part == PartEntry:
		return 1
	case ph.Part == PartSteps:
		return ph.Index + 1
	default:
		return len(phase.Steps) + 1
	}
}

// finish adds where the run stands.
func (p *PhaseProgram) finish(d *StateDocument, s State, started map[int]time.Time) {
	maps.Copy(d.Variables, s.Vars)
	ph := p.at(s)
	d.CurrentPhase = p.current(ph)
	d.CurrentStep = p.stepOf(s)
	if ph.Part == PartLoops && ph.Loop != nil {
		loop := ActiveLoop{
			PhaseIndex: ph.Phase, LoopIndex: ph.Index + 1, CurrentIteration: ph.Loop.Round, StartedAt: started[ph.Index+1],
		}
		if loop.StartedAt.IsZero() {
			loop.StartedAt = d.UpdatedAt
		}
		if ph.Loop.Items != nil {
			n := len(ph.Loop.Items)
			loop.TotalItems = &n
			loop.CurrentItem = roundValue(&p.phase(ph).Loops[ph.Index], ph.Loop)
		}
		d.ActiveLoops = []ActiveLoop{loop}
	}
	d.Status = documentStatus(p.Status(s))
	if s.Ended == StatusCompleted {
		d.CompletedAt = &d.UpdatedAt
	}
}

func key(phase, item int) string { return fmt.Sprintf("%d-%d", phase, item) }

// without is a list without a value.
func without(list []int, n int) []int {
	return slices.DeleteFunc(list, func(m int) bool { return m == n })
}

// note adds an event to the document; ph is where the run stood before it.
func (d *StateDocument) note(e TimedEvent, ph PhaseState) {
	h := HistoryEntry{Timestamp: e.At, Phase: e.Phase, Type: string(e.Kind)}
	switch e.Kind {
	case EventRunStarted:
		h.Type, h.Phase = "workflow_started", d.CurrentPhase
	case EventRunCompleted:
		h.Type, h.Phase = "workflow_completed", ph.Phase
	case EventRunAborted:
		h.Type, h.Phase = "workflow_aborted", ph.Phase
		h.Data = data("reason", e.Reason)
	case EventPhaseEntered:
		d.CompletedPhases = without(d.CompletedPhases, e.Phase)
		d.begin(e.Phase)
	case EventPhaseExited:
		d.CompletedPhases = append(without(d.CompletedPhases, e.Phase), e.Phase)
	case EventPhaseSkipped:
		d.SkippedPhases = append(without(d.SkippedPhases, e.Phase), e.Phase)
		h.Data = data("reason", e.Reason)
	case EventStepStarted, EventStepCompleted:
		h.Step, h.Data = e.Item, data("notes", e.Notes)
		h.Loop = d.step(e, ph)
	case EventCheckpointReached:
		h.Checkpoint = e.Item
	case EventCheckpointAnswer:
		h.Checkpoint = e.Item
		h.Data = map[string]any{"optionId": d.answered(e)}
		if len(e.Undone) > 0 {
			h.Data["undone"] = e.Undone
		}
	case EventDecisionReached:
		h.Decision = e.Item
	case EventBranchTaken:
		h.Decision, h.Data = e.Item, map[string]any{"branchId": e.Option}
		d.DecisionOutcomes[key(e.Phase, e.Item)] = DecisionOutcome{BranchID: e.Option, DecidedAt: e.At, TransitionedTo: e.To}
	case EventLoopStarted, EventLoopIteration, EventLoopCompleted, EventLoopBroken:
		h.Loop, h.Data = e.Item, loopData(e.Event)
	default:
		h.Type = "" // of the journal, not of the history
	}
	if h.Type != "" {
		d.History = append(d.History, h)
	}
	if e.Kind != EventStateImported {
		d.variables(e)
	}
}

// variables notes the variables that an event sets.
func (d *StateDocument) variables(e TimedEvent) {
	for _, name := range slices.Sorted(maps.Keys(e.Vars)) {
		d.History = append(d.History, HistoryEntry{
			Timestamp: e.At, Type: "variable_set", Phase: e.Phase, Data: map[string]any{"name": name, "value": e.Vars[name]},
		})
	}
}

// answered notes an answer at a checkpoint and gives its option.
func (d *StateDocument) answered(e TimedEvent) string {
	r := StateResponse{OptionID: e.Option, RespondedAt: e.At}
	if r.OptionID == "" {
		r.OptionID = declined
	}
	if len(e.Vars) > 0 || e.To > 0 || len(e.Skips) > 0 {
		r.Effects = &StateEffects{VariablesSet: e.Vars, TransitionedTo: e.To, PhasesSkipped: e.Skips}
	}
	d.CheckpointResponses[key(e.Phase, e.Item)] = r
	for _, n := range e.Skips {
		d.SkippedPhases = append(without(d.SkippedPhases, n), n)
	}
	return r.OptionID
}

// refused notes an attempt that a validate action did not let pass.
func (d *StateDocument) refused(e TimedEvent, phase, step int) {
	d.History = append(d.History, HistoryEntry{
		Timestamp: e.At, Type: "error", Phase: phase, Step: step, Error: &HistoryError{Message: e.Message, Code: e.Reason},
	})
	d.LastError = &StateError{Message: e.Message, Code: e.Reason, Phase: phase, Step: step, Timestamp: e.At}
}

// begin forgets what an earlier visit to a phase has left; it is in the history.
func (d *StateDocument) begin(phase int) {
	delete(d.CompletedSteps, strconv.Itoa(phase))
	ofPhase := func(k string) bool { return strings.HasPrefix(k, strconv.Itoa(phase)+"-") }
	maps.DeleteFunc(d.CheckpointResponses, func(k string, _ StateResponse) bool { return ofPhase(k) })
	maps.DeleteFunc(d.DecisionOutcomes, func(k string, _ DecisionOutcome) bool { return ofPhase(k) })
}

// step notes a step of a phase, and gives the loop that a step of a loop is in.
func (d *StateDocument) step(e TimedEvent, ph PhaseState) (loop int) {
	if e.Round > 0 {
		return ph.Index + 1
	}
	if e.Kind == EventStepCompleted {
		k := strconv.Itoa(e.Phase)
		d.CompletedSteps[k] = append(without(d.CompletedSteps[k], e.Item), e.Item)
	}
	return 0
}

// loopData is what an entry says of a loop.
func loopData(e Event) map[string]any {
	switch e.Kind {
	case EventLoopIteration:
	case EventLoopStarted:
		if e.List == nil {
			return nil
		}
		return map[string]any{"items": e.List}
	default:
		return data("reason", e.Reason)
	}
	out := map[string]any{"iteration": e.Round}
	if e.Value != nil {
		out["item"] = e.Value
	}
	return out
}

// data is an entry's data where there is any.
func data(name, value string) map[string]any {
	if value == "" {
		return nil
	}
	return map[string]any{name: value}
}
