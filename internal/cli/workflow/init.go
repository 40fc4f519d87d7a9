package workflow

import "github.com/guideway-dev/guideway/internal/cli/app"

import (
	"cmp"
	"context"
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/evidence/checksfile"
	"github.com/guideway-dev/guideway/internal/platform/atomicfile"
	"github.com/guideway-dev/guideway/internal/platform/safeopen"
	"github.com/guideway-dev/guideway/internal/run/project"
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
	// Dialect is the dialect of the example, or noExample.
	Dialect string
	// Force replaces the checks file. Print prints its proposal instead of writing files.
	Force, Print bool
	JSON         bool
}

// noExample is the value of --dialect for a project without an example.
const noExample = "none"

func NewInitCmd(a *app.App, run func(context.Context, *InitOptions) error) *cobra.Command {
	o := &InitOptions{app: a}
	cmd := &cobra.Command{
		Use: "init [DIR]",
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
			if !slices.Contains(exampleDialects(), o.Dialect) {
				return guideway.Errorf(guideway.CodeInvalid, "there is no example of the dialect %q", o.Dialect).
					WithFix("--dialect steps, --dialect machines or --dialect none")
			}
			return nil
		}),
	}
	cmd.Flags().StringVar(&o.Dialect, "dialect", string(guideway.DialectSteps), "`dialect` of the example: "+strings.Join(exampleDialects(), ", "))
	app.AddFixedCompletion(cmd, "dialect", exampleDialects())
	cmd.Flags().BoolVar(&o.Force, "force", false, "replace an existing checks file")
	cmd.Flags().BoolVar(&o.Print, "print", false, "print the proposed checks file without writing a file")
	cmd.MarkFlagsMutuallyExclusive("force", "print")
	app.AddJSONFlag(cmd, &o.JSON)
	return cmd
}

// exampleDialects returns the values of --dialect.
func exampleDialects() []string {
	return []string{string(guideway.DialectSteps), string(guideway.DialectMachines), noExample}
}

// initAnswer is the answer of guideway init --json.
type initAnswer struct {
	Dir string `json:"dir"`
	// Created and Existing are the paths of the files that were written or already existed.
	Created  []string `json:"created"`
	Existing []string `json:"existing"`
	// Proposal has the proposed checks, and Text is the text of their file if it is printed.
	Proposal *checksfile.Proposal `json:"proposal,omitempty"`
	Text     string               `json:"text,omitempty"`
}

func RunInit(_ context.Context, o *InitOptions) error {
	host := o.app.Host
	answer := initAnswer{Dir: filepath.Join(o.Dir, ".guideway", "workflows"), Created: []string{}, Existing: []string{}}
	var next [][2]string
	if o.Dialect != string(guideway.DialectMachines) || o.Print {
		if err := o.proposeChecks(&answer); err != nil {
			return err
		}
		next = append(next, [2]string{"checks list", "list the checks"}, [2]string{"checks approve", "allow Guideway to execute them"})
	}
	if o.Print {
		return host.WriteJSONOr(o.JSON, answer, func() { fmt.Fprint(host.Out, answer.Text) })
	}
	if o.Dialect != noExample {
		commands, err := o.writeExample(&answer)
		if err != nil {
			return err
		}
		next = append(next, commands...)
	}
	return host.WriteJSONOr(o.JSON, answer, func() { answer.writeText(host, next) })
}

// proposeChecks proposes the checks of the project, and writes their file unless it is only
// printed.
func (o *InitOptions) proposeChecks(answer *initAnswer) error {
	host := o.app.Host
	base := o.workspace()
	proposal, err := checksfile.Propose(host.Abs(cmp.Or(base, ".")))
	switch {
	case guideway.ErrorCode(err) == guideway.CodeUnavailable && !o.Print: // the directory is created
		proposal = &checksfile.Proposal{}
	case err != nil:
		return err
	}
	proposal.Checks = app.OrEmpty(proposal.Checks)
	answer.Proposal = proposal
	if o.Print {
		answer.Text = proposal.Text()
		return nil
	}
	file := filepath.Join(base, filepath.FromSlash(checksfile.Path))
	for _, name := range []string{filepath.Dir(file), file} {
		if info, err := os.Lstat(host.Abs(name)); err == nil && info.Mode()&os.ModeSymlink != 0 {
			kind := "file"
			if name != file {
				kind = "directory"
			}
			return guideway.Errorf(guideway.CodeConflict, "%s is a symbolic link", name).WithFix("replace the link with a %s of the project", kind)
		}
	}
	return o.writeFile(answer, file, proposal.Text(), o.Force)
}

// workspace returns the directory of the checks file: the top of the work tree that contains
// the project, or the project.
func (o *InitOptions) workspace() string {
	dir := o.app.Host.Abs(cmp.Or(o.Dir, "."))
	if p, err := project.Detect(dir); err == nil {
		if resolved, err := filepath.EvalSymlinks(dir); err == nil && resolved != p.Path {
			return p.Path
		}
	}
	return o.Dir
}

// writeExample writes the files of the example and returns the next commands for it.
func (o *InitOptions) writeExample(answer *initAnswer) ([][2]string, error) {
	dir := answer.Dir
	files, text := []string{"example.yaml"}, func(string) string { return exampleWorkflow }
	first, next := filepath.Join(dir, "example.yaml"), nextSteps
	if o.Dialect == string(guideway.DialectMachines) {
		dir = filepath.Join(dir, "machines", "example")
		answer.Dir = dir
		files, text = exampleMachineFiles()
		first, next = dir, nextMachineSteps
	}
	for _, name := range files {
		if err := o.writeFile(answer, filepath.Join(dir, name), text(name), false); err != nil {
			return nil, err
		}
	}
	return next(first, dir), nil
}

// writeFile writes a file, or records that it exists.
func (o *InitOptions) writeFile(answer *initAnswer, file, text string, force bool) error {
	path := o.app.Host.Abs(file)
	err := atomicfile.MakeDirMode(filepath.Dir(path), 0o755)
	if err == nil {
		err = app.WriteNewFile(path, []byte(text), 0o644, force)
	}
	switch {
	case err == nil:
		answer.Created = append(answer.Created, file)
	case guideway.ErrorCode(err) == guideway.CodeConflict && isFile(path):
		answer.Existing = append(answer.Existing, file)
	case guideway.ErrorCode(err) == guideway.CodeConflict:
		return guideway.Errorf(guideway.CodeConflict, "%s exists, but is not a regular file", file).WithFix("move or remove %s", file)
	default:
		return guideway.Errorf(guideway.CodeUnavailable, "cannot create %s: %w", file, safeopen.Cause(err)).WithFix("run guideway init in a writable directory")
	}
	return nil
}

func (a *initAnswer) writeText(host *app.Host, next [][2]string) {
	for _, name := range a.Created {
		fmt.Fprintf(host.Out, "Created %s\n", name)
	}
	for _, name := range a.Existing {
		fmt.Fprintf(host.Out, "Already exists: %s\n", name)
	}
	if p := a.Proposal; p != nil {
		if len(p.Checks) == 0 {
			fmt.Fprintf(host.Out, "\nNo checks are proposed: no command was found in files of Go, Node, Python, Rust or Make.\nWrite the checks yourself; %s has an example.\n", checksfile.Path)
		}
		if len(p.Checks) > 0 {
			fmt.Fprintln(host.Out, "\nProposed checks:")
		}
		for _, c := range p.Checks {
			fmt.Fprintf(host.Out, "  %-15s  %s\n", c.Name, app.OneLine(c.Words()))
		}
	}
	width := 0
	for _, line := range next {
		width = max(width, len(line[0]))
	}
	fmt.Fprintln(host.Out, "\nNext:")
	for _, line := range next {
		fmt.Fprintf(host.Out, "  guideway %-*s  %s\n", width, line[0], line[1])
	}
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
