package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/gateway"
	"github.com/guideway-dev/guideway/internal/gateway/pins"
	"github.com/guideway-dev/guideway/internal/gateway/upstream/upstreamtest"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
)

// replaceHooks replaces texts in requests and responses. pairs maps "METHOD TOOL" to old
// and new texts, in turn. If the first text is "fail", the hook returns an error.
type replaceHooks struct {
	pairs map[string][]string

	mu    sync.Mutex
	calls []string
}

func (*replaceHooks) Versions(string, string) map[string]string { return nil }

func (h *replaceHooks) Applies(method, _, tool string) bool { return h.pairs[method+" "+tool] != nil }

func (h *replaceHooks) Around(ctx context.Context, call gateway.HookCall, send func(context.Context, json.RawMessage) (json.RawMessage, error)) (json.RawMessage, error) {
	h.mu.Lock()
	h.calls = append(h.calls, fmt.Sprintf("%s %s/%s %s", call.Method, call.Upstream, call.Tool, call.Params))
	h.mu.Unlock()
	pairs := h.pairs[call.Method+" "+call.Tool]
	if pairs[0] == "fail" {
		return nil, errors.New("the hook has failed")
	}
	change := func(text json.RawMessage) json.RawMessage {
		return json.RawMessage(strings.NewReplacer(pairs...).Replace(string(text)))
	}
	result, err := send(ctx, change(call.Params))
	return change(result), err
}

func (h *replaceHooks) seenCalls() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.calls)
}

// TestRenamedByHooks checks that a tools/list hook can rename a tool and a tools/call hook
// can map the new name back, in both protocol versions.
func TestRenamedByHooks(t *testing.T) {
	t.Parallel()
	for name, version := range map[string]string{"legacy": legacy, "modern": modern} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hooks := &replaceHooks{pairs: map[string][]string{
				"tools/list ":     {`"echo"`, `"say"`, "The tool env.", "The environment."},
				"tools/call say":  {`"say"`, `"echo"`},
				"tools/call echo": {`"text":"`, `"text":"guarded `},
			}}
			r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "one")}, Hooks: hooks})
			p := r.connectClient(t, clientSetup{user: "ann", version: version})
			if names := p.toolNames(); !slices.Contains(names, "one__say") || slices.Contains(names, "one__echo") || !slices.Contains(names, "one__env") {
				t.Errorf("the tools are %v", names)
			}
			// The hook graph of the original tool also runs: a new name does not bypass it.
			if got := p.callTool("one__say", args{"text": "hi"}); got != "guarded guarded hi" {
				t.Errorf("callTool() = %s", got)
			}
			want := []string{
				`tools/list one/ {}`,
				`tools/call one/say {"name":"say","arguments":{"text":"hi"}}`,
				`tools/call one/echo {"name":"echo","arguments":{"text":"hi"}}`,
			}
			if got := hooks.seenCalls(); !slices.Equal(got, want) {
				t.Errorf("the hooks saw %q", got)
			}
			if got := p.callTool("one__nothing", nil); !strings.Contains(got, `unknown tool "one__nothing"`) {
				t.Errorf("a missing tool returned %s", got)
			}
		})
	}
}

// TestRenamedByHooksAndSearched checks that tool search finds a tool under the name that a
// hook gave it, and that tool_call calls it.
func TestRenamedByHooksAndSearched(t *testing.T) {
	t.Parallel()
	hooks := &replaceHooks{pairs: map[string][]string{"tools/list ": {`"echo"`, `"parrot"`}, "tools/call parrot": {`"parrot"`, `"echo"`}}}
	r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "one")}, Hooks: hooks, Lazy: true})
	p := r.connectClient(t, clientSetup{user: "ann", version: legacy})
	if got := p.callTool("tool_search", args{"query": "parrot"}); !strings.Contains(got, `"one__parrot"`) {
		t.Errorf("the search returned %s", got)
	}
	if got := p.callTool("tool_call", args{"name": "one__parrot", "arguments": args{"text": "hi"}}); got != "hi" {
		t.Errorf("callTool() = %s", got)
	}
}

// TestHookChangesAreAppliedOrReported checks that an invalid change of a call by a hook is
// reported, and so is a call of a hidden or denied tool.
func TestHookChangesAreAppliedOrReported(t *testing.T) {
	t.Parallel()
	hidden := newEntry(t, "one")
	hidden.Tools = map[string]config.UpstreamTool{"env": {Hide: true}}
	for name, tt := range map[string]struct {
		pairs map[string][]string
		tool  string
		want  string
	}{
		"redirected to a hidden tool":      {map[string][]string{"tools/call echo": {"echo", "env"}}, "one__echo", `to "env", which is not a tool of one that this client may call`},
		"to none":                          {map[string][]string{"tools/call echo": {"echo", "nothing"}}, "one__echo", `"nothing", which is not a tool`},
		"redirected to a denied tool":      {map[string][]string{"tools/call echo": {"echo", "count"}}, "one__echo", `"count", which is not a tool`},
		"without a name":                   {map[string][]string{"tools/call echo": {`"name"`, `"title"`}}, "one__echo", "set params.title"},
		"a member name in another case":    {map[string][]string{"tools/call echo": {`"name"`, `"Name"`}}, "one__echo", "letter case"},
		"arguments that are not an object": {map[string][]string{"tools/call echo": {`{"text":"x"}`, `7`}}, "one__echo", "arguments that are not an object"},
		"twice":                            {map[string][]string{"tools/call echo": {`"echo"`, `"params"`}, "tools/call params": {`"params"`, `"fail"`}}, "one__echo", "and another hook"},
		"a failing hook":                   {map[string][]string{"tools/call echo": {"fail", ""}}, "one__echo", "the hook has failed"},
		"a name that no hook knows":        {map[string][]string{"tools/call said": {"x", "y"}}, "one__said", `unknown tool "one__said"`},
		"a hidden tool's name":             {map[string][]string{"tools/call env": {"env", "echo"}}, "one__env", `unknown tool "one__env"`},
		"a denied name":                    {map[string][]string{"tools/call secret": {"secret", "echo"}}, "one__secret", `unknown tool "one__secret"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := hidden
			e.Spec.Env = map[string]string{upstreamtest.Variable: "", upstreamtest.CountFile: countFile(t)}
			r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{e}, Hooks: &replaceHooks{pairs: tt.pairs}})
			r.allow = map[string]auth.Allow{"ann": {Tools: []string{"one__echo", "one__env", "one__params", "one__fail", "one__said"}}}
			p := r.connectClient(t, clientSetup{user: "ann", version: legacy})
			p.toolNames()
			got := p.callTool(tt.tool, args{"text": "x"})
			if !strings.Contains(strings.ReplaceAll(got, `\"`, `"`), tt.want) || !strings.HasPrefix(got, "isError") && !strings.HasPrefix(got, "error") {
				t.Errorf("callTool() = %s", got)
			}
			if n := countCalls(e); n != 0 {
				t.Errorf("the call was made %d times", n)
			}
		})
	}
}

// A hook cannot redirect a call to a tool that waits for approval, whether the tool is new
// or changed. After the approval the hook can.
func TestHookCannotRedirectToUnapprovedTool(t *testing.T) {
	t.Parallel()
	for mode, held := range map[string]string{upstreamtest.Changing: "echo", upstreamtest.Growing: "new2"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			store := newPins(t, t.TempDir())
			hooks := &replaceHooks{pairs: map[string][]string{"tools/call params": {`"name":"params"`, `"name":"` + held + `"`}}}
			r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "one", mode)}, Pins: store, Hooks: hooks})
			p := r.connectClient(t, clientSetup{user: "ann", version: legacy})
			p.toolNames()
			if err := r.Refresh(t.Context(), "one", ""); err != nil {
				t.Fatal(err)
			}
			r.Reload()
			got := p.callTool("one__params", args{"text": "sent"})
			if !strings.HasPrefix(got, "isError") || !strings.Contains(got, "one__"+held+" waits for approval") {
				t.Errorf("the redirected call returned %s", got)
			}
			waiting, err := pins.Review(store, r.Known("one"), "one")
			if err != nil {
				t.Fatal(err)
			}
			if err := pins.Accept(store, "one", "ann", waiting); err != nil {
				t.Fatal(err)
			}
			r.Reload()
			if got := p.callTool("one__params", args{"text": "sent"}); strings.Contains(got, "approval") {
				t.Errorf("after the approval the call returned %s", got)
			}
		})
	}
}

// TestListHooksFailClosed checks that an upstream is omitted if a hook refuses its list or
// makes it invalid. Other upstreams are still offered.
func TestListHooksFailClosed(t *testing.T) {
	t.Parallel()
	for name, pairs := range map[string][]string{
		"refused":              {"fail", ""},
		"no list":              {`"tools"`, `"tool"`},
		"no name":              {`"name":"echo"`, `"title":"echo"`},
		"a name that is taken": {`"name":"echo"`, `"name":"env"`},
		"an invalid name":      {`"name":"echo"`, `"name":"e cho"`},
		"no schema":            {`"inputSchema"`, `"schema"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hooks := &upstreamHooks{"one", &replaceHooks{pairs: map[string][]string{"tools/list ": pairs}}}
			r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "one"), newEntry(t, "two")}, Hooks: hooks})
			names := r.connectClient(t, clientSetup{user: "ann", version: legacy}).toolNames()
			if slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, "one__") }) || !slices.Contains(names, "two__echo") {
				t.Errorf("the tools are %v", names)
			}
		})
	}
}

// upstreamHooks applies hooks to one upstream only.
type upstreamHooks struct {
	upstream string
	gateway.Hooks
}

func (h *upstreamHooks) Applies(method, upstream, tool string) bool {
	return upstream == h.upstream && h.Hooks.Applies(method, upstream, tool)
}

// A client that has a list is notified when the list hooks change.
func TestRelist(t *testing.T) {
	t.Parallel()
	r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "one")}})
	p := r.connectClient(t, clientSetup{user: "ann", version: legacy})
	p.toolNames()
	r.Relist()
	<-p.changed
}
