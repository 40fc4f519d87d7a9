package upstream

import "github.com/guideway-dev/guideway/internal/cli/server"

import "github.com/guideway-dev/guideway/internal/cli/app"

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/config"
	gatewayadmin "github.com/guideway-dev/guideway/internal/gateway/admin"
	"github.com/guideway-dev/guideway/internal/gateway/upstream"
	"github.com/guideway-dev/guideway/internal/install"
	"github.com/spf13/cobra"
)

// upstreamAddOptions is the command line of guideway upstream add.
type upstreamAddOptions struct {
	app     *app.App
	Name    string
	Command []string

	URL, Transport, Bearer string
	OAuth                  config.UpstreamOAuth
	Env, Headers           []string
	Dir, Project           string
	Pins, Sessions         string
	Timeout, MaxTime       time.Duration
	Calls, ToolCalls       int
	Replace, JSON          bool
}

func newUpstreamAddCmd(a *app.App, run func(context.Context, *upstreamAddOptions) error) *cobra.Command {
	o := &upstreamAddOptions{app: a}
	cmd := &cobra.Command{
		Use: "add NAME (--url URL | -- COMMAND [ARGUMENT...])",
		Args: func(cmd *cobra.Command, args []string) error {
			dash := cmd.ArgsLenAtDash()
			if len(args) == 0 || dash == 0 || dash > 1 || dash < 0 && (len(args) > 1 || o.URL == "") {
				return app.UsageError{Err: guideway.Errorf(guideway.CodeInvalid, "one name is required, followed by --url URL, or by -- and a command").
					WithFix("guideway upstream add files -- npx -y @modelcontextprotocol/server-filesystem /home/me")}
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name, o.Command = args[0], args[1:]
			return run(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.URL, "url", "", "URL of an HTTP server")
	f.StringVar(&o.Transport, "transport", "", `transport of --url: "http", or "sse" for the HTTP transport of version 2024-11-05 (default: detected)`)
	f.StringVar(&o.Bearer, "bearer", "", "bearer token for the server")
	f.StringVar(&o.OAuth.ClientID, "oauth-client-id", "", "OAuth client id")
	f.StringVar(&o.OAuth.ClientSecret, "oauth-client-secret", "", "OAuth client secret")
	f.StringVar(&o.OAuth.Grant, "oauth-grant", "", "OAuth grant: client_credentials, or authorization_code for a login (default: client_credentials with a secret, else authorization_code)")
	f.StringVar(&o.OAuth.Issuer, "oauth-issuer", "", "URL of the OAuth issuer (default: discovered)")
	f.StringVar(&o.OAuth.TokenURL, "oauth-token-url", "", "URL of the OAuth token endpoint (default: discovered)")
	f.StringSliceVar(&o.OAuth.Scopes, "oauth-scope", nil, "OAuth scope; can be repeated")
	f.StringVar(&o.OAuth.Resource, "oauth-resource", "", "resource indicator of the server, the audience of its tokens (default: discovered, or none with --oauth-token-url)")
	f.StringArrayVar(&o.Env, "env", nil, "environment variable NAME=value of the command; can be repeated")
	f.StringArrayVar(&o.Headers, "header", nil, "header NAME=value of requests to the URL; can be repeated")
	f.StringVar(&o.Dir, "dir", "", "working directory of the command")
	f.StringVar(&o.Project, "project", "", "add the upstream to this `project` (a group of upstreams)")
	f.DurationVar(&o.Timeout, "timeout", 0, "maximum time of a call without progress (default: 1m, and 5m for a call whose client requests no progress)")
	f.DurationVar(&o.MaxTime, "max-time", 0, "maximum total time of a call (default: 1h)")
	f.StringVar(&o.Pins, "pins", "", "which tools, prompts, templates and pages need approval: first-use (new and changed ones after the first use), approve (all) or off (none) (default: first-use)")
	f.StringVar(&o.Sessions, "sessions", "", "sessions with the upstream: auto, shared (one for all clients) or client (one for each) (default: auto)")
	f.IntVar(&o.Calls, "calls-per-minute", 0, "maximum calls per minute, all tools together (default: no limit)")
	f.IntVar(&o.ToolCalls, "tool-calls-per-minute", 0, "maximum calls per minute of each tool (default: no limit)")
	f.BoolVar(&o.Replace, "replace", false, "replace an existing upstream with this name")
	app.AddChangeFlag(cmd, &o.JSON)
	return cmd
}

func runUpstreamAdd(ctx context.Context, o *upstreamAddOptions) error {
	u := config.Upstream{
		UpstreamServer: config.UpstreamServer{
			Name: o.Name, URL: o.URL, Transport: o.Transport, Bearer: o.Bearer, Dir: o.Dir,
			Timeout: config.UpstreamTime(o.Timeout), MaxTime: config.UpstreamTime(o.MaxTime),
		},
		Project: o.Project, Pins: o.Pins, Sessions: o.Sessions, CallsPerMinute: o.Calls, ToolCallsPerMinute: o.ToolCalls,
	}
	if oauth := o.OAuth; !reflect.ValueOf(oauth).IsZero() {
		u.OAuth = &oauth
	}
	if o.Calls < 0 {
		return app.UsageError{Err: guideway.Errorf(guideway.CodeInvalid, "--calls-per-minute %d is negative", o.Calls).WithFix("--calls-per-minute 120")}
	}
	if o.ToolCalls < 0 {
		return app.UsageError{Err: guideway.Errorf(guideway.CodeInvalid, "--tool-calls-per-minute %d is negative", o.ToolCalls).WithFix("--tool-calls-per-minute 120")}
	}
	if len(o.Command) > 0 {
		u.Command, u.Args = o.Command[0], o.Command[1:]
	}
	var err error
	if u.Env, err = app.ParsePairs(o.Env, "--env NAME=value"); err != nil {
		return err
	}
	if u.Headers, err = app.ParsePairs(o.Headers, "--header NAME=value"); err != nil {
		return err
	}
	e := gatewayadmin.EntryOf(u)
	if err := e.Check(); err != nil {
		return err
	}
	cfg, err := o.app.Load()
	if err != nil {
		return err
	}
	d := app.ChangeResult{Action: "added", Changed: true, Kind: app.KindUpstream, Name: u.Name, Project: u.Project}
	if slices.ContainsFunc(cfg.Upstreams, func(old config.Upstream) bool { return old.Name == u.Name }) {
		d.Action = "replaced"
	}
	if d.Action == "replaced" && !o.Replace {
		return guideway.Errorf(guideway.CodeConflict, "the upstream %q already exists", u.Name).WithFix("add --replace, or use another name")
	}
	if d.File, err = saveUpstream(ctx, o.app, cfg, u); err != nil {
		return err
	}
	if d.Action == "replaced" {
		if err := server.RequestRestart(cfg, u.Name); err != nil {
			return err
		}
	}
	said := fmt.Sprintf("Added the upstream %s to %s.", u.Name, d.File)
	if d.Action == "replaced" {
		said = fmt.Sprintf("Replaced the upstream %s in %s.", u.Name, d.File)
	}
	said += " To test it: guideway upstream show " + u.Name + " --check"
	if why := toolsetNote(cfg); why != "" {
		d.Notes = append(d.Notes, why)
		said += "\n\n" + why
	}
	return o.app.Host.WriteChange(o.JSON, d, said)
}

// saveUpstream writes an upstream to the configuration file.
func saveUpstream(ctx context.Context, a *app.App, cfg *config.Config, u config.Upstream) (string, error) {
	text, err := json.Marshal(u)
	if err != nil {
		return "", guideway.Errorf(guideway.CodeInternal, "encode the upstream: %w", err)
	}
	return a.EditConfig(ctx, cfg, func(src []byte) ([]byte, error) {
		return install.SetMember(src, []string{"upstreams", u.Name}, text)
	})
}

func newUpstreamRemoveCmd(a *app.App) *cobra.Command {
	return app.NewChangeCmd(a, runUpstreamRemove, &cobra.Command{
		Use:               "remove NAME",
		Args:              app.ExactArgs(1, "one name", "guideway upstream remove files"),
		ValidArgsFunction: server.CompleteUpstreams(a),
	})
}

func runUpstreamRemove(ctx context.Context, o *app.NameOptions) error {
	cfg, u, err := loadUpstream(o.App, o.Name)
	if err != nil {
		return err
	}
	file, err := o.App.EditConfig(ctx, cfg, func(src []byte) ([]byte, error) { return clearUpstreamMember(src, u.Name) })
	if err != nil {
		return err
	}
	if err := app.OpenLogins(cfg).RemoveAll(ctx, u.Name); err != nil {
		return err
	}
	if err := server.NewPinStore(o.App, cfg).Forget(u.Name); err != nil {
		return err
	}
	if cache := server.UpstreamCacheDir(cfg); cache != "" {
		if err := upstream.Forget(cache, u.Name); err != nil {
			return err
		}
	}
	// The upstream may be added again before a server reads the configuration. The request is
	// last, so that the next process does not start with the pins or the catalog of the removed one.
	if err := server.RequestRestart(cfg, u.Name); err != nil {
		return err
	}
	return o.App.Host.WriteChange(o.JSON, app.ChangeResult{Action: "removed", Changed: true, Kind: app.KindUpstream, Name: u.Name, File: file},
		fmt.Sprintf("Removed the upstream %s from %s.", u.Name, file))
}

func newUpstreamRestartCmd(a *app.App) *cobra.Command {
	return app.NewChangeCmd(a, runUpstreamRestart, &cobra.Command{
		Use:               "restart NAME",
		Args:              app.ExactArgs(1, "one name", "guideway upstream restart files"),
		ValidArgsFunction: server.CompleteUpstreams(a),
	})
}

func runUpstreamRestart(_ context.Context, o *app.NameOptions) error {
	cfg, u, err := loadUpstream(o.App, o.Name)
	if err != nil {
		return err
	}
	if u.Disabled {
		return guideway.Errorf(guideway.CodeConflict, "the upstream %q is disabled, so no server uses it", u.Name).
			WithFix("guideway upstream enable %s", u.Name)
	}
	if err := server.RequestRestart(cfg, u.Name); err != nil {
		return err
	}
	return o.App.Host.WriteChange(o.JSON, app.ChangeResult{Action: "restarted", Changed: true, Kind: app.KindUpstream, Name: u.Name},
		fmt.Sprintf("Running servers restart the upstream %s within a second.", u.Name))
}

// newUpstreamSwitchCmd returns the command enable or disable.
func newUpstreamSwitchCmd(a *app.App, on bool) *cobra.Command {
	use, word := "disable", "disabled"
	if on {
		use, word = "enable", "enabled"
	}
	run := func(ctx context.Context, o *app.NameOptions) error {
		cfg, u, err := loadUpstream(a, o.Name)
		if err != nil {
			return err
		}
		file, err := a.EditConfig(ctx, cfg, func(src []byte) ([]byte, error) {
			if on {
				return clearUpstreamMember(src, u.Name, "disabled")
			}
			return install.SetMember(src, []string{"upstreams", u.Name, "disabled"}, json.RawMessage("true"))
		})
		if err != nil {
			return err
		}
		return a.Host.WriteChange(o.JSON, app.ChangeResult{Action: word, Changed: u.Disabled == on, Kind: app.KindUpstream, Name: u.Name, File: file},
			fmt.Sprintf("The upstream %s is %s.", u.Name, word))
	}
	return app.NewChangeCmd(a, run, &cobra.Command{
		Use:               use + " NAME",
		Args:              app.ExactArgs(1, "one name", "guideway upstream "+use+" files"),
		ValidArgsFunction: server.CompleteUpstreams(a),
	})
}

// clearUpstreamMember removes an upstream, or a member of it, from the configuration.
func clearUpstreamMember(src []byte, path ...string) ([]byte, error) {
	out, _, err := install.RemoveMember(src, append([]string{"upstreams"}, path...))
	return out, err
}
