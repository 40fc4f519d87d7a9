package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/guide"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/spf13/cobra"
)

// runsListOptions is the command line of guideway runs list.
type runsListOptions struct {
	app      *app
	Statuses []string
	Workflow string
	Here     bool
	Person   bool
	Limit    int
	JSON     bool
}

// runStatuses are those that a run can be listed by.
func runStatuses() []string {
	return []string{
		string(guide.StatusRunning), string(guide.StatusWaiting),
		string(guide.StatusCompleted), string(guide.StatusAborted),
	}
}

func newRunsListCmd(a *app, run func(context.Context, *runsListOptions) error) *cobra.Command {
	o := &runsListOptions{app: a}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List runs, the last changed first",
		Example: `  guideway runs list
  guideway runs list --here --status running,waiting
  guideway runs list --person
  guideway runs list --json`,
		Args: noArgs,
		RunE: runWith(run, o, o.check),
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.Statuses, "status", nil, "only these `statuses`: "+strings.Join(runStatuses(), ", "))
	f.StringVar(&o.Workflow, "workflow", "", "only runs of the workflow with this `id`")
	f.BoolVar(&o.Here, "here", false, "only runs of the project in the working directory")
	f.BoolVar(&o.Person, "person", false, "only runs that wait for a person")
	addLimitFlag(cmd, &o.Limit, "at most so many")
	addJSONFlag(cmd, &o.JSON)
	addFixedCompletion(cmd, "status", runStatuses())
	_ = cmd.RegisterFlagCompletionFunc("workflow", a.completeDefinitions)
	return cmd
}

func (o *runsListOptions) check() error {
	for _, status := range o.Statuses {
		if !slices.Contains(runStatuses(), status) {
			return guideway.Errorf(guideway.CodeInvalid, "there is no status %q", status).
				WithFix("--status %s", strings.Join(runStatuses(), ", or --status "))
		}
	}
	return nil
}

func (o *runsListOptions) filter(here run.Project) run.Filter {
	f := run.Filter{Workflow: o.Workflow, Person: o.Person, Limit: o.Limit}
	for _, status := range o.Statuses {
		f.Statuses = append(f.Statuses, guide.Status(status))
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

func runRunsList(ctx context.Context, o *runsListOptions) error {
	return o.app.withRuns(ctx, func(ctx context.Context, d *runDesk) error {
		list, err := d.runs.List(ctx, d.caller, o.filter(d.here))
		if err != nil {
			return err
		}
		return writeList(o.app.host, o.JSON, listing[run.Record]{
			items: list, answer: runsListAnswer{Runs: orEmpty(list)}, more: moreText(len(list), o.Limit, "guideway runs list"),
			empty: "There are no such runs. An agent starts one with the tool workflow_start: guideway install",
			table: newTable(5, "RUN", "STATUS", "WORKFLOW", "AT", "CHANGED", "GOAL"),
			row: func(r run.Record) []string {
				return []string{r.ID, statusWords(r), oneLine(r.Workflow), orDash(oneLine(r.Step)), o.app.host.ago(r.Updated), oneLine(r.Goal)}
			},
		})
	})
}
