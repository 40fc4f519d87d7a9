package transport

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/guideway-dev/guideway/internal/authn"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Shortcut answers some messages of clients without the SDK, which decodes and
// encodes all that passes. What it does not take goes its usual way.
type Shortcut interface {
	// Take looks at a message, which is not checked yet. For one that it takes
	// it gives the function that answers it and returns when that is done.
	//
	// The session is nil for a request of the modern era over HTTP; the header
	// is nil on stdio. send sends a message to the client on the way of this
	// one: the status is that of HTTP for the answer, which is the last one, and
	// 0 for what comes before it. The text may come in parts, and may be kept.
	Take(ctx context.Context, session *mcp.ServerSession, header http.Header, text []byte,
		send func(status int, text ...[]byte) error) (answer func(context.Context))
}

// userSession is a session of the legacy era over HTTP as the shortcut needs it:
// whose it is, and when the SDK last saw it.
type userSession struct {
	session *mcp.ServerSession
	owner   string // its identity; see authn.Identity
	seen    time.Time
}

// shortcut is the way past the SDK over HTTP.
type shortcut struct {
	to      Shortcut
	server  *mcp.Server
	refresh time.Duration

	mu       sync.Mutex
	sessions map[string]*userSession
}

// serve answers a request if the shortcut takes it. Everything that could be
// wrong about it is left to the SDK to refuse. The body is put back.
func (s *shortcut) serve(w http.ResponseWriter, r *http.Request, maxBody int64) (done bool, err error) {
	if s == nil || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" {
		return false, nil
	}
	var session *mcp.ServerSession
	id := r.Header.Get("Mcp-Session-Id")
	switch modern := r.Header.Get("Mcp-Protocol-Version") == ModernVersion; {
	case modern && id == "" && r.Header.Get("Mcp-Method") == "tools/call":
	case !modern && id != "":
		if session = s.find(r.Context(), id); session == nil {
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
		return false, err
	}
	body := whole.Bytes()
	r.Body = io.NopCloser(bytes.NewReader(body))
	a := &httpAnswer{w: w}
	answer := s.to.Take(r.Context(), session, r.Header, body, a.send)
	if answer == nil {
		return false, nil
	}
	ctx := r.Context()
	if session != nil {
		var done func()
		ctx, done = outliving(ctx)
		defer done()
	}
	answer(ctx)
	if !a.ended {
		w.WriteHeader(http.StatusAccepted) // what has no answer
	}
	return true, nil
}

// find gives the session of an id, if it is this user's. From time to time it
// gives none, so that the SDK sees that the session is in use.
func (s *shortcut) find(ctx context.Context, id string) *mcp.ServerSession {
	who, ok := authn.Identity(ctx)
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

// outliving is the context of a call of the legacy era, where a broken connection
// is no cancellation. That the client's token was revoked is one.
func outliving(ctx context.Context) (context.Context, func()) {
	on := context.WithoutCancel(ctx)
	if authn.TokenLeaseFrom(ctx) == nil {
		return on, func() {}
	}
	on, cancel := context.WithCancelCause(on)
	stop := context.AfterFunc(ctx, func() {
		if cause := context.Cause(ctx); errors.Is(cause, authn.ErrRevoked) {
			cancel(cause)
		}
	})
	return on, func() { stop(); cancel(nil) }
}

// note remembers a session until it ends.
func (s *shortcut) note(session *mcp.ServerSession, owner string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sessions == nil {
		s.sessions = map[string]*userSession{}
	}
	s.sessions[session.ID()] = &userSession{session: session, owner: owner, seen: time.Now()}
}

func (s *shortcut) forget(session *mcp.ServerSession) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, session.ID())
}

var errAnswered = errors.New("the request was answered already")

// httpAnswer is the answer to a request: JSON, or events where something is sent
// before the answer.
type httpAnswer struct {
	w http.ResponseWriter

	mu            sync.Mutex
	events, ended bool
}

func (a *httpAnswer) send(status int, text ...[]byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	last := status != 0
	if a.ended {
		return errAnswered
	}
	a.ended = last
	length := 0
	for _, part := range text {
		length += len(part)
	}
	if last && !a.events {
		a.w.Header().Set("Content-Type", "application/json")
		a.w.Header().Set("Content-Length", strconv.Itoa(length)) // else what is long goes out in chunks
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
