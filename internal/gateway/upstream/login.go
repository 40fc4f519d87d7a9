package upstream

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/ssrf"
)

// LoginOptions configure a login.
type LoginOptions struct {
	// Redirect is the URL to which the authorization server sends the browser.
	Redirect string
	// Scopes are requested in addition to those that are configured or that the server
	// requests.
	Scopes []string
	// ClientMetadata is the URL of the client ID metadata document; it may be empty.
	ClientMetadata string
}

// Login is a login in progress: a person opens URL in a browser, and the authorization
// server sends the browser to the redirect.
type Login struct {
	// URL is the page of the authorization server, and Issuer the identifier of that
	// server.
	URL, Issuer string

	spec            Spec
	opts            Options
	client          *http.Client
	endpoint        *endpoint
	grant           *tokenGrant
	redirect        string
	state, verifier string
}

// StartLogin discovers the authorization server of an upstream, registers a client there if
// necessary, and prepares a login. Every login has its own state and its own PKCE verifier.
func StartLogin(ctx context.Context, spec Spec, opts Options, login LoginOptions) (*Login, error) {
	if spec.URL == "" {
		return nil, guideway.Errorf(guideway.CodeInvalid, "the upstream %s is a command; a login needs a server with a URL", spec.Name).
			WithFix(`pass secrets to the command in "env"`)
	}
	if !spec.CanLogIn() {
		return nil, guideway.Errorf(guideway.CodeInvalid, "the upstream %s already uses another credential, so a login to it is not possible", spec.Name).
			WithFix(`remove "bearer", the header "Authorization", and "clientSecret" or the grant "client_credentials" of "oauth"`)
	}
	if opts.HTTP == nil {
		opts.HTTP = http.DefaultTransport
	}
	spec, _, err := opts.Secrets.resolveSpec(spec)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, tokenTime)
	defer cancel()
	d := newDiscovery(spec, opts.HTTP)
	challenge, err := d.askChallenge(ctx)
	if err != nil {
		return nil, err
	}
	e, err := d.discoverEndpoint(ctx, challenge)
	if err != nil {
		return nil, err
	}
	for _, scope := range slices.Concat(login.Scopes, []string{"offline_access"}) { // SEP-2207: offline_access requests a refresh token
		if !slices.Contains(e.scopes, scope) && (scope != "offline_access" || slices.Contains(e.Scopes, scope)) {
			e.scopes = append(slices.Clip(e.scopes), scope)
		}
	}
	l := &Login{Issuer: e.Issuer, spec: spec, opts: opts, client: d.client, endpoint: e, redirect: login.Redirect, state: rand.Text(), verifier: oauth2.GenerateVerifier()}
	if l.grant, err = d.identifyClient(ctx, e, login); err != nil {
		return nil, err
	}
	config := oauth2.Config{ClientID: l.grant.ClientID, Endpoint: oauth2.Endpoint{AuthURL: e.AuthEndpoint}, RedirectURL: l.redirect, Scopes: e.scopes}
	l.URL = config.AuthCodeURL(l.state, oauth2.S256ChallengeOption(l.verifier), oauth2.SetAuthURLParam("resource", e.resource))
	return l, nil
}

// askChallenge sends a request without a token and returns the challenge of the refusal; nil
// if the server does not refuse it.
func (d *discovery) askChallenge(ctx context.Context) (map[string]string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.spec.URL, bytes.NewReader([]byte(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)))
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeInvalid, "make a request: %w", &quietError{err})
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for name, value := range d.spec.Headers {
		req.Header.Set(name, value)
	}
	resp, err := d.client.Do(req)
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "reach the server: %w", &quietError{err}).WithFix("check that an MCP server runs at the URL of the upstream")
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized {
		return nil, nil
	}
	return challengeOf(resp), nil
}

// identifyClient returns the grant with the client of this login: the configured one, or
// else the metadata document, or else a new one (RFC 7591).
func (d *discovery) identifyClient(ctx context.Context, e *endpoint, login LoginOptions) (*tokenGrant, error) {
	g := &tokenGrant{TokenURL: e.TokenEndpoint, Style: oauth2.AuthStyleInParams, Resource: e.resource}
	switch o := d.oauth(); {
	case o.ClientID != "":
		g.ClientID, g.ClientSecret = o.ClientID, o.ClientSecret
		if g.ClientSecret != "" && e.style != oauth2.AuthStyleInParams {
			g.Style = oauth2.AuthStyleInHeader
		}
		return g, nil
	case login.ClientMetadata != "" && e.ReadsDocuments:
		g.ClientID = login.ClientMetadata
		return g, nil
	case e.Registration == "":
		return nil, guideway.Errorf(guideway.CodeUnauthorized, "%s does not register clients automatically", plainChallenge(e.Issuer)).
			WithFix(`register Guideway there with the redirect %s, then set "clientId" in the upstream's oauth (--oauth-client-id)`, login.Redirect)
	}
	about := oauthex.ClientRegistrationMetadata{
		RedirectURIs: []string{login.Redirect}, TokenEndpointAuthMethod: "none", ClientName: "Guideway", ApplicationType: "native",
		GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"}, Scope: strings.Join(e.scopes, " "),
	}
	if u, err := url.Parse(login.Redirect); err == nil && !ssrf.IsLoopback(u.Hostname()) {
		about.ApplicationType = "web"
	}
	if len(e.Methods) > 0 && !slices.Contains(e.Methods, "none") {
		about.TokenEndpointAuthMethod = map[oauth2.AuthStyle]string{oauth2.AuthStyleInParams: "client_secret_post"}[e.style]
	}
	client, err := oauthex.RegisterClient(ctx, e.Registration, &about, d.client)
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeUnauthorized, "register a client at %s: %s", plainChallenge(e.Issuer), plainChallenge(err.Error())).
			WithFix(`register Guideway there with the redirect %s, then set "clientId" in the upstream's oauth (--oauth-client-id)`, login.Redirect)
	}
	g.ClientID, g.ClientSecret = client.ClientID, client.ClientSecret
	if client.ClientSecret != "" && client.TokenEndpointAuthMethod != "client_secret_post" {
		g.Style = oauth2.AuthStyleInHeader
	}
	return g, nil
}

// State returns the state of the login, which only its redirect contains.
func (l *Login) State() string { return l.state }

// Finish exchanges the code of a redirect for tokens and stores them. query are the
// parameters of the redirect. It must be called at most once.
func (l *Login) Finish(ctx context.Context, query url.Values) (*LoginInfo, error) {
	code, err := l.checkRedirect(query)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, tokenTime)
	defer cancel()
	token, err := l.grant.requestToken(ctx, l.client, nil, url.Values{
		"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {l.redirect}, "code_verifier": {l.verifier},
	})
	if err != nil {
		return nil, err
	}
	info := &LoginInfo{Issuer: l.Issuer, Client: l.grant.ClientID, Scopes: l.endpoint.scopes, Since: time.Now()}
	if granted, ok := token.Extra("scope").(string); ok && granted != "" {
		info.Scopes = strings.Fields(granted)
	}
	unlock, err := l.opts.Logins.lock(ctx, l.spec.Name)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := l.opts.Logins.write(ctx, l.spec, info, &loginSecrets{tokenGrant: *l.grant, Revocation: l.endpoint.Revocation, Token: token}); err != nil {
		return nil, err
	}
	return info, l.opts.Logins.noteChange(l.spec.Name)
}

// checkRedirect returns the code of a redirect. It refuses a redirect that belongs to another
// login, or that another authorization server sent (RFC 9207).
func (l *Login) checkRedirect(query url.Values) (string, error) {
	refuse := func(format string, args ...any) error {
		return guideway.Errorf(guideway.CodeUnauthorized, "the login was refused: "+format, args...).
			WithFix("log in again: guideway upstream login %s", l.spec.Name)
	}
	for _, name := range []string{"state", "iss", "code", "error"} {
		if len(query[name]) > 1 {
			return "", refuse("the redirect contains %q more than once", name)
		}
	}
	issuer, hasIssuer := query.Get("iss"), query.Has("iss")
	switch {
	case !l.OwnsState(query.Get("state")):
		return "", refuse("the redirect does not belong to this login")
	case hasIssuer && issuer != l.Issuer:
		return "", refuse("the redirect comes from another authorization server, %q instead of %q", plainChallenge(issuer), plainChallenge(l.Issuer))
	case !hasIssuer && l.endpoint.SendsIssuer:
		return "", refuse("the redirect contains no \"iss\", although %q announces it", plainChallenge(l.Issuer))
	case query.Has("error"):
		said := plainChallenge(query.Get("error"))
		if text := plainChallenge(query.Get("error_description")); text != "" {
			said += " (" + text + ")"
		}
		return "", refuse("the authorization server answered %s", said)
	case query.Get("code") == "":
		return "", refuse("the redirect contains no code")
	}
	return query.Get("code"), nil
}

// OwnsState reports whether a state belongs to this login.
func (l *Login) OwnsState(state string) bool {
	return subtle.ConstantTimeCompare([]byte(state), []byte(l.state)) == 1
}

// Logout removes the login to a server and asks the authorization server to revoke its
// tokens (RFC 7009). It reports whether there was a login, and whether the tokens were
// revoked.
func Logout(ctx context.Context, spec Spec, opts Options) (had, revoked bool, err error) {
	spec, _, err = opts.Secrets.resolveSpec(spec)
	if err != nil {
		return false, false, err
	}
	unlock, err := opts.Logins.lock(ctx, spec.Name)
	if err != nil {
		return false, false, err
	}
	defer unlock()
	_, statErr := os.Lstat(opts.Logins.path(spec.Name))
	had = statErr == nil
	_, s, _ := opts.Logins.readSecrets(ctx, spec) // a login that cannot be read is removed, too
	err = opts.Logins.Remove(spec.Name)
	if err == nil && had {
		err = opts.Logins.noteChange(spec.Name)
	}
	if err != nil || s == nil || s.Revocation == "" {
		return had, false, err
	}
	if opts.HTTP == nil {
		opts.HTTP = http.DefaultTransport
	}
	return had, s.revoke(ctx, newDiscovery(spec, opts.HTTP).client), nil
}

// revoke asks the authorization server to revoke the tokens, and reports whether it agreed.
// Revoking a refresh token also revokes its access tokens.
func (s *loginSecrets) revoke(ctx context.Context, client *http.Client) bool {
	ctx, cancel := context.WithTimeout(ctx, tokenTime)
	defer cancel()
	form := url.Values{"token": {s.Token.RefreshToken}, "token_type_hint": {"refresh_token"}, "client_id": {s.ClientID}}
	if s.Token.RefreshToken == "" {
		form.Set("token", s.Token.AccessToken)
		form.Set("token_type_hint", "access_token")
	}
	if s.ClientSecret != "" && s.Style == oauth2.AuthStyleInParams {
		form.Set("client_secret", s.ClientSecret)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.Revocation, strings.NewReader(form.Encode()))
	if err != nil {
		return false
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if s.ClientSecret != "" && s.Style != oauth2.AuthStyleInParams {
		req.SetBasicAuth(url.QueryEscape(s.ClientID), url.QueryEscape(s.ClientSecret))
	}
	resp, err := client.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}
