package gateway_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/gateway"
	"github.com/guideway-dev/guideway/internal/gateway/upstream/upstreamtest"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// followResource subscribes a client to a resource, and waits for an update that touch
// causes.
func (p *testClient) followResource(uri string, touch func()) {
	p.t.Helper()
	if err := p.session.Subscribe(p.t.Context(), &mcp.SubscribeParams{URI: uri}); err != nil {
		p.t.Fatal(err)
	}
	p.waitForNotice(uri, touch)
}

func (p *testClient) waitForNotice(uri string, touch func()) {
	p.t.Helper()
	before := len(p.takeEntries(&p.updated))
	waitFor(p.t, func() bool {
		touch()
		return slices.Contains(p.takeEntries(&p.updated)[before:], uri)
	})
}

// A client that follows a resource gets its updates under the URI that the client uses, and
// no other client gets them. The updates continue after the upstream has crashed, was
// restarted or has a new configuration, until the client unsubscribes.
func TestFollowersGetUpdates(t *testing.T) {
	t.Parallel()
	e := newEntry(t, "one", upstreamtest.Hostile)
	r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{e}})
	var people []*testClient
	for i, version := range []string{legacy, legacy, modern, legacy} {
		p := r.connectClient(t, clientSetup{user: fmt.Sprint("user", i), version: version, mute: true})
		p.toolNames()
		people = append(people, p)
	}
	ann, bob, eve, dan := people[0], people[1], people[2], people[3]
	touch := func() { dan.callTool("one__touch", nil) }
	const by = "note://one/one"
	ann.followResource("note://one", touch)
	if err := r.Configure(gateway.Settings{Upstreams: []gateway.Entry{e, newEntry(t, "two")}}); err != nil {
		t.Fatal(err)
	}
	bob.toolNames()
	bob.followResource(by, touch) // The other upstream has the same resource.
	eve.followResource(by, touch)
	for name, again := range map[string]func(){
		"crash":   func() { dan.callTool("one__crash", nil) },
		"restart": func() { _ = r.Restart("one") },
		"other": func() {
			e.Spec.Env["OTHER"] = "1"
			if err := r.Configure(gateway.Settings{Upstreams: []gateway.Entry{e, newEntry(t, "two")}}); err != nil {
				t.Error(err)
			}
		},
	} {
		again()
		ann.waitForNotice("note://one", touch)
		bob.waitForNotice(by, touch)
		eve.waitForNotice(by, touch)
		t.Log(name)
	}
	if got := dan.takeEntries(&dan.updated); len(got) > 0 {
		t.Errorf("a client that follows nothing was notified of %v", got)
	}
	if slices.Contains(ann.takeEntries(&ann.updated), by) || slices.Contains(bob.takeEntries(&bob.updated), "note://one") {
		t.Error("a client was notified under another client's URI")
	}
	for p, uri := range map[*testClient]string{ann: "note://one", eve: by} {
		if err := p.session.Unsubscribe(t.Context(), &mcp.UnsubscribeParams{URI: uri}); err != nil {
			t.Error(err)
		}
	}
	if err := bob.session.Close(); err != nil {
		t.Error(err)
	}
	waitFor(t, func() bool { return dan.callTool("one__touch", nil) == "" }) // The upstream has no subscription left.
}

// The gateway closes without waiting for subscriptions.
func TestCloseDoesNotWaitForFollowers(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{upstreamtest.Hostile, upstreamtest.Modern} {
		r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "one", mode)}})
		p := r.connectClient(t, clientSetup{user: "ann", version: legacy, mute: true})
		p.toolNames()
		if err := p.session.Subscribe(t.Context(), &mcp.SubscribeParams{URI: "note://one"}); err != nil {
			t.Fatal(err)
		}
		r.Close(context.Background()) // With a deadlock, Close would hang.
	}
}

// A client whose token has no access to a resource cannot follow it in either protocol
// version, and the number of subscriptions per client is limited.
func TestFollowingNeedsAccess(t *testing.T) {
	t.Parallel()
	r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "one", upstreamtest.Hostile)}})
	r.allow = map[string]auth.Allow{"phone": {Tools: []string{"one__touch"}}, "laptop": {Upstreams: []string{"one"}}}
	for _, version := range []string{legacy, modern} {
		p := r.connectClient(t, clientSetup{user: "phone", version: version, mute: true})
		p.toolNames()
		for _, uri := range []string{"note://one", "note://any", "note://one/one"} {
			err := p.session.Subscribe(t.Context(), &mcp.SubscribeParams{URI: uri})
			if err == nil && version == legacy { // A modern client does not wait for the answer.
				t.Errorf("%s: the client could subscribe to %s", version, uri)
			}
		}
		if got := p.callTool("one__touch", nil); got != "" {
			t.Errorf("%s: the upstream received subscriptions to %q", version, got)
		}
	}
	p := r.connectClient(t, clientSetup{user: "laptop", version: legacy, mute: true})
	p.toolNames()
	var err error
	for i := 0; err == nil && i < 300; i++ {
		err = p.session.Subscribe(t.Context(), &mcp.SubscribeParams{URI: fmt.Sprintf("note://%d", i)})
	}
	if err == nil || !strings.Contains(err.Error(), "256 subscriptions, the maximum") {
		t.Errorf("the number of subscriptions is not limited: %v", err)
	}
}

// A client gets the updates that it causes in its own upstream process: each client that
// can be asked for input has a separate process.
func TestFollowingInClientSession(t *testing.T) {
	t.Parallel()
	forEachVersionPair(t, func(t *testing.T, version, mode, way string) {
		if mode != "" {
			return
		}
		r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "one", upstreamtest.Hostile)}}, way)
		p := r.connectClient(t, clientSetup{user: "ann", version: version})
		p.toolNames()
		p.followResource("note://one", func() { p.callTool("one__touch", nil) })
		if got := p.callTool("one__touch", nil); got != "note://one" { // The call went to the process that the client follows.
			t.Errorf("subscriptions in the process of the call: %q", got)
		}
		if got := p.callTool("one__ask", args{"text": "well?"}); !strings.Contains(got, "ann says yes") {
			t.Errorf("a question while following returned %s", got)
		}
		p.callTool("one__crash", nil)
		p.waitForNotice("note://one", func() { p.callTool("one__touch", nil) })
	})
}
