package gateway_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/gateway"
	"github.com/guideway-dev/guideway/internal/gateway/upstream/upstreamtest"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A tool or resource that an upstream offers only in the session of one client is in the
// lists of that client alone, and only that client is notified of it. Other clients can
// neither call nor read it, and it is gone when the client has left.
func TestListsOfOwnSessionsAreSeparate(t *testing.T) {
	t.Parallel()
	r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "one", upstreamtest.Learning)}})
	r.allow = map[string]auth.Allow{"bob": {Upstreams: []string{"one"}}}
	ann := r.connectClient(t, clientSetup{user: "ann", version: legacy})
	ann.toolNames() // A client that has connected before the first list is notified of it.
	others := map[string]*testClient{
		"with a token":         r.connectClient(t, clientSetup{user: "bob", version: legacy}),
		"without capabilities": r.connectClient(t, clientSetup{user: "cem", version: legacy, mute: true}),
		"of 2026-07-28":        r.connectClient(t, clientSetup{user: "dan", version: modern}),
	}
	uris := func(p *testClient) string {
		list, err := p.session.ListResources(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		return marshalText(t, list)
	}
	for name, p := range others {
		p.toolNames()
		if got := p.callTool("one__echo", args{"text": "x"}); got != "x" {
			t.Errorf("the call of the client %s returned %s", name, got)
		}
		p.toolNames()
	}
	ann.callTool("one__echo", args{"text": "learn"})
	<-ann.changed
	waitFor(t, func() bool {
		return slices.Contains(ann.toolNames(), "one__learned") && strings.Contains(uris(ann), "note://learned")
	})
	if got := ann.callTool("one__learned", nil); strings.Contains(got, "unknown tool") {
		t.Errorf("the call of the client itself returned %s", got)
	}
	late := r.connectClient(t, clientSetup{user: "eve", version: legacy})
	for name, p := range others {
		if names := p.toolNames(); slices.Contains(names, "one__learned") || !slices.Contains(names, "one__echo") {
			t.Errorf("the client %s sees %v", name, names)
		}
		if got := uris(p); strings.Contains(got, "note://learned") {
			t.Errorf("the client %s sees %s", name, got)
		}
		if got := p.callTool("one__learned", nil); !strings.Contains(got, `unknown tool "one__learned"`) {
			t.Errorf("the call of the client %s returned %s", name, got)
		}
		if n := len(p.changed); n != 0 {
			t.Errorf("the client %s was notified %d times", name, n)
		}
	}
	_ = ann.session.Close()
	if names := late.toolNames(); slices.Contains(names, "one__learned") {
		t.Errorf("a later client sees %v", names)
	}
}

// TestListsMatchTheSessionOfTheRequest checks the lists of two connections of one client,
// of which one has no capabilities. That one uses the shared session and its lists, unless
// each client has its own session.
func TestListsMatchTheSessionOfTheRequest(t *testing.T) {
	t.Parallel()
	for mode, shared := range map[gateway.Sessions]bool{gateway.SessionsAuto: true, gateway.SessionsClient: false} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			e := newEntry(t, "one", upstreamtest.Learning)
			e.Sessions = mode
			r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{e}})
			able := r.connectClient(t, clientSetup{user: "dan", version: modern})
			mute := r.connectClient(t, clientSetup{user: "dan", version: modern, mute: true})
			able.toolNames()
			able.callTool("one__echo", args{"text": "learn"})
			waitFor(t, func() bool { return slices.Contains(able.toolNames(), "one__learned") })
			if names := mute.toolNames(); slices.Contains(names, "one__learned") == shared || !slices.Contains(names, "one__echo") {
				t.Errorf("without capabilities the tools are %v", names)
			}
			if got := mute.callTool("one__learned", nil); strings.Contains(got, "unknown tool") != shared {
				t.Errorf("the call without capabilities returned %s", got)
			}
		})
	}
}

// A change that concerns all clients reaches all of them.
func TestSharedListsNotifyAllClients(t *testing.T) {
	t.Parallel()
	r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "one")}})
	var all []*testClient
	for _, w := range []clientSetup{{user: "ann", version: legacy}, {user: "cem", version: legacy, mute: true}, {user: "dan", version: modern}} {
		p := r.connectClient(t, w)
		p.toolNames()
		p.callTool("one__echo", args{"text": "x"})
		p.toolNames()
		all = append(all, p)
	}
	if err := r.Configure(gateway.Settings{Upstreams: []gateway.Entry{newEntry(t, "two")}}); err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		<-p.changed
		waitFor(t, func() bool { return slices.Contains(p.toolNames(), "two__echo") })
	}
}

// A change of the server's own lists, or of hooks on lists, reaches clients whose upstreams
// have not changed.
func TestOwnListsNotifyClients(t *testing.T) {
	t.Parallel()
	r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "one")}})
	for _, version := range []string{legacy, modern} {
		p := r.connectClient(t, clientSetup{user: "ann", version: version})
		p.toolNames()
		r.Reserve(nil)
		r.server.AddTool(&mcp.Tool{Name: "new_" + version, InputSchema: map[string]any{"type": "object"}}, nil)
		<-p.changed
		r.Relist()
		<-p.changed
	}
}
