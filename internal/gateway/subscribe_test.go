package gateway_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/authn"
	"github.com/guideway-dev/guideway/internal/gateway"
	"github.com/guideway-dev/guideway/internal/upstream/upstreamtest"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// follows has a client follow a resource, and waits until it is told of an update that
// was caused behind that.
func (p *person) follows(uri string, touch func()) {
	p.t.Helper()
	if err := p.session.Subscribe(p.t.Context(), &mcp.SubscribeParams{URI: uri}); err != nil {
		p.t.Fatal(err)
	}
	p.isTold(uri, touch)
}

func (p *person) isTold(uri string, touch func()) {
	p.t.Helper()
	before := len(p.noted(&p.updated))
	await(p.t, func() bool {
		touch()
		return slices.Contains(p.noted(&p.updated)[before:], uri)
	})
}

// Who follows a resource is told of it by the address that it uses, and nobody else is;
// and goes on to be told when the upstream has crashed, was started anew or has another
// configuration, until it ends that.
func TestFollowing(t *testing.T) {
	t.Parallel()
	e := entry(t, "one", upstreamtest.Vile)
	r := newRig(t, gateway.Options{Upstreams: []gateway.Entry{e}})
	var people []*person
	for i, version := range []string{legacy, legacy, modern, legacy} {
		p := r.connect(t, ways{user: fmt.Sprint("user", i), version: version, mute: true})
		p.names()
		people = append(people, p)
	}
	ann, bob, eve, dan := people[0], people[1], people[2], people[3]
	touch := func() { dan.call("one__touch", nil) }
	const by = "guideway-upstream:one/note://one"
	ann.follows("note://one", touch)
	bob.follows(by, touch)
	eve.follows("note://one", touch)
	for name, again := range map[string]func(){
		"crash":   func() { dan.call("one__crash", nil) },
		"restart": func() { _ = r.Restart("one") },
		"other": func() {
			e.Spec.Env["OTHER"] = "1"
			if err := r.Apply([]gateway.Entry{e}); err != nil {
				t.Error(err)
			}
		},
	} {
		again()
		ann.isTold("note://one", touch)
		bob.isTold(by, touch)
		eve.isTold("note://one", touch)
		t.Log(name)
	}
	if got := dan.noted(&dan.updated); len(got) > 0 {
		t.Errorf("who follows nothing was told of %v", got)
	}
	if slices.Contains(ann.noted(&ann.updated), by) || slices.Contains(bob.noted(&bob.updated), "note://one") {
		t.Error("somebody was told by another's address")
	}
	for _, p := range []*person{ann, eve} {
		if err := p.session.Unsubscribe(t.Context(), &mcp.UnsubscribeParams{URI: "note://one"}); err != nil {
			t.Error(err)
		}
	}
	if err := bob.session.Close(); err != nil {
		t.Error(err)
	}
	await(t, func() bool { return dan.call("one__touch", nil) == "" }) // the upstream is told that nobody follows
}

// A gateway does not wait for those who follow something.
func TestFollowersHoldNothingUp(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{upstreamtest.Vile, upstreamtest.Modern} {
		r := newRig(t, gateway.Options{Upstreams: []gateway.Entry{entry(t, "one", mode)}})
		p := r.connect(t, ways{user: "ann", version: legacy, mute: true})
		p.names()
		if err := p.session.Subscribe(t.Context(), &mcp.SubscribeParams{URI: "note://one"}); err != nil {
			t.Fatal(err)
		}
		r.Close(context.Background()) // it would wait for ever
	}
}

// A token that may not read a resource follows it in no era, and one client has no more
// subscriptions than a bound.
func TestFollowingIsNarrowed(t *testing.T) {
	t.Parallel()
	r := newRig(t, gateway.Options{Upstreams: []gateway.Entry{entry(t, "one", upstreamtest.Vile)}})
	r.allow = map[string]authn.Allow{"phone": {Tools: []string{"one__touch"}}, "laptop": {Upstreams: []string{"one"}}}
	for _, version := range []string{legacy, modern} {
		p := r.connect(t, ways{user: "phone", version: version, mute: true})
		p.names()
		for _, uri := range []string{"note://one", "note://any", "guideway-upstream:one/note://one"} {
			err := p.session.Subscribe(t.Context(), &mcp.SubscribeParams{URI: uri})
			if err == nil && version == legacy { // a client of the newer era does not wait for the answer
				t.Errorf("%s: %s is followed", version, uri)
			}
		}
		if got := p.call("one__touch", nil); got != "" {
			t.Errorf("%s: the upstream was asked to tell of %q", version, got)
		}
	}
	p := r.connect(t, ways{user: "laptop", version: legacy, mute: true})
	p.names()
	var err error
	for i := 0; err == nil && i < 300; i++ {
		err = p.session.Subscribe(t.Context(), &mcp.SubscribeParams{URI: fmt.Sprintf("note://%d", i)})
	}
	if err == nil || !strings.Contains(err.Error(), "at once") {
		t.Errorf("a client follows without end: %v", err)
	}
}

// What a client does to a resource, in a process of its own, it is told of: the clients
// that can be asked have one each.
func TestFollowingInOnesOwnSession(t *testing.T) {
	t.Parallel()
	eras(t, func(t *testing.T, version, mode, way string) {
		if mode != "" {
			return
		}
		r := newRig(t, gateway.Options{Upstreams: []gateway.Entry{entry(t, "one", upstreamtest.Vile)}}, way)
		p := r.connect(t, ways{user: "ann", version: version})
		p.names()
		p.follows("note://one", func() { p.call("one__touch", nil) })
		if got := p.call("one__touch", nil); got != "note://one" { // it took no other process
			t.Errorf("in the process of the call are followed: %q", got)
		}
		if got := p.call("one__ask", args{"text": "well?"}); !strings.Contains(got, "ann says yes") {
			t.Errorf("a question meanwhile: %s", got)
		}
		p.call("one__crash", nil)
		p.isTold("note://one", func() { p.call("one__touch", nil) })
	})
}
