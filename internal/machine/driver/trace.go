package driver

import (
	"context"
	"errors"

	machineengine "github.com/guideway-dev/guideway/internal/machine/engine"
	"github.com/guideway-dev/guideway/internal/machine/llm"
)

// Tracer records spans of a run. It must neither fail nor block.
type Tracer interface {
	// Begin starts a span. The activity runs in the returned context. end is called once,
	// after the activity.
	Begin(ctx context.Context, a Activity) (inner context.Context, end func(ActivityResult))
}

// ActivityKind is the kind of an Activity.
type ActivityKind string

// The kinds: the drive of a run, a state within it, and a model request or tool call within
// a state.
const (
	ActivityRun   ActivityKind = "run"
	ActivityState ActivityKind = "state"
	ActivityModel ActivityKind = "model"
	ActivityTool  ActivityKind = "tool"
)

// Activity is a timed part of a run.
type Activity struct {
	Kind ActivityKind
	// Run and Machine identify the run, Parent its parent run.
	Run, Machine, Parent string
	// State and Agent are empty for a run; Agent also for a state without an agent.
	State, Agent string
	// Attempt counts the attempts from 1.
	Attempt int
	// Provider and Request describe a model request.
	Provider string
	Request  *llm.Request
	// Tool is the tool call.
	Tool *machineengine.ToolCall
}

// ActivityResult is the outcome of an Activity.
type ActivityResult struct {
	// Status and Pause are the status of the run after the activity.
	Status machineengine.Status
	Pause  *machineengine.Pause
	// Response is the answer of a model, Result the result of a tool.
	Response *llm.Response
	Result   *machineengine.ToolResult
	// Err is the error of a failed activity.
	Err error
}

// beginActivity reports an activity to the tracer, if there is one.
func (d *drive) beginActivity(ctx context.Context, a Activity) (inner context.Context, end func(ActivityResult)) {
	if d.s.o.Tracer == nil {
		return ctx, func(ActivityResult) {}
	}
	a.Run, a.Machine, a.Parent = d.l.rec.ID, d.l.rec.Workflow, d.l.rec.Parent
	if a.Kind != ActivityRun {
		a.State = d.l.state.At
	}
	return d.s.o.Tracer.Begin(ctx, a)
}

// endingOf returns the ActivityResult for the end of a run or a state.
func (d *drive) endingOf(err error) ActivityResult {
	if errors.Is(err, errCancelled) {
		return ActivityResult{Status: machineengine.StatusCancelled}
	}
	return ActivityResult{Status: d.l.state.Status, Pause: d.l.state.Pause, Err: err}
}

// traceStates traces the states of the run. inner returns the context of the current state,
// and end ends the last span.
func (d *drive) traceStates(ctx context.Context) (inner func() context.Context, end func(error)) {
	at, visited, over := ctx, 0, func(ActivityResult) {}
	inner = func() context.Context {
		if n := len(d.l.state.Visited); n != visited {
			over(ActivityResult{Status: d.l.state.Status})
			visited = n
			at, over = d.beginActivity(ctx, Activity{Kind: ActivityState, Agent: agentOf(d.l)})
		}
		return at
	}
	return inner, func(err error) { over(d.endingOf(err)) }
}
