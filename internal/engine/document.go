package engine

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/guideway-dev/guideway/internal/workflow/steps"
)

// Documenter is a flow that can export a run as a state document.
type Documenter interface {
	// Document returns the state document of a run. events must be all events of the run.
	Document(events []TimedEvent) StateDocument
}

var (
	_ Documenter = (*Program)(nil)
	_ Documenter = (*PhaseProgram)(nil)
)

// Document returns the state document of a run of a step workflow. The whole workflow is
// one phase. Top-level steps and loops are numbered in order, and a step of a loop by its
// index in the body. A confirmation is the checkpoint with the number of its step or loop.
func (p *Program) Document(events []TimedEvent) StateDocument {
	d := newStateDocument(p.Workflow.ID, p.Workflow.Version)
	var s State
	var started time.Time
	for i, e := range events {
		if i == 0 {
			d.StartedAt = e.At
		}
		d.UpdatedAt = e.At
		if e.Kind == EventError {
			d.recordRefusal(e, 1, p.stepNumber(s))
			continue
		}
		p.recordEvent(&d, e, s)
		if e.Kind == EventLoopEntered {
			started = e.At
		}
		s = Apply(s, e.Event)
	}
	maps.Copy(d.Variables, s.Vars)
	d.CurrentStep = p.stepNumber(s)
	if s.Frame != nil {
		d.ActiveLoops = []ActiveLoop{p.activeLoop(s, started)}
	}
	d.Status = documentStatus(p.Status(s))
	if s.Ended == StatusCompleted {
		d.CompletedAt = &d.UpdatedAt
		d.CompletedPhases = []int{1}
	}
	return d
}

// documentStatus returns a run's status as the state schema names it.
func documentStatus(s Status) string {
	if s == StatusWaiting {
		return "paused"
	}
	return string(s)
}

// stepNumber returns the 1-based number of the current item. After the last item it returns
// the number of items plus one.
func (p *Program) stepNumber(s State) int { return min(s.Cursor, len(p.items)) + 1 }

func (p *Program) activeLoop(s State, started time.Time) ActiveLoop {
	f := s.Frame
	loop := ActiveLoop{PhaseIndex: 1, LoopIndex: s.Cursor + 1, CurrentIteration: f.Round, StartedAt: started}
	if f.Rounds >= 0 {
		n := f.Rounds
		loop.TotalItems = &n
	}
	if f.Round >= 1 && f.Round <= len(f.List) {
		loop.CurrentItem = f.List[f.Round-1]
	}
	return loop
}

// recordEvent adds an event to the document; s is the state before the event.
func (p *Program) recordEvent(d *StateDocument, e TimedEvent, s State) {
	number := p.positionNumber(e.Step, s)
	add := func(kind string, change func(*HistoryEntry)) {
		h := HistoryEntry{Timestamp: e.At, Type: kind, Phase: 1}
		if change != nil {
			change(&h)
		}
		d.History = append(d.History, h)
	}
	switch e.Kind {
	case EventRunStarted:
		add("workflow_started", nil)
		add("phase_entered", nil)
	case EventRunCompleted:
		add("phase_exited", nil)
		add("workflow_completed", nil)
	case EventRunAborted:
		add("workflow_aborted", func(h *HistoryEntry) { h.Data = entryData("reason", e.Reason) })
	case EventStepCompleted:
		add("step_completed", func(h *HistoryEntry) {
			h.Step, h.Data = number, entryData("notes", e.Notes)
			if s.Frame != nil {
				h.Loop = s.Cursor + 1
			}
		})
		if s.Frame == nil {
			done := d.CompletedSteps["1"]
			d.CompletedSteps["1"] = append(removeValue(done, number), number)
		}
		if e.Gate {
			add("checkpoint_reached", func(h *HistoryEntry) { h.Checkpoint = number })
		}
	case EventGateOpened:
		add("checkpoint_reached", func(h *HistoryEntry) { h.Checkpoint = number })
	case EventGateAnswered:
		add("checkpoint_response", func(h *HistoryEntry) {
			h.Checkpoint, h.Data = number, map[string]any{"optionId": e.Option}
		})
		d.CheckpointResponses["1-"+strconv.Itoa(number)] = StateResponse{OptionID: e.Option, RespondedAt: e.At}
		if e.Option == OptionRevise && s.Frame == nil {
			d.CompletedSteps["1"] = removeValue(d.CompletedSteps["1"], number)
		}
	case EventLoopEntered:
		add("loop_started", func(h *HistoryEntry) { h.Loop = number })
	case EventRoundStarted:
		add("loop_iteration", func(h *HistoryEntry) { h.Loop, h.Data = number, map[string]any{"iteration": e.Round} })
	case EventLoopEnded:
		add("loop_completed", func(h *HistoryEntry) { h.Loop, h.Data = number, entryData("reason", e.Reason) })
		d.CompletedSteps["1"] = append(d.CompletedSteps["1"], number)
	}
	d.recordVars(e)
}

// positionNumber returns the 1-based number of a step or loop: in the body of the current
// loop, or else among the top-level items.
func (p *Program) positionNumber(id string, s State) int {
	if s.Frame != nil {
		if i := slices.IndexFunc(p.items[s.Cursor].body, func(b *steps.Step) bool { return b.ID == id }); i >= 0 {
			return i + 1
		}
	}
	return slices.IndexFunc(p.items, func(it *item) bool { return it.step.ID == id }) + 1
}
