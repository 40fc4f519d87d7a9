// Package sso logs people in through an OpenID provider, and accepts the provider's access
// tokens at /mcp.
package sso

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"golang.org/x/oauth2"
)

// Options are the options of New. Issuer, ClientID, PublicURL, UserClaim and RolesOf are
// required.
type Options struct {
	// Issuer is the URL of the provider.
	Issuer string
	// ClientID and Secret are the registration of this server. Secret may be empty.
	ClientID, Secret string
	// Scopes are requested in addition to openid.
	Scopes []string
	// UserClaim names the user: sub, email or preferred_username. RolesClaim has the groups.
	UserClaim, RolesClaim string
	// RolesOf returns the roles of a user with groups.
	RolesOf func(groups []string) []guideway.Role
	// PublicURL is the URL of this server.
	PublicURL string
	// Resource is the audience of access tokens, and ResourceScope the scope that they need.
	Resource, ResourceScope string
	// LocalUser is the user of the token file. The provider must not name a user like this.
	LocalUser string
	// Now is the clock. Nil is the system clock.
	Now func() time.Time
}

// Provider is an OpenID provider. Its metadata is read at the first login or access token.
type Provider struct {
	Options

	client *http.Client
	// lock guards known. It is a channel, so that a caller can give up waiting.
	lock  chan struct{}
	known *metadata
}

// metadata is the discovered provider.
type metadata struct {
	*oidc.Provider

	keys oidc.KeySet
	// answersIssuer reports whether a redirect must name the issuer (RFC 9207).
	answersIssuer bool
}

var (
	_ auth.Identities   = (*Provider)(nil)
	_ auth.AccessTokens = (*Provider)(nil)
)

// New returns a provider. It does no I/O.
func New(o Options) *Provider {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Provider{
		Options: o, lock: make(chan struct{}, 1),
		client: &http.Client{
			Transport: &limiter{now: o.Now, read: map[string]time.Time{}}, Timeout: 10 * time.Second,
			CheckRedirect: func(*http.Request, []*http.Request) error { return errors.New("the provider redirects") },
		},
	}
}

// algorithms are the accepted signatures. A provider cannot select none or a shared secret.
func algorithms() []string {
	return []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.EdDSA}
}

// discover returns the metadata of the provider. After an error, the next call tries again.
func (p *Provider) discover(ctx context.Context) (*metadata, error) {
	select {
	case p.lock <- struct{}{}:
		defer func() { <-p.lock }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if p.known != nil {
		return p.known, nil
	}
	found, err := oidc.NewProvider(oidc.ClientContext(ctx, p.client), p.Issuer)
	var more struct {
		Keys      string `json:"jwks_uri"`
		HasIssuer bool   `json:"authorization_response_iss_parameter_supported"`
	}
	if err == nil {
		err = found.Claims(&more)
	}
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "read the metadata of the identity provider %s: %w", p.Issuer, err).
			WithFix("check identity.issuer, and whether this server reaches the provider")
	}
	// The keys outlive the request that reads the metadata.
	keys := oidc.NewRemoteKeySet(oidc.ClientContext(context.WithoutCancel(ctx), p.client), more.Keys)
	p.known = &metadata{Provider: found, keys: keys, answersIssuer: more.HasIssuer}
	return p.known, nil
}

// verify checks the signature, the issuer, the audience and the times of a token.
func (p *Provider) verify(ctx context.Context, m *metadata, token, audience string) (*oidc.IDToken, claims, error) {
	verifier := oidc.NewVerifier(p.Issuer, m.keys, &oidc.Config{ClientID: audience, SupportedSigningAlgs: algorithms(), Now: p.Now})
	t, err := verifier.Verify(ctx, token)
	if err != nil {
		return nil, nil, err
	}
	var c claims
	err = t.Claims(&c)
	return t, c, err
}

// VerifyAccess implements auth.AccessTokens.
func (p *Provider) VerifyAccess(ctx context.Context, token string) (auth.Person, error) {
	m, err := p.discover(ctx)
	if err != nil {
		return auth.Person{}, err
	}
	t, c, err := p.verify(ctx, m, token, p.Resource)
	if err != nil {
		return auth.Person{}, guideway.Errorf(guideway.CodeUnauthorized, "the access token is invalid: %w", err).
			WithFix("request a new token for the resource %s", p.Resource)
	}
	if p.ResourceScope != "" && !slices.Contains(strings.Fields(strings.Join(append(c.list("scope"), c.list("scp")...), " ")), p.ResourceScope) {
		return auth.Person{}, guideway.Errorf(guideway.CodeForbidden, "the access token does not have the scope %s", p.ResourceScope).
			WithFix("request a token with the scope %s", p.ResourceScope)
	}
	who, err := p.identify(c)
	who.Expires, who.Client = t.Expiry, cmp.Or(c.text("client_id"), c.text("azp"), "oauth")
	return who, err
}

// Audience implements auth.AccessTokens.
func (p *Provider) Audience() (resource, scope, issuer string) {
	return p.Resource, p.ResourceScope, p.Issuer
}

// identify returns the user and the roles of verified claims.
func (p *Provider) identify(c claims) (auth.Person, error) {
	user := c.text(p.UserClaim)
	refused := func(format string, args ...any) (auth.Person, error) {
		return auth.Person{}, guideway.Errorf(guideway.CodeForbidden, format, args...).WithFix("ask the administrator of this server: the settings identity.* name users and their roles")
	}
	if p.UserClaim == "email" {
		user = strings.ToLower(user)
		if verified, _ := c["email_verified"].(bool); !verified {
			return refused("the identity provider has not verified the e-mail address")
		}
	}
	switch {
	case !validUser(user):
		return refused("the identity provider names no valid user in the claim %s", p.UserClaim)
	case user == p.LocalUser:
		return refused("the identity provider names the user %q like the local user of this server", user)
	}
	roles := append([]guideway.Role{}, p.RolesOf(c.list(p.RolesClaim))...) // nil would mean every role
	if len(roles) == 0 {
		_, err := refused("the user %q has no role", user)
		return auth.Person{User: user, Roles: roles}, err
	}
	return auth.Person{User: user, Roles: roles}, nil
}

// validUser reports whether a claim can be the name of a user.
func validUser(text string) bool {
	const most = 200
	return text != "" && len(text) <= most && strings.TrimSpace(text) == text && strings.ToValidUTF8(text, "") == text &&
		!strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c == 0x7f || c == '=' || c == ',' })
}

// claims are the members of a verified token.
type claims map[string]any

func (c claims) text(name string) string {
	text, _ := c[name].(string)
	return text
}

// list returns the texts of a claim, which is a list or one text. A name with dots
// is the claim of exactly that name, else a path.
func (c claims) list(name string) []string {
	value, ok := c[name]
	if before, after, dotted := strings.Cut(name, "."); !ok && dotted {
		inner, _ := c[before].(map[string]any)
		return claims(inner).list(after)
	}
	switch v := value.(type) {
	case string:
		return []string{v}
	case []any:
		var texts []string
		for _, item := range v {
			if text, ok := item.(string); ok {
				texts = append(texts, text)
			}
		}
		return texts
	}
	return nil
}

// config returns the client of the provider.
func (p *Provider) config(m *metadata) *oauth2.Config {
	return &oauth2.Config{
		ClientID: p.ClientID, ClientSecret: p.Secret, Endpoint: m.Endpoint(),
		RedirectURL: strings.TrimSuffix(p.PublicURL, "/") + auth.CallbackPath, Scopes: append([]string{oidc.ScopeOpenID}, p.Scopes...),
	}
}

// limiter bounds the documents of the provider, and reads each one at most every rereadTime,
// so that tokens with unknown keys cannot flood the provider.
type limiter struct {
	now func() time.Time

	mu   sync.Mutex
	read map[string]time.Time
}

const (
	rereadTime  = 5 * time.Second
	maxDocument = 1 << 20
)

// RoundTrip implements http.RoundTripper.
func (l *limiter) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet {
		l.mu.Lock()
		last, now := l.read[r.URL.String()], l.now()
		early := now.Sub(last) < rereadTime
		if !early {
			l.read[r.URL.String()] = now
		}
		l.mu.Unlock()
		if early {
			return nil, fmt.Errorf("%s was read less than %s ago", r.URL.Path, rereadTime)
		}
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err == nil {
		answer.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(answer.Body, maxDocument), answer.Body}
	}
	return answer, err
}
