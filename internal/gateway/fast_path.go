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

	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
	"github.com/guideway-dev/guideway/internal/gateway/upstream"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// fastCalls holds the calls that bypass the SDK, and their open questions. The fast path
// does not decode arguments or results.
type fastCalls struct {
	mu sync.Mutex
	// calls holds the calls in progress, so that they can be cancelled.
	calls map[fastCallID]*fastCall
	// asked maps unguessable IDs to the open questions to legacy clients.
	asked map[fastCallID]chan *jsonrpc.Message
}

// fastCall is an accepted call. It can be cancelled before its work starts: the next
// message may be its cancellation.
type fastCall struct {
	cancel    context.CancelCauseFunc
	cancelled bool
}

type fastCallID struct {
	session *mcp.ServerSession
	id      string
}

// errCancelled is the cancellation cause of a call that the client has cancelled.
var errCancelled = errors.New("the client cancelled the call")

// Accept implements the transport's FastPath. It accepts calls of upstream tools that
// clients see, and answers to questions of the fast path. It leaves all other messages to
// the SDK.
func (g *Gateway) Accept(ctx context.Context, session *mcp.ServerSession, header http.Header, text []byte, send func(int, ...[]byte) error) func(context.Context) {
	if len(text) > maxFastCall {
		return nil
	}
	m, err := jsonrpc.Parse(text)
	if err != nil {
		return nil
	}
	switch {
	case m.IsResponse():
		return g.takeResponse(session, m)
	case m.Method == "notifications/cancelled" && session != nil:
		g.fastCalls.cancelCall(session, m.Params)
		return nil // The SDK gets the cancellation too, because it may have received the call.
	case m.Method != "tools/call" || m.ID == nil || m.Params == nil || bytes.ContainsAny(m.ID, ".eE") && m.ID[0] != '"':
		return nil
	}
	r, ok := parseFastCall(m.Params)
	if !ok {
		return nil
	}
	c := g.fastClient(ctx, session, header, r)
	if c == nil {
		return nil
	}
	if t := g.surfaceOf(c).byName[r.Name]; t == nil || t.blocked != "" {
		return nil
	}
	r.Header = header
	g.connectFast(c, session, send)
	work := g.fastCalls.addCall(session, m.ID)
	return func(ctx context.Context) {
		ctx, done := work(ctx)
		defer done()
		result, err := g.Call(ctx, c, r)
		if context.Cause(ctx) == errCancelled { //nolint:errorlint // Cause returns the value itself
			if header != nil { // Over HTTP, the request ends without an answer.
				_ = send(http.StatusOK)
			}
			return
		}
		_ = send(statusOf(err), answerTo(m.ID, result, err)...) // The client may have disconnected.
	}
}

// parseFastCall parses the params of a call. It returns false if the SDK must handle the
// call. Hooks may apply to the tool: both paths lead to Call, which runs them.
func parseFastCall(params json.RawMessage) (Request, bool) {
	var r Request
	var name, responses, state json.RawMessage
	err := jsonrpc.Extract(params, jsonrpc.Field{Key: "name", Value: &name}, jsonrpc.Field{Key: "arguments", Value: &r.Arguments},
		jsonrpc.Field{Key: "_meta", Value: &r.Meta}, jsonrpc.Field{Key: "inputResponses", Value: &responses}, jsonrpc.Field{Key: "requestState", Value: &state})
	if err != nil || state != nil || responses != nil || json.Unmarshal(name, &r.Name) != nil {
		return Request{}, false
	}
	return r, r.Arguments == nil || r.Arguments[0] == '{'
}

// maxFastCall is the maximum size of a message on the fast path. Larger messages are rare,
// and the transport's limits apply to them.
const maxFastCall = 8 << 20

// statusOf returns the HTTP status of an answer.
func statusOf(err error) int {
	var failure *jsonrpc.Error
	if errors.As(err, &failure) && (failure.Code == missingCapability || failure.Code == upstream.HeaderMismatch) {
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// answerTo returns the parts of the answer to a request, on one line.
func answerTo(id, result json.RawMessage, err error) [][]byte {
	var failure *jsonrpc.Error
	switch {
	case err == nil:
	case errors.As(err, &failure):
	default:
		failure = &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: "the call failed: " + err.Error()}
	}
	parts := jsonrpc.ResponseParts(id, result, failure)
	for i, part := range parts {
		parts[i] = jsonrpc.OneLine(part)
	}
	return parts
}

// fastClient returns the client of a message, or nil if the SDK must handle the message.
func (g *Gateway) fastClient(ctx context.Context, session *mcp.ServerSession, header http.Header, r Request) *Client {
	c := newClient(ctx, header)
	c.connection = session
	var has map[string]json.RawMessage
	if r.Meta != nil {
		var err error
		if has, err = jsonrpc.Members(r.Meta); err != nil {
			return nil
		}
	}
	c.Token = has["progressToken"]
	if c.Token != nil && c.Token[0] != '"' && (c.Token[0] < '0' || c.Token[0] > '9') {
		return nil
	}
	if has[metaVersion] != nil {
		return c.setFromMeta(header, has, r.Name)
	}
	if session == nil {
		return nil
	}
	params := session.InitializeParams()
	if params == nil || params.ProtocolVersion >= upstream.ModernVersion {
		return nil
	}
	if header != nil && header.Get("Mcp-Protocol-Version") != params.ProtocolVersion || !acceptsBoth(header) {
		return nil
	}
	if params.Capabilities != nil {
		c.Capabilities = capabilitiesOf(params.Capabilities)
	}
	if params.ClientInfo != nil {
		c.setName(params.ClientInfo.Name)
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

// setFromMeta sets the fields of the client from the _meta of a modern request, and returns
// the client. It returns nil if the SDK must handle the request, for example because a
// member is invalid or differs from its header.
func (c *Client) setFromMeta(header http.Header, has map[string]json.RawMessage, tool string) *Client {
	var version string
	if json.Unmarshal(has[metaVersion], &version) != nil || version != upstream.ModernVersion {
		return nil
	}
	if header != nil && (header.Get("Mcp-Protocol-Version") != version || header.Get("Mcp-Method") != "tools/call" ||
		header.Get("Mcp-Name") != tool || !acceptsBoth(header)) {
		return nil
	}
	capabilities := has[metaCapabilities]
	if capabilities == nil || capabilities[0] != '{' {
		return nil
	}
	declared, err := jsonrpc.Members(capabilities, "elicitation", "sampling", "roots", "extensions")
	if err != nil {
		return nil
	}
	for _, each := range []string{"elicitation", "sampling", "roots", "extensions"} {
		if value := declared[each]; value != nil && value[0] != '{' {
			return nil
		}
	}
	c.Capabilities = Capabilities{Elicitation: declared["elicitation"], Sampling: declared["sampling"], Roots: declared["roots"]}
	if extensions := declared["extensions"]; extensions != nil {
		_ = c.Capabilities.Extensions.UnmarshalJSON(extensions) // UnmarshalJSON never returns an error.
	}
	var info struct {
		Name string `json:"name"`
	}
	if has[metaClientInfo] != nil && json.Unmarshal(has[metaClientInfo], &info) != nil {
		return nil
	}
	c.setName(info.Name)
	if has[metaLevel] != nil && json.Unmarshal(has[metaLevel], &c.Level) != nil {
		return nil
	}
	c.Modern = true
	return c
}

// acceptsBoth reports whether a client accepts both content types of an answer. It returns
// true for a client on stdio, which sends no headers.
func acceptsBoth(header http.Header) bool {
	if header == nil {
		return true
	}
	accept := strings.Join(header.Values("Accept"), ",")
	return strings.Contains(accept, "application/json") && strings.Contains(accept, "text/event-stream")
}

// logLevels returns the log levels, lowest first.
func logLevels() []string {
	return []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}
}

// connectFast lets the client receive notifications and questions during a call on the fast
// path.
func (g *Gateway) connectFast(c *Client, session *mcp.ServerSession, send func(int, ...[]byte) error) {
	c.Notify = func(_ context.Context, method string, params json.RawMessage) {
		if method == "notifications/message" {
			least := slices.Index(logLevels(), c.Level)
			if least < 0 || slices.Index(logLevels(), jsonrpc.TextMember(params, "level")) < least {
				return
			}
		}
		_ = send(0, jsonrpc.OneLine(jsonrpc.Request(nil, method, params))) // The client may have disconnected.
	}
	if c.Modern {
		return
	}
	c.Ask = func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, *jsonrpc.Error) {
		key := fastCallID{session, string(jsonrpc.Text("gateway-" + rand.Text()))}
		answer := g.fastCalls.addQuestion(key)
		defer g.fastCalls.removeQuestion(key)
		if err := send(0, jsonrpc.OneLine(jsonrpc.Request(json.RawMessage(key.id), method, params))); err != nil {
			result, failure := askTyped(ctx, session, method, params) // The call was already answered, so the SDK asks.
			return typedAnswer(result, failure)
		}
		select {
		case m := <-answer:
			return m.Result, m.Err
		case <-ctx.Done():
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: "the call ended before the client answered"}
		}
	}
}

// takeResponse accepts the answer to one of the gateway's questions.
func (g *Gateway) takeResponse(session *mcp.ServerSession, m *jsonrpc.Message) func(context.Context) {
	g.fastCalls.mu.Lock()
	answer := g.fastCalls.asked[fastCallID{session, string(m.ID)}]
	g.fastCalls.mu.Unlock()
	if answer == nil || session == nil {
		return nil
	}
	return func(context.Context) {
		select {
		case answer <- m:
		default: // The question was answered before.
		}
	}
}

func (s *fastCalls) addQuestion(key fastCallID) chan *jsonrpc.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	answer := make(chan *jsonrpc.Message, 1)
	s.asked[key] = answer
	return answer
}

func (s *fastCalls) removeQuestion(key fastCallID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.asked, key)
}

// addCall registers a call for cancellation. The returned function starts the call's work:
// it returns the context of the work and a function that ends the registration.
func (s *fastCalls) addCall(session *mcp.ServerSession, id json.RawMessage) func(context.Context) (context.Context, func()) {
	if session == nil {
		return func(ctx context.Context) (context.Context, func()) { return ctx, func() {} }
	}
	key, call := fastCallID{session, string(id)}, &fastCall{}
	s.mu.Lock()
	defer s.mu.Unlock()
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

func (s *fastCalls) cancelCall(session *mcp.ServerSession, params json.RawMessage) {
	if params == nil {
		return
	}
	members, err := jsonrpc.Members(params, "requestId")
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	call := s.calls[fastCallID{session, string(members["requestId"])}]
	if call == nil {
		return
	}
	call.cancelled = true
	if call.cancel != nil {
		call.cancel(errCancelled)
	}
}
