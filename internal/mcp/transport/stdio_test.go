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
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/guideway-dev/guideway/internal/mcp/transport"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stdioClient is a client of ServeStdio.
type stdioClient struct {
	tb    testing.TB
	in    *io.PipeWriter
	lines chan string
	done  chan error // the result of ServeStdio
}

func startStdio(ctx context.Context, tb testing.TB, server *mcp.Server) *stdioClient {
	tb.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	p := &stdioClient{tb: tb, in: inW, lines: make(chan string, 64), done: make(chan error, 1)}
	go func() { p.done <- transport.ServeStdio(ctx, server, nil, inR, outW) }()
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

func (p *stdioClient) sendLine(text string) {
	p.tb.Helper()
	if _, err := io.WriteString(p.in, text); err != nil {
		p.tb.Fatalf("send %.80q: %v", text, err)
	}
}

// readLine returns the next line of the server.
func (p *stdioClient) readLine() string {
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

// waitForEnd waits for ServeStdio to return, up to limit.
func (p *stdioClient) waitForEnd(limit time.Duration) error {
	p.tb.Helper()
	select {
	case err := <-p.done:
		return err
	case <-time.After(limit):
		p.tb.Fatalf("ServeStdio still runs after %v", limit)
	}
	return nil
}

// openSession opens a legacy session.
func (p *stdioClient) openSession(version string) {
	p.tb.Helper()
	p.sendLine(`{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"` + version +
		`","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}` + "\n")
	p.readLine()
	p.sendLine(`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n")
}

// checkAlive checks that the session still answers.
func (p *stdioClient) checkAlive() {
	p.tb.Helper()
	p.sendLine(`{"jsonrpc":"2.0","id":"alive","method":"ping"}` + "\n")
	if got, want := p.readLine(), `{"jsonrpc":"2.0","id":"alive","result":{}}`; got != want {
		p.tb.Fatalf("after it, a ping is answered by %s, want %s", got, want)
	}
}

type testServer struct {
	server *mcp.Server
	// started receives a value when the tool "park" or "stubborn" is called.
	started chan struct{}
	// cancelled receives a value when the tool "park" is cancelled.
	cancelled chan struct{}
	// release lets the tool "stubborn" return.
	release chan struct{}
}

func newTestServer(tb testing.TB) *testServer {
	tb.Helper()
	b := &testServer{
		server: mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ServerOptions{
			Capabilities: &mcp.ServerCapabilities{},
		}),
		started:   make(chan struct{}, 8),
		cancelled: make(chan struct{}, 8),
		release:   make(chan struct{}),
	}
	b.addTool("whoami", func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		p, ok := auth.PrincipalFrom(ctx)
		return textResult(fmt.Sprintf("%s %v", p.User, ok)), nil
	})
	b.addTool("park", func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		b.started <- struct{}{}
		<-ctx.Done()
		b.cancelled <- struct{}{}
		return nil, ctx.Err()
	})
	b.addTool("stubborn", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		b.started <- struct{}{}
		<-b.release
		return textResult("done"), nil
	})
	b.addTool("ask", askPerson)
	tb.Cleanup(func() { close(b.release) })
	return b
}

func (b *testServer) addTool(name string, handler mcp.ToolHandler) {
	b.server.AddTool(&mcp.Tool{Name: name, InputSchema: map[string]any{"type": "object"}}, handler)
}

func textResult(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}

// askPerson asks the person once, in multi-round-trip style.
func askPerson(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
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
	return textResult(fmt.Sprintf("%s %v %s", answer.Action, answer.Content["ok"], req.Params.RequestState)), nil
}

func callLine(id, tool string) string {
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
			p := startStdio(t.Context(), t, newTestServer(t).server)
			p.openSession("2025-11-25")
			p.sendLine("\r\n\n" + tt.line + "\r\n")
			if tt.code != 0 {
				var got struct {
					Version string `json:"jsonrpc"`
					ID      any
					Error   struct {
						Code    int
						Message string
					}
				}
				answer := p.readLine()
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
			if err := p.waitForEnd(time.Second); err != nil {
				t.Errorf("Stdio: %v", err)
			}
		})
	}
}

func TestStdioByteOrderMark(t *testing.T) {
	t.Parallel()
	p := startStdio(t.Context(), t, newTestServer(t).server)
	p.sendLine("\xef\xbb\xbf")
	p.openSession("2025-11-25")
	p.checkAlive()
}

// Calls before the end of the input are answered, even without a newline.
func TestStdioAnswersPendingCalls(t *testing.T) {
	t.Parallel()
	ctx := auth.WithPrincipal(t.Context(), guideway.Principal{User: "ann"})
	p := startStdio(ctx, t, newTestServer(t).server)
	p.sendLine(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}` + "\n" +
		`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n" +
		strings.TrimSpace(callLine("2", "whoami")))
	_ = p.in.Close()
	p.readLine()
	if got := p.readLine(); !strings.Contains(got, `"id":2`) || !strings.Contains(got, "ann true") {
		t.Errorf("answer %s, want that of the tool for ann", got)
	}
	if err := p.waitForEnd(time.Second); err != nil {
		t.Errorf("Stdio: %v", err)
	}
}

func TestStdioEndsWithinASecond(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"park", "stubborn"} {
		for _, how := range []string{"the input ends", "ctx is done"} {
			t.Run(tool+", "+how, func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				b := newTestServer(t)
				p := startStdio(ctx, t, b.server)
				p.openSession("2025-11-25")
				p.sendLine(callLine("1", tool))
				<-b.started
				if how == "ctx is done" {
					cancel()
				} else {
					_ = p.in.Close()
				}
				if err := p.waitForEnd(time.Second); err != nil {
					t.Errorf("Stdio: %v", err)
				}
				if tool == "park" {
					<-b.cancelled
				}
			})
		}
	}
}

// A client that no longer reads does not keep the process alive.
func TestStdioEndsWithoutReader(t *testing.T) {
	t.Parallel()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	done := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { done <- transport.ServeStdio(ctx, newTestServer(t).server, nil, inR, outW) }()
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
		t.Error("ServeStdio still runs after a second")
	}
	_ = outR.Close()
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, errors.New("the disk is gone") }
func (failingReader) Close() error             { return nil }

type closableBuffer struct{ bytes.Buffer }

func (*closableBuffer) Close() error { return nil }

func TestStdioReportsInputError(t *testing.T) {
	t.Parallel()
	err := transport.ServeStdio(t.Context(), newTestServer(t).server, nil, failingReader{}, &closableBuffer{})
	if guideway.ErrorCode(err) != guideway.CodeUnavailable || !strings.Contains(err.Error(), "the disk is gone") {
		t.Errorf("ServeStdio returned %v, want the reader's error", err)
	}
}

// Clients of legacy and modern protocol versions can be asked a question during a call.
func TestStdioProtocolVersions(t *testing.T) {
	t.Parallel()
	for _, version := range protocolVersions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			inR, inW := io.Pipe()
			outR, outW := io.Pipe()
			done := make(chan error, 1)
			go func() { done <- transport.ServeStdio(t.Context(), newTestServer(t).server, nil, inR, outW) }()
			session := connectClient(t, &mcp.IOTransport{Reader: outR, Writer: inW}, version)
			checkAsk(t, session)
			_ = session.Close()
			select {
			case err := <-done:
				if err != nil {
					t.Errorf("Stdio: %v", err)
				}
			case <-time.After(time.Second):
				t.Error("ServeStdio still runs after a second")
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
	server := newTestServer(f).server
	f.Fuzz(func(t *testing.T, input []byte) {
		p := startStdio(t.Context(), t, server)
		p.openSession("2025-11-25")
		go func() {
			_, _ = p.in.Write(append(input, "\n{\"jsonrpc\":\"2.0\",\"id\":\"last\",\"method\":\"ping\"}\n"...))
			_ = p.in.Close()
		}()
		for l := range p.lines {
			if !json.Valid([]byte(l)) {
				t.Fatalf("the output has a line that is not JSON: %q", l)
			}
			if strings.Contains(l, `"last"`) {
				_ = p.waitForEnd(time.Second)
				return
			}
		}
		t.Fatalf("the session ended at %q", input)
	})
}
