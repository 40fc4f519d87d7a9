package upstream_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/gateway/upstream"
)

// sseServer is a hand-written server for the transport of 2024-11-05.
type sseServer struct {
	// first is the first event of a stream; "" sends an endpoint.
	first string
	// took is called for each tool call and returns an HTTP status, or 0 for "202
	// Accepted". say sends an event on the stream, and cut closes the stream.
	took func(method, id string, say func(string), cut func()) int

	mu      sync.Mutex
	streams map[string]chan string
	opened  atomic.Int32
	calls   atomic.Int32
}

func (f *sseServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		f.serveStream(w, r)
		return
	}
	f.mu.Lock()
	out := f.streams[r.URL.Query().Get("s")]
	f.mu.Unlock()
	if out == nil {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	var m struct {
		ID     json.RawMessage
		Method string
	}
	_ = json.NewDecoder(r.Body).Decode(&m)
	say := func(text string) { out <- "event: message\ndata: " + text + "\n\n" }
	cut := func() { close(out) }
	switch {
	case m.Method == "initialize":
		say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2024-11-05","capabilities":{"tools":{}},"serverInfo":{"name":"old","version":"1"}}}`, m.ID))
	case m.Method == "tools/call":
		f.calls.Add(1)
		if status := f.took(m.Method, string(m.ID), say, cut); status != 0 {
			w.WriteHeader(status)
			return
		}
	}
	w.WriteHeader(http.StatusAccepted)
}

func (f *sseServer) serveStream(w http.ResponseWriter, r *http.Request) {
	id := fmt.Sprint(f.opened.Add(1))
	out := make(chan string, 16)
	f.mu.Lock()
	if f.streams == nil {
		f.streams = map[string]chan string{}
	}
	f.streams[id] = out
	f.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	first := f.first
	if first == "" {
		first = ": welcome\n\nevent: endpoint\ndata: messages?s=" + id + "\n\n"
	}
	fmt.Fprint(w, first)
	w.(http.Flusher).Flush()
	for {
		select {
		case text, ok := <-out:
			if !ok {
				return
			}
			fmt.Fprint(w, text)
			w.(http.Flusher).Flush()
		case <-r.Context().Done():
			return
		}
	}
}

func (f *sseServer) openUpstream(t *testing.T) *upstream.Upstream {
	t.Helper()
	srv := serveHTTP(t, f)
	return openUpstream(t, upstream.Spec{Name: "old", URL: srv.URL + "/sse", Transport: upstream.TransportSSE, Timeout: config.UpstreamTime(20 * time.Second)},
		upstream.Options{StartTime: 5 * time.Second, MaxMessageBytes: 1 << 16})
}

func answerLine(id, text string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":%q}]}}`, id, text)
}

// A stream that is cut during a call fails the call, with an error that the outcome is
// unknown. The call is not sent again, and the next call opens a new stream.
func TestSSEStreamIsCut(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	broken.Store(true)
	f := &sseServer{took: func(_, id string, say func(string), cut func()) int {
		if broken.Swap(false) {
			say(`{"jsonrpc":"2.0","method":"notifications/message","params":{}}`)
			cut()
			return 0
		}
		say(answerLine(id, "again"))
		return 0
	}}
	u := f.openUpstream(t)
	s, done, err := u.Session(t.Context(), upstream.Want{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Do(t.Context(), toolCall("any", nil))
	done()
	var none *upstream.NoAnswer
	if !errors.As(err, &none) || none.Late || !strings.Contains(err.Error(), "unknown") || f.calls.Load() != 1 {
		t.Errorf("the error is %v after %d calls", err, f.calls.Load())
	}
	<-s.Done()
	if got := callText(t, openSession(t, u, upstream.Want{}), toolCall("any", nil)); got != "again" || f.calls.Load() != 2 || f.opened.Load() != 2 {
		t.Errorf("then: %q, %d calls, %d streams", got, f.calls.Load(), f.opened.Load())
	}
}

// A refused message fails its own call immediately, and no other call.
func TestSSERefusesMessage(t *testing.T) {
	t.Parallel()
	for status, code := range map[int]guideway.Code{
		http.StatusUnauthorized: guideway.CodeUnauthorized, http.StatusForbidden: guideway.CodeUnauthorized,
		http.StatusInternalServerError: guideway.CodeInternal, http.StatusNotFound: guideway.CodeInternal,
	} {
		f := &sseServer{}
		held := make(chan func(), 1)
		f.took = func(_, id string, say func(string), _ func()) int {
			if f.calls.Load() == 1 {
				held <- func() { say(answerLine(id, "slow")) }
				return 0
			}
			return status
		}
		s := openSession(t, f.openUpstream(t), upstream.Want{})
		slow := make(chan string, 1)
		go func() {
			result, err := s.Do(t.Context(), toolCall("slow", nil))
			slow <- fmt.Sprint(string(result), err)
		}()
		answer := <-held
		_, err := s.Do(t.Context(), toolCall("any", nil))
		if err == nil || guideway.ErrorCode(err) != code || !strings.Contains(err.Error(), fmt.Sprint(status)) {
			t.Errorf("%d: %v", status, err)
		}
		answer()
		if got := <-slow; !strings.Contains(got, "slow") {
			t.Errorf("%d: the other call returned %s", status, got)
		}
	}
}

// TestHostileSSEServers checks that a stream is refused if its first event is not an
// endpoint on its own origin. A later event with another endpoint is ignored.
func TestHostileSSEServers(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]string{
		"no address first": "event: message\ndata: {}\n\n", "another host": "event: endpoint\ndata: https://evil.example/x\n\n",
		"another scheme": "event: endpoint\ndata: file:///etc/passwd\n\n", "a password": "event: endpoint\ndata: http://me:you@127.0.0.1/x\n\n",
		"too long": "event: endpoint\ndata: /" + strings.Repeat("x", 1<<17) + "\n\n", "no host": "event: endpoint\ndata: http://%zz\n\n",
	} {
		f := &sseServer{first: first}
		if _, _, err := f.openUpstream(t).Session(t.Context(), upstream.Want{}); err == nil || f.opened.Load() != 1 {
			t.Errorf("%s: %v, %d streams", name, err, f.opened.Load())
		}
	}
	f := &sseServer{took: func(_, id string, say func(string), _ func()) int {
		say("1\n\nevent: endpoint\ndata: https://evil.example/x\n\ndata: " + answerLine("77", "nobody's"))
		say(answerLine(id, "still here"))
		return 0
	}}
	s := openSession(t, f.openUpstream(t), upstream.Want{})
	for range 2 {
		if got := callText(t, s, toolCall("any", nil)); got != "still here" {
			t.Errorf("the error is %q", got)
		}
	}
}

// If a server with several sessions exits, this counts as one failure, and the server is
// restarted immediately.
func TestOneFailureOfManySessions(t *testing.T) {
	t.Parallel()
	f := &sseServer{took: func(_, id string, say func(string), _ func()) int {
		say(answerLine(id, "here"))
		return 0
	}}
	srv := serveHTTP(t, f)
	u := openUpstream(t, upstream.Spec{Name: "old", URL: srv.URL + "/sse", Transport: upstream.TransportSSE}, upstream.Options{StartTime: 5 * time.Second})
	var all []*upstream.Session
	for i := range 5 {
		all = append(all, openSession(t, u, upstream.Want{Client: fmt.Sprint("client", i)}))
	}
	srv.CloseClientConnections()
	for _, s := range all {
		<-s.Done()
	}
	if h := u.Health(); h.Failures > 1 || h.RetryAt != nil {
		t.Errorf("the health is %+v", h)
	}
	if got := callText(t, openSession(t, u, upstream.Want{}), toolCall("any", nil)); got != "here" {
		t.Errorf("then: %s", got)
	}
}

// tripFunc is an http.RoundTripper.
type tripFunc func(*http.Request) (*http.Response, error)

func (f tripFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// The answer on the stream does not cancel the POST of its call: net/http could apply the
// cancellation to the next request on the same connection.
func TestAnswerDoesNotCancelItsPost(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	f := &sseServer{took: func(_, id string, say func(string), _ func()) int {
		say(answerLine(id, "here"))
		<-release
		return 0
	}}
	srv := serveHTTP(t, f)
	base := &http.Transport{}
	t.Cleanup(base.CloseIdleConnections)
	posts := make(chan *http.Request, 10)
	u := openUpstream(t, upstream.Spec{Name: "old", URL: srv.URL + "/sse", Transport: upstream.TransportSSE}, upstream.Options{
		HTTP: tripFunc(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPost {
				posts <- r
			}
			return base.RoundTrip(r)
		}),
	})
	s := openSession(t, u, upstream.Want{Client: "a"})
	for len(posts) > 0 {
		<-posts
	}
	if got := callText(t, s, toolCall("any", nil)); got != "here" {
		t.Errorf("the call returned %s", got)
	}
	if err := (<-posts).Context().Err(); err != nil {
		t.Errorf("the POST was cancelled: %v", err)
	}
	close(release)
}

// A handshake is repeated once if its connection is lost: the connection may be an idle one
// that a restart of the server has closed.
func TestHandshakeOnClosedConnection(t *testing.T) {
	t.Parallel()
	srv := serveHTTP(t, &sseServer{})
	base := &http.Transport{}
	t.Cleanup(base.CloseIdleConnections)
	var lost atomic.Int32
	u := openUpstream(t, upstream.Spec{Name: "old", URL: srv.URL + "/sse", Transport: upstream.TransportSSE}, upstream.Options{
		HTTP: tripFunc(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPost && lost.Add(1) == 1 {
				return nil, io.EOF
			}
			return base.RoundTrip(r)
		}),
	})
	openSession(t, u, upstream.Want{})
}

// TestSSEWrongContentType checks that a response that is not an event stream is refused
// with an error that names its content type, and not its status.
func TestSSEWrongContentType(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]string{
		"text/html; charset=utf-8": `the server answered with the content type "text/html", not with a stream of events`,
		"":                         "the server answered without a content type, not with a stream of events",
	} {
		srv := serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = nil // An empty list prevents a guess from the content.
			if kind != "" {
				w.Header().Set("Content-Type", kind)
			}
			fmt.Fprint(w, "<p>")
		}))
		up := openUpstream(t, upstream.Spec{Name: "old", URL: srv.URL, Transport: upstream.TransportSSE}, upstream.Options{})
		if _, _, err := up.Session(t.Context(), upstream.Want{}); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "200") {
			t.Errorf("%q: %v", kind, err)
		}
	}
}
