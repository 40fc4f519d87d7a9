// Package attest implements the commands for attestations: their keys and their
// verification.
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
		Use:  "verify FILE --key FILE",
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

// NewAttestCmd returns the command guideway attest.
func NewAttestCmd(a *app.App) *cobra.Command {
	return app.NewGroupCmd(&cobra.Command{Use: "attest"}, newKeysCmd(a))
}

func newKeysCmd(a *app.App) *cobra.Command {
	list := app.NewPlainCmd(a, runKeysList, &cobra.Command{Use: "list"})
	return app.NewGroupCmd(&cobra.Command{Use: "keys"}, list, newKeysCreateCmd(a), newKeysShowCmd(a), newKeysRemoveCmd(a))
}

func openKeys(a *app.App) (app.SigningKeys, error) {
	cfg, err := a.Load()
	if err != nil {
		return app.SigningKeys{}, err
	}
	return app.OpenSigningKeys(cfg), nil
}

// completeKeys completes the names of the keys.
func completeKeys(a *app.App) cobra.CompletionFunc {
	return app.CompleteNames(1, cobra.ShellCompDirectiveNoFileComp, func(context.Context) ([]string, error) {
		keys, err := openKeys(a)
		if err != nil {
			return nil, err
		}
		return keys.Names()
	})
}

// keyEntry is a key in the output of --json.
type keyEntry struct {
	Name      string `json:"name"`
	ID        string `json:"id"`
	PublicKey string `json:"publicKey"`
	// Error explains why the key cannot be used.
	Error string `json:"error,omitempty"`
}

func newKeyEntry(key app.SigningKey) keyEntry {
	return keyEntry{Name: key.Name, ID: key.Public().ID(), PublicKey: key.Public().PEM()}
}

func runKeysList(_ context.Context, o *app.PlainOptions) error {
	keys, err := openKeys(o.App)
	if err != nil {
		return err
	}
	names, err := keys.Names()
	if err != nil {
		return err
	}
	entries := []keyEntry{}
	for _, name := range names {
		key, err := keys.Get(name)
		if err != nil {
			entries = append(entries, keyEntry{Name: name, Error: err.Error()})
			continue
		}
		entries = append(entries, newKeyEntry(key))
	}
	return app.WriteList(o.App.Host, o.JSON, app.Listing[keyEntry]{
		Items: entries, Answer: map[string]any{"keys": entries}, Empty: "There are no signing keys. To create one: guideway attest keys create NAME",
		Table: app.NewTable(1, "NAME", "ID"),
		Row: func(e keyEntry) []string {
			if e.Error != "" {
				return []string{e.Name, "cannot be read: " + e.Error}
			}
			return []string{e.Name, e.ID}
		},
	})
}

func newKeysCreateCmd(a *app.App) *cobra.Command {
	return app.NewChangeCmd(a, runKeysCreate, &cobra.Command{
		Use:               "create NAME",
		Args:              app.ExactArgs(1, "one name", "guideway attest keys create laptop"),
		ValidArgsFunction: cobra.NoFileCompletions,
	})
}

// keyChange is the output of --json of a change.
type keyChange struct {
	app.ChangeResult
	Key *keyEntry `json:"key,omitempty"`
}

func runKeysCreate(_ context.Context, o *app.NameOptions) error {
	keys, err := openKeys(o.App)
	if err != nil {
		return err
	}
	key, err := keys.Create(o.Name)
	if err != nil {
		return err
	}
	entry := newKeyEntry(key)
	return o.App.Host.WriteChange(o.JSON, keyChange{
		ChangeResult: app.ChangeResult{Action: "created", Changed: true, Kind: app.KindSigningKey, Name: key.Name}, Key: &entry,
	}, fmt.Sprintf("Created: %s, id %s\nTo print its public key: guideway attest keys show %s", key.Name, entry.ID, key.Name))
}

func newKeysShowCmd(a *app.App) *cobra.Command {
	return app.NewNameCmd(a, runKeysShow, &cobra.Command{
		Use:               "show NAME",
		Args:              app.ExactArgs(1, "one name", "guideway attest keys show laptop"),
		ValidArgsFunction: completeKeys(a),
	})
}

func runKeysShow(_ context.Context, o *app.NameOptions) error {
	keys, err := openKeys(o.App)
	if err != nil {
		return err
	}
	key, err := keys.Get(o.Name)
	if err != nil {
		return err
	}
	host := o.App.Host
	return host.WriteJSONOr(o.JSON, newKeyEntry(key), func() { fmt.Fprint(host.Out, key.Public().PEM()) })
}

func newKeysRemoveCmd(a *app.App) *cobra.Command {
	return app.NewChangeCmd(a, runKeysRemove, &cobra.Command{
		Use:               "remove NAME",
		Args:              app.ExactArgs(1, "one name", "guideway attest keys remove laptop"),
		ValidArgsFunction: completeKeys(a),
	})
}

func runKeysRemove(_ context.Context, o *app.NameOptions) error {
	keys, err := openKeys(o.App)
	if err != nil {
		return err
	}
	if err := keys.Remove(o.Name); err != nil {
		return err
	}
	return o.App.Host.WriteChange(o.JSON, app.ChangeResult{Action: "removed", Changed: true, Kind: app.KindSigningKey, Name: o.Name}, "Removed: "+o.Name)
}
