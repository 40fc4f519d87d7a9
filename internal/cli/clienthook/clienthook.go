// Package clienthook implements the command that clients start for their hooks.
package clienthook

import (
	"context"
	"path/filepath"
	"slices"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/clienthook"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/gateway/holds"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/spf13/cobra"
)

// Timeout bounds an answer. A store that is locked for longer is reported as an error.
const Timeout = 1500 * time.Millisecond

// Options is the command line of guideway client-hook.
type Options struct {
	App           *app.App
	Client, Event string
	// Timeout replaces the time limit of an answer in tests.
	Timeout time.Duration
}

// NewClientHookCmd returns the command that answers an event of a client.
func NewClientHookCmd(a *app.App) *cobra.Command {
	o := &Options{App: a, Timeout: Timeout}
	cmd := &cobra.Command{
		Use: "client-hook CLIENT EVENT",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := app.ExactArgs(2, "a client and an event", "guideway client-hook claude-code Stop < event.json")(cmd, args); err != nil {
				return err
			}
			o.Client, o.Event = args[0], args[1]
			return Run(cmd.Context(), o)
		},
	}
	// A usage error has the exit code 1, because a client blocks an event if it is 2.
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return guideway.Errorf(guideway.CodeInvalid, "%w", err).WithFix("%s --help", cmd.CommandPath())
	})
	return cmd
}

// Run answers an event.
func Run(ctx context.Context, o *Options) error {
	client, err := clienthook.FindClient(o.Client)
	if err != nil {
		return err
	}
	host := o.App.Host
	out := answer(ctx, o, client)
	if _, err := host.Err.Write(out.Err); err != nil {
		return err
	}
	_, err = host.Out.Write(out.Out)
	return err
}

func answer(ctx context.Context, o *Options, client clienthook.Client) clienthook.Output {
	cfg, person, err := o.App.LoadUser()
	if err != nil {
		return client.AllowUnread(err)
	}
	now := o.App.Host.Now
	if now == nil {
		now = time.Now
	}
	store := o.App.NewStore(cfg, nil)
	defer store.Close()
	h := &clienthook.Handler{
		Client:    client,
		Sessions:  &clienthook.Sessions{Dir: filepath.Join(cfg.DataDir, "client-sessions"), Now: now},
		Deny:      cfg.ClientHooks.OnError == config.HookDeny,
		StoreName: storeName(cfg),
		Timeout:   o.Timeout,
		Open: func(ctx context.Context) (clienthook.Runs, error) {
			if !app.HasStore(cfg) {
				return nil, guideway.Errorf(guideway.CodeUnavailable, "there is no store in %s", cfg.DataDir).
					WithFix("guideway install %s --hooks --env GUIDEWAY_DATA_DIR=DIR, with the data directory of the server", client.ID)
			}
			service, err := store.NewRuns(nil)
			if err != nil {
				return nil, err
			}
			if _, err := store.Open(ctx); err != nil {
				return nil, err
			}
			return &runs{service: service, calls: o.App.OpenHolds(cfg), caller: run.Caller{Principal: person, Via: run.ViaAgent}}, nil
		},
	}
	return h.Answer(ctx, o.Event, o.App.Host.In)
}

// storeName returns the store for reports, without its password.
func storeName(cfg *config.Config) string {
	if cfg.UsesPostgres() {
		return "the store " + cfg.RedactedStore()
	}
	return "the store of " + cfg.DataDir
}

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
