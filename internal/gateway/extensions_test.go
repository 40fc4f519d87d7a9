package gateway_test

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/gateway"
	"github.com/guideway-dev/guideway/internal/gateway/upstream"
	"github.com/guideway-dev/guideway/internal/gateway/upstream/upstreamtest"
	sdkjsonrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	apps   = upstream.ExtensionApps
	skills = upstream.ExtensionSkills
	tasks  = upstream.ExtensionTasks
)

// extensionsOf returns the extensions that the gateway declares to a client.
func extensionsOf(p *testClient) string {
	list := p.session.InitializeResult().Capabilities.Extensions
	var out []string
	for _, id := range slices.Sorted(maps.Keys(list)) {
		settings, _ := json.Marshal(list[id])
		out = append(out, strings.TrimPrefix(id, "io.modelcontextprotocol/")+string(settings))
	}
	return strings.Join(out, " ")
}

// requireCode fails the test unless err is a protocol error with the code and a text.
func requireCode(t *testing.T, err error, code int64, text string) {
	t.Helper()
	var failure *sdkjsonrpc.Error
	if !errors.As(err, &failure) || failure.Code != code || !strings.Contains(failure.Message, text) {
		t.Errorf("the error is %v, want code %d with %q", err, code, text)
	}
}

// The gateway declares the extensions that a client and at least one upstream declare, and no
// other: not one that only the client or only the upstream declares, and not one that an
// upstream declares in an invalid way. Skills need no declaration of the client.
func TestExtensionsAreIntersection(t *testing.T) {
	t.Parallel()
	all := []string{apps, skills, tasks, "evil.example/all"}
	for _, test := range []struct {
		name           string
		modes          []string
		declared       []string
		legacy, modern string
	}{
		{"none", nil, all, "", ""},
		{"apps of both", []string{upstreamtest.Apps}, []string{apps}, "ui{}", "ui{}"},
		{"apps of the upstream alone", []string{upstreamtest.Apps}, nil, "", ""},
		{"tools with pages", []string{upstreamtest.AppsUndeclared}, all, "ui{}", "ui{}"},
		{"skills", []string{upstreamtest.Skills}, []string{skills}, `skills{"directoryRead":true}`, `skills{"directoryRead":true}`},
		{"tasks of a modern upstream", []string{upstreamtest.Modern, upstreamtest.Tasks}, all, "", "tasks{}"},
		{"tasks of a legacy upstream", []string{upstreamtest.Tasks}, all, "", ""},
		{"tasks of the upstream alone", []string{upstreamtest.Modern, upstreamtest.Tasks}, []string{apps}, "", ""},
		{"a liar", []string{upstreamtest.Modern, upstreamtest.Liar}, all, "skills{}", "skills{}"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "one", test.modes...), newEntry(t, "plain")}})
			r.connectClient(t, clientSetup{user: "first", version: legacy}).toolNames() // Skills are declared if the lists are known.
			for version, want := range map[string]string{legacy: test.legacy, modern: test.modern} {
				if got := extensionsOf(r.connectClient(t, clientSetup{user: "ann", version: version, extensions: test.declared})); got != want {
					t.Errorf("%s: the extensions are %s, want %s", version, got, want)
				}
			}
		})
	}
}

// The first client that declares an extension gets it even if the gateway has not yet asked
// the upstream.
func TestHandshakeWaitsForUpstreams(t *testing.T) {
	t.Parallel()
	for _, version := range []string{legacy, modern} {
		r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "one", upstreamtest.Apps)}})
		if got := extensionsOf(r.connectClient(t, clientSetup{user: "ann", version: version, extensions: []string{apps}})); got != "ui{}" {
			t.Errorf("%s: the extensions are %q", version, got)
		}
	}
}

// An upstream gets the extensions that the client declares, with the known settings only,
// and no extension that the client does not declare.
func TestUpstreamGetsExtensionsOfClient(t *testing.T) {
	t.Parallel()
	const declared = `"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}}`
	for _, upstreamVersion := range []string{legacy, modern} {
		tool, modes := "one__handshake", []string{upstreamtest.Apps}
		if upstreamVersion == modern {
			tool, modes = "one__params", []string{upstreamtest.Apps, upstreamtest.Modern}
		}
		for _, mute := range []bool{true, false} {
			r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "one", modes...)}})
			for _, version := range []string{legacy, modern} {
				for _, user := range []string{"with", "without"} {
					setup := clientSetup{user: user, version: version, mute: mute}
					if user == "with" {
						setup.extensions = []string{apps, tasks, "evil.example/all"}
					}
					got := r.connectClient(t, setup).callTool(tool, nil)
					if strings.Contains(got, declared) != (user == "with") || strings.Contains(got, "evil") || strings.Contains(got, tasks) {
						t.Errorf("upstream %s, client %s %s: the upstream got %s", upstreamVersion, version, user, got)
					}
				}
			}
		}
	}
}

// A tool for pages alone is neither listed for a client without MCP Apps nor callable by it,
// and no model can find it or call it through tool_call, even if the client has MCP Apps.
func TestPageOnlyToolIsHidden(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{upstreamtest.Apps, upstreamtest.AppsUndeclared} {
		for _, change := range []string{slow, "fast"} {
			r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "one", mode)}}, change)
			for _, version := range []string{legacy, modern} {
				without := r.connectClient(t, clientSetup{user: "ann", version: version, extensions: []string{skills, tasks}})
				with := r.connectClient(t, clientSetup{user: "bob", version: version, extensions: []string{apps}})
				if names := without.toolNames(); slices.Contains(names, "one__page_only") || !slices.Contains(names, "one__model_only") {
					t.Errorf("%s: a client without MCP Apps sees %v", version, names)
				}
				if names := with.toolNames(); !slices.Contains(names, "one__page_only") || !slices.Contains(names, "one__model_only") {
					t.Errorf("%s: a client with MCP Apps sees %v", version, names)
				}
				for _, name := range []string{"one__page_only", "page_only"} {
					if got := with.callTool(name, nil); got != "called page_only" {
						t.Errorf("%s: calling %s with MCP Apps returned %s", version, name, got)
					}
				}
				_, err := without.session.CallTool(t.Context(), &mcp.CallToolParams{Name: "one__page_only"})
				requireCode(t, err, -32021, "only for pages of MCP Apps, which this client does not support")
				if got := without.callTool("page_only", nil); !strings.Contains(got, "unknown tool") {
					t.Errorf("%s: calling the tool by its original name without MCP Apps returned %s", version, got)
				}
				for _, p := range []*testClient{with, without} {
					if got := p.callTool("tool_search", args{"query": "only", "limit": 50}); strings.Contains(got, "page_only") || !strings.Contains(got, "model_only") {
						t.Errorf("%s: tool_search found %s", version, got)
					}
					for _, name := range []string{"one__page_only", "page_only"} {
						got := p.callTool("tool_call", args{"name": name})
						if strings.Contains(got, "called") || !strings.Contains(got, "only for") && !strings.Contains(got, "unknown tool") {
							t.Errorf("%s: tool_call of %s returned %s", version, name, got)
						}
					}
				}
			}
		}
	}
}

// A page calls the tools of its upstream by the upstream's names. This does not apply to
// the names of this server's own tools, to tools that only models may call, and to names
// that two upstreams with pages use.
func TestPageCallsToolByOriginalName(t *testing.T) {
	t.Parallel()
	r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "one", upstreamtest.Apps), newEntry(t, "plain")}})
	p := r.connectClient(t, clientSetup{user: "ann", version: legacy, extensions: []string{apps}})
	p.toolNames()
	for name, want := range map[string]string{"count": "counted", "own_tool": "own", "model_only": "unknown tool", "workflow_start": "unknown tool"} {
		if got := p.callTool(name, nil); !strings.Contains(got, want) {
			t.Errorf("%s returned %s, want %s", name, got, want)
		}
	}
	two := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "one", upstreamtest.Apps), newEntry(t, "two", upstreamtest.Apps)}})
	p = two.connectClient(t, clientSetup{user: "ann", version: legacy, extensions: []string{apps}})
	p.toolNames()
	if got := p.callTool("count", nil); !strings.Contains(got, "unknown tool") {
		t.Errorf("a name of two upstreams returned %s", got)
	}
}

// An upstream that has more extensions after a restart receives no more extensions of a
// client than before, and a client without MCP Apps still sees no tool that only pages may
// call.
func TestExtensionsGrowAfterRestart(t *testing.T) {
	t.Parallel()
	for _, version := range []string{legacy, modern} {
		before, after := newEntry(t, "one"), newEntry(t, "one", upstreamtest.Apps)
		r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{before}})
		p := r.connectClient(t, clientSetup{user: "ann", version: version})
		p.toolNames()
		if err := r.Configure(gateway.Settings{Upstreams: []gateway.Entry{after}}); err != nil {
			t.Fatal(err)
		}
		if names := p.toolNames(); slices.Contains(names, "one__page_only") || !slices.Contains(names, "one__model_only") {
			t.Errorf("%s: the client sees %v", version, names)
		}
		if got := p.callTool("one__handshake", nil); strings.Contains(got, "extensions") {
			t.Errorf("%s: the upstream got %s", version, got)
		}
	}
}
