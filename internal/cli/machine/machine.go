// Package machine implements the commands for agent machines.
package machine

import "github.com/guideway-dev/guideway/internal/cli/app"

import "github.com/guideway-dev/guideway/internal/cli/server"

import (
	"context"
	"encoding/json"

	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/hooks/sandbox"
	"github.com/guideway-dev/guideway/internal/machine/driver"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/spf13/cobra"
)

func NewMachineCmd(a *app.App) *cobra.Command {
	return app.NewGroupCmd(&cobra.Command{
		Use:   "machine",
		Short: "Run and inspect agent machines",
		Long: `An agent machine is a state machine of several agents with roles and shared
conversations; the functions of a script choose the transitions. Each step of a run is
recorded: after a crash the run resumes at the first unfinished step, and no recorded
answer of a model is requested again.

A machine is a file NAME.json with NAME/script.js and NAME/roles.json next to it, or a
directory NAME with machine.json, script.js and roles.json, in the directory "machines"
of any source of workflows.`,
		Example: `  guideway machine list
  guideway machine run code-and-review --demo
  guideway machine run support-desk --input request="Where is my order?"
  guideway machine status`,
		Args: app.NoArgs,
	},
		newMachineListCmd(a), newMachineRunCmd(a, runMachineRun), newMachineStatusCmd(a, runMachineStatus),
		newMachineInputCmd(a, runMachineInput), newMachineResumeCmd(a, runMachineResume), newMachineCancelCmd(a, runMachineCancel),
		newMachineForkCmd(a, runMachineFork), newMachineReplayCmd(a, runMachineReplay), newMachineShowCmd(a, runMachineShow), newMachineValidateCmd(a, runMachineValidate),
		newMachineApproveCmd(a),
	)
}

// machineDeps are the dependencies of a command on machines.
type machineDeps struct {
	app      *app.App
	cfg      *config.Config
	resolver *server.MachineResolver
	runs     *driver.Service
	caller   run.Caller
	here     run.Project
}

// withMachines opens the machine store for one command.
func withMachines(ctx context.Context, a *app.App, models driver.Models, do func(context.Context, *machineDeps) error) error {
	cfg, person, err := a.LoadUser()
	if err != nil {
		return err
	}
	log := a.Logger(cfg)
	pool, err := sandbox.NewPool(sandbox.Options{Log: log})
	if err != nil {
		return err
	}
	defer server.ClosePool(pool, log)
	resolver, err := server.NewMachineResolver(ctx, a, cfg)
	if err != nil {
		return err
	}
	tools, closeTools := server.NewCommandTools(ctx, a, cfg)
	defer closeTools()
	tracer := server.NewTracer(a, cfg)
	defer server.CloseTracer(tracer)
	parts := server.MachineDeps{Resolver: resolver, Models: models, Pool: pool, Tools: tools, Tracer: server.NewMachineTracer(a, cfg, tracer)}
	store, err := server.OpenMachineStore(ctx, cfg, person.User, parts, log)
	if err != nil {
		return err
	}
	defer store.Close()
	return do(ctx, &machineDeps{
		app: a, cfg: cfg, resolver: store.Resolver, runs: store.Runs, here: a.Host.Project(),
		caller: run.Caller{Principal: person, Via: run.ViaAgent},
	})
}

// quoteJSON writes a text as JSON.
func quoteJSON(text string) json.RawMessage {
	out, err := json.Marshal(text)
	if err != nil {
		return json.RawMessage(`""`) // cannot happen for a string
	}
	return out
}
