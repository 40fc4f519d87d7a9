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
	"strings"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
	"github.com/guideway-dev/guideway/internal/platform/ctxsleep"
)

// BridgeOptions say what a bridge leads to.
type BridgeOptions struct {
	// URL is the endpoint of a server over streamable HTTP, and Token the bearer
	// token for it; empty is none.
	URL, Token string
	// Start says how a server is started that is not there, for a person.
	Start string
	// ParamHeaders gives for a tool of the modern era what makes headers of the
	// arguments of its calls; nil where it has none.
	ParamHeaders func(tool json.RawMessage) func(arguments json.RawMessage) map[string]string
}

// Bridge has a client that speaks over standard input and output reach a server
// over HTTP. It hands on every message, in both directions and of both eras, and
// keeps nothing but what the transports want: the session, the version, which
// calls are under way, and the headers that tools want.
type Bridge struct {
	opts BridgeOptions
	out  io.Writer
	web  *web

	mu    sync.Mutex
	calls map[string]*bridged
	// leaving says that the client has gone.
	leaving bool
	// hello is the client's initialize, to begin a new session with where the
	// server has forgotten the old one.
	hello   []byte
	params  map[string]func(json.RawMessage) map[string]string
	writing sync.Mutex
	wg      sync.WaitGroup
}

// bridged is a call under way.
type bridged struct {
	method string
	cancel context.CancelFunc
}

var _ receiver = (*Bridge)(nil)

// NewBridge makes a bridge that writes to out. Nothing is sent yet.
func NewBridge(opts BridgeOptions, out io.Writer) *Bridge {
	b := &Bridge{opts: opts, out: out, calls: map[string]*bridged{}, params: map[string]func(json.RawMessage) map[string]string{}}
	spec := Spec{URL: opts.URL, Bearer: opts.Token}
	b.web = newWeb(spec, newHTTPClient(http.DefaultTransport), maxBridged, b)
	return b
}

const (
	// maxBridged bounds a message.
	maxBridged = 16 << 20
	// noteTime is how long the server may take with what has no answer.
	noteTime = 10 * time.Second
	// leaveTime is how long calls may take once the client has gone.
	leaveTime = 400 * time.Millisecond
)

// Reach says whether anything answers at the URL; the error tells a person what to
// do.
func (b *Bridge) Reach(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, noteTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, b.opts.URL, nil)
	if err != nil {
		return guideway.Errorf(guideway.CodeInvalid, "%q is no URL of a server", b.opts.URL).WithFix("such as http://127.0.0.1:3000/mcp")
	}
	resp, err := b.web.client.Do(req)
	if err != nil {
		return b.explain(err)
	}
	return resp.Body.Close()
}

// explain says for a person why a server cannot be reached or will not answer.
func (b *Bridge) explain(err error) error {
	switch {
	case guideway.ErrorCode(err) == guideway.CodeUnauthorized:
		return guideway.Errorf(guideway.CodeUnauthorized, "the server at %s does not take the token", b.opts.URL).
			WithFix("give the token of that server with --token, or as GUIDEWAY_TOKEN")
	case errors.As(err, new(*statusError)) && b.spoken():
		return guideway.Errorf(guideway.CodeUnavailable, "the server at %s has not taken the message: %w", b.opts.URL, err).
			WithFix("look at its method and its params")
	case errors.As(err, new(*statusError)), errors.Is(err, errSessionLost):
		return guideway.Errorf(guideway.CodeUnavailable, "what is at %s does not answer as an MCP server: %w", b.opts.URL, err).
			WithFix("look at the address: that of Guideway ends in /mcp")
	}
	if dial := (*net.OpError)(nil); !errors.As(err, &dial) || dial.Op != "dial" {
		return guideway.Errorf(guideway.CodeUnavailable, "the connection to %s broke: %w; it is not known whether what was asked was done", b.opts.URL, rootCause(err)).
			WithFix("look before you ask again; if the server is gone, %s", b.opts.Start)
	}
	return guideway.Errorf(guideway.CodeUnavailable, "no server can be reached at %s: %w", b.opts.URL, rootCause(err)).WithFix("%s", b.opts.Start)
}

// spoken tells whether the server has answered as one of MCP before.
func (b *Bridge) spoken() bool {
	b.web.mu.Lock()
	defer b.web.mu.Unlock()
	return b.web.version != ""
}

// Refuse answers the first request of in with an error, so that the client has it
// to show.
func (b *Bridge) Refuse(in io.Reader, why error) {
	lines := bufio.NewReader(in)
	for {
		l, err := readLine(lines, maxBridged, true)
		if m, bad := jsonrpc.Parse(l.begin); bad == nil && m.ID != nil && !m.IsResponse() {
			b.fail(string(m.ID), why)
			return
		}
		if err != nil {
			return
		}
	}
}

// Run hands on messages until the input ends or ctx is done.
func (b *Bridge) Run(ctx context.Context, in io.Reader) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- b.read(ctx, in) }()
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
	_ = ctxsleep.For(ctxOf(left), leaveTime) // answers may be on their way
	cancel()
	<-left
	b.web.close()
	return err
}

// ctxOf is a context that ends with a channel.
func ctxOf(done <-chan struct{}) context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	go func() { <-done; cancel() }()
	return ctx
}

func (b *Bridge) read(ctx context.Context, in io.Reader) error {
	lines := bufio.NewReaderSize(in, 64<<10)
	for ctx.Err() == nil {
		l, err := readLine(lines, maxBridged, true)
		if text := bytes.TrimSpace(l.begin); len(text) > 0 && !l.tooLong {
			b.take(ctx, text)
		} else if l.tooLong {
			b.write(jsonrpc.Response(json.RawMessage("null"), nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the message is too large"}))
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

// take takes a message of the client.
func (b *Bridge) take(ctx context.Context, text []byte) {
	m, err := jsonrpc.Parse(text)
	if err == nil && bytes.ContainsAny(m.ID, ".eE") && m.ID[0] != '"' {
		err = errors.New("its id is neither a text nor a whole number") // the server would answer to another id
	}
	if err != nil {
		b.write(jsonrpc.Response(json.RawMessage("null"), nil, &jsonrpc.Error{Code: -32700, Message: "this is no message: " + err.Error()}))
		return
	}
	out := outgoing{text: text, method: m.Method}
	if m.Method != "" {
		b.describe(&out, m)
	}
	if m.Method == "notifications/cancelled" && b.cancelled(m.Params) {
		return // in the modern era the end of the request is what cancels it
	}
	if m.ID == nil || m.IsResponse() {
		ctx, cancel := context.WithTimeout(ctx, noteTime)
		defer cancel()
		if err := b.web.send(ctx, out); err != nil && errors.Is(err, errSessionLost) {
			_ = b.again(ctx, out) // nobody waits for an answer that could tell
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
	b.calls[out.call] = &bridged{method: m.Method, cancel: cancel}
	if m.Method == "initialize" {
		b.hello = text
	}
	b.wg.Add(1) // under the lock: Run waits for nothing that begins later
	b.mu.Unlock()
	go func() {
		defer b.wg.Done()
		defer cancel()
		err := b.web.send(ctx, out)
		if errors.Is(err, errSessionLost) {
			err = b.again(ctx, out) // it was not taken: nothing is done twice
		}
		if err == nil {
			err = errUnanswered // unless it has come
		}
		if ctx.Err() == nil {
			b.unreadable(out.call, err)
		}
		b.mu.Lock()
		delete(b.calls, out.call)
		b.mu.Unlock()
	}()
	if m.Method == "initialize" {
		<-ctx.Done() // what comes behind it needs the session that it makes
	}
}

// describe sets what the headers of a message say.
func (b *Bridge) describe(out *outgoing, m *jsonrpc.Message) {
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
			b.web.mu.Lock()
			b.web.version = version
			b.web.mu.Unlock()
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

// cancelled ends a call of the modern era.
func (b *Bridge) cancelled(params json.RawMessage) bool {
	b.web.mu.Lock()
	modern := b.web.version >= ModernVersion
	b.web.mu.Unlock()
	members, err := jsonrpc.Members(params)
	if !modern || err != nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if call := b.calls[string(members["requestId"])]; call != nil {
		call.cancel()
	}
	return true
}

// again begins a new session as the client has begun the first one, and sends a
// message in it.
func (b *Bridge) again(ctx context.Context, out outgoing) error {
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
	b.calls[helloAgain] = &bridged{method: "initialize"}
	b.mu.Unlock()
	m, err := jsonrpc.Parse(hello)
	if err != nil {
		return err
	}
	if err := b.web.send(ctx, outgoing{text: jsonrpc.Request(json.RawMessage(helloAgain), m.Method, m.Params), method: m.Method, call: helloAgain}); err != nil {
		return err
	}
	b.web.mu.Lock()
	if b.web.version == "" {
		b.web.version = version
	}
	b.web.mu.Unlock()
	if err := b.web.send(ctx, outgoing{text: jsonrpc.Request(nil, "notifications/initialized", nil), method: "notifications/initialized"}); err != nil {
		return err
	}
	return b.web.send(ctx, out)
}

// helloAgain is the id of an initialize of ours.
const helloAgain = `"guideway-connect"`

// receive implements receiver.
func (b *Bridge) receive(m *jsonrpc.Message, _ string) {
	if !m.IsResponse() {
		b.write(jsonrpc.Request(m.ID, m.Method, m.Params))
		return
	}
	b.mu.Lock()
	call := b.calls[string(m.ID)]
	delete(b.calls, string(m.ID))
	b.mu.Unlock()
	if call != nil && m.Err == nil {
		b.learn(call.method, m.Result)
	}
	if string(m.ID) != helloAgain {
		b.write(jsonrpc.Response(m.ID, m.Result, m.Err))
	}
}

// learn notes what the transport needs to know of a result.
func (b *Bridge) learn(method string, result json.RawMessage) {
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

// unreadable implements receiver: a call that is not answered is answered by an
// error.
func (b *Bridge) unreadable(call string, err error) {
	b.mu.Lock()
	open := b.calls[call] != nil
	delete(b.calls, call)
	b.mu.Unlock()
	if open {
		b.fail(call, b.explain(err))
	}
}

// ended implements receiver.
func (b *Bridge) ended(error) {}

func (b *Bridge) fail(id string, err error) {
	message := err.Error()
	if fix := guideway.ErrorFix(err); fix != "" {
		message = fmt.Sprintf("%s; %s", message, fix)
	}
	b.write(jsonrpc.Response(json.RawMessage(id), nil, &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: message}))
}

func (b *Bridge) write(text []byte) {
	b.writing.Lock()
	defer b.writing.Unlock()
	_, _ = b.out.Write(append(jsonrpc.OneLine(text), '\n')) // the client may be gone
}
