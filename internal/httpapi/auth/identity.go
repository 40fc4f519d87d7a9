package auth

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
)

// The paths of a login through the identity provider.
const (
	LoginPath    = "/login/identity"
	CallbackPath = LoginPath + "/callback"
	// UpstreamCallbackPath is the page to which the authorization server of an upstream sends
	// the browser. It contains no data.
	UpstreamCallbackPath = "/oauth/upstream/callback"
	// MetadataPath describes /mcp to OAuth clients (RFC 9728). The path of the resource may
	// follow it.
	MetadataPath = "/.well-known/oauth-protected-resource"
)

// Person is a user that the identity provider has identified, with at least one role.
type Person struct {
	User  string
	Roles []guideway.Role
	// Client and Expires belong to an access token.
	Client  string
	Expires time.Time
}

// Identities logs people in through an identity provider.
type Identities interface {
	// BeginLogin returns the page of the provider, and the cookie that binds the login to
	// the browser.
	BeginLogin(r *http.Request) (page string, cookie *http.Cookie, err error)
	// FinishLogin checks the redirect of the provider. The cookie removes that of
	// BeginLogin, also after an error. A user without a role is returned with CodeForbidden.
	FinishLogin(r *http.Request) (who Person, cookie *http.Cookie, err error)
}

// AccessTokens accepts the access tokens that an identity provider issues for /mcp.
type AccessTokens interface {
	// VerifyAccess returns the user of a token. The code of its error is CodeUnauthorized
	// for an invalid token and CodeForbidden for one that is not sufficient.
	VerifyAccess(ctx context.Context, token string) (Person, error)
	// Audience returns the resource, the scope that it requires, and the issuer of tokens.
	Audience() (resource, scope, issuer string)
}

// isAccessToken reports whether a token has the form of a JWT, which no other token has.
func isAccessToken(token string) bool {
	return strings.HasPrefix(token, "eyJ") && strings.Count(token, ".") == 2
}

// findAccess returns the context of a client with an access token: an agent of the user,
// whatever other roles the user has.
func (d *Authenticator) findAccess(ctx context.Context, token string) (context.Context, *TokenLease, error) {
	who, err := d.AccessTokens.VerifyAccess(ctx, token)
	if err != nil {
		return nil, nil, err
	}
	p := guideway.Principal{User: who.User, Client: who.Client, Roles: who.Roles}
	if !p.Has(guideway.RoleOperator) {
		return nil, nil, guideway.Errorf(guideway.CodeForbidden, "the user %q lacks the role %s, which /mcp requires", who.User, guideway.RoleOperator).
			WithFix("ask the administrator of this server")
	}
	p.Roles = []guideway.Role{guideway.RoleOperator}
	h := &TokenLease{ID: "oauth " + who.Client, Name: who.Client, Allow: Allow{All: true}, isAccess: true, isValid: func() bool { return d.now().Before(who.Expires) }}
	return WithTokenLease(WithPrincipal(ctx, p), h), h, nil
}

// now returns the time.
func (d *Authenticator) now() time.Time {
	if d.Now == nil {
		return time.Now()
	}
	return d.Now()
}

// metadataURL returns the address of the metadata of /mcp.
func metadataURL(resource string) string {
	scheme, rest, _ := strings.Cut(resource, "://")
	host, path, _ := strings.Cut(rest, "/")
	if path != "" {
		path = "/" + path
	}
	return scheme + "://" + host + MetadataPath + path
}

// challenge returns the header WWW-Authenticate of a refusal at /mcp.
func (d *Authenticator) challenge(r *http.Request, err error) string {
	text := Challenge(r)
	if d.AccessTokens == nil {
		return text
	}
	resource, scope, _ := d.AccessTokens.Audience()
	if guideway.ErrorCode(err) == guideway.CodeForbidden {
		text = `Bearer realm="guideway", error="insufficient_scope"`
	}
	if scope != "" {
		text += `, scope="` + scope + `"`
	}
	return text + `, resource_metadata="` + metadataURL(resource) + `"`
}

// refuse answers a request at /mcp without a valid credential.
func (d *Authenticator) refuse(w http.ResponseWriter, r *http.Request, err error) {
	var ours *guideway.Error
	if !errors.As(err, &ours) {
		ours = guideway.Errorf(guideway.CodeUnavailable, "cannot check the token").WithFix("see the server's log")
	}
	status := http.StatusServiceUnavailable
	switch ours.Code {
	case guideway.CodeUnauthorized:
		status = http.StatusUnauthorized
	case guideway.CodeForbidden:
		status = http.StatusForbidden
	}
	if d.Refused != nil {
		d.Refused(r, ours)
	}
	if status != http.StatusServiceUnavailable {
		w.Header().Set("WWW-Authenticate", d.challenge(r, err))
	}
	refuseRequest(w, status, ours)
}
