package cli

import (
	"context"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/spf13/cobra"
)

// runFunc runs a command with its options.
type runFunc[O any] = func(context.Context, *O) error

// plainOptions are the options of a command that takes no arguments and answers in
// JSON.
type plainOptions struct {
	app  *app
	JSON bool
}

// nameOptions are the options of a command that takes one name or id.
type nameOptions struct {
	app  *app
	Name string
	JSON bool
}

// newPlainCmd completes a command that takes no arguments and answers in JSON.
func newPlainCmd(a *app, run runFunc[plainOptions], cmd *cobra.Command) *cobra.Command {
	o := &plainOptions{app: a}
	cmd.Args, cmd.RunE = noArgs, runWith(run, o)
	addJSONFlag(cmd, &o.JSON)
	return cmd
}

// newNameCmd completes a command that takes one name and answers in JSON.
func newNameCmd(a *app, run runFunc[nameOptions], cmd *cobra.Command) *cobra.Command {
	o := &nameOptions{app: a}
	cmd.RunE = runWithArg(run, o, &o.Name)
	addJSONFlag(cmd, &o.JSON)
	return cmd
}

// newChangeCmd completes a command that takes one name and changes what has it.
func newChangeCmd(a *app, run runFunc[nameOptions], cmd *cobra.Command) *cobra.Command {
	o := &nameOptions{app: a}
	cmd.RunE = runWithArg(run, o, &o.Name)
	addChangeFlag(cmd, &o.JSON)
	return cmd
}

// newGroupCmd completes a command that only has commands below it: without one it
// prints its help.
func newGroupCmd(cmd *cobra.Command, children ...*cobra.Command) *cobra.Command {
	if cmd.Args == nil {
		cmd.Args = unknownCommand
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(children...)
	return cmd
}

// runWith returns the RunE of a command without arguments. The checks of the options
// run first; what they refuse is a wrong command line.
func runWith[O any](run runFunc[O], o *O, checks ...func() error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		for _, check := range checks {
			if err := check(); err != nil {
				return usageError{err: err}
			}
		}
		return run(cmd.Context(), o)
	}
}

// runWithArg returns the RunE of a command that stores its first argument, if there
// is one, in arg.
func runWithArg[O any](run runFunc[O], o *O, arg *string, checks ...func() error) func(*cobra.Command, []string) error {
	next := runWith(run, o, checks...)
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			*arg = args[0]
		}
		return next(cmd, args)
	}
}

// runWithArgs returns the RunE of a command that stores its arguments in list.
func runWithArgs[O any](run runFunc[O], o *O, list *[]string, checks ...func() error) func(*cobra.Command, []string) error {
	next := runWith(run, o, checks...)
	return func(cmd *cobra.Command, args []string) error {
		*list = args
		return next(cmd, args)
	}
}

// addJSONFlag adds --json to a command.
func addJSONFlag(cmd *cobra.Command, asJSON *bool) {
	cmd.Flags().BoolVar(asJSON, "json", false, "answer in JSON")
}

// addLimitFlag adds --limit to a command that lists things, and refuses a limit that
// lists nothing.
func addLimitFlag(cmd *cobra.Command, limit *int, usage string) {
	cmd.Flags().IntVar(limit, "limit", 100, usage)
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if *limit < 1 {
			return usageError{err: guideway.Errorf(guideway.CodeInvalid, "a limit of %d lists nothing", *limit).WithFix("--limit 100")}
		}
		return nil
	}
}

// addFixedCompletion completes a flag with fixed values.
func addFixedCompletion(cmd *cobra.Command, flag string, values []string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// graphMermaid is the only format of drawings.
const graphMermaid = "mermaid"

// addGraphFlag adds --graph to a command that can draw what it shows, and refuses
// other formats.
func addGraphFlag(cmd *cobra.Command, format *string, usage string) {
	cmd.Flags().StringVar(format, "graph", "", usage)
	addFixedCompletion(cmd, "graph", []string{graphMermaid})
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if *format != "" && *format != graphMermaid {
			return usageError{err: guideway.Errorf(guideway.CodeInvalid, "there is no graph format %q; there is %s", *format, graphMermaid).
				WithFix("--graph %s", graphMermaid)}
		}
		return nil
	}
}

// exactly refuses any other number of arguments; what names them.
func exactly(n int, what, example string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == n {
			return nil
		}
		return guideway.Errorf(guideway.CodeInvalid, "%s takes %s (got %d arguments)", cmd.CommandPath(), what, len(args)).
			WithFix("%s", example)
	}
}

// unknownCommand refuses a word that is no command, and says which one was
// probably meant.
func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return unknown(cmd, args[0])
}

func unknown(cmd *cobra.Command, word string) error {
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

// noArgs refuses arguments as a wrong command line.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usageError{err: guideway.Errorf(guideway.CodeInvalid, "%s takes no arguments (got %q)", cmd.CommandPath(), args[0]).
		WithFix("%s --help", cmd.CommandPath())}
}

// showGraph is a drawing.
type showGraph struct {
	Format string `json:"format"`
	Text   string `json:"text"`
}
