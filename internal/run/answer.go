package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
)

// The bounds of what a caller sends, in bytes.
const (
	maxGoal   = 4 << 10
	maxKey    = 128
	maxBranch = 512
	maxNotes  = 64 << 10
	maxOutput = 1 << 20
)

// limit is a text with the most bytes that it may have.
type limit struct {
	name, text string
	most       int
}

// fix says how to shorten the text.
func (l limit) fix() string {
	switch l.name {
	case "output", "notes":
		return "keep large results in files and hand in their paths with a summary"
	default:
		return "write it shorter"
	}
}

// withinLimits refuses a text that is too long.
func withinLimits(limits ...limit) error {
	for _, l := range limits {
		if len(l.text) > l.most {
			return &Refusal{
				Code: guideway.CodeTooLarge, Rule: RuleTooLarge, Given: len(l.text), Allowed: l.most,
				Message: l.name + " is too long (bytes)",
				Fix:     l.fix(),
			}
		}
	}
	return nil
}

// wellFormed makes a text what JSON keeps of it.
func wellFormed(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// own copies variables that a caller has sent, as a journal gives them back: what
// is in memory is what was written, and nobody else's to change.
func own(vars map[string]any) (map[string]any, error) {
	if len(vars) == 0 {
		return nil, nil
	}
	text, err := jsontext.Marshal(vars)
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeInvalid, "the context cannot be encoded as JSON: %w", err)
	}
	var copied map[string]any
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	if err := dec.Decode(&copied); err != nil {
		return nil, guideway.Errorf(guideway.CodeInvalid, "the context cannot be read back: %w", err)
	}
	return copied, nil
}

// byHandle finds the run of a handle of the caller's. What is somebody else's is
// not there.
func (s *Service) byHandle(ctx context.Context, c Caller, token string) (Handle, Record, error) {
	unknown := &Refusal{
		Code: guideway.CodeNotFound, Rule: RuleUnknownHandle, Given: cut(token, maxHandle),
		Message: "there is no such handle", Fix: "use the handle of the last answer, or find the run by words",
		Next: &Call{Tool: "workflow_resume", Arguments: map[string]any{"query": "what the run is about"}},
	}
	if isRunID(token) {
		unknown.Fix = "that is a run's id: workflow_status answers its handle"
		unknown.Next = StatusCall(Ref{RunID: token})
	}
	if !isHandle(token) {
		return Handle{}, Record{}, unknown
	}
	if err := s.open(ctx); err != nil {
		return Handle{}, Record{}, err
	}
	if h, rec, ok := s.byGivenHandle(ctx, c, token); ok {
		return h, rec, nil
	}
	h, err := s.journal.Handle(ctx, token)
	if guideway.ErrorCode(err) == guideway.CodeNotFound {
		return Handle{}, Record{}, unknown
	}
	if err != nil {
		return Handle{}, Record{}, err
	}
	rec, err := s.journal.Run(ctx, h.Run)
	if guideway.ErrorCode(err) == guideway.CodeNotFound {
		err = guideway.Errorf(guideway.CodeUnavailable, "the record of run %s is gone", h.Run).WithFix("guideway runs verify %s", h.Run)
	}
	if err != nil {
		return Handle{}, Record{}, err
	}
	if rec.User != c.User {
		return Handle{}, Record{}, unknown
	}
	return h, rec, nil
}

// byGivenHandle finds a run of the caller's by a handle that this process has given,
// if it is the run's current one still: then the journal need not be asked what the
// handle stands for. Of any other the journal has the say.
func (s *Service) byGivenHandle(ctx context.Context, c Caller, token string) (Handle, Record, bool) {
	h, ok := s.cache.handle(token)
	if !ok {
		return h, Record{}, false
	}
	rec, err := s.journal.Run(ctx, h.Run)
	ok = err == nil && rec.User == c.User && rec.Handle == token && rec.Seq >= h.Seq
	return h, rec, ok
}

// byRef finds a run of the caller's. Named by its id, the handle is the current
// one.
func (s *Service) byRef(ctx context.Context, c Caller, ref Ref) (Handle, Record, error) {
	if ref.Handle != "" {
		h, rec, err := s.byHandle(ctx, c, ref.Handle)
		if err == nil && ref.RunID != "" && ref.RunID != rec.ID {
			return Handle{}, Record{}, &Refusal{
				Code: guideway.CodeInvalid, Rule: RuleUnknownRun, Given: cut(ref.RunID, maxHandle),
				Message: "the handle and the run's id are of two runs", Fix: "give one of them",
			}
		}
		return h, rec, err
	}
	if err := s.open(ctx); err != nil {
		return Handle{}, Record{}, err
	}
	rec, err := s.journal.Run(ctx, ref.RunID)
	if guideway.ErrorCode(err) == guideway.CodeNotFound || err == nil && rec.User != c.User {
		return Handle{}, Record{}, &Refusal{
			Code: guideway.CodeNotFound, Rule: RuleUnknownRun, Given: cut(ref.RunID, maxHandle),
			Message: "there is no such run", Fix: "find the run by words",
			Next: &Call{Tool: "workflow_resume", Arguments: map[string]any{"query": "what the run is about"}},
		}
	}
	if err != nil {
		return Handle{}, Record{}, err
	}
	h, err := s.journal.Handle(ctx, rec.Handle)
	if guideway.ErrorCode(err) == guideway.CodeNotFound {
		err = guideway.Errorf(guideway.CodeUnavailable, "the handle of run %s is gone", rec.ID).WithFix("guideway runs verify %s", rec.ID)
	}
	return h, rec, err
}

// answerOf tells where a run stands.
func answerOf(rec Record, p *program, state engine.State, handle string) *Answer {
	pos := p.PositionOf(state)
	return &Answer{
		RunID: rec.ID, Handle: handle, WorkflowID: rec.Workflow, Workflow: rec.Workflow,
		Status: p.Status(state), Position: pos, Next: nextCall(handle, pos),
	}
}

// nextCall is a legal call at a position, ready to copy, or nil at the end.
func nextCall(handle string, pos engine.Position) *Call {
	args := map[string]any{"handle": handle}
	switch pos.Kind {
	case engine.PositionStep:
		args["output"] = "..."
		if pos.NeedsNotes {
			args["notes"] = "..."
		}
		if len(pos.Sets) > 0 {
			args["context"] = engine.Values(pos.Sets)
		}
	case engine.PositionGate:
		if pos.Person {
			return StatusCall(Ref{Handle: handle})
		}
		args["answer"] = map[string]any{"optionId": pos.Options[0].ID}
	case engine.PositionContext:
		args["context"] = engine.Values(pos.Needs)
	default:
		return nil
	}
	return &Call{Tool: "workflow_continue", Arguments: args}
}

// StatusCall asks where a run stands, by a handle of it where that is known.
func StatusCall(r Ref) *Call {
	args := map[string]any{"handle": r.Handle}
	if r.Handle == "" {
		args = map[string]any{"runId": r.RunID}
	}
	return &Call{Tool: "workflow_status", Arguments: args}
}

// AskUser says what an agent does at a gate whose answer it hands on.
const AskUser = "ask the user and hand on their answer: the choice is theirs"

// PersonWays says how a person opens a gate that is theirs, where the client
// shows no form.
func PersonWays(runID string) string {
	return "ask the person to open the gate at a terminal, with guideway runs approve " + runID +
		" (before the first time: guideway runs approve --set-passphrase); then call workflow_status"
}

// refused passes on what the engine refused.
func refused(r *engine.Refusal) *Refusal {
	return &Refusal{
		Code: guideway.CodeRefused, Rule: r.Rule, Message: r.Message,
		Given: r.Given, Allowed: r.Allowed, Issues: r.Issues,
	}
}

// refusedAt passes on what the engine refused, with the call that is legal.
func refusedAt(r *engine.Refusal, rec Record, l *loaded) *Refusal {
	out := refused(r)
	pos := l.program.PositionOf(l.state)
	out.RunID, out.Next = rec.ID, nextCall(rec.Handle, pos)
	switch r.Rule {
	case engine.RuleCriteria:
		out.Fix = "mend what the issues name and hand in the whole output again, with the same handle"
	case engine.RuleEnded:
		out.Fix = "fork the run to go on from an earlier event, or start a new one"
		out.Next = &Call{Tool: "workflow_start", Arguments: map[string]any{"workflowId": rec.Workflow}}
	case engine.RuleDefinition:
		out.Fix = "the pinned definition has an error; abort the run, mend the definition and start anew"
		out.Next = &Call{Tool: "workflow_abort", Arguments: map[string]any{"handle": rec.Handle}}
	default:
		if pos.Kind == engine.PositionGate {
			out.Fix = AskUser
		}
		if pos.Person {
			out.Fix = PersonWays(rec.ID)
		}
	}
	return out
}

// IsRefusal gives the refusal that an error is, if it is one.
func IsRefusal(err error) (*Refusal, bool) {
	var r *Refusal
	ok := errors.As(err, &r)
	return r, ok
}
