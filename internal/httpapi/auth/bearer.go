package auth

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net/http"
	"strings"

	"github.com/guideway-dev/guideway"
)

// BearerOptions are the options of NewBearer.
type BearerOptions struct {
	// Token is the one valid token; required.
	Token string
	// User is the user that the token belongs to; required.
	User string
}

// Bearer accepts requests with a valid token in the header Authorization, and adds the
// token's user to the request's context. It never accepts the browser's cookie
// (BrowserSessions); an Authenticator accepts named tokens.
type Bearer struct {
	digest [sha256.Size]byte
	user   string
}

// NewBearer returns an error if the token is malformed or a named token, or if the user is
// missing.
func NewBearer(opts BearerOptions) (*Bearer, error) {
	if !validToken(opts.Token) {
		return nil, guideway.Errorf(guideway.CodeInvalid, "the bearer token of the server is not valid").
			WithFix("use a token of 32 to 512 letters, digits and -._~+/")
	}
	if isNamed(opts.Token) {
		return nil, guideway.Errorf(guideway.CodeInvalid, "a named token cannot be the bearer token of the server").
			WithFix("use a token of 32 to 512 letters, digits and -._~+/ that does not begin with %s", namedPrefix)
	}
	if opts.User == "" {
		return nil, guideway.Errorf(guideway.CodeInvalid, "the bearer token has no user").WithFix("set the user of the token")
	}
	return &Bearer{digest: sha256.Sum256([]byte(opts.Token)), user: opts.User}, nil
}

// checkRequest returns the principal of a request.
func (b *Bearer) checkRequest(r *http.Request) (guideway.Principal, *guideway.Error) {
	refused := func(why string) *guideway.Error {
		return guideway.Errorf(guideway.CodeUnauthorized, "%s", why).
			WithFix("send the token as the header Authorization: Bearer TOKEN; on the computer of this server, guideway doctor shows the path of the token file")
	}
	given := r.Header.Values("Authorization")
	switch {
	case len(given) == 0 && hasQueryToken(r):
		return guideway.Principal{}, refused("a token in the URL is not accepted: URLs end up in logs and histories")
	case len(given) == 0:
		return guideway.Principal{}, refused("the request needs a bearer token")
	case len(given) > 1:
		return guideway.Principal{}, refused(fmt.Sprintf("the request has %d Authorization headers", len(given)))
	}
	token, ok := bearerToken(r)
	if !ok {
		return guideway.Principal{}, refused("the Authorization header does not use the scheme Bearer")
	}
	if isNamed(token) {
		return guideway.Principal{}, refused("the server does not accept named tokens")
	}
	// Digests have equal length, so that the time of the comparison does not depend on the
	// token.
	digest := sha256.Sum256([]byte(token))
	if subtle.ConstantTimeCompare(digest[:], b.digest[:]) != 1 {
		return guideway.Principal{}, refused("the bearer token does not belong to this server")
	}
	return guideway.Principal{User: b.user}, nil
}

// principalOf returns the principal of a named token. The token of a user other than the
// local one has the roles of its scopes.
func (b *Bearer) principalOf(t NamedToken) guideway.Principal {
	p := guideway.Principal{User: t.User, Client: t.Name}
	if t.User == b.user {
		return p
	}
	p.Roles = []guideway.Role{}
	for _, s := range t.Scopes {
		p.Roles = append(p.Roles, s.Role())
	}
	return p
}

// bearerToken returns the token of the Authorization header. ok is false if there is not
// exactly one header or its scheme is not Bearer.
func bearerToken(r *http.Request) (token string, ok bool) {
	given := r.Header.Values("Authorization")
	if len(given) != 1 {
		return "", false
	}
	scheme, token, _ := strings.Cut(given[0], " ")
	return strings.TrimSpace(token), strings.EqualFold(scheme, "Bearer")
}

func hasQueryToken(r *http.Request) bool {
	q := r.URL.Query()
	return q.Has("access_token") || q.Has("token")
}
