package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	hookengine "github.com/guideway-dev/guideway/internal/hooks/engine"
	"github.com/guideway-dev/guideway/internal/hooks/runner"
	hookstate "github.com/guideway-dev/guideway/internal/hooks/state"
)

// requester sends requests through a bundled graph with a state.
type requester struct {
	t       *testing.T
	engine  *hookengine.Engine
	program *hookengine.Program
	// clock is the time of the state, in seconds; it can be advanced.
	clock atomic.Int64
	sent  atomic.Int32
}

func newRequester(t *testing.T, graph string, variables map[string]string) *requester {
	t.Helper()
	program, err := hookengine.Compile(linkBundled(t, graph, variables))
	if err != nil {
		t.Fatal(err)
	}
	r := &requester{t: t, program: program}
	now := func() time.Time { return time.Unix(r.clock.Load(), 0) }
	scripts := &runner.Scripts{Runner: newPool(t), State: &hookstate.Memory{}, Now: now}
	r.engine = hookengine.New(hookengine.Options{Scripts: scripts, Timeout: time.Minute, Now: now})
	t.Cleanup(func() { r.engine.Close(context.Background()) })
	return r
}

// send sends a call of a client and returns the response or the message of the error. The
// server answers with response, or fails if it is empty.
func (r *requester) send(client, params, response string) string {
	r.t.Helper()
	out := r.engine.Run(r.t.Context(), r.program, hookengine.Request{
		Params: json.RawMessage(params), Metadata: hookengine.Metadata{ClientID: client, ServerID: "one"},
	}, hookengine.CallerFunc(func(context.Context, hookengine.Call) (json.RawMessage, error) {
		r.sent.Add(1)
		if response == "" {
			return nil, errors.New("the server is down")
		}
		return json.RawMessage(response), nil
	}))
	if out.Err != nil {
		return out.Err.Error()
	}
	return string(out.Response)
}

// exchange is one call of a sequence.
type exchange struct {
	at                int64
	client, params    string
	response, want    string
	isSent, isRefusal bool
}

func (r *requester) sendAll(list []exchange) {
	r.t.Helper()
	for i, x := range list {
		r.clock.Store(x.at)
		before := r.sent.Load()
		got := r.send(x.client, x.params, x.response)
		if isSent := r.sent.Load() > before; isSent != x.isSent || !strings.Contains(got, x.want) || !x.isRefusal && got != x.want {
			r.t.Errorf("call %d: got %s (sent: %t), want %s", i+1, got, isSent, x.want)
		}
	}
}

// A rate limit counts the calls of each client, with each value of an argument, in a time
// that starts with the first call. Of concurrent calls exactly as many pass as the limit
// allows.
func TestRateLimit(t *testing.T) {
	t.Parallel()
	const a, b = `{"name":"q","arguments":{"in":{"repo":"a"}}}`, `{"name":"q","arguments":{"in":{"repo":"b"}}}`
	ok := textContent("x")
	r := newRequester(t, "rate-limit", map[string]string{"limit": "2", "argument": `"in.repo"`})
	r.sendAll([]exchange{
		{at: 0, client: "ann", params: a, response: ok, want: ok, isSent: true},
		{at: 30, client: "ann", params: a, response: ok, want: ok, isSent: true},
		{at: 59, client: "ann", params: a, response: ok, want: "more than 2 calls in 60 seconds", isRefusal: true},
		{at: 59, client: "ann", params: b, response: ok, want: ok, isSent: true},
		{at: 59, client: "ann", params: `{"name":"q"}`, response: ok, want: ok, isSent: true},
		{at: 59, client: "bob", params: a, response: ok, want: ok, isSent: true},
		{at: 60, client: "ann", params: a, response: ok, want: ok, isSent: true},
	})
	r = newRequester(t, "rate-limit", map[string]string{"limit": "10", "per": `"upstream"`})
	var passed atomic.Int32
	var group sync.WaitGroup
	for i := range 64 {
		group.Go(func() {
			if r.send([]string{"ann", "bob"}[i%2], a, ok) == ok {
				passed.Add(1)
			}
		})
	}
	group.Wait()
	if passed.Load() != 10 || r.sent.Load() != 10 {
		t.Errorf("%d of 64 concurrent calls passed, %d were sent, at a limit of 10", passed.Load(), r.sent.Load())
	}
	r = newRequester(t, "rate-limit", map[string]string{"per": `"clients"`})
	r.sendAll([]exchange{{client: "ann", params: a, want: "the variable per is clients; it can be client, upstream or global", isRefusal: true}})
}

// A quota counts the calls of all clients together if it is set so. Refused calls do not
// count.
func TestQuota(t *testing.T) {
	t.Parallel()
	const call = `{"name":"q"}`
	ok := textContent("x")
	r := newRequester(t, "quota", map[string]string{"limit": "2", "per": `"global"`, "period": `"month"`})
	r.sendAll([]exchange{
		{client: "ann", params: call, response: ok, want: ok, isSent: true},
		{client: "bob", params: call, response: ok, want: ok, isSent: true},
		{client: "ann", params: call, response: ok, want: "the quota of 2 calls for the month 20", isRefusal: true},
		{client: "ann", params: call, response: ok, want: "the quota of 2 calls", isRefusal: true},
	})
	larger := newRequester(t, "quota", map[string]string{"limit": "3", "per": `"global"`, "period": `"month"`})
	r.program = larger.program
	r.sendAll([]exchange{
		{client: "ann", params: call, response: ok, want: ok, isSent: true},
		{client: "ann", params: call, response: ok, want: "the quota of 3 calls", isRefusal: true},
	})
	r = newRequester(t, "quota", map[string]string{"period": `"week"`})
	r.sendAll([]exchange{{client: "ann", params: call, want: "the variable period is week; it can be day or month", isRefusal: true}})
}

// A cache answers an equal call of the same client, until the result expires. Errors and
// numbers that JavaScript would round are not stored.
func TestResponseCache(t *testing.T) {
	t.Parallel()
	const call, same, other = `{"name":"q","arguments":{"a":1,"b":[{"c":2,"d":3}]}}`, `{"name":"q","arguments":{"b":[{"d":3,"c":2}],"a":1}}`, `{"name":"q","arguments":{"a":1,"b":[]}}`
	const large, larger = `{"name":"q","arguments":{"a":12345678901234567890}}`, `{"name":"q","arguments":{"a":12345678901234567891}}`
	first, second := textContent("first"), textContent("second")
	const rounded = `{"content":[],"structuredContent":{"id":12345678901234567890}}`
	failed := `{"isError":true,"content":[{"type":"text","text":"no"}]}`
	long := textContent(strings.Repeat("x", hookstate.MaxValue))
	r := newRequester(t, "response-cache", nil)
	r.sendAll([]exchange{
		{at: 0, client: "ann", params: call, response: first, want: first, isSent: true},
		{at: 299, client: "ann", params: same, response: second, want: first},
		{at: 299, client: "bob", params: call, response: second, want: second, isSent: true},
		{at: 299, client: "ann", params: other, response: second, want: second, isSent: true},
		{at: 299, client: "ann", params: `{"name":"p","arguments":{"a":1,"b":[{"c":2,"d":3}]}}`, response: second, want: second, isSent: true},
		{at: 300, client: "ann", params: call, response: second, want: second, isSent: true},
		{at: 300, client: "ann", params: large, response: first, want: first, isSent: true},
		{at: 300, client: "ann", params: larger, response: second, want: second, isSent: true},
		{at: 300, client: "eve", params: call, response: failed, want: failed, isSent: true},
		{at: 300, client: "eve", params: call, response: "", want: "the server is down", isSent: true, isRefusal: true},
		{at: 300, client: "eve", params: call, response: rounded, want: rounded, isSent: true},
		{at: 300, client: "eve", params: call, response: long, want: long, isSent: true},
		{at: 300, client: "eve", params: `{"name":"list"}`, response: first, want: first, isSent: true},
		{at: 300, client: "eve", params: `{"name":"list","arguments":{}}`, response: second, want: first},
	})
}

// An equal call is sent once: the second gets the result of the first, or is refused if the
// first has none. A call that failed can be repeated.
func TestDeduplicate(t *testing.T) {
	t.Parallel()
	const call, other = `{"name":"q","arguments":{"a":1}}`, `{"name":"q","arguments":{"a":2}}`
	first, second := textContent("first"), textContent("second")
	failed := `{"isError":true,"content":[{"type":"text","text":"no"}]}`
	const rounded = `{"content":[],"structuredContent":{"id":12345678901234567890}}`
	r := newRequester(t, "deduplicate", nil)
	r.sendAll([]exchange{
		{at: 0, client: "ann", params: call, response: first, want: first, isSent: true},
		{at: 1, client: "ann", params: call, response: second, want: first},
		{at: 1, client: "bob", params: call, response: second, want: second, isSent: true},
		{at: 59, client: "ann", params: call, response: second, want: first},
		{at: 60, client: "ann", params: call, response: second, want: second, isSent: true},
		{at: 60, client: "ann", params: other, response: "", want: "the server is down", isSent: true, isRefusal: true},
		{at: 119, client: "ann", params: other, response: first, want: "an equal call was sent less than 60 seconds ago, and its result is not known", isRefusal: true},
		{at: 120, client: "ann", params: other, response: failed, want: failed, isSent: true},
		{at: 120, client: "ann", params: other, response: rounded, want: rounded, isSent: true},
		{at: 120, client: "ann", params: other, response: first, want: "its result is not known", isRefusal: true},
	})
	r = newRequester(t, "deduplicate", nil)
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() { r.send("ann", call, first) })
	}
	group.Wait()
	if r.sent.Load() != 1 {
		t.Errorf("%d of 16 concurrent equal calls were sent", r.sent.Load())
	}
}
