package cli

import (
	"cmp"
	_ "embed"
	"fmt"
	"io"
	"strings"

	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// addHelp sets the usage and help texts of root, and adds the help command and the help topic
// "settings".
func addHelp(root *cobra.Command) {
	root.SetUsageFunc(func(cmd *cobra.Command) error {
		_, err := io.WriteString(cmd.OutOrStderr(), formatUsage(cmd))
		return err
	})
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		about := cmp.Or(cmd.Long, cmd.Short+".")
		fmt.Fprintln(cmd.OutOrStdout(), strings.TrimSpace(about))
		if cmd.Runnable() || cmd.HasSubCommands() {
			fmt.Fprint(cmd.OutOrStdout(), "\n"+formatUsage(cmd))
		}
	})
	root.SetHelpCommandGroupID(groupSetup)
	root.SetHelpCommand(&cobra.Command{
		Use:     "help [COMMAND]",
		Short:   "Show help for a command or a topic",
		GroupID: groupSetup,
		Args:    cobra.ArbitraryArgs,
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			return helpTopics(root, args), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return app.UsageError{Err: app.UnknownCommandError(cmd, args[len(args)-max(len(rest), 1)])}
			}
			cmd.InitDefaultHelpFlag()
			cmd.InitDefaultVersionFlag()
			return cmd.Help()
		},
	})
	root.AddCommand(&cobra.Command{Use: "settings", Short: "The settings, with their variables and flags", Long: settingsHelp()})
	addTexts(root)
}

// helpTexts has a section for each command: the short description in its first line, a longer
// one if there is more to know, and the examples after a line "Examples:".
//
//go:embed help.txtar
var helpTexts []byte

// addTexts sets the descriptions and the examples of the commands.
func addTexts(root *cobra.Command) {
	texts := map[string]string{}
	for _, section := range txtar.Parse(helpTexts).Files {
		texts[section.Name] = string(section.Data)
	}
	var add func(cmd *cobra.Command)
	add = func(cmd *cobra.Command) {
		if text, ok := texts[cmd.CommandPath()]; ok {
			about, examples, _ := strings.Cut(text, "Examples:\n")
			cmd.Example = strings.TrimRight(examples, "\n")
			cmd.Short, cmd.Long, _ = strings.Cut(strings.TrimSpace(about), "\n\n")
		}
		for _, child := range cmd.Commands() {
			add(child)
		}
	}
	add(root)
}

func helpTopics(root *cobra.Command, args []string) []string {
	if len(args) > 0 {
		return nil
	}
	names := []string{"settings\tThe settings, with their variables and flags"}
	for _, cmd := range root.Commands() {
		if cmd.IsAvailableCommand() {
			names = append(names, cmd.Name()+"\t"+cmd.Short)
		}
	}
	return names
}

// formatUsage returns the usage text of a command. The setting flags are in the topic
// "settings", because there are too many of them.
func formatUsage(cmd *cobra.Command) string {
	var b strings.Builder
	line := cmd.UseLine()
	if cmd.HasSubCommands() {
		line = cmd.CommandPath() + " COMMAND"
	}
	b.WriteString("Usage:\n  " + line + "\n")
	if cmd.HasExample() {
		b.WriteString("\nExamples:\n" + cmd.Example + "\n")
	}
	for _, group := range cmd.Groups() {
		writeCommands(&b, cmd, group.ID, group.Title)
	}
	writeCommands(&b, cmd, "", "Commands:")
	if flags := localFlags(cmd); flags != "" {
		b.WriteString("\nFlags:\n" + flags)
	}
	if cmd.HasParent() {
		b.WriteString("\nSettings are flags too: guideway help settings\n")
	} else {
		b.WriteString("\n\"guideway help COMMAND\" describes a command, and \"guideway help settings\" lists\n" +
			"the settings with their variables and flags.\n")
	}
	return b.String()
}

// writeCommands writes the commands of a group.
func writeCommands(b *strings.Builder, cmd *cobra.Command, group, title string) {
	const least = 11
	first, names := true, least
	for _, child := range cmd.Commands() {
		if child.IsAvailableCommand() { // hidden commands do not widen the column
			names = max(names, app.TextWidth(child.Name()))
		}
	}
	for _, child := range cmd.Commands() {
		if child.GroupID != group || !child.IsAvailableCommand() {
			continue
		}
		if first {
			b.WriteString("\n" + title + "\n")
			first = false
		}
		fmt.Fprintf(b, "  %-*s  %s\n", names, child.Name(), child.Short)
	}
}

// localFlags returns the flags of a command that are not settings.
func localFlags(cmd *cobra.Command) string {
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	own.SortFlags = false
	cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) { own.AddFlag(f) })
	return own.FlagUsages()
}

// settingsHelp returns the description of every setting.
func settingsHelp() string {
	var b strings.Builder
	b.WriteString(`A flag overrides a variable of the environment, and a variable overrides
guideway.json. That file is in the user's configuration directory unless --config or
` + config.EnvConfig + ` names another file. If no file is named and guideway.json does
not exist, config.json in the data directory is read. "guideway doctor" shows the
current values and their origin; "guideway schema config" prints the JSON Schema of
the file.
`)
	for _, s := range config.Settings() {
		fmt.Fprintf(&b, "\n%s\n", s.Name)
		for _, line := range app.Wrap(s.Usage, 76) {
			fmt.Fprintf(&b, "    %s\n", line)
		}
		if len(s.Allowed) > 0 {
			fmt.Fprintf(&b, "    values  %s\n", strings.Join(s.Allowed, ", "))
		}
		if text := s.Default(); text != "" {
			fmt.Fprintf(&b, "    default %s\n", text)
		}
		fmt.Fprintf(&b, "    flag    --%s\n", s.Flag)
		if s.FlagAlias != "" {
			fmt.Fprintf(&b, "            --%s\n", s.FlagAlias)
		}
		fmt.Fprintf(&b, "    env     %s\n", s.Env)
		for _, alias := range s.Aliases {
			fmt.Fprintf(&b, "            %s\n", alias)
		}
	}
	return b.String()
}
