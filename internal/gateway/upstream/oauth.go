package upstream

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/config"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

// authorizer adds tokens to the requests to a server. It requests them by client
// credentials, or renews the token of a login. All sessions with a server share one
// authorizer and its token.
type authorizer struct {
	discovery

	base http.RoundTripper
	// logins stores the login of a person; it is not used for client credentials.
	logins *Logins
	// asking is held while a token is requested.
	asking chan struct{}
	// grant requests tokens by client credentials with scopes; nil while the token endpoint is
	// unknown. token is the last token. Only the holder of asking may use them.
	grant  *tokenGrant
	scopes []string
	token  *oauth2.Token
	// by is the hash of the settings.
	by [sha256.Size]byte
	// rereads reports that other processes may end the login without a restart of the upstream.
	// read is the time at which it was read last.
	rereads bool
	read    time.Time
}

var _ http.RoundTripper = (*authorizer)(nil)

// tokenTime is the maximum time to get a token, including the metadata.
const tokenTime = 30 * time.Second

// rereadTime is the time after which the login of a person is read again.
const rereadTime = 2 * time.Second

// newAuthorizer returns the authorizer of a resolved spec.
func newAuthorizer(spec Spec, base http.RoundTripper, logins *Logins) *authorizer {
	a := &authorizer{discovery: newDiscovery(spec, base), base: base, logins: logins, asking: make(chan struct{}, 1), by: credentialsHash(spec)}
	a.rereads = spec.CanLogIn() && logins != nil && (logins.isPerson || logins.Shared != nil)
	if o := a.oauth(); o.TokenURL != "" {
		a.grant, a.scopes = a.grantOf(&endpoint{issuerMetadata: issuerMetadata{TokenEndpoint: o.TokenURL}, resource: o.Resource}), o.Scopes
	}
	return a
}

// credentialsHash changes when a setting for getting tokens changes.
func credentialsHash(spec Spec) [sha256.Size]byte {
	text, _ := json.Marshal(struct { // strings always marshal
		URL   string
		OAuth *config.UpstreamOAuth
	}{spec.URL, spec.OAuth})
	return sha256.Sum256(text)
}

// tokenGrant has what all requests to a token endpoint have in common.
type tokenGrant struct {
	TokenURL     string           `json:"tokenUrl"`
	ClientID     string           `json:"clientId"`
	ClientSecret string           `json:"clientSecret,omitempty"`
	Style        oauth2.AuthStyle `json:"style"`
	Resource     string           `json:"resource,omitempty"`
}

// grantOf returns the grant by client credentials of an endpoint.
func (a *authorizer) grantOf(e *endpoint) *tokenGrant {
	return &tokenGrant{
		TokenURL: e.TokenEndpoint, ClientID: a.oauth().ClientID, ClientSecret: a.oauth().ClientSecret, Style: e.style, Resource: e.resource,
	}
}

// requestToken requests a token with the parameters of a grant type; without them it
// requests a token by client credentials. Package clientcredentials sends any grant type,
// and it can send the resource with all of them.
func (g *tokenGrant) requestToken(ctx context.Context, client *http.Client, scopes []string, params url.Values) (*oauth2.Token, error) {
	config := clientcredentials.Config{
		ClientID: g.ClientID, ClientSecret: g.ClientSecret, TokenURL: g.TokenURL, AuthStyle: g.Style, Scopes: scopes, EndpointParams: url.Values{},
	}
	maps.Copy(config.EndpointParams, params)
	if g.Resource != "" {
		config.EndpointParams.Set("resource", g.Resource)
	}
	token, err := config.Token(context.WithValue(ctx, oauth2.HTTPClient, client))
	switch {
	case err != nil:
		return nil, tokenError(err)
	case token.Type() != "Bearer":
		return nil, guideway.Errorf(guideway.CodeUnauthorized, "the authorization server answered with a token of the type %q", plainChallenge(token.TokenType)).
			WithFix("ask the operator of the server for a bearer token")
	}
	return token, nil
}

// RoundTrip implements http.RoundTripper. A request that the server answers with 401 had no
// effect, so it is sent once more if there is a new token. A request without a token is sent
// twice more, because the token of a login that was found then may have been revoked.
func (a *authorizer) RoundTrip(req *http.Request) (*http.Response, error) {
	token, err := a.validToken(req.Context(), nil, nil)
	if err != nil {
		closeBody(req)
		return nil, err
	}
	resp, err := a.sendWith(req, req.Body, token)
	for last := false; !last; {
		if err != nil || resp.StatusCode != http.StatusUnauthorized || req.Body != nil && req.GetBody == nil {
			return resp, err
		}
		next, err := a.validToken(req.Context(), token, resp)
		if err != nil {
			_ = resp.Body.Close()
			return nil, err
		}
		if next == nil || token != nil && next.AccessToken == token.AccessToken {
			return resp, nil
		}
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 4<<10)) // Reading the body lets the connection be reused.
		_ = resp.Body.Close()
		var body io.ReadCloser
		if req.Body != nil {
			if body, err = req.GetBody(); err != nil {
				return nil, fmt.Errorf("repeat the request: %w", err)
			}
		}
		last, token = token != nil, next
		if resp, err = a.sendWith(req, body, next); err != nil {
			return nil, err
		}
	}
	return resp, nil
}

func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}

func (a *authorizer) sendWith(req *http.Request, body io.ReadCloser, token *oauth2.Token) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Body = body
	if token != nil {
		token.SetAuthHeader(req)
	}
	return a.base.RoundTrip(req)
}

// validToken returns a token that has not expired and is not the refused one. It returns
// nil if there is no login, or if the authorization server is still unknown: a server names
// its authorization server when it refuses a request. The request for a token continues if
// ctx ends, because a lost response would lose the next refresh token, too.
func (a *authorizer) validToken(ctx context.Context, refused *oauth2.Token, refusal *http.Response) (*oauth2.Token, error) {
	select {
	case a.asking <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if a.isKnown(refused, refusal) {
		defer func() { <-a.asking }()
		return a.token, nil
	}
	type answer struct {
		token *oauth2.Token
		err   error
	}
	challenge, answered := challengeOf(refusal), make(chan answer, 1)
	go func() {
		defer func() { <-a.asking }()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tokenTime)
		defer cancel()
		token, err := a.fetchToken(ctx, refused, refusal != nil, challenge)
		if err == nil {
			a.token, a.read = token, time.Now()
		}
		answered <- answer{token, err}
	}()
	select {
	case got := <-answered:
		return got.token, got.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// isKnown reports whether a request can use the token, or none, without another look at the
// login. The caller holds asking.
func (a *authorizer) isKnown(refused *oauth2.Token, refusal *http.Response) bool {
	if a.rereads {
		return refusal == nil && time.Since(a.read) < rereadTime && (a.token == nil || a.token.Valid())
	}
	return a.token.Valid() && a.token != refused
}

// fetchToken gets a token for validToken. challenge is from the refusal of a request, if there
// is one.
func (a *authorizer) fetchToken(ctx context.Context, refused *oauth2.Token, isRefused bool, challenge map[string]string) (*oauth2.Token, error) {
	if a.spec.CanLogIn() {
		return a.logins.validToken(ctx, a.spec, a.client, refused)
	}
	if a.grant == nil {
		if !isRefused && a.oauth().Issuer == "" {
			return nil, nil
		}
		e, err := a.discoverEndpoint(ctx, challenge)
		if err != nil {
			return nil, err
		}
		a.grant, a.scopes = a.grantOf(e), e.scopes
	}
	token, err := a.grant.requestToken(ctx, a.client, a.scopes, nil)
	if err != nil && a.oauth().TokenURL == "" {
		a.grant = nil // the authorization server may have changed
	}
	return token, err
}

// tokenError explains why there is no token, without the URL, which may contain keys.
func tokenError(err error) error {
	var refused *oauth2.RetrieveError
	if !errors.As(err, &refused) {
		return guideway.Errorf(guideway.CodeUnavailable, "get a token: %w", rootCause(err)).
			WithFix("check that the authorization server can be reached, and \"tokenUrl\" in the upstream's oauth, if it is set (--oauth-token-url)")
	}
	said := refused.ErrorCode
	if said == "" && refused.Response != nil {
		said = refused.Response.Status
	}
	if text := plainChallenge(refused.ErrorDescription); text != "" {
		said += " (" + text + ")"
	}
	if refused.Response != nil && refused.Response.StatusCode >= http.StatusInternalServerError {
		return guideway.Errorf(guideway.CodeUnavailable, "the authorization server answered %s", plainChallenge(said)).WithFix("try again later")
	}
	refusal := guideway.Errorf(guideway.CodeUnauthorized, "the authorization server answered %s", plainChallenge(said))
	refusal.Err = refused
	return refusal.WithFix("check the client id, the secret and the scopes of the upstream's oauth")
}

// challengeOf returns the Bearer challenge of a refused request, or nil.
func challengeOf(refusal *http.Response) map[string]string {
	if refusal == nil {
		return nil
	}
	for _, header := range refusal.Header.Values("WWW-Authenticate") {
		if params := bearerParams(header); params != nil {
			return params
		}
	}
	return nil
}

// bearerParams returns the parameters of the Bearer scheme (RFC 9110, 11.6.1) up to the
// first syntax error, or nil if there is no such scheme.
func bearerParams(header string) map[string]string {
	const letters = "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	var found map[string]string
	ours := false
	for rest := header; ; {
		rest = strings.TrimLeft(rest, " \t,")
		word := rest[:len(rest)-len(strings.TrimLeft(rest, letters))]
		if word == "" {
			return found
		}
		rest = strings.TrimLeft(rest[len(word):], " \t")
		value, isParam := strings.CutPrefix(rest, "=")
		if !isParam { // the word is a scheme
			if found != nil {
				return found
			}
			if ours = strings.EqualFold(word, "Bearer"); ours {
				found = map[string]string{}
			}
			continue
		}
		value = strings.TrimLeft(value, " \t")
		if text, quoted := strings.CutPrefix(value, `"`); quoted {
			value, rest = unquote(text)
		} else {
			rest = strings.TrimLeft(value, letters+"/:=?")
			value = value[:len(value)-len(rest)]
		}
		if name := strings.ToLower(word); ours && found[name] == "" {
			found[name] = value
		}
	}
}

// unquote parses a quoted string after its first quote, and returns the rest.
func unquote(text string) (value, rest string) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '"':
			return b.String(), text[i+1:]
		case text[i] == '\\' && i+1 < len(text):
			i++
		}
		b.WriteByte(text[i])
	}
	return b.String(), ""
}

// statusFailure returns the error for a response with an unexpected status.
func (s *Spec) statusFailure(resp *http.Response) error {
	if resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden {
		return s.refusalError(resp)
	}
	return &statusError{status: resp.StatusCode}
}

// LoginRequired is the reason why a server refuses requests until a person has logged in.
type LoginRequired struct{ Err error }

// Error implements error.
func (e *LoginRequired) Error() string { return e.Err.Error() }

// Unwrap returns the error with its code and fix.
func (e *LoginRequired) Unwrap() error { return e.Err }

// refusalError returns the error for status 401 or 403, with the server's challenge.
func (s *Spec) refusalError(resp *http.Response) error {
	said, fix := "", "check the upstream's bearer token, headers or oauth"
	challenge := challengeOf(resp)
	for _, part := range []string{challenge["error"], challenge["error_description"]} {
		if part = plainChallenge(part); part != "" {
			said += ": " + part
		}
	}
	scope := shellSafe(challenge["scope"], "SCOPE")
	switch {
	case challenge["error"] == "insufficient_scope" && scope != "" && s.CanLogIn():
		fix = fmt.Sprintf("log in with the missing scopes: guideway upstream login %s --scope %q", s.Name, scope)
	case challenge["error"] == "insufficient_scope" && scope != "":
		fix = fmt.Sprintf("use a token with the scope %q", plainChallenge(challenge["scope"]))
	case s.CanLogIn() && resp.StatusCode == http.StatusUnauthorized:
		return &LoginRequired{Err: guideway.Errorf(guideway.CodeUnauthorized, "%w%s", &statusError{status: resp.StatusCode}, said).
			WithFix("log in: guideway upstream login %s; or set the upstream's bearer token or headers", s.Name)}
	case s.OAuth != nil && resp.StatusCode == http.StatusUnauthorized:
		fix = `check the scopes and "resource" in the upstream's oauth; a server refuses tokens for another resource`
	}
	return guideway.Errorf(guideway.CodeUnauthorized, "%w%s", &statusError{status: resp.StatusCode}, said).WithFix("%s", fix)
}

// shellSafe returns a server's text for a command line within quotes, or placeholder if the
// text could contain another command.
func shellSafe(text, placeholder string) string {
	const allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 -._~:/?#@&=+,%"
	if len(text) > 200 || strings.Trim(text, allowed) != "" {
		return placeholder
	}
	return text
}

// plainChallenge returns a server's text in a form that is safe in a message.
func plainChallenge(text string) string {
	const longest = 200
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(text, ""))
	if runes := []rune(text); len(runes) > longest {
		text = string(runes[:longest]) + "…"
	}
	return strings.TrimSpace(text)
}
