package workflow

import "github.com/guideway-dev/guideway/internal/cli/app"

import (
	"context"
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/atomicfile"
	"github.com/guideway-dev/guideway/internal/platform/safeopen"
	"github.com/spf13/cobra"
)

// exampleWorkflow is the definition that guideway init writes.
//
//go:embed example/example.yaml
var exampleWorkflow string

// exampleMachine is the machine that guideway init --dialect machines writes.
//
//go:embed example/machine
var exampleMachine embed.FS

// InitOptions is the command line of guideway init.
type InitOptions struct {
	app *app.App
	// Dir is the project; "" is the working directory.
	Dir string
	// Dialect is the dialect of the example.
	Dialect string
	JSON    bool
}

func NewInitCmd(a *app.App, run func(context.Context, *InitOptions) error) *cobra.Command {
	o := &InitOptions{app: a}
	cmd := &cobra.Command{
		Use:   "init [DIR]",
		Short: "Create an example workflow in a project",
		Long: `Create .guideway/workflows in the project directory, with one small example that
shows a condition, a loop, a gate and criteria. With --dialect machines the example is
an agent machine with its script, its roles and a recording for a demonstration.
Existing files are not changed.`,
		Example: `  guideway init
  guideway init --dialect machines
  guideway init ~/my-project`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return guideway.Errorf(guideway.CodeInvalid, "%s takes at most one directory (got %d arguments)", cmd.CommandPath(), len(args)).
					WithFix("guideway init")
			}
			return nil
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: app.RunWithArg(run, o, &o.Dir, func() error {
			if o.Dialect != string(guideway.DialectSteps) && o.Dialect != string(guideway.DialectMachines) {
				return guideway.Errorf(guideway.CodeInvalid, "there is no example of the dialect %q", o.Dialect).
					WithFix("--dialect steps or --dialect machines")
			}
			return nil
		}),
	}
	cmd.Flags().StringVar(&o.Dialect, "dialect", string(guideway.DialectSteps), "`dialect` of the example: steps, machines")
	app.AddFixedCompletion(cmd, "dialect", app.ToStrings(guideway.DialectSteps, guideway.DialectMachines))
	app.AddJSONFlag(cmd, &o.JSON)
	return cmd
}

// initAnswer is the answer of guideway init --json.
type initAnswer struct {
	Dir string `json:"dir"`
	// Created and Existing are the paths of the files that were written or already existed.
	Created  []string `json:"created"`
	Existing []string `json:"existing"`
}

func RunInit(_ context.Context, o *InitOptions) error {
	host := o.app.Host
	dir := filepath.Join(o.Dir, ".guideway", "workflows")
	files, text := []string{"example.yaml"}, func(string) string { return exampleWorkflow }
	first, next := filepath.Join(dir, "example.yaml"), nextSteps
	if o.Dialect == string(guideway.DialectMachines) {
		dir = filepath.Join(dir, "machines", "example")
		files, text = exampleMachineFiles()
		first, next = dir, nextMachineSteps
	}
	answer := initAnswer{Dir: dir, Created: []string{}, Existing: []string{}}
	if err := atomicfile.MakeDirMode(host.Abs(dir), 0o755); err != nil {
		return guideway.Errorf(guideway.CodeUnavailable, "cannot create %s: %w", dir, safeopen.Cause(err)).WithFix("run guideway init in a writable directory")
	}
	for _, name := range files {
		file := filepath.Join(dir, name)
		switch err := app.WriteNewFile(host.Abs(file), []byte(text(name)), 0o644, false); {
		case err == nil:
			answer.Created = append(answer.Created, file)
		case guideway.ErrorCode(err) == guideway.CodeConflict && isFile(host.Abs(file)):
			answer.Existing = append(answer.Existing, file)
		default:
			return guideway.Errorf(guideway.CodeUnavailable, "%w", err).WithFix("run guideway init in a writable directory")
		}
	}
	if o.JSON {
		return app.WriteJSON(host.Out, answer)
	}
	for _, name := range answer.Created {
		fmt.Fprintf(host.Out, "Created %s\n", name)
	}
	for _, name := range answer.Existing {
		fmt.Fprintf(host.Out, "Already exists: %s\n", name)
	}
	fmt.Fprintln(host.Out, "\nNext:")
	for _, line := range next(first, dir) {
		fmt.Fprintf(host.Out, "  guideway %-*s  %s\n", len("validate "+first), line[0], line[1])
	}
	return nil
}

// nextSteps returns the next commands for a new workflow with their descriptions.
func nextSteps(file, dir string) [][2]string {
	return [][2]string{
		{"show " + file, "show the steps"},
		{"run " + file, "run the example interactively"},
		{"validate " + dir, "check the workflows after a change"},
		{"list", "list all workflows, those of the project included"},
	}
}

// nextMachineSteps returns the next commands for a new agent machine.
func nextMachineSteps(file, dir string) [][2]string {
	return [][2]string{
		{"machine run " + file + " --demo", "run the example with its recording"},
		{"show " + file, "show the agents and states"},
		{"validate " + dir, "check the machine after a change"},
		{"machine approve example", "allow the machine to run by name, also for agents"},
	}
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// exampleMachineFiles returns the names of the files of the example machine and a function
// that returns their contents.
func exampleMachineFiles() ([]string, func(name string) string) {
	names := []string{"machine.json", "roles.json", "script.js", "recording.json"}
	return names, func(name string) string {
		text, err := exampleMachine.ReadFile("example/machine/" + name)
		if err != nil { // cannot happen: the files are embedded
			return ""
		}
		return strings.ReplaceAll(string(text), "\r\n", "\n")
	}
}
