package authn

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
)

// Door lets clients in at /mcp: those with the token of the token file, who may
// use everything, and those with a named token of ScopeMCP, who may use what it
// allows.
type Door struct {
	// Bearer is required.
	Bearer *Bearer
	// Tokens may be nil; then no named token comes in.
	Tokens *Tokens
}

// ErrRevoked is why a request ends whose token was revoked, or has expired.
var ErrRevoked = errors.New("the token of the client was revoked")

// Holder is a client that came in by a named token.
type Holder struct {
	// ID tells the token from every other one.
	ID string
	// Name is the token's.
	Name string
	// Allow is what the client may use.
	Allow Allow
	// Exposure is how tools of upstreams are offered to it; empty leaves that open.
	Exposure Exposure

	good func() bool
}

// Good tells whether the token is still good: not revoked by any process, and not
// expired.
func (h *Holder) Good() bool { return h.good == nil || h.good() }

type holderKey struct{}

// WithHolder gives a context that says by which token a client came in.
func WithHolder(ctx context.Context, h *Holder) context.Context {
	return context.WithValue(ctx, holderKey{}, h)
}

// HolderFrom gives the token that a client came in by; nil is none, which is a
// client that may use everything.
func HolderFrom(ctx context.Context) *Holder {
	h, _ := ctx.Value(holderKey{}).(*Holder)
	return h
}

// Identity tells apart whose sessions and questions are whose: a user's, and among
// these each named token's own. ok is false if nothing in front has said who calls.
func Identity(ctx context.Context) (id string, ok bool) {
	p, ok := PrincipalFrom(ctx)
	if h := HolderFrom(ctx); h != nil {
		return p.User + "\x00" + h.ID, ok
	}
	return p.User, ok
}

// Handler guards next as Bearer.Handler does. A request under way ends when its
// token is revoked, within goodTime: its context is cancelled with ErrRevoked, and
// its connection takes no answer any more.
func (d *Door) Handler(next http.Handler) http.Handler {
	others := d.Bearer.Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		secret, given := bearerToken(r)
		if !given || !isNamed(secret) || d.Tokens == nil {
			others.ServeHTTP(w, r)
			return
		}
		token, err := d.admit(secret)
		if err != nil {
			w.Header().Set("WWW-Authenticate", Challenge(r))
			refuse(w, statusOf(err), err)
			return
		}
		h := &Holder{ID: token.id, Name: token.Name, Exposure: token.Exposure, good: func() bool { return d.still(secret, token.id) }}
		if token.Allow != nil {
			h.Allow = *token.Allow
		}
		ctx, cancel := context.WithCancelCause(WithHolder(
			WithPrincipal(r.Context(), guideway.Principal{User: token.User, Client: token.Name}), h))
		defer cancel(nil)
		defer watch(h, func() {
			cancel(ErrRevoked)
			// What was asked for is not handed over any more.
			_ = http.NewResponseController(w).SetWriteDeadline(time.Unix(1, 0)) // not every connection has one
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

// admit finds the token of a client.
func (d *Door) admit(secret string) (NamedToken, *guideway.Error) {
	token, err := d.Tokens.find(secret)
	var ours *guideway.Error
	switch {
	case errors.As(err, &ours):
		return token, ours
	case err != nil:
		return token, guideway.Errorf(guideway.CodeUnavailable, "the token cannot be looked up").WithFix("look into the server's log")
	case !token.has(ScopeMCP):
		return token, guideway.Errorf(guideway.CodeUnauthorized, "this named token is not good here: it is not of the scope %s", ScopeMCP).
			WithFix("guideway token create NAME --upstream UPSTREAM, on the machine of this server")
	}
	return token, nil
}

// still tells whether a secret is that of the token that it was. Where nobody
// knows, it is not.
func (d *Door) still(secret, id string) bool {
	token, err := d.Tokens.look(secret)
	return err == nil && token.id == id && token.has(ScopeMCP)
}

// goodTime is how often a token is looked up again while a request of it is under
// way.
const goodTime = time.Second

// watch calls end when a token is no longer good, until stop is called. After stop
// has returned nothing is called any more.
func watch(h *Holder, end func()) (stop func()) {
	var mu sync.Mutex
	var timer *time.Timer
	stopped := false
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(goodTime, func() {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case stopped:
		case h.Good():
			timer.Reset(goodTime)
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
