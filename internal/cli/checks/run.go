package checks

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/evidence"
	"github.com/guideway-dev/guideway/internal/evidence/checksfile"
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
		Use:   "run NAME",
		Short: "Execute a check of this project",
		Long: `Execute a check of .guideway/checks.yaml as a step of a run would, and print the beginning
and the end of its output. At a terminal, the command asks for the approval of a check that is
not approved. Nothing is recorded in a run.

The exit code is 0 if the check passed, 1 if it failed, and 2 if it was not executed to its
end, for example because it is not approved or not defined, it reached its time limit, or its
program does not exist.`,
		Example: `  guideway checks run test
  guideway checks run test --param package=./internal/...`,
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
