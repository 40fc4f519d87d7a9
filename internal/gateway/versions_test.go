package gateway_test

import (
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/gateway"
	"github.com/guideway-dev/guideway/internal/gateway/upstream"
	"github.com/guideway-dev/guideway/internal/gateway/upstream/upstreamtest"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A server of both versions on stdio gets the calls of a client of 2025-11-25 that cannot be
// asked in that version, and all other calls in 2026-07-28. Only requested progress is
// requested from the server, and only server/discover identifies the gateway.
func TestVersionOfCalls(t *testing.T) {
	t.Parallel()
	shared := newEntry(t, "shared", upstreamtest.Modern)
	shared.Sessions = gateway.SessionsShared
	pinned := newEntry(t, "pinned", upstreamtest.Modern)
	pinned.Spec.Protocol = modern
	r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "one", upstreamtest.Modern), shared, pinned, newEntry(t, "old")}})
	mute := r.connectClient(t, clientSetup{user: "mute", version: legacy, mute: true})
	for _, c := range []struct {
		name, tool string
		client     *testClient
		modern     bool
	}{
		{"a legacy client without capabilities", "one__params", mute, false},
		{"one with sessions: shared", "shared__params", mute, true},
		{"one with a pinned version", "pinned__params", mute, true},
		{"one and a legacy server", "old__params", mute, false},
		{"a legacy client that can be asked", "one__params", r.connectClient(t, clientSetup{user: "asked", version: legacy}), true},
		{"a modern client without capabilities", "one__params", r.connectClient(t, clientSetup{user: "modern", version: modern, mute: true}), true},
	} {
		c.client.toolNames()
		got := c.client.callTool(c.tool, args{"text": "x"})
		if strings.Contains(got, `protocolVersion":"2026-07-28"`) != c.modern || !strings.Contains(got, `"text":"x"`) {
			t.Errorf("%s: the server got %s", c.name, got)
		}
		if strings.Contains(got, "clientInfo") || strings.Contains(got, "progressToken") {
			t.Errorf("%s: the server got members without need: %s", c.name, got)
		}
	}
	if err := mute.session.SetLoggingLevel(t.Context(), &mcp.SetLoggingLevelParams{Level: "info"}); err != nil { //nolint:staticcheck // SA1019: legacy clients use it
		t.Fatal(err)
	}
	if got := mute.callTool("one__params", args{}); !strings.Contains(got, "logLevel") {
		t.Errorf("the server got a call of a client that wants log messages without their level: %s", got)
	}
}

// A server that refuses the earlier version although it declares it is called in 2026-07-28.
func TestEarlierVersionOnlyDeclared(t *testing.T) {
	t.Parallel()
	r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "one", upstreamtest.Modern, upstreamtest.NoHandshake)}, Upstream: upstream.Options{}})
	p := r.connectClient(t, clientSetup{user: "mute", version: legacy, mute: true})
	p.toolNames()
	if got := p.callTool("one__params", args{"text": "x"}); !strings.Contains(got, "2026-07-28") {
		t.Errorf("the server got %s", got)
	}
}
