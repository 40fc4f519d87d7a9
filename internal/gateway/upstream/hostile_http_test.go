package upstream_test

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/gateway/upstream"
)

// hostileAnswers are invalid answers to a call over HTTP, with the expected error texts.
func hostileAnswers(inside string) map[string]struct {
	answer func(w http.ResponseWriter, r *http.Request, id string)
	want   string
} {
	stream := func(w http.ResponseWriter) { w.Header().Set("Content-Type", "text/event-stream") }
	object := func(w http.ResponseWriter) { w.Header().Set("Content-Type", "application/json") }
	type answers = map[string]struct {
		answer func(w http.ResponseWriter, r *http.Request, id string)
		want   string
	}
	return answers{
		"a line without an end": {func(w http.ResponseWriter, r *http.Request, _ string) {
			stream(w)
			for r.Context().Err() == nil {
				if _, err := io.WriteString(w, strings.Repeat("x", 1<<16)); err != nil {
					return
				}
			}
		}, "larger than"},
		"an event without an end": {func(w http.ResponseWriter, r *http.Request, _ string) {
			stream(w)
			for r.Context().Err() == nil {
				if _, err := io.WriteString(w, strings.Repeat("data: x\n", 1<<12)); err != nil {
					return
				}
			}
		}, "larger than"},
		"a gzip bomb": {func(w http.ResponseWriter, _ *http.Request, id string) {
			object(w)
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			fmt.Fprintf(z, `{"jsonrpc":"2.0","id":%s,"result":{"x":"`, id)
			for range 1 << 8 {
				if _, err := io.WriteString(z, strings.Repeat("x", 1<<16)); err != nil {
					return
				}
			}
			_ = z.Close()
		}, "larger than"},
		"a body that stalls": {func(w http.ResponseWriter, r *http.Request, id string) {
			object(w)
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,`, id)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}, "did not answer within"},
		"headers that stall": {func(_ http.ResponseWriter, r *http.Request, _ string) { <-r.Context().Done() }, "did not answer within"},
		"comments alone": {func(w http.ResponseWriter, r *http.Request, _ string) {
			stream(w)
			for r.Context().Err() == nil {
				fmt.Fprint(w, ": still there\n\n")
				w.(http.Flusher).Flush()
			}
		}, "did not answer within"},
		"no answer": {func(w http.ResponseWriter, _ *http.Request, _ string) {
			object(w)
			fmt.Fprint(w, `{"jsonrpc":"2.0","method":"notifications/message","params":{}}`)
		}, "without a result"},
		"a batch": {func(w http.ResponseWriter, _ *http.Request, id string) {
			object(w)
			fmt.Fprintf(w, `[{"jsonrpc":"2.0","id":%s,"result":{}}]`, id)
		}, "the JSON is not an object"},
		"nothing": {func(w http.ResponseWriter, _ *http.Request, _ string) { object(w) }, "without a result"},
		"a redirect to an internal host": {func(w http.ResponseWriter, _ *http.Request, _ string) {
			w.Header().Set("Location", inside)
			w.WriteHeader(http.StatusTemporaryRedirect)
		}, "redirects to another host"},
		"an endless redirect": {func(w http.ResponseWriter, r *http.Request, _ string) {
			w.Header().Set("Location", r.URL.Path+"x")
			w.WriteHeader(http.StatusPermanentRedirect)
		}, "too many redirects"},
	}
}

// For every hostile answer over HTTP to one call, another call of the same session is
// answered, the error describes the answer, and no internal host is contacted.
func TestHostileAnswersOverHTTP(t *testing.T) {
	t.Parallel()
	var reached atomic.Int32
	inside := serveHTTP(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	for name, c := range hostileAnswers(inside.URL) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int32
			srv := serveHTTP(t, scriptedServer(func(w http.ResponseWriter, r *http.Request, method, id string) {
				switch {
				case method != "tools/call":
					w.WriteHeader(http.StatusMethodNotAllowed)
				case calls.Add(1) == 1 || r.URL.Path != "/":
					c.answer(w, r, id)
				default:
					w.Header().Set("Content-Type", "application/json")
					fmt.Fprint(w, answerLine(id, "well"))
				}
			}))
			spec := upstream.Spec{Name: "r", URL: srv.URL + "/", Transport: upstream.TransportHTTP}
			if strings.Contains(c.want, "within") {
				spec.Timeout = config.UpstreamTime(1500 * time.Millisecond)
			}
			s := openSession(t, openUpstream(t, spec, upstream.Options{MaxMessageBytes: 1 << 18}), upstream.Want{})
			_, err := s.Do(t.Context(), toolCall("any", nil))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, want %q", err, c.want)
			}
			if got := callText(t, s, toolCall("any", nil)); got != "well" {
				t.Errorf("then: %s", got)
			}
		})
	}
	t.Cleanup(func() {
		if reached.Load() > 0 {
			t.Error("a redirect reached the internal host")
		}
	})
}

// A session id that is not a valid header value is refused at the start. Otherwise each
// call would fail without naming the reason.
func TestInvalidSessionIDs(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"a b", "s\xc3\xa9ance", strings.Repeat("x", 8<<10), "tab\tbed"} {
		srv := serveHTTP(t, acceptNotifications(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodPost {
				w.WriteHeader(http.StatusMethodNotAllowed)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Mcp-Session-Id", id)
			fmt.Fprint(w, `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"r","version":"1"}}}`)
		}))
		u := openUpstream(t, upstream.Spec{Name: "r", URL: srv.URL, Protocol: "2025-11-25"}, upstream.Options{})
		if _, _, err := u.Session(t.Context(), upstream.Want{}); err == nil || !strings.Contains(err.Error(), "session id") {
			t.Errorf("%.20q: %v", id, err)
		}
	}
}

// TestNotificationsAreBounded checks that a call is answered although the server sends
// notifications of 10 MB, and that the caller gets at most 1 MiB of them.
func TestNotificationsAreBounded(t *testing.T) {
	t.Parallel()
	s := openSession(t, openUpstream(t, ownSpec(t, "vile"), upstream.Options{}), upstream.Want{})
	c := toolCall("shout", nil)
	c.Logs = true
	var mu sync.Mutex
	got := 0
	c.Progress = true
	c.Notify = func(_ string, params json.RawMessage) {
		mu.Lock()
		defer mu.Unlock()
		got += len(params)
	}
	result, err := s.Do(context.WithoutCancel(t.Context()), c)
	if text := answerText(t, result, err); text != "after all" || got > 1<<20 {
		t.Errorf("%s, after notifications of %d bytes", text, got)
	}
}
