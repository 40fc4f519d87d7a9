package gateway_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/gateway"
	"github.com/guideway-dev/guideway/internal/gateway/pins"
	"github.com/guideway-dev/guideway/internal/gateway/upstream/upstreamtest"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/guideway-dev/guideway/internal/workflow/toolpolicy"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// longNames are the advertised names of the long tools and of the long prompt.
func longNames(t *testing.T, r *fixture) (read, write, greet string) {
	t.Helper()
	var names []string
	p := r.connectClient(t, clientSetup{user: "root", version: legacy})
	for _, name := range p.toolNames() {
		if len(name) > 49 {
			t.Errorf("%s has %d bytes", name, len(name))
		}
		if strings.HasPrefix(name, "one__long_") {
			names = append(names, name)
		}
	}
	prompts, err := p.session.ListPrompts(t.Context(), nil)
	if err != nil || len(prompts.Prompts) != 1 || len(prompts.Prompts[0].Name) > 49 {
		t.Fatalf("the prompts are %s %v", marshalText(t, prompts), err)
	}
	if len(names) != 2 || names[0] == names[1] {
		t.Fatalf("the tools are %v", names)
	}
	return names[0], names[1], prompts.Prompts[0].Name
}

// Tools and prompts with long names are listed with at most 49 characters, also with tool
// search, and the call reaches the upstream under each of the two names.
func TestLongNames(t *testing.T) {
	t.Parallel()
	r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "one", upstreamtest.LongNames)}})
	read, write, greet := longNames(t, r)
	long := upstreamtest.LongTools()
	for _, version := range []string{legacy, modern} {
		p := r.connectClient(t, clientSetup{user: "ann", version: version})
		for name, want := range map[string]string{read: long[0], write: long[1], "one__" + long[0]: long[0], "one__" + long[1]: long[1]} {
			if got := p.callTool(name, nil); got != want {
				t.Errorf("%s: %s called %q", version, name, got)
			}
			if got := p.callTool("tool_call", args{"name": name}); got != want {
				t.Errorf("%s: tool_call of %s called %q", version, name, got)
			}
		}
		// A word that was cut from the short name is still found.
		if got := p.callTool("tool_search", args{"query": "write"}); !strings.Contains(got, `"name":"`+write+`"`) || strings.Contains(got, read) {
			t.Errorf("%s: the search returned %s", version, got)
		}
		for _, name := range []string{greet, "one__" + upstreamtest.LongPrompt()} {
			if _, err := p.session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: name}); err != nil {
				t.Errorf("%s: %s: %v", version, name, err)
			}
		}
	}
	var status gateway.ToolStatus
	for _, tool := range r.ToolsOf("one") {
		if tool.Name == long[0] {
			status = tool
		}
	}
	if status.Shown != read || status.FullName != "one__"+long[0] {
		t.Errorf("the status is %+v", status)
	}
}

// A token may allow a long tool by either name; a pattern is matched with the full name.
// Neither name bypasses the permissions of the token, the hiding of a tool or an approval.
func TestLongNamesKeepAccess(t *testing.T) {
	t.Parallel()
	e := newEntry(t, "one", upstreamtest.LongNames)
	r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{e}})
	read, write, _ := longNames(t, r)
	long := upstreamtest.LongTools()
	hash := read[len(read)-8:]
	r.allow = map[string]auth.Allow{
		"short": {Tools: []string{read}}, "full": {Tools: []string{"one__" + long[0]}}, "pattern": {Tools: []string{"one__*_read"}},
		"hash": {Tools: []string{"*" + hash}}, "cut": {Tools: []string{read[:len(read)-8] + "*"}},
	}
	for user, allowed := range map[string]bool{"short": true, "full": true, "pattern": true, "hash": false, "cut": false} {
		for _, version := range []string{legacy, modern} {
			p := r.connectClient(t, clientSetup{user: user, version: version})
			if names := p.toolNames(); slices.Contains(names, read) != allowed || slices.Contains(names, write) {
				t.Errorf("%s sees %v", user, names)
			}
			for _, name := range []string{read, "one__" + long[0]} {
				if got := p.callTool(name, nil); strings.Contains(got, "unknown tool") == allowed {
					t.Errorf("%s called %s: %s", user, name, got)
				}
			}
			for _, name := range []string{write, "one__" + long[1]} {
				if got := p.callTool(name, nil); !strings.Contains(got, "unknown tool") {
					t.Errorf("%s called %s: %s", user, name, got)
				}
			}
		}
	}

	e.Tools = map[string]config.UpstreamTool{long[0]: {Hide: true}, long[1]: {Name: long[1] + "_2"}}
	if err := r.Configure(gateway.Settings{Upstreams: []gateway.Entry{e}}); err != nil {
		t.Fatal(err)
	}
	p := r.connectClient(t, clientSetup{user: "ann", version: legacy})
	for _, name := range []string{read, "one__" + long[0], write, "one__" + long[1]} {
		if got := p.callTool(name, nil); !strings.Contains(got, "unknown tool") {
			t.Errorf("the hidden or renamed tool %s returned %s", name, got)
		}
	}
	if got := p.callTool("one__"+long[1]+"_2", nil); got != long[1] {
		t.Errorf("the renamed tool returned %s", got)
	}

	held := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{withPins(newEntry(t, "one", upstreamtest.LongNames), pins.ModeApprove)}, Pins: newPins(t, t.TempDir())})
	p = held.connectClient(t, clientSetup{user: "ann", version: legacy})
	for _, name := range []string{read, "one__" + long[0]} {
		if got := p.callTool(name, nil); !strings.Contains(got, "waits for approval") {
			t.Errorf("the tool %s returned %s", name, got)
		}
	}
}

// Both names of a tool count against its limit.
func TestLongNamesShareLimit(t *testing.T) {
	t.Parallel()
	e := newEntry(t, "one", upstreamtest.LongNames)
	e.ToolPerMinute = 1
	r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{e}})
	read, _, _ := longNames(t, r)
	p := r.connectClient(t, clientSetup{user: "ann", version: legacy})
	p.callTool(read, nil)
	if got := p.callTool("one__"+upstreamtest.LongTools()[0], nil); !strings.Contains(got, "call again in") {
		t.Errorf("the second call returned %s", got)
	}
}

func withPins(e gateway.Entry, mode pins.Mode) gateway.Entry {
	e.Pins = mode
	return e
}

// Neither name of a long tool bypasses a policy that contains the other name.
func TestLongNamesKeepPolicy(t *testing.T) {
	t.Parallel()
	policies := &fixedPolicies{}
	r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "one", upstreamtest.LongNames)}, Policies: policies})
	read, _, _ := longNames(t, r)
	full := "one__" + upstreamtest.LongTools()[0]
	p := r.connectClient(t, clientSetup{user: "ann", version: legacy})
	for _, tt := range []struct {
		policy  toolpolicy.Policy
		allowed bool
	}{
		{toolpolicy.Policy{Deny: rules(full)}, false},
		{toolpolicy.Policy{Deny: rules(read)}, false},
		{toolpolicy.Policy{Deny: rules("one__*_read")}, false},
		{toolpolicy.Policy{Deny: rules(read[:len(read)-8] + "*")}, false},
		{toolpolicy.Policy{Deny: rules("one__*_write")}, true},
		{toolpolicy.Policy{Allow: rules(full)}, true},
		{toolpolicy.Policy{Allow: rules(read)}, true},
		{toolpolicy.Policy{Allow: rules("one__*_read")}, true},
		{toolpolicy.Policy{Allow: rules("*" + read[len(read)-4:])}, false},
	} {
		policies.set(nil, reviewScope(tt.policy))
		for _, name := range []string{read, full} {
			if got := p.callTool(name, nil); strings.Contains(got, `"refused"`) == tt.allowed {
				t.Errorf("%s: the call of %s returned %s", &tt.policy, name, got)
			}
		}
	}
}
