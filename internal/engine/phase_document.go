package engine

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// StateDocument is a run in the format of the state schema of phase workflows. It refers to
// phases and their items by 1-based numbers instead of IDs.
type StateDocument struct {
	WorkflowID      string `json:"workflowId"`
	WorkflowVersion string `json:"workflowVersion"`
	// StateVersion is the version of the schema.
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

// StateResponse is an answer to a checkpoint.
type StateResponse struct {
	OptionID    string        `json:"optionId"`
	RespondedAt time.Time     `json:"respondedAt"`
	Effects     *StateEffects `json:"effects,omitempty"`
}

// StateEffects are the effects of an answer.
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

// ActiveLoop is a loop that has started and not ended.
type ActiveLoop struct {
	PhaseIndex       int       `json:"phaseIndex"`
	LoopIndex        int       `json:"loopIndex"`
	CurrentIteration int       `json:"currentIteration"`
	TotalItems       *int      `json:"totalItems,omitempty"`
	CurrentItem      any       `json:"currentItem,omitempty"`
	StartedAt        time.Time `json:"startedAt"`
}

// HistoryEntry is one event of the history.
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

// HistoryError is the error of an event.
type HistoryError struct {
	Message string `json:"message"`
	Code    string `json:"code,omitempty"`
}

// StateError is the last error of a run.
type StateError struct {
	Message   string    `json:"message"`
	Code      string    `json:"code,omitempty"`
	Phase     int       `json:"phase,omitempty"`
	Step      int       `json:"step,omitempty"`
	Timestamp time.Time `json:"timestamp"`
}

// TimedEvent is an event with its time. An event of kind EventError is a refused command;
// its Message explains the refusal and its Reason is the rule.
type TimedEvent struct {
	At time.Time
	Event
}

// EventError marks a refused command in a document's history. It is not an event of the run
// itself.
const EventError EventKind = "error"

// optionDeclined is the option ID of a declined checkpoint in documents.
const optionDeclined = "declined"

// Document returns the state document of a run. events must be all events of the run.
func (p *PhaseProgram) Document(events []TimedEvent) StateDocument {
	d := newStateDocument(p.Workflow.ID, p.Workflow.Version)
	d.CurrentPhase = p.currentPhase(PhaseState{})
	var s State
	started := map[int]time.Time{}
	for i, e := range events {
		if i == 0 {
			d.StartedAt = e.At
		}
		d.UpdatedAt = e.At
		if e.Kind == EventError {
			d.recordRefusal(e, p.currentPhase(p.currentState(s)), p.currentStep(s))
			continue
		}
		if e.Kind == EventStateImported {
			d = importedDocument(d, e.Event)
		}
		d.recordEvent(e, p.currentState(s))
		if e.Kind == EventLoopStarted {
			started[e.Item] = e.At
		}
		s = Apply(s, e.Event)
	}
	p.addPosition(&d, s, started)
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

// currentPhase returns the 1-based number of the current phase, or that of the initial
// phase before the run has entered one.
func (p *PhaseProgram) currentPhase(ph PhaseState) int {
	if ph.Phase > 0 {
		return ph.Phase
	}
	return p.numbers[p.Workflow.InitialPhase]
}

// currentStep returns the 1-based number of the current step. After the steps of a phase it
// returns the number of steps plus one.
func (p *PhaseProgram) currentStep(s State) int {
	ph := p.currentState(s)
	phase := p.phaseAt(ph)
	switch {
	case phase == nil || ph.Part == PartEntry:
		return 1
	case ph.Part == PartSteps:
		return ph.Index + 1
	default:
		return len(phase.Steps) + 1
	}
}

// addPosition adds the variables, the current position and the status to the document.
func (p *PhaseProgram) addPosition(d *StateDocument, s State, started map[int]time.Time) {
	maps.Copy(d.Variables, s.Vars)
	ph := p.currentState(s)
	d.CurrentPhase = p.currentPhase(ph)
	d.CurrentStep = p.currentStep(s)
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
			loop.CurrentItem = roundValue(&p.phaseAt(ph).Loops[ph.Index], ph.Loop)
		}
		d.ActiveLoops = []ActiveLoop{loop}
	}
	d.Status = documentStatus(p.Status(s))
	if s.Ended == StatusCompleted {
		d.CompletedAt = &d.UpdatedAt
	}
}

func itemKey(phase, item int) string { return fmt.Sprintf("%d-%d", phase, item) }

// removeValue removes a value from a list.
func removeValue(list []int, n int) []int {
	return slices.DeleteFunc(list, func(m int) bool { return m == n })
}

// recordEvent adds an event to the document; ph is the state before the event.
func (d *StateDocument) recordEvent(e TimedEvent, ph PhaseState) {
	h := HistoryEntry{Timestamp: e.At, Phase: e.Phase, Type: string(e.Kind)}
	switch e.Kind {
	case EventRunStarted:
		h.Type, h.Phase = "workflow_started", d.CurrentPhase
	case EventRunCompleted:
		h.Type, h.Phase = "workflow_completed", ph.Phase
	case EventRunAborted:
		h.Type, h.Phase = "workflow_aborted", ph.Phase
		h.Data = entryData("reason", e.Reason)
	case EventPhaseEntered:
		d.CompletedPhases = removeValue(d.CompletedPhases, e.Phase)
		d.resetPhase(e.Phase)
	case EventPhaseExited:
		d.CompletedPhases = append(removeValue(d.CompletedPhases, e.Phase), e.Phase)
	case EventPhaseSkipped:
		d.SkippedPhases = append(removeValue(d.SkippedPhases, e.Phase), e.Phase)
		h.Data = entryData("reason", e.Reason)
	case EventStepStarted, EventStepCompleted:
		h.Step, h.Data = e.Item, entryData("notes", e.Notes)
		h.Loop = d.recordStep(e, ph)
	case EventCheckpointReached:
		h.Checkpoint = e.Item
	case EventCheckpointAnswer:
		h.Checkpoint = e.Item
		h.Data = map[string]any{"optionId": d.recordAnswer(e)}
		if len(e.Undone) > 0 {
			h.Data["undone"] = e.Undone
		}
	case EventDecisionReached:
		h.Decision = e.Item
	case EventBranchTaken:
		h.Decision, h.Data = e.Item, map[string]any{"branchId": e.Option}
		d.DecisionOutcomes[itemKey(e.Phase, e.Item)] = DecisionOutcome{BranchID: e.Option, DecidedAt: e.At, TransitionedTo: e.To}
	case EventLoopStarted, EventLoopIteration, EventLoopCompleted, EventLoopBroken:
		h.Loop, h.Data = e.Item, loopData(e.Event)
	default:
		h.Type = "" // the state schema has no such event
	}
	if h.Type != "" {
		d.History = append(d.History, h)
	}
	if e.Kind != EventStateImported {
		d.recordVars(e)
	}
}

// recordVars adds the variables that an event sets to the history.
func (d *StateDocument) recordVars(e TimedEvent) {
	for _, name := range slices.Sorted(maps.Keys(e.Vars)) {
		d.History = append(d.History, HistoryEntry{
			Timestamp: e.At, Type: "variable_set", Phase: e.Phase, Data: map[string]any{"name": name, "value": e.Vars[name]},
		})
	}
}

// recordAnswer adds an answer to a checkpoint and returns its option.
func (d *StateDocument) recordAnswer(e TimedEvent) string {
	r := StateResponse{OptionID: e.Option, RespondedAt: e.At}
	if r.OptionID == "" {
		r.OptionID = optionDeclined
	}
	if len(e.Vars) > 0 || e.To > 0 || len(e.Skips) > 0 {
		r.Effects = &StateEffects{VariablesSet: e.Vars, TransitionedTo: e.To, PhasesSkipped: e.Skips}
	}
	d.CheckpointResponses[itemKey(e.Phase, e.Item)] = r
	for _, n := range e.Skips {
		d.SkippedPhases = append(removeValue(d.SkippedPhases, n), n)
	}
	return r.OptionID
}

// recordRefusal adds a refused command to the history, and sets the last error.
func (d *StateDocument) recordRefusal(e TimedEvent, phase, step int) {
	d.History = append(d.History, HistoryEntry{
		Timestamp: e.At, Type: "error", Phase: phase, Step: step, Error: &HistoryError{Message: e.Message, Code: e.Reason},
	})
	d.LastError = &StateError{Message: e.Message, Code: e.Reason, Phase: phase, Step: step, Timestamp: e.At}
}

// resetPhase removes the results of an earlier visit to a phase; they remain in the
// history.
func (d *StateDocument) resetPhase(phase int) {
	delete(d.CompletedSteps, strconv.Itoa(phase))
	ofPhase := func(k string) bool { return strings.HasPrefix(k, strconv.Itoa(phase)+"-") }
	maps.DeleteFunc(d.CheckpointResponses, func(k string, _ StateResponse) bool { return ofPhase(k) })
	maps.DeleteFunc(d.DecisionOutcomes, func(k string, _ DecisionOutcome) bool { return ofPhase(k) })
}

// recordStep adds a completed step of a phase. For a step of a loop it only returns the
// loop's number.
func (d *StateDocument) recordStep(e TimedEvent, ph PhaseState) (loop int) {
	if e.Round > 0 {
		return ph.Index + 1
	}
	if e.Kind == EventStepCompleted {
		k := strconv.Itoa(e.Phase)
		d.CompletedSteps[k] = append(removeValue(d.CompletedSteps[k], e.Item), e.Item)
	}
	return 0
}

// loopData returns the data of a history entry about a loop.
func loopData(e Event) map[string]any {
	switch e.Kind {
	case EventLoopIteration:
	case EventLoopStarted:
		if e.List == nil {
			return nil
		}
		return map[string]any{"items": e.List}
	default:
		return entryData("reason", e.Reason)
	}
	out := map[string]any{"iteration": e.Round}
	if e.Value != nil {
		out["item"] = e.Value
	}
	return out
}

// entryData returns the data of an entry, or nil if the value is empty.
func entryData(name, value string) map[string]any {
	if value == "" {
		return nil
	}
	return map[string]any{name: value}
}
