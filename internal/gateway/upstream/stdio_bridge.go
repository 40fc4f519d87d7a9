package upstream

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/evidence"
	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
	"github.com/guideway-dev/guideway/internal/platform/ctxsleep"
)

// BridgeOptions configure a bridge.
type BridgeOptions struct {
	// URL is the endpoint of a server over streamable HTTP, and Token its bearer token,
	// which may be empty.
	URL, Token string
	// Dial opens the connections to the server. If nil, the connections are direct or use
	// the proxy of the environment. An error of Dial with a code is returned unchanged.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Start says how to make the server reachable, for the fixes of errors.
	Start string
	// ParamHeaders returns, for a modern tool, a function that computes headers from the
	// arguments of its calls; nil if it has none.
	ParamHeaders func(tool json.RawMessage) func(arguments json.RawMessage) map[string]string
	// Host is the name of this computer if AnswerChecks executes checks here.
	Host string
	// AnswerChecks returns the answer to a sealed evidence.ConnectRequest.
	AnswerChecks func(ctx context.Context, sealed string, progress func(message string)) json.RawMessage
}

// Bridge connects a client on stdio to a server over HTTP. It forwards every message in
// both directions and in every protocol version. It keeps only the state that the
// transports need: the session, the version, the calls in progress, and the headers that
// tools require.
type Bridge struct {
	opts BridgeOptions
	out  io.Writer
	web  *httpConn

	mu    sync.Mutex
	calls map[string]*bridgedCall
	// leaving reports whether the client has disconnected.
	leaving bool
	// hello is the client's initialize request, to start a new session after the server has
	// lost the old one.
	hello   []byte
	params  map[string]func(json.RawMessage) map[string]string
	writing sync.Mutex
	wg      sync.WaitGroup
}

// bridgedCall is a call in progress.
type bridgedCall struct {
	method string
	cancel context.CancelFunc
	// checks is true if the call can need checks on this computer. sealed is the request for
	// them in the last answer of the server, which the client does not get.
	checks bool
	sealed string
}

var _ receiver = (*Bridge)(nil)

// NewBridge returns a bridge that writes to out. It sends nothing yet.
func NewBridge(opts BridgeOptions, out io.Writer) *Bridge {
	b := &Bridge{opts: opts, out: out, calls: map[string]*bridgedCall{}, params: map[string]func(json.RawMessage) map[string]string{}}
	spec := Spec{URL: opts.URL, Bearer: opts.Token}
	if opts.Host != "" {
		spec.Headers = map[string]string{evidence.ConnectHeader: headerValue(opts.Host)}
	}
	trip := http.DefaultTransport
	if opts.Dial != nil {
		dialing := http.DefaultTransport.(*http.Transport).Clone()
		dialing.DialContext, dialing.Proxy = opts.Dial, nil
		trip = dialing
	}
	b.web = newHTTPConn(spec, newHTTPClient(trip), maxBridged, b)
	return b
}

const (
	// maxBridged is the maximum size of a message.
	maxBridged = 16 << 20
	// noteTime is the maximum time for a message without a response.
	noteTime = 10 * time.Second
	// leaveTime is the maximum time for calls after the client has disconnected.
	leaveTime = 400 * time.Millisecond
)

// Reach returns an error with a next action if the URL does not answer.
func (b *Bridge) Reach(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, noteTime, guideway.Errorf(guideway.CodeUnavailable, "the server did not answer within %s", noteTime))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, b.opts.URL, nil)
	if err != nil {
		return guideway.Errorf(guideway.CodeInvalid, "%q is not the URL of a server", b.opts.URL).WithFix("use a URL such as http://127.0.0.1:3000/mcp")
	}
	resp, err := b.web.client.Do(req)
	if err != nil {
		return b.explainError(b.web.sendError(ctx, err))
	}
	return resp.Body.Close()
}

// explainError returns an error that states why a server is unreachable or refuses a
// request, with a next action.
func (b *Bridge) explainError(err error) error {
	var own *guideway.Error
	switch dial := (*net.OpError)(nil); {
	case errors.As(err, &own) && own.Code == guideway.CodeForbidden && b.opts.Dial != nil:
		return own
	case guideway.ErrorCode(err) == guideway.CodeUnauthorized:
		return guideway.Errorf(guideway.CodeUnauthorized, "the server at %s does not accept the token, or requires one: %w", b.opts.URL, err).
			WithFix("pass the server's token with --token or in GUIDEWAY_TOKEN")
	case errors.As(err, new(*statusError)) && b.hasAnswered():
		return guideway.Errorf(guideway.CodeUnavailable, "the server at %s did not accept the message: %w", b.opts.URL, err).
			WithFix("check the method and the params of the message")
	case errors.As(err, &dial) && dial.Op == "dial":
		return guideway.Errorf(guideway.CodeUnavailable, "no server can be reached at %s: %w", b.opts.URL, rootCause(err)).WithFix("%s", b.opts.Start)
	case own != nil && !errors.As(err, new(*statusError)):
		return guideway.Errorf(own.Code, "the request to %s failed: %w", b.opts.URL, err).
			WithFix("%s", strings.TrimPrefix(own.Fix+"; if the server has ended, "+b.opts.Start, "; "))
	}
	return guideway.Errorf(guideway.CodeUnavailable, "the server at %s does not answer as an MCP server: %w", b.opts.URL, err).
		WithFix("check the URL; the URL of a Guideway server ends in /mcp")
}

// hasAnswered reports whether the server has answered with MCP before.
func (b *Bridge) hasAnswered() bool { return b.web.protocolVersion() != "" }

// Refuse answers the first request of in with an error, which the client can show.
func (b *Bridge) Refuse(in io.Reader, why error) {
	lines := bufio.NewReader(in)
	for {
		l, err := readLine(lines, maxBridged, true)
		if m, bad := jsonrpc.Parse(l.begin); bad == nil && m.ID != nil && !m.IsResponse() {
			b.sendError(string(m.ID), why)
			return
		}
		if err != nil {
			return
		}
	}
}

// Run forwards messages until the input ends or ctx is done.
func (b *Bridge) Run(ctx context.Context, in io.Reader) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- b.readInput(ctx, in) }()
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
	}
	b.mu.Lock()
	b.leaving = true
	b.mu.Unlock()
	left := make(chan struct{})
	go func() { b.wg.Wait(); close(left) }()
	_ = ctxsleep.For(contextOf(left), leaveTime) // answers may be in transit
	cancel()
	<-left
	b.web.close()
	return err
}

// contextOf returns a context that ends when a channel is closed.
func contextOf(done <-chan struct{}) context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	go func() { <-done; cancel() }()
	return ctx
}

func (b *Bridge) readInput(ctx context.Context, in io.Reader) error {
	lines := bufio.NewReaderSize(in, 64<<10)
	for ctx.Err() == nil {
		l, err := readLine(lines, maxBridged, true)
		if text := bytes.TrimSpace(l.begin); len(text) > 0 && !l.tooLong {
			b.forward(ctx, text)
		} else if l.tooLong {
			b.writeMessage(jsonrpc.Response(json.RawMessage("null"), nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("the message is larger than %d bytes", maxBridged)}))
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return guideway.Errorf(guideway.CodeUnavailable, "read the client's messages: %w", err)
		}
	}
	return nil
}

// forward forwards a message of the client.
func (b *Bridge) forward(ctx context.Context, text []byte) {
	m, err := jsonrpc.Parse(text)
	if err == nil && bytes.ContainsAny(m.ID, ".eE") && m.ID[0] != '"' {
		err = errors.New("the id is neither a string nor an integer") // The server would answer with a different id.
	}
	if err != nil {
		b.writeMessage(jsonrpc.Response(json.RawMessage("null"), nil, &jsonrpc.Error{Code: -32700, Message: "invalid message: " + err.Error()}))
		return
	}
	out := outgoing{text: text, method: m.Method}
	if m.Method != "" {
		b.setHeaders(&out, m)
	}
	if m.Method == "notifications/cancelled" && b.cancelCall(m.Params) {
		return // a modern call is cancelled by closing the request
	}
	if m.ID == nil || m.IsResponse() {
		ctx, cancel := context.WithTimeout(ctx, noteTime)
		defer cancel()
		if err := b.web.send(ctx, out); err != nil && errors.Is(err, errSessionLost) {
			_ = b.resendInNewSession(ctx, out) // a notification has no response for an error
		}
		return
	}
	out.call = string(m.ID)
	ctx, cancel := context.WithCancel(ctx)
	b.mu.Lock()
	if b.leaving {
		b.mu.Unlock()
		cancel()
		return
	}
	call := &bridgedCall{method: m.Method, cancel: cancel, checks: b.canNeedChecks(out)}
	b.calls[out.call] = call
	if m.Method == "initialize" {
		b.hello = text
	}
	b.wg.Add(1) // Add is called with the lock, because Run must not wait for calls that start later.
	b.mu.Unlock()
	go func() {
		defer b.wg.Done()
		defer cancel()
		err := b.sendCall(ctx, out)
		for progress := 0; err == nil && b.answerChecks(ctx, call, m, &out, &progress); {
			err = b.sendCall(ctx, out)
		}
		if err == nil {
			err = errUnanswered // fail has no effect if the answer has arrived.
		}
		if ctx.Err() == nil {
			b.unreadable(out.call, err)
		}
		b.mu.Lock()
		delete(b.calls, out.call)
		b.mu.Unlock()
	}()
	if m.Method == "initialize" {
		<-ctx.Done() // The next message needs the session that this one creates.
	}
}

// canNeedChecks reports whether a message calls a tool of runs. An upstream cannot take their names
// if the server offers these tools.
func (b *Bridge) canNeedChecks(m outgoing) bool {
	return b.opts.Host != "" && m.method == "tools/call" && slices.Contains([]string{"workflow_start", "workflow_continue"}, m.name)
}

// sendCall sends a call, in a new session if the server has lost the old one. The server did
// not accept the call then, so sending it again does not repeat it.
func (b *Bridge) sendCall(ctx context.Context, out outgoing) error {
	err := b.web.send(ctx, out)
	if errors.Is(err, errSessionLost) {
		err = b.resendInNewSession(ctx, out)
	}
	return err
}

// answerChecks executes the checks that the server has requested for a call, and adds their
// results to the call. It reports false if the server has requested none.
func (b *Bridge) answerChecks(ctx context.Context, call *bridgedCall, m *jsonrpc.Message, out *outgoing, progress *int) bool {
	b.mu.Lock()
	sealed := call.sealed
	b.mu.Unlock()
	if sealed == "" || ctx.Err() != nil {
		return false
	}
	meta := jsonrpc.ObjectMember(m.Params, "_meta")
	members, _ := jsonrpc.Members(meta) // the server has accepted the message
	answer := b.opts.AnswerChecks(ctx, sealed, func(message string) {
		if token := members["progressToken"]; token != nil {
			*progress++
			b.writeMessage(jsonrpc.Request(nil, "notifications/progress", jsonrpc.Object(
				jsonrpc.Member{Key: "progressToken", Value: token}, jsonrpc.Member{Key: "progress", Value: jsonrpc.Number(int64(*progress))}, jsonrpc.Member{Key: "message", Value: jsonrpc.Text(message)})))
		}
	})
	meta, err := jsonrpc.With(meta, jsonrpc.Member{Key: evidence.ConnectMeta, Value: answer})
	if err != nil || ctx.Err() != nil {
		return false
	}
	params, err := jsonrpc.With(m.Params, jsonrpc.Member{Key: "_meta", Value: meta})
	out.text = jsonrpc.Request(m.ID, m.Method, params)
	b.mu.Lock()
	defer b.mu.Unlock()
	call.sealed = ""
	return err == nil
}

// setHeaders sets the fields of an outgoing message that become headers.
func (b *Bridge) setHeaders(out *outgoing, m *jsonrpc.Message) {
	if m.Params == nil {
		return
	}
	out.name = memberText(m.Params, "name")
	if strings.HasPrefix(m.Method, "resources/") {
		out.name = memberText(m.Params, "uri")
	}
	members, err := jsonrpc.Members(m.Params)
	if err != nil {
		return
	}
	b.mu.Lock()
	headers := b.params[out.name]
	b.mu.Unlock()
	if m.Method == "tools/call" && headers != nil {
		out.headers = headers(members["arguments"])
	}
	if meta := members["_meta"]; meta != nil && m.Method != "server/discover" {
		if version := memberText(meta, "io.modelcontextprotocol/protocolVersion"); version >= ModernVersion {
			b.web.setVersion(version)
		}
	}
}

func memberText(object json.RawMessage, name string) string {
	members, err := jsonrpc.Members(object)
	var text string
	if err != nil || json.Unmarshal(members[name], &text) != nil {
		return ""
	}
	return text
}

// cancelCall cancels a modern call, or one whose checks are being executed here.
func (b *Bridge) cancelCall(params json.RawMessage) bool {
	members, err := jsonrpc.Members(params)
	modern := b.web.protocolVersion() >= ModernVersion
	b.mu.Lock()
	defer b.mu.Unlock()
	call := b.calls[string(members["requestId"])]
	if err != nil || !modern && (call == nil || call.sealed == "") {
		return false
	}
	if call != nil {
		call.cancel()
	}
	return true
}

// resendInNewSession starts a new session with the client's initialize request and sends a
// message in it.
func (b *Bridge) resendInNewSession(ctx context.Context, out outgoing) error {
	b.mu.Lock()
	hello := b.hello
	b.mu.Unlock()
	b.web.mu.Lock()
	version := b.web.version
	b.web.session, b.web.version = "", ""
	b.web.mu.Unlock()
	if hello == nil {
		return errSessionLost
	}
	b.mu.Lock()
	b.calls[helloAgain] = &bridgedCall{method: "initialize"}
	b.mu.Unlock()
	m, err := jsonrpc.Parse(hello)
	if err != nil {
		return err
	}
	if err := b.web.send(ctx, outgoing{text: jsonrpc.Request(json.RawMessage(helloAgain), m.Method, m.Params), method: m.Method, call: helloAgain}); err != nil {
		return err
	}
	if b.web.protocolVersion() == "" {
		b.web.setVersion(version)
	}
	if err := b.web.send(ctx, outgoing{text: jsonrpc.Request(nil, "notifications/initialized", nil), method: "notifications/initialized"}); err != nil {
		return err
	}
	return b.web.send(ctx, out)
}

// helloAgain is the id of the bridge's own initialize request.
const helloAgain = `"guideway-connect"`

// receive implements receiver.
func (b *Bridge) receive(m *jsonrpc.Message, _ string) {
	if !m.IsResponse() {
		b.writeMessage(jsonrpc.Request(m.ID, m.Method, m.Params))
		return
	}
	b.mu.Lock()
	call := b.calls[string(m.ID)]
	if call != nil && call.checks {
		if call.sealed = memberText(jsonrpc.ObjectMember(m.Result, "_meta"), evidence.ConnectMeta); call.sealed != "" {
			b.mu.Unlock()
			return
		}
	}
	delete(b.calls, string(m.ID))
	b.mu.Unlock()
	if call != nil && m.Err == nil {
		b.readResult(call.method, m.Result)
	}
	if string(m.ID) != helloAgain {
		b.writeMessage(jsonrpc.Response(m.ID, m.Result, m.Err))
	}
}

// readResult reads the values that the transport needs from a result.
func (b *Bridge) readResult(method string, result json.RawMessage) {
	switch method {
	case "initialize":
		b.web.negotiated(memberText(result, "protocolVersion"))
	case "tools/list":
		members, err := jsonrpc.Members(result)
		var tools []json.RawMessage
		if err != nil || b.opts.ParamHeaders == nil || json.Unmarshal(members["tools"], &tools) != nil {
			return
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, tool := range tools {
			if headers := b.opts.ParamHeaders(tool); headers != nil {
				b.params[memberText(tool, "name")] = headers
			}
		}
	}
}

// unreadable implements receiver. It answers the call with an error.
func (b *Bridge) unreadable(call string, err error) {
	b.mu.Lock()
	open := b.calls[call] != nil
	delete(b.calls, call)
	b.mu.Unlock()
	if open {
		b.sendError(call, b.explainError(err))
	}
}

// ended implements receiver.
func (b *Bridge) ended(error) {}

func (b *Bridge) sendError(id string, err error) {
	message := err.Error()
	if fix := guideway.ErrorFix(err); fix != "" {
		message = fmt.Sprintf("%s; %s", message, fix)
	}
	b.writeMessage(jsonrpc.Response(json.RawMessage(id), nil, &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: message}))
}

func (b *Bridge) writeMessage(text []byte) {
	b.writing.Lock()
	defer b.writing.Unlock()
	_, _ = b.out.Write(append(jsonrpc.OneLine(text), '\n')) // the client may have disconnected
}
