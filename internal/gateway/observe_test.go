package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/gateway"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// recorder is an observer that records exchanges.
type recorder struct {
	parent string

	mu     sync.Mutex
	begun  int
	traces []gateway.Trace
	ended  []gateway.Exchange
	told   chan struct{}
}

func newWatcher(parent string) *recorder {
	return &recorder{parent: parent, told: make(chan struct{}, 1000)}
}

func (w *recorder) Begin(ctx context.Context, x *gateway.Exchange) context.Context {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun++
	w.traces = append(w.traces, x.Trace)
	if w.parent != "" {
		x.Trace = gateway.Trace{Parent: w.parent, State: "ours=1"}
	}
	return ctx
}

func (w *recorder) End(_ context.Context, x *gateway.Exchange) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = append(w.ended, *x)
	w.told <- struct{}{}
}

// waitForExchange waits for the next ended exchange and returns it.
func (w *recorder) waitForExchange(t *testing.T) gateway.Exchange {
	t.Helper()
	select {
	case <-w.told:
	case <-time.After(10 * time.Second):
		t.Fatal("no exchange was observed")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.begun != len(w.ended) {
		t.Errorf("%d began and %d ended", w.begun, len(w.ended))
	}
	return w.ended[len(w.ended)-1]
}

// The observer gets each request once, with its upstream and its outcome, on both call
// paths and in both protocol versions.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	type expectation struct {
		tool, text string
		outcome    gateway.Outcome
		upstream   string
		failure    string
	}
	for name, change := range map[string][]string{"shortcut": nil, "by the SDK": {slow}} {
		for _, version := range []string{legacy, modern} {
			t.Run(name+" "+version, func(t *testing.T) {
				t.Parallel()
				w := newWatcher("")
				impatient := newEntry(t, "two")
				impatient.Spec.Timeout = config.UpstreamTime(100 * time.Millisecond)
				one := newEntry(t, "one")
				one.Tools = map[string]config.UpstreamTool{"log": {Hide: true}}
				one.Project = "site"
				hooks := &refusingHooks{}
				r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{one, impatient}, Observer: w, Hooks: hooks}, change...)
				p := r.connectClient(t, clientSetup{user: "ann", version: version})
				p.toolNames()
				for _, e := range []expectation{
					{"one__echo", "hi", gateway.OutcomeOK, "one", ""},
					{"one__fail", "", gateway.OutcomeToolError, "one", "it failed"},
					{"one__refuse", "", gateway.OutcomeError, "one", "not today"},
					{"one__broken", "", gateway.OutcomeError, "one", "invalid"},
					{"one__nothing", "", gateway.OutcomeRefused, "", "unknown tool"},
					{"one__env", "", gateway.OutcomeAnswered, "one", ""},
					{"one__count", "", gateway.OutcomeRefused, "one", "a hook says no"},
					{"one__crash", "", gateway.OutcomeCrash, "one", "ended during the call"},
					{"two__sleep", "", gateway.OutcomeTimeout, "two", "within 100ms"},
				} {
					p.callTool(e.tool, args{"text": e.text, "ms": 60_000})
					x := w.waitForExchange(t)
					if x.Outcome != e.outcome || x.Upstream != e.upstream || !strings.Contains(x.Error, e.failure) || (x.Error == "") != (e.failure == "") {
						t.Errorf("%s: %s of %q, %q; want %s of %q, %q", e.tool, x.Outcome, x.Upstream, x.Error, e.outcome, e.upstream, e.failure)
					}
					if x.Method != "tools/call" || x.Shown != e.tool || x.Client.User != "ann" || x.Client.Client != "test" || x.Ended.Before(x.Began) {
						t.Errorf("%s: %+v", e.tool, x)
					}
					if e.upstream == "one" && (x.Project != "site" || x.Name != strings.TrimPrefix(e.tool, "one__")) {
						t.Errorf("%s belongs to %s of the project %q", e.tool, x.Name, x.Project)
					}
				}
			})
		}
	}
}

// refusingHooks answers calls of env and refuses calls of count.
type refusingHooks struct{}

func (*refusingHooks) Versions(string, string) map[string]string { return nil }

func (*refusingHooks) Applies(_, _, tool string) bool { return tool == "env" || tool == "count" }

func (*refusingHooks) Around(_ context.Context, call gateway.HookCall, _ func(context.Context, json.RawMessage) (json.RawMessage, error)) (json.RawMessage, error) {
	if call.Tool == "count" {
		return nil, guideway.Errorf(guideway.CodeRefused, "a hook says no")
	}
	return json.RawMessage(`{"content":[]}`), nil
}

// TestOutcomesOfTheGateway checks the outcomes that the observer gets for a call that the
// client cancels, a call over a limit, and a call that asks a question.
func TestOutcomesOfTheGateway(t *testing.T) {
	t.Parallel()
	w := newWatcher("")
	one := newEntry(t, "one")
	one.ToolPerMinute = 1
	r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{one}, Observer: w})
	p := r.connectClient(t, clientSetup{user: "ann", version: legacy})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		params := &mcp.CallToolParams{Name: "one__sleep", Arguments: args{"ms": 60_000}}
		params.SetProgressToken("p")
		_, err := p.session.CallTool(ctx, params)
		done <- err
	}()
	<-p.progressed
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("the call returned %v", err)
	}
	if x := w.waitForExchange(t); x.Outcome != gateway.OutcomeCancelled {
		t.Errorf("a cancelled call has the outcome %s, %s", x.Outcome, x.Error)
	}
	p.callTool("one__sleep", args{"ms": 1})
	if x := w.waitForExchange(t); x.Outcome != gateway.OutcomeRefused || !strings.Contains(x.Error, "limit") {
		t.Errorf("a call over the limit has the outcome %s, %s", x.Outcome, x.Error)
	}
	p.callTool("one__ask", args{"text": "may I?"})
	if x := w.waitForExchange(t); x.Outcome != gateway.OutcomeOK {
		t.Errorf("a call with a question has the outcome %s, %s", x.Outcome, x.Error)
	}
}

// In protocol version 2026-07-28, a call that asks a question ends with OutcomeAsked, and
// the answer arrives as a new request.
func TestQuestionsAreObserved(t *testing.T) {
	t.Parallel()
	w := newWatcher("")
	r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "one")}, Observer: w})
	p := r.connectClient(t, clientSetup{user: "ann", version: modern})
	p.callTool("one__ask", args{"text": "may I?"})
	if first, second := w.waitForExchange(t), w.waitForExchange(t); first.Method != "tools/call" || second.Method != "tools/call" {
		t.Errorf("%+v, %+v", first, second)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.ended) != 2 || w.ended[0].Outcome != gateway.OutcomeAsked || w.ended[1].Outcome != gateway.OutcomeOK {
		t.Errorf("%+v", w.ended)
	}
}

// Prompts, resources and completions are observed like tool calls.
func TestOtherRequestsAreObserved(t *testing.T) {
	t.Parallel()
	w := newWatcher("")
	r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "one")}, Observer: w})
	p := r.connectClient(t, clientSetup{user: "ann", version: modern})
	for prompt, err := range p.session.Prompts(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		_, _ = p.session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: prompt.Name})
		if x := w.waitForExchange(t); x.Method != "prompts/get" || x.Upstream != "one" || x.Shown != prompt.Name || x.Outcome != gateway.OutcomeOK {
			t.Errorf("a prompt: %+v", x)
		}
		_, _ = p.session.Complete(t.Context(), &mcp.CompleteParams{Ref: &mcp.CompleteReference{Type: "ref/prompt", Name: prompt.Name}, Argument: mcp.CompleteParamsArgument{Name: "a", Value: "b"}})
		if x := w.waitForExchange(t); x.Method != "completion/complete" || x.Upstream != "one" || x.Outcome != gateway.OutcomeOK {
			t.Errorf("a completion: %+v", x)
		}
	}
	for resource, err := range p.session.Resources(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		_, _ = p.session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: resource.URI})
		if x := w.waitForExchange(t); x.Method != "resources/read" || x.Upstream != "one" || x.Name != resource.URI || x.Outcome != gateway.OutcomeOK {
			t.Errorf("a resource: %+v", x)
		}
	}
	if len(w.ended) < 3 {
		t.Errorf("only %d requests were observed", len(w.ended))
	}
}

const theirs = "00-11111111111111111111111111111111-2222222222222222-01"

// TestTraceContext checks that the observer gets the client's trace from the _meta. The
// upstream gets the observer's trace, or the client's trace if the observer has none,
// exactly once.
func TestTraceContext(t *testing.T) {
	t.Parallel()
	const ours = "00-11111111111111111111111111111111-3333333333333333-01"
	for name, change := range map[string][]string{"shortcut": nil, "by the SDK": {slow}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, parent := range []string{"", ours} {
				w := newWatcher(parent)
				r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "one")}, Observer: w}, change...)
				p := r.connectClient(t, clientSetup{user: "ann", version: modern})
				params := &mcp.CallToolParams{Name: "one__params", Arguments: args{"text": "hi"}}
				params.Meta = mcp.Meta{"traceparent": theirs, "tracestate": "a=b"}
				result, err := p.session.CallTool(t.Context(), params)
				if err != nil {
					t.Fatal(err)
				}
				got := result.Content[0].(*mcp.TextContent).Text
				w.waitForExchange(t)
				if w.traces[0] != (gateway.Trace{Parent: theirs, State: "a=b"}) {
					t.Errorf("the observer got the trace %+v", w.traces[0])
				}
				want, state := theirs, "a=b"
				if parent != "" {
					want, state = ours, "ours=1"
				}
				if strings.Count(got, `"traceparent"`) != 1 || !strings.Contains(got, want) || !strings.Contains(got, `"tracestate":"`+state+`"`) {
					t.Errorf("the upstream got %s", got)
				}
			}
		})
	}
}

// TestTraceHeaders checks that an HTTP upstream gets the observer's trace in the headers,
// in both protocol versions.
func TestTraceHeaders(t *testing.T) {
	t.Parallel()
	const ours = "00-11111111111111111111111111111111-3333333333333333-01"
	var mu sync.Mutex
	seen := map[string]string{}
	behind := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "deep")}})
	spy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		if strings.Contains(string(body), `"tools/call"`) {
			mu.Lock()
			seen[req.Header.Get("Mcp-Protocol-Version")] = req.Header.Get("Traceparent") + " " + req.Header.Get("Tracestate")
			mu.Unlock()
		}
		to, _ := http.NewRequestWithContext(req.Context(), req.Method, behind.url, strings.NewReader(string(body)))
		to.Header = req.Header.Clone()
		to.Header.Set("X-User", "gateway")
		resp, err := http.DefaultClient.Do(to)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer resp.Body.Close()
		for name, values := range resp.Header {
			w.Header()[name] = values
		}
		w.WriteHeader(resp.StatusCode)
		_, _ = io.Copy(w, resp.Body)
	}))
	t.Cleanup(func() { spy.CloseClientConnections(); spy.Close() })
	for _, version := range []string{legacy, modern} {
		w := newWatcher(ours)
		e := gateway.Entry{}
		e.Spec.Name, e.Spec.URL, e.Spec.Protocol = "web", spy.URL, version
		r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{e}, Observer: w})
		p := r.connectClient(t, clientSetup{user: "ann", version: legacy})
		if got := p.callTool("web__deep__echo", args{"text": "hi"}); got != "hi" {
			t.Fatalf("the call returned %s", got)
		}
		w.waitForExchange(t)
		mu.Lock()
		if seen[version] != ours+" ours=1" {
			t.Errorf("%s: the upstream got the headers %q", version, seen)
		}
		mu.Unlock()
	}
}
