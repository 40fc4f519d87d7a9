package runs

import "github.com/guideway-dev/guideway/internal/cli/app"

import (
	"context"
	"strings"

	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/spf13/cobra"
)

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
		Use:   "list",
		Short: "List runs, most recently changed first",
		Example: `  guideway runs list
  guideway runs list --here --status running,waiting
  guideway runs list --needs-approval
  guideway runs list --json`,
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
