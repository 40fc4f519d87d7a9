package checkpoint

import "github.com/guideway-dev/guideway/internal/cli/app"

import (
	"context"
	"errors"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/spf13/cobra"
)

func NewCheckpointCmd(a *app.App) *cobra.Command {
	return app.NewGroupCmd(&cobra.Command{
		Use:     "checkpoint",
		Aliases: []string{"checkpoints"},
		Short:   "List, save and load checkpoints",
		Long: `A checkpoint is an immutable snapshot of a context: the variables of a run, or of a
session that an agent names. The checkpoints of a session follow each other; if two have
the same predecessor, the session has branches.

CHECKPOINT is an id; "guideway checkpoint list" prints the ids.`,
		Example: `  guideway checkpoint list
  guideway checkpoint show c_0dx3k2v9q8f7m5n4p1r6t0w
  guideway checkpoint load c_0dx3k2v9q8f7m5n4p1r6t0w > context.json
  guideway checkpoint verify`,
	},
		newCheckpointListCmd(a, runCheckpointList), newCheckpointShowCmd(a),
		newCheckpointSaveCmd(a, runCheckpointSave), newCheckpointLoadCmd(a, runCheckpointLoad),
		newCheckpointDiffCmd(a, runCheckpointDiff), newCheckpointDeleteCmd(a, runCheckpointDelete),
		newCheckpointExportCmd(a, runCheckpointExport), newCheckpointImportCmd(a, runCheckpointImport),
		newCheckpointVerifyCmd(a, runCheckpointVerify), newCheckpointLogCmd(a, runCheckpointLog),
	)
}

// exampleCheckpoint is an id in examples.
const exampleCheckpoint = "c_0dx3k2v9q8f7m5n4p1r6t0w"

// oneCheckpoint takes the single argument of most commands on checkpoints.
func oneCheckpoint(command string) cobra.PositionalArgs {
	return app.ExactArgs(1, "the id of a checkpoint", "guideway checkpoint "+command+" "+exampleCheckpoint+"; guideway checkpoint list prints the ids")
}

// byIDOrSession takes one id, or none where the flag --session says which.
func byIDOrSession(command string, session *string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case *session == "":
			return oneCheckpoint(command)(cmd, args)
		case len(args) > 0:
			return guideway.Errorf(guideway.CodeInvalid, "a checkpoint and --session cannot be combined").WithFix("name one of them")
		}
		return nil
	}
}

// atCommandLine says the way out in the words of the command line: the tools of an
// agent are no help to a person at a terminal.
func atCommandLine(err error) error {
	var known *guideway.Error
	if !errors.As(err, &known) || !strings.Contains(guideway.ErrorFix(err), "workflow_") {
		return err
	}
	said := &guideway.Error{Code: guideway.ErrorCode(err), Message: err.Error(), Err: err}
	if said.Code == guideway.CodeTooLarge {
		return said.WithFix("leave out data that can be read again, or raise the limit: guideway help settings")
	}
	return said.WithFix("guideway checkpoint list")
}

// notThere is the error about a checkpoint that is not there. The id of a session is
// easily taken for one.
func notThere(ctx context.Context, d *app.CheckpointDeps, command, id string, err error) error {
	if id == "" || guideway.ErrorCode(err) != guideway.CodeNotFound {
		return atCommandLine(err)
	}
	page, failed := d.Checkpoints.List(ctx, d.User, checkpoint.ListRequest{Session: id, Limit: 1})
	if failed != nil || len(page.Checkpoints) == 0 {
		return atCommandLine(err)
	}
	return guideway.Errorf(guideway.CodeNotFound, "%q is a session, not a checkpoint", id).
		WithFix("guideway checkpoint %s --session %s", command, id)
}

// completeCheckpoints completes ids of checkpoints, up to so many arguments.
func completeCheckpoints(a *app.App, most int) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var ids []string
		_ = lookAtCheckpoints(cmd.Context(), a, func(ctx context.Context, d *app.CheckpointDeps) error {
			page, err := d.Checkpoints.List(ctx, d.User, checkpoint.ListRequest{Limit: 100})
			if err != nil {
				return err // there is nobody to tell: a shell that completes shows no errors
			}
			for _, r := range page.Checkpoints {
				ids = append(ids, r.ID+"\t"+app.OneLine(checkpointWords(r)+", "+a.Host.FormatAge(r.Created)))
			}
			return nil
		})
		return ids, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

// completeCheckpointSessions completes ids of sessions that have checkpoints.
func completeCheckpointSessions(a *app.App) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		var ids []string
		_ = lookAtCheckpoints(cmd.Context(), a, func(ctx context.Context, d *app.CheckpointDeps) error {
			page, err := d.Checkpoints.List(ctx, d.User, checkpoint.ListRequest{Limit: 200})
			if err != nil {
				return err // as above
			}
			seen := map[string]bool{}
			for _, r := range page.Checkpoints {
				if !seen[r.Session] {
					seen[r.Session] = true
					ids = append(ids, r.Session+"\t"+app.OneLine(r.Workflow+" "+a.Host.FormatAge(r.Created)))
				}
			}
			return nil
		})
		return ids, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

// lookAtCheckpoints opens them for who only looks: nothing is made, and nothing is
// asked for.
func lookAtCheckpoints(ctx context.Context, a *app.App, do func(context.Context, *app.CheckpointDeps) error) error {
	cfg, err := a.Load()
	if err != nil {
		return err
	}
	if !app.CheckpointsExist(cfg) {
		return nil
	}
	return a.ListCheckpoints(ctx, do)
}

// checkpointWords says in a few words what a checkpoint is.
func checkpointWords(r checkpoint.Record) string {
	var words []string
	for _, word := range []string{r.Name, r.Workflow, r.Session} {
		if word != "" {
			words = append(words, word)
		}
	}
	return strings.Join(words, ", ")
}
