package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
	"github.com/guideway-dev/guideway/internal/gateway/upstream"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// sdkServer returns an SDK server with a tool that echoes, reports progress and asks a
// question.
func sdkServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "sdk", Version: "1"}, nil)
	s.AddTool(&mcp.Tool{Name: "echo", InputSchema: map[string]any{"type": "object"}}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if token := req.Params.GetProgressToken(); token != nil {
			_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: 1, Message: "half"})
		}
		var in struct{ Text, Ask string }
		_ = json.Unmarshal(req.Params.Arguments, &in)
		if in.Ask != "" {
			answer, err := req.Session.Elicit(ctx, &mcp.ElicitParams{Message: in.Ask, RequestedSchema: map[string]any{"type": "object"}})
			if err != nil {
				return nil, err
			}
			in.Text = answer.Action
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: in.Text}}}, nil
	})
	return s
}

func serveHTTP(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	return srv
}

func serverHandlers(server *mcp.Server) map[string]http.Handler {
	get := func(*http.Request) *mcp.Server { return server }
	return map[string]http.Handler{
		"stateful":  mcp.NewStreamableHTTPHandler(get, nil),
		"json":      mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{JSONResponse: true}),
		"stateless": mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{Stateless: true}),
		"sse":       mcp.NewSSEHandler(get, nil),
	}
}

// TestHTTP checks the protocol version, a call, the catalog and progress with each kind of
// HTTP server.
func TestHTTP(t *testing.T) {
	t.Parallel()
	want := map[string]string{"stateful": "2025-11-25", "json": "2025-11-25", "stateless": "2026-07-28", "sse": "2025-11-25"}
	for way, h := range serverHandlers(sdkServer()) {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			srv := serveHTTP(t, h)
			u := openUpstream(t, upstream.Spec{Name: "http", URL: srv.URL}, upstream.Options{})
			s := openSession(t, u, upstream.Want{})
			if got := s.Info().Version; got != want[way] {
				t.Errorf("the version is %s, want %s", got, want[way])
			}
			if got := callText(t, s, toolCall("echo", args{"text": "hi é\n"})); got != "hi é\n" {
				t.Errorf("echo: %q", got)
			}
			c, err := u.Refresh(t.Context(), upstream.Want{})
			if err != nil || len(c.Tools) != 1 {
				t.Errorf("the catalog is %+v, %v", c, err)
			}
			if way == "json" { // this kind of server has no stream for notifications
				return
			}
			told := 0
			with := toolCall("echo", args{"text": "x"})
			with.Progress = true
			with.Notify = func(method string, _ json.RawMessage) { told++ }
			if got := callText(t, s, with); got != "x" || told != 1 {
				t.Errorf("the call with progress returned %q after %d notifications", got, told)
			}
		})
	}
}

// TestQuestionOverHTTP checks that a question during a call over HTTP reaches the client,
// and that the answer reaches the server.
func TestQuestionOverHTTP(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"stateful", "sse"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			srv := serveHTTP(t, serverHandlers(sdkServer())[way])
			u := openUpstream(t, upstream.Spec{Name: "http", URL: srv.URL}, upstream.Options{})
			ask := func(_ context.Context, _ string, params json.RawMessage) (json.RawMessage, *jsonrpc.Error) {
				if !strings.Contains(string(params), "sure?") {
					t.Errorf("asked %s", params)
				}
				return json.RawMessage(`{"action":"decline"}`), nil
			}
			s := openSession(t, u, upstream.Want{Client: "ann", Capabilities: json.RawMessage(`{"elicitation":{}}`), Ask: ask})
			if got := callText(t, s, toolCall("echo", args{"ask": "sure?"})); got != "decline" {
				t.Errorf("echo: %q", got)
			}
		})
	}
}

// scriptedServer returns a handler that accepts notifications, answers initialize and
// passes all other requests to answer.
func scriptedServer(answer func(w http.ResponseWriter, r *http.Request, method, id string)) http.Handler {
	return acceptNotifications(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var m struct {
			ID     json.RawMessage
			Method string
		}
		_ = json.Unmarshal(body, &m)
		if m.Method == "initialize" {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"r","version":"1"}}}`, m.ID)
			return
		}
		answer(w, r, m.Method, string(m.ID))
	})
}

// A broken stream is resumed; the call is not sent again.
func TestBrokenStream(t *testing.T) {
	t.Parallel()
	var calls, resumed atomic.Int32
	srv := serveHTTP(t, scriptedServer(func(w http.ResponseWriter, r *http.Request, method, id string) {
		switch {
		case method == "tools/call":
			calls.Add(1)
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "id: %s\nretry: 1\ndata:\n\n", id)
		case r.Method == http.MethodGet && r.Header.Get("Last-Event-Id") != "":
			resumed.Add(1)
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\ndata: \"result\":{\"content\":[{\"type\":\"text\",\"text\":\"late\"}]}}\n\n", r.Header.Get("Last-Event-Id"))
		default:
			w.WriteHeader(http.StatusMethodNotAllowed)
		}
	}))
	s := openSession(t, openUpstream(t, upstream.Spec{Name: "r", URL: srv.URL}, upstream.Options{}), upstream.Want{})
	if got := callText(t, s, toolCall("any", nil)); got != "late" || calls.Load() != 1 || resumed.Load() != 1 {
		t.Errorf("got %q after %d calls and %d resumptions", got, calls.Load(), resumed.Load())
	}
}

// Invalid answers over HTTP are errors, and each call is sent once.
func TestBadHTTPAnswers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer func(w http.ResponseWriter, r *http.Request, method, id string)
		want   string
	}{
		"status": {func(w http.ResponseWriter, _ *http.Request, _, _ string) { w.WriteHeader(http.StatusBadGateway) }, "502"},
		"html": {func(w http.ResponseWriter, _ *http.Request, _, _ string) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<p>")
		}, "not with JSON or a stream of events"},
		"large": {func(w http.ResponseWriter, _ *http.Request, _, _ string) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, strings.Repeat(" ", 1<<20))
		}, "larger than"},
		"wrong id": {func(w http.ResponseWriter, _ *http.Request, _, id string) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s1,"result":{}}`, id)
		}, "wrong id"},
		"forbidden": {func(w http.ResponseWriter, _ *http.Request, _, _ string) { w.WriteHeader(http.StatusForbidden) }, "403"},
		"accepted":  {func(w http.ResponseWriter, _ *http.Request, _, _ string) { w.WriteHeader(http.StatusAccepted) }, "gave no answer to the call, only the status 202 Accepted"},
		"half": {func(w http.ResponseWriter, _ *http.Request, _, _ string) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, `{"jsonrpc"`)
		}, "cut off"},
		"broke off": {func(w http.ResponseWriter, _ *http.Request, _, _ string) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "data: {\"jsonrpc\"")
		}, "cut off"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int32
			srv := serveHTTP(t, scriptedServer(func(w http.ResponseWriter, r *http.Request, method, id string) {
				if method != "tools/call" {
					w.WriteHeader(http.StatusMethodNotAllowed)
					return
				}
				calls.Add(1)
				c.answer(w, r, method, id)
			}))
			spec := upstream.Spec{Name: "r", URL: srv.URL, Transport: upstream.TransportHTTP}
			s := openSession(t, openUpstream(t, spec, upstream.Options{MaxMessageBytes: 1 << 16}), upstream.Want{})
			_, err := s.Do(t.Context(), toolCall("any", nil))
			if err == nil || !strings.Contains(err.Error(), c.want) || calls.Load() != 1 {
				t.Errorf("the error is %v after %d calls, want %q", err, calls.Load(), c.want)
			}
		})
	}
}

// acceptNotifications returns a handler that accepts notifications and passes all other
// requests to h.
func acceptNotifications(h http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), `"notifications/`) {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		h(w, r)
	})
}

// Credentials are sent to their own host only.
func TestCredentialsStayOnTheirHost(t *testing.T) {
	t.Parallel()
	var leaked atomic.Int32
	evil := serveHTTP(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Key") != "" || r.Header.Get("Authorization") != "" {
			leaked.Add(1)
		}
	}))
	for name, h := range map[string]http.Handler{
		"redirect": http.RedirectHandler(evil.URL, http.StatusTemporaryRedirect),
		"endpoint": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodGet {
				w.WriteHeader(http.StatusMethodNotAllowed)
				return
			}
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "event: endpoint\ndata: %s/post\n\n", evil.URL)
		}),
	} {
		srv := serveHTTP(t, h)
		spec := upstream.Spec{Name: "x", URL: srv.URL, Headers: map[string]string{"X-Key": "s3cret"}, Bearer: "t0ken"}
		_, _, err := openUpstream(t, spec, upstream.Options{StartTime: 5 * time.Second}).Session(t.Context(), upstream.Want{})
		if err == nil || strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "t0ken") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if leaked.Load() > 0 {
		t.Error("credentials were sent to another host")
	}
}

// A restarted server does not know the session. Whether it answers 404 or 400, the call had
// no effect, and the next one uses a new session. A bad call does not end a session.
func TestLostSession(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusNotFound, http.StatusBadRequest} {
		var life, calls atomic.Int32
		release := make(chan struct{})
		srv := serveHTTP(t, acceptNotifications(func(w http.ResponseWriter, r *http.Request) {
			session := fmt.Sprint("life-", life.Load())
			var m struct {
				ID     json.RawMessage
				Method string
				Params struct{ Name string }
			}
			_ = json.NewDecoder(r.Body).Decode(&m)
			w.Header().Set("Content-Type", "application/json")
			switch {
			case m.Method == "initialize":
				w.Header().Set("Mcp-Session-Id", session)
				fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"r","version":"1"}}}`, m.ID)
			case r.Method != http.MethodPost:
				w.WriteHeader(http.StatusMethodNotAllowed)
			case r.Header.Get("Mcp-Session-Id") != session:
				w.WriteHeader(status)
				fmt.Fprint(w, `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}`)
			case m.Params.Name == "bad":
				w.WriteHeader(http.StatusBadRequest)
			case m.Params.Name == "slow":
				<-release
				fallthrough
			default:
				calls.Add(1)
				fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"done"}]}}`, m.ID)
			}
		}))
		u := openUpstream(t, upstream.Spec{Name: "r", URL: srv.URL, Protocol: "2025-11-25"}, upstream.Options{})
		s := openSession(t, u, upstream.Want{})
		slow := make(chan string, 1)
		go func() {
			result, err := s.Do(t.Context(), toolCall("slow", nil))
			slow <- fmt.Sprint(string(result), err)
		}()
		if _, err := s.Do(t.Context(), toolCall("bad", nil)); err == nil || !strings.Contains(err.Error(), "400") {
			t.Errorf("the bad call returned %v", err)
		}
		close(release)
		if got := <-slow; !strings.Contains(got, "done") {
			t.Errorf("the call concurrent with a bad one returned %s", got)
		}
		life.Add(1)
		before := calls.Load()
		_, err := s.Do(t.Context(), toolCall("any", nil))
		var gone *upstream.GoneError
		if !errors.As(err, &gone) || guideway.ErrorFix(err) == "" || calls.Load() != before {
			t.Errorf("%d: after a restart: %v, %d calls", status, err, calls.Load()-before)
		}
		<-s.Done()
		if got := callText(t, openSession(t, u, upstream.Want{}), toolCall("any", nil)); got != "done" || calls.Load() != before+1 {
			t.Errorf("%d: then: %s, %d calls", status, got, calls.Load()-before)
		}
	}
}

// The error of a call over a missing or broken connection states correctly whether the call
// may have been carried out.
func TestBrokenConnection(t *testing.T) {
	t.Parallel()
	srv := serveHTTP(t, scriptedServer(func(w http.ResponseWriter, r *http.Request, method, _ string) {
		if method != "tools/call" {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		panic(http.ErrAbortHandler)
	}))
	// A reused connection would break too, and it would be unknown whether the call was
	// sent.
	base := &http.Transport{DisableKeepAlives: true}
	s := openSession(t, openUpstream(t, upstream.Spec{Name: "r", URL: srv.URL}, upstream.Options{HTTP: base}), upstream.Want{})
	_, err := s.Do(t.Context(), toolCall("any", nil))
	var none *upstream.NoAnswer
	if !errors.As(err, &none) || none.Late || !strings.Contains(err.Error(), "unknown") {
		t.Errorf("over a broken connection the call returned %v", err)
	}
	srv.CloseClientConnections()
	srv.Close()
	_, err = s.Do(t.Context(), toolCall("any", nil))
	var gone *upstream.GoneError
	if !errors.As(err, &gone) || strings.Contains(err.Error(), "unknown") || strings.Contains(err.Error(), srv.URL) {
		t.Errorf("without a server the call returned %v", err)
	}
}

// The catalog of a 2024-11-05 server is cached between starts, even if its transport was
// detected.
func TestDetectedSSECatalogIsCached(t *testing.T) {
	t.Parallel()
	srv := serveHTTP(t, serverHandlers(sdkServer())["sse"])
	spec, dir := upstream.Spec{Name: "old", URL: srv.URL}, t.TempDir()
	if _, err := openUpstream(t, spec, upstream.Options{CacheDir: dir}).Refresh(t.Context(), upstream.Want{}); err != nil {
		t.Fatal(err)
	}
	if c := upstream.Cached(dir, spec); c == nil || len(c.Tools) != 1 {
		t.Errorf("the cached catalog is %+v", c)
	}
}

// TestBrokenOffForGood checks that the error states that the outcome is unknown if the
// stream of a call breaks and cannot be resumed because the server has ended.
func TestBrokenOffForGood(t *testing.T) {
	t.Parallel()
	var srv *httptest.Server
	gone := make(chan struct{})
	srv = httptest.NewServer(scriptedServer(func(w http.ResponseWriter, r *http.Request, method, id string) {
		if method != "tools/call" {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "id: 7\nretry: 1\ndata:\n\n")
		_ = srv.Listener.Close() // the server is unreachable from now on
		close(gone)
	}))
	defer srv.Close()
	base := &http.Transport{DisableKeepAlives: true}
	s := openSession(t, openUpstream(t, upstream.Spec{Name: "r", URL: srv.URL, Protocol: "2025-11-25"}, upstream.Options{HTTP: base}), upstream.Want{})
	_, err := s.Do(t.Context(), toolCall("any", nil))
	<-gone
	var none *upstream.NoAnswer
	if errors.As(err, new(*upstream.GoneError)) || !errors.As(err, &none) || !strings.Contains(err.Error(), "unknown") {
		t.Errorf("the error is %v", err)
	}
}

// TestRefusedStartIsNotRetried checks that a start over a redirect to another host, without
// a trusted certificate or with an invalid header is tried once and fails with the
// cause, because another attempt would fail too.
func TestRefusedStartIsNotRetried(t *testing.T) {
	t.Parallel()
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	secure.StartTLS()
	t.Cleanup(secure.Close)
	var posts atomic.Int32
	away := serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body, _ := io.ReadAll(r.Body); strings.Contains(string(body), `"initialize"`) {
			posts.Add(1)
		}
		http.Redirect(w, r, secure.URL, http.StatusTemporaryRedirect)
	}))
	for name, c := range map[string]struct {
		spec upstream.Spec
		want string
	}{
		"redirect":         {upstream.Spec{URL: away.URL}, "redirects to another host or scheme, " + secure.URL},
		"certificate":      {upstream.Spec{URL: secure.URL}, "no TLS connection to the server could be established: x509: "},
		"no TLS":           {upstream.Spec{URL: strings.Replace(away.URL, "http:", "https:", 1)}, "no TLS connection to the server could be established: "},
		"header with line": {upstream.Spec{URL: away.URL, Headers: map[string]string{"X-Key": "a\nb"}}, "the request was not sent: "},
	} {
		c.spec.Name, c.spec.Protocol = "r", "2025-11-25"
		_, _, err := openUpstream(t, c.spec, upstream.Options{}).Session(t.Context(), upstream.Want{})
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "is unknown") || guideway.ErrorFix(err) == "" {
			t.Errorf("%s: the error is %v (%s)", name, err, guideway.ErrorFix(err))
		}
	}
	if n := posts.Load(); n != 1 {
		t.Errorf("the redirecting server got %d requests", n)
	}
}
