// Package clienthook answers the hooks of MCP clients (DESIGN section 16): a client reports
// the events of a session, such as a call of a tool or the end of a turn, and Guideway
// answers whether it may go on. A session is bound to the runs that its calls
// start, continue or fork. A session without a run is never affected.
//
// The hooks are commands that the client starts for each event. A process answers one event
// and ends, so the binding of a session is a file.
package clienthook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/platform/textpart"
	"github.com/guideway-dev/guideway/internal/workflow/toolpolicy"
)

// Kind is the kind of an event. Clients have different names for the same kind.
type Kind string

// The kinds of events.
const (
	// KindStop is the end of a turn of the agent, and KindSubagentStop that of a subagent.
	KindStop         Kind = "stop"
	KindSubagentStop Kind = "subagent-stop"
	// KindBeforeTool precedes a call of a tool, and KindAfterTool follows it.
	KindBeforeTool Kind = "before-tool"
	KindAfterTool  Kind = "after-tool"
	// KindSessionStart is the start of a session, also after its context was compacted.
	KindSessionStart Kind = "session-start"
	// KindCompaction precedes the compaction of the context of a session.
	KindCompaction Kind = "compaction"
)

// Event is an event of a client, in a form that is independent of the client.
type Event struct {
	Kind Kind
	// Name is the name that the client has for the event.
	Name string
	// Session identifies the session, and Agent the subagent in it, or is empty.
	Session, Agent string
	// Tool, Arguments and Result describe a call. A tool of an MCP server is named
	// mcp__SERVER__TOOL if the client reports its server.
	Tool              string
	Arguments, Result json.RawMessage
	// Cut reports that the event is broken or too large, so that Arguments may be missing.
	Cut bool
	// Continued reports whether the turn that ends was caused by the refusal of a stop.
	Continued bool
	// Interrupted reports whether the user or an error has ended the turn.
	Interrupted bool
}

// Answer is the answer to an event. The zero value lets the client go on.
type Answer struct {
	// Verdict decides a call that the event precedes.
	Verdict toolpolicy.Verdict
	// Refused reports that the agent must not stop.
	Refused bool
	// Reason explains the verdict or the refusal to the agent.
	Reason string
	// Context is a text for the agent.
	Context string
	// Notice is a text for the person.
	Notice string
}

// Run is the part of a run that an answer needs.
type Run struct {
	ID, Handle     string
	Workflow, Goal string
	Status         engine.Status
	Position       engine.Position
	// HeldCall reports that a held call of the run's client waits for a person. It is only
	// set to decide on a stop.
	HeldCall bool
}

// isEnded reports whether the run accepts no more input.
func (r *Run) isEnded() bool {
	return r.Status == engine.StatusCompleted || r.Status == engine.StatusAborted
}

// waitsForPerson reports whether the agent cannot continue the run: a person must answer a
// gate or a held call, or no input continues it.
func (r *Run) waitsForPerson() bool {
	return r.HeldCall || r.Position.Kind == engine.PositionGate || r.Position.Person || r.Position.DeadEnd
}

// Runs are the runs of the user. Its methods return CodeNotFound for a run that does not
// exist or belongs to another user.
type Runs interface {
	// Find returns the run of a handle.
	Find(ctx context.Context, handle string) (*Run, error)
	// Load returns the run with an id.
	Load(ctx context.Context, id string) (*Run, error)
	// LastSteps returns the last completed steps of a run, oldest first.
	LastSteps(ctx context.Context, id string) ([]CompletedStep, error)
	// HasHeldCall reports whether a held call of a client with this open run waits for a
	// person.
	HasHeldCall(ctx context.Context, id string) (bool, error)
	// RecordHooked records that a hook of a client reports for the run.
	RecordHooked(ctx context.Context, id, client string) error
	// RecordStop records that the client stopped. refusals is the number of stops that were
	// refused before.
	RecordStop(ctx context.Context, id, client string, refusals int) error
}

// CompletedStep is a step with its output.
type CompletedStep struct{ Step, Output string }

// Handler answers the events of one client.
type Handler struct {
	Client Client
	// Sessions stores the runs of sessions.
	Sessions *Sessions
	// Open opens the runs. It is called only for a session with a run, or to bind one.
	Open func(context.Context) (Runs, error)
	// Deny reports that an event that cannot be answered because of an error is denied. It
	// is allowed otherwise.
	Deny bool
	// StoreName describes the store in reports.
	StoreName string
	// Timeout bounds the time that an answer takes. Zero means no limit.
	Timeout time.Duration
}

// maxInput is the maximum size of an event in bytes. The rest of a larger event is read up to
// maxRest, because a client ignores the answer of a hook that does not read its input.
const (
	maxInput = 8 << 20
	maxRest  = 256 << 20
)

// Output is what the process of a hook writes. Its exit code is always 0, because clients
// have different meanings for others.
type Output struct{ Out, Err []byte }

// Answer answers an event that it reads from in. name is the event in the configuration of
// the client.
func (h *Handler) Answer(ctx context.Context, name string, in io.Reader) Output {
	if h.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, h.Timeout)
		defer cancel()
	}
	ev, readErr := h.Client.readEvent(name, in)
	if ev.Kind == "" {
		return h.Client.format(ev, Answer{}, readErr)
	}
	session, err := h.Sessions.Load(h.Client.ID, ev.Session)
	switch {
	case readErr != nil && session == nil && err == nil:
		return h.Client.format(ev, Answer{}, readErr) // the session has no run
	case err != nil:
		return h.answerError(ev, err)
	case readErr != nil:
		// The policy applies even if the event could only be read in part: otherwise an
		// agent could bypass it with a call that is too large.
		if ev.Kind == KindBeforeTool && ev.Tool != "" {
			if a, err := h.answerBeforeTool(ctx, ev, session); err == nil && a.Verdict != toolpolicy.Allowed {
				return h.Client.format(ev, a, readErr)
			}
		}
		return h.answerError(ev, readErr)
	}
	a, err := h.decide(ctx, ev, session)
	if err != nil {
		return h.answerError(ev, err)
	}
	return h.Client.format(ev, a, nil)
}

// decide returns the answer to an event. session is nil if the session has no run.
func (h *Handler) decide(ctx context.Context, ev Event, session *Session) (Answer, error) {
	if ev.Kind == KindAfterTool {
		return h.answerAfterTool(ctx, ev, session)
	}
	if session == nil {
		return Answer{}, nil
	}
	switch ev.Kind {
	case KindBeforeTool:
		return h.answerBeforeTool(ctx, ev, session)
	case KindStop, KindSubagentStop:
		return h.answerStop(ctx, ev, session)
	case KindSessionStart:
		return h.restateRuns(ctx, session)
	default:
		return h.answerCompaction(ctx, ev, session)
	}
}

// answerError returns the answer to an event of a session that may have a run, if an error
// prevents a decision. A stop is refused once, so that a store that stays unreadable cannot
// hold the agent.
func (h *Handler) answerError(ev Event, err error) Output {
	text := "Guideway cannot check this " + ev.describe() + ": " + err.Error()
	if errors.Is(err, context.DeadlineExceeded) {
		text = fmt.Sprintf("Guideway cannot check this %s within %s: %v", ev.describe(), h.Timeout, err)
	} else if fix := guideway.ErrorFix(err); fix != "" {
		text += "; try: " + fix
	}
	var a Answer
	switch {
	case !h.Deny:
		text += ". The " + ev.describe() + " is allowed, because clientHooks.onError is allow."
	case ev.Kind == KindBeforeTool:
		text += ". The call is denied, because clientHooks.onError is deny."
		a.Verdict, a.Reason = toolpolicy.Denied, text
	case (ev.Kind == KindStop || ev.Kind == KindSubagentStop) && !ev.Continued && !ev.Interrupted:
		text += ". The stop is refused once, because clientHooks.onError is deny."
		a.Refused, a.Reason = true, text
	default:
		text += ". The " + ev.describe() + " cannot be denied and continues."
	}
	a.Notice = text
	return h.Client.format(ev, a, nil)
}

// describe returns the event in words.
func (ev Event) describe() string {
	switch ev.Kind {
	case KindStop, KindSubagentStop:
		return "stop"
	case KindBeforeTool, KindAfterTool:
		return "call of " + clip(ev.Tool, 100)
	case KindSessionStart:
		return "start of the session"
	default:
		return "compaction"
	}
}

// clip shortens a text to at most a number of bytes of whole characters.
func clip(text string, most int) string { return textpart.Shorten(text, most) }
