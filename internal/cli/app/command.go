package app

import (
	"context"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/spf13/cobra"
)

// RunFunc runs a command with its options.
type RunFunc[O any] = func(context.Context, *O) error

// PlainOptions are the options of a command that takes no arguments and answers in
// JSON.
type PlainOptions struct {
	App  *App
	JSON bool
}

// NameOptions are the options of a command that takes one name or id.
type NameOptions struct {
	App  *App
	Name string
	JSON bool
}

// NewPlainCmd completes a command that takes no arguments and answers in JSON.
func NewPlainCmd(a *App, run RunFunc[PlainOptions], cmd *cobra.Command) *cobra.Command {
	o := &PlainOptions{App: a}
	cmd.Args, cmd.RunE = NoArgs, RunWith(run, o)
	AddJSONFlag(cmd, &o.JSON)
	return cmd
}

// NewNameCmd completes a command that takes one name and answers in JSON.
func NewNameCmd(a *App, run RunFunc[NameOptions], cmd *cobra.Command) *cobra.Command {
	o := &NameOptions{App: a}
	cmd.RunE = RunWithArg(run, o, &o.Name)
	AddJSONFlag(cmd, &o.JSON)
	return cmd
}

// NewChangeCmd completes a command that takes one name and changes what has it.
func NewChangeCmd(a *App, run RunFunc[NameOptions], cmd *cobra.Command) *cobra.Command {
	o := &NameOptions{App: a}
	cmd.RunE = RunWithArg(run, o, &o.Name)
	AddChangeFlag(cmd, &o.JSON)
	return cmd
}

// NewGroupCmd completes a command that only has commands below it: without one it
// prints its help.
func NewGroupCmd(cmd *cobra.Command, children ...*cobra.Command) *cobra.Command {
	if cmd.Args == nil {
		cmd.Args = RejectUnknownCommand
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(children...)
	return cmd
}

// RunWith returns the RunE of a command without arguments. The checks of the options
// run first; what they refuse is a wrong command line.
func RunWith[O any](run RunFunc[O], o *O, checks ...func() error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		for _, check := range checks {
			if err := check(); err != nil {
				return UsageError{Err: err}
			}
		}
		return run(cmd.Context(), o)
	}
}

// RunWithArg returns the RunE of a command that stores its first argument, if there
// is one, in arg.
func RunWithArg[O any](run RunFunc[O], o *O, arg *string, checks ...func() error) func(*cobra.Command, []string) error {
	next := RunWith(run, o, checks...)
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			*arg = args[0]
		}
		return next(cmd, args)
	}
}

// RunWithArgs returns the RunE of a command that stores its arguments in list.
func RunWithArgs[O any](run RunFunc[O], o *O, list *[]string, checks ...func() error) func(*cobra.Command, []string) error {
	next := RunWith(run, o, checks...)
	return func(cmd *cobra.Command, args []string) error {
		*list = args
		return next(cmd, args)
	}
}

// AddJSONFlag adds --json to a command.
func AddJSONFlag(cmd *cobra.Command, asJSON *bool) {
	cmd.Flags().BoolVar(asJSON, "json", false, "answer in JSON")
}

// AddLimitFlag adds --limit to a command that lists things, and refuses a limit that
// lists nothing.
func AddLimitFlag(cmd *cobra.Command, limit *int, usage string) {
	cmd.Flags().IntVar(limit, "limit", 100, usage)
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if *limit < 1 {
			return UsageError{Err: guideway.Errorf(guideway.CodeInvalid, "a limit of %d lists nothing", *limit).WithFix("--limit 100")}
		}
		return nil
	}
}

// AddFixedCompletion completes a flag with fixed values.
func AddFixedCompletion(cmd *cobra.Command, flag string, values []string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// GraphMermaid is the only format of drawings.
const GraphMermaid = "mermaid"

// AddGraphFlag adds --graph to a command that can draw what it shows, and refuses
// other formats.
func AddGraphFlag(cmd *cobra.Command, format *string, usage string) {
	cmd.Flags().StringVar(format, "graph", "", usage)
	AddFixedCompletion(cmd, "graph", []string{GraphMermaid})
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if *format != "" && *format != GraphMermaid {
			return UsageError{Err: guideway.Errorf(guideway.CodeInvalid, "there is no graph format %q; there is %s", *format, GraphMermaid).
				WithFix("--graph %s", GraphMermaid)}
		}
		return nil
	}
}

// ExactArgs refuses any other number of arguments; what names them.
func ExactArgs(n int, what, example string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == n {
			return nil
		}
		return guideway.Errorf(guideway.CodeInvalid, "%s takes %s (got %d arguments)", cmd.CommandPath(), what, len(args)).
			WithFix("%s", example)
	}
}

// RejectUnknownCommand refuses a word that is no command, and says which one was
// probably meant.
func RejectUnknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return UnknownCommandError(cmd, args[0])
}

func UnknownCommandError(cmd *cobra.Command, word string) error {
	err := guideway.Errorf(guideway.CodeInvalid, "unknown command %q for %q", word, cmd.CommandPath()).
		WithFix("%s --help", cmd.CommandPath())
	if cmd.SuggestionsMinimumDistance <= 0 {
		cmd.SuggestionsMinimumDistance = 2
	}
	if near := cmd.SuggestionsFor(word); len(near) > 0 {
		err = err.WithFix("%s %s", cmd.CommandPath(), strings.Join(near, ", or "+cmd.CommandPath()+" "))
	}
	return err
}

// NoArgs refuses arguments as a wrong command line.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return UsageError{Err: guideway.Errorf(guideway.CodeInvalid, "%s takes no arguments (got %q)", cmd.CommandPath(), args[0]).
		WithFix("%s --help", cmd.CommandPath())}
}

// GraphOutput is a drawing.
type GraphOutput struct {
	Format string `json:"format"`
	Text   string `json:"text"`
}
