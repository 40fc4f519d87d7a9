package run

import "github.com/guideway-dev/guideway/internal/cli/app"

import "github.com/guideway-dev/guideway/internal/cli/walk"

import (
	"context"
	"encoding/json"
	"errors"
	"maps"

	"github.com/guideway-dev/guideway"
	"github.com/spf13/cobra"
)

// RunOptions is the command line of guideway run.
type RunOptions struct {
	app *app.App
	// Name is the id of a definition, or its file.
	Name string
	// Answers is the file of the answers; "" asks the person.
	Answers string
	// Vars are the first variables, as NAME=VALUE.
	Vars []string
	JSON bool
}

func NewRunCmd(a *app.App, run func(context.Context, *RunOptions) error) *cobra.Command {
	o := &RunOptions{app: a}
	cmd := &cobra.Command{
		Use:   "run {ID|FILE}",
		Short: "Walk through a workflow in the agent's place",
		Long: `Walk through a workflow at the terminal, in the agent's place and with the engine
that agents get: it shows one step at a time, judges the output, asks at gates and
for the variables that conditions wait for. Nothing is kept.

With --answers the answers come from a file, in YAML or JSON, and nothing is asked:

  context:                      # variables from the beginning
    size: large
  outputs:                      # the output of each step
    plan: The plan is ...       #   the same text every time, or
    work: [first, second]       #   one for each time the step is asked for
  notes:                        # notes on it, or on the answer to a gate
    plan: Two ways were left out.
  sets:                         # variables that are set with the output
    plan: { approved: true }    #   or a list, as for outputs
  answers:                      # the option that is chosen at each gate: confirm,
    plan: [revise, confirm]     #   or revise for a step and skip for a loop

An output that is an object becomes its JSON. The exit code is 1 if an answer is
missing or refused, and 0 when the workflow has been completed.

In a phase workflow the ids are those of steps, checkpoints and decisions; an id
that more than one phase has is written PHASE/ID. Answers are options, or decline at
a checkpoint that is not required. Besides:

  skips:                        # why an optional step is left out, or what is
    look-around: Known already. #   left of an optional phase
  sets:                         # also where a phase, decision or loop waits
    review: { passed: true }    #   for variables`,
		Example: `  guideway run coding-task
  guideway run ./my-workflow.yaml --var size=small
  guideway run ./my-workflow.yaml --answers answers.yaml --json`,
		Args:              app.ExactArgs(1, "one workflow, by id or file", "guideway run coding-task"),
		ValidArgsFunction: a.CompleteDefinitions,
		RunE:              app.RunWithArg(run, o, &o.Name, o.check),
	}
	f := cmd.Flags()
	f.StringVar(&o.Answers, "answers", "", "take the answers from this `file`, - for the standard input")
	f.StringArrayVar(&o.Vars, "var", nil, "set a variable from the beginning, as `name=value`, the value JSON or plain text; may be repeated")
	f.BoolVar(&o.JSON, "json", false, "print each position and event as a line of JSON; needs --answers")
	return cmd
}

// check finds what is wrong with the command line alone.
func (o *RunOptions) check() error {
	for _, pair := range o.Vars {
		if _, _, err := app.ParsePair(pair); err != nil {
			return err
		}
	}
	switch host := o.app.Host; {
	case o.Answers == "-" && o.Name == "-":
		return guideway.Errorf(guideway.CodeInvalid, "the definition and the answers cannot both come from the standard input").
			WithFix("guideway run - --answers answers.yaml")
	case o.Answers != "":
		return nil
	case o.JSON:
		return guideway.Errorf(guideway.CodeInvalid, "--json needs --answers: nothing is asked in JSON").
			WithFix("guideway run %s --json --answers answers.yaml", o.Name)
	case !host.InTerminal || !host.OutTerminal || o.Name == "-":
		return guideway.Errorf(guideway.CodeInvalid, "there is no terminal to ask at: the input or the output is a file or a pipe").
			WithFix("guideway run %s --answers answers.yaml", o.Name)
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
	w := &walk.Walk{Def: def, Workflow: walk.NewWorkflowView(def), Vars: map[string]any{}}
	var v walk.View = &walk.TextView{TextPrinter: app.NewTextPrinter(host, host.Out)}
	if o.JSON {
		v = &walk.JSONView{Enc: json.NewEncoder(host.Out)}
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
		p = &scripted{answers: a, times: map[string]int{}}
	}
	for _, pair := range o.Vars {
		name, text, _ := app.ParsePair(pair) // checked
		w.Workflow.SetVariable(w.State, w.Vars, name, w.Workflow.ParseVariable(name, text))
	}
	err = w.Run(ctx, p, v)
	if errors.Is(err, walk.ErrStopped) {
		return app.SilentError{Code: app.ExitFailed}
	}
	return err
}
