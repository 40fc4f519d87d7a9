package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/guideway-dev/guideway"
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
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Words = args
			if o.Limit < 1 {
				return usageError{guideway.Errorf(guideway.CodeInvalid, "a limit of %d lists nothing", o.Limit).WithFix("--limit 100")}
			}
			return run(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Session, "session", "", "only those of the session, or the run, with this `id`")
	f.StringVar(&o.Workflow, "workflow", "", "only those of the workflow with this `id`")
	f.StringVar(&o.Project, "project", "", "only those of the project with this `id`")
	f.BoolVar(&o.Here, "here", false, "only those of the project in the working directory")
	f.StringVar(&o.Since, "since", "", "only those since a `moment`: a date, a time, or how long ago, such as 7d")
	f.StringVar(&o.Until, "until", "", "only those before a `moment`")
	f.StringSliceVar(&o.Tags, "tag", nil, "only those with all these `tags`")
	f.IntVar(&o.Limit, "limit", 100, "at most so many, up to 200")
	f.StringVar(&o.Cursor, "cursor", "", "go on behind a page: its `nextCursor`")
	f.BoolVar(&o.JSON, "json", false, "answer in JSON")
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
		if o.JSON {
			return writeJSON(o.app.host.Out, page)
		}
		o.write(page)
		return nil
	})
}

func (o *checkpointListOptions) write(page *checkpoint.Page) {
	host := o.app.host
	if len(page.Checkpoints) == 0 {
		fmt.Fprintln(host.Err, "There are no such checkpoints. guideway checkpoint save makes one, as does an agent with the tool workflow_checkpoint_save.")
		return
	}
	heads := map[string]bool{}
	for _, id := range page.Heads {
		heads[id] = true
	}
	t := table{flexible: 5, right: map[int]bool{4: true}}
	t.add("CHECKPOINT", "SESSION", "WORKFLOW", "SAVED", "SIZE", "NAME")
	for _, r := range page.Checkpoints {
		id := r.ID
		if heads[id] {
			id += " *"
		}
		t.add(id, r.Session, cmp.Or(oneLine(r.Workflow), "-"), host.ago(r.Created), bytesWords(r.Bytes), checkpointTitle(r))
	}
	t.write(host.Out, host.terminalWidth(), host.outStyles())
	if page.Partial {
		fmt.Fprintln(host.Err, "None has all of the words; these have some, the best first.")
	}
	if page.Next != "" {
		fmt.Fprintf(host.Err, "There are more: the same with --cursor %s\n", page.Next)
	}
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
