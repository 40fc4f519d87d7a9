package checkpoint

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/spf13/cobra"
)

// checkpointListOptions is the command line of guideway checkpoint list.
type checkpointListOptions struct {
	app      *app.App
	Words    []string
	Session  string
	Workflow string
	Project  string
	Here     bool
	Since    string
	Until    string
	Tags     []string
	Reduced  bool
	Limit    int
	Cursor   string
	JSON     bool
}

func newCheckpointListCmd(a *app.App, run func(context.Context, *checkpointListOptions) error) *cobra.Command {
	o := &checkpointListOptions{app: a}
	cmd := &cobra.Command{
		Use:               "list [WORD...]",
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              app.RunWithArgs(run, o, &o.Words),
	}
	f := cmd.Flags()
	f.StringVar(&o.Session, "session", "", "filter by the `id` of the session or run")
	f.StringVar(&o.Workflow, "workflow", "", "filter by the `id` of the workflow")
	f.StringVar(&o.Project, "project", "", "filter by the `id` of the project")
	f.BoolVar(&o.Here, "here", false, "show only checkpoints of the project in the working directory, regardless of --project")
	f.StringVar(&o.Since, "since", "", "filter by `time`: saved at or after a date, a time, or an age such as 7d")
	f.StringVar(&o.Until, "until", "", "filter by `time`: saved before a date, a time, or an age such as 7d")
	f.StringSliceVar(&o.Tags, "tag", nil, "show only checkpoints with all of these `tags`")
	f.BoolVar(&o.Reduced, "reduced", false, "list the contexts of reductions, too")
	app.AddLimitFlag(cmd, &o.Limit, "maximum number of results (up to 200)")
	f.StringVar(&o.Cursor, "cursor", "", "`cursor` of the next page, as the previous page printed it")
	app.AddJSONFlag(cmd, &o.JSON)
	_ = cmd.RegisterFlagCompletionFunc("session", completeCheckpointSessions(a))
	_ = cmd.RegisterFlagCompletionFunc("workflow", a.CompleteDefinitions())
	return cmd
}

func (o *checkpointListOptions) newRequest(here string) (checkpoint.ListRequest, error) {
	r := checkpoint.ListRequest{
		Session: o.Session, Workflow: o.Workflow, Project: o.Project, Tags: o.Tags,
		Query: strings.Join(o.Words, " "), Limit: o.Limit, Cursor: o.Cursor, Reduced: o.Reduced || o.Session != "",
	}
	if o.Here {
		r.Project = here
	}
	var err error
	if r.Since, err = o.app.Host.ParseTime(o.Since); err != nil {
		return r, err
	}
	r.Until, err = o.app.Host.ParseTime(o.Until)
	return r, err
}

func runCheckpointList(ctx context.Context, o *checkpointListOptions) error {
	return o.app.ListCheckpoints(ctx, func(ctx context.Context, d *app.CheckpointDeps) error {
		request, err := o.newRequest(d.ProjectID)
		if err != nil {
			return err
		}
		page, err := d.Checkpoints.List(ctx, d.User, request)
		if err != nil {
			return userError(err)
		}
		o.app.Host.WriteCheckpointWarnings(page.Store, nil)
		return o.writePage(page)
	})
}

func (o *checkpointListOptions) writePage(page *checkpoint.Page) error {
	var more []string
	if page.Partial {
		more = append(more, "No checkpoint contains all words; the listed checkpoints contain some of them, best match first.")
	}
	if page.Next != "" {
		more = append(more, "For more results, add --cursor "+page.Next)
	}
	return app.WriteList(o.app.Host, o.JSON, app.Listing[checkpoint.Record]{
		Items: page.Checkpoints, Answer: page, More: strings.Join(more, "\n"),
		Empty: "No checkpoints found. To save one: guideway checkpoint save FILE, or the tool workflow_checkpoint_save for agents.",
		Table: app.NewTable(5, "CHECKPOINT", "SESSION", "WORKFLOW", "SAVED", "SIZE", "NAME").AlignRight(4),
		Row: func(r checkpoint.Record) []string {
			id := r.ID
			if slices.Contains(page.Heads, id) {
				id += " *"
			}
			return []string{id, r.Session, app.OrDash(app.OneLine(r.Workflow)), o.app.Host.FormatAge(r.Created), app.FormatBytes(r.Bytes), checkpointTitle(r)}
		},
	})
}

// checkpointTitle returns the name of a checkpoint with its tags, and marks for damage and
// for a branch. Without any of these, it returns the kind.
func checkpointTitle(r checkpoint.Record) string {
	var parts []string
	if r.Problem != "" {
		parts = append(parts, "DAMAGED")
	}
	if r.Branch {
		parts = append(parts, "branch")
	}
	if r.Name != "" {
		parts = append(parts, app.OneLine(r.Name))
	}
	for _, tag := range r.Tags {
		parts = append(parts, "#"+app.OneLine(tag))
	}
	if r.Kind == checkpoint.KindFragment {
		return "reduced context"
	}
	if len(parts) == 0 {
		return string(r.Kind)
	}
	return strings.Join(parts, " ")
}

// checkpointSaveOptions is the command line of guideway checkpoint save.
type checkpointSaveOptions struct {
	app          *app.App
	File         string
	Session      string
	Workflow     string
	Name         string
	Tags         []string
	ExpectedHead string
	JSON         bool
}

func newCheckpointSaveCmd(a *app.App, run func(context.Context, *checkpointSaveOptions) error) *cobra.Command {
	o := &checkpointSaveOptions{app: a}
	cmd := &cobra.Command{
		Use:  "save FILE",
		Args: app.ExactArgs(1, "a file, or - for standard input", "guideway checkpoint save context.json"),
		RunE: app.RunWithArg(run, o, &o.File),
	}
	f := cmd.Flags()
	f.StringVar(&o.Session, "session", "", "`id` of the session (default: a new session)")
	f.StringVar(&o.Workflow, "workflow", "", "`id` of the related workflow")
	f.StringVar(&o.Name, "name", "", "`name` of the checkpoint")
	f.StringSliceVar(&o.Tags, "tag", nil, "`tags` of the checkpoint")
	f.StringVar(&o.ExpectedHead, "expected-head", "", "predecessor `checkpoint`; if it already has a successor, start a branch (default: the last checkpoint of the session)")
	app.AddJSONFlag(cmd, &o.JSON)
	_ = cmd.RegisterFlagCompletionFunc("session", completeCheckpointSessions(a))
	_ = cmd.RegisterFlagCompletionFunc("workflow", a.CompleteDefinitions())
	_ = cmd.RegisterFlagCompletionFunc("expected-head", completeCheckpoints(a, 1))
	return cmd
}

func runCheckpointSave(ctx context.Context, o *checkpointSaveOptions) error {
	cfg, err := o.app.Load()
	if err != nil {
		return err
	}
	host := o.app.Host
	text, err := host.ReadInput(ctx, o.File, cfg.Checkpoints.MaxContext)
	if err != nil {
		return err
	}
	return o.app.WithCheckpoints(ctx, func(ctx context.Context, d *app.CheckpointDeps) error {
		if err := d.RequirePersistence(); err != nil {
			return err
		}
		saved, err := d.Checkpoints.Save(ctx, d.User, checkpoint.SaveRequest{
			Session: o.Session, Context: text, Workflow: o.Workflow, Project: d.ProjectID, Name: o.Name, Tags: o.Tags,
			ExpectedHead: o.ExpectedHead,
		})
		if err != nil {
			return userError(err)
		}
		host.WriteCheckpointWarnings(saved.Store, saved.Warnings)
		if o.JSON {
			return app.WriteJSON(host.Out, saved)
		}
		fmt.Fprintln(host.Out, saved.ID)
		fmt.Fprintf(host.Err, "Saved a context of %s in the session %s; its stored size is %s.\n", app.FormatBytes(saved.Bytes), saved.Session, app.FormatBytes(saved.Stored))
		return nil
	})
}
