// Package token implements the commands for bearer tokens.
package token

import "github.com/guideway-dev/guideway/internal/cli/app"

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/spf13/cobra"
)

func NewTokenCmd(a *app.App) *cobra.Command {
	return app.NewGroupCmd(&cobra.Command{
		Use:     "token",
		Aliases: []string{"tokens"},
		Short:   "Create, list, show and revoke access tokens",
		Long: `A named token authenticates one client, optionally until it expires. A token of the scope
"mcp" is valid for /mcp, where the client sees and calls only what the token allows:
upstreams, projects, single tools and toolsets of Guideway. These scopes are valid for
/api: "read" reads your runs, session documents, definitions and upstreams, "contents" also
contexts, checkpoints and recorded requests, "approve" also answers gates and held calls as a
person, and "manage" also changes upstreams, which can start any program, and creates tokens.
The scope "registry" is valid for /registry only. Do not store tokens of the scopes "approve"
and "manage" where an agent can use them.`,
		Example: `  guideway token create laptop --upstream files --tool 'github__get_*' --expires 30d
  guideway token create phone --scope approve
  guideway token list
  guideway token revoke laptop`,
	},
		newTokenCreateCmd(a, runTokenCreate), newTokenListCmd(a),
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

func newTokenListCmd(a *app.App) *cobra.Command {
	return app.NewPlainCmd(a, runTokenList, &cobra.Command{
		Use: "list", Short: "List tokens",
		Example: "  guideway token list --json",
	})
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
		Use: "show NAME", Short: "Show the permissions of a token",
		Example:           "  guideway token show laptop --json",
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
		Use: "revoke NAME", Short: "Revoke a token",
		Long: `Revoke a token immediately. New requests with it are refused, and open sessions and calls
of its client end within seconds.`,
		Example:           "  guideway token revoke laptop",
		Args:              app.ExactArgs(1, "one name", "guideway token revoke laptop"),
		ValidArgsFunction: completeTokens(a),
	})
}

func runTokenRevoke(_ context.Context, o *app.NameOptions) error {
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
	return o.App.Host.WriteResult(o.JSON, app.ChangeResult{Action: "revoked", Changed: true, Kind: app.KindToken, Name: o.Name}, "Revoked: "+o.Name)
}
