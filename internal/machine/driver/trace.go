package driver

import (
	"context"
	"errors"

	machineengine "github.com/guideway-dev/guideway/internal/machine/engine"
	"github.com/guideway-dev/guideway/internal/machine/llm"
)

// Tracer makes spans of what runs do. It must neither fail nor wait: a run goes on
// whatever becomes of its traces.
type Tracer interface {
	// Begin tells that something begins. It is done in the context that is given
	// back, and end is called once, when it is over.
	Begin(ctx context.Context, a Activity) (inner context.Context, end func(Ending))
}

// ActivityKind says what an Activity is.
type ActivityKind string

// The kinds: a drive of a run, a state within it, a request to a model and a call of
// a tool within that.
const (
	ActivityRun   ActivityKind = "run"
	ActivityState ActivityKind = "state"
	ActivityModel ActivityKind = "model"
	ActivityTool  ActivityKind = "tool"
)

// Activity is something that a run does for some time.
type Activity struct {
	Kind ActivityKind
	// Run and Machine are whose it is, Parent the run around that one.
	Run, Machine, Parent string
	// State and Agent are where; a run has none, and not every state has an agent.
	State, Agent string
	// Attempt counts from 1 what is done again.
	Attempt int
	// Provider and Request are those of a model's request.
	Provider string
	Request  *llm.Request
	// Tool is the call of a tool.
	Tool *machineengine.ToolCall
}

// Ending is what came of an Activity.
type Ending struct {
	// Status is where a run, or the run of a state, stands, Pause why it rests.
	Status machineengine.Status
	Pause  *machineengine.Pause
	// Response is the answer of a model, Result that of a tool.
	Response *llm.Response
	Result   *machineengine.ToolResult
	// Err is why it failed.
	Err error
}

// begin tells the tracer, if there is one.
func (d *drive) begin(ctx context.Context, a Activity) (inner context.Context, end func(Ending)) {
	if d.s.o.Tracer == nil {
		return ctx, func(Ending) {}
	}
	a.Run, a.Machine, a.Parent = d.l.rec.ID, d.l.rec.Workflow, d.l.rec.Parent
	if a.Kind != ActivityRun {
		a.State = d.l.state.At
	}
	return d.s.o.Tracer.Begin(ctx, a)
}

// stands is the end of an activity of the run, or of a state.
func (d *drive) stands(err error) Ending {
	if errors.Is(err, errCancelled) {
		return Ending{Status: machineengine.StatusCancelled}
	}
	return Ending{Status: d.l.state.Status, Pause: d.l.state.Pause, Err: err}
}

// states follows the run from state to state: inner gives the context of the one that
// it is in, and end tells that the drive is over.
func (d *drive) states(ctx context.Context) (inner func() context.Context, end func(error)) {
	at, visited, over := ctx, 0, func(Ending) {}
	inner = func() context.Context {
		if n := len(d.l.state.Visited); n != visited {
			over(Ending{Status: d.l.state.Status})
			visited = n
			at, over = d.begin(ctx, Activity{Kind: ActivityState, Agent: agentOf(d.l)})
		}
		return at
	}
	return inner, func(err error) { over(d.stands(err)) }
}
