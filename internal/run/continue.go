package run

import (
	"context"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/platform/digest"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
)

// Continue submits the input that the position of a handle asks for. Repeating a call with
// the same handle and input returns the same answer. An earlier handle with other input is
// refused. If the engine refuses the input, the position and the handle do not change.
func (s *Service) Continue(ctx context.Context, c Caller, r ContinueRequest) (*Answer, error) {
	err := checkLimits(sizeLimit{"output", r.Output, maxOutput}, sizeLimit{"notes", r.Notes, maxNotes})
	if err == nil && r.Answer != nil {
		err = checkLimits(sizeLimit{"answer.note", r.Answer.Note, maxNotes})
	}
	if err == nil && r.Skip != nil {
		err = checkLimits(sizeLimit{"skip.reason", r.Skip.Reason, maxNotes})
	}
	if err != nil {
		return nil, err
	}
	key, err := commandKey(r)
	if err != nil {
		return nil, err
	}
	if r.Context, err = normalizeVars(r.Context); err != nil {
		return nil, err
	}
	r.Output, r.Notes = toValidUTF8(r.Output), toValidUTF8(r.Notes)
	checked := s.newCheckedCall(c.Connect, r.Progress)
	defer checked.end()
	a, err := retryOnConflict(ctx, func() (*Answer, error) {
		h, rec, err := s.findByHandle(ctx, c, r.Handle)
		if err != nil {
			return nil, err
		}
		if h.Token != rec.Handle {
			return s.replayAnswer(ctx, rec, h, key)
		}
		return s.decideAndCommit(ctx, c, rec, key, checked, engine.Continue{
			Step: r.Step, Output: r.Output, Notes: r.Notes, Context: r.Context, Answer: r.Answer, Skip: r.Skip,
			Person: c.Via.Person(), By: c.Principal,
		})
	})
	if a != nil {
		a.WorkflowID = "" // the caller already knows the workflow
	}
	return a, err
}

// Answer answers the gate that a run waits at. If the gate needs human approval, c.Via must
// prove a person. A handle must be the run's current handle, so that a form for another
// position has no effect. With the id of the run, Answer answers the gate that is open at
// the time of the call.
func (s *Service) Answer(ctx context.Context, c Caller, r AnswerRequest) (*Answer, error) {
	if err := checkLimits(sizeLimit{"note", r.Answer.Note, maxNotes}); err != nil {
		return nil, err
	}
	r.Answer.Note = toValidUTF8(r.Answer.Note)
	checked := s.newCheckedCall(c.Connect, nil)
	defer checked.end()
	return retryOnConflict(ctx, func() (*Answer, error) {
		h, rec, err := s.findByRef(ctx, c, r.Ref)
		if err != nil {
			return nil, err
		}
		if h.Token != rec.Handle {
			return nil, staleRefusal(rec, h.Token)
		}
		r.Handle = h.Token
		return s.decideAndCommit(ctx, c, rec, "", checked, engine.Continue{Step: r.Step, Answer: &r.Answer, Person: c.Via.Person(), By: c.Principal})
	})
}

// decideAndCommit lets the engine decide a command, and stores the results of its checks and
// the resulting facts in one commit.
func (s *Service) decideAndCommit(ctx context.Context, c Caller, rec Record, key string, checked *checkedCall, cmd engine.Continue) (*Answer, error) {
	l, err := s.loadRun(ctx, rec)
	if err != nil {
		return nil, err
	}
	facts, refusal, err := checked.decide(ctx, rec, l, cmd)
	if waits, ok := AsRefusal(err); ok {
		refusal = &engine.Refusal{Rule: waits.Rule, Message: waits.Message}
	} else if err != nil {
		return nil, err
	}
	checks, eventErr := checked.events()
	if eventErr != nil {
		return nil, eventErr
	}
	if refusal != nil {
		s.recordRefusal(ctx, c, rec, l, cmd, refusal, checks)
		if err != nil {
			return nil, err
		}
		r := s.newRefusalAt(ctx, refusal, rec, l)
		r.Checks = checked.summaries()
		return nil, r
	}
	rec, l, err = s.commitChange(ctx, ByCaller(c), rec, l, runChange{checks: checks, facts: facts, key: key, words: searchText(facts), moves: true})
	if err != nil {
		return nil, err
	}
	a := s.newAnswer(ctx, rec, l, rec.Handle)
	a.Checks = checked.summaries()
	return a, nil
}

// replayAnswer answers a call with a handle of an earlier position: with the original
// answer if the input is the same, otherwise with a refusal.
func (s *Service) replayAnswer(ctx context.Context, rec Record, h Handle, key string) (*Answer, error) {
	outcome, err := s.journal.Outcome(ctx, rec.ID, "", key)
	switch guideway.ErrorCode(err) {
	case "":
		return s.earlierAnswer(ctx, rec, outcome)
	case guideway.CodeNotFound:
		return nil, staleRefusal(rec, h.Token)
	default:
		return nil, err
	}
}

// staleRefusal returns the refusal for a handle of an earlier position.
func staleRefusal(rec Record, handle string) *Refusal {
	return &Refusal{
		Code: guideway.CodeRefused, Rule: RuleStaleHandle, Given: handle, RunID: rec.ID,
		Message: "the run has moved on since this handle was issued",
		Fix:     "call workflow_status for the current position, or workflow_fork to continue differently from the position of this handle",
		Next:    StatusCall(Ref{Handle: handle}),
		Allowed: []Call{*StatusCall(Ref{Handle: handle}), {Tool: "workflow_fork", Arguments: map[string]any{"handle": handle}}},
	}
}

// earlierAnswer returns the answer that was returned with a handle.
func (s *Service) earlierAnswer(ctx context.Context, rec Record, h Handle) (*Answer, error) {
	then := rec
	if h.Token != rec.Handle {
		events, err := s.journal.Events(ctx, rec.ID, h.Seq-1, 1)
		if err != nil {
			return nil, err
		}
		if len(events) == 0 || events[0].Seq != h.Seq {
			return nil, untrustedEventError(rec.ID, h.Seq, "the event is missing")
		}
		then.Seq, then.Head = h.Seq, events[0].MAC
	}
	var l *loadedRun
	var err error
	if then.Seq == rec.Seq {
		l, err = s.loadRun(ctx, rec)
	} else {
		l, err = s.foldEvents(ctx, then, nil)
	}
	if err != nil {
		return nil, err
	}
	a := s.newAnswer(ctx, then, l, h.Token)
	a.Replayed = true
	return a, nil
}

// commandKey returns the key of a command. The same handle with the same input has the same
// key.
func commandKey(r ContinueRequest) (string, error) {
	text, err := jsontext.Marshal(r)
	if err != nil {
		return "", guideway.Errorf(guideway.CodeInvalid, "the input cannot be encoded as JSON: %w", err)
	}
	return digest.Hex(text)[:32], nil
}

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
