// Package run implements the command that executes a workflow without saving the run.
package run

import "github.com/guideway-dev/guideway/internal/cli/app"

import "github.com/guideway-dev/guideway/internal/cli/walk"

import (
	"context"
	"errors"
	"maps"

	"github.com/guideway-dev/guideway"
	"github.com/spf13/cobra"
)

// RunOptions is the command line of guideway run.
type RunOptions struct {
	app *app.App
	// Name is the id or the file of a definition.
	Name string
	// Answers is the file of the answers; "" asks the user.
	Answers string
	// Vars are the initial variables, as NAME=VALUE.
	Vars []string
	JSON bool
}

func NewRunCmd(a *app.App, run func(context.Context, *RunOptions) error) *cobra.Command {
	o := &RunOptions{app: a}
	cmd := &cobra.Command{
		Use:               "run {ID|FILE}",
		Args:              app.ExactArgs(1, "one workflow, by id or file", "guideway run coding-task"),
		ValidArgsFunction: a.CompleteDefinitions(),
		RunE:              app.RunWithArg(run, o, &o.Name, o.checkOptions),
	}
	f := cmd.Flags()
	f.StringVar(&o.Answers, "answers", "", "read the answers from this `file`, or - for standard input")
	f.StringArrayVar(&o.Vars, "var", nil, "set an initial variable as `name=value`, a JSON value or plain text; can be repeated")
	f.BoolVar(&o.JSON, "json", false, "print each position and event as a line of JSON; requires --answers")
	return cmd
}

// checkOptions returns an error if the options are invalid or cannot be combined.
func (o *RunOptions) checkOptions() error {
	for _, pair := range o.Vars {
		if _, _, err := app.ParsePair(pair, "--var name=value"); err != nil {
			return err
		}
	}
	switch {
	case o.Answers == "-" && o.Name == "-":
		return guideway.Errorf(guideway.CodeInvalid, "the definition and the answers cannot both be read from standard input").
			WithFix("guideway run - --answers answers.yaml")
	case o.Answers != "":
		return nil
	case o.JSON:
		return guideway.Errorf(guideway.CodeInvalid, "--json requires --answers").
			WithFix("guideway run %s --json --answers answers.yaml", o.Name)
	case o.Name == "-":
		return guideway.Errorf(guideway.CodeInvalid, "a definition from standard input requires --answers").
			WithFix("guideway run - --answers answers.yaml")
	default:
		return nil
	}
}

func RunRun(ctx context.Context, o *RunOptions) error {
	host := o.app.Host
	def, err := o.app.FindDefinition(ctx, o.Name)
	if err != nil {
		return err
	}
	if o.Answers == "" && (!host.InTerminal || !host.OutTerminal) {
		return app.UsageError{Err: guideway.Errorf(guideway.CodeInvalid, "guideway run without --answers requires a terminal, but the input or the output is not a terminal").
			WithFix("guideway run %s --answers answers.yaml", o.Name)}
	}
	cfg, err := o.app.Load()
	if err != nil {
		return err
	}
	w := &walk.Walk{Def: def, Workflow: walk.NewWorkflowView(def), Vars: map[string]any{}, Checker: o.app.NewChecker(cfg, nil), Dir: host.Dir}
	var v walk.View = &walk.TextView{TextPrinter: app.NewTextPrinter(host, host.Out)}
	if o.JSON {
		v = &walk.JSONView{Enc: app.NewJSONEncoder(host.Out)}
	}
	var p walk.Player
	if o.Answers == "" {
		t := walk.NewTerminal(host)
		v, p = t, t
	} else {
		a, err := readAnswers(ctx, host, o.Answers, w.Workflow)
		if err != nil {
			return err
		}
		maps.Copy(w.Vars, a.context)
		p = &scriptedPlayer{answers: a, times: map[string]int{}}
	}
	for _, pair := range o.Vars {
		name, text, _ := app.ParsePair(pair, "") // checkOptions has checked the pair
		w.Workflow.SetVariable(w.State, w.Vars, name, w.Workflow.ParseVariable(name, text))
	}
	err = w.Run(ctx, p, v)
	if errors.Is(err, walk.ErrStopped) {
		return app.SilentError{Code: app.ExitFailed}
	}
	return err
}
