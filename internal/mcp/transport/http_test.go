package transport_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/guideway-dev/guideway/internal/mcp/transport"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// protocolVersions are the protocol versions of the clients in the tests.
var protocolVersions = []string{"2024-11-05", "2025-11-25", transport.ModernVersion}

// startHTTP runs the handler for the user in the header X-User, as auth.Bearer does for a
// token.
func startHTTP(t *testing.T, b *testServer, opts transport.HTTPOptions) string {
	t.Helper()
	h := transport.NewHTTPHandler(b.server, opts)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if u := r.Header.Get("X-User"); u != "" {
			r = r.WithContext(auth.WithPrincipal(r.Context(), guideway.Principal{User: u}))
			r.Header.Set("Authorization", "Bearer "+u)
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		srv.CloseClientConnections()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := h.Close(ctx); err != nil {
			t.Errorf("Close: %v", err)
		}
		srv.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return srv.URL
}

// newUserClient returns an HTTP client of one user.
func newUserClient(t *testing.T, user string) *http.Client {
	t.Helper()
	base := &http.Transport{}
	t.Cleanup(base.CloseIdleConnections)
	return &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		r = r.Clone(r.Context())
		r.Header.Set("X-User", user)
		return base.RoundTrip(r)
	})}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func connectClient(t *testing.T, to mcp.Transport, version string) *mcp.ClientSession {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"ok": true}}, nil
		},
	})
	session, err := client.Connect(t.Context(), to, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatalf("connect by %s: %v", version, err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session
}

func callText(t *testing.T, session *mcp.ClientSession, tool string) string {
	t.Helper()
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: map[string]any{}})
	if err != nil {
		t.Fatalf("call %s: %v", tool, err)
	}
	if len(result.Content) != 1 {
		t.Fatalf("call %s: %d contents", tool, len(result.Content))
	}
	return result.Content[0].(*mcp.TextContent).Text
}

func checkAsk(t *testing.T, session *mcp.ClientSession) {
	t.Helper()
	if got, want := callText(t, session, "ask"), "accept true state-1"; got != want {
		t.Errorf("ask: %q, want %q", got, want)
	}
}

// TestHTTPProtocolVersions checks that clients with different protocol versions and users
// can use the same URL.
func TestHTTPProtocolVersions(t *testing.T) {
	t.Parallel()
	url := startHTTP(t, newTestServer(t), transport.HTTPOptions{})
	for _, version := range protocolVersions {
		for _, user := range []string{"ann", "bob"} {
			t.Run(version+" "+user, func(t *testing.T) {
				session := connectClient(t, &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: newUserClient(t, user)}, version)
				if got := session.InitializeResult().ProtocolVersion; got != version {
					t.Errorf("version %s, want %s", got, version)
				}
				if got, want := callText(t, session, "whoami"), user+" true"; got != want {
					t.Errorf("whoami: %q, want %q", got, want)
				}
				checkAsk(t, session)
			})
		}
	}
}

type httpRequest struct {
	method, body, user string
	header             map[string]string
}

// sendRequest sends a request and returns its status, session and the start of the body.
func sendRequest(t *testing.T, url string, req httpRequest) (status int, session, body string) {
	t.Helper()
	if req.method == "" {
		req.method = http.MethodPost
	}
	r, err := http.NewRequestWithContext(t.Context(), req.method, url, strings.NewReader(req.body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for k, v := range req.header {
		r.Header.Set(k, v)
	}
	user := req.user
	if user == "" {
		user = "ann"
	}
	resp, err := newUserClient(t, user).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 4096))
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header.Get("Mcp-Session-Id"), string(text)
}

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

// TestHTTPSessionIsBoundToItsUser checks that the id of a session gives other users no
// access.
func TestHTTPSessionIsBoundToItsUser(t *testing.T) {
	t.Parallel()
	url := startHTTP(t, newTestServer(t), transport.HTTPOptions{})
	status, session, body := sendRequest(t, url, httpRequest{body: initialize, user: "ann"})
	if status != http.StatusOK || session == "" {
		t.Fatalf("initialize: %d %s", status, body)
	}
	header := map[string]string{"Mcp-Session-Id": session, "Mcp-Protocol-Version": "2025-11-25"}
	for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
		status, _, body := sendRequest(t, url, httpRequest{method: method, body: `{"jsonrpc":"2.0","id":2,"method":"ping"}`, user: "bob", header: header})
		if status != http.StatusForbidden {
			t.Errorf("%s by another user: %d %s, want 403", method, status, body)
		}
	}
	status, _, body = sendRequest(t, url, httpRequest{body: `{"jsonrpc":"2.0","id":2,"method":"ping"}`, user: "ann", header: header})
	if status != http.StatusOK {
		t.Errorf("by its user: %d %s", status, body)
	}
	if status, _, _ = sendRequest(t, url, httpRequest{method: http.MethodDelete, user: "ann", header: header}); status != http.StatusNoContent {
		t.Errorf("DELETE by its user: %d, want 204", status)
	}
	if status, _, _ = sendRequest(t, url, httpRequest{body: `{"jsonrpc":"2.0","id":2,"method":"ping"}`, user: "ann", header: header}); status != http.StatusNotFound {
		t.Errorf("after DELETE: %d, want 404", status)
	}
}

func TestHTTPRejections(t *testing.T) {
	t.Parallel()
	url := startHTTP(t, newTestServer(t), transport.HTTPOptions{MaxBodyBytes: 4096})
	const modernPing = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`
	tests := []struct {
		name   string
		req    httpRequest
		status int
		body   string
	}{
		{"an empty body", httpRequest{}, 400, ""},
		{"garbage", httpRequest{body: "hello"}, 400, ""},
		{"text/plain", httpRequest{body: initialize, header: map[string]string{"Content-Type": "text/plain"}}, 415, ""},
		{"a huge body", httpRequest{body: strings.Repeat(" ", 5000) + initialize}, 413, `"code":-32600`},
		{"a huge modern body", httpRequest{body: strings.Repeat(" ", 5000), header: map[string]string{"Mcp-Protocol-Version": "2026-07-28"}}, 413, ""},
		{"an unknown old version", httpRequest{body: initialize, header: map[string]string{"Mcp-Protocol-Version": "2023-01-01"}}, 400, ""},
		{"an unknown new version", httpRequest{body: modernPing, header: map[string]string{"Mcp-Protocol-Version": "2099-01-01"}}, 400, "-320"},
		{"a modern body without its header", httpRequest{body: modernPing}, 400, "-32020"},
		{"a modern body with a legacy header", httpRequest{body: modernPing, header: map[string]string{"Mcp-Protocol-Version": "2025-11-25"}}, 400, "-32020"},
		{"a modern request in an unknown session", httpRequest{body: `{"jsonrpc":"2.0","id":1,"method":"ping"}`, header: map[string]string{"Mcp-Session-Id": "nope"}}, 404, ""},
		{"PUT", httpRequest{method: http.MethodPut, body: initialize}, 405, ""},
		{"GET without a session", httpRequest{method: http.MethodGet}, 400, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			status, _, body := sendRequest(t, url, tt.req)
			if status != tt.status || !strings.Contains(body, tt.body) {
				t.Errorf("%d %s, want %d with %q", status, body, tt.status, tt.body)
			}
		})
	}
}

// TestHTTPHugeChunkedBody checks that a body of unknown length is refused if it exceeds the
// limit.
func TestHTTPHugeChunkedBody(t *testing.T) {
	t.Parallel()
	url := startHTTP(t, newTestServer(t), transport.HTTPOptions{MaxBodyBytes: 4096})
	for _, header := range []string{"", "2025-11-25", "2026-07-28"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, io.LimitReader(zeroReader{}, 1<<20))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		if header != "" {
			r.Header.Set("Mcp-Protocol-Version", header)
		}
		resp, err := newUserClient(t, "ann").Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("version %q: %d, want 413", header, resp.StatusCode)
		}
	}
}

type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

func TestHTTPSessionTimeout(t *testing.T) {
	t.Parallel()
	b := newTestServer(t)
	url := startHTTP(t, b, transport.HTTPOptions{SessionTimeout: time.Millisecond})
	if status, _, body := sendRequest(t, url, httpRequest{body: initialize}); status != http.StatusOK {
		t.Fatalf("initialize: %d %s", status, body)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for session := range b.server.Sessions() {
		ended := make(chan struct{})
		go func() { _ = session.Wait(); close(ended) }()
		select {
		case <-ended:
		case <-ctx.Done():
			t.Error("an idle session has not ended")
		}
	}
}

// Closing a modern request cancels the call.
func TestHTTPModernCancellation(t *testing.T) {
	t.Parallel()
	b := newTestServer(t)
	url := startHTTP(t, b, transport.HTTPOptions{})
	session := connectClient(t, &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: newUserClient(t, "ann")}, transport.ModernVersion)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-b.started; cancel() }()
	if _, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "park", Arguments: map[string]any{}}); err == nil {
		t.Error("a cancelled call returned a result")
	}
	<-b.cancelled
}

func TestHTTPChecksHost(t *testing.T) {
	t.Parallel()
	for _, checked := range []bool{false, true} {
		h := transport.NewHTTPHandler(newTestServer(t).server, transport.HTTPOptions{HostsChecked: checked})
		srv := httptest.NewServer(h)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL, strings.NewReader("{"))
		if err != nil {
			t.Fatal(err)
		}
		r.Host = "evil.example"
		resp, err := newUserClient(t, "").Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		srv.Close()
		if forbidden := resp.StatusCode == http.StatusForbidden; forbidden == checked {
			t.Errorf("hosts checked in front: %v: status %d", checked, resp.StatusCode)
		}
	}
}
