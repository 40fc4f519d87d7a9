package cli

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/guideway-dev/guideway/internal/cli/app"
)

// connectNamed connects a client with a name over HTTP or through guideway connect.
func (d *hookProject) connectNamed(s *serverProcess, name string, bridged bool) *sdkClient {
	d.Helper()
	return &sdkClient{t: d.T, name: name, ClientSession: d.connectSession(s, name, "", bridged, nil)}
}

// TestHookStateSurvivesRestart checks the bundled graphs that have a state, in a chain with
// redact-secrets. Two clients, one of them through guideway connect, use two servers on one
// data directory. After both servers are killed, another server continues with the state.
// Of 64 concurrent calls of both clients exactly as many pass as the rate limit allows.
// Cached results are redacted. A person who clears a part of the state allows new calls.
func TestHookStateSurvivesRestart(t *testing.T) {
	t.Parallel()
	d, count := newGatewayProject(t)
	for _, command := range []string{
		"hooks import --template rate-limit --id rate --upstream one --tool echo --set limit=10 --set seconds=3600 --set per=upstream",
		"hooks import --template quota --id quota --upstream one --tool params --set limit=2 --set period=month",
		"hooks import --template response-cache --id cache --upstream one --tool count --set seconds=3600",
		"hooks import --template deduplicate --id once --upstream one --tool work --set seconds=3600 --set per=global",
		"hooks import --template response-cache --id results --upstream one --tool slow --set seconds=3600",
		"hooks enable rate", "hooks enable quota", "hooks enable cache", "hooks enable once", "hooks enable results", "hooks enable redact-secrets",
	} {
		d.wantCommand(app.ExitOK, "", command)
	}
	first, second := d.startServer("127.0.0.1:0"), d.startServer("127.0.0.1:0")
	ann, bob := d.connectNamed(first, "ann", false), d.connectNamed(second, "bob", true)
	var passed atomic.Int32
	var group sync.WaitGroup
	for i := range 64 {
		group.Go(func() {
			got := []*sdkClient{ann, bob}[i%2].callTool(t.Context(), "one__echo", map[string]any{"text": "x"})
			if got == "x" {
				passed.Add(1)
			} else if !strings.Contains(got, "more than 10 calls in 3600 seconds") {
				t.Errorf("a call was neither made nor refused by the limit: %s", got)
			}
		})
	}
	group.Wait()
	if passed.Load() != 10 {
		t.Errorf("%d of 64 calls passed at a limit of 10", passed.Load())
	}
	const secret = "key AKIAABCDEFGHIJKLMNOP"
	check := func(c *sdkClient, tool, want string, counted int) {
		t.Helper()
		before := countLines(t, count)
		if got := c.callTool(t.Context(), tool, map[string]any{"text": "x"}); !strings.Contains(got, want) {
			t.Errorf("%s of %s returned %s, want %s", tool, c.name, got, want)
		}
		if got := countLines(t, count) - before; got != counted {
			t.Errorf("%s of %s was sent %d times, want %d", tool, c.name, got, counted)
		}
	}
	const full = "the quota of 2 calls for the month"
	check(ann, "one__params", `"text":"x"`, 0)
	check(ann, "one__params", `"text":"x"`, 0)
	check(ann, "one__params", full, 0)
	check(bob, "one__params", `"text":"x"`, 0)
	check(ann, "one__count", "counted", 1)
	check(ann, "one__count", "counted", 0)
	check(bob, "one__work", "", 1)
	check(ann, "one__work", "", 0)
	wantCached := func() {
		t.Helper()
		if got := bob.callTool(t.Context(), "one__slow", map[string]any{"text": secret}); got != "done key [redacted]" {
			t.Errorf("the cached call returned %s", got)
		}
	}
	wantCached()

	first.killProcess()
	second.killProcess()
	third := d.startServer("127.0.0.1:0")
	ann, bob = d.connectNamed(third, "ann", false), d.connectNamed(third, "bob", true)
	check(bob, "one__echo", "more than 10 calls in 3600 seconds", 0)
	check(ann, "one__params", full, 0)
	check(bob, "one__params", `"text":"x"`, 0)
	check(bob, "one__params", full, 0)
	check(ann, "one__count", "counted", 0)
	check(bob, "one__count", "counted", 1)
	check(ann, "one__work", "", 0)
	wantCached()

	if _, out := d.runCommand("hooks state list --json"); strings.Contains(out, secret) || strings.Count(out, "done key [redacted]") != 1 {
		t.Errorf("the state is %s", out)
	}
	d.wantCommand(app.ExitOK, "Cleared 2 values of quota.", "hooks state clear quota")
	check(ann, "one__params", `"text":"x"`, 0)
	check(bob, "one__params", `"text":"x"`, 0)
}
