package gateway

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/guideway-dev/guideway/internal/authn"
	"github.com/guideway-dev/guideway/internal/upstream"
	"github.com/guideway-dev/guideway/internal/upstream/wire"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// shortcuts are the calls that pass the SDK by, and what is asked on their way.
// The bytes of arguments and results are not decoded there.
type shortcuts struct {
	mu sync.Mutex
	// calls are those under way, for their cancellation.
	calls map[shortcutID]*underway
	// asked are the questions to clients of the legacy era, by our ids, which
	// nobody can guess.
	asked map[shortcutID]chan *wire.Message
}

// underway is a call that was taken. It can be cancelled before anybody works at
// it: what is read next may be its cancellation.
type underway struct {
	cancel    context.CancelCauseFunc
	cancelled bool
}

type shortcutID struct {
	session *mcp.ServerSession
	id      string
}

// errCancelled is a call that the client has taken back.
var errCancelled = errors.New("the client has cancelled the call")

// Take implements the transport's Shortcut: it takes calls of tools of upstreams
// that are as they should be, the answers to what was asked on their way, and
// nothing else.
func (g *Gateway) Take(ctx context.Context, session *mcp.ServerSession, header http.Header, text []byte, send func(int, ...[]byte) error) func(context.Context) {
	if len(text) > maxShortcut {
		return nil
	}
	m, err := wire.Parse(text)
	if err != nil {
		return nil
	}
	switch {
	case m.IsResponse():
		return g.takeResponse(session, m)
	case m.Method == "notifications/cancelled" && session != nil:
		g.shortcuts.cancel(session, m.Params)
		return nil // the SDK may know the call
	case m.Method != "tools/call" || m.ID == nil || m.Params == nil || bytes.ContainsAny(m.ID, ".eE") && m.ID[0] != '"':
		return nil
	}
	r, t := g.shortcutCall(m.Params)
	if t == nil {
		return nil
	}
	c := g.shortcutClient(ctx, session, header, r.Meta, t)
	if c == nil {
		return nil
	}
	r.Header = header
	g.converses(c, session, send)
	work := g.shortcuts.begin(session, m.ID)
	return func(ctx context.Context) {
		ctx, done := work(ctx)
		defer done()
		result, err := g.Call(ctx, c, r)
		if context.Cause(ctx) == errCancelled && header == nil { //nolint:errorlint // it is the value itself
			return // nobody waits for the answer
		}
		_ = send(statusOf(err), answerTo(m.ID, result, err)...) // the client may be gone
	}
}

// shortcutCall reads the params of a call, and gives no tool where the SDK or the
// gateway's other way has to judge. Hooks may look at the tool: both ways lead to
// Call, which has them stand around it.
func (g *Gateway) shortcutCall(params json.RawMessage) (Request, *tool) {
	var r Request
	var name, responses, state json.RawMessage
	err := wire.Pick(params, wire.Wanted{Key: "name", Value: &name}, wire.Wanted{Key: "arguments", Value: &r.Arguments},
		wire.Wanted{Key: "_meta", Value: &r.Meta}, wire.Wanted{Key: "inputResponses", Value: &responses}, wire.Wanted{Key: "requestState", Value: &state})
	if err != nil || state != nil || responses != nil {
		return Request{}, nil
	}
	if json.Unmarshal(name, &r.Name) != nil || r.Arguments != nil && r.Arguments[0] != '{' {
		return Request{}, nil
	}
	t := g.surface.Load().byName[r.Name]
	if t == nil || t.blocked != "" {
		return Request{}, nil
	}
	return r, t
}

// maxShortcut bounds what is looked at: larger messages are rare, and the limits
// of the way in hold for them.
const maxShortcut = 8 << 20

// statusOf is the status that HTTP wants for an answer.
func statusOf(err error) int {
	var failure *wire.Error
	if errors.As(err, &failure) && (failure.Code == missingCapability || failure.Code == headerMismatch) {
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// answerTo is the answer to a request on one line, in parts.
func answerTo(id, result json.RawMessage, err error) [][]byte {
	var failure *wire.Error
	switch {
	case err == nil:
	case errors.As(err, &failure):
	default:
		failure = &wire.Error{Code: wire.CodeInternal, Message: "the call has failed: " + err.Error()}
	}
	parts := wire.ResponseParts(id, result, failure)
	for i, part := range parts {
		parts[i] = wire.OneLine(part)
	}
	return parts
}

// shortcutClient tells who calls, or gives nil where the SDK has to judge.
func (g *Gateway) shortcutClient(ctx context.Context, session *mcp.ServerSession, header http.Header, meta json.RawMessage, t *tool) *Client {
	principal, _ := authn.PrincipalFrom(ctx)
	c := &Client{Principal: principal, Logs: true, Trace: traceOfHeader(header)}
	c.by(ctx)
	var has map[string]json.RawMessage
	if meta != nil {
		var err error
		if has, err = wire.Members(meta); err != nil {
			return nil
		}
	}
	c.Token = has["progressToken"]
	if c.Token != nil && c.Token[0] != '"' && (c.Token[0] < '0' || c.Token[0] > '9') {
		return nil
	}
	if has[metaVersion] != nil {
		return c.fromMeta(header, has, t)
	}
	if session == nil {
		return nil
	}
	params := session.InitializeParams()
	if params == nil || params.ProtocolVersion >= upstream.ModernVersion {
		return nil
	}
	if header != nil && header.Get("Mcp-Protocol-Version") != params.ProtocolVersion || !accepts(header) {
		return nil
	}
	if params.Capabilities != nil {
		c.Can = canOf(params.Capabilities)
	}
	if params.ClientInfo != nil && c.Principal.Client == "" {
		c.Principal.Client = clip(params.ClientInfo.Name, 64)
	}
	of := g.downstreamOf().sessionOf(session)
	c.Session, c.Level = of.id, of.level
	return c
}

const (
	metaVersion      = "io.modelcontextprotocol/protocolVersion"
	metaClientInfo   = "io.modelcontextprotocol/clientInfo"
	metaCapabilities = "io.modelcontextprotocol/clientCapabilities"
)

// fromMeta reads what a request of the modern era says of its client. The
// headers must say the same, or the SDK refuses the request.
func (c *Client) fromMeta(header http.Header, has map[string]json.RawMessage, t *tool) *Client {
	var version string
	if json.Unmarshal(has[metaVersion], &version) != nil || version != upstream.ModernVersion {
		return nil
	}
	if header != nil && (header.Get("Mcp-Protocol-Version") != version || header.Get("Mcp-Method") != "tools/call" ||
		header.Get("Mcp-Name") != t.name || !accepts(header)) {
		return nil
	}
	capabilities := has[metaCapabilities]
	if capabilities == nil || capabilities[0] != '{' {
		return nil
	}
	declared, err := wire.Members(capabilities, "elicitation", "sampling", "roots")
	if err != nil {
		return nil
	}
	for _, each := range []string{"elicitation", "sampling", "roots"} {
		if value := declared[each]; value != nil && value[0] != '{' {
			return nil
		}
	}
	c.Can = Can{Elicitation: declared["elicitation"], Sampling: declared["sampling"], Roots: declared["roots"]}
	var info struct {
		Name string `json:"name"`
	}
	if has[metaClientInfo] != nil && json.Unmarshal(has[metaClientInfo], &info) != nil {
		return nil
	}
	if c.Principal.Client == "" {
		c.Principal.Client = clip(info.Name, 64)
	}
	if has[metaLevel] != nil && json.Unmarshal(has[metaLevel], &c.Level) != nil {
		return nil
	}
	c.Modern = true
	return c
}

// accepts tells whether a client takes both forms of an answer; on stdio there
// is one.
func accepts(header http.Header) bool {
	if header == nil {
		return true
	}
	accept := strings.Join(header.Values("Accept"), ",")
	return strings.Contains(accept, "application/json") && strings.Contains(accept, "text/event-stream")
}

// levels are those of log messages, the least first.
func levels() []string {
	return []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}
}

// converses has a client told and asked on the way of its call.
func (g *Gateway) converses(c *Client, session *mcp.ServerSession, send func(int, ...[]byte) error) {
	c.Notify = func(_ context.Context, method string, params json.RawMessage) {
		if method == "notifications/message" {
			least := slices.Index(levels(), c.Level)
			if least < 0 || slices.Index(levels(), member1(params, "level")) < least {
				return
			}
		}
		_ = send(0, wire.OneLine(wire.Request(nil, method, params))) // the client may be gone
	}
	if c.Modern {
		return
	}
	c.Ask = func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, *wire.Error) {
		key := shortcutID{session, string(wire.Text("gateway-" + rand.Text()))}
		answer := g.shortcuts.ask(key)
		defer g.shortcuts.forget(key)
		if err := send(0, wire.OneLine(wire.Request(json.RawMessage(key.id), method, params))); err != nil {
			result, failure := askTyped(ctx, session, method, params) // the call was answered in between
			return typedAnswer(result, failure)
		}
		select {
		case m := <-answer:
			return m.Result, m.Err
		case <-ctx.Done():
			return nil, &wire.Error{Code: wire.CodeInternal, Message: "nobody waits for the answer any more"}
		}
	}
}

// takeResponse takes the answer to a question of ours.
func (g *Gateway) takeResponse(session *mcp.ServerSession, m *wire.Message) func(context.Context) {
	g.shortcuts.mu.Lock()
	answer := g.shortcuts.asked[shortcutID{session, string(m.ID)}]
	g.shortcuts.mu.Unlock()
	if answer == nil || session == nil {
		return nil
	}
	return func(context.Context) {
		select {
		case answer <- m:
		default: // it was answered before
		}
	}
}

func (s *shortcuts) ask(key shortcutID) chan *wire.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked == nil {
		s.asked = map[shortcutID]chan *wire.Message{}
	}
	answer := make(chan *wire.Message, 1)
	s.asked[key] = answer
	return answer
}

func (s *shortcuts) forget(key shortcutID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.asked, key)
}

// begin makes a call known for its cancellation, and gives what the work at it
// begins with.
func (s *shortcuts) begin(session *mcp.ServerSession, id json.RawMessage) func(context.Context) (context.Context, func()) {
	if session == nil {
		return func(ctx context.Context) (context.Context, func()) { return ctx, func() {} }
	}
	key, call := shortcutID{session, string(id)}, &underway{}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls == nil {
		s.calls = map[shortcutID]*underway{}
	}
	s.calls[key] = call
	return func(ctx context.Context) (context.Context, func()) {
		ctx, cancel := context.WithCancelCause(ctx)
		s.mu.Lock()
		defer s.mu.Unlock()
		call.cancel = cancel
		if call.cancelled {
			cancel(errCancelled)
		}
		return ctx, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.calls[key] == call {
				delete(s.calls, key)
			}
			cancel(nil)
		}
	}
}

func (s *shortcuts) cancel(session *mcp.ServerSession, params json.RawMessage) {
	if params == nil {
		return
	}
	members, err := wire.Members(params, "requestId")
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	call := s.calls[shortcutID{session, string(members["requestId"])}]
	if call == nil {
		return
	}
	call.cancelled = true
	if call.cancel != nil {
		call.cancel(errCancelled)
	}
}
