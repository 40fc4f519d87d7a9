package attest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/evidence/attest"
	"github.com/guideway-dev/guideway/internal/workflow"
	"github.com/spf13/cobra"
)

// verifyOptions is the command line of guideway verify.
type verifyOptions struct {
	app            *app.App
	File           string
	Keys           []string
	Need           attest.Requirements
	DefinitionFile string
	JSON           bool
}

// NewVerifyCmd returns the command guideway verify.
func NewVerifyCmd(a *app.App) *cobra.Command {
	o := &verifyOptions{app: a}
	cmd := &cobra.Command{
		Use:   "verify FILE --key FILE",
		Short: "Verify an attestation of a run",
		Long: `Verify an attestation that "guideway runs attest" wrote, and print what it states. The
command reads only the named files: it uses no run, no setting and no network.

The signature proves that the holder of the key made the statement. Without --commit or
--tree, the attestation may be about any change. The exit code is 1 if the attestation is
refused.`,
		Example: `  guideway verify run.json --key laptop.pub --commit "$(git rev-parse HEAD)"
  guideway verify run.json --key laptop.pub --workflow coding-task --require-evidence test
  guideway verify run.json --key laptop.pub --require-approval release --json`,
		Args: app.ExactArgs(1, "one attestation", "guideway verify run.json --key laptop.pub"),
		RunE: app.RunWithArg(runVerify, o, &o.File, o.checkOptions),
	}
	f := cmd.Flags()
	f.StringArrayVar(&o.Keys, "key", nil, "trust the public keys in this PEM `file`; can be repeated")
	f.StringVar(&o.Need.Commit, "commit", "", "require that the attestation is about the commit with this full `id`")
	f.StringVar(&o.Need.Tree, "tree", "", "require that the attestation is about the Git tree with this full `id`")
	f.StringVar(&o.Need.Workflow, "workflow", "", "require a run of the workflow with this `id`")
	f.StringVar(&o.Need.Definition, "definition", "", "require the definition with this `hash`")
	f.StringVar(&o.DefinitionFile, "definition-file", "", "require the definition in this `file`")
	f.StringArrayVar(&o.Need.Approvals, "require-approval", nil, "require that a person approved this `gate`, or chose an option of it (GATE=OPTION); can be repeated")
	f.StringArrayVar(&o.Need.Evidence, "require-evidence", nil, "require evidence: the `name` of a check of the project that passed, or the id of a step that a check decided; can be repeated")
	app.AddJSONFlag(cmd, &o.JSON)
	return cmd
}

func (o *verifyOptions) checkOptions() error {
	switch {
	case len(o.Keys) == 0:
		return guideway.Errorf(guideway.CodeInvalid, "--key is required: the file of a public key that you trust").WithFix("guideway verify %s --key laptop.pub", o.File)
	case o.Need.Definition != "" && o.DefinitionFile != "":
		return guideway.Errorf(guideway.CodeInvalid, "--definition and --definition-file cannot be combined").WithFix("omit --definition, or omit --definition-file")
	}
	for flag, id := range map[string]string{"commit": o.Need.Commit, "tree": o.Need.Tree} {
		if id != "" && !attest.IsObjectID(id) {
			return guideway.Errorf(guideway.CodeInvalid, "--%s %q is not the full id of a Git object, 40 or 64 hexadecimal digits", flag, id).WithFix(`--commit "$(git rev-parse HEAD)", or --tree "$(git rev-parse HEAD^{tree})"`)
		}
	}
	return nil
}

// Result is the output of guideway verify --json.
type Result struct {
	Verified bool              `json:"verified"`
	Refusals []*attest.Refusal `json:"refusals"`
	// Keys are the ids of the trusted keys that signed the file.
	Keys   []string `json:"keys"`
	Commit string   `json:"commit,omitempty"`
	Tree   string   `json:"tree,omitempty"`
	// Statement is set if the signature is valid.
	Statement *attest.Predicate `json:"statement,omitempty"`
}

func runVerify(ctx context.Context, o *verifyOptions) error {
	host := o.app.Host
	keys, err := ReadKeys(ctx, host, o.Keys)
	if err != nil {
		return err
	}
	if o.DefinitionFile != "" {
		if o.Need.Definition, err = hashDefinition(ctx, host, o.DefinitionFile); err != nil {
			return err
		}
	}
	file, err := host.ReadInput(ctx, o.File, attest.MaxFile+1)
	if err != nil && guideway.ErrorCode(err) != guideway.CodeTooLarge {
		return err
	}
	if err != nil {
		file = make([]byte, attest.MaxFile+1) // Open refuses its size.
	}
	result := Result{Refusals: []*attest.Refusal{}, Keys: []string{}}
	s, signedBy, err := attest.Open(file, keys)
	var refusal *attest.Refusal
	switch {
	case errors.As(err, &refusal):
		result.Refusals = append(result.Refusals, refusal)
	default:
		result.Keys, result.Commit, result.Tree, result.Statement = signedBy, s.Commit(), s.Tree(), &s.Predicate
		result.Refusals = app.OrEmpty(s.Check(o.Need))
	}
	result.Verified = len(result.Refusals) == 0
	return host.WriteCheckResult(o.JSON, result, !result.Verified, func() { o.writeText(&result) })
}

// ReadKeys reads files of public keys.
func ReadKeys(ctx context.Context, host *app.Host, names []string) (keys []attest.PublicKey, err error) {
	const most = 1 << 20
	for _, name := range names {
		text, err := host.ReadInput(ctx, name, most)
		if err != nil {
			return nil, err
		}
		more, err := attest.ParsePublicKeys(name, text)
		if err != nil {
			return nil, err
		}
		keys = append(keys, more...)
	}
	return keys, nil
}

// hashDefinition returns the hash of the definition in a file.
func hashDefinition(ctx context.Context, host *app.Host, name string) (string, error) {
	data, err := host.ReadDefinition(ctx, name)
	if err != nil {
		return "", err
	}
	def, found := workflow.Check(name, data)
	if def == nil {
		return "", guideway.Errorf(guideway.CodeInvalidDefinition, "%s is not a valid workflow: %s", name, found[0].Message).WithFix("guideway validate %s", name)
	}
	return def.Hash, nil
}

func (o *verifyOptions) writeText(r *Result) {
	host := o.app.Host
	styles := host.OutStyles()
	if r.Statement != nil {
		WriteStatement(host, r.Statement)
		line := host.WriteFields(10)
		line("commit", r.Commit)
		line("tree", r.Tree)
		line("signed by", strings.Join(r.Keys, ", "))
		fmt.Fprintln(host.Out)
	}
	for _, refusal := range r.Refusals {
		fmt.Fprintf(host.Out, "%s %s\n", styles.Red(app.OneLine(refusal.Message)), styles.Faint("["+string(refusal.Reason)+"]"))
		if refusal.Fix != "" {
			fmt.Fprintf(host.Out, "  try: %s\n", app.OneLine(refusal.Fix))
		}
	}
	if !r.Verified {
		fmt.Fprintf(host.Out, "%s: the attestation is refused\n", styles.Red("failed"))
		return
	}
	fmt.Fprintf(host.Out, "%s: the attestation is valid\n", styles.Green("ok"))
	if o.Need.Commit == "" && o.Need.Tree == "" {
		fmt.Fprintln(host.Err, "note: neither the commit nor the tree was compared; pass --commit or --tree to accept the attestation for one change only")
	}
}

// WriteStatement prints what a statement states about a run.
func WriteStatement(host *app.Host, p *attest.Predicate) {
	line := host.WriteFields(10)
	line("run", app.OneLine(p.Run.ID))
	line("workflow", app.OneLine(p.Workflow.ID+" "+p.Workflow.Version))
	line("definition", app.OneLine(p.Workflow.Definition))
	line("completed", app.FormatTime(p.Run.CompletedAt))
	for i := range p.Steps {
		step := &p.Steps[i]
		fmt.Fprintf(host.Out, "%-10s  %-8s  %s\n", "step", step.Label, app.OneLine(step.ID))
		for j := range step.Checks {
			fmt.Fprintf(host.Out, "%-22s  %s\n", "", app.OneLine(step.Checks[j].Summary()))
		}
	}
	for _, a := range p.Approvals {
		line("approval", app.OneLine(fmt.Sprintf("%s: %s, by %s via %s", a.Gate, a.Option, cmp.Or(a.By, "an unknown user"), a.Via)))
	}
	if p.Protected != nil {
		for _, c := range p.Protected.Changes {
			line("approval", app.OneLine(fmt.Sprintf("change of the protected file %s, by %s", c.Path, cmp.Or(p.Protected.By, "an unknown user"))))
		}
	}
}
