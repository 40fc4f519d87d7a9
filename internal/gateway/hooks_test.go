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

	"github.com/guideway-dev/guideway/internal/authn"
	"github.com/guideway-dev/guideway/internal/gateway"
	"github.com/guideway-dev/guideway/internal/upstream/upstreamtest"
)

// replacing are hooks that replace texts in what goes through: by "METHOD TOOL",
// pairs of an old text and a new one, for the request and the response alike.
type replacing struct {
	pairs map[string][]string

	mu    sync.Mutex
	calls []string
}

func (h *replacing) Looks(method, _, tool string) bool { return h.pairs[method+" "+tool] != nil }

func (h *replacing) Around(ctx context.Context, call gateway.HookCall, send func(context.Context, json.RawMessage) (json.RawMessage, error)) (json.RawMessage, error) {
	h.mu.Lock()
	h.calls = append(h.calls, fmt.Sprintf("%s %s/%s<%s %s", call.Method, call.Upstream, call.Tool, call.Before, call.Params))
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

func (h *replacing) seen() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.calls)
}

// A hook in tools/list renames a tool, and one in tools/call has calls of the new
// name find it, over both ways that calls take and where tools are found by need.
func TestRenamedByHooks(t *testing.T) {
	t.Parallel()
	for name, version := range map[string]string{"legacy": legacy, "modern": modern} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hooks := &replacing{pairs: map[string][]string{
				"tools/list ":     {`"echo"`, `"say"`, "The tool env.", "The environment."},
				"tools/call say":  {`"say"`, `"echo"`},
				"tools/call echo": {`"text":"`, `"text":"guarded `},
			}}
			r := newRig(t, gateway.Options{Upstreams: []gateway.Entry{entry(t, "one")}, Hooks: hooks})
			p := r.connect(t, ways{user: "ann", version: version})
			if names := p.names(); !slices.Contains(names, "one__say") || slices.Contains(names, "one__echo") || !slices.Contains(names, "one__env") {
				t.Errorf("the tools are %v", names)
			}
			// The graph that looks at the real tool sees the call too: a new name is
			// no way around it.
			if got := p.call("one__say", args{"text": "hi"}); got != "guarded guarded hi" {
				t.Errorf("the call gives %s", got)
			}
			want := []string{
				`tools/list one/< {}`,
				`tools/call one/say< {"name":"say","arguments":{"text":"hi"}}`,
				`tools/call one/echo<say {"name":"echo","arguments":{"text":"hi"}}`,
			}
			if got := hooks.seen(); !slices.Equal(got, want) {
				t.Errorf("the hooks saw %q", got)
			}
			if got := p.call("one__nothing", nil); !strings.Contains(got, `unknown tool "one__nothing"`) {
				t.Errorf("a tool that is not there: %s", got)
			}
		})
	}
}

// Where tools are found by need, they are found under the names that hooks gave.
func TestRenamedByHooksAndSearched(t *testing.T) {
	t.Parallel()
	hooks := &replacing{pairs: map[string][]string{"tools/list ": {`"echo"`, `"parrot"`}, "tools/call parrot": {`"parrot"`, `"echo"`}}}
	r := newRig(t, gateway.Options{Upstreams: []gateway.Entry{entry(t, "one")}, Hooks: hooks, Lazy: true})
	p := r.connect(t, ways{user: "ann", version: legacy})
	if got := p.call("tool_search", args{"query": "parrot"}); !strings.Contains(got, `"one__parrot"`) {
		t.Errorf("the search gives %s", got)
	}
	if got := p.call("tool_call", args{"name": "one__parrot", "arguments": args{"text": "hi"}}); got != "hi" {
		t.Errorf("the call gives %s", got)
	}
}

// What a hook makes of a call is done, or said not to be; nothing that it did is
// dropped, and nothing is sent that the client may not call.
func TestHooksAreNotIgnored(t *testing.T) {
	t.Parallel()
	hidden := entry(t, "one")
	hidden.Tools = map[string]gateway.ToolRule{"env": {Hide: true}}
	for name, tt := range map[string]struct {
		pairs map[string][]string
		tool  string
		want  string
	}{
		"to a hidden tool":       {map[string][]string{"tools/call echo": {"echo", "env"}}, "one__echo", `one of "env", which is no tool of one that this client may call`},
		"to none":                {map[string][]string{"tools/call echo": {"echo", "nothing"}}, "one__echo", `"nothing", which is no tool`},
		"to a denied one":        {map[string][]string{"tools/call echo": {"echo", "count"}}, "one__echo", `"count", which is no tool`},
		"without a name":         {map[string][]string{"tools/call echo": {`"name"`, `"title"`}}, "one__echo", "has set params.title"},
		"a name in other case":   {map[string][]string{"tools/call echo": {`"name"`, `"Name"`}}, "one__echo", "which is not"},
		"arguments of no kind":   {map[string][]string{"tools/call echo": {`{"text":"x"}`, `7`}}, "one__echo", "arguments that are no object"},
		"twice":                  {map[string][]string{"tools/call echo": {`"echo"`, `"params"`}, "tools/call params": {`"params"`, `"fail"`}}, "one__echo", "one hook made the call"},
		"a failing hook":         {map[string][]string{"tools/call echo": {"fail", ""}}, "one__echo", "the hook has failed"},
		"a name that none knows": {map[string][]string{"tools/call said": {"x", "y"}}, "one__said", `unknown tool "one__said"`},
		"a hidden tool's name":   {map[string][]string{"tools/call env": {"env", "echo"}}, "one__env", `unknown tool "one__env"`},
		"a denied name":          {map[string][]string{"tools/call secret": {"secret", "echo"}}, "one__secret", `unknown tool "one__secret"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := hidden
			e.Spec.Env = map[string]string{upstreamtest.Variable: "", upstreamtest.CountFile: countFile(t)}
			r := newRig(t, gateway.Options{Upstreams: []gateway.Entry{e}, Hooks: &replacing{pairs: tt.pairs}})
			r.allow = map[string]authn.Allow{"ann": {Tools: []string{"one__echo", "one__env", "one__params", "one__fail", "one__said"}}}
			p := r.connect(t, ways{user: "ann", version: legacy})
			p.names()
			got := p.call(tt.tool, args{"text": "x"})
			if !strings.Contains(strings.ReplaceAll(got, `\"`, `"`), tt.want) || !strings.HasPrefix(got, "isError") && !strings.HasPrefix(got, "error") {
				t.Errorf("the call gives %s", got)
			}
			if n := counted(e); n != 0 {
				t.Errorf("it was done %d times", n)
			}
		})
	}
}

// A list that hooks refuse, or make unusable, leaves that upstream out and no
// other.
func TestListsFailClosed(t *testing.T) {
	t.Parallel()
	for name, pairs := range map[string][]string{
		"refused":       {"fail", ""},
		"no list":       {`"tools"`, `"tool"`},
		"no name":       {`"name":"echo"`, `"title":"echo"`},
		"a taken name":  {`"name":"echo"`, `"name":"env"`},
		"a strange one": {`"name":"echo"`, `"name":"e cho"`},
		"no schema":     {`"inputSchema"`, `"schema"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hooks := &hooksOf{"one", &replacing{pairs: map[string][]string{"tools/list ": pairs}}}
			r := newRig(t, gateway.Options{Upstreams: []gateway.Entry{entry(t, "one"), entry(t, "two")}, Hooks: hooks})
			names := r.connect(t, ways{user: "ann", version: legacy}).names()
			if slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, "one__") }) || !slices.Contains(names, "two__echo") {
				t.Errorf("the tools are %v", names)
			}
		})
	}
}

// hooksOf are hooks of one upstream.
type hooksOf struct {
	upstream string
	gateway.Hooks
}

func (h *hooksOf) Looks(method, upstream, tool string) bool {
	return upstream == h.upstream && h.Hooks.Looks(method, upstream, tool)
}

// A client that holds a list is told when other hooks look at it.
func TestRelist(t *testing.T) {
	t.Parallel()
	r := newRig(t, gateway.Options{Upstreams: []gateway.Entry{entry(t, "one")}})
	p := r.connect(t, ways{user: "ann", version: legacy})
	p.names()
	r.Relist()
	<-p.changed
}
