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
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

// authorizer sends requests to a server with tokens that it gets by client
// credentials. All sessions with a server share one, and its token.
type authorizer struct {
	spec Spec
	base http.RoundTripper
	// client reaches who hands out tokens.
	client *http.Client
	// asking is held by the one that asks for a token.
	asking chan struct{}
	// config says where tokens are got; nil is not known yet. token is the last one.
	// Both belong to who holds asking.
	config *clientcredentials.Config
	token  *oauth2.Token
}

var _ http.RoundTripper = (*authorizer)(nil)

// tokenTime bounds the way to a token, metadata included.
const tokenTime = 30 * time.Second

// newAuthorizer makes the authorizer of a resolved spec with OAuth.
func newAuthorizer(spec Spec, base http.RoundTripper) *authorizer {
	a := &authorizer{spec: spec, base: base, asking: make(chan struct{}, 1)}
	a.client = &http.Client{
		Transport: &careful{base: base, named: []string{hostOf(spec.URL), hostOf(spec.OAuth.Issuer), hostOf(spec.OAuth.TokenURL)}},
		Timeout:   tokenTime, CheckRedirect: sameHost,
	}
	if spec.OAuth.TokenURL != "" {
		a.config = a.configOf(&endpoint{url: spec.OAuth.TokenURL, resource: spec.OAuth.Resource})
	}
	return a
}

// credentials change with what tokens are got by.
func credentials(spec Spec) [sha256.Size]byte {
	text, _ := json.Marshal(struct { // texts always marshal
		URL   string
		OAuth *OAuth
	}{spec.URL, spec.OAuth})
	return sha256.Sum256(text)
}

// configOf is how tokens are got at an endpoint.
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

// RoundTrip implements http.RoundTripper. A request that the server answers by 401 was
// not done, for want of a good token: it is sent once more with a new one, if there is
// such.
func (a *authorizer) RoundTrip(req *http.Request) (*http.Response, error) {
	token, err := a.good(req.Context(), nil, nil)
	if err != nil {
		closeBody(req)
		return nil, err
	}
	resp, err := a.send(req, req.Body, token)
	if err != nil || resp.StatusCode != http.StatusUnauthorized || req.Body != nil && req.GetBody == nil {
		return resp, err
	}
	next, err := a.good(req.Context(), token, resp)
	if err != nil {
		_ = resp.Body.Close()
		return nil, err
	}
	if next == nil || token != nil && next.AccessToken == token.AccessToken {
		return resp, nil
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 4<<10)) // so that the connection is used again
	_ = resp.Body.Close()
	var body io.ReadCloser
	if req.Body != nil {
		if body, err = req.GetBody(); err != nil {
			return nil, fmt.Errorf("send the request once more: %w", err)
		}
	}
	return a.send(req, body, next)
}

func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}

func (a *authorizer) send(req *http.Request, body io.ReadCloser, token *oauth2.Token) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Body = body
	if token != nil {
		token.SetAuthHeader(req)
	}
	return a.base.RoundTrip(req)
}

// good gives a token that is not over and not the refused one; nil where it is not
// known who hands out tokens, which a server says when it refuses a request.
func (a *authorizer) good(ctx context.Context, refused *oauth2.Token, refusal *http.Response) (*oauth2.Token, error) {
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
		e, err := a.discover(ctx, challengeOf(refusal))
		if err != nil {
			return nil, err
		}
		a.config = a.configOf(e)
	}
	token, err := a.config.Token(context.WithValue(ctx, oauth2.HTTPClient, a.client))
	if err != nil {
		if a.spec.OAuth.TokenURL == "" {
			a.config = nil // who hands out tokens may be another one by now
		}
		return nil, tokenError(err)
	}
	a.token = token
	return token, nil
}

// tokenError says why there is no token, without the address, which may hold keys.
func tokenError(err error) error {
	var refused *oauth2.RetrieveError
	if !errors.As(err, &refused) {
		return guideway.Errorf(guideway.CodeUnavailable, "get a token: %w", rootCause(err)).
			WithFix("look at the upstream's oauth: is the address of the tokens right?")
	}
	said := refused.ErrorCode
	if said == "" && refused.Response != nil {
		said = refused.Response.Status
	}
	if text := plain(refused.ErrorDescription); text != "" {
		said += " (" + text + ")"
	}
	if refused.Response != nil && refused.Response.StatusCode >= http.StatusInternalServerError {
		return guideway.Errorf(guideway.CodeUnavailable, "the server of tokens answers %s", plain(said)).WithFix("try again later")
	}
	return guideway.Errorf(guideway.CodeUnauthorized, "the server of tokens answers %s", plain(said)).
		WithFix("check the client id, the secret and the scopes of the upstream's oauth")
}

// challengeOf is what a refusal says of the token that it wants; nil is nothing.
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

// bearerParams reads the parameters of the scheme Bearer (RFC 9110, 11.6.1), as far as
// they can be read; nil is that the scheme is not there.
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
		if !isParam { // a scheme
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
			value, rest = unquoted(text)
		} else {
			rest = strings.TrimLeft(value, letters+"/:=?")
			value = value[:len(value)-len(rest)]
		}
		if name := strings.ToLower(word); ours && found[name] == "" {
			found[name] = value
		}
	}
}

// unquoted reads a quoted text behind its first quote, and gives what follows it.
func unquoted(text string) (value, rest string) {
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

// failure is the error for an answer that is no message.
func (s *Spec) failure(resp *http.Response) error {
	if resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden {
		return s.refusal(resp)
	}
	return &statusError{status: resp.StatusCode}
}

// refusal is the error for an answer of 401 or 403, with what the server says of it.
func (s *Spec) refusal(resp *http.Response) error {
	said, fix := "", "check the upstream's bearer token, headers or oauth"
	challenge := challengeOf(resp)
	for _, part := range []string{challenge["error"], challenge["error_description"]} {
		if part = plain(part); part != "" {
			said += ": " + part
		}
	}
	switch {
	case challenge["error"] == "insufficient_scope" && challenge["scope"] != "":
		fix = fmt.Sprintf("the token needs the scope %q", plain(challenge["scope"]))
	case s.OAuth != nil && resp.StatusCode == http.StatusUnauthorized:
		fix = `check the upstream's oauth: the scopes, and "resource", which is what the server calls itself, for tokens of another audience are refused`
	}
	return guideway.Errorf(guideway.CodeUnauthorized, "%w%s", &statusError{status: resp.StatusCode}, said).WithFix("%s", fix)
}

// plain is a text of a server's as it may stand in a message.
func plain(text string) string {
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
