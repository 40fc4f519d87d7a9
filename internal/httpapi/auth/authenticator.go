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

// Identity returns the owner of sessions and questions: a user or, for a client with a
// named token, the user and the token. ok is false if the context has no principal.
func Identity(ctx context.Context) (id string, ok bool) {
	p, ok := PrincipalFrom(ctx)
	if h := TokenLeaseFrom(ctx); h != nil {
		return p.User + "\x00" + h.ID, ok
	}
	return p.User, ok
}

// Handler wraps next as Bearer.Handler does. A request in progress ends within
// tokenCheckInterval after its token was revoked: its context is cancelled with ErrRevoked,
// and its connection sends no answer.
func (d *Authenticator) Handler(next http.Handler) http.Handler {
	others := d.Bearer.Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		secret, given := bearerToken(r)
		if !given || !isNamed(secret) || d.Tokens == nil {
			others.ServeHTTP(w, r)
			return
		}
		token, err := d.findToken(secret)
		if err != nil {
			w.Header().Set("WWW-Authenticate", Challenge(r))
			refuseRequest(w, statusOf(err), err)
			return
		}
		h := &TokenLease{ID: token.id, Name: token.Name, Exposure: token.Exposure, isValid: func() bool { return d.isSameToken(secret, token.id) }}
		if token.Allow != nil {
			h.Allow = *token.Allow
		}
		ctx, cancel := context.WithCancelCause(WithTokenLease(
			WithPrincipal(r.Context(), guideway.Principal{User: token.User, Client: token.Name}), h))
		defer cancel(nil)
		defer WatchCredential(h.IsValid, func() {
			cancel(ErrRevoked)
			// The answer must not be sent any more.
			_ = http.NewResponseController(w).SetWriteDeadline(time.Unix(1, 0)) // not every connection supports deadlines
		})()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

func statusOf(err *guideway.Error) int {
	if err.Code == guideway.CodeUnauthorized {
		return http.StatusUnauthorized
	}
	return http.StatusServiceUnavailable
}

// findToken returns the named token of a client.
func (d *Authenticator) findToken(secret string) (NamedToken, *guideway.Error) {
	token, err := d.Tokens.useToken(secret)
	var ours *guideway.Error
	switch {
	case errors.As(err, &ours):
		return token, ours
	case err != nil:
		return token, guideway.Errorf(guideway.CodeUnavailable, "cannot look up the token").WithFix("see the server's log")
	case !token.hasScope(ScopeMCP):
		return token, guideway.Errorf(guideway.CodeUnauthorized, "the named token lacks the scope %s, which /mcp requires", ScopeMCP).
			WithFix("run on the computer of this server: guideway token create NAME --upstream UPSTREAM")
	}
	return token, nil
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
