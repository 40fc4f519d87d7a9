package run

import (
	"context"
	"errors"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
)

// The limits of input, in bytes.
const (
	maxGoal   = 4 << 10
	maxKey    = 128
	maxBranch = 512
	maxNotes  = 64 << 10
	maxOutput = 1 << 20
)

// sizeLimit is a text with its maximum size in bytes.
type sizeLimit struct {
	name, text string
	most       int
}

// shortenFix returns how to shorten the text.
func (l sizeLimit) shortenFix() string {
	switch l.name {
	case "output", "notes":
		return "store large results in files and submit their paths with a summary"
	default:
		return "shorten the text"
	}
}

// checkLimits returns a refusal for the first text that is too long.
func checkLimits(limits ...sizeLimit) error {
	for _, l := range limits {
		if len(l.text) > l.most {
			return &Refusal{
				Code: guideway.CodeTooLarge, Rule: RuleTooLarge, Given: len(l.text), Allowed: l.most,
				Message: l.name + " is too long (bytes)",
				Fix:     l.shortenFix(),
			}
		}
	}
	return nil
}

// toValidUTF8 replaces invalid UTF-8 as JSON does.
func toValidUTF8(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// normalizeVars copies the variables of a caller as the journal will return them, so that
// the state in memory equals the stored one and the caller cannot change it.
func normalizeVars(vars map[string]any) (map[string]any, error) {
	if len(vars) == 0 {
		return nil, nil
	}
	text, err := jsontext.Marshal(vars)
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeInvalid, "the context cannot be encoded as JSON: %w", err)
	}
	var copied map[string]any
	if err := jsontext.Decode(text, &copied); err != nil {
		return nil, guideway.Errorf(guideway.CodeInvalid, "the context cannot be decoded: %w", err)
	}
	return copied, nil
}

// findByHandle finds a run of the caller by a handle. A run of another user is treated as
// missing.
func (s *Service) findByHandle(ctx context.Context, c Caller, token string) (Handle, Record, error) {
	unknown := &Refusal{
		Code: guideway.CodeNotFound, Rule: RuleUnknownHandle, Given: Truncate(token, maxHandle),
		Message: "there is no such handle", Fix: "use the handle of the last answer, or search for the run with workflow_resume",
		Next: &Call{Tool: "workflow_resume", Arguments: map[string]any{"query": "words that describe the run"}},
	}
	if isRunID(token) {
		unknown.Fix = "this is a run id: workflow_status returns the handle of the run"
		unknown.Next = StatusCall(Ref{RunID: token})
	}
	if !isHandle(token) {
		return Handle{}, Record{}, unknown
	}
	if err := s.openJournal(ctx); err != nil {
		return Handle{}, Record{}, err
	}
	if h, rec, ok := s.findByIssuedHandle(ctx, c, token); ok {
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
		err = guideway.Errorf(guideway.CodeUnavailable, "the record of run %s is missing", h.Run).WithFix("guideway runs verify %s", h.Run)
	}
	if err != nil {
		return Handle{}, Record{}, err
	}
	if rec.User != c.User {
		return Handle{}, Record{}, unknown
	}
	return h, rec, nil
}

// findByIssuedHandle finds a run of the caller by a handle that this process issued, if it
// is still the run's current handle. This saves looking up the handle in the journal.
func (s *Service) findByIssuedHandle(ctx context.Context, c Caller, token string) (Handle, Record, bool) {
	h, ok := s.cache.getHandle(token)
	if !ok {
		return h, Record{}, false
	}
	rec, err := s.journal.Run(ctx, h.Run)
	ok = err == nil && rec.User == c.User && rec.Handle == token && rec.Seq >= h.Seq
	return h, rec, ok
}

// findByRef finds a run of the caller. For a run id it returns the current handle.
func (s *Service) findByRef(ctx context.Context, c Caller, ref Ref) (Handle, Record, error) {
	if ref.Handle != "" {
		h, rec, err := s.findByHandle(ctx, c, ref.Handle)
		if err == nil && ref.RunID != "" && ref.RunID != rec.ID {
			return Handle{}, Record{}, &Refusal{
				Code: guideway.CodeInvalid, Rule: RuleUnknownRun, Given: Truncate(ref.RunID, maxHandle),
				Message: "the handle and the run id belong to different runs", Fix: "send only one of them",
			}
		}
		return h, rec, err
	}
	if err := s.openJournal(ctx); err != nil {
		return Handle{}, Record{}, err
	}
	rec, err := s.journal.Run(ctx, ref.RunID)
	if guideway.ErrorCode(err) == guideway.CodeNotFound || err == nil && rec.User != c.User {
		return Handle{}, Record{}, &Refusal{
			Code: guideway.CodeNotFound, Rule: RuleUnknownRun, Given: Truncate(ref.RunID, maxHandle),
			Message: "there is no such run", Fix: "search for the run with workflow_resume",
			Next: &Call{Tool: "workflow_resume", Arguments: map[string]any{"query": "words that describe the run"}},
		}
	}
	if err != nil {
		return Handle{}, Record{}, err
	}
	h, err := s.journal.Handle(ctx, rec.Handle)
	if guideway.ErrorCode(err) == guideway.CodeNotFound {
		err = guideway.Errorf(guideway.CodeUnavailable, "the handle of run %s is missing", rec.ID).WithFix("guideway runs verify %s", rec.ID)
	}
	return h, rec, err
}

// loadByRef loads a run of the caller.
func (s *Service) loadByRef(ctx context.Context, c Caller, ref Ref) (Record, *loadedRun, error) {
	_, rec, err := s.findByRef(ctx, c, ref)
	if err != nil {
		return rec, nil, err
	}
	l, err := s.loadRun(ctx, rec)
	return rec, l, err
}

// newAnswer returns the position of a run as an answer.
func newAnswer(rec Record, p *program, state engine.State, handle string) *Answer {
	pos := p.PositionOf(state)
	return &Answer{
		RunID: rec.ID, Handle: handle, WorkflowID: rec.Workflow, Workflow: rec.Workflow,
		Status: p.Status(state), Position: pos, Next: legalCall(handle, pos),
	}
}

// legalCall returns a legal call at a position, ready to copy, or nil at the end.
func legalCall(handle string, pos engine.Position) *Call {
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

// StatusCall returns a call that asks for the status of a run, by its handle if known.
func StatusCall(r Ref) *Call {
	args := map[string]any{"handle": r.Handle}
	if r.Handle == "" {
		args = map[string]any{"runId": r.RunID}
	}
	return &Call{Tool: "workflow_status", Arguments: args}
}

// AskUser is the fix for an agent at a gate that passes on the user's answer.
const AskUser = "ask the user and pass on their answer: the user decides"

// ApprovalFix returns how a person gives a human approval if the client cannot show a form.
// page is the page of the run in the dashboard, or "" if no server is running.
func ApprovalFix(runID, page string) string {
	if page != "" {
		page = "in the dashboard, " + page + ", or "
	}
	return "ask the person to open the gate " + page + "at a terminal, with guideway runs approve " + runID +
		" (before the first time: guideway runs approve --set-passphrase); then call workflow_status"
}

// newRefusal converts a refusal of the engine.
func newRefusal(r *engine.Refusal) *Refusal {
	return &Refusal{
		Code: guideway.CodeRefused, Rule: r.Rule, Message: r.Message,
		Given: r.Given, Allowed: r.Allowed, Issues: r.Issues,
	}
}

// newRefusalAt converts a refusal of the engine and adds the legal call.
func newRefusalAt(r *engine.Refusal, rec Record, l *loadedRun) *Refusal {
	out := newRefusal(r)
	pos := l.program.PositionOf(l.state)
	out.RunID, out.Next = rec.ID, legalCall(rec.Handle, pos)
	switch r.Rule {
	case engine.RuleCriteria:
		out.Fix = "fix the issues and submit the complete output again, with the same handle"
	case engine.RuleEnded:
		out.Fix = "fork the run to continue from an earlier event, or start a new run"
		out.Next = &Call{Tool: "workflow_start", Arguments: map[string]any{"workflowId": rec.Workflow}}
	case engine.RuleDefinition:
		out.Fix = "the pinned definition has an error; abort the run, fix the definition and start a new run"
		out.Next = &Call{Tool: "workflow_abort", Arguments: map[string]any{"handle": rec.Handle}}
	default:
		if pos.Kind == engine.PositionGate {
			out.Fix = AskUser
		}
		if pos.Person {
			out.Fix = ApprovalFix(rec.ID, "")
		}
	}
	return out
}

// AsRefusal returns the refusal in the chain of an error, if there is one.
func AsRefusal(err error) (*Refusal, bool) {
	var r *Refusal
	ok := errors.As(err, &r)
	return r, ok
}
