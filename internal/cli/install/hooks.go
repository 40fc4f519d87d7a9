package install

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/install"
)

// checkHooks returns an error if the options cannot be combined with --hooks.
func (o *InstallOptions) checkHooks() error {
	client, err := install.FindHookClient(o.Client)
	if err != nil {
		return err
	}
	if o.Name != install.DefaultName {
		return guideway.Errorf(guideway.CodeInvalid, "--name and --hooks cannot be combined, because hooks have no name").
			WithFix("guideway install %s --hooks", client.ID)
	}
	if o.URL != "" || o.TokenEnv != "" {
		return guideway.Errorf(guideway.CodeInvalid, "--url and --token-env cannot be combined with --hooks, because hooks read the store of runs and connect to no server").
			WithFix("guideway install %s --hooks", client.ID)
	}
	if way := install.Launch(o.Launch); way != install.LaunchAuto && way != install.LaunchBinary {
		return guideway.Errorf(guideway.CodeInvalid, "--launch %s and --hooks cannot be combined: the client waits for each hook, and only the binary starts fast enough", o.Launch).
			WithFix("install the binary, then guideway install %s --hooks", client.ID)
	}
	_, err = o.hookFlags()
	return err
}

// hookFlags returns the flags of the hooks' command for the variables of the server that
// decide which store it uses.
func (o *InstallOptions) hookFlags() ([]string, error) {
	pairs, err := installEnv(o.Env)
	if err != nil {
		return nil, err
	}
	var flags []string
	for _, known := range []struct{ variable, flag string }{
		{"GUIDEWAY_CONFIG", "--config"}, {"GUIDEWAY_DATA_DIR", "--data-dir"}, {"GUIDEWAY_CLIENT_HOOKS_ON_ERROR", "--client-hooks-on-error"},
	} {
		if value, ok := pairs[known.variable]; ok {
			flags = append(flags, known.flag, value)
			delete(pairs, known.variable)
		}
	}
	for name := range pairs {
		return nil, guideway.Errorf(guideway.CodeInvalid, "with --hooks, --env accepts only GUIDEWAY_CONFIG, GUIDEWAY_DATA_DIR and GUIDEWAY_CLIENT_HOOKS_ON_ERROR, not %s", name).
			WithFix("omit --env %s=...; to use other settings, name a configuration file with --env GUIDEWAY_CONFIG=FILE", name)
	}
	return flags, nil
}

// runInstallHooks adds or removes the hooks of a client.
func runInstallHooks(ctx context.Context, o *InstallOptions) error {
	client, err := install.FindHookClient(o.Client)
	if err != nil {
		return err
	}
	command, err := o.hookCommand()
	if err != nil && !o.Undo {
		return err
	}
	env := o.Host.InstallEnv(o.GOOS)
	path, err := client.Locate(env, install.Scope(o.Scope))
	if err != nil {
		return err
	}
	var change install.Change
	var backup string
	for try := 1; ; try++ {
		if change, err = planHooks(ctx, o, client, command, path); err != nil {
			return err
		}
		if o.DryRun {
			break
		}
		backup, err = install.Apply(ctx, change)
		if guideway.ErrorCode(err) != guideway.CodeConflict || try == installTries {
			break
		}
	}
	if err != nil {
		return err
	}
	a := InstallAnswer{
		Client: client.ID, Action: installWord(string(change.Action)), Path: change.Path, Backup: backup, DryRun: o.DryRun, Notes: change.Notes,
	}
	if !o.Undo {
		a.Command = command.Program
	}
	if o.DryRun {
		a.Diff = install.Diff(change)
	}
	return o.Host.WriteJSONOr(o.JSON, a, func() { writeHooks(o, client, change, backup) })
}

func (o *InstallOptions) hookCommand() (install.HookCommand, error) {
	flags, err := o.hookFlags()
	if err != nil {
		return install.HookCommand{}, err
	}
	executable, err := o.Executable()
	if err != nil {
		return install.HookCommand{}, guideway.Errorf(guideway.CodeInternal, "cannot find the path of this program: %w", err)
	}
	program, err := install.Binary(executable, o.Host.Getenv("PATH"))
	return install.HookCommand{Program: program, Flags: flags}, err
}

func planHooks(ctx context.Context, o *InstallOptions, client install.HookClient, command install.HookCommand, path string) (install.Change, error) {
	file, err := install.Read(ctx, path)
	if err != nil {
		return install.Change{}, err
	}
	env := o.Host.InstallEnv(o.GOOS)
	if o.Undo {
		return install.PlanHooksUndo(env, client, file)
	}
	change, err := install.PlanHooks(env, client, command, file)
	if change.Private = install.Scope(o.Scope) == install.ScopeUser; !change.Private && change.Changes() {
		change.Notes = append(change.Notes, fmt.Sprintf("the hooks start %s, a path on this computer; before you commit the file, check that the path is right for every user of the project", filepath.ToSlash(command.Program)))
	}
	return change, err
}

func writeHooks(o *InstallOptions, client install.HookClient, c install.Change, backup string) {
	out := o.Host.Out
	if o.DryRun && c.Changes() {
		fmt.Fprint(out, install.Diff(c))
		return
	}
	word := map[install.Action]string{
		install.ActionInstalled: "Installed the hooks in", install.ActionUpdated: "Updated the hooks in", install.ActionNone: "The hooks are already installed in",
		install.ActionRemoved: "Removed the hooks from", install.ActionAbsent: "The hooks are not installed in",
	}[c.Action]
	fmt.Fprintf(out, "%s %s: %s\n", word, client.Title, c.Path)
	if backup != "" {
		fmt.Fprintf(out, "  backup   %s\n", backup)
	}
	switch c.Action {
	case install.ActionInstalled, install.ActionUpdated:
		fmt.Fprintf(out, "  events   %s\n", strings.Join(client.Events(), ", "))
		fmt.Fprintf(out, "  next     %s\n", client.Next)
	case install.ActionRemoved:
		fmt.Fprintf(out, "  next     restart %s if it is open\n", client.Title)
	}
	for _, n := range c.Notes {
		fmt.Fprintf(out, "  note     %s\n", n)
	}
}
