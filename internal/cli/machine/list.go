package machine

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/cli/server"
	"github.com/guideway-dev/guideway/internal/platform/lists"
	"github.com/spf13/cobra"
)

// machineValidateOptions is the command line of guideway machine validate.
type machineValidateOptions struct {
	app    *app.App
	Files  []string
	Strict bool
	JSON   bool
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

func runMachineList(ctx context.Context, o *app.PlainOptions) error {
	_, resolver, err := server.OpenMachineResolver(ctx, o.App)
	if err != nil {
		return err
	}
	served, broken := resolver.All()
	answer := machineListAnswer{Machines: []machineListRow{}, Diagnostics: []guideway.Diagnostic{}}
	for _, s := range served {
		d := s.Definition
		answer.Machines = append(answer.Machines, machineListRow{
			Name: d.Name, Description: d.Description, Agents: len(d.Agents), States: len(d.States), Source: s.Source, Path: s.Path, Hash: d.Hash,
		})
	}
	for _, b := range broken {
		answer.Diagnostics = append(answer.Diagnostics, b.Diagnostics...)
	}
	more := lists.Map(answer.Diagnostics, func(d guideway.Diagnostic) string { return app.EscapeText(d.String()) })
	return app.WriteList(o.App.Host, o.JSON, app.Listing[machineListRow]{
		Items: answer.Machines, Answer: answer, Empty: "There are no machines. To list the sources: guideway sources", More: strings.Join(more, "\n"),
		Table: app.NewTable(4, "MACHINE", "AGENTS", "STATES", "SOURCE", "DESCRIPTION").AlignRight(1, 2),
		Row: func(r machineListRow) []string {
			return []string{app.OneLine(r.Name), fmt.Sprint(r.Agents), fmt.Sprint(r.States), r.Source, app.OneLine(r.Description)}
		},
	})
}

func newMachineValidateCmd(a *app.App, do func(context.Context, *machineValidateOptions) error) *cobra.Command {
	o := &machineValidateOptions{app: a}
	cmd := &cobra.Command{
		Use:               "validate {NAME|FILE}...",
		Args:              app.RangeArgs(1, math.MaxInt, "machines, by name or file", "guideway machine validate machines/support-desk.json"),
		RunE:              app.RunWithArgs(do, o, &o.Files),
		ValidArgsFunction: completeMachines(a),
	}
	cmd.Flags().BoolVar(&o.Strict, "strict", false, "treat warnings as errors")
	app.AddJSONFlag(cmd, &o.JSON)
	return cmd
}

// machineValidateRow is the result of the validation of one machine.
type machineValidateRow struct {
	Machine     string                `json:"machine"`
	Valid       bool                  `json:"valid"`
	Diagnostics []guideway.Diagnostic `json:"diagnostics"`
}

func runMachineValidate(ctx context.Context, o *machineValidateOptions) error {
	cfg, resolver, err := server.OpenMachineResolver(ctx, o.app)
	if err != nil {
		return err
	}
	offers, err := server.AvailableTools(ctx, o.app, cfg)
	if err != nil {
		return err
	}
	host := o.app.Host
	var answers []machineValidateRow
	invalid := false
	for _, name := range o.Files {
		one, err := resolver.Find(name)
		if one == nil {
			return err
		}
		v := machineValidateRow{Machine: name, Valid: one.Definition != nil, Diagnostics: app.OrEmpty(one.Diagnostics)}
		if v.Valid {
			v.Diagnostics = app.OrEmpty(append(one.Lint(), one.LintAvailableTools(offers)...))
		}
		invalid = invalid || !v.Valid || o.Strict && len(v.Diagnostics) > 0
		answers = append(answers, v)
	}
	err = host.WriteJSONOr(o.JSON, answers, func() {
		for _, v := range answers {
			for _, d := range v.Diagnostics {
				fmt.Fprintln(host.Out, app.EscapeText(d.String()))
			}
			if v.Valid {
				fmt.Fprintf(host.Out, "%s: valid, %s\n", v.Machine, app.Plural(len(v.Diagnostics), "warning", "warnings"))
			}
		}
	})
	if err == nil && invalid {
		err = app.SilentError{Code: app.ExitInvalid}
	}
	return err
}

// completeMachines completes machine names.
func completeMachines(a *app.App) cobra.CompletionFunc {
	return app.CompleteNames(math.MaxInt, app.NamesOrFiles, func(ctx context.Context) (names []string, err error) {
		_, resolver, err := server.OpenMachineResolver(ctx, a)
		if err != nil {
			return nil, err
		}
		served, _ := resolver.All()
		for _, one := range served {
			names = append(names, one.Definition.Name)
		}
		return names, nil
	})
}
