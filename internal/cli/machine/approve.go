package machine

import "github.com/guideway-dev/guideway/internal/cli/app"

import "github.com/guideway-dev/guideway/internal/cli/server"

import (
	"context"
	"fmt"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/hooks/approval"
	"github.com/guideway-dev/guideway/internal/workflow/shape"
	"github.com/spf13/cobra"
)

func newMachineApproveCmd(a *app.App) *cobra.Command {
	o := &app.NameOptions{App: a}
	return &cobra.Command{
		Use:   "approve NAME",
		Short: "Approve a machine and its script",
		Long: `Approve a machine from a project, a repository, a registry or an npm package. The command
shows all of the machine (states, budgets, the messages and tools of its roles, its script)
and asks for confirmation at a terminal. If any of it changes, the machine is refused until
you approve it again. Machines from a trusted source need no approval.`,
		Example:           "  guideway machine approve triage",
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
	store, err := app.OpenApprovals(cfg, o.App.Host.CurrentTime)
	if err != nil {
		return err
	}
	key := server.MachineApprovalKey(*one.SourceInfo, one.Name)
	if _, err := store.Put(ctx, approval.Record{Kind: key.Kind, Source: key.Source, Subject: key.Subject, Hash: one.Definition.Hash, Who: who}); err != nil {
		return err
	}
	fmt.Fprintf(out, "Approved %s.\n", app.OneLine(one.Name))
	return nil
}
