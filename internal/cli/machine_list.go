package cli

import (
	"context"
	"fmt"

	"github.com/guideway-dev/guideway"
	"github.com/spf13/cobra"
)

// machineListOptions is the command line of guideway machine list and validate.
type machineListOptions struct {
	app    *app
	Files  []string
	Strict bool
	JSON   bool
}

func newMachineListCmd(a *app, do func(context.Context, *machineListOptions) error) *cobra.Command {
	o := &machineListOptions{app: a}
	cmd := &cobra.Command{
		Use: "list", Short: "List the machines of all sources",
		Example: "  guideway machine list\n  guideway machine list --json",
		Args:    noArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return do(cmd.Context(), o) },
	}
	cmd.Flags().BoolVar(&o.JSON, "json", false, "answer in JSON")
	return cmd
}

// machineListAnswer is the answer of guideway machine list --json.
type machineListAnswer struct {
	Machines    []machineListRow      `json:"machines"`
	Diagnostics []guideway.Diagnostic `json:"diagnostics"`
}

// machineListRow is one machine.
type machineListRow struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Agents      int    `json:"agents"`
	States      int    `json:"states"`
	Source      string `json:"source"`
	Path        string `json:"path"`
	Hash        string `json:"hash"`
}

func runMachineList(ctx context.Context, o *machineListOptions) error {
	cfg, err := o.app.load()
	if err != nil {
		return err
	}
	shelf, err := o.app.machineShelf(ctx, cfg)
	if err != nil {
		return err
	}
	served, broken := shelf.all()
	answer := machineListAnswer{Machines: []machineListRow{}, Diagnostics: []guideway.Diagnostic{}}
	for _, s := range served {
		d := s.Definition
		answer.Machines = append(answer.Machines, machineListRow{
			Name: d.Name, Description: d.Description, Agents: len(d.Agents), States: len(d.States), Source: s.Source, Path: s.Path, Hash: d.Hash,
		})
	}
	for _, b := range broken {
		answer.Diagnostics = append(answer.Diagnostics, b.Found...)
	}
	host := o.app.host
	if o.JSON {
		return writeJSON(host.Out, answer)
	}
	t := table{right: map[int]bool{1: true, 2: true}, flexible: 4}
	t.add("MACHINE", "AGENTS", "STATES", "SOURCE", "DESCRIPTION")
	for _, r := range answer.Machines {
		t.add(oneLine(r.Name), fmt.Sprint(r.Agents), fmt.Sprint(r.States), r.Source, oneLine(r.Description))
	}
	t.write(host.Out, host.terminalWidth(), host.outStyles())
	for _, d := range answer.Diagnostics {
		fmt.Fprintln(host.Err, printable(d.String()))
	}
	return nil
}

func newMachineValidateCmd(a *app, do func(context.Context, *machineListOptions) error) *cobra.Command {
	o := &machineListOptions{app: a}
	cmd := &cobra.Command{
		Use: "validate {NAME|FILE}...", Short: "Check machines with their scripts and roles",
		Long: `Check machines: the configuration, the functions of the script, the roles, and
whether anything that is configured offers their tools, as far as that is known without
starting a server. Every error and every warning is told with its place and its fix. The
exit code is 3 if a machine has an error; --strict makes warnings count as errors.`,
		Example: "  guideway machine validate machines/support-desk.json\n  guideway machine validate support-desk --json",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Files = args
			return do(cmd.Context(), o)
		},
		ValidArgsFunction: a.completeMachines,
	}
	cmd.Flags().BoolVar(&o.Strict, "strict", false, "fail on warnings too")
	cmd.Flags().BoolVar(&o.JSON, "json", false, "answer in JSON")
	return cmd
}

// machineValidity is what is known of one machine.
type machineValidity struct {
	Machine     string                `json:"machine"`
	Valid       bool                  `json:"valid"`
	Diagnostics []guideway.Diagnostic `json:"diagnostics"`
}

func runMachineValidate(ctx context.Context, o *machineListOptions) error {
	cfg, err := o.app.load()
	if err != nil {
		return err
	}
	shelf, err := o.app.machineShelf(ctx, cfg)
	if err != nil {
		return err
	}
	offers, err := o.app.machineOffers(ctx, cfg)
	if err != nil {
		return err
	}
	host := o.app.host
	var answers []machineValidity
	invalid := false
	for _, name := range o.Files {
		one, err := shelf.find(name)
		if one == nil {
			return err
		}
		v := machineValidity{Machine: name, Valid: one.Definition != nil, Diagnostics: orEmpty(one.Found)}
		if v.Valid {
			v.Diagnostics = orEmpty(append(one.Lint(), one.LintOffers(offers)...))
		}
		invalid = invalid || !v.Valid || o.Strict && len(v.Diagnostics) > 0
		answers = append(answers, v)
	}
	if o.JSON {
		if err := writeJSON(host.Out, answers); err != nil {
			return err
		}
	} else {
		for _, v := range answers {
			for _, d := range v.Diagnostics {
				fmt.Fprintln(host.Out, printable(d.String()))
			}
			if v.Valid {
				fmt.Fprintf(host.Out, "%s: valid, %s\n", v.Machine, plural(len(v.Diagnostics), "warning", "warnings"))
			}
		}
	}
	if invalid {
		return silentError{exitInvalid}
	}
	return nil
}

// completeMachines completes the names of machines.
func (a *app) completeMachines(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	cfg, err := a.load()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	shelf, err := a.machineShelf(cmd.Context(), cfg)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	served, _ := shelf.all()
	names := make([]string, len(served))
	for i := range served {
		names[i] = served[i].Definition.Name
	}
	return names, cobra.ShellCompDirectiveDefault
}
