package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway/internal/checkpoint"
	"github.com/spf13/cobra"
)

// checkpointListOptions is the command line of guideway checkpoint list.
type checkpointListOptions struct {
	app      *app
	Words    []string
	Session  string
	Workflow string
	Project  string
	Here     bool
	Since    string
	Until    string
	Tags     []string
	Limit    int
	Cursor   string
	JSON     bool
}

func newCheckpointListCmd(a *app, run func(context.Context, *checkpointListOptions) error) *cobra.Command {
	o := &checkpointListOptions{app: a}
	cmd := &cobra.Command{
		Use:   "list [WORD...]",
		Short: "List checkpoints, the last saved first",
		Long: `List checkpoints, the last saved first. With words, those that have all of them in
name, tags, workflow or context, whatever their endings; where none has all, those that
have some, the best first. The words of encrypted checkpoints are not known.

A * marks the last one of each line: a session with more than one has branches.`,
		Example: `  guideway checkpoint list
  guideway checkpoint list login token --since 7d
  guideway checkpoint list --workflow coding-task --tag milestone --json`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              runWithArgs(run, o, &o.Words),
	}
	f := cmd.Flags()
	f.StringVar(&o.Session, "session", "", "only those of the session, or the run, with this `id`")
	f.StringVar(&o.Workflow, "workflow", "", "only those of the workflow with this `id`")
	f.StringVar(&o.Project, "project", "", "only those of the project with this `id`")
	f.BoolVar(&o.Here, "here", false, "only those of the project in the working directory")
	f.StringVar(&o.Since, "since", "", "only those since a `moment`: a date, a time, or how long ago, such as 7d")
	f.StringVar(&o.Until, "until", "", "only those before a `moment`")
	f.StringSliceVar(&o.Tags, "tag", nil, "only those with all these `tags`")
	addLimitFlag(cmd, &o.Limit, "at most so many, up to 200")
	f.StringVar(&o.Cursor, "cursor", "", "go on behind a page: its `nextCursor`")
	addJSONFlag(cmd, &o.JSON)
	_ = cmd.RegisterFlagCompletionFunc("session", a.completeCheckpointSessions)
	_ = cmd.RegisterFlagCompletionFunc("workflow", a.completeDefinitions)
	return cmd
}

func (o *checkpointListOptions) request(here string) (checkpoint.ListRequest, error) {
	r := checkpoint.ListRequest{
		Session: o.Session, Workflow: o.Workflow, Project: o.Project, Tags: o.Tags,
		Query: strings.Join(o.Words, " "), Limit: o.Limit, Cursor: o.Cursor,
	}
	if o.Here {
		r.Project = here
	}
	var err error
	if r.Since, err = o.app.host.since(o.Since); err != nil {
		return r, err
	}
	r.Until, err = o.app.host.since(o.Until)
	return r, err
}

func runCheckpointList(ctx context.Context, o *checkpointListOptions) error {
	return o.app.listCheckpoints(ctx, func(ctx context.Context, d *checkpointDesk) error {
		request, err := o.request(d.here)
		if err != nil {
			return err
		}
		page, err := d.checkpoints.List(ctx, d.person, request)
		if err != nil {
			return atCommandLine(err)
		}
		o.app.host.checkpointNotes(page.Store, nil)
		return o.write(page)
	})
}

func (o *checkpointListOptions) write(page *checkpoint.Page) error {
	var more []string
	if page.Partial {
		more = append(more, "None has all of the words; these have some, the best first.")
	}
	if page.Next != "" {
		more = append(more, "There are more: the same with --cursor "+page.Next)
	}
	return writeList(o.app.host, o.JSON, listing[checkpoint.Record]{
		items: page.Checkpoints, answer: page, more: strings.Join(more, "\n"),
		empty: "There are no such checkpoints. guideway checkpoint save makes one, as does an agent with the tool workflow_checkpoint_save.",
		table: newTable(5, "CHECKPOINT", "SESSION", "WORKFLOW", "SAVED", "SIZE", "NAME").alignRight(4),
		row: func(r checkpoint.Record) []string {
			id := r.ID
			if slices.Contains(page.Heads, id) {
				id += " *"
			}
			return []string{id, r.Session, orDash(oneLine(r.Workflow)), o.app.host.ago(r.Created), bytesWords(r.Bytes), checkpointTitle(r)}
		},
	})
}

// checkpointTitle is the name of a checkpoint with its tags, and what is wrong.
func checkpointTitle(r checkpoint.Record) string {
	var parts []string
	if r.Problem != "" {
		parts = append(parts, "DAMAGED")
	}
	if r.Branch {
		parts = append(parts, "branch")
	}
	if r.Name != "" {
		parts = append(parts, oneLine(r.Name))
	}
	for _, tag := range r.Tags {
		parts = append(parts, "#"+oneLine(tag))
	}
	if len(parts) == 0 {
		return string(r.Kind)
	}
	return strings.Join(parts, " ")
}
