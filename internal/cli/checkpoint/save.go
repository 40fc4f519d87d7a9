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
		Long: `Save a context, a JSON object, as a checkpoint. FILE is a file, or - for standard input.
Without --session, start a new session. The command prints the id of the checkpoint;
warnings, for example about likely secrets, go to standard error.`,
		Example: `  guideway checkpoint save context.json --session login-work --name "before the rewrite"
  guideway checkpoint load --session login-work | jq .plan | guideway checkpoint save -`,
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
