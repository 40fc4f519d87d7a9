package run

import (
	"context"

	"github.com/guideway-dev/guideway/internal/engine"
)

// Submission is the output that a gate asks about.
type Submission struct {
	// Seq is the event that completed the step.
	Seq int64 `json:"seq"`
	// Step is the step that the output belongs to.
	Step   string `json:"step"`
	Output string `json:"output"`
	Notes  string `json:"notes,omitempty"`
	// Label is engine.LabelEvidence or engine.LabelClaim. Checks are the checks that the
	// server executed for the output.
	Label  string         `json:"label"`
	Checks []CheckSummary `json:"checks,omitempty"`
}

// nextSubmission returns the number of the event whose output the next gate asks about: the
// last output of the step or phase. 0 means that there is none, as at the gate of a loop that
// has not started. Only events of the engine change it, so that refused attempts and marks
// after an output cannot hide it.
func nextSubmission(current int64, e Event) int64 {
	switch engine.EventKind(e.Kind) {
	case engine.EventStepCompleted:
		return e.Seq
	case engine.EventPhaseEntered, engine.EventGateOpened, engine.EventStateImported:
		return 0
	default:
		return current
	}
}

// readSubmission returns the output that the gate of a run asks about, or nil if the gate
// does not ask about an output.
func (s *Service) readSubmission(ctx context.Context, c Caller, rec Record, l *loadedRun) (*Submission, error) {
	if l.submission == 0 {
		return nil, nil
	}
	const most = 32 // the maximum number of checks before the event
	events, err := s.Events(ctx, c, Ref{RunID: rec.ID}, max(0, l.submission-1-most), int(min(l.submission, most+1)))
	if err != nil {
		return nil, err
	}
	if len(events) == 0 || events[len(events)-1].Seq != l.submission {
		return nil, untrustedEventError(rec.ID, l.submission, "the event is missing")
	}
	last := events[len(events)-1]
	fact, _, err := parseFact(last)
	if err != nil {
		return nil, untrustedEventError(rec.ID, l.submission, err.Error())
	}
	return &Submission{
		Seq: l.submission, Step: fact.Step, Output: fact.Output, Notes: fact.Notes,
		Label: last.Label, Checks: summariesBefore(events),
	}, nil
}
