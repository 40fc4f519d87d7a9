// Package ci implements the commands for continuous integration.
package ci

import (
	"context"
	"fmt"
	"os"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/cli/app"
	attestcmd "github.com/guideway-dev/guideway/internal/cli/attest"
	"github.com/guideway-dev/guideway/internal/evidence"
	"github.com/guideway-dev/guideway/internal/evidence/attest"
	"github.com/guideway-dev/guideway/internal/evidence/execute"
	"github.com/guideway-dev/guideway/internal/hooks/approval"
	"github.com/spf13/cobra"
)

// NewCICmd returns the command guideway ci.
func NewCICmd(a *app.App) *cobra.Command {
	return app.NewGroupCmd(&cobra.Command{Use: "ci"}, newVerifyCmd(a))
}

// verifyOptions is the command line of guideway ci verify.
type verifyOptions struct {
	app          *app.App
	Base, Policy string
	Keys         []string
	Attestations []string
	// ChangedChecks allows changes of the files that define checks.
	ChangedChecks bool
	Summary       string
	JSON          bool
}

func newVerifyCmd(a *app.App) *cobra.Command {
	o := &verifyOptions{app: a}
	cmd := &cobra.Command{
		Use:  "verify --base REF",
		Args: app.NoArgs,
		RunE: app.RunWith(runVerify, o, o.checkOptions),
	}
	f := cmd.Flags()
	f.StringVar(&o.Base, "base", "", "compare with this `commit`, usually the target branch of the pull request (required)")
	f.StringVar(&o.Policy, "policy", "", "read the policy from this `file` instead of .guideway/policy.yaml of the base")
	f.StringArrayVar(&o.Keys, "key", nil, "trust the public keys in this PEM `file`, too; can be repeated")
	f.StringArrayVar(&o.Attestations, "attestation", nil, "use the attestation in this `file`, too; can be repeated")
	f.BoolVar(&o.ChangedChecks, "trust-changed-checks", false, "execute the checks as the change defines them")
	f.StringVar(&o.Summary, "summary", "", "append the summary to this `file` instead of printing it")
	app.AddJSONFlag(cmd, &o.JSON)
	return cmd
}

func (o *verifyOptions) checkOptions() error {
	if o.Base == "" {
		return guideway.Errorf(guideway.CodeInvalid, "--base is required: the commit to compare with").WithFix("guideway ci verify --base origin/main")
	}
	return nil
}

// readKeys reads the public keys of the command line.
func (o *verifyOptions) readKeys(ctx context.Context) ([]attest.PublicKey, error) {
	return attestcmd.ReadKeys(ctx, o.app.Host, o.Keys)
}

// exitUndecided is the exit code of a verification without a verdict.
const exitUndecided = 2

func runVerify(ctx context.Context, o *verifyOptions) error {
	report := o.verify(ctx)
	if err := ctx.Err(); err != nil {
		return app.InterruptedError(err)
	}
	host := o.app.Host
	summary := report.Markdown()
	if o.Summary != "" {
		if err := appendFile(host.Abs(o.Summary), summary); err != nil {
			return err
		}
	}
	err := host.WriteJSONOr(o.JSON, report, func() {
		if o.Summary == "" {
			fmt.Fprint(host.Out, summary)
		} else {
			fmt.Fprintf(host.Out, "%s: %s\n", report.Verdict, report.headline())
		}
	})
	switch {
	case err != nil:
		return err
	case report.Verdict == Refused:
		return app.SilentError{Code: app.ExitFailed}
	case report.Verdict == Undecided:
		return app.SilentError{Code: exitUndecided}
	}
	return nil
}

// appendFile appends a text to a file, which other steps of a job may have begun.
func appendFile(name, text string) error {
	const mode = 0o644
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, mode)
	if err == nil {
		_, err = file.WriteString(text)
		if closeErr := file.Close(); err == nil {
			err = closeErr
		}
	}
	if err != nil {
		return guideway.Errorf(guideway.CodeUnavailable, "append the summary to a file: %w", err).
			WithFix("name a file with --summary whose directory exists and is writable for this user")
	}
	return nil
}

// execute executes a check of the project with approvals that no store has: those of the
// reviewed base.
func (o *verifyOptions) execute(ctx context.Context, approved approval.Records, r evidence.Request) (evidence.Result, error) {
	checker := execute.New(execute.Options{
		Approvals: func() (approval.Records, error) { return approved, nil }, Now: o.app.Host.CurrentTime,
	})
	return checker.Check(ctx, r)
}
