package checks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/audit"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/evidence/checksfile"
	"github.com/guideway-dev/guideway/internal/hooks/approval"
	"github.com/guideway-dev/guideway/internal/workflow/criteria"
	"github.com/spf13/cobra"
)

// approveOptions is the command line of guideway checks approve.
type approveOptions struct {
	app   *app.App
	Names []string
	All   bool
	// Run is the id of the run whose changes of protected files are reviewed.
	Run  string
	JSON bool
}

// approveAnswer is the answer of guideway checks approve --json.
type approveAnswer struct {
	Workspace string `json:"workspace"`
	Changed   bool   `json:"changed"`
	// Approved, Declined and Removed are the names of the reviewed checks. The approval of a
	// removed check is deleted.
	Approved []string `json:"approved"`
	Declined []string `json:"declined"`
	Removed  []string `json:"removed"`
}

func newApproveCmd(a *app.App, run func(context.Context, *approveOptions) error) *cobra.Command {
	o := &approveOptions{app: a}
	cmd := &cobra.Command{
		Use:               "approve [NAME...]",
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: completeNames(a, 100),
		RunE: app.RunWithArgs(run, o, &o.Names, a.Host.RequireTerminal, func() error {
			if o.Run != "" && (o.All || len(o.Names) > 0) {
				return guideway.Errorf(guideway.CodeInvalid, "--run cannot be used with --all or the names of checks").WithFix("guideway checks approve --run %s", o.Run)
			}
			return nil
		}),
	}
	cmd.Flags().StringVar(&o.Run, "run", "", "review the changes of protected files in a `RUN`")
	cmd.Flags().BoolVar(&o.All, "all", false, "ask once for all checks")
	app.AddChangeFlag(cmd, &o.JSON)
	cmd.Flags().Lookup("json").Usage = "print the names of the approved, declined and removed checks as JSON"
	return cmd
}

func runApprove(ctx context.Context, o *approveOptions) error {
	if o.Run != "" {
		return approveChanges(ctx, o)
	}
	w, err := loadWorkspace(ctx, o.app)
	if err != nil {
		return err
	}
	host := o.app.Host
	app.WriteDiagnostics(host.Err, app.FilterErrors(w.Diagnostics), host.ErrStyles())
	selected, err := w.selectItems(o.Names)
	if err != nil {
		return err
	}
	answer := approveAnswer{Workspace: w.Root, Approved: []string{}, Declined: []string{}, Removed: []string{}}
	if len(selected) == 0 {
		words := "No check waits for approval."
		if len(o.Names) > 0 {
			words = "Approved already: " + strings.Join(o.Names, ", ") + "."
		}
		return host.WriteChange(o.JSON, answer, words)
	}
	person := newApprover(o.app, w, o.JSON)
	accepted, err := reviewItems(ctx, person, w, selected, o.All)
	if err != nil {
		return err
	}
	if err := saveApprovals(ctx, o.app, w, accepted); err != nil {
		return err
	}
	for _, i := range selected {
		switch {
		case !slices.Contains(accepted, i):
			answer.Declined = append(answer.Declined, i.Name)
		case i.State == stateRemoved:
			answer.Removed = append(answer.Removed, i.Name)
		default:
			answer.Approved = append(answer.Approved, i.Name)
		}
	}
	answer.Changed = true
	return host.WriteChange(o.JSON, answer, answer.describe())
}

// describe describes the result in words.
func (a *approveAnswer) describe() string {
	var parts []string
	for _, part := range []struct {
		verb  string
		names []string
	}{{"Approved", a.Approved}, {"Removed", a.Removed}, {"Not approved", a.Declined}} {
		if len(part.names) > 0 {
			parts = append(parts, part.verb+": "+strings.Join(part.names, ", ")+".")
		}
	}
	return strings.Join(parts, " ")
}

// newApprover returns the person at the terminal. If onErr is set, standard output is
// reserved for the answer and the review is shown on standard error.
func newApprover(a *app.App, w *workspace, onErr bool) *app.Approver {
	host := *a.Host
	if onErr {
		host.Out, host.OutTerminal = host.Err, host.ErrTerminal
	}
	return app.NewApprover(&host, w.cfg)
}

// selectItems returns the named checks, or without names all checks that wait for a
// decision.
func (w *workspace) selectItems(names []string) (out []*item, err error) {
	for i := range w.Checks {
		if len(names) == 0 && w.Checks[i].isWaiting() {
			out = append(out, &w.Checks[i])
		}
	}
	for _, name := range names {
		i := w.find(name)
		switch {
		case i == nil && strings.Contains(name, ":"):
			return nil, guideway.Errorf(guideway.CodeNotFound, "none of the %d most recently changed active runs of this project uses the rule %q", maxRuns, name).WithFix("guideway checks list")
		case i == nil:
			_, err := w.file.Get(name)
			return nil, err
		case i.State == stateBroken:
			return nil, guideway.Errorf(guideway.CodeInvalidDefinition, "%s", i.Error).WithFix("%s", i.Fix)
		case i.State == checksfile.StateApproved:
			continue
		}
		out = append(out, i)
	}
	return out, nil
}

// reviewItems shows the checks, asks for each of them or once for all, and asks for the
// passphrase if one is set. It returns the accepted checks, or an error if none exist.
func reviewItems(ctx context.Context, person *app.Approver, w *workspace, selected []*item, all bool) (accepted []*item, err error) {
	fmt.Fprintf(person.Out, "Checks run in %s with the permissions of the Guideway process.\n", app.OneLine(w.Root))
	for n, i := range selected {
		i.show(person, w)
		question := "Approve " + i.Name
		switch {
		case all && n < len(selected)-1:
			continue
		case all:
			question = "Approve " + app.Plural(len(selected), "check", "checks")
		case i.State == stateRemoved:
			question = "Remove the approval of " + i.Name
		}
		said, err := person.AskLine(ctx, question+"? Type yes: ")
		if errors.Is(err, io.EOF) {
			return nil, app.StoppedError()
		}
		if err != nil {
			return nil, err
		}
		if strings.TrimSpace(said) != "yes" {
			continue
		}
		accepted = append(accepted, i)
		if all {
			accepted = selected
		}
	}
	if len(accepted) == 0 {
		return nil, nothingApproved()
	}
	return accepted, person.CheckPassphraseIfSet(ctx)
}

func nothingApproved() error {
	return guideway.Errorf(guideway.CodeRefused, "nothing was approved").WithFix("run the command again and type yes")
}

// show prints the check, or its differences from the approved version.
func (i *item) show(person *app.Approver, w *workspace) {
	name := person.Styles.Bold(app.OneLine(i.Name))
	if i.State == stateRemoved {
		fmt.Fprintf(person.Out, "\n%s: %s\n", name, i.Error)
		return
	}
	text, isDiff := i.subject.Review(w.approved)
	words := "not approved before"
	if i.ApprovedAt != nil {
		words = fmt.Sprintf("changed since %s approved it %s", app.OneLine(i.ApprovedBy), person.Host.FormatAge(*i.ApprovedAt))
	}
	if isDiff {
		words += "; the differences follow"
	}
	if len(i.Runs) > 0 && i.Type != criteria.NamedCheck {
		words += "; used by " + strings.Join(i.Runs, ", ")
	}
	fmt.Fprintf(person.Out, "\n%s (%s)\n%s", name, words, text)
}

// saveApprovals stores the approvals of the accepted checks, in the versions that were
// shown.
func saveApprovals(ctx context.Context, a *app.App, w *workspace, accepted []*item) error {
	who, err := app.LocalUser(w.cfg)
	if err != nil {
		return err
	}
	store, err := app.OpenApprovals(w.cfg, a.Host.CurrentTime)
	if err != nil {
		return err
	}
	for _, i := range accepted {
		if i.State == stateRemoved {
			if _, err := store.Remove(ctx, approval.Key{Kind: approval.KindCheck, Source: w.Root, Subject: i.Name}); err != nil {
				return err
			}
			a.RecordCommand(ctx, w.cfg, audit.Approval, "check "+i.Name, "removed")
			continue
		}
		record, err := i.subject.Record(who)
		if err != nil {
			return err
		}
		if err := a.PutApproval(ctx, w.cfg, record); err != nil {
			return err
		}
	}
	return nil
}
