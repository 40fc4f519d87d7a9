// Package install implements the command that configures MCP clients.
package install

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/install"
	"github.com/spf13/cobra"
)

// InstallOptions is the command line of guideway install.
type InstallOptions struct {
	Host *app.Host
	// Client is the client to configure; if it is empty, all clients are listed.
	Client string
	Scope  string
	Name   string
	Env    []string
	Launch string
	// URL and TokenEnv are the address of a server and the environment variable with its token.
	URL, TokenEnv string

	DryRun, Undo, Force, JSON bool
	// Hooks configures the hooks of the client instead of the server.
	Hooks bool

	// GOOS and Executable describe this system; tests replace them.
	GOOS       string
	Executable func() (string, error)
}

func NewInstallCmd(host *app.Host) *cobra.Command {
	return NewInstallCmdWith(host, RunInstall)
}

func NewInstallCmdWith(host *app.Host, run func(context.Context, *InstallOptions) error) *cobra.Command {
	o := &InstallOptions{Host: host, GOOS: runtime.GOOS, Executable: os.Executable}
	cmd := &cobra.Command{
		Use: "install [CLIENT]",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return app.UsageError{Err: guideway.Errorf(guideway.CodeInvalid, "guideway install takes at most one client (got %d arguments)", len(args)).
					WithFix("guideway install %s", args[0])}
			}
			return nil
		},
		ValidArgsFunction: CompleteInstallClients(),
		RunE:              app.RunWithArg(run, o, &o.Client, o.checkOptions),
	}
	f := cmd.Flags()
	f.BoolVar(&o.DryRun, "dry-run", false, "show the change as a diff without writing it")
	f.BoolVar(&o.Undo, "undo", false, "remove the entry, or restore the entry that it replaced")
	f.BoolVar(&o.Force, "force", false, "replace or remove an entry of the same name that starts another program")
	f.BoolVar(&o.Hooks, "hooks", false, "configure the hooks of the client instead of its MCP servers: the client asks Guideway before it calls a tool or stops")
	app.AddJSONFlag(cmd, &o.JSON)
	app.AddChoiceFlag(cmd, &o.Scope, "scope", string(install.ScopeUser), app.ToStrings(install.ScopeUser, install.ScopeProject), "configuration to change: user or project")
	f.StringVar(&o.Name, "name", install.DefaultName, "name of the entry")
	f.StringArrayVar(&o.Env, "env", nil, "environment variable of the server, as NAME=value; can be repeated")
	f.StringVar(&o.URL, "url", "", "`URL` of a running server, in place of a command")
	f.StringVar(&o.TokenEnv, "token-env", "", "environment `variable` with the bearer token of the server at --url")
	app.AddChoiceFlag(cmd, &o.Launch, "launch", string(install.LaunchAuto), app.ToStrings(install.Launches()...), "command to configure: binary, npx or docker; auto is npx if npx started this program, and binary otherwise")
	return cmd
}

// CompleteInstallClients completes MCP client names.
func CompleteInstallClients() cobra.CompletionFunc {
	return app.CompleteNames(1, cobra.ShellCompDirectiveNoFileComp, func(context.Context) (names []string, _ error) {
		for _, c := range install.Clients() {
			names = append(names, c.ID+"\t"+c.Title)
		}
		return names, nil
	})
}

// checkOptions returns an error if the options are invalid or cannot be combined.
func (o *InstallOptions) checkOptions() error {
	if o.Client == "" {
		for _, f := range []struct {
			set  bool
			name string
		}{
			{o.Hooks, "--hooks"}, {o.DryRun, "--dry-run"}, {o.Undo, "--undo"}, {o.Force, "--force"}, {len(o.Env) > 0, "--env"}, {o.URL != "", "--url"}, {o.TokenEnv != "", "--token-env"},
		} {
			if f.set {
				return guideway.Errorf(guideway.CodeInvalid, "%s requires a client", f.name).
					WithFix("guideway install %s %s", install.HookClients()[0].ID, flagForm(f.name))
			}
		}
		return nil
	}
	if o.Hooks {
		return o.checkHooks()
	}
	if _, err := installEnv(o.Env); err != nil {
		return err
	}
	if err := o.checkURLOptions(); err != nil {
		return err
	}
	if o.Undo && len(o.Env) > 0 {
		return guideway.Errorf(guideway.CodeInvalid, "--env and --undo cannot be combined").
			WithFix("guideway install %s --undo", o.Client)
	}
	return install.CheckName(o.Name)
}

// checkURLOptions returns an error if the options of a URL are invalid or cannot be combined.
func (o *InstallOptions) checkURLOptions() error {
	switch {
	case o.TokenEnv != "" && o.URL == "":
		return guideway.Errorf(guideway.CodeInvalid, "--token-env requires --url").
			WithFix("guideway install %s --url http://127.0.0.1:3000/mcp --token-env %s", o.Client, o.TokenEnv)
	case o.URL != "" && len(o.Env) > 0:
		return guideway.Errorf(guideway.CodeInvalid, "--env and --url cannot be combined: a server at a URL does not get the variables of the client").
			WithFix("guideway install %s --url %s", o.Client, o.URL)
	case o.Undo && o.TokenEnv != "":
		return guideway.Errorf(guideway.CodeInvalid, "--token-env and --undo cannot be combined").
			WithFix("guideway install %s --undo", o.Client)
	}
	return install.CheckTokenEnv(o.TokenEnv)
}

// flagForm returns a flag with the form of its value.
func flagForm(name string) string {
	switch name {
	case "--env":
		return "--env NAME=value"
	case "--url", "--token-env":
		return "--url http://127.0.0.1:3000/mcp --token-env NAME"
	}
	return name
}

// installEnv parses NAME=value pairs; the last value of a name is used.
func installEnv(pairs []string) (map[string]string, error) {
	for _, pair := range pairs {
		if strings.Contains(pair, "\x00") {
			return nil, guideway.Errorf(guideway.CodeInvalid, "--env %q contains a NUL character", pair).WithFix("--env NAME=value, without a NUL character")
		}
	}
	return app.ParsePairs(pairs, "--env NAME=value")
}

// Request returns the installation request. A listing or an undo may ignore its error.
func (o *InstallOptions) Request() (install.Request, error) {
	req := install.Request{Name: o.Name, Force: o.Force, URL: o.URL, TokenEnv: o.TokenEnv}
	if o.TokenEnv != "" {
		req.Token = o.Host.Getenv(o.TokenEnv)
	}
	var err error
	if req.Env, err = installEnv(o.Env); err != nil {
		return req, err
	}
	executable, err := o.Executable()
	if err != nil {
		return req, guideway.Errorf(guideway.CodeInternal, "cannot find the path of this program: %w", err)
	}
	req.Command, req.Args, err = install.Start(install.Launch(o.Launch), executable, o.Host.Getenv("PATH"), req.Env)
	return req, err
}

func RunInstall(ctx context.Context, o *InstallOptions) error {
	if o.Hooks {
		return runInstallHooks(ctx, o)
	}
	req, err := o.Request()
	if o.Client == "" {
		return listInstall(ctx, o, req) // listing does not need the binary
	}
	client, findErr := install.Find(o.Client)
	if findErr != nil { // if the command is unknown, the text to paste has a placeholder
		return app.UsageError{Err: install.UnsupportedClient(o.Client, req)}
	}
	if o.URL != "" && o.Launch != string(install.LaunchAuto) && !client.Bridged() {
		return guideway.Errorf(guideway.CodeInvalid, "--launch and --url cannot be combined: %s connects to the URL itself", client.Title).
			WithFix("guideway install %s --url %s", client.ID, o.URL)
	}
	if err != nil && !o.Undo && (o.URL == "" || client.Bridged()) {
		return err
	}
	change, seen, backup, err := carryOut(ctx, o, client, req)
	if err != nil {
		return err
	}
	return o.Host.WriteJSONOr(o.JSON, newInstallAnswer(o, change, req, backup), func() { writeInstall(o, change, req, backup, seen) })
}

// installTries is the maximum number of attempts if a running client writes the file at the
// same time.
const installTries = 3

func carryOut(ctx context.Context, o *InstallOptions, client install.Client, req install.Request) (install.Change, bool, string, error) {
	for try := 1; ; try++ {
		change, seen, err := planInstall(ctx, o, client, req)
		if err != nil || o.DryRun {
			return change, seen, "", err
		}
		backup, err := install.Apply(ctx, change)
		if guideway.ErrorCode(err) != guideway.CodeConflict || try == installTries {
			return change, seen, backup, err
		}
	}
}

// planInstall reads the file and plans its change. It also reports whether the client is
// probably installed.
func planInstall(ctx context.Context, o *InstallOptions, client install.Client, req install.Request) (install.Change, bool, error) {
	env := o.Host.InstallEnv(o.GOOS)
	loc, err := install.Locate(env, client, install.Scope(o.Scope))
	if err != nil {
		return install.Change{}, false, err
	}
	file, err := install.Read(ctx, loc.Path)
	if err != nil {
		return install.Change{}, false, err
	}
	seen := file.Exists || install.Scope(o.Scope) == install.ScopeProject
	for _, m := range loc.Markers {
		seen = seen || env.Exists(m)
	}
	if o.Undo {
		change, err := install.PlanUndo(env, client, req, file)
		return change, seen, err
	}
	change, err := install.Plan(env, client, req, file)
	if note := client.NewFileNote(install.Scope(o.Scope)); note != "" && err == nil && !file.Exists {
		change.Notes = append(change.Notes, note)
	}
	if change.Private = install.Scope(o.Scope) == install.ScopeUser; !change.Private && change.Changes() && req.URL == "" {
		change.Notes = append(change.Notes, fmt.Sprintf("the entry starts %s, a path on this computer; before you commit the file, check that the path is right for every user of the project", req.Command))
	}
	return change, seen, err
}

func writeInstall(o *InstallOptions, c install.Change, req install.Request, backup string, seen bool) {
	out := o.Host.Out
	if o.DryRun && c.Changes() {
		fmt.Fprint(out, maskedDiff(c, req))
		return
	}
	title := c.Client.Title
	switch c.Action {
	case install.ActionInstalled:
		fmt.Fprintf(out, "Installed in %s: %s\n", title, c.Path)
	case install.ActionUpdated:
		fmt.Fprintf(out, "Updated in %s: %s\n", title, c.Path)
		if c.OldTarget != c.Target {
			fmt.Fprintf(out, "  target   %s\n  was      %s\n", c.Target, cmp.Or(c.OldTarget, "(none)"))
		}
	case install.ActionNone:
		fmt.Fprintf(out, "Already installed in %s: %s\n", title, c.Path)
	case install.ActionRemoved:
		fmt.Fprintf(out, "Removed from %s: %s\n", title, c.Path)
	case install.ActionRestored:
		fmt.Fprintf(out, "Restored the previous entry in %s: %s\n", title, c.Path)
	case install.ActionAbsent:
		fmt.Fprintf(out, "Not installed in %s: %s\n", title, c.Path)
	}
	if backup != "" {
		fmt.Fprintf(out, "  backup   %s\n", backup)
	}
	switch c.Action {
	case install.ActionInstalled, install.ActionUpdated:
		fmt.Fprintf(out, "  next     %s\n", c.Client.Next(install.Scope(o.Scope), o.Name))
	case install.ActionRemoved, install.ActionRestored:
		fmt.Fprintf(out, "  next     restart %s if it is open\n", title)
	}
	if c.Action == install.ActionInstalled && !seen {
		fmt.Fprintf(out, "  note     %s was not found; its configuration file is new\n", title)
	}
	for _, n := range c.Notes {
		fmt.Fprintf(out, "  note     %s\n", n)
	}
}

// maskedDiff returns the diff of a change without the token of the request.
func maskedDiff(c install.Change, req install.Request) string {
	if !c.Secret {
		return install.Diff(c)
	}
	return strings.ReplaceAll(install.Diff(c), req.Token, "<value of "+req.TokenEnv+">")
}

// InstallAnswer is the answer of guideway install CLIENT --json.
type InstallAnswer struct {
	Client  string   `json:"client"`
	Action  string   `json:"action"`
	Path    string   `json:"path"`
	Command string   `json:"command,omitempty"`
	URL     string   `json:"url,omitempty"`
	Next    string   `json:"next,omitempty"`
	Was     string   `json:"was,omitempty"`
	Backup  string   `json:"backup,omitempty"`
	DryRun  bool     `json:"dry_run"`
	Diff    string   `json:"diff,omitempty"`
	Notes   []string `json:"notes,omitempty"`
}

func newInstallAnswer(o *InstallOptions, c install.Change, req install.Request, backup string) InstallAnswer {
	a := InstallAnswer{
		Client: c.Client.ID, Action: installWord(string(c.Action)), Path: c.Path,
		Was: c.OldTarget, Backup: backup, DryRun: o.DryRun, Notes: c.Notes,
	}
	if a.URL = req.URL; !o.Undo && c.Target != req.URL {
		a.Command = c.Target
	}
	if c.Action == install.ActionInstalled || c.Action == install.ActionUpdated {
		a.Next = c.Client.Next(install.Scope(o.Scope), o.Name)
	}
	if o.DryRun {
		a.Diff = maskedDiff(c, req)
	}
	return a
}

// installWord returns a stable identifier for JSON.
func installWord(s string) string { return strings.ReplaceAll(s, " ", "_") }

// InstallRow is one client in the answer of guideway install --json.
type InstallRow struct {
	Client  string `json:"client"`
	Title   string `json:"title"`
	Scope   string `json:"scope"`
	State   string `json:"state"`
	Path    string `json:"path"`
	Command string `json:"command,omitempty"`
	URL     string `json:"url,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

// listInstall prints the clients and their installations.
func listInstall(ctx context.Context, o *InstallOptions, req install.Request) error {
	env := o.Host.InstallEnv(o.GOOS)
	scope := install.Scope(o.Scope)
	answers := []InstallRow{}
	var rows [][]string
	for _, c := range install.Clients() {
		if scope == install.ScopeProject && c.Project == "" {
			continue
		}
		if err := ctx.Err(); err != nil {
			return app.InterruptedError(err)
		}
		s := install.Inspect(ctx, env, c, scope, req)
		answers = append(answers, InstallRow{
			Client: c.ID, Title: c.Title, Scope: o.Scope, State: installWord(string(s.State)),
			Path: s.Path, Command: s.Command, URL: s.URL, Reason: s.Reason,
		})
		config := s.Path
		if s.Reason != "" {
			config = strings.TrimSpace(config + " (" + s.Reason + ")")
		}
		rows = append(rows, []string{c.ID, string(s.State), config})
	}
	return app.WriteList(o.Host, o.JSON, app.Listing[[]string]{
		Items: rows, Answer: answers, Table: app.NewTable(2, "CLIENT", "STATE", "CONFIG"), Row: func(row []string) []string { return row },
	})
}
