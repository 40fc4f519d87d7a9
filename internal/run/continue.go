package run

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
)

// Continue hands in what the position of a handle asks for. The same handle with
// the same input gives the same answer, however often; an earlier handle with
// other input is refused. What the engine refuses leaves the run where it is,
// and the handle good.
func (s *Service) Continue(ctx context.Context, c Caller, r ContinueRequest) (*Answer, error) {
	err := withinLimits(limit{"output", r.Output, maxOutput}, limit{"notes", r.Notes, maxNotes})
	if err == nil && r.Answer != nil {
		err = withinLimits(limit{"answer.note", r.Answer.Note, maxNotes})
	}
	if err == nil && r.Skip != nil {
		err = withinLimits(limit{"skip.reason", r.Skip.Reason, maxNotes})
	}
	if err != nil {
		return nil, err
	}
	key, err := commandKey(r)
	if err != nil {
		return nil, err
	}
	if r.Context, err = own(r.Context); err != nil {
		return nil, err
	}
	r.Output, r.Notes = wellFormed(r.Output), wellFormed(r.Notes)
	a, err := again(ctx, func() (*Answer, error) {
		h, rec, err := s.byHandle(ctx, c, r.Handle)
		if err != nil {
			return nil, err
		}
		if h.Token != rec.Handle {
			return s.replay(ctx, rec, h, key)
		}
		return s.decide(ctx, c, rec, key, engine.Continue{
			Step: r.Step, Output: r.Output, Notes: r.Notes, Context: r.Context, Answer: r.Answer, Skip: r.Skip,
			Person: c.Via.Person(),
		})
	})
	if a != nil {
		a.WorkflowID = "" // who goes on with a run knows it
	}
	return a, err
}

// Answer answers the gate that a run waits at. Where the gate wants a person,
// c.Via must prove one. A handle must be the current one: a form that was shown
// at another position answers nothing. By the run's id, the gate that is open
// when the call comes is answered, and no later one.
func (s *Service) Answer(ctx context.Context, c Caller, r AnswerRequest) (*Answer, error) {
	if err := withinLimits(limit{"note", r.Answer.Note, maxNotes}); err != nil {
		return nil, err
	}
	r.Answer.Note = wellFormed(r.Answer.Note)
	return again(ctx, func() (*Answer, error) {
		h, rec, err := s.byRef(ctx, c, r.Ref)
		if err != nil {
			return nil, err
		}
		if h.Token != rec.Handle {
			return nil, stale(rec, h.Token)
		}
		r.Handle = h.Token
		return s.decide(ctx, c, rec, "", engine.Continue{Step: r.Step, Answer: &r.Answer, Person: c.Via.Person()})
	})
}

// decide has the engine judge a command and stores what it says.
func (s *Service) decide(ctx context.Context, c Caller, rec Record, key string, cmd engine.Continue) (*Answer, error) {
	l, err := s.load(ctx, rec)
	if err != nil {
		return nil, err
	}
	facts, refusal := l.program.Decide(l.state, engine.Command{Continue: &cmd})
	if refusal != nil {
		s.noteRefusal(ctx, c, rec, l, refusal)
		return nil, refusedAt(refusal, rec, l)
	}
	rec, l, err = s.commit(ctx, by(c), rec, l, change{facts: facts, key: key, words: wordsOf(facts), moves: true})
	if err != nil {
		return nil, err
	}
	return answerOf(rec, l.program, l.state, rec.Handle), nil
}

// noteRefusal records a refused attempt. It is for people who look on: where it
// cannot be stored, the refusal stands all the same.
func (s *Service) noteRefusal(ctx context.Context, c Caller, rec Record, l *loaded, r *engine.Refusal) {
	// An agent that goes on trying must not fill the journal.
	const mostOfAPosition, most = 100, 20
	if isEnded(rec.Status) || l.refused >= mostOfAPosition {
		return
	}
	e, err := newEvent(KindRefused, Refused{
		Rule: r.Rule, Message: r.Message, Step: rec.Step, Issues: r.Issues[:min(len(r.Issues), most)],
	})
	if err == nil {
		_, _, err = s.commit(ctx, by(c), rec, l, change{others: []Event{e}})
	}
	if err != nil && guideway.ErrorCode(err) != guideway.CodeConflict {
		s.log.WarnContext(ctx, "a refused attempt could not be recorded", "run", rec.ID, "error", err)
	}
}

// replay answers a handle of an earlier position: with what it answered then if
// the input is the same, else with a refusal.
func (s *Service) replay(ctx context.Context, rec Record, h Handle, key string) (*Answer, error) {
	outcome, err := s.journal.Outcome(ctx, rec.ID, "", key)
	switch guideway.ErrorCode(err) {
	case "":
		return s.answerAt(ctx, rec, outcome)
	case guideway.CodeNotFound:
		return nil, stale(rec, h.Token)
	default:
		return nil, err
	}
}

// stale refuses a handle of an earlier position.
func stale(rec Record, handle string) *Refusal {
	return &Refusal{
		Code: guideway.CodeRefused, Rule: RuleStaleHandle, Given: handle, RunID: rec.ID,
		Message: "the run has moved on since this handle was given",
		Fix:     "ask workflow_status for the current position, or workflow_fork to go another way from this one",
		Next:    StatusCall(Ref{Handle: handle}),
		Allowed: []Call{*StatusCall(Ref{Handle: handle}), {Tool: "workflow_fork", Arguments: map[string]any{"handle": handle}}},
	}
}

// answerAt is the answer that was given with a handle.
func (s *Service) answerAt(ctx context.Context, rec Record, h Handle) (*Answer, error) {
	then := rec
	if h.Token != rec.Handle {
		events, err := s.journal.Events(ctx, rec.ID, h.Seq-1, 1)
		if err != nil {
			return nil, err
		}
		if len(events) == 0 || events[0].Seq != h.Seq {
			return nil, broken(rec.ID, h.Seq, "it is missing")
		}
		then.Seq, then.Head = h.Seq, events[0].MAC
	}
	var l *loaded
	var err error
	if then.Seq == rec.Seq {
		l, err = s.load(ctx, rec)
	} else {
		l, err = s.follow(ctx, then, nil)
	}
	if err != nil {
		return nil, err
	}
	a := answerOf(then, l.program, l.state, h.Token)
	a.Replayed = true
	return a, nil
}

// commandKey names a command: the same handle with the same input has the same
// key.
func commandKey(r ContinueRequest) (string, error) {
	text, err := jsontext.Marshal(r)
	if err != nil {
		return "", guideway.Errorf(guideway.CodeInvalid, "the input cannot be written as JSON: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16]), nil
}
