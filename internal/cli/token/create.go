package token

import "github.com/guideway-dev/guideway/internal/cli/app"

import "github.com/guideway-dev/guideway/internal/cli/server"

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/spf13/cobra"
)

// tokenCreateOptions is the command line of guideway token create.
type tokenCreateOptions struct {
	app     *app.App
	Name    string
	Scope   string
	Allow   auth.Allow
	Expires string
	// Exposure is an auth.Exposure.
	Exposure string
	JSON     bool

	lasts time.Duration
}

func tokenScopes() []string { return app.ToStrings(auth.Scopes()...) }

func newTokenCreateCmd(a *app.App, run func(context.Context, *tokenCreateOptions) error) *cobra.Command {
	o := &tokenCreateOptions{app: a}
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Create a token",
		Long: `Create a token and print it. Only its hash is stored, so it cannot be shown again. A token
of the scope "mcp" gives access to the named upstreams, projects, tools and toolsets only;
without any of them, it gives no access. A token of the scope "approve" or "manage" acts for you:
creating it requires a terminal and your passphrase, if you have set one.`,
		Example: `  guideway token create laptop --upstream files --toolset steps,runs
  guideway token create ci --tool 'github__get_*' --tool github__list_issues --expires 30d
  guideway token create monitor --scope read
  guideway token create colleagues --scope registry
  guideway token create phone --scope approve`,
		Args:              app.ExactArgs(1, "one name", "guideway token create laptop --upstream files"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              app.RunWithArg(run, o, &o.Name, o.checkOptions),
	}
	f := cmd.Flags()
	app.AddChoiceFlag(cmd, &o.Scope, "scope", string(auth.ScopeMCP), tokenScopes(), "scope of the token: "+strings.Join(tokenScopes(), ", "))
	f.StringSliceVar(&o.Allow.Upstreams, "upstream", nil, "allow this upstream; can be repeated")
	f.StringSliceVar(&o.Allow.Projects, "project", nil, "allow the upstreams of this project; can be repeated")
	f.StringSliceVar(&o.Allow.Tools, "tool", nil, "allow this tool, such as files__read or 'github__get_*'; can be repeated")
	f.StringSliceVar(&o.Allow.Toolsets, "toolset", nil, "allow this toolset of Guideway: "+strings.Join(ownToolsets(), ", ")+"; can be repeated")
	f.BoolVar(&o.Allow.All, "all", false, "allow all upstreams, tools and toolsets")
	app.AddChoiceFlag(cmd, &o.Exposure, "exposure", "", exposureNames(), "presentation of upstream tools to the client: "+strings.Join(exposureNames(), " or ")+" (default: the setting gateway.exposure)")
	f.StringVar(&o.Expires, "expires", "", "lifetime, such as 30d or 12h (default: unlimited)")
	app.AddChangeFlag(cmd, &o.JSON)
	app.AddFixedCompletion(cmd, "toolset", ownToolsets())
	_ = cmd.RegisterFlagCompletionFunc("upstream", server.CompleteUpstreamFlag(a))
	return cmd
}

// exposureNames returns the names of the exposures.
func exposureNames() []string { return app.ToStrings(auth.ExposureAll, auth.ExposureSearch) }

// ownToolsets returns the toolsets of Guideway, without the gateway.
func ownToolsets() []string {
	return slices.DeleteFunc(config.Toolsets(), func(name string) bool { return name == "gateway" })
}

// checkOptions returns an error if the options do not describe a valid token.
func (o *tokenCreateOptions) checkOptions() error {
	for _, name := range o.Allow.Toolsets {
		if !slices.Contains(ownToolsets(), name) {
			return guideway.Errorf(guideway.CodeInvalid, "%q is not a toolset that a token can allow", name).
				WithFix("use %s; for upstreams use --upstream, --project and --tool", strings.Join(ownToolsets(), ", "))
		}
	}
	if o.Expires != "" {
		var err error
		if o.lasts, err = config.ParseDuration(o.Expires); err != nil || o.lasts <= 0 {
			return guideway.Errorf(guideway.CodeInvalid, "--expires %q is not a duration above zero", o.Expires).
				WithFix("--expires 30d")
		}
	}
	if auth.Scope(o.Scope).Person() {
		return o.app.Host.RequireTerminal()
	}
	return nil
}

// tokenCreated is the answer of guideway token create --json.
type tokenCreated struct {
	app.ChangeResult
	Secret string          `json:"secret"`
	Token  auth.NamedToken `json:"token"`
}

func runTokenCreate(ctx context.Context, o *tokenCreateOptions) error {
	tokens, cfg, err := openTokens(o.app)
	if err != nil {
		return err
	}
	host := o.app.Host
	token := auth.NamedToken{Name: o.Name, Scopes: []auth.Scope{auth.Scope(o.Scope)}, Exposure: auth.Exposure(o.Exposure)}
	if token.User, err = app.LocalUser(cfg); err != nil {
		return err
	}
	if token.Scopes[0] == auth.ScopeMCP || !o.Allow.IsEmpty() {
		token.Allow = &o.Allow
	}
	if o.lasts > 0 {
		at := host.CurrentTime().Add(o.lasts).UTC().Truncate(time.Second)
		token.Expires = &at
	}
	if auth.Scope(o.Scope).Person() {
		person := app.NewApprover(host, cfg)
		if err := person.CheckPassphraseIfSet(ctx); err != nil {
			return err
		}
	}
	secret, err := tokens.Create(token)
	if err != nil {
		return err
	}
	if o.JSON {
		token.Created = host.CurrentTime().UTC().Truncate(time.Second)
		return app.WriteJSON(host.Out, tokenCreated{
			ChangeResult: app.ChangeResult{Action: "created", Changed: true, Kind: app.KindToken, Name: token.Name, Notes: o.accessNotes(cfg, token)}, Secret: secret, Token: token,
		})
	}
	fmt.Fprintln(host.Out, secret)
	fmt.Fprintln(host.Err, "The token is not shown again. Send it as: Authorization: Bearer TOKEN")
	for _, note := range o.accessNotes(cfg, token) {
		fmt.Fprintln(host.Err, "note: "+note)
	}
	return nil
}

// accessNotes returns notes about likely mistakes in the permissions of a token.
func (o *tokenCreateOptions) accessNotes(cfg *config.Config, token auth.NamedToken) []string {
	if token.Allow == nil {
		return nil
	}
	var notes []string
	if token.Allow.IsEmpty() {
		notes = append(notes, "the token gives no access: revoke it, and create it again with --upstream, --project, --tool, --toolset or --all")
	}
	for _, name := range token.Allow.Upstreams {
		if !slices.ContainsFunc(cfg.Upstreams, func(u config.Upstream) bool { return u.Name == name }) {
			notes = append(notes, fmt.Sprintf("there is no upstream %s yet; to list upstreams: guideway upstream list", app.OneLine(name)))
		}
	}
	for _, name := range token.Allow.Projects {
		if !slices.ContainsFunc(cfg.Upstreams, func(u config.Upstream) bool { return u.Project == name }) {
			notes = append(notes, fmt.Sprintf("no upstream is in the project %s yet; to list projects: guideway upstream project list", app.OneLine(name)))
		}
	}
	return notes
}
