package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
)

// Asker answers the requests of a server: elicitation, sampling, roots. Its error is sent
// to the server.
type Asker func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, *jsonrpc.Error)

// sessionOptions configure a session.
type sessionOptions struct {
	// capabilities are the capabilities for a legacy server; a JSON object.
	capabilities json.RawMessage
	// ask answers requests that belong to no known call.
	ask Asker
	// notify gets notifications that belong to no call. It must not block.
	notify func(method string, params json.RawMessage)
	// ended is called once, when the session ends or is closed.
	ended  func(err error)
	logger *slog.Logger
	spec   Spec
	// user is the person whose login the session uses.
	user   string
	client Implementation
}

// Implementation is the name and version of a program.
type Implementation struct {
	Name    string `json:"name"`
	Title   string `json:"title,omitempty"`
	Version string `json:"version"`
}

// Session is one connection to a server, after the handshake.
type Session struct {
	opts sessionOptions
	conn conn
	// info describes the server.
	info Info

	// client is the name and version of this client.
	client json.RawMessage

	nextID   atomic.Int64
	asking   chan struct{} // asking limits the number of open questions.
	replying chan struct{} // replying limits the number of replies that the server has not read.

	mu      sync.Mutex
	calls   map[string]*pending
	over    error // over is the reason why the session has ended.
	endOnce sync.Once
	gone    chan struct{} // gone is closed when the session has ended.
}

var _ receiver = (*Session)(nil)

const (
	// openQuestions is the maximum number of concurrent questions in a session.
	openQuestions = 64
	// openReplies is the maximum number of other waiting messages to a server, which may
	// stop reading them.
	openReplies = 64
)

func newSession(opts sessionOptions) *Session {
	client, _ := json.Marshal(opts.client) // strings always marshal
	return &Session{
		opts: opts, client: client, calls: map[string]*pending{}, gone: make(chan struct{}),
		asking: make(chan struct{}, openQuestions), replying: make(chan struct{}, openReplies),
	}
}

// Info returns the server's description from the handshake.
func (s *Session) Info() Info { return s.info }

// Modern reports whether the session uses the modern protocol.
func (s *Session) Modern() bool { return s.info.Version >= ModernVersion }

// Done returns a channel that is closed when the session has ended.
func (s *Session) Done() <-chan struct{} { return s.gone }

// Close closes the session and releases its resources.
func (s *Session) Close() {
	if s.conn != nil {
		s.conn.close()
	}
	s.ended(errors.New("the session was closed"))
}

// Call is one call to a server.
type Call struct {
	// Method is the MCP method, such as "tools/call"; Name is the name of the tool, prompt
	// or resource, for servers that require it as a header.
	Method, Name string
	// Members are the params except _meta; Meta are the members of _meta.
	Members, Meta []jsonrpc.Member
	// Capabilities are the caller's capabilities, an object. A modern call declares them.
	Capabilities json.RawMessage
	// Headers are added over HTTP in the modern protocol.
	Headers map[string]string
	// Trace holds headers that are added over HTTP in every protocol version.
	Trace map[string]string
	// Notify, if set, gets the notifications of the call, such as progress, in order before
	// Do returns.
	Notify func(method string, params json.RawMessage)
	// Progress reports whether the call requests progress. A server needs a tenth more time
	// for a small call that does.
	Progress bool
	// Logs reports whether the call requests log messages, in the modern protocol.
	Logs bool
	// Ask, if set, answers the server's requests during this call.
	Ask Asker
	// Endless disables the timeout.
	Endless bool
}

// Do sends a call and returns its result, an object. It sends the call at most once. An
// error of type *jsonrpc.Error is the server's answer. After a *GoneError the call was not
// carried out. For any other error there is no answer, and it is unknown whether the call
// was carried out.
func (s *Session) Do(ctx context.Context, c Call) (json.RawMessage, error) {
	id := strconv.FormatInt(s.nextID.Add(1), 10)
	p := newPending(c)
	if err := s.register(id, p); err != nil {
		return nil, err
	}
	defer s.unregister(id)
	end := s.dispatchCall(ctx, outgoing{call: id, method: c.Method, name: c.Name, headers: c.Headers, trace: c.Trace}, s.paramsOf(id, c), p)
	defer end()
	answer, err := s.awaitAnswer(ctx, c, p)
	if err != nil {
		s.cancelCall(id, err)
		if errors.Is(err, errSessionLost) || c.Method != "ping" && s.sessionForgotten(ctx, err) {
			s.ended(errSessionLost)
			return nil, &GoneError{Reason: guideway.Errorf(guideway.CodeUnavailable, "%w and did not accept the call", errSessionLost).
				WithFix("call again to start a new session")}
		}
		return nil, err
	}
	if answer.Err != nil {
		return nil, answer.Err
	}
	return answer.Result, nil
}

// dispatchCall sends a call in the background. If sending fails, p gets the error; end
// cancels the sending.
func (s *Session) dispatchCall(ctx context.Context, m outgoing, params []jsonrpc.Member, p *pending) (end func()) {
	m.text = jsonrpc.Request(json.RawMessage(m.call), m.method, jsonrpc.Object(params...))
	if local, ok := s.conn.(*process); ok {
		return local.post(m.text, p.fail)
	}
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		err := s.conn.send(ctx, m)
		if _, apart := s.conn.(*httpConn); apart && err == nil {
			err = errUnanswered // fail has no effect if the answer arrived before.
		}
		p.fail(err)
	}()
	return cancel
}

// sessionForgotten reports whether a server that answered 400 has lost the session. It
// should answer 404, but many servers do not. A ping distinguishes a lost session from a
// bad request, which must not fail the other calls of the session.
func (s *Session) sessionForgotten(ctx context.Context, err error) bool {
	w, overHTTP := s.conn.(*httpConn)
	if status := (*statusError)(nil); !overHTTP || !errors.As(err, &status) || status.status != http.StatusBadRequest || !w.inSession() {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, pingTime)
	defer cancel()
	_, err = s.Do(ctx, Call{Method: "ping", Endless: true})
	status := (*statusError)(nil)
	return errors.Is(err, errSessionLost) || errors.As(err, &status) && status.status == http.StatusBadRequest
}

// register registers a call, so that its answer can be assigned.
func (s *Session) register(id string, p *pending) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over != nil {
		return &GoneError{Reason: fmt.Errorf("the call was not sent, because the session with the server had ended: %w", s.over)}
	}
	s.calls[id] = p
	return nil
}

func (s *Session) unregister(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.calls, id)
}

// GoneError is the error of a call that was not carried out: the server could not be
// reached, the session had ended before, or the server had lost the session and did not
// accept the call.
type GoneError struct{ Reason error }

// Error implements error.
func (e *GoneError) Error() string { return e.Reason.Error() }

// Unwrap returns the reason.
func (e *GoneError) Unwrap() error { return e.Reason }

// paramsOf returns the params of a call.
func (s *Session) paramsOf(id string, c Call) []jsonrpc.Member {
	var meta []jsonrpc.Member
	if c.Progress {
		meta = append(meta, jsonrpc.Member{Key: "progressToken", Value: json.RawMessage(id)})
	}
	if s.Modern() {
		meta = append(meta, s.modernMeta(s.info.Version, c.Capabilities)...)
		if s.opts.spec.Kind() != TransportStdio {
			meta = append(meta, s.clientInfo())
		}
	}
	if meta = append(meta, c.Meta...); len(meta) == 0 {
		return c.Members
	}
	return append(c.Members[:len(c.Members):len(c.Members)], jsonrpc.Member{Key: "_meta", Value: jsonrpc.Object(meta...)})
}

// The keys that every modern message has in its _meta.
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
		{Key: metaCapabilities, Value: capabilities},
	}
}

// clientInfo identifies this client. On stdio only server/discover contains it: a process has
// one client, and the server needs a sixth of its time for a call to decode the member.
func (s *Session) clientInfo() jsonrpc.Member {
	return jsonrpc.Member{Key: metaClientInfo, Value: s.client}
}

const (
	defaultTimeout = time.Minute
	// silentTimeout replaces defaultTimeout for calls that do not request progress: a server
	// cannot show that it works on them.
	silentTimeout  = 5 * time.Minute
	defaultMaxTime = time.Hour
)

// NoAnswer is the error of a call that was not answered, or of a server that did not start.
type NoAnswer struct {
	// Late reports a timeout; otherwise the server was unreachable, exited, or cut off its
	// answer.
	Late bool
	Err  error
}

// Error implements error.
func (e *NoAnswer) Error() string { return e.Err.Error() }

// Unwrap returns the error with its code.
func (e *NoAnswer) Unwrap() error { return e.Err }

// errTimeout returns the error of a call that is not answered in time.
func errTimeout(limit time.Duration, what, setting string) error {
	return &NoAnswer{Late: true, Err: guideway.Errorf(guideway.CodeUnavailable, "the server did not answer within %s%s; it is unknown whether the call was carried out", limit, what).
		WithFix("check at the server whether the call was carried out, before you repeat it; for longer calls, increase %q of the upstream", setting)}
}

func (s *Session) endReason() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	fix := "check at the server whether the call was carried out, before you repeat it"
	if spec := &s.opts.spec; spec.Kind() == TransportStdio {
		fix += "; guideway upstream logs " + spec.Name + " shows the server's error output"
	}
	return &NoAnswer{Err: guideway.Errorf(guideway.CodeUnavailable, "the session with the server ended during the call, and it is unknown whether the call was carried out: %w", s.over).
		WithFix("%s", fix)}
}

// cancelCall cancels a call at the server.
func (s *Session) cancelCall(id string, why error) {
	s.mu.Lock()
	over := s.over != nil
	s.mu.Unlock()
	if over || s.Modern() && s.opts.spec.Kind() == TransportHTTP { // closing the request cancels the call
		return
	}
	reason := "the caller cancelled the call"
	if guideway.ErrorCode(why) == guideway.CodeUnavailable {
		reason = "the call took too long, or its answer was lost"
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
