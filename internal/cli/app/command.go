package app

import (
	"context"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/spf13/cobra"
)

// RunFunc is the implementation of a command with options O.
type RunFunc[O any] = func(context.Context, *O) error

// PlainOptions are the options of a command without arguments that supports --json.
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

// NewPlainCmd sets up a command without arguments that supports --json.
func NewPlainCmd(a *App, run RunFunc[PlainOptions], cmd *cobra.Command) *cobra.Command {
	o := &PlainOptions{App: a}
	cmd.Args, cmd.RunE = NoArgs, RunWith(run, o)
	AddJSONFlag(cmd, &o.JSON)
	return cmd
}

// NewNameCmd sets up a command that takes one name and supports --json.
func NewNameCmd(a *App, run RunFunc[NameOptions], cmd *cobra.Command) *cobra.Command {
	o := &NameOptions{App: a}
	cmd.RunE = RunWithArg(run, o, &o.Name)
	AddJSONFlag(cmd, &o.JSON)
	return cmd
}

// NewChangeCmd sets up a command that takes one name and changes the object of that name.
func NewChangeCmd(a *App, run RunFunc[NameOptions], cmd *cobra.Command) *cobra.Command {
	o := &NameOptions{App: a}
	cmd.RunE = RunWithArg(run, o, &o.Name)
	AddChangeFlag(cmd, &o.JSON)
	return cmd
}

// NewGroupCmd sets up a command that only has subcommands. Without one it prints its help.
func NewGroupCmd(cmd *cobra.Command, children ...*cobra.Command) *cobra.Command {
	if cmd.Args == nil {
		cmd.Args = RejectUnknownCommand
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(children...)
	return cmd
}

// RunWith returns the RunE of a command without arguments. It first checks the options, and
// converts an error of the checks to a UsageError.
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

// RunWithArg returns the RunE of a command that stores its first argument, if any, in arg.
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
	cmd.Flags().BoolVar(asJSON, "json", false, "print the result as JSON")
}

// AddLimitFlag adds --limit to a list command and rejects a limit below 1.
func AddLimitFlag(cmd *cobra.Command, limit *int, usage string) {
	cmd.Flags().IntVar(limit, "limit", 100, usage)
	addFlagCheck(cmd, func() error {
		if *limit < 1 {
			return guideway.Errorf(guideway.CodeInvalid, "--limit %d is less than 1", *limit).WithFix("--limit 100")
		}
		return nil
	})
}

// CompleteNames returns the completion of up to most arguments with the names that list
// returns, each with an optional description after a tab. It ignores errors, because
// completion cannot show them.
func CompleteNames(most int, directive cobra.ShellCompDirective, list func(context.Context) ([]string, error)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		names, _ := list(cmd.Context())
		return names, directive
	}
}

// The directives of completions: NamesInOrder keeps the order of the names, NamesOrFiles
// also completes files.
const (
	NamesInOrder = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	NamesOrFiles = cobra.ShellCompDirectiveDefault
)

// AddChoiceFlag adds a flag with fixed values to a command. It completes them and rejects
// others, except for the initial value.
func AddChoiceFlag(cmd *cobra.Command, value *string, name, initial string, allowed []string, usage string) {
	cmd.Flags().StringVar(value, name, initial, usage)
	AddFixedCompletion(cmd, name, allowed)
	addFlagCheck(cmd, func() error {
		if *value == initial {
			return nil
		}
		return CheckChoice(name, *value, allowed)
	})
}

// CheckChoice returns an error if the value of a flag is not allowed.
func CheckChoice(flag, value string, allowed []string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return guideway.Errorf(guideway.CodeInvalid, "%q is not a value of --%s", value, flag).
		WithFix("--%s %s", flag, strings.Join(allowed, ", or --"+flag+" "))
}

// addFlagCheck adds a check that runs before a command. Its error is converted to a
// UsageError.
func addFlagCheck(cmd *cobra.Command, check func() error) {
	earlier := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if earlier != nil {
			if err := earlier(cmd, args); err != nil {
				return err
			}
		}
		if err := check(); err != nil {
			return UsageError{Err: err}
		}
		return nil
	}
}

// AddFixedCompletion completes a flag with fixed values.
func AddFixedCompletion(cmd *cobra.Command, flag string, values []string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// GraphMermaid is the only graph format.
const GraphMermaid = "mermaid"

// AddGraphFlag adds --graph to a command and rejects unknown formats.
func AddGraphFlag(cmd *cobra.Command, format *string, usage string) {
	cmd.Flags().StringVar(format, "graph", "", usage)
	AddFixedCompletion(cmd, "graph", []string{GraphMermaid})
	addFlagCheck(cmd, func() error {
		if *format != "" && *format != GraphMermaid {
			return guideway.Errorf(guideway.CodeInvalid, "unknown graph format %q; the only format is %s", *format, GraphMermaid).
				WithFix("--graph %s", GraphMermaid)
		}
		return nil
	})
}

// ExactArgs returns a check that rejects any other number of arguments than n. what
// describes the arguments in the error.
func ExactArgs(n int, what, example string) cobra.PositionalArgs {
	return RangeArgs(n, n, what, example)
}

// RangeArgs returns a check that rejects fewer arguments than least and more than most.
// what describes the arguments in the error.
func RangeArgs(least, most int, what, example string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) >= least && len(args) <= most {
			return nil
		}
		return guideway.Errorf(guideway.CodeInvalid, "%s takes %s (got %s)", cmd.CommandPath(), what, Plural(len(args), "argument", "arguments")).
			WithFix("%s", example)
	}
}

// RejectUnknownCommand returns an error for an unknown subcommand, with suggestions.
func RejectUnknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return UnknownCommandError(cmd, args[0])
}

// UnknownCommandError returns the error for a word that is not a command, with similar
// commands as the fix.
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

// NoArgs rejects arguments with a UsageError.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return UsageError{Err: guideway.Errorf(guideway.CodeInvalid, "%s takes no arguments (got %q)", cmd.CommandPath(), args[0]).
		WithFix("%s --help", cmd.CommandPath())}
}

// GraphOutput is a graph in the output of --json.
type GraphOutput struct {
	Format string `json:"format"`
	Text   string `json:"text"`
}
