package checks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/evidence"
	"github.com/guideway-dev/guideway/internal/evidence/checksfile"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/workflow"
	"github.com/guideway-dev/guideway/internal/workflow/criteria"
)

// changesAnswer is the answer of guideway checks approve --run --json.
type changesAnswer struct {
	Workspace string `json:"workspace"`
	Run       string `json:"runId"`
	Changed   bool   `json:"changed"`
	// Changes are the changes of protected files since the start of the run.
	Changes []checksfile.ProtectedChange `json:"changes"`
}

// approveChanges reviews and approves the changes of the protected files of a run.
func approveChanges(ctx context.Context, o *approveOptions) error {
	w, err := loadChecks(o.app)
	if err != nil {
		return err
	}
	start, rules, err := readProtection(ctx, o.app, w, o.Run)
	if err != nil {
		return err
	}
	changes, err := o.app.NewChecker(w.cfg, nil).ProtectedChanges(ctx, o.Run, start, rules)
	if err != nil {
		return err
	}
	answer := changesAnswer{Workspace: w.Root, Run: o.Run, Changes: []checksfile.ProtectedChange{}}
	waiting := 0
	for i := range changes {
		c := &changes[i]
		if !c.Approvable {
			return guideway.Errorf(guideway.CodeConflict, "the change of the protected file %s cannot be reviewed: a changed .gitignore hides the file from Git", c.Words).
				WithFix("restore the .gitignore files, and run the command again")
		}
		answer.Changes = append(answer.Changes, c.ProtectedChange)
		if !c.Approved {
			waiting++
		}
	}
	if waiting == 0 {
		return o.app.Host.WriteChange(o.JSON, answer, "No change of a protected file waits for approval.")
	}
	person := newApprover(o.app, w, o.JSON)
	fmt.Fprintf(person.Out, "Changes of protected files in %s since the start of the run %s:\n", app.OneLine(w.Root), o.Run)
	for i := range changes {
		note := ""
		if changes[i].Approved {
			note = ", approved before"
		}
		fmt.Fprintf(person.Out, "\n%s%s\n%s", person.Styles.Bold(app.OneLine(changes[i].Words)), note, changes[i].Diff)
	}
	if err := confirmChanges(ctx, person, len(changes)); err != nil {
		return err
	}
	who, err := app.LocalUser(w.cfg)
	if err != nil {
		return err
	}
	record, err := checksfile.NewChangesRecord(w.Root, o.Run, who, answer.Changes)
	if err != nil {
		return err
	}
	store, err := app.OpenApprovals(w.cfg, o.app.Host.CurrentTime)
	if err != nil {
		return err
	}
	if _, err := store.Put(ctx, record); err != nil {
		return err
	}
	answer.Changed = true
	return o.app.Host.WriteChange(o.JSON, answer, "Approved "+app.Plural(len(changes), "change", "changes")+" for this run.")
}

// confirmChanges asks the person to confirm all changes.
func confirmChanges(ctx context.Context, person *app.Approver, n int) error {
	said, err := person.AskLine(ctx, fmt.Sprintf("Approve %s for this run? Type yes: ", app.Plural(n, "change", "changes")))
	switch {
	case errors.Is(err, io.EOF):
		return app.StoppedError()
	case err != nil:
		return err
	case strings.TrimSpace(said) != "yes":
		return nothingApproved()
	}
	return person.CheckPassphraseIfSet(ctx)
}

// readProtection returns the workspace at the start of a run and the checks of its
// definition.
func readProtection(ctx context.Context, a *app.App, w *workspace, id string) (start *evidence.Workspace, rules []*criteria.CheckRule, err error) {
	err = a.WithRuns(ctx, func(ctx context.Context, d *app.RunDeps) error {
		details, err := d.Runs.GetWithEvents(ctx, d.Caller, run.Ref{RunID: id})
		if err != nil {
			return err
		}
		var created run.Created
		if len(details.Events) == 0 || json.Unmarshal(details.Events[0].Data, &created) != nil || created.Workspace == nil {
			return guideway.Errorf(guideway.CodeConflict, "the state of the workspace at the start of the run %s was not recorded", id).WithFix("start a new run in the work tree")
		}
		start = created.Workspace
		if start.Root != w.Root {
			return guideway.Errorf(guideway.CodeConflict, "the run %s belongs to another workspace, %s", id, start.Root).WithFix("run the command in %s", start.Root)
		}
		definition, _ := workflow.Parse("definition.json", []byte(details.Definition))
		if definition == nil {
			return guideway.Errorf(guideway.CodeInternal, "the definition of the run %s cannot be read", id)
		}
		rules = definition.CheckRules()
		return nil
	})
	return start, rules, err
}
