package run

import (
	"context"
	"errors"
	"fmt"
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

// shortenFix returns the fix for a text that is too long.
func (l sizeLimit) shortenFix() string {
	switch l.name {
	case "output", "notes":
		return "store large results in files and submit their paths with a summary"
	default:
		return "shorten " + l.name
	}
}

// checkLimits returns a refusal for the first text that is too long.
func checkLimits(limits ...sizeLimit) error {
	for _, l := range limits {
		if len(l.text) > l.most {
			return &Refusal{
				Code: guideway.CodeTooLarge, Rule: RuleTooLarge, Given: len(l.text), Allowed: l.most,
				Message: fmt.Sprintf("%s has %d bytes; at most %d are allowed", l.name, len(l.text), l.most),
				Fix:     l.shortenFix(),
			}
		}
	}
	return nil
}

// toValidUTF8 replaces invalid UTF-8 with U+FFFD, as encoding/json does.
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
		Message: fmt.Sprintf("there is no handle %q", Truncate(token, maxHandle)), Fix: "use the handle of the last answer, or search for the run with workflow_resume",
		Next: resumeCall(),
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
	if !s.mayUse(ctx, c, rec) {
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
	ok = err == nil && s.mayUse(ctx, c, rec) && rec.Handle == token && rec.Seq >= h.Seq
	return h, rec, ok
}

// findByRef finds a run of the caller. For a run id it returns the current handle.
func (s *Service) findByRef(ctx context.Context, c Caller, ref Ref) (Handle, Record, error) {
	if ref.Handle != "" {
		h, rec, err := s.findByHandle(ctx, c, ref.Handle)
		if err == nil && ref.RunID != "" && ref.RunID != rec.ID {
			return Handle{}, Record{}, &Refusal{
				Code: guideway.CodeInvalid, Rule: RuleUnknownRun, Given: Truncate(ref.RunID, maxHandle),
				Message: fmt.Sprintf("the handle belongs to the run %s, not to %q", rec.ID, Truncate(ref.RunID, maxHandle)), Fix: "send only the handle or only the run id",
			}
		}
		return h, rec, err
	}
	if err := s.openJournal(ctx); err != nil {
		return Handle{}, Record{}, err
	}
	rec, err := s.journal.Run(ctx, ref.RunID)
	if guideway.ErrorCode(err) == guideway.CodeNotFound || err == nil && !s.mayUse(ctx, c, rec) {
		return Handle{}, Record{}, &Refusal{
			Code: guideway.CodeNotFound, Rule: RuleUnknownRun, Given: Truncate(ref.RunID, maxHandle),
			Message: fmt.Sprintf("there is no run %q", Truncate(ref.RunID, maxHandle)), Fix: "search for the run with workflow_resume",
			Next: resumeCall(),
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
func (s *Service) newAnswer(ctx context.Context, rec Record, l *loadedRun, handle string) *Answer {
	pos := l.program.PositionOf(l.state)
	return &Answer{
		RunID: rec.ID, Handle: handle, WorkflowID: rec.Workflow, Workflow: rec.Workflow,
		Status: l.program.Status(l.state), Position: pos, Declined: l.attempts.Last,
		Next: s.nextCallOf(ctx, rec, l, handle, pos),
	}
}

// nextCallOf is like nextCall, but at a dead end it returns a fork of the run at the last
// event that leaves work to do.
func (s *Service) nextCallOf(ctx context.Context, rec Record, l *loadedRun, handle string, pos engine.Position) *Call {
	if pos.DeadEnd {
		entries, err := s.readEntries(ctx, rec, rec.Seq)
		if err == nil {
			if last := l.program.lastForkable(entries); last > 0 {
				return forkCall(rec.ID, entries[last-1].event.Seq)
			}
		}
	}
	return nextCall(rec.ID, handle, pos)
}

// nextCall returns the form of the next call at a position. It returns nil at the end and
// at a human approval, because no call of an agent continues the run there.
func nextCall(runID, handle string, pos engine.Position) *Call {
	switch {
	case pos.Kind == engine.PositionEnd, pos.Person:
		return nil
	case pos.DeadEnd:
		return forkCall(runID, 0)
	default:
		return &Call{Tool: "workflow_continue", Arguments: map[string]any{"handle": handle}, Fields: pos.Fields()}
	}
}

// forkCall returns a call that forks a run after the event seq. If seq is 0, the caller
// must choose the event.
func forkCall(runID string, seq int64) *Call {
	call := &Call{Tool: "workflow_fork", Arguments: map[string]any{"runId": runID}}
	if seq == 0 {
		call.Fields = []engine.Field{{Name: "seq", Type: "integer", Description: "the number of an earlier event, before the decision that led to this position"}}
	} else {
		call.Arguments["seq"] = seq
	}
	return call
}

// resumeCall returns a call that searches for a run.
func resumeCall() *Call {
	return &Call{Tool: "workflow_resume", Arguments: map[string]any{}, Fields: []engine.Field{
		{Name: "query", Description: "words of the run's goal or outputs", Optional: true},
	}}
}

// honestAlternatives returns the possible next actions after an honest result that a check
// refuses.
func honestAlternatives(rec Record) []Alternative {
	return []Alternative{
		{Do: "fix the cause and report the new result with the same handle"},
		{Do: "ask the user how to continue"},
		{Do: "fork the run at an earlier event", Call: forkCall(rec.ID, 0)},
		{Do: "abort the run", Call: &Call{Tool: "workflow_abort", Arguments: map[string]any{"handle": rec.Handle}}},
	}
}

// StatusCall returns a call that asks for the status of a run, by its handle if known.
func StatusCall(r Ref) *Call {
	args := map[string]any{"handle": r.Handle}
	if r.Handle == "" {
		args = map[string]any{"runId": r.RunID}
	}
	return &Call{Tool: "workflow_status", Arguments: args}
}

// AskUser is the fix for an agent at a gate that it can answer for the user.
const AskUser = "ask the user and pass on their answer"

// ApprovalFix returns the fix that explains how a person gives a human approval if the
// client cannot show a form. page is the page of the run in the dashboard, or "" if no
// server is running.
func ApprovalFix(runID, page string) string {
	if page != "" {
		page = "in the dashboard, " + page + ", or "
	}
	return "ask the person to answer the gate " + page + "at a terminal, with guideway runs approve " + runID +
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
func (s *Service) newRefusalAt(ctx context.Context, r *engine.Refusal, rec Record, l *loadedRun) *Refusal {
	out := newRefusal(r)
	pos := l.program.PositionOf(l.state)
	out.RunID, out.Next = rec.ID, s.nextCallOf(ctx, rec, l, rec.Handle, pos)
	switch r.Rule {
	case engine.RuleCriteria:
		out.Fix = "fix the issues and submit the complete output with the same handle"
		out.Alternatives = honestAlternatives(rec)[1:] // The first alternative is already in Fix.
	case engine.RuleValidate:
		out.Fix = "do what the message asks for, then report the actual result with the same handle"
		out.Alternatives = honestAlternatives(rec)
	case engine.RulePlaceholder:
		out.Fix = "replace the placeholder with the actual content; next lists the fields"
	case engine.RuleContextTooDeep:
		out.Fix = "flatten the nested lists and objects, or store them in a file and put its path into the context"
	case engine.RuleContextTooLarge:
		out.Fix = "send fewer or shorter variables, or set ones that are no longer needed to null; store large texts in files and put their paths into the context"
	case engine.RuleEnded:
		out.Fix = "fork the run to continue from an earlier event, or start a new run"
		out.Next = &Call{Tool: "workflow_start", Arguments: map[string]any{"workflowId": rec.Workflow}}
	case engine.RuleDefinition:
		out.Fix = "abort the run, fix the error in the definition and start a new run"
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
