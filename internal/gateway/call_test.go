package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/guideway-dev/guideway/internal/gateway"
	"github.com/guideway-dev/guideway/internal/gateway/upstream/upstreamtest"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestConcurrentCallsGetTheirOwnAnswers checks that each of several legacy and modern
// clients that call two upstreams concurrently receives its own answers.
func TestConcurrentCallsGetTheirOwnAnswers(t *testing.T) {
	t.Parallel()
	r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "old"), newEntry(t, "new", upstreamtest.Modern)}})
	var wg sync.WaitGroup
	for i := range 6 {
		version := []string{legacy, modern}[i%2]
		p := r.connectClient(t, clientSetup{user: fmt.Sprint("user", i/2), version: version, mute: i%3 == 0})
		p.toolNames()
		for j := range 4 {
			wg.Go(func() {
				for k := range 20 {
					text := fmt.Sprintf("%d %d %d %s", i, j, k, strings.Repeat("x", k*100))
					if got := p.callTool([]string{"old__echo", "new__echo"}[k%2], args{"text": text}); got != text {
						t.Errorf("got %.40q, want %.40q", got, text)
					}
				}
			})
		}
	}
	wg.Wait()
}

// TestFailedCallIsNotRetried checks that a call that crashes its upstream returns an error,
// and that no earlier call is repeated afterwards.
func TestFailedCallIsNotRetried(t *testing.T) {
	t.Parallel()
	for _, version := range []string{legacy, modern} {
		e := newEntry(t, "one")
		r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{e}})
		p := r.connectClient(t, clientSetup{user: "ann", version: version})
		p.toolNames()
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() { p.callTool("one__count", nil) })
		}
		wg.Wait()
		before := countCalls(e)
		if before != 5 {
			t.Errorf("five calls were carried out %d times", before)
		}
		got := p.callTool("one__crash", nil)
		if !strings.Contains(got, "unknown") || !strings.Contains(got, "exit status 3") {
			t.Errorf("the error of the crash is %s", got)
		}
		if got := p.callTool("one__echo", args{"text": "back"}); got != "back" {
			t.Errorf("after the crash: %s", got)
		}
		if after := countCalls(e); after != before {
			t.Errorf("%d calls were repeated after the crash", after-before)
		}
	}
}

// If a client cancels a call, the call is cancelled at the upstream.
func TestCancellation(t *testing.T) {
	t.Parallel()
	for _, version := range []string{legacy, modern} {
		e := newEntry(t, "one") // The tool "sleep" counts its cancellations.
		r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{e}})
		p := r.connectClient(t, clientSetup{user: "ann", version: version})
		p.toolNames()
		ctx, cancel := context.WithCancel(t.Context())
		params := &mcp.CallToolParams{Name: "one__sleep", Arguments: args{"ms": 60000}}
		params.SetProgressToken("t")
		done := make(chan error, 1)
		go func() {
			_, err := p.session.CallTool(ctx, params)
			done <- err
		}()
		<-p.progressed // The call has reached the upstream.
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("the call ended with %v", err)
		}
		waitFor(t, func() bool { return countCalls(e) == 1 })
	}
}

// waitFor waits until a condition holds.
func waitFor(t *testing.T, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(10 * time.Second)
	for !holds() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatal("the condition did not become true in time")
		}
	}
}

// Clients that follow a resource get its updates; other clients do not.
func TestSubscriptions(t *testing.T) {
	t.Parallel()
	r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "one")}})
	ann, bob := r.connectClient(t, clientSetup{user: "ann", version: legacy}), r.connectClient(t, clientSetup{user: "bob", version: legacy})
	ann.toolNames()
	if err := ann.session.Subscribe(t.Context(), &mcp.SubscribeParams{URI: "note://one"}); err != nil {
		t.Fatal(err)
	}
	// The upstream sends an update at each subscription. The SDK may drop one that arrives
	// before it has registered the subscription.
	waitFor(t, func() bool {
		_ = ann.session.Unsubscribe(t.Context(), &mcp.UnsubscribeParams{URI: "note://one"})
		_ = ann.session.Subscribe(t.Context(), &mcp.SubscribeParams{URI: "note://one"})
		return len(ann.takeEntries(&ann.updated)) > 0
	})
	if got := ann.takeEntries(&ann.updated)[0]; got != "note://one" {
		t.Errorf("the update is for %s", got)
	}
	if got := bob.takeEntries(&bob.updated); len(got) > 0 {
		t.Errorf("bob was notified of %v", got)
	}
	if err := ann.session.Subscribe(t.Context(), &mcp.SubscribeParams{URI: "other://x"}); err == nil {
		t.Error("a resource that no upstream has was subscribed to")
	}
}

// Clients are notified when the tools of an upstream have changed.
func TestListChanged(t *testing.T) {
	t.Parallel()
	r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "one", upstreamtest.Growing)}})
	p := r.connectClient(t, clientSetup{user: "ann", version: legacy})
	before := p.toolNames()
	if err := r.Refresh(t.Context(), "one", ""); err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.changed:
	case <-time.After(10 * time.Second):
		t.Fatal("the client was not notified")
	}
	after := p.toolNames()
	if slices.Equal(before, after) || !slices.ContainsFunc(after, func(n string) bool { return strings.HasPrefix(n, "one__new") }) {
		t.Errorf("the tools are %v", after)
	}
}

// TestApply checks that a changed configuration is applied without interrupting a call in
// progress, and that a rejected configuration changes nothing.
func TestApply(t *testing.T) {
	t.Parallel()
	one, two := newEntry(t, "one"), newEntry(t, "two")
	r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{one, two}})
	p := r.connectClient(t, clientSetup{user: "ann", version: legacy, mute: true})
	p.toolNames()
	var call sync.WaitGroup
	call.Go(func() {
		params := &mcp.CallToolParams{Name: "one__sleep", Arguments: args{"ms": 400}}
		params.SetProgressToken("t")
		got, err := p.session.CallTool(t.Context(), params)
		if err != nil || got.IsError || got.Content[0].(*mcp.TextContent).Text != "slept" {
			t.Errorf("the call in progress returned %+v, %v", got, err)
		}
	})
	<-p.progressed // The call has reached the upstream.
	changed := one
	changed.Spec.Args = []string{"changed"}
	if err := r.Configure(gateway.Settings{Upstreams: []gateway.Entry{changed}}); err != nil {
		t.Fatal(err)
	}
	call.Wait()
	names := p.toolNames()
	if !slices.Contains(names, "one__echo") || slices.Contains(names, "two__echo") {
		t.Errorf("the tools are %v", names)
	}
	if err := r.Configure(gateway.Settings{Upstreams: []gateway.Entry{changed, changed}}); err == nil {
		t.Error("two upstreams with the same name were accepted")
	}
	if text := p.callTool("one__echo", args{"text": "x"}); text != "x" {
		t.Errorf("after a rejected configuration the call returned %s", text)
	}
}

// TestApplyKeepsCallsInProgress checks that calls of eight clients succeed while upstreams
// are added, changed and removed. A client is notified of the tools of the added upstream.
func TestApplyKeepsCallsInProgress(t *testing.T) {
	t.Parallel()
	one, two, three := newEntry(t, "one"), newEntry(t, "two"), newEntry(t, "three")
	r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{one, two}})
	var calls sync.WaitGroup
	var people []*testClient
	for n := range 8 {
		p := r.connectClient(t, clientSetup{user: fmt.Sprint("user", n), version: []string{legacy, modern}[n/4], mute: n%2 == 0})
		p.toolNames()
		people = append(people, p)
		calls.Go(func() {
			params := &mcp.CallToolParams{Name: []string{"one__sleep", "two__sleep"}[n%2], Arguments: args{"ms": 600}}
			params.SetProgressToken(n)
			got, err := p.session.CallTool(t.Context(), params)
			if err != nil || got.IsError || got.Content[0].(*mcp.TextContent).Text != "slept" {
				t.Errorf("the call of client %d returned %+v, %v", n, got, err)
			}
		})
	}
	for _, p := range people {
		<-p.progressed // The call has reached the upstream.
	}
	changed := one
	changed.Spec.Args = []string{"changed"}
	if err := r.Configure(gateway.Settings{Upstreams: []gateway.Entry{changed, two, three}}); err != nil {
		t.Fatal(err)
	}
	<-people[0].changed // The notification for the third upstream, which was never listed.
	if names := people[0].toolNames(); !slices.Contains(names, "three__echo") {
		t.Errorf("the tools are %v", names)
	}
	if err := r.Configure(gateway.Settings{Upstreams: []gateway.Entry{changed, {}}}); err == nil {
		t.Error("an upstream without a name was accepted")
	}
	if err := r.Configure(gateway.Settings{Upstreams: []gateway.Entry{changed, three}}); err != nil {
		t.Fatal(err)
	}
	if names := people[0].toolNames(); slices.Contains(names, "two__echo") || !slices.Contains(names, "one__echo") {
		t.Errorf("the tools are %v", names)
	}
	calls.Wait()
}
