// Package machine implements the commands for agent machines.
package machine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/cli/server"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/hooks/approval"
	"github.com/guideway-dev/guideway/internal/hooks/sandbox"
	machinedef "github.com/guideway-dev/guideway/internal/machine/definition"
	"github.com/guideway-dev/guideway/internal/machine/driver"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/workflow/shape"
	"github.com/spf13/cobra"
)

func NewMachineCmd(a *app.App) *cobra.Command {
	return app.NewGroupCmd(&cobra.Command{
		Use:  "machine",
		Args: app.NoArgs,
	},
		app.NewPlainCmd(a, runMachineList, &cobra.Command{Use: "list"}), newMachineRunCmd(a, runMachineRun), newMachineStatusCmd(a, runMachineStatus),
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
	// A command that drives runs does so without a job. A server does not continue runs with a
	// model of this command, because it would use others.
	given, drives := models.(*server.MachineModels)
	parts := server.MachineDeps{
		Resolver: resolver, Models: models, Pool: pool, Tools: tools, Tracer: server.NewMachineTracer(a, cfg, tracer),
		Schedule: !drives, Attended: drives && given.Fixed != nil,
	}
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

// ShowMachine shows a machine of the resolver.
func (o *MachineShowOptions) ShowMachine(resolver *server.MachineResolver) error {
	one, err := resolver.Find(o.Name)
	if err != nil {
		return err
	}
	host, d := o.App.Host, one.Definition
	switch {
	case o.Graph != "" && !o.JSON:
		fmt.Fprint(host.Out, d.Mermaid())
	case o.JSON:
		return app.WriteJSON(host.Out, newMachineShowAnswer(one, o.Graph))
	default:
		return showMachine(host, one)
	}
	return nil
}

// machineShowAnswer is the answer of guideway machine show --json.
type machineShowAnswer struct {
	ID          string               `json:"id"`
	Name        string               `json:"name"`
	Description string               `json:"description"`
	Version     string               `json:"version"`
	Dialect     guideway.Dialect     `json:"dialect"`
	Hash        string               `json:"hash"`
	Source      string               `json:"source"`
	Path        string               `json:"path"`
	Revision    string               `json:"revision,omitempty"`
	Stale       bool                 `json:"stale,omitempty"`
	Overrides   []catalog.Overridden `json:"overrides,omitempty"`
	// Definition is the pinned content of the machine: its configuration, the roles of its
	// agents and its script.
	Definition json.RawMessage `json:"definition"`
	// Ways are the transitions between states, as far as they can be found without running
	// the handlers.
	Ways  []machinedef.Edge `json:"ways"`
	Graph *app.GraphOutput  `json:"graph,omitempty"`
}

func newMachineShowAnswer(one *server.ResolvedMachine, graph string) machineShowAnswer {
	d := one.Definition
	a := machineShowAnswer{
		ID: d.Name, Name: d.Name, Description: d.Description, Version: d.Version, Dialect: guideway.DialectMachines, Hash: d.Hash,
		Source: one.Source, Path: one.Path, Revision: one.Revision, Stale: one.Stale, Overrides: one.Overrides,
		Definition: json.RawMessage(d.Canonical), Ways: d.Edges(),
	}
	if graph != "" {
		a.Graph = &app.GraphOutput{Format: graph, Text: d.Mermaid()}
	}
	return a
}

func newMachineApproveCmd(a *app.App) *cobra.Command {
	o := &app.NameOptions{App: a}
	return &cobra.Command{
		Use:               "approve NAME",
		Args:              app.ExactArgs(1, "the name of a machine", "guideway machine approve triage"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              app.RunWithArg(runMachineApprove, o, &o.Name),
	}
}

func runMachineApprove(ctx context.Context, o *app.NameOptions) error {
	if err := o.App.Host.RequireTerminal(); err != nil {
		return app.UsageError{Err: err}
	}
	cfg, resolver, err := server.OpenMachineResolver(ctx, o.App)
	if err != nil {
		return err
	}
	one, err := resolver.Find(o.Name)
	if err != nil {
		return err
	}
	out := o.App.Host.Out
	if one.SourceInfo == nil || !server.NeedsApproval(*one.SourceInfo) {
		fmt.Fprintf(out, "The machine %s needs no approval: its source is trusted, or it was named by its file.\n", app.OneLine(one.Name))
		return nil
	}
	person := app.NewApprover(o.App.Host, cfg)
	if d := shape.HiddenCharacter(one.Definition.ScriptFile, one.Definition.Script); d != nil {
		return guideway.Errorf(guideway.CodeInvalidDefinition, "%s:%d:%d: %s", d.File, d.Line, d.Column, d.Message).WithFix("%s", d.Fix)
	}
	if err := showMachine(o.App.Host, one); err != nil {
		return err
	}
	fmt.Fprintln(out)
	if err := person.ConfirmName(ctx, "machine", "name", one.Name); err != nil {
		return err
	}
	who, err := app.LocalUser(cfg)
	if err != nil {
		return err
	}
	key := server.MachineApprovalKey(*one.SourceInfo, one.Name)
	if err := o.App.PutApproval(ctx, cfg, approval.Record{Kind: key.Kind, Source: key.Source, Subject: key.Subject, Hash: one.Definition.Hash, Who: who}); err != nil {
		return err
	}
	fmt.Fprintf(out, "Approved %s.\n", app.OneLine(one.Name))
	return nil
}

// VerifyMachines verifies the machine journal. If there is no journal, it returns an empty
// report, or an error for an id. If restored is set, the current state is first accepted as
// the valid history.
func VerifyMachines(ctx context.Context, a *app.App, cfg *config.Config, id string, restored bool) (*run.Report, error) {
	own := server.MachineConfig(cfg)
	switch there := HasMachineStore(own); {
	case !there && id != "":
		return nil, guideway.Errorf(guideway.CodeNotFound, "there is no machine run %q", id).WithFix("guideway machine status")
	case !there:
		return &run.Report{}, nil
	}
	store, err := server.OpenMachineStore(ctx, cfg, "", server.MachineDeps{}, a.Logger(cfg))
	if err != nil {
		return nil, err
	}
	defer store.Close()
	if restored {
		if err := store.Runs.AcceptRestore(ctx); err != nil {
			return nil, err
		}
	}
	return store.Runs.Verify(ctx, id)
}

// HasMachineStore reports whether there may be a machine journal. It also returns true if
// only the head file is left, so that verifying reports the missing journal.
func HasMachineStore(own *config.Config) bool {
	if own.UsesPostgres() {
		return true
	}
	for _, path := range []string{app.StorePath(own), app.HeadsPath(own)} {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			return true
		}
	}
	return false
}

// IsMachineRun reports whether an id is the id of a machine run.
func IsMachineRun(id string) bool { return strings.HasPrefix(id, driver.RunPrefix) }
