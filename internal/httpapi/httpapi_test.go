package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/hooks/sandbox/worker"
	"github.com/guideway-dev/guideway/internal/httpapi"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"go.uber.org/goleak"
)

// The test binary also serves as the script worker.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "script-worker" {
		if err := worker.Main(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

var token = strings.Repeat("t0ken", 8)

func newHandler(t *testing.T, mcp http.Handler) http.Handler {
	t.Helper()
	guard, err := auth.NewGuard(auth.GuardOptions{})
	if err != nil {
		t.Fatal(err)
	}
	bearer, err := auth.NewBearer(auth.BearerOptions{Token: token, User: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	h, err := httpapi.NewHandler(httpapi.Options{MCP: mcp, Guard: guard, Bearer: bearer})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// runningServer is a server on loopback.
type runningServer struct {
	url    string
	client *http.Client
	stop   context.CancelFunc
	done   chan error
}

func startServer(t *testing.T, handler http.Handler) *runningServer {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	transport := &http.Transport{}
	s := &runningServer{
		url: "http://" + listener.Addr().String(), client: &http.Client{Transport: transport},
		stop: stop, done: make(chan error, 1),
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.done <- httpapi.Serve(ctx, listener, handler)
	}()
	t.Cleanup(func() {
		stop()
		transport.CloseIdleConnections()
		<-ended
	})
	return s
}

// wantShutdown checks that the server ends within a second.
func (s *runningServer) wantShutdown(t *testing.T) {
	t.Helper()
	select {
	case err := <-s.done:
		if err != nil {
			t.Errorf("Serve: %v", err)
		}
	case <-time.After(time.Second):
		t.Error("the server still runs after a second")
	}
}

func echoUser(w http.ResponseWriter, r *http.Request) {
	p, _ := auth.PrincipalFrom(r.Context())
	_, _ = io.WriteString(w, "user "+p.User)
}

func TestHandler(t *testing.T) {
	t.Parallel()
	withToken := map[string]string{"Authorization": "Bearer " + token}
	tests := []struct {
		name, method, path, host string
		header                   map[string]string
		status                   int
		body                     string
		code                     guideway.Code
	}{
		{name: "mcp", method: "POST", path: "/mcp", header: withToken, status: 200, body: "user ann"},
		{name: "mcp GET", method: "GET", path: "/mcp", header: withToken, status: 200, body: "user ann"},
		{name: "mcp without a token", method: "POST", path: "/mcp", status: 401, code: guideway.CodeUnauthorized},
		{name: "mcp with the token in the query", method: "POST", path: "/mcp?token=" + token, status: 401, code: guideway.CodeUnauthorized},
		{name: "mcp OPTIONS without a token", method: "OPTIONS", path: "/mcp", status: 401, code: guideway.CodeUnauthorized},
		{name: "mcp below", method: "POST", path: "/mcp/x", header: withToken, status: 404, code: guideway.CodeNotFound},
		{name: "health", method: "GET", path: "/api/health", status: 200, body: `{"status":"ok"}` + "\n"},
		{name: "health HEAD", method: "HEAD", path: "/api/health", status: 200},
		{name: "health with a challenge that is too short", method: "GET", path: "/api/health?challenge=x", status: 400, code: guideway.CodeInvalid},
		{name: "health POST", method: "POST", path: "/api/health", status: 405, code: guideway.CodeInvalid},
		{name: "health for any host", method: "GET", path: "/api/health", host: "balancer.example", status: 200, body: `{"status":"ok"}` + "\n"},
		{name: "a challenge for an evil host", method: "GET", path: "/api/health?challenge=0123456789abcdef", host: "evil.example", status: 403, code: guideway.CodeForbidden},
		{name: "ready for any host", method: "GET", path: "/api/ready", host: "balancer.example", status: 200, body: `{"status":"ready"}` + "\n"},
		{name: "ready with a query for an evil host", method: "GET", path: "/api/ready?x=1", host: "evil.example", status: 403, code: guideway.CodeForbidden},
		{name: "ready for an evil page", method: "GET", path: "/api/ready", header: map[string]string{"Origin": "http://evil.example"}, status: 403, code: guideway.CodeForbidden},
		{name: "health for an evil page", method: "GET", path: "/api/health", header: map[string]string{"Origin": "http://evil.example"}, status: 403, code: guideway.CodeForbidden},
		{name: "api without a token", method: "GET", path: "/api/runs", status: 401, code: guideway.CodeUnauthorized},
		{name: "api unknown", method: "GET", path: "/api/none", header: withToken, status: 404, code: guideway.CodeNotFound},
		{name: "api itself", method: "GET", path: "/api", header: withToken, status: 404, code: guideway.CodeNotFound},
		{name: "a path with dots", method: "GET", path: "/api/../api/health", status: 404, code: guideway.CodeNotFound},
		{name: "a path with a dot and a token", method: "GET", path: "/api/./runs", header: withToken, status: 404, code: guideway.CodeNotFound},
		{name: "a path with two slashes", method: "POST", path: "//mcp", header: withToken, status: 404, code: guideway.CodeNotFound},
		{name: "a path that ends in dots", method: "GET", path: "/api/runs/..", header: withToken, status: 404, code: guideway.CodeNotFound},
		{name: "a slash at the end", method: "GET", path: "/api/none/", header: withToken, status: 404, code: guideway.CodeNotFound},
		{name: "root", method: "GET", path: "/", status: 404, code: guideway.CodeNotFound},
		{name: "root for an evil host", method: "GET", path: "/", host: "evil.example", status: 403, code: guideway.CodeForbidden},
	}
	s := startServer(t, newHandler(t, http.HandlerFunc(echoUser)))
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := http.NewRequestWithContext(t.Context(), tt.method, s.url+tt.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Host = tt.host
			for k, v := range tt.header {
				r.Header.Set(k, v)
			}
			resp, err := s.client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if err != nil {
				t.Fatal(err)
			}
			if resp.StatusCode != tt.status || (tt.code == "" && string(body) != tt.body) {
				t.Errorf("%d %s, want %d %s", resp.StatusCode, body, tt.status, tt.body)
			}
			if tt.code != "" && !strings.Contains(string(body), `"code":"`+string(tt.code)+`"`) {
				t.Errorf("the body is %s, want code %s", body, tt.code)
			}
			if tt.code != "" && !json.Valid(body) {
				t.Errorf("the body %q is not JSON", body)
			}
			if got := resp.Header.Get("X-Content-Type-Options"); got != "nosniff" {
				t.Errorf("X-Content-Type-Options %q", got)
			}
		})
	}
	s.stop()
	s.wantShutdown(t)
}

func TestNewHandlerRequiresGuardAndBearer(t *testing.T) {
	t.Parallel()
	if _, err := httpapi.NewHandler(httpapi.Options{MCP: http.NotFoundHandler()}); err == nil {
		t.Error("NewHandler accepts a missing guard")
	}
}

// When the server shuts down, an open stream ends within a second.
func TestServeEndsOpenStreams(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	s := startServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "open\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(ended)
	}))
	resp := s.openStream(t, http.MethodGet)
	defer func() { _ = resp.Body.Close() }()
	s.stop()
	s.wantShutdown(t)
	<-ended
}

// During shutdown, a POST that is answered in time completes. One that is not answered in
// time loses its connection and does not delay the server.
func TestServeFinishesResponses(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "open\n")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-release:
			_, _ = io.WriteString(w, "answer\n")
		case <-r.Context().Done():
		}
	})
	for _, inTime := range []bool{true, false} {
		s := startServer(t, handler)
		resp := s.openStream(t, http.MethodPost)
		s.stop()
		if inTime {
			release <- struct{}{}
		}
		rest, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if answered := err == nil && string(rest) == "answer\n"; answered != inTime {
			t.Errorf("expected in time: %v, got %q, %v", inTime, rest, err)
		}
		s.wantShutdown(t)
	}
}

// openStream sends a request whose answer stays open and waits for its first line.
func (s *runningServer) openStream(t *testing.T, method string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.url, bytes.NewReader(nil))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := s.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	first := make([]byte, len("open\n"))
	if _, err := io.ReadFull(resp.Body, first); err != nil {
		t.Fatal(err)
	}
	return resp
}

func TestServeReportsAClosedListener(t *testing.T) {
	t.Parallel()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = listener.Close()
	err = httpapi.Serve(t.Context(), listener, http.NotFoundHandler())
	if guideway.ErrorCode(err) != guideway.CodeUnavailable {
		t.Errorf("Serve: %v, want unavailable", err)
	}
}
