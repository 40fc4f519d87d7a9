package upstream

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
	"unicode"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/config"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

// authorizer adds tokens to the requests to a server. It requests them by client
// credentials. All sessions with a server share one authorizer and its token.
type authorizer struct {
	spec Spec
	base http.RoundTripper
	// client connects to the authorization server.
	client *http.Client
	// asking is held while a token is requested.
	asking chan struct{}
	// config holds the credentials and the token endpoint; nil while the endpoint is
	// unknown. token is the last token. Only the holder of asking may use config and token.
	config *clientcredentials.Config
	token  *oauth2.Token
}

var _ http.RoundTripper = (*authorizer)(nil)

// tokenTime is the maximum time to get a token, including the metadata.
const tokenTime = 30 * time.Second

// newAuthorizer returns the authorizer of a resolved spec with OAuth.
func newAuthorizer(spec Spec, base http.RoundTripper) *authorizer {
	a := &authorizer{spec: spec, base: base, asking: make(chan struct{}, 1)}
	a.client = &http.Client{
		Transport: &guardedTransport{base: base, named: []string{hostOf(spec.URL), hostOf(spec.OAuth.Issuer), hostOf(spec.OAuth.TokenURL)}},
		Timeout:   tokenTime, CheckRedirect: sameHost,
	}
	if spec.OAuth.TokenURL != "" {
		a.config = a.configOf(&endpoint{url: spec.OAuth.TokenURL, resource: spec.OAuth.Resource})
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

// configOf returns the client credentials config for an endpoint.
func (a *authorizer) configOf(e *endpoint) *clientcredentials.Config {
	o := a.spec.OAuth
	config := &clientcredentials.Config{
		ClientID: o.ClientID, ClientSecret: o.ClientSecret, TokenURL: e.url, Scopes: o.Scopes, AuthStyle: e.style,
	}
	if len(config.Scopes) == 0 {
		config.Scopes = e.scopes
	}
	if e.resource != "" {
		config.EndpointParams = map[string][]string{"resource": {e.resource}}
	}
	return config
}

// RoundTrip implements http.RoundTripper. A request that the server answers with 401 had no
// effect, so it is sent once more if there is a new token.
func (a *authorizer) RoundTrip(req *http.Request) (*http.Response, error) {
	token, err := a.validToken(req.Context(), nil, nil)
	if err != nil {
		closeBody(req)
		return nil, err
	}
	resp, err := a.sendWith(req, req.Body, token)
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
	return a.sendWith(req, body, next)
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
// nil if the authorization server is still unknown: a server names its authorization server
// when it refuses a request.
func (a *authorizer) validToken(ctx context.Context, refused *oauth2.Token, refusal *http.Response) (*oauth2.Token, error) {
	select {
	case a.asking <- struct{}{}:
		defer func() { <-a.asking }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if a.token.Valid() && a.token != refused {
		return a.token, nil
	}
	ctx, cancel := context.WithTimeout(ctx, tokenTime)
	defer cancel()
	if a.config == nil {
		if refusal == nil && a.spec.OAuth.Issuer == "" {
			return nil, nil
		}
		e, err := a.discoverEndpoint(ctx, challengeOf(refusal))
		if err != nil {
			return nil, err
		}
		a.config = a.configOf(e)
	}
	token, err := a.config.Token(context.WithValue(ctx, oauth2.HTTPClient, a.client))
	if err != nil {
		if a.spec.OAuth.TokenURL == "" {
			a.config = nil // the authorization server may have changed
		}
		return nil, tokenError(err)
	}
	a.token = token
	return token, nil
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
	return guideway.Errorf(guideway.CodeUnauthorized, "the authorization server answered %s", plainChallenge(said)).
		WithFix("check the client id, the secret and the scopes of the upstream's oauth")
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

// refusalError returns the error for status 401 or 403, with the server's challenge.
func (s *Spec) refusalError(resp *http.Response) error {
	said, fix := "", "check the upstream's bearer token, headers or oauth"
	challenge := challengeOf(resp)
	for _, part := range []string{challenge["error"], challenge["error_description"]} {
		if part = plainChallenge(part); part != "" {
			said += ": " + part
		}
	}
	switch {
	case challenge["error"] == "insufficient_scope" && challenge["scope"] != "":
		fix = fmt.Sprintf("use a token with the scope %q", plainChallenge(challenge["scope"]))
	case s.OAuth != nil && resp.StatusCode == http.StatusUnauthorized:
		fix = `check the scopes and "resource" in the upstream's oauth; the server refuses tokens for another resource`
	}
	return guideway.Errorf(guideway.CodeUnauthorized, "%w%s", &statusError{status: resp.StatusCode}, said).WithFix("%s", fix)
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
