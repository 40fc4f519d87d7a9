package upstream

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/blob/seal"
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
	// URL is the page of the authorization server.
	URL string

	attempt
	spec   Spec
	opts   Options
	client *http.Client
}

// attempt is what a process needs to finish a login that another one has started.
type attempt struct {
	// Issuer is the identifier of the authorization server.
	Issuer      string
	SendsIssuer bool
	Scopes      []string
	Grant       *tokenGrant
	Revocation  string
	Redirect    string
	// State begins with the name of the upstream and a dot.
	State, Verifier string
	// Browser identifies the session of the browser in which the person has started the login.
	Browser string
	Started time.Time
}

// LoginTime is the time in which a person must log in.
const LoginTime = 10 * time.Minute

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
	l := &Login{spec: spec, opts: opts, client: d.client, attempt: attempt{
		Issuer: e.Issuer, SendsIssuer: e.SendsIssuer, Scopes: e.scopes, Revocation: e.Revocation, Redirect: login.Redirect,
		State: spec.Name + "." + rand.Text(), Verifier: oauth2.GenerateVerifier(), Started: time.Now(),
	}}
	if l.Grant, err = d.identifyClient(ctx, e, login); err != nil {
		return nil, err
	}
	config := oauth2.Config{ClientID: l.Grant.ClientID, Endpoint: oauth2.Endpoint{AuthURL: e.AuthEndpoint}, RedirectURL: l.Redirect, Scopes: e.scopes}
	l.URL = config.AuthCodeURL(l.State, oauth2.S256ChallengeOption(l.Verifier), oauth2.SetAuthURLParam("resource", e.resource))
	return l, nil
}

// Save stores the login, which ResumeLogin continues in any process. It replaces an earlier
// login in progress of the user to the upstream. browser identifies the session of a browser.
func (l *Login) Save(ctx context.Context, browser string) error {
	l.Browser = browser
	text, err := json.Marshal(l.attempt)
	if err != nil {
		return guideway.Errorf(guideway.CodeInternal, "store the login in progress to %s: %w", l.spec.Name, err)
	}
	logins := l.opts.Logins
	box, err := seal.NewBox(ctx, logins.Source, loginPurpose, text, logins.pendingContext(l.spec))
	if err != nil {
		return err
	}
	sealed, err := json.Marshal(box)
	if err != nil {
		return guideway.Errorf(guideway.CodeInternal, "store the login in progress to %s: %w", l.spec.Name, err)
	}
	return logins.writeText(l.spec.Name, logins.pendingEntry(l.spec.Name), string(sealed))
}

// pendingContext returns what the encryption of a login in progress is bound to.
func (l *Logins) pendingContext(spec Spec) []byte {
	text, _ := json.Marshal([]any{"pending", l.User, spec.Name, serverHash(spec)}) // strings always marshal
	return text
}

// ResumeLogin returns the login in progress that a redirect with a state belongs to, once. It
// refuses the state of another user, and another browser than that which has started the login.
func ResumeLogin(ctx context.Context, spec Spec, opts Options, state, browser string) (*Login, error) {
	spec, _, err := opts.Secrets.resolveSpec(spec)
	if err != nil {
		return nil, err
	}
	logins, refused := opts.Logins, guideway.Errorf(guideway.CodeUnauthorized, "the login was refused: this user did not start it in this browser, it has ended, or it is older than %s", LoginTime).
		WithFix("log in again on the page of the upstream %s", spec.Name)
	unlock, err := logins.lock(ctx, spec.Name)
	if err != nil {
		return nil, err
	}
	defer unlock()
	entry := logins.pendingEntry(spec.Name)
	text, err := logins.readText(spec.Name, entry)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, refused
	}
	if err != nil {
		return nil, err
	}
	l, box := &Login{spec: spec, opts: opts}, &seal.Box{}
	if json.Unmarshal([]byte(text), box) != nil {
		return nil, refused
	}
	opened, err := box.Open(ctx, logins.Source, loginPurpose, logins.pendingContext(spec))
	if err != nil || json.Unmarshal(opened, &l.attempt) != nil || !l.OwnsState(state) || l.Browser != browser || time.Since(l.Started) > LoginTime {
		return nil, refused
	}
	if opts.HTTP == nil {
		l.opts.HTTP = http.DefaultTransport
	}
	l.client = newDiscovery(spec, l.opts.HTTP).client
	return l, logins.writeText(spec.Name, entry, "")
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

// Finish exchanges the code of a redirect for tokens and stores them. query are the
// parameters of the redirect. It must be called at most once.
func (l *Login) Finish(ctx context.Context, query url.Values) (*LoginInfo, error) {
	code, err := l.checkRedirect(query)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, tokenTime)
	defer cancel()
	token, err := l.Grant.requestToken(ctx, l.client, nil, url.Values{
		"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {l.Redirect}, "code_verifier": {l.Verifier},
	})
	if err != nil {
		return nil, err
	}
	info := &LoginInfo{Issuer: l.Issuer, Client: l.Grant.ClientID, Scopes: l.Scopes, Since: time.Now()}
	if granted, ok := token.Extra("scope").(string); ok && granted != "" {
		info.Scopes = strings.Fields(granted)
	}
	unlock, err := l.opts.Logins.lock(ctx, l.spec.Name)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := l.opts.Logins.write(ctx, l.spec, info, &loginSecrets{tokenGrant: *l.Grant, Revocation: l.Revocation, Token: token}); err != nil {
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
	case !hasIssuer && l.SendsIssuer:
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
	return subtle.ConstantTimeCompare([]byte(state), []byte(l.State)) == 1
}

// Logout removes the login to a server and asks the authorization server to revoke its
// tokens (RFC 7009). It reports whether there was a login, and whether the tokens were
// revoked.
func Logout(ctx context.Context, spec Spec, opts Options) (had, revoked bool, err error) {
	spec, _, err = opts.Secrets.resolveSpec(spec)
	if err != nil || opts.Logins == nil {
		return false, false, err
	}
	unlock, err := opts.Logins.lock(ctx, spec.Name)
	if err != nil {
		return false, false, err
	}
	defer unlock()
	_, readErr := opts.Logins.readText(spec.Name, opts.Logins.entry(spec.Name))
	had = !errors.Is(readErr, fs.ErrNotExist)
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
