// Package token implements the commands for bearer tokens.
package token

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/audit"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/cli/server"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/spf13/cobra"
)

func NewTokenCmd(a *app.App) *cobra.Command {
	return app.NewGroupCmd(&cobra.Command{
		Use:     "token",
		Aliases: []string{"tokens"},
	},
		newTokenCreateCmd(a, runTokenCreate), app.NewPlainCmd(a, runTokenList, &cobra.Command{Use: "list"}),
		newTokenShowCmd(a), newTokenRevokeCmd(a),
	)
}

func openTokens(a *app.App) (*auth.Tokens, *config.Config, error) {
	cfg, err := a.Load()
	if err != nil {
		return nil, nil, err
	}
	tokens, err := app.OpenTokens(cfg)
	return tokens, cfg, err
}

// listTokens returns the tokens of all users, and the local user.
func listTokens(a *app.App) (list []auth.NamedToken, user string, err error) {
	tokens, cfg, err := openTokens(a)
	if err != nil {
		return nil, "", err
	}
	if user, err = app.LocalUser(cfg); err == nil {
		list, err = tokens.List()
	}
	return list, user, err
}

// ownedName returns the name of a token, with its user if that is not the local one.
func ownedName(t auth.NamedToken, user string) string {
	if t.User == user {
		return app.OneLine(t.Name)
	}
	return app.OneLine(t.Name + " (" + t.User + ")")
}

// tokenListAnswer is the answer of guideway token list --json.
type tokenListAnswer struct {
	Tokens []auth.NamedToken `json:"tokens"`
}

func runTokenList(_ context.Context, o *app.PlainOptions) error {
	list, user, err := listTokens(o.App)
	if err != nil {
		return err
	}
	host := o.App.Host
	return app.WriteList(host, o.JSON, app.Listing[auth.NamedToken]{
		Items: list, Answer: tokenListAnswer{Tokens: app.OrEmpty(list)}, Empty: "There are no named tokens. To create one: guideway token create NAME",
		Table: app.NewTable(2, "NAME", "SCOPES", "MAY USE", "CREATED", "USED", "EXPIRES"),
		Row: func(t auth.NamedToken) []string {
			return []string{ownedName(t, user), scopesText(t.Scopes), app.OneLine(allowText(t)), host.FormatAge(t.Created), host.FormatAgeOr(t.Used, "never"), expiryText(host, t)}
		},
	})
}

func scopesText(scopes []auth.Scope) string { return strings.Join(app.ToStrings(scopes...), ", ") }

// allowText returns the permissions of a token on /mcp on one line.
func allowText(t auth.NamedToken) string {
	switch {
	case !slices.Contains(t.Scopes, auth.ScopeMCP):
		return "-"
	case t.Allow.IsEmpty():
		return "nothing"
	case t.Allow.All:
		return "everything"
	}
	var parts []string
	for _, part := range []struct {
		what string
		list []string
	}{{"upstreams", t.Allow.Upstreams}, {"projects", t.Allow.Projects}, {"tools", t.Allow.Tools}, {"toolsets", t.Allow.Toolsets}} {
		if len(part.list) > 0 {
			parts = append(parts, part.what+" "+strings.Join(part.list, ", "))
		}
	}
	return strings.Join(parts, "; ")
}

// exposureText returns how tools are presented to a client, or "" if the token does not
// determine it.
func exposureText(e auth.Exposure) string {
	return map[auth.Exposure]string{auth.ExposureSearch: "by tool_search and tool_call", auth.ExposureAll: "all in the list"}[e]
}

// expiryText returns the expiry of a token as text.
func expiryText(h *app.Host, t auth.NamedToken) string {
	switch {
	case t.Expires == nil:
		return "never"
	case t.Expired(h.CurrentTime()):
		return "expired"
	}
	return t.Expires.Local().Format("2006-01-02 15:04")
}

func newTokenShowCmd(a *app.App) *cobra.Command {
	return app.NewNameCmd(a, runTokenShow, &cobra.Command{
		Use:               "show NAME",
		Args:              app.ExactArgs(1, "one name", "guideway token show laptop"),
		ValidArgsFunction: completeTokens(a),
	})
}

func runTokenShow(_ context.Context, o *app.NameOptions) error {
	list, user, err := listTokens(o.App)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(list, func(t auth.NamedToken) bool { return t.Name == o.Name && t.User == user })
	if i < 0 {
		return guideway.Errorf(guideway.CodeNotFound, "there is no token with the name %q", o.Name).WithFix("guideway token list")
	}
	host, token := o.App.Host, list[i]
	if o.JSON {
		return app.WriteJSON(host.Out, token)
	}
	fmt.Fprintf(host.Out, "%s\n", host.OutStyles().Bold(app.OneLine(token.Name)))
	line := host.WriteFields(9)
	line("  scopes", scopesText(token.Scopes))
	line("  user", app.OneLine(token.User))
	line("  allows", app.OneLine(allowText(token)))
	line("  tools", exposureText(token.Exposure))
	line("  created", host.FormatAge(token.Created))
	line("  used", host.FormatAgeOr(token.Used, "never"))
	line("  expires", expiryText(host, token))
	return nil
}

func completeTokens(a *app.App) cobra.CompletionFunc {
	return app.CompleteNames(1, cobra.ShellCompDirectiveNoFileComp, func(context.Context) (names []string, err error) {
		list, user, err := listTokens(a)
		for _, token := range list {
			if token.User == user {
				names = append(names, token.Name)
			}
		}
		return names, err
	})
}

func newTokenRevokeCmd(a *app.App) *cobra.Command {
	return app.NewChangeCmd(a, runTokenRevoke, &cobra.Command{
		Use:               "revoke NAME",
		Args:              app.ExactArgs(1, "one name", "guideway token revoke laptop"),
		ValidArgsFunction: completeTokens(a),
	})
}

func runTokenRevoke(ctx context.Context, o *app.NameOptions) error {
	tokens, cfg, err := openTokens(o.App)
	if err != nil {
		return err
	}
	user, err := app.LocalUser(cfg)
	if err != nil {
		return err
	}
	if err := tokens.Revoke(user, o.Name); err != nil {
		return err
	}
	o.App.RecordCommand(ctx, cfg, audit.TokenRevoked, user+"/"+o.Name, "")
	return o.App.Host.WriteResult(o.JSON, app.ChangeResult{Action: "revoked", Changed: true, Kind: app.KindToken, Name: o.Name}, "Revoked: "+o.Name)
}

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
		Use:               "create NAME",
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
	o.app.RecordCommand(ctx, cfg, audit.TokenCreated, token.User+"/"+token.Name, "scope "+o.Scope)
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
