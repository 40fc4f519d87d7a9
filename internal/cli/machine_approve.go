package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/guideway-dev/guideway/internal/approval"
	"github.com/guideway-dev/guideway/internal/authn"
	"github.com/spf13/cobra"
)

// machineApproveOptions is the command line of guideway machine approve.
type machineApproveOptions struct {
	app  *app
	Name string
}

func newMachineApproveCmd(a *app, run func(context.Context, *machineApproveOptions) error) *cobra.Command {
	o := &machineApproveOptions{app: a}
	return &cobra.Command{
		Use:   "approve NAME",
		Short: "Let a machine of a project, repository, registry or package run its script",
		Long: `Let a machine run that came with a project, a repository, a registry or an npm package. It is shown,
and you approve exactly that, at a terminal: where the machine or its script changes, it is
refused until you approve it again. Machines of a source that is trusted need no approval.`,
		Example:           "  guideway machine approve triage",
		Args:              exactly(1, "one machine, by name", "guideway machine approve triage"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              runWithArg(run, o, &o.Name),
	}
}

func runMachineApprove(ctx context.Context, o *machineApproveOptions) error {
	if err := o.app.host.asksPeople(); err != nil {
		return usageError{err: err}
	}
	cfg, shelf, err := o.app.openShelf(ctx)
	if err != nil {
		return err
	}
	one, err := shelf.find(o.Name)
	if err != nil {
		return err
	}
	out := o.app.host.Out
	if one.from == nil || !isReviewed(*one.from) {
		fmt.Fprintf(out, "%s needs no approval.\n", oneLine(one.Name))
		return nil
	}
	person := newApprover(o.app.host, cfg)
	fmt.Fprintf(out, "%s, from %s (%s)\n\n", oneLine(one.Name), oneLine(one.from.Name), oneLine(one.Path))
	for line := range strings.SplitSeq(one.Definition.Script, "\n") {
		fmt.Fprintf(out, "  %s\n", printable(line))
	}
	fmt.Fprintln(out)
	if err := person.confirmName(ctx, "machine", "name", one.Name); err != nil {
		return err
	}
	who, err := authn.SystemUser()
	if err != nil {
		return err
	}
	store, err := openApprovals(cfg, o.app.host.currentTime)
	if err != nil {
		return err
	}
	key := machineKey(*one.from, one.Name)
	if _, err := store.Put(ctx, approval.Record{Kind: key.Kind, Source: key.Source, Subject: key.Subject, Hash: one.Definition.Hash, Who: who}); err != nil {
		return err
	}
	fmt.Fprintf(out, "Approved %s.\n", oneLine(one.Name))
	return nil
}
