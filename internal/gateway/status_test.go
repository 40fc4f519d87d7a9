package gateway_test

import (
	"context"
	"testing"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/gateway"
	"github.com/guideway-dev/guideway/internal/gateway/upstream"
	"github.com/guideway-dev/guideway/internal/gateway/upstream/upstreamtest"
)

// Running upstreams are pinged in both protocol versions; unused ones are not started, and
// a crashed one restarts automatically.
func TestWatch(t *testing.T) {
	t.Parallel()
	r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "old"), newEntry(t, "new", upstreamtest.Modern), newEntry(t, "idle")}})
	p := r.connectClient(t, clientSetup{user: "ann", version: legacy, mute: true})
	for _, tool := range []string{"old__echo", "new__echo"} {
		if got := p.callTool(tool, args{"text": "hi"}); got != "hi" {
			t.Fatal(got)
		}
	}
	if err := r.Restart("idle"); err != nil { // Listing its tools has started the upstream.
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	intervals := make(chan time.Duration, 1)
	intervals <- 20 * time.Millisecond
	go func() { defer close(done); r.Watch(ctx, intervals) }()
	health := func(name string) upstream.Health {
		h, ok := r.Health(name)
		if !ok {
			t.Errorf("%s is not in use", name)
		}
		return h
	}
	for _, name := range []string{"old", "new"} {
		waitFor(t, func() bool { h := health(name); return h.Pinged != nil && h.Pinged.Missed == 0 && h.Pinged.Took > 0 })
	}
	if h := health("idle"); h.Condition != upstream.ConditionIdle || h.Pinged != nil {
		t.Errorf("idle is %+v", h)
	}
	p.callTool("old__crash", nil)
	p.callTool("old__crash", nil)
	waitFor(t, func() bool { h := health("old"); return h.Condition == upstream.ConditionRunning && h.Restarts > 0 })
	cancel()
	<-done
	if _, ok := r.Health("none"); ok {
		t.Error("an unknown upstream was found")
	}
}

// A restart ends no call in progress, and the next call goes to a new process.
func TestRestart(t *testing.T) {
	t.Parallel()
	r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "one")}})
	p := r.connectClient(t, clientSetup{user: "ann", version: legacy, mute: true})
	p.toolNames()
	got := make(chan string, 1)
	go func() { got <- p.callTool("one__sleep", args{"ms": 300}) }()
	waitFor(t, func() bool { h, _ := r.Health("one"); return h.Sessions > 0 })
	if err := r.Restart("one"); err != nil {
		t.Fatal(err)
	}
	if text := p.callTool("one__echo", args{"text": "new"}); text != "new" {
		t.Errorf("after the restart: %s", text)
	}
	if text := <-got; text == "" || text[:5] == "isErr" || text[:5] == "error" {
		t.Errorf("the call in progress was answered by %q", text)
	}
	if err := r.Restart("none"); guideway.ErrorCode(err) != guideway.CodeNotFound {
		t.Error(err)
	}
}

// The status of each tool matches the way in which it is offered.
func TestToolsOf(t *testing.T) {
	t.Parallel()
	e := newEntry(t, "one")
	e.Tools = map[string]config.UpstreamTool{"count": {Hide: true}, "echo": {Name: "say", Description: "Says it."}}
	r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{e}})
	r.connectClient(t, clientSetup{user: "ann", version: legacy}).toolNames()
	tools := map[string]gateway.ToolStatus{}
	for _, tool := range r.ToolsOf("one") {
		tools[tool.Name] = tool
	}
	if s := tools["echo"]; s.Shown != "one__say" || s.Description != "Says it." {
		t.Errorf("echo is %+v", s)
	}
	if s := tools["count"]; !s.Hidden || s.Shown != "" {
		t.Errorf("count is %+v", s)
	}
	if s := tools["env"]; s.Shown != "one__env" || s.Held != "" {
		t.Errorf("env is %+v", s)
	}
}
