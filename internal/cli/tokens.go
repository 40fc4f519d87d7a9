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

func newTokensCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tokens",
		Short: "Make and revoke named tokens for the API",
		Long: `A named token lets a program of yours in at /api, and never at /mcp: agents have the
token of the token file. With the scope "read" it sees your runs and session
documents; with "approve" it answers gates as a person, too, so give it to nothing
that an agent can use.`,
		Example: `  guideway tokens create phone --scope approve
  guideway tokens list
  guideway tokens revoke phone`,
		Args: unknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		newTokensCreateCmd(a, runTokensCreate), newTokensListCmd(a, runTokensList), newTokensRevokeCmd(a, runTokensRevoke),
	)
	return cmd
}

func (a *app) openTokens() (*authn.Tokens, *config.Config, error) {
	cfg, err := a.load()
	if err != nil {
		return nil, nil, err
	}
	tokens, err := newTokens(cfg)
	return tokens, cfg, err
}

// tokensCreateOptions is the command line of guideway tokens create.
type tokensCreateOptions struct {
	app   *app
	Name  string
	Scope string
}

func tokenScopes() []string { return []string{string(authn.ScopeRead), string(authn.ScopeApprove)} }

func newTokensCreateCmd(a *app, run func(context.Context, *tokensCreateOptions) error) *cobra.Command {
	o := &tokensCreateOptions{app: a}
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Make a token and print it, once",
		Long: `Make a token and print it. It is kept as a hash alone, so it is not shown again. One of
the scope "approve" opens what your passphrase opens, so it takes a terminal and, where
you have set one, the passphrase.`,
		Example:           "  guideway tokens create monitor\n  guideway tokens create phone --scope approve",
		Args:              exactly(1, "one name", "guideway tokens create phone"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name = args[0]
			if !slices.Contains(tokenScopes(), o.Scope) {
				return usageError{guideway.Errorf(guideway.CodeInvalid, "there is no scope %q", o.Scope).
					WithFix("--scope %s", strings.Join(tokenScopes(), ", or --scope "))}
			}
			if o.Scope == string(authn.ScopeApprove) {
				if err := a.host.asksPeople(); err != nil {
					return usageError{err}
				}
			}
			return run(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&o.Scope, "scope", string(authn.ScopeRead), "what it is good for: "+strings.Join(tokenScopes(), ", "))
	_ = cmd.RegisterFlagCompletionFunc("scope", cobra.FixedCompletions(tokenScopes(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func runTokensCreate(ctx context.Context, o *tokensCreateOptions) error {
	tokens, cfg, err := o.app.openTokens()
	if err != nil {
		return err
	}
	user, err := authn.SystemUser()
	if err != nil {
		return err
	}
	if o.Scope == string(authn.ScopeApprove) {
		person := &atTerminal{terminal: newTerminal(o.app.host), host: o.app.host, secret: o.app.host.passphraseFile(cfg)}
		if err := person.proveIfSet(ctx); err != nil {
			return err
		}
	}
	secret, err := tokens.Create(o.Name, user, authn.Scope(o.Scope))
	if err != nil {
		return err
	}
	fmt.Fprintln(o.app.host.Out, secret)
	fmt.Fprintln(o.app.host.Err, "It is not shown again. Send it as: Authorization: Bearer TOKEN")
	return nil
}

// tokensListOptions is the command line of guideway tokens list.
type tokensListOptions struct {
	app  *app
	JSON bool
}

// tokensListAnswer is the answer of guideway tokens list --json.
type tokensListAnswer struct {
	Tokens []authn.NamedToken `json:"tokens"`
}

func newTokensListCmd(a *app, run func(context.Context, *tokensListOptions) error) *cobra.Command {
	o := &tokensListOptions{app: a}
	cmd := &cobra.Command{
		Use: "list", Short: "List the named tokens, without their secrets",
		Example: "  guideway tokens list --json",
		Args:    noArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), o) },
	}
	cmd.Flags().BoolVar(&o.JSON, "json", false, "answer in JSON")
	return cmd
}

func runTokensList(_ context.Context, o *tokensListOptions) error {
	tokens, _, err := o.app.openTokens()
	if err != nil {
		return err
	}
	list, err := tokens.List()
	if err != nil {
		return err
	}
	host := o.app.host
	if o.JSON {
		return writeJSON(host.Out, tokensListAnswer{Tokens: orEmpty(list)})
	}
	if len(list) == 0 {
		fmt.Fprintln(host.Err, "There are no named tokens: guideway tokens create NAME")
		return nil
	}
	t := table{flexible: 0}
	t.add("NAME", "SCOPES", "MADE")
	for _, token := range list {
		scopes := make([]string, len(token.Scopes))
		for i, scope := range token.Scopes {
			scopes[i] = string(scope)
		}
		t.add(oneLine(token.Name), strings.Join(scopes, ", "), host.ago(token.Created))
	}
	t.write(host.Out, host.terminalWidth(), host.outStyles())
	return nil
}

// tokensRevokeOptions is the command line of guideway tokens revoke.
type tokensRevokeOptions struct {
	app  *app
	Name string
}

func newTokensRevokeCmd(a *app, run func(context.Context, *tokensRevokeOptions) error) *cobra.Command {
	o := &tokensRevokeOptions{app: a}
	return &cobra.Command{
		Use: "revoke NAME", Short: "End a named token, at once and everywhere; a stream that it has opened ends within half a minute",
		Example: "  guideway tokens revoke phone",
		Args:    exactly(1, "one name", "guideway tokens revoke phone"),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			var names []string
			if tokens, _, err := a.openTokens(); err == nil && len(args) == 0 {
				list, _ := tokens.List() // a shell that completes shows no errors
				for _, token := range list {
					names = append(names, token.Name)
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name = args[0]
			return run(cmd.Context(), o)
		},
	}
}

func runTokensRevoke(_ context.Context, o *tokensRevokeOptions) error {
	tokens, _, err := o.app.openTokens()
	if err != nil {
		return err
	}
	if err := tokens.Revoke(o.Name); err != nil {
		return err
	}
	fmt.Fprintf(o.app.host.Out, "Revoked: %s\n", o.Name)
	return nil
}
