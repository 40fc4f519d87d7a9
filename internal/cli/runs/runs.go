// Package runs implements the commands for saved runs.
package runs

import (
	"context"
	"fmt"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/spf13/cobra"
)

func NewRunsCmd(a *app.App) *cobra.Command {
	return app.NewGroupCmd(&cobra.Command{Use: "runs"},
		NewRunsListCmd(a, runRunsList), NewRunsShowCmd(a, runRunsShow),
		NewRunsResumeCmd(a, runRunsResume), NewRunsForkCmd(a, runRunsFork),
		NewRunsApproveCmd(a, runRunsApprove), NewRunsAbortCmd(a, runRunsAbort),
		NewRunsVerifyCmd(a, runRunsVerify), NewRunsAttestCmd(a, runRunsAttest),
		NewRunsExportCmd(a, runRunsExport), NewRunsImportCmd(a, runRunsImport),
	)
}

// parseRunRef parses the id or a handle of a run.
func parseRunRef(word string) run.Ref {
	if strings.HasPrefix(word, "h_") {
		return run.Ref{Handle: word}
	}
	return run.Ref{RunID: word}
}

// exactlyOneRun checks the single argument of most commands on runs.
func exactlyOneRun(command string) cobra.PositionalArgs {
	return app.ExactArgs(1, "the id of a run", "guideway runs "+command+" r_06bmyb2ad4ft47c6abwmtxs; guideway runs list prints the ids")
}

// userError replaces the fix of a refusal, which is written for agents, with a fix for the
// command line.
func userError(err error) error {
	refusal, ok := run.AsRefusal(err)
	if !ok {
		return err
	}
	text := refusal.Message
	for _, issue := range refusal.Issues {
		text += "\n  - " + app.OneLine(issue)
	}
	out := guideway.Errorf(refusal.Code, "%s", text)
	switch refusal.Rule {
	case run.RuleUnknownRun, run.RuleUnknownHandle:
		if refusal.Rule == run.RuleUnknownRun && refusal.Code == guideway.CodeNotFound {
			out = guideway.Errorf(refusal.Code, "there is no run %q", fmt.Sprint(refusal.Given))
		}
		return out.WithFix("guideway runs list")
	case engine.RuleEnded:
		return out.WithFix("guideway runs fork %s", refusal.RunID)
	case run.RuleAbortedByPerson:
		return out.WithFix("fork the run in the dashboard, or in a terminal: guideway runs fork %s", refusal.RunID)
	default:
		return out
	}
}

// statusText returns the status of a run as text.
func statusText(r run.Record) string {
	if r.Person {
		return "waiting for human approval"
	}
	return string(r.Status)
}

func statusStyled(s app.Styles, r run.Record) string {
	text := statusText(r)
	switch r.Status {
	case engine.StatusCompleted:
		return s.Green(text)
	case engine.StatusWaiting:
		return s.Yellow(text)
	case engine.StatusAborted:
		return s.Faint(text)
	default:
		return s.Cyan(text)
	}
}

// completeRuns completes the ids of the runs that a command accepts.
func completeRuns(a *app.App, useful func(run.Record) bool) cobra.CompletionFunc {
	return app.CompleteNames(1, app.NamesInOrder, func(ctx context.Context) (ids []string, err error) {
		err = a.WithRuns(ctx, func(ctx context.Context, d *app.RunDeps) error {
			list, err := d.Runs.List(ctx, d.Caller, run.Filter{})
			for _, r := range list {
				if useful(r) {
					ids = append(ids, r.ID+"\t"+app.OneLine(r.Workflow+", "+statusText(r)+": "+r.Goal))
				}
			}
			return err
		})
		return ids, err
	})
}

func anyRun(run.Record) bool { return true }

// acceptsCommands reports whether a run accepts commands.
func acceptsCommands(r run.Record) bool {
	return r.Status == engine.StatusRunning || r.Status == engine.StatusWaiting
}

// RunsListOptions is the command line of guideway runs list.
type RunsListOptions struct {
	app           *app.App
	Statuses      []string
	Workflow      string
	Here          bool
	NeedsApproval bool
	Limit         int
	JSON          bool
}

// runStatuses returns the statuses that the list can be filtered by.
func runStatuses() []string {
	return app.ToStrings(engine.StatusRunning, engine.StatusWaiting, engine.StatusCompleted, engine.StatusAborted)
}

func NewRunsListCmd(a *app.App, run func(context.Context, *RunsListOptions) error) *cobra.Command {
	o := &RunsListOptions{app: a}
	cmd := &cobra.Command{
		Use:  "list",
		Args: app.NoArgs,
		RunE: app.RunWith(run, o, o.checkOptions),
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.Statuses, "status", nil, "filter by `statuses`: "+strings.Join(runStatuses(), ", "))
	f.StringVar(&o.Workflow, "workflow", "", "filter by the `id` of the workflow")
	f.BoolVar(&o.Here, "here", false, "show only runs of the project in the working directory")
	f.BoolVar(&o.NeedsApproval, "needs-approval", false, "show only runs that wait for human approval")
	app.AddLimitFlag(cmd, &o.Limit, "maximum number of runs")
	app.AddJSONFlag(cmd, &o.JSON)
	app.AddFixedCompletion(cmd, "status", runStatuses())
	_ = cmd.RegisterFlagCompletionFunc("workflow", a.CompleteDefinitions())
	return cmd
}

func (o *RunsListOptions) checkOptions() error {
	for _, status := range o.Statuses {
		if err := app.CheckChoice("status", status, runStatuses()); err != nil {
			return err
		}
	}
	return nil
}

func (o *RunsListOptions) newFilter(here run.Project) run.Filter {
	f := run.Filter{Workflow: o.Workflow, Person: o.NeedsApproval, Limit: o.Limit}
	for _, status := range o.Statuses {
		f.Statuses = append(f.Statuses, engine.Status(status))
	}
	if o.Here {
		f.Project = here.ID
	}
	return f
}

// runsListAnswer is the answer of guideway runs list --json.
type runsListAnswer struct {
	Runs []run.Record `json:"runs"`
}

func runRunsList(ctx context.Context, o *RunsListOptions) error {
	return o.app.WithRuns(ctx, func(ctx context.Context, d *app.RunDeps) error {
		list, err := d.Runs.List(ctx, d.Caller, o.newFilter(d.Project))
		if err != nil {
			return err
		}
		return app.WriteList(o.app.Host, o.JSON, app.Listing[run.Record]{
			Items: list, Answer: runsListAnswer{Runs: app.OrEmpty(list)}, More: app.MoreText(len(list), o.Limit, "guideway runs list"),
			Empty: "No runs found. Agents start runs with the tool workflow_start; to configure a client: guideway install",
			Table: app.NewTable(5, "RUN", "STATUS", "WORKFLOW", "AT", "CHANGED", "GOAL"),
			Row: func(r run.Record) []string {
				return []string{r.ID, statusText(r), app.OneLine(r.Workflow), app.OrDash(app.OneLine(r.Step)), o.app.Host.FormatAge(r.Updated), app.OneLine(r.Goal)}
			},
		})
	})
}
