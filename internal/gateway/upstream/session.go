package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
)

// Asker answers what a server asks of us: elicitation, sampling, roots. The
// error is what the server is told.
type Asker func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, *jsonrpc.Error)

// sessionOptions are what a session is made with.
type sessionOptions struct {
	// capabilities are those that a server of the legacy era is told; a JSON
	// object.
	capabilities json.RawMessage
	// ask answers questions that belong to no call that we know of.
	ask Asker
	// notify gets notifications that belong to no call. It must not block.
	notify func(method string, params json.RawMessage)
	// ended is called once, when the session has ended by itself or was closed.
	ended  func(err error)
	logger *slog.Logger
	spec   Spec
	client Implementation
}

// Implementation is what a program calls itself.
type Implementation struct {
	Name    string `json:"name"`
	Title   string `json:"title,omitempty"`
	Version string `json:"version"`
}

// Session is one connection to a server, after the handshake.
type Session struct {
	opts sessionOptions
	conn conn
	// Info is what the server has said of itself.
	info Info

	// client is what we call ourselves.
	client json.RawMessage

	nextID   atomic.Int64
	asking   chan struct{} // bounds the questions that are open at once
	replying chan struct{} // bounds the replies that wait for the server to read

	mu      sync.Mutex
	calls   map[string]*pending
	over    error // why the session has ended
	endOnce sync.Once
	gone    chan struct{} // closed at the end
}

var _ receiver = (*Session)(nil)

const (
	// openQuestions bounds what one session may ask at once.
	openQuestions = 64
	// openReplies bounds what we have to say besides, to a server that may not read.
	openReplies = 64
)

func newSession(opts sessionOptions) *Session {
	client, _ := json.Marshal(opts.client) // texts always marshal
	return &Session{
		opts: opts, client: client, calls: map[string]*pending{}, gone: make(chan struct{}),
		asking: make(chan struct{}, openQuestions), replying: make(chan struct{}, openReplies),
	}
}

// Info tells what the server has said of itself.
func (s *Session) Info() Info { return s.info }

// Modern tells whether the session is of the modern era.
func (s *Session) Modern() bool { return s.info.Version >= ModernVersion }

// Done is closed when the session has ended.
func (s *Session) Done() <-chan struct{} { return s.gone }

// Close ends the session and what was started for it.
func (s *Session) Close() {
	if s.conn != nil {
		s.conn.close()
	}
	s.ended(errors.New("the session was closed"))
}

// Call is one call to a server.
type Call struct {
	// Method is such as "tools/call"; Name is the tool's, prompt's or
	// resource's, for servers that want it in a header too.
	Method, Name string
	// Members are the params but for _meta; Meta are the members of that.
	Members, Meta []jsonrpc.Member
	// Capabilities are what the caller can be asked for, an object; for the
	// modern era, where every call says so.
	Capabilities json.RawMessage
	// Headers go along over HTTP, in the modern era.
	Headers map[string]string
	// Trace are headers that go along over HTTP in both eras.
	Trace map[string]string
	// Notify, if set, gets the notifications that belong to the call, progress
	// among them, one after the other before Do returns.
	Notify func(method string, params json.RawMessage)
	// Logs says that the call has asked for log messages, in the modern era.
	Logs bool
	// Ask, if set, answers what the server asks on the way of this call.
	Ask Asker
	// Endless is a call without a time limit.
	Endless bool
}

// Do sends a call and gives its result, an object. It is sent once, whatever
// happens; an error that is a *jsonrpc.Error is the server's answer, any other one
// says that there is none, so that nobody knows whether the call was done.
func (s *Session) Do(ctx context.Context, c Call) (json.RawMessage, error) {
	id := strconv.FormatInt(s.nextID.Add(1), 10)
	p := newPending(c)
	if err := s.register(id, p); err != nil {
		return nil, err
	}
	defer s.forget(id)
	end := s.dispatch(ctx, outgoing{call: id, method: c.Method, name: c.Name, headers: c.Headers, trace: c.Trace}, s.params(id, c), p)
	defer end()
	answer, err := s.await(ctx, c, p)
	if err != nil {
		s.abandon(id, err)
		if errors.Is(err, errSessionLost) || c.Method != "ping" && s.forgotten(ctx, err) {
			s.ended(errSessionLost)
			return nil, &GoneError{Reason: guideway.Errorf(guideway.CodeUnavailable, "%w and not taken the call", errSessionLost).
				WithFix("call again: a new session is begun")}
		}
		return nil, err
	}
	if answer.Err != nil {
		return nil, answer.Err
	}
	return answer.Result, nil
}

// dispatch sends a call with params. What comes of it goes to the call that waits; end
// is called when that does not wait any more.
func (s *Session) dispatch(ctx context.Context, m outgoing, params []jsonrpc.Member, p *pending) (end func()) {
	m.text = jsonrpc.Request(json.RawMessage(m.call), m.method, jsonrpc.Object(params...))
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		err := s.conn.send(ctx, m)
		if _, apart := s.conn.(*web); apart && err == nil {
			err = errUnanswered // unless the answer is there already
		}
		p.fail(err)
	}()
	return cancel
}

// forgotten tells whether a server that has answered 400 has lost our session, which
// it should say by 404 and many say so. The other calls of the session do not suffer
// from one that is only bad: a ping tells which it is.
func (s *Session) forgotten(ctx context.Context, err error) bool {
	w, overHTTP := s.conn.(*web)
	if status := (*statusError)(nil); !overHTTP || !errors.As(err, &status) || status.status != http.StatusBadRequest || !w.inSession() {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, pingTime)
	defer cancel()
	_, err = s.Do(ctx, Call{Method: "ping", Endless: true})
	status := (*statusError)(nil)
	return errors.Is(err, errSessionLost) || errors.As(err, &status) && status.status == http.StatusBadRequest
}

// register makes a call known, so that its answer finds it.
func (s *Session) register(id string, p *pending) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over != nil {
		return &GoneError{Reason: s.over}
	}
	s.calls[id] = p
	return nil
}

func (s *Session) forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.calls, id)
}

// GoneError is a call that was not sent, because the session had ended before.
type GoneError struct{ Reason error }

// Error implements error.
func (e *GoneError) Error() string { return "the server is gone: " + e.Reason.Error() }

// Unwrap gives the reason.
func (e *GoneError) Unwrap() error { return e.Reason }

// params are the members of the params of a call.
func (s *Session) params(id string, c Call) []jsonrpc.Member {
	var meta []jsonrpc.Member
	if c.Notify != nil {
		meta = append(meta, jsonrpc.Member{Key: "progressToken", Value: json.RawMessage(id)})
	}
	if s.Modern() {
		meta = append(meta, s.modernMeta(s.info.Version, c.Capabilities)...)
	}
	if meta = append(meta, c.Meta...); len(meta) == 0 {
		return c.Members
	}
	return append(c.Members[:len(c.Members):len(c.Members)], jsonrpc.Member{Key: "_meta", Value: jsonrpc.Object(meta...)})
}

// The keys that every message of the modern era has in its _meta.
const (
	metaVersion      = "io.modelcontextprotocol/protocolVersion"
	metaClientInfo   = "io.modelcontextprotocol/clientInfo"
	metaCapabilities = "io.modelcontextprotocol/clientCapabilities"
)

func (s *Session) modernMeta(version string, capabilities json.RawMessage) []jsonrpc.Member {
	if capabilities == nil {
		capabilities = json.RawMessage(`{}`)
	}
	return []jsonrpc.Member{
		{Key: metaVersion, Value: jsonrpc.Text(version)},
		{Key: metaClientInfo, Value: s.client},
		{Key: metaCapabilities, Value: capabilities},
	}
}

const (
	defaultTimeout = time.Minute
	defaultMaxTime = time.Hour
)

// NoAnswer is the error of a call that the server has not answered.
type NoAnswer struct {
	// Late says that the time was over; else the server could not be reached, or
	// went away.
	Late bool
	Err  error
}

// Error implements error.
func (e *NoAnswer) Error() string { return e.Err.Error() }

// Unwrap gives the error with its code.
func (e *NoAnswer) Unwrap() error { return e.Err }

// errTimeout is a server that does not answer in time.
func errTimeout(limit time.Duration, what, setting string) error {
	return &NoAnswer{Late: true, Err: guideway.Errorf(guideway.CodeUnavailable, "the server has not answered within %s%s; whether it has done the call is not known", limit, what).
		WithFix("give the upstream a longer %s, or look at its log", setting)}
}

func (s *Session) reason() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &NoAnswer{Err: guideway.Errorf(guideway.CodeUnavailable, "the server has gone during the call, and whether it has done it is not known: %w", s.over).
		WithFix("look at the upstream's log")}
}

// abandon tells the server that nobody waits for the answer.
func (s *Session) abandon(id string, why error) {
	s.mu.Lock()
	over := s.over != nil
	s.mu.Unlock()
	if over || s.Modern() && s.opts.spec.Kind() == TransportHTTP { // there the end of the request says it
		return
	}
	reason := "the caller has cancelled it"
	if guideway.ErrorCode(why) == guideway.CodeUnavailable {
		reason = "it took too long"
	}
	params := jsonrpc.Object(jsonrpc.Member{Key: "requestId", Value: json.RawMessage(id)}, jsonrpc.Member{Key: "reason", Value: jsonrpc.Text(reason)})
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = s.conn.send(ctx, outgoing{text: jsonrpc.Request(nil, "notifications/cancelled", params), method: "notifications/cancelled"})
	}()
}

// Notify sends a notification.
func (s *Session) Notify(ctx context.Context, method string, params json.RawMessage) error {
	return s.conn.send(ctx, outgoing{text: jsonrpc.Request(nil, method, params), method: method})
}
