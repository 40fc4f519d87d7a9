package clienthook

import (
	"context"
	"slices"
	"time"

	"github.com/guideway-dev/guideway/internal/clienthook"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/gateway/holds"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"github.com/guideway-dev/guideway/internal/run"
)

// The limits of the steps that are restated: of the steps in the last maxLastEvents events,
// the last maxLastSteps.
const (
	maxLastEvents = 40
	maxLastSteps  = 3
)

// runs implements clienthook.Runs on the run service.
type runs struct {
	service *run.Service
	calls   *holds.Store
	caller  run.Caller
}

var _ clienthook.Runs = (*runs)(nil)

// Find implements clienthook.Runs.
func (r *runs) Find(ctx context.Context, handle string) (*clienthook.Run, error) {
	return r.load(ctx, run.Ref{Handle: handle})
}

// Load implements clienthook.Runs.
func (r *runs) Load(ctx context.Context, id string) (*clienthook.Run, error) {
	return r.load(ctx, run.Ref{RunID: id})
}

func (r *runs) load(ctx context.Context, ref run.Ref) (*clienthook.Run, error) {
	d, err := r.service.Get(ctx, r.caller, ref)
	if err != nil {
		return nil, err
	}
	return &clienthook.Run{
		ID: d.ID, Handle: d.Current, Workflow: d.Workflow, Goal: d.Goal, Status: d.Status, Position: d.Position,
	}, nil
}

// LastSteps implements clienthook.Runs.
func (r *runs) LastSteps(ctx context.Context, id string) ([]clienthook.CompletedStep, error) {
	d, err := r.service.Get(ctx, r.caller, run.Ref{RunID: id})
	if err != nil {
		return nil, err
	}
	events, err := r.service.Events(ctx, r.caller, run.Ref{RunID: id}, d.Seq-maxLastEvents, maxLastEvents)
	if err != nil {
		return nil, err
	}
	var steps []clienthook.CompletedStep
	for _, e := range events {
		var fact engine.Event
		if e.Kind == string(engine.EventStepCompleted) && jsontext.Decode(e.Data, &fact) == nil {
			steps = append(steps, clienthook.CompletedStep{Step: fact.Step, Output: fact.Output})
		}
	}
	return steps[max(0, len(steps)-maxLastSteps):], nil
}

// HasHeldCall implements clienthook.Runs.
func (r *runs) HasHeldCall(_ context.Context, id string) (bool, error) {
	waiting, err := r.calls.WaitingSince(time.Time{})
	return slices.ContainsFunc(waiting, func(c holds.Call) bool { return c.User == r.caller.User && slices.Contains(c.Runs, id) }), err
}

// RecordHooked implements clienthook.Runs.
func (r *runs) RecordHooked(ctx context.Context, id, client string) error {
	return r.service.RecordHooked(ctx, r.caller, run.Ref{RunID: id}, client)
}

// RecordStop implements clienthook.Runs.
func (r *runs) RecordStop(ctx context.Context, id, client string, refusals int) error {
	return r.service.RecordStop(ctx, r.caller, run.Ref{RunID: id}, client, refusals)
}
