package gateway_test

import (
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/gateway"
	"github.com/guideway-dev/guideway/internal/gateway/upstream/upstreamtest"
	"github.com/guideway-dev/guideway/internal/workflow/toolpolicy"
)

// toolText returns the definition of a tool that the client sees.
func (p *testClient) toolText(name string) string {
	p.t.Helper()
	for tool, err := range p.session.Tools(p.t.Context(), nil) {
		if err != nil {
			p.t.Fatal(err)
		}
		if tool.Name == name {
			return marshalText(p.t, tool)
		}
	}
	return ""
}

// The configuration replaces the annotations and the title of a tool; the other annotations
// of the upstream stay. LongTools declare "destructiveHint": true and a title.
func TestAnnotations(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	long := upstreamtest.LongTools()
	e := newEntry(t, "one", upstreamtest.LongNames)
	e.Tools = map[string]config.UpstreamTool{
		"echo": {ReadOnly: &yes, OpenWorld: &no, Title: "Say\u200b it"}, "env": {Idempotent: &yes},
		long[0]: {Name: "read", ReadOnly: &yes}, long[1]: {Name: "write", Destructive: &no},
	}
	r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{e}})
	p := r.connectClient(t, clientSetup{user: "ann", version: legacy})
	for tool, want := range map[string][]string{
		"one__echo":  {`"readOnlyHint":true`, `"openWorldHint":false`, `"destructiveHint":false`, `"title":"Say it"`},
		"one__env":   {`"idempotentHint":true`},
		"one__read":  {`"readOnlyHint":true`, `"destructiveHint":false`, `"title":"Long"`},
		"one__write": {`"destructiveHint":false`, `"title":"Long"`},
	} {
		text := p.toolText(tool)
		for _, part := range want {
			if !strings.Contains(text, part) {
				t.Errorf("%s is %s and lacks %s", tool, text, part)
			}
		}
	}
	if text := p.toolText("one__count"); strings.Contains(text, "annotations") {
		t.Errorf("a tool without a rule is %s", text)
	}
	for _, tool := range r.ToolsOf("one") {
		if tool.Name == "echo" && (!tool.Annotations["readOnly"] || len(tool.Annotations) != 3) {
			t.Errorf("the status is %+v", tool)
		}
	}
}

// Policies decide by the annotations of the configuration.
func TestPolicyByConfiguredAnnotations(t *testing.T) {
	t.Parallel()
	yes := true
	e := newEntry(t, "one", upstreamtest.LongNames)
	long := upstreamtest.LongTools()
	e.Tools = map[string]config.UpstreamTool{"echo": {ReadOnly: &yes}, "env": {Destructive: &yes}, long[0]: {ReadOnly: &yes}}
	onlyReading := toolpolicy.Policy{Allow: []toolpolicy.Rule{{Tool: "*", Annotations: map[string]bool{"readOnly": true}}}}
	notDestructive := toolpolicy.Policy{Deny: []toolpolicy.Rule{{Tool: "*", Annotations: map[string]bool{"destructive": true}}}}
	for name, policy := range map[string]toolpolicy.Policy{"allow readOnly": onlyReading, "deny destructive": notDestructive} {
		r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{e}, Tools: &policy})
		p := r.connectClient(t, clientSetup{user: "ann", version: legacy})
		p.toolNames()
		for tool, allowed := range map[string]bool{"echo": true, long[0]: true, "env": false, "count": false, long[1]: false} {
			if got := p.callTool("one__"+tool, args{"text": "x"}); strings.Contains(got, `"refused"`) == allowed {
				t.Errorf("%s: the call of %s returned %s", name, tool, got)
			}
		}
	}
}

// An annotation of the configuration needs no approval, and does not approve a change of the
// upstream.
func TestAnnotationsKeepPins(t *testing.T) {
	t.Parallel()
	yes := true
	e := newEntry(t, "one", upstreamtest.Changing)
	r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{e}, Pins: newPins(t, t.TempDir())})
	p := r.connectClient(t, clientSetup{user: "ann", version: legacy})
	p.toolNames()
	e.Tools = map[string]config.UpstreamTool{"echo": {ReadOnly: &yes}}
	if err := r.Configure(gateway.Settings{Upstreams: []gateway.Entry{e}}); err != nil {
		t.Fatal(err)
	}
	if text := p.toolText("one__echo"); !strings.Contains(text, `"readOnlyHint":true`) {
		t.Errorf("the tool is %s", text)
	}
	if err := r.Refresh(t.Context(), "one", ""); err != nil { // The upstream changes the tool.
		t.Fatal(err)
	}
	if got := p.callTool("one__echo", args{"text": "x"}); !strings.Contains(got, "waits for approval") {
		t.Errorf("the changed tool returned %s", got)
	}
}
