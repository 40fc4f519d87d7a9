package checks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/evidence"
	"github.com/guideway-dev/guideway/internal/evidence/checksfile"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/workflow"
	"github.com/guideway-dev/guideway/internal/workflow/criteria"
	"github.com/spf13/cobra"
)

// exitNotExecuted is the exit code if a check did not run to completion.
const exitNotExecuted = app.ExitUsage

// runOptions is the command line of guideway checks run.
type runOptions struct {
	app    *app.App
	Name   string
	Params []string
	JSON   bool
	// with are the parameters by their names.
	with map[string]string
}

func newRunCmd(a *app.App, run func(context.Context, *runOptions) error) *cobra.Command {
	o := &runOptions{app: a}
	cmd := &cobra.Command{
		Use:               "run NAME",
		Args:              app.ExactArgs(1, "the name of a check", "guideway checks run test"),
		ValidArgsFunction: completeNames(a, 1),
		RunE:              app.RunWithArg(run, o, &o.Name, o.parseParams),
	}
	cmd.Flags().StringArrayVar(&o.Params, "param", nil, "set a parameter of the check, as `NAME=VALUE`; can be repeated")
	app.AddJSONFlag(cmd, &o.JSON)
	return cmd
}

// parseParams reads the values of --param.
func (o *runOptions) parseParams() error {
	o.with = map[string]string{}
	for _, p := range o.Params {
		name, value, ok := strings.Cut(p, "=")
		if !ok || name == "" {
			return guideway.Errorf(guideway.CodeInvalid, "--param %q is not of the form NAME=VALUE", p).WithFix("--param NAME=VALUE")
		}
		o.with[name] = value
	}
	return nil
}

func runCheck(ctx context.Context, o *runOptions) error {
	w, err := loadChecks(o.app)
	if err != nil {
		return app.UsageError{Err: err}
	}
	check, err := w.file.Get(o.Name)
	if err != nil {
		return app.UsageError{Err: err}
	}
	if check.Command.Type == criteria.Protect {
		return app.UsageError{Err: guideway.Errorf(guideway.CodeInvalid, "the check %s compares files with the start of a run, so it is executed only in runs", o.Name).
			WithFix("execute another check; guideway checks list prints the checks")}
	}
	if err := o.ensureApproved(ctx, w, check); err != nil {
		return app.UsageError{Err: err}
	}
	result, err := o.execute(ctx, w)
	if err != nil {
		if ctx.Err() != nil {
			return app.InterruptedError(ctx.Err())
		}
		return app.UsageError{Err: err}
	}
	if err := o.app.Host.WriteJSONOr(o.JSON, result, func() { writeResult(o.app.Host, result) }); err != nil {
		return err
	}
	switch {
	case result.Inconclusive || result.Undefined:
		return app.SilentError{Code: exitNotExecuted}
	case !result.Passed:
		return app.SilentError{Code: app.ExitFailed}
	}
	return nil
}

// ensureApproved asks for the approval of a check that is not approved, if there is a
// terminal.
func (o *runOptions) ensureApproved(ctx context.Context, w *workspace, check *checksfile.Check) error {
	subject, err := checksfile.NewSubject(w.Root, check)
	if err != nil {
		return err
	}
	missing := subject.CheckApproved(w.approved)
	if missing == nil || o.app.Host.RequireTerminal() != nil {
		return missing
	}
	i := w.add(item{Name: check.Name, Type: criteria.NamedCheck}, subject, nil)
	accepted, err := reviewItems(ctx, newApprover(o.app, w, o.JSON), w, []*item{i}, false)
	if err != nil {
		return err
	}
	return saveApprovals(ctx, o.app, w, accepted)
}

// execute executes the check.
func (o *runOptions) execute(ctx context.Context, w *workspace) (*evidence.Result, error) {
	checker := o.app.NewChecker(w.cfg, nil)
	start, err := checker.Workspace(ctx, w.Root)
	if err != nil {
		return nil, err
	}
	rule := &criteria.CheckRule{Type: criteria.NamedCheck, Check: o.Name, With: o.with}
	request := evidence.Request{Template: rule, Rule: rule, Start: start, ProjectPath: w.Root}
	if host := o.app.Host; host.ErrTerminal && !o.JSON {
		request.Progress = func(message string) { fmt.Fprintln(host.Err, app.OneLine(message)) }
	}
	result, err := checker.Check(ctx, request)
	return &result, err
}

// writeResult prints the output and the outcome of a check.
func writeResult(host *app.Host, r *evidence.Result) {
	s := host.OutStyles()
	fmt.Fprintf(host.Out, "%s\n", s.Bold(app.OneLine(strings.Join(r.Argv, " "))))
	for n, part := range []string{r.Head, r.Tail} {
		if part == "" {
			continue
		}
		if n == 1 {
			fmt.Fprintf(host.Out, "%s\n", s.Faint(fmt.Sprintf("  ... (the output has %d bytes; its middle is not shown) ...", r.OutputBytes)))
		}
		for line := range strings.SplitSeq(strings.TrimRight(app.EscapeText(part), "\n"), "\n") {
			fmt.Fprintf(host.Out, "  %s\n", line)
		}
	}
	outcome := s.Green("passed")
	switch {
	case r.Inconclusive || r.Undefined:
		outcome = s.Yellow("not executed to its end")
	case !r.Passed:
		outcome = s.Red("failed")
	}
	took := (time.Duration(r.DurationMS) * time.Millisecond).String()
	words := ", in " + took
	if r.ExitCode != nil {
		words = fmt.Sprintf(", exit code %d", *r.ExitCode) + words
	}
	if r.Reused {
		words += ", reused: no file changed"
	}
	if r.Issue != "" {
		words += ": " + app.OneLine(r.Issue)
	}
	fmt.Fprintf(host.Out, "%s %s%s\n", app.OneLine(r.Name), outcome, words)
}

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
	if err := o.app.PutApproval(ctx, w.cfg, record); err != nil {
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
