// Package checkpoint implements the commands for context checkpoints.
package checkpoint

import "github.com/guideway-dev/guideway/internal/cli/app"

import (
	"context"
	"errors"
	"math"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/platform/lists"
	"github.com/spf13/cobra"
)

func NewCheckpointCmd(a *app.App) *cobra.Command {
	return app.NewGroupCmd(&cobra.Command{
		Use:     "checkpoint",
		Aliases: []string{"checkpoints"},
	},
		newCheckpointListCmd(a, runCheckpointList), newCheckpointShowCmd(a),
		newCheckpointSaveCmd(a, runCheckpointSave), newCheckpointLoadCmd(a, runCheckpointLoad),
		newCheckpointDiffCmd(a, runCheckpointDiff), newCheckpointDeleteCmd(a, runCheckpointDelete),
		newCheckpointExportCmd(a, runCheckpointExport), newCheckpointImportCmd(a, runCheckpointImport),
		newCheckpointVerifyCmd(a, runCheckpointVerify), newCheckpointLogCmd(a, runCheckpointLog),
	)
}

// exampleCheckpoint is the id in examples.
const exampleCheckpoint = "c_0dx3k2v9q8f7m5n4p1r6t0w"

// oneCheckpoint checks the single argument of most commands on checkpoints.
func oneCheckpoint(command string) cobra.PositionalArgs {
	return app.ExactArgs(1, "the id of a checkpoint", "guideway checkpoint "+command+" "+exampleCheckpoint+"; guideway checkpoint list prints the ids")
}

// byIDOrSession accepts one id, or none if --session is set.
func byIDOrSession(command string, session *string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case *session == "" && len(args) == 0:
			return guideway.Errorf(guideway.CodeInvalid, "the id of a checkpoint, or --session, is required").
				WithFix("guideway checkpoint %s %s; guideway checkpoint list prints the ids", command, exampleCheckpoint)
		case *session == "":
			return oneCheckpoint(command)(cmd, args)
		case len(args) > 0:
			return guideway.Errorf(guideway.CodeInvalid, "a checkpoint and --session cannot be combined").WithFix("omit the checkpoint, or omit --session")
		}
		return nil
	}
}

// userError replaces a fix that names a tool for agents with a fix for the command line.
func userError(err error) error {
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

// notFoundError returns the error for a missing checkpoint. If the id is the id of a
// session, the fix is the command with --session.
func notFoundError(ctx context.Context, d *app.CheckpointDeps, command, id string, err error) error {
	if id == "" || guideway.ErrorCode(err) != guideway.CodeNotFound {
		return userError(err)
	}
	page, failed := d.Checkpoints.List(ctx, d.User, checkpoint.ListRequest{Session: id, Limit: 1})
	if failed != nil || len(page.Checkpoints) == 0 {
		return userError(err)
	}
	return guideway.Errorf(guideway.CodeNotFound, "%q is a session, not a checkpoint", id).
		WithFix("guideway checkpoint %s --session %s", command, id)
}

// completeCheckpoints completes checkpoint ids, up to most arguments.
func completeCheckpoints(a *app.App, most int) cobra.CompletionFunc {
	return completeRecords(a, most, 100, func(r checkpoint.Record) (id, about string) { return r.ID, checkpointText(r) + "," })
}

// completeCheckpointSessions completes ids of sessions that have checkpoints.
func completeCheckpointSessions(a *app.App) cobra.CompletionFunc {
	return completeRecords(a, math.MaxInt, 200, func(r checkpoint.Record) (id, about string) { return r.Session, r.Workflow })
}

// completeRecords completes the ids that describe returns for the last checkpoints. It
// creates nothing and does not ask for the passphrase.
func completeRecords(a *app.App, most, limit int, describe func(checkpoint.Record) (id, about string)) cobra.CompletionFunc {
	return app.CompleteNames(most, app.NamesInOrder, func(ctx context.Context) (ids []string, err error) {
		cfg, err := a.Load()
		if err != nil || !app.CheckpointsExist(cfg) {
			return nil, err
		}
		err = a.ListCheckpoints(ctx, func(ctx context.Context, d *app.CheckpointDeps) error {
			page, err := d.Checkpoints.List(ctx, d.User, checkpoint.ListRequest{Limit: limit})
			if err != nil {
				return err
			}
			seen := map[string]bool{}
			for _, r := range page.Checkpoints {
				if id, about := describe(r); !seen[id] {
					seen[id] = true
					ids = append(ids, id+"\t"+app.OneLine(about+" "+a.Host.FormatAge(r.Created)))
				}
			}
			return nil
		})
		return ids, err
	})
}

// checkpointText returns a short description of a checkpoint.
func checkpointText(r checkpoint.Record) string {
	words := lists.Filter([]string{r.Name, r.Workflow, r.Session}, func(word string) bool { return word != "" })
	return strings.Join(words, ", ")
}
