package upstream

import "github.com/guideway-dev/guideway/internal/cli/app"

import "github.com/guideway-dev/guideway/internal/cli/server"

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/audit"
	"github.com/guideway-dev/guideway/internal/config"
	gatewayadmin "github.com/guideway-dev/guideway/internal/gateway/admin"
	"github.com/guideway-dev/guideway/internal/gateway/pins"
	"github.com/spf13/cobra"
)

type upstreamApproveOptions struct {
	app   *app.App
	Name  string
	Tools []string
	Diff  bool
	JSON  bool
}

// upstreamApproved is the answer of guideway upstream approve --json.
type upstreamApproved struct {
	app.ChangeResult
	// Tools are the reviewed tools, prompts, templates and pages with their differences.
	Tools []gatewayadmin.Waiting `json:"tools"`
}

func newUpstreamApproveCmd(a *app.App, run func(context.Context, *upstreamApproveOptions) error) *cobra.Command {
	o := &upstreamApproveOptions{app: a}
	cmd := &cobra.Command{
		Use: "approve NAME [TOOL...]",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return app.UsageError{Err: guideway.Errorf(guideway.CodeInvalid, "the name of an upstream is required").WithFix("guideway upstream approve files")}
			}
			return nil
		},
		ValidArgsFunction: server.CompleteUpstreams(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name, o.Tools = args[0], args[1:]
			if !o.Diff {
				if err := a.Host.RequireTerminal(); err != nil {
					return app.UsageError{Err: err}
				}
			}
			return run(cmd.Context(), o)
		},
	}
	app.AddChangeFlag(cmd, &o.JSON)
	cmd.Flags().BoolVar(&o.Diff, "diff", false, "show the differences without approving them")
	return cmd
}

func runUpstreamApprove(ctx context.Context, o *upstreamApproveOptions) error {
	cfg, u, err := loadUpstream(o.app, o.Name)
	if err != nil {
		return err
	}
	c, err := queryUpstream(ctx, o.app, cfg, u)
	if err != nil {
		return err
	}
	store := server.NewPinStore(o.app, cfg)
	waiting, err := pins.Review(store, c, u.Name)
	if err != nil {
		return err
	}
	waiting, err = selectTools(waiting, o.Tools)
	if err != nil {
		return err
	}
	host := o.app.Host
	answer := upstreamApproved{ChangeResult: app.ChangeResult{Action: "reviewed", Kind: app.KindUpstream, Name: u.Name}, Tools: []gatewayadmin.Waiting{}}
	for _, w := range waiting {
		answer.Tools = append(answer.Tools, gatewayadmin.WaitingOf(u.Name, w))
	}
	if len(waiting) == 0 {
		return host.WriteChange(o.JSON, answer, "No differences from the approved versions.")
	}
	out := host.Out
	if o.JSON {
		out = host.Err
	}
	if o.Diff && o.JSON {
		return app.WriteJSON(host.Out, answer)
	}
	for _, w := range waiting {
		fmt.Fprintf(out, "%s (%s)\n%s\n", app.OneLine(w.Tool), w.Why, app.EscapeText(w.Diff()))
	}
	if o.Diff {
		return nil
	}
	if err := o.confirmApproval(ctx, cfg, len(waiting)); err != nil {
		return err
	}
	by, err := app.LocalUser(cfg)
	if err != nil {
		return err
	}
	if err := pins.Accept(store, u.Name, by, waiting); err != nil {
		return err
	}
	for _, w := range waiting {
		o.app.RecordCommand(ctx, cfg, audit.Approval, u.Name+" "+w.Tool, string(w.Why))
	}
	answer.Action, answer.Changed = "approved", true
	return host.WriteChange(o.JSON, answer, app.Plural(len(waiting), "change is", "changes are")+" approved. Running servers apply the approval immediately.")
}

// confirmApproval asks the user to confirm.
func (o *upstreamApproveOptions) confirmApproval(ctx context.Context, cfg *config.Config, changes int) error {
	host := o.app.Host
	person := app.NewApprover(host, cfg)
	said, err := person.AskLine(ctx, fmt.Sprintf("Approve %s? Type yes: ", app.Plural(changes, "change", "changes")))
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if strings.TrimSpace(said) != "yes" {
		return guideway.Errorf(guideway.CodeRefused, "nothing was approved: %q is not yes", strings.TrimSpace(said)).WithFix("run the command again, and type yes")
	}
	return person.CheckPassphraseIfSet(ctx)
}

// selectTools returns the changes with these names, or all changes if no name is given.
func selectTools(waiting []pins.Waiting, names []string) ([]pins.Waiting, error) {
	if len(names) == 0 {
		return waiting, nil
	}
	for _, name := range names {
		if !slices.ContainsFunc(waiting, func(w pins.Waiting) bool { return w.Tool == name }) {
			return nil, guideway.Errorf(guideway.CodeNotFound, "no change of %q waits for approval", name).WithFix("omit the names to review all changes that wait")
		}
	}
	return slices.DeleteFunc(waiting, func(w pins.Waiting) bool { return !slices.Contains(names, w.Tool) }), nil
}
