package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// FastPath answers some messages of clients without the SDK, which decodes and encodes
// every message.
type FastPath interface {
	// Accept returns the function that answers a message and returns when the answer is
	// sent, or nil to leave the message to the SDK. The message is not validated yet.
	// Accept may retain text.
	//
	// The session is nil for a modern request over HTTP; the header is nil on stdio. send
	// sends a message to the client, whose text may come in parts: the status is the HTTP
	// status of the answer, which is the last message, and 0 for earlier messages. An answer
	// without text ends the request without an answer, after a cancellation.
	Accept(ctx context.Context, session *mcp.ServerSession, header http.Header, text []byte,
		send func(status int, text ...[]byte) error) (answer func(context.Context))
}

// userSession is a legacy session over HTTP with its owner and the time of its last request
// to the SDK.
type userSession struct {
	session *mcp.ServerSession
	owner   string // see auth.Identity
	seen    time.Time
}

// httpFastPath bypasses the SDK over HTTP.
type httpFastPath struct {
	fastPath FastPath
	refresh  time.Duration

	mu       sync.Mutex
	sessions map[string]*userSession
}

// tryServe answers a request if the fast path accepts it. It leaves all validation errors to
// the SDK, and restores the body.
func (s *httpFastPath) tryServe(w http.ResponseWriter, r *http.Request, maxBody int64) (done bool, err error) {
	if s == nil || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" {
		return false, nil
	}
	var session *mcp.ServerSession
	id := r.Header.Get("Mcp-Session-Id")
	switch modern := r.Header.Get("Mcp-Protocol-Version") == ModernVersion; {
	case modern && id == "" && r.Header.Get("Mcp-Method") == "tools/call":
	case !modern && id != "":
		if session = s.findSession(r.Context(), id); session == nil {
			return false, nil
		}
	default:
		return false, nil
	}
	var whole bytes.Buffer
	if r.ContentLength > 0 {
		whole.Grow(int(min(r.ContentLength, maxBody)) + bytes.MinRead)
	}
	if _, err := whole.ReadFrom(http.MaxBytesReader(w, r.Body, maxBody)); err != nil {
		return false, fmt.Errorf("read the body: %w", err)
	}
	body := whole.Bytes()
	r.Body = io.NopCloser(bytes.NewReader(body))
	a := &httpAnswer{w: w}
	answer := s.fastPath.Accept(r.Context(), session, r.Header, body, a.sendMessage)
	if answer == nil {
		return false, nil
	}
	ctx := r.Context()
	if session != nil {
		var done func()
		ctx, done = withoutDisconnect(ctx)
		defer done()
	}
	answer(ctx)
	if !a.done {
		w.WriteHeader(http.StatusAccepted) // the message needs no answer
	}
	return true, nil
}

// findSession returns the session of an id if it belongs to this user. It returns nil
// periodically, so that the SDK sees that the session is in use.
func (s *httpFastPath) findSession(ctx context.Context, id string) *mcp.ServerSession {
	who, ok := auth.Identity(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.sessions[id]
	if u == nil || !ok || u.owner != who {
		return nil
	}
	if now := time.Now(); now.Sub(u.seen) > s.refresh {
		u.seen = now
		return nil
	}
	return u.session
}

// withoutDisconnect returns the context of a legacy call: a broken connection does not
// cancel it, but a revoked token does.
func withoutDisconnect(ctx context.Context) (context.Context, func()) {
	on := context.WithoutCancel(ctx)
	if auth.TokenLeaseFrom(ctx) == nil {
		return on, func() {}
	}
	on, cancel := context.WithCancelCause(on)
	stop := context.AfterFunc(ctx, func() {
		if cause := context.Cause(ctx); errors.Is(cause, auth.ErrRevoked) {
			cancel(cause)
		}
	})
	return on, func() { stop(); cancel(nil) }
}

// addSession records a session until it ends.
func (s *httpFastPath) addSession(session *mcp.ServerSession, owner string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sessions == nil {
		s.sessions = map[string]*userSession{}
	}
	s.sessions[session.ID()] = &userSession{session: session, owner: owner, seen: time.Now()}
}

func (s *httpFastPath) removeSession(session *mcp.ServerSession) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, session.ID())
}

var errAnswered = errors.New("the request was answered already")

// httpAnswer is the answer to a request: JSON, or events if messages precede the answer.
type httpAnswer struct {
	w http.ResponseWriter

	mu           sync.Mutex
	events, done bool
}

func (a *httpAnswer) sendMessage(status int, text ...[]byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	last := status != 0
	if a.done {
		return errAnswered
	}
	a.done = last
	length := 0
	for _, part := range text {
		length += len(part)
	}
	if last && length == 0 {
		if !a.events { // The protocol requires a stream of events, which may end without an answer.
			a.w.Header().Set("Content-Type", "text/event-stream")
			a.w.WriteHeader(status)
		}
		return nil
	}
	if last && !a.events {
		a.w.Header().Set("Content-Type", "application/json")
		a.w.Header().Set("Content-Length", strconv.Itoa(length)) // without it, long answers are chunked
		a.w.WriteHeader(status)
		for _, part := range text {
			if _, err := a.w.Write(part); err != nil {
				return err
			}
		}
		return nil
	}
	if !a.events {
		a.events = true
		a.w.Header().Set("Content-Type", "text/event-stream")
		a.w.Header().Set("Cache-Control", "no-cache, no-transform")
	}
	var frame bytes.Buffer
	frame.Grow(length + 24)
	frame.WriteString("event: message\ndata: ")
	for _, part := range text {
		frame.Write(part)
	}
	frame.WriteString("\n\n")
	if _, err := a.w.Write(frame.Bytes()); err != nil {
		return err
	}
	return http.NewResponseController(a.w).Flush()
}
