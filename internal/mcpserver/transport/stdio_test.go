package transport_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/authn"
	"github.com/guideway-dev/guideway/internal/mcpserver/transport"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pipe is a client at the other end of Stdio.
type pipe struct {
	tb    testing.TB
	in    *io.PipeWriter
	lines chan string
	done  chan error // what Stdio returned
}

func startStdio(ctx context.Context, tb testing.TB, server *mcp.Server) *pipe {
	tb.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	p := &pipe{tb: tb, in: inW, lines: make(chan string, 64), done: make(chan error, 1)}
	go func() { p.done <- transport.Stdio(ctx, server, nil, inR, outW) }()
	go func() {
		defer close(p.lines)
		scan := bufio.NewScanner(outR)
		scan.Buffer(nil, 32<<20)
		for scan.Scan() {
			p.lines <- scan.Text()
		}
	}()
	tb.Cleanup(func() { _ = inW.Close(); _ = outR.Close() })
	return p
}

func (p *pipe) send(text string) {
	p.tb.Helper()
	if _, err := io.WriteString(p.in, text); err != nil {
		p.tb.Fatalf("send %.80q: %v", text, err)
	}
}

// receive gives the next line from the server.
func (p *pipe) receive() string {
	p.tb.Helper()
	select {
	case l, ok := <-p.lines:
		if !ok {
			p.tb.Fatal("the output has ended")
		}
		return l
	case <-time.After(10 * time.Second):
		p.tb.Fatal("no answer within 10 s")
	}
	return ""
}

// ended waits for Stdio to return, for limit at most.
func (p *pipe) ended(limit time.Duration) error {
	p.tb.Helper()
	select {
	case err := <-p.done:
		return err
	case <-time.After(limit):
		p.tb.Fatalf("Stdio still runs after %v", limit)
	}
	return nil
}

// handshake opens a legacy session.
func (p *pipe) handshake(version string) {
	p.tb.Helper()
	p.send(`{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"` + version +
		`","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}` + "\n")
	p.receive()
	p.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n")
}

// checkAlive sees that the session still answers.
func (p *pipe) checkAlive() {
	p.tb.Helper()
	p.send(`{"jsonrpc":"2.0","id":"alive","method":"ping"}` + "\n")
	if got, want := p.receive(), `{"jsonrpc":"2.0","id":"alive","result":{}}`; got != want {
		p.tb.Fatalf("after it, a ping is answered by %s, want %s", got, want)
	}
}

type bundle struct {
	server *mcp.Server
	// started gets a value when the tool "park" or "stubborn" is called.
	started chan struct{}
	// cancelled gets a value when the tool "park" is cancelled.
	cancelled chan struct{}
	// release lets the tools "stubborn" and "slow" return.
	release chan struct{}
}

func setup(tb testing.TB) *bundle {
	tb.Helper()
	b := &bundle{
		server: mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ServerOptions{
			Capabilities: &mcp.ServerCapabilities{},
		}),
		started:   make(chan struct{}, 8),
		cancelled: make(chan struct{}, 8),
		release:   make(chan struct{}),
	}
	b.add("whoami", func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		p, ok := authn.PrincipalFrom(ctx)
		return text(fmt.Sprintf("%s %v", p.User, ok)), nil
	})
	b.add("park", func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		b.started <- struct{}{}
		<-ctx.Done()
		b.cancelled <- struct{}{}
		return nil, ctx.Err()
	})
	b.add("stubborn", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		b.started <- struct{}{}
		<-b.release
		return text("done"), nil
	})
	b.add("ask", ask)
	tb.Cleanup(func() { close(b.release) })
	return b
}

func (b *bundle) add(name string, handler mcp.ToolHandler) {
	b.server.AddTool(&mcp.Tool{Name: name, InputSchema: map[string]any{"type": "object"}}, handler)
}

func text(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}

// ask asks the person once, in multi-round-trip style.
func ask(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	answer, ok := req.Params.InputResponses["gate"].(*mcp.ElicitResult)
	if !ok {
		return &mcp.CallToolResult{
			InputRequests: mcp.InputRequestMap{"gate": &mcp.ElicitParams{
				Message: "Go on?",
				RequestedSchema: map[string]any{
					"type": "object", "properties": map[string]any{"ok": map[string]any{"type": "boolean"}},
				},
			}},
			RequestState: "state-1",
		}, nil
	}
	return text(fmt.Sprintf("%s %v %s", answer.Action, answer.Content["ok"], req.Params.RequestState)), nil
}

func call(id, tool string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + tool + `","arguments":{}}}` + "\n"
}

func TestStdioSurvivesBadLines(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", transport.MaxMessageBytes)
	tests := []struct {
		name, line string
		code       int
		id         any
	}{
		{name: "garbage", line: "hello, world", code: -32700},
		{name: "an invalid byte", line: "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\",\"params\":{\"a\":\"\xff\xfe\"}}", code: -32700, id: 7.0},
		{name: "a NUL byte", line: "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"pi\x00ng\"}", code: -32700, id: 7.0},
		{name: "cut off", line: `{"jsonrpc":"2.0","id":7,"method":"pi`, code: -32700, id: 7.0},
		{name: "two messages on a line", line: `{"jsonrpc":"2.0","id":7,"method":"ping"}{"jsonrpc":"2.0","id":8,"method":"ping"}`, code: -32700, id: 7.0},
		{name: "no version", line: `{"id":"a","method":"ping"}`, code: -32600, id: "a"},
		{name: "keys in capitals", line: `{"jsonrpc":"2.0","id":"a","Method":"ping","METHOD":1}`, code: 0},
		{name: "a number", line: `42`, code: -32600},
		{name: "a string", line: `"ping"`, code: -32600},
		{name: "an id of the wrong kind", line: `{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}`, code: -32600},
		{name: "too deep", line: `{"jsonrpc":"2.0","id":1,"method":"ping","params":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}`, code: -32600, id: 1.0},
		{name: "a batch", line: `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, code: -32600},
		{name: "too long", line: `{"jsonrpc":"2.0","id":9,"method":"ping","params":{"a":"` + long + `"}}`, code: -32600, id: 9.0},
		{name: "too long without an id", line: long + long, code: -32600},
		{name: "an unknown method", line: `{"jsonrpc":"2.0","id":1,"method":"nothing/such"}`, code: -32601, id: 1.0},
		{name: "parameters of the wrong kind", line: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[1]}`, code: -32602, id: 1.0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := startStdio(t.Context(), t, setup(t).server)
			p.handshake("2025-11-25")
			p.send("\r\n\n" + tt.line + "\r\n")
			if tt.code != 0 {
				var got struct {
					Version string `json:"jsonrpc"`
					ID      any
					Error   struct {
						Code    int
						Message string
					}
				}
				answer := p.receive()
				if err := json.Unmarshal([]byte(answer), &got); err != nil {
					t.Fatalf("the answer %q is not JSON: %v", answer, err)
				}
				if got.Version != "2.0" || got.Error.Code != tt.code || got.ID != tt.id || got.Error.Message == "" {
					t.Errorf("answer %s, want code %d and id %v", answer, tt.code, tt.id)
				}
				if len(answer) > 500 {
					t.Errorf("the answer has %d bytes", len(answer))
				}
			}
			p.checkAlive()
			_ = p.in.Close()
			if err := p.ended(time.Second); err != nil {
				t.Errorf("Stdio: %v", err)
			}
		})
	}
}

func TestStdioByteOrderMark(t *testing.T) {
	t.Parallel()
	p := startStdio(t.Context(), t, setup(t).server)
	p.send("\xef\xbb\xbf")
	p.handshake("2025-11-25")
	p.checkAlive()
}

// What was asked before the input ended is answered, even without a newline.
func TestStdioAnswersBeforeTheEnd(t *testing.T) {
	t.Parallel()
	ctx := authn.WithPrincipal(t.Context(), guideway.Principal{User: "ann"})
	p := startStdio(ctx, t, setup(t).server)
	p.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}` + "\n" +
		`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n" +
		strings.TrimSpace(call("2", "whoami")))
	_ = p.in.Close()
	p.receive()
	if got := p.receive(); !strings.Contains(got, `"id":2`) || !strings.Contains(got, "ann true") {
		t.Errorf("answer %s, want that of the tool for ann", got)
	}
	if err := p.ended(time.Second); err != nil {
		t.Errorf("Stdio: %v", err)
	}
}

func TestStdioEndsInASecond(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"park", "stubborn"} {
		for _, how := range []string{"the input ends", "ctx is done"} {
			t.Run(tool+", "+how, func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				b := setup(t)
				p := startStdio(ctx, t, b.server)
				p.handshake("2025-11-25")
				p.send(call("1", tool))
				<-b.started
				if how == "ctx is done" {
					cancel()
				} else {
					_ = p.in.Close()
				}
				if err := p.ended(time.Second); err != nil {
					t.Errorf("Stdio: %v", err)
				}
				if tool == "park" {
					<-b.cancelled
				}
			})
		}
	}
}

// A client that no longer reads does not keep the process.
func TestStdioEndsWhenNobodyReads(t *testing.T) {
	t.Parallel()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	done := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { done <- transport.Stdio(ctx, setup(t).server, nil, inR, outW) }()
	if _, err := io.WriteString(inW, "garbage\n"); err != nil {
		t.Fatal(err)
	}
	cancel()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("Stdio: %v", err)
		}
	case <-time.After(time.Second):
		t.Error("Stdio still runs after a second")
	}
	_ = outR.Close()
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, errors.New("the disk is gone") }
func (failingReader) Close() error             { return nil }

type discard struct{ bytes.Buffer }

func (*discard) Close() error { return nil }

func TestStdioReportsABrokenInput(t *testing.T) {
	t.Parallel()
	err := transport.Stdio(t.Context(), setup(t).server, nil, failingReader{}, &discard{})
	if guideway.ErrorCode(err) != guideway.CodeUnavailable || !strings.Contains(err.Error(), "the disk is gone") {
		t.Errorf("Stdio: %v, want the reader's error", err)
	}
}

// Both eras, with a question to the person in the middle of a call.
func TestStdioEras(t *testing.T) {
	t.Parallel()
	for _, version := range eras {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			inR, inW := io.Pipe()
			outR, outW := io.Pipe()
			done := make(chan error, 1)
			go func() { done <- transport.Stdio(t.Context(), setup(t).server, nil, inR, outW) }()
			session := connect(t, &mcp.IOTransport{Reader: outR, Writer: inW}, version)
			checkAsk(t, session)
			_ = session.Close()
			select {
			case err := <-done:
				if err != nil {
					t.Errorf("Stdio: %v", err)
				}
			case <-time.After(time.Second):
				t.Error("Stdio still runs after a second")
			}
		})
	}
}

func FuzzStdioLine(f *testing.F) {
	for _, seed := range []string{
		"", "{}", `[{}]`, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":1.5,"method":"tools/call","params":{"name":"whoami"}}`,
		"\xff", `{"jsonrpc":"2.0","id":"\u0000","method":""}`, `{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}`,
	} {
		f.Add([]byte(seed))
	}
	server := setup(f).server
	f.Fuzz(func(t *testing.T, input []byte) {
		p := startStdio(t.Context(), t, server)
		p.handshake("2025-11-25")
		go func() {
			_, _ = p.in.Write(append(input, "\n{\"jsonrpc\":\"2.0\",\"id\":\"last\",\"method\":\"ping\"}\n"...))
			_ = p.in.Close()
		}()
		for l := range p.lines {
			if !json.Valid([]byte(l)) {
				t.Fatalf("the output has a line that is not JSON: %q", l)
			}
			if strings.Contains(l, `"last"`) {
				_ = p.ended(time.Second)
				return
			}
		}
		t.Fatalf("the session ended at %q", input)
	})
}
