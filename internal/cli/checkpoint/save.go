package checkpoint

import "github.com/guideway-dev/guideway/internal/cli/app"

import (
	"context"
	"fmt"

	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/spf13/cobra"
)

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
		Use:   "save FILE",
		Short: "Save a context as a checkpoint",
		Long: `Save a context, a JSON object, as a checkpoint. FILE is a file, or - for the standard
input. Without --session it begins a session of its own. The output is the id of the
checkpoint; warnings, such as of what looks like a secret, are on the error output.`,
		Example: `  guideway checkpoint save context.json --session login-work --name "before the rewrite"
  guideway checkpoint load --session login-work | jq .plan | guideway checkpoint save -`,
		Args: app.ExactArgs(1, "one file, or - for the standard input", "guideway checkpoint save context.json"),
		RunE: app.RunWithArg(run, o, &o.File),
	}
	f := cmd.Flags()
	f.StringVar(&o.Session, "session", "", "the `id` of the session that it belongs to")
	f.StringVar(&o.Workflow, "workflow", "", "the `id` of the workflow that it is about")
	f.StringVar(&o.Name, "name", "", "a `name` to find it by")
	f.StringSliceVar(&o.Tags, "tag", nil, "`tags` to find it by")
	f.StringVar(&o.ExpectedHead, "expected-head", "", "the `checkpoint` that this context goes on from; where another one follows that already, this begins a branch")
	app.AddJSONFlag(cmd, &o.JSON)
	_ = cmd.RegisterFlagCompletionFunc("session", completeCheckpointSessions(a))
	_ = cmd.RegisterFlagCompletionFunc("workflow", a.CompleteDefinitions)
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
			return atCommandLine(err)
		}
		host.WriteCheckpointWarnings(saved.Store, saved.Warnings)
		if o.JSON {
			return app.WriteJSON(host.Out, saved)
		}
		fmt.Fprintln(host.Out, saved.ID)
		fmt.Fprintf(host.Err, "Saved %s in %s, session %s.\n", app.FormatBytes(saved.Bytes), app.FormatBytes(saved.Stored), saved.Session)
		return nil
	})
}
