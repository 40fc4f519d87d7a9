package cli

import (
	"context"
	"encoding/json"

	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/machine/driver"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/script"
	"github.com/spf13/cobra"
)

func newMachineCmd(a *app) *cobra.Command {
	return newGroupCmd(&cobra.Command{
		Use:   "machine",
		Short: "Run agent machines: several agents, led through states by a script",
		Long: `Run agent machines: several agents with roles and shared conversations, led through
states by the functions of a script. A run is kept step by step; after a crash it
goes on where it was, and no answer of a model is paid for twice.

A machine is NAME.json with NAME/script.js and NAME/roles.json beside it, or a
directory NAME with machine.json, script.js and roles.json, in the directory
"machines" of any source of workflows.`,
		Example: `  guideway machine list
  guideway machine run code-and-review --demo
  guideway machine run support-desk --input request="Where is my order?"
  guideway machine status`,
		Args: noArgs,
	},
		newMachineListCmd(a), newMachineRunCmd(a, runMachineRun), newMachineStatusCmd(a, runMachineStatus),
		newMachineInputCmd(a, runMachineInput), newMachineResumeCmd(a, runMachineResume), newMachineCancelCmd(a, runMachineCancel),
		newMachineForkCmd(a, runMachineFork), newMachineReplayCmd(a, runMachineReplay), newMachineShowCmd(a, runMachineShow), newMachineValidateCmd(a, runMachineValidate),
		newMachineApproveCmd(a, runMachineApprove),
	)
}

// machineDesk is what a command on machines works with.
type machineDesk struct {
	app    *app
	cfg    *config.Config
	shelf  *machineShelf
	runs   *driver.Service
	caller run.Caller
	here   run.Project
}

// withMachines opens the store of machines for one command.
func (a *app) withMachines(ctx context.Context, models driver.Models, do func(context.Context, *machineDesk) error) error {
	cfg, person, err := a.loadUser()
	if err != nil {
		return err
	}
	log := a.logger(cfg)
	pool, err := script.NewPool(script.Options{Log: log})
	if err != nil {
		return err
	}
	defer closePool(pool, log)
	shelf, err := a.newMachineShelf(ctx, cfg)
	if err != nil {
		return err
	}
	tools, closeTools := a.toolsOfCommand(ctx, cfg)
	defer closeTools()
	tracer := a.newTracer(cfg)
	defer closeTracer(tracer)
	parts := machineParts{shelf, models, pool, tools, a.newMachineTracer(cfg, tracer)}
	store, err := openMachineStore(ctx, cfg, person.User, parts, log)
	if err != nil {
		return err
	}
	defer store.close()
	return do(ctx, &machineDesk{
		app: a, cfg: cfg, shelf: store.shelf, runs: store.runs, here: a.host.project(),
		caller: run.Caller{Principal: person, Via: run.ViaAgent},
	})
}

// exitOf is the exit code of a command that has led a run to a status.
func exitOf(s *driver.Status) error {
	if s.Pause != nil || s.Status == "cancelled" {
		return silentError{exitFailed}
	}
	return nil
}

// quoteJSON writes a text as JSON.
func quoteJSON(text string) json.RawMessage {
	out, err := json.Marshal(text)
	if err != nil {
		return json.RawMessage(`""`) // a text can always be written
	}
	return out
}
