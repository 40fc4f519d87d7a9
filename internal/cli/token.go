package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/authn"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/spf13/cobra"
)

func newTokenCmd(a *app) *cobra.Command {
	return newGroupCmd(&cobra.Command{
		Use:     "token",
		Aliases: []string{"tokens"},
		Short:   "Make and revoke tokens for clients and for the API",
		Long: `A named token lets one client in, for as long as you want. Of the scope "mcp" it is good
for /mcp, where the client sees and calls only what the token names: upstreams,
projects, single tools, and toolsets of Guideway's own. The other scopes are good for
/api: "read" sees your runs and session documents, "approve" answers gates as a person,
too, and "manage" changes upstreams and approves their tools. Give the last two to
nothing that an agent can use.`,
		Example: `  guideway token create laptop --upstream files --tool 'github__get_*' --expires 30d
  guideway token create phone --scope approve
  guideway token list
  guideway token revoke laptop`,
	},
		newTokenCreateCmd(a, runTokenCreate), newTokenListCmd(a),
		newTokenShowCmd(a), newTokenRevokeCmd(a),
	)
}

func (a *app) openTokens() (*authn.Tokens, *config.Config, error) {
	cfg, err := a.load()
	if err != nil {
		return nil, nil, err
	}
	tokens, err := newTokens(cfg)
	return tokens, cfg, err
}

// tokenListAnswer is the answer of guideway token list --json.
type tokenListAnswer struct {
	Tokens []authn.NamedToken `json:"tokens"`
}

func newTokenListCmd(a *app) *cobra.Command {
	return newPlainCmd(a, runTokenList, &cobra.Command{
		Use: "list", Short: "List the named tokens, without their secrets",
		Example: "  guideway token list --json",
	})
}

func runTokenList(_ context.Context, o *plainOptions) error {
	tokens, _, err := o.app.openTokens()
	if err != nil {
		return err
	}
	list, err := tokens.List()
	if err != nil {
		return err
	}
	host := o.app.host
	return writeList(host, o.JSON, listing[authn.NamedToken]{
		items: list, answer: tokenListAnswer{Tokens: orEmpty(list)}, empty: "There are no named tokens: guideway token create NAME",
		table: newTable(2, "NAME", "SCOPES", "MAY USE", "MADE", "USED", "ENDS"),
		row: func(t authn.NamedToken) []string {
			return []string{oneLine(t.Name), scopesText(t.Scopes), oneLine(allowText(t)), host.ago(t.Created), host.agoOr(t.Used, "never"), host.ends(t)}
		},
	})
}

func scopesText(scopes []authn.Scope) string {
	texts := make([]string, len(scopes))
	for i, scope := range scopes {
		texts[i] = string(scope)
	}
	return strings.Join(texts, ", ")
}

// allowText says in a line what a token may use on /mcp.
func allowText(t authn.NamedToken) string {
	switch {
	case !slices.Contains(t.Scopes, authn.ScopeMCP):
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

// exposureText says how a client is offered tools.
func exposureText(e authn.Exposure) string {
	if e == authn.ExposureSearch {
		return "by tool_search and tool_call"
	}
	return "all in the list"
}

// ends says when a token ends by itself.
func (h *Host) ends(t authn.NamedToken) string {
	switch {
	case t.Expires == nil:
		return "never"
	case t.Expired(h.currentTime()):
		return "has expired"
	}
	return t.Expires.Local().Format("2006-01-02 15:04")
}

func newTokenShowCmd(a *app) *cobra.Command {
	return newNameCmd(a, runTokenShow, &cobra.Command{
		Use: "show NAME", Short: "Show what a token may do, without its secret",
		Example:           "  guideway token show laptop --json",
		Args:              exactly(1, "one name", "guideway token show laptop"),
		ValidArgsFunction: a.completeTokens,
	})
}

func runTokenShow(_ context.Context, o *nameOptions) error {
	tokens, _, err := o.app.openTokens()
	if err != nil {
		return err
	}
	list, err := tokens.List()
	if err != nil {
		return err
	}
	i := slices.IndexFunc(list, func(t authn.NamedToken) bool { return t.Name == o.Name })
	if i < 0 {
		return guideway.Errorf(guideway.CodeNotFound, "there is no token with the name %q", o.Name).WithFix("guideway token list")
	}
	host, token := o.app.host, list[i]
	if o.JSON {
		return writeJSON(host.Out, token)
	}
	fmt.Fprintf(host.Out, "%s\n", host.outStyles().bold(oneLine(token.Name)))
	fmt.Fprintf(host.Out, "  scopes   %s\n  user     %s\n", scopesText(token.Scopes), oneLine(token.User))
	fmt.Fprintf(host.Out, "  may use  %s\n", oneLine(allowText(token)))
	if token.Exposure != "" {
		fmt.Fprintf(host.Out, "  tools    %s\n", exposureText(token.Exposure))
	}
	fmt.Fprintf(host.Out, "  made     %s\n  used     %s\n  ends     %s\n", host.ago(token.Created), host.agoOr(token.Used, "never"), host.ends(token))
	return nil
}

func (a *app) completeTokens(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var names []string
	if tokens, _, err := a.openTokens(); err == nil && len(args) == 0 {
		list, _ := tokens.List() // a shell that completes shows no errors
		for _, token := range list {
			names = append(names, token.Name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func newTokenRevokeCmd(a *app) *cobra.Command {
	return newChangeCmd(a, runTokenRevoke, &cobra.Command{
		Use: "revoke NAME", Short: "End a token, at once and everywhere",
		Long: `End a token, at once and everywhere: it lets nobody in any more, and the sessions and
calls of a client that has it end within seconds.`,
		Example:           "  guideway token revoke laptop",
		Args:              exactly(1, "one name", "guideway token revoke laptop"),
		ValidArgsFunction: a.completeTokens,
	})
}

func runTokenRevoke(_ context.Context, o *nameOptions) error {
	tokens, _, err := o.app.openTokens()
	if err != nil {
		return err
	}
	if err := tokens.Revoke(o.Name); err != nil {
		return err
	}
	return o.app.host.writeJSONOr(o.JSON, changeResult{Action: "revoked", Changed: true, Kind: kindToken, Name: o.Name}, func() {
		fmt.Fprintf(o.app.host.Out, "Revoked: %s\n", o.Name)
	})
}
