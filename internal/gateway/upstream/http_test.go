package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

// sdkServer is a server of the SDK with a tool that echoes, tells of progress
// and asks.
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

func ways(server *mcp.Server) map[string]http.Handler {
	get := func(*http.Request) *mcp.Server { return server }
	return map[string]http.Handler{
		"stateful":  mcp.NewStreamableHTTPHandler(get, nil),
		"json":      mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{JSONResponse: true}),
		"stateless": mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{Stateless: true}),
		"sse":       mcp.NewSSEHandler(get, nil),
	}
}

// A server over HTTP is reached in the way that it has, whichever that is.
func TestHTTP(t *testing.T) {
	t.Parallel()
	want := map[string]string{"stateful": "2025-11-25", "json": "2025-11-25", "stateless": "2026-07-28", "sse": "2025-11-25"}
	for way, h := range ways(sdkServer()) {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			srv := serveHTTP(t, h)
			u := open(t, upstream.Spec{Name: "http", URL: srv.URL}, upstream.Options{})
			s := session(t, u, upstream.Want{})
			if got := s.Info().Version; got != want[way] {
				t.Errorf("the version is %s, want %s", got, want[way])
			}
			if got := call(t, s, tool("echo", args{"text": "hi é\n"})); got != "hi é\n" {
				t.Errorf("echo: %q", got)
			}
			c, err := u.Refresh(t.Context())
			if err != nil || len(c.Tools) != 1 {
				t.Errorf("the catalog is %+v, %v", c, err)
			}
			if way == "json" { // it has no way for notifications
				return
			}
			told := 0
			with := tool("echo", args{"text": "x"})
			with.Notify = func(method string, _ json.RawMessage) { told++ }
			if got := call(t, s, with); got != "x" || told != 1 {
				t.Errorf("with progress: %q, told %d times", got, told)
			}
		})
	}
}

// What a server asks on the way of a call over HTTP is that call's.
func TestQuestionOverHTTP(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"stateful", "sse"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			srv := serveHTTP(t, ways(sdkServer())[way])
			u := open(t, upstream.Spec{Name: "http", URL: srv.URL}, upstream.Options{})
			ask := func(_ context.Context, _ string, params json.RawMessage) (json.RawMessage, *jsonrpc.Error) {
				if !strings.Contains(string(params), "sure?") {
					t.Errorf("asked %s", params)
				}
				return json.RawMessage(`{"action":"decline"}`), nil
			}
			s := session(t, u, upstream.Want{Client: "ann", Capabilities: json.RawMessage(`{"elicitation":{}}`), Ask: ask})
			if got := call(t, s, tool("echo", args{"ask": "sure?"})); got != "decline" {
				t.Errorf("echo: %q", got)
			}
		})
	}
}

// rough is a server over HTTP that does as it is told.
func rough(answer func(w http.ResponseWriter, r *http.Request, method, id string)) http.Handler {
	return accepting(func(w http.ResponseWriter, r *http.Request) {
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

// A stream that breaks is taken up where it was; the call is not sent again.
func TestBrokenStream(t *testing.T) {
	t.Parallel()
	var calls, resumed atomic.Int32
	srv := serveHTTP(t, rough(func(w http.ResponseWriter, r *http.Request, method, id string) {
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
	s := session(t, open(t, upstream.Spec{Name: "r", URL: srv.URL}, upstream.Options{}), upstream.Want{})
	if got := call(t, s, tool("any", nil)); got != "late" || calls.Load() != 1 || resumed.Load() != 1 {
		t.Errorf("got %q after %d calls and %d resumptions", got, calls.Load(), resumed.Load())
	}
}

// Bad answers over HTTP are errors, and each call is sent once.
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
		}, "neither JSON nor events"},
		"large": {func(w http.ResponseWriter, _ *http.Request, _, _ string) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, strings.Repeat(" ", 1<<20))
		}, "larger than"},
		"wrong id": {func(w http.ResponseWriter, _ *http.Request, _, id string) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s1,"result":{}}`, id)
		}, "wrong id"},
		"forbidden": {func(w http.ResponseWriter, _ *http.Request, _, _ string) { w.WriteHeader(http.StatusForbidden) }, "403"},
		"broken off": {func(w http.ResponseWriter, _ *http.Request, _, _ string) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "data: {\"jsonrpc\"")
		}, "broken off"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int32
			srv := serveHTTP(t, rough(func(w http.ResponseWriter, r *http.Request, method, id string) {
				if method != "tools/call" {
					w.WriteHeader(http.StatusMethodNotAllowed)
					return
				}
				calls.Add(1)
				c.answer(w, r, method, id)
			}))
			spec := upstream.Spec{Name: "r", URL: srv.URL, Transport: upstream.TransportHTTP}
			s := session(t, open(t, spec, upstream.Options{MaxMessageBytes: 1 << 16}), upstream.Want{})
			_, err := s.Do(t.Context(), tool("any", nil))
			if err == nil || !strings.Contains(err.Error(), c.want) || calls.Load() != 1 {
				t.Errorf("the error is %v after %d calls, want %q", err, calls.Load(), c.want)
			}
		})
	}
}

// accepting takes notifications.
func accepting(h http.HandlerFunc) http.Handler {
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

// Credentials go to their own host and to no other.
func TestCredentialsStay(t *testing.T) {
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
		_, _, err := open(t, spec, upstream.Options{StartTime: 5 * time.Second}).Session(t.Context(), upstream.Want{})
		if err == nil || strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "t0ken") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if leaked.Load() > 0 {
		t.Error("credentials went to another host")
	}
}

// A server that was started anew does not know our session. Whether it says so by 404 or
// by 400, the call was not taken, and the next one has a new session; a call that is
// only bad ends none.
func TestForgottenSession(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusNotFound, http.StatusBadRequest} {
		var life, calls atomic.Int32
		release := make(chan struct{})
		srv := serveHTTP(t, accepting(func(w http.ResponseWriter, r *http.Request) {
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
		u := open(t, upstream.Spec{Name: "r", URL: srv.URL, Protocol: "2025-11-25"}, upstream.Options{})
		s := session(t, u, upstream.Want{})
		slow := make(chan string, 1)
		go func() {
			result, err := s.Do(t.Context(), tool("slow", nil))
			slow <- fmt.Sprint(string(result), err)
		}()
		if _, err := s.Do(t.Context(), tool("bad", nil)); err == nil || !strings.Contains(err.Error(), "400") {
			t.Errorf("a bad call: %v", err)
		}
		close(release)
		if got := <-slow; !strings.Contains(got, "done") {
			t.Errorf("the call beside a bad one: %s", got)
		}
		life.Add(1)
		before := calls.Load()
		_, err := s.Do(t.Context(), tool("any", nil))
		var gone *upstream.GoneError
		if !errors.As(err, &gone) || guideway.ErrorFix(err) == "" || calls.Load() != before {
			t.Errorf("%d: after a restart: %v, %d calls", status, err, calls.Load()-before)
		}
		<-s.Done()
		if got := call(t, session(t, u, upstream.Want{}), tool("any", nil)); got != "done" || calls.Load() != before+1 {
			t.Errorf("%d: then: %s, %d calls", status, got, calls.Load()-before)
		}
	}
}

// What a call over HTTP says of a connection that is not there, or that breaks, is
// whether it may have been done.
func TestBrokenConnection(t *testing.T) {
	t.Parallel()
	srv := serveHTTP(t, rough(func(w http.ResponseWriter, r *http.Request, method, _ string) {
		if method != "tools/call" {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		panic(http.ErrAbortHandler)
	}))
	// A connection that was kept would break, too, and nobody knew what it had carried.
	base := &http.Transport{DisableKeepAlives: true}
	s := session(t, open(t, upstream.Spec{Name: "r", URL: srv.URL}, upstream.Options{HTTP: base}), upstream.Want{})
	_, err := s.Do(t.Context(), tool("any", nil))
	var none *upstream.NoAnswer
	if !errors.As(err, &none) || none.Late || !strings.Contains(err.Error(), "not known") {
		t.Errorf("broken in the midst: %v", err)
	}
	srv.CloseClientConnections()
	srv.Close()
	_, err = s.Do(t.Context(), tool("any", nil))
	var gone *upstream.GoneError
	if !errors.As(err, &gone) || strings.Contains(err.Error(), "not known") || strings.Contains(err.Error(), srv.URL) {
		t.Errorf("not there: %v", err)
	}
}

// What a server of 2024-11-05 offers is kept from one start to the next, also where it
// was found out that it is one.
func TestFoundFeedIsKept(t *testing.T) {
	t.Parallel()
	srv := serveHTTP(t, ways(sdkServer())["sse"])
	spec, dir := upstream.Spec{Name: "old", URL: srv.URL}, t.TempDir()
	if _, err := open(t, spec, upstream.Options{CacheDir: dir}).Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c := upstream.Cached(dir, spec); c == nil || len(c.Tools) != 1 {
		t.Errorf("what is kept: %+v", c)
	}
}

// A call whose answer has broken off, and cannot be taken up again because the server is
// gone, was sent: nobody is told that it was not.
func TestBrokenOffForGood(t *testing.T) {
	t.Parallel()
	var srv *httptest.Server
	gone := make(chan struct{})
	srv = httptest.NewServer(rough(func(w http.ResponseWriter, r *http.Request, method, id string) {
		if method != "tools/call" {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "id: 7\nretry: 1\ndata:\n\n")
		_ = srv.Listener.Close() // nothing is reached any more
		close(gone)
	}))
	defer srv.Close()
	base := &http.Transport{DisableKeepAlives: true}
	s := session(t, open(t, upstream.Spec{Name: "r", URL: srv.URL, Protocol: "2025-11-25"}, upstream.Options{HTTP: base}), upstream.Want{})
	_, err := s.Do(t.Context(), tool("any", nil))
	<-gone
	var none *upstream.NoAnswer
	if errors.As(err, new(*upstream.GoneError)) || !errors.As(err, &none) || !strings.Contains(err.Error(), "not known") {
		t.Errorf("the error is %v", err)
	}
}
