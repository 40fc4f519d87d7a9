package checks

import (
	"context"
	"strings"

	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/spf13/cobra"
)

func newListCmd(a *app.App, run func(context.Context, *app.PlainOptions) error) *cobra.Command {
	return app.NewPlainCmd(a, run, &cobra.Command{
		Use:   "list",
		Short: "List the checks of this project and their approvals",
		Long: `List the checks of .guideway/checks.yaml, and the commands, tools and loopback addresses in
the rules of workflows that the 50 most recently changed active runs of this project use. FILES
are the files that define the command; after a change of one of them, the check needs approval
again. The states are:

  approved  exactly this version was approved
  changed   the check or one of its files changed after the approval
  waiting   the check was never approved
  removed   the check was approved, but the checks file no longer defines it
  broken    the check has an error, which the column DESCRIPTION shows

The exit code is 3 if the checks file has an error.`,
		Example: "  guideway checks list\n  guideway checks list --json",
	})
}

func runList(ctx context.Context, o *app.PlainOptions) error {
	w, err := loadWorkspace(ctx, o.App)
	if err != nil {
		return err
	}
	host := o.App.Host
	if !o.JSON {
		app.WriteDiagnostics(host.Err, w.Diagnostics, host.ErrStyles())
	}
	empty := "This project has no checks. To propose them: guideway init --dialect none"
	if w.Exists {
		empty = "There is no usable check in " + w.File + "."
	}
	more := ""
	for i := range w.Checks {
		if w.Checks[i].isWaiting() {
			more = "To review the checks that are not approved: guideway checks approve"
		}
	}
	err = app.WriteList(host, o.JSON, app.Listing[item]{
		Items: w.Checks, Answer: w, Empty: empty, More: more,
		Table: app.NewTable(2, "NAME", "STATE", "CHECKS", "FILES", "DESCRIPTION"),
		Row: func(i item) []string {
			var files []string
			for _, f := range i.Files {
				files = append(files, f.Path)
			}
			description := i.Description
			if i.Error != "" {
				description = i.Error
			}
			return []string{i.Name, string(i.State), app.OrDash(i.subjectText()), app.OrDash(strings.Join(files, ", ")), app.OrDash(description)}
		},
	})
	if err == nil && len(app.FilterErrors(w.Diagnostics)) > 0 {
		return app.SilentError{Code: app.ExitInvalid}
	}
	return err
}
