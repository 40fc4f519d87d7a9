package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/gateway"
	"github.com/guideway-dev/guideway/internal/gateway/upstream"
	"github.com/guideway-dev/guideway/internal/gateway/upstream/upstreamtest"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A client that leaves the questions of an upstream open uses only a part of the upstream's
// sessions: calls of other clients are answered. The client's own next call is refused in
// time, with a message that it was not sent.
func TestOpenQuestionsDoNotBlockOtherClients(t *testing.T) {
	t.Parallel()
	e := newEntry(t, "one")
	e.Spec.Timeout = config.UpstreamTime(4 * time.Second)
	r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{e}, Upstream: upstream.Options{MaxSessions: 6}})
	ask := `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"one__%s","arguments":{"text":"who?"},` + modernMeta + `}}`
	post := func(user, tool string) string {
		_, text := r.postAs(t, user, fmt.Sprintf(ask, tool), map[string]string{"Mcp-Protocol-Version": modern, "Mcp-Method": "tools/call", "Mcp-Name": "one__" + tool})
		return text
	}
	r.connectClient(t, clientSetup{user: "first", version: modern, mute: true}).toolNames()
	var greedy sync.WaitGroup
	refused := make(chan string, 9)
	for range cap(refused) {
		greedy.Go(func() {
			if got := post("greedy", "ask"); !strings.Contains(got, "input_required") {
				refused <- got
			}
		})
	}
	greedy.Wait()
	close(refused)
	n := 0
	for got := range refused {
		if n++; !strings.Contains(got, "was not sent") || !strings.Contains(got, "answer the open questions") {
			t.Errorf("a call without a session returned %s", got)
		}
	}
	if n == 0 {
		t.Errorf("one client uses all sessions")
	}
	if got := post("modest", "echo"); !strings.Contains(got, "who?") {
		t.Errorf("another client of protocol version 2026-07-28 got %s", got)
	}
	for _, mute := range []bool{false, true} {
		p := r.connectClient(t, clientSetup{user: "modest", version: legacy, mute: mute})
		if got := p.callTool("one__echo", args{"text": "x"}); got != "x" {
			t.Errorf("another client of protocol version 2025-11-25 got %s", got)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

// A list waits only once for an upstream that does not answer. Later lists of all clients
// do not wait for it until it has answered; then clients are notified.
func TestListsWaitOnceForSilentUpstream(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	server := mcp.NewServer(&mcp.Implementation{Name: "late", Version: "1"}, nil)
	server.AddTool(&mcp.Tool{Name: "echo", InputSchema: map[string]any{"type": "object"}}, nil)
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		select {
		case <-release:
			h.ServeHTTP(w, req)
		case <-req.Context().Done():
		}
	}))
	t.Cleanup(srv.Close)
	base := &http.Transport{}
	t.Cleanup(base.CloseIdleConnections)
	r := newFixture(t, gateway.Options{
		Upstreams: []gateway.Entry{{Spec: upstream.Spec{Name: "late", URL: srv.URL, Transport: upstream.TransportHTTP}}, newEntry(t, "one")},
		Upstream:  upstream.Options{HTTP: base, StartTime: time.Hour}, ListTime: 2 * time.Second,
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // A hundred waits would take longer.
	defer cancel()
	ann, bob := r.connectClient(t, clientSetup{user: "ann", version: legacy}), r.connectClient(t, clientSetup{user: "bob", version: modern})
	waitFor(t, func() bool { return slices.Contains(ann.toolNames(), "one__echo") })
	for range 50 {
		for _, p := range []*testClient{ann, bob} {
			list, err := p.session.ListTools(ctx, nil)
			if err != nil || !strings.Contains(marshalText(t, list), "one__echo") {
				t.Fatalf("%s %v", marshalText(t, list), err)
			}
		}
	}
	close(release)
	<-ann.changed
	if names := ann.toolNames(); !slices.Contains(names, "late__echo") {
		t.Errorf("the tools are %v", names)
	}
}

// TestSequentialCallsUseOneProcess checks that 200 sequential calls of a client start at
// most one additional process of the upstream.
func TestSequentialCallsUseOneProcess(t *testing.T) {
	t.Parallel()
	r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "one")}})
	for user, version := range map[string]string{"ann": modern, "bob": legacy} {
		p := r.connectClient(t, clientSetup{user: user, version: version})
		p.toolNames()
		before, _ := r.Health("one")
		for range 200 {
			if got := p.callTool("one__echo", args{"text": "x"}); got != "x" {
				t.Fatal(got)
			}
		}
		if after, _ := r.Health("one"); after.Sessions > before.Sessions+1 {
			t.Errorf("%s: %d additional sessions", version, after.Sessions-before.Sessions)
		}
	}
}

// callAsk posts a modern call of the tool "ask". If state is set, the call contains an
// answer to the question with this request state.
func (r *fixture) callAsk(t *testing.T, user, state string) string {
	t.Helper()
	if state != "" {
		state = `"requestState":"` + state + `","inputResponses":{"q":{"action":"accept","content":{"ok":"yes"}}},`
	}
	body := `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"one__ask","arguments":{"text":"who?"},` + state + modernMeta + `}}`
	_, text := r.postAs(t, user, body, map[string]string{"Mcp-Protocol-Version": modern, "Mcp-Method": "tools/call", "Mcp-Name": "one__ask"})
	return text
}

// stateIn returns the request state in an answer.
func stateIn(t *testing.T, answer string) string {
	t.Helper()
	var asked struct {
		Result struct {
			RequestState string `json:"requestState"`
		} `json:"result"`
	}
	if err := json.Unmarshal([]byte(answer), &asked); err != nil || asked.Result.RequestState == "" {
		t.Fatalf("%v in %s", err, answer)
	}
	return asked.Result.RequestState
}

// The answer to a question continues a call that was already counted. Sending the same
// answer again is a new call, and counts.
func TestRepeatedAnswersCountForLimits(t *testing.T) {
	t.Parallel()
	e := newEntry(t, "one", upstreamtest.Modern)
	e.PerMinute = 3
	r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{e}})
	r.connectClient(t, clientSetup{user: "ann", version: modern}).toolNames()
	state := stateIn(t, r.callAsk(t, "ann", ""))
	done := 0
	for range 10 {
		if got := r.callAsk(t, "ann", state); strings.Contains(got, "yes") {
			done++
		} else if !strings.Contains(got, "call again in") {
			t.Errorf("the refusal is %s", got)
		}
	}
	if done != 3 { // The counted call, and two more.
		t.Errorf("with a limit of 3 calls, %d calls were made by repeating one answer", done)
	}
}

// TestParkedCallIsLostOnRestart checks that a second gateway with the same key does not
// repeat a call that waits in the first gateway, and reports the loss. The first gateway
// accepts the answer once.
func TestParkedCallIsLostOnRestart(t *testing.T) {
	t.Parallel()
	e := newEntry(t, "one")
	first := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{e}})
	first.connectClient(t, clientSetup{user: "ann", version: modern}).toolNames()
	state := stateIn(t, first.callAsk(t, "ann", ""))
	second := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{e}}) // The second gateway has the same signing key as the first.
	second.connectClient(t, clientSetup{user: "ann", version: modern}).toolNames()
	for range 2 {
		if got := second.callAsk(t, "ann", state); !strings.Contains(got, "check whether the call was carried out") {
			t.Errorf("the answer after a restart returned %s", got)
		}
	}
	if got := first.callAsk(t, "ann", state); !strings.Contains(got, "yes") {
		t.Errorf("the answer to the parked call returned %s", got)
	}
	if got := first.callAsk(t, "ann", state); !strings.Contains(got, "check whether the call was carried out") {
		t.Errorf("the same answer again returned %s", got)
	}
}
