package auth

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
)

// Authenticator accepts clients at /mcp: clients with the token of the token file, which
// may use everything, and clients with a named token of ScopeMCP, which may use what the
// token allows.
type Authenticator struct {
	// Bearer is required.
	Bearer *Bearer
	// Tokens may be nil. Named tokens are then refused.
	Tokens *Tokens
	// AccessTokens may be nil. Access tokens of an identity provider are then refused.
	AccessTokens AccessTokens
	// Refused is called for each refused request. It may be nil.
	Refused func(*http.Request, error)
	// Now is the clock. Nil is the system clock.
	Now func() time.Time
}

// ErrRevoked is the cancellation cause of a request after its token was revoked or has
// expired.
var ErrRevoked = errors.New("the token of the client was revoked or has expired")

// TokenLease is the access of a client with a named token, as long as the token is valid.
type TokenLease struct {
	// ID identifies the token.
	ID string
	// Name is the name of the token.
	Name string
	// Allow lists what the client may use.
	Allow Allow
	// Exposure is how upstream tools are exposed to the client. Empty means the default.
	Exposure Exposure

	isValid func() bool
	// isAccess reports whether the token is an access token, which its client renews.
	isAccess bool
}

// IsValid reports whether the token is still valid: not revoked by any process, and not
// expired.
func (h *TokenLease) IsValid() bool { return h.isValid == nil || h.isValid() }

type tokenLeaseKey struct{}

// WithTokenLease returns a context with the lease of a client.
func WithTokenLease(ctx context.Context, h *TokenLease) context.Context {
	return context.WithValue(ctx, tokenLeaseKey{}, h)
}

// TokenLeaseFrom returns the lease of a context. It is nil for a client that may use
// everything.
func TokenLeaseFrom(ctx context.Context) *TokenLease {
	h, _ := ctx.Value(tokenLeaseKey{}).(*TokenLease)
	return h
}

// OpensApprovals reports whether a form in the client of a context opens human approvals: the
// client is on stdio or has the token file, which only the local user has. Another credential
// proves only that the client has it.
func OpensApprovals(ctx context.Context) bool {
	p, _ := PrincipalFrom(ctx)
	return p.Roles == nil && TokenLeaseFrom(ctx) == nil
}

// Identity returns the owner of sessions and questions: a user or, for a client with a
// named token, the user and the token. ok is false if the context has no principal.
func Identity(ctx context.Context) (id string, ok bool) {
	p, ok := PrincipalFrom(ctx)
	if h := TokenLeaseFrom(ctx); h != nil {
		return p.User + "\x00" + h.ID, ok
	}
	return p.User, ok
}

// Handler wraps next. A request without a valid token gets 401 and the header
// WWW-Authenticate. A request in progress ends within tokenCheckInterval after its token was
// revoked: its context is cancelled with ErrRevoked, and its connection sends no answer.
func (d *Authenticator) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, h, err := d.identify(r)
		if err != nil {
			d.refuse(w, r, err)
			return
		}
		if h == nil {
			next.ServeHTTP(w, r.WithContext(ctx))
			return
		}
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer WatchCredential(h.IsValid, func() {
			cancel(ErrRevoked)
			// The answer must not be sent any more.
			_ = http.NewResponseController(w).SetWriteDeadline(time.Unix(1, 0)) // not every connection supports deadlines
		})()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// identify returns the context of a request with its principal and the lease of its token.
// The lease is nil for the token of the token file.
func (d *Authenticator) identify(r *http.Request) (context.Context, *TokenLease, error) {
	secret, given := bearerToken(r)
	switch {
	case given && isNamed(secret) && d.Tokens != nil:
		token, err := d.findToken(secret)
		if err != nil {
			return nil, nil, err
		}
		h := &TokenLease{ID: token.id, Name: token.Name, Exposure: token.Exposure, isValid: func() bool { return d.isSameToken(secret, token.id) }}
		if token.Allow != nil {
			h.Allow = *token.Allow
		}
		return WithTokenLease(WithPrincipal(r.Context(), d.Bearer.principalOf(token)), h), h, nil
	case given && isAccessToken(secret) && d.AccessTokens != nil:
		return d.findAccess(r.Context(), secret)
	}
	p, err := d.Bearer.checkRequest(r)
	if err != nil {
		return nil, nil, err
	}
	return WithPrincipal(r.Context(), p), nil, nil
}

// findToken returns the named token of a client.
func (d *Authenticator) findToken(secret string) (NamedToken, error) {
	token, err := d.Tokens.useToken(secret)
	if err == nil && !token.hasScope(ScopeMCP) {
		err = guideway.Errorf(guideway.CodeUnauthorized, "the named token lacks the scope %s, which /mcp requires", ScopeMCP).
			WithFix("run on the computer of this server: guideway token create NAME --upstream UPSTREAM")
	}
	return token, err
}

// isSameToken reports whether a secret still belongs to the token with an id. It returns
// false on an error.
func (d *Authenticator) isSameToken(secret, id string) bool {
	token, err := d.Tokens.findToken(secret)
	return err == nil && token.id == id && token.hasScope(ScopeMCP)
}

// tokenCheckInterval is how often a token is checked during a request.
const tokenCheckInterval = time.Second

// WatchCredential calls end within tokenCheckInterval after a credential is no longer valid,
// until stop is called. It never calls end after stop has returned.
func WatchCredential(isValid func() bool, end func()) (stop func()) {
	var mu sync.Mutex
	var timer *time.Timer
	stopped := false
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(tokenCheckInterval, func() {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case stopped:
		case isValid():
			timer.Reset(tokenCheckInterval)
		default:
			end()
		}
	})
	return func() {
		mu.Lock()
		defer mu.Unlock()
		stopped = true
		timer.Stop()
	}
}
