package upstream_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/guideway-dev/guideway/internal/gateway/upstream"
	"github.com/guideway-dev/guideway/internal/gateway/upstream/upstreamtest"
)

// waitForTool waits until the known catalog has a tool. The upstream sends to changed when
// its catalog changes.
func waitForTool(u *upstream.Upstream, name string, changed <-chan struct{}) {
	for {
		for _, raw := range u.Known().Tools {
			if strings.Contains(string(raw), `"name":"`+name+`"`) {
				return
			}
		}
		<-changed
	}
}

// newChanged returns options whose channel receives a value with each change of the catalog.
func newChanged() (upstream.Options, <-chan struct{}) {
	changed := make(chan struct{}, 100)
	return upstream.Options{Changed: func() { changed <- struct{}{} }}, changed
}

// After a server has exited, the next process is asked for its lists: an update of the
// program may have changed a tool, and pins compare the known lists.
func TestNextProcessIsAskedForItsLists(t *testing.T) {
	t.Parallel()
	opts, changed := newChanged()
	u := openUpstream(t, ownSpec(t, upstreamtest.Updated), opts)
	if _, err := u.Refresh(t.Context(), upstream.Want{}); err != nil {
		t.Fatal(err)
	}
	s, done, err := u.Session(t.Context(), upstream.Want{})
	if err != nil {
		t.Fatal(err)
	}
	callText(t, s, toolCall("count", nil))
	if _, err := s.Do(t.Context(), toolCall("crash", nil)); err == nil {
		t.Error("the server did not exit")
	}
	done()
	openSession(t, u, upstream.Want{})
	waitForTool(u, "updated", changed)
}

// TestInterruptedSubscriptionIsCaughtUp checks that after the connection to a server of
// protocol version 2026-07-28 was interrupted, its lists are fetched again and followed
// resources are reported as updated, because the server does not repeat lost notifications.
// The same holds if the server ended the subscription.
func TestInterruptedSubscriptionIsCaughtUp(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(w http.ResponseWriter, id json.RawMessage){
		"cut off": func(http.ResponseWriter, json.RawMessage) { panic(http.ErrAbortHandler) },
		"ended": func(w http.ResponseWriter, id json.RawMessage) {
			_, _ = fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"resultType\":\"complete\"}}\n\n", id)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var updated atomic.Bool
			listening, interrupt := make(chan struct{}, 100), make(chan struct{})
			srv := serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var m struct {
					ID     json.RawMessage `json:"id"`
					Method string          `json:"method"`
				}
				_ = json.NewDecoder(r.Body).Decode(&m)
				answer := func(result string) {
					w.Header().Set("Content-Type", "application/json")
					_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete",%s}}`, m.ID, result)
				}
				switch m.Method {
				case "server/discover":
					answer(`"supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}},"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"x","version":"1"}}`)
				case "tools/list":
					tools := `{"name":"old","inputSchema":{"type":"object"}}`
					if updated.Load() {
						tools += `,{"name":"new","inputSchema":{"type":"object"}}`
					}
					answer(`"ttlMs":0,"cacheScope":"private","tools":[` + tools + `]`)
				case "subscriptions/listen":
					w.Header().Set("Content-Type", "text/event-stream")
					_, _ = fmt.Fprint(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\",\"params\":{}}\n\n")
					_ = http.NewResponseController(w).Flush()
					listening <- struct{}{}
					select {
					case <-interrupt:
						end(w, m.ID)
					case <-r.Context().Done():
					}
				}
			}))
			opts, changed := newChanged()
			u := openUpstream(t, upstream.Spec{Name: "http", URL: srv.URL}, opts)
			if _, err := u.Refresh(t.Context(), upstream.Want{}); err != nil {
				t.Fatal(err)
			}
			s := openSession(t, u, upstream.Want{})
			updates := make(chan string, 100)
			go s.Subscribe(t.Context(), "note://one", func(method string, params json.RawMessage) {
				if method == "notifications/resources/updated" {
					updates <- string(params)
				}
			})
			<-listening
			<-listening
			updated.Store(true)
			interrupt <- struct{}{}
			interrupt <- struct{}{}
			waitForTool(u, "new", changed)
			if got := <-updates; got != `{"uri":"note://one"}` {
				t.Errorf("the update is %s", got)
			}
		})
	}
}
