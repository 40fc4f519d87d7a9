package gateway_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/gateway"
	"github.com/guideway-dev/guideway/internal/gateway/upstream"
	"github.com/guideway-dev/guideway/internal/gateway/upstream/upstreamtest"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Tool names are unique and valid for all names that an upstream may use, and the same at
// every start.
func TestNames(t *testing.T) {
	t.Parallel()
	list := func() []string {
		r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{
			newEntry(t, "a", upstreamtest.Colliding), newEntry(t, "a.b", upstreamtest.Colliding), newEntry(t, "a_b"),
		}})
		return r.connectClient(t, clientSetup{user: "ann", version: legacy}).toolNames()
	}
	names := list()
	form := regexp.MustCompile(`^(own_tool|(a|a\.b|a_b)__[A-Za-z0-9_.-]+)$`)
	seen := map[string]bool{}
	for _, name := range names {
		if seen[name] || len(name) > 128 || !form.MatchString(name) {
			t.Errorf("the name %q is invalid", name)
		}
		seen[name] = true
	}
	for _, want := range []string{"a__a_b", "a__workflow_start", "a__tool_call", "a.b__a_b"} {
		if !seen[want] {
			t.Errorf("%s is missing in %v", want, names)
		}
	}
	if again := list(); !slices.Equal(names, again) {
		t.Errorf("at the next start the names are %v", again)
	}
}

// Without a prefix an upstream cannot take names of this server or of another upstream.
func TestNoPrefix(t *testing.T) {
	t.Parallel()
	bare := newEntry(t, "bare", upstreamtest.Colliding)
	bare.NoPrefix = true
	second := newEntry(t, "second")
	second.NoPrefix = true
	r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{bare, second}})
	names := r.connectClient(t, clientSetup{user: "ann", version: legacy}).toolNames()
	slices.Sort(names)
	if len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Errorf("duplicate names in %v", names)
	}
	for _, reserved := range []string{"workflow_start", "tool_call"} {
		if slices.Contains(names, reserved) {
			t.Errorf("%s was taken by an upstream", reserved)
		}
	}
	notes := fmt.Sprint(r.Notes())
	if !strings.Contains(notes, "reserved or already in use") {
		t.Errorf("the notes are %s", notes)
	}
}

// TestCallBeforeList checks that a call that comes before any list, such as at another
// instance than the list of its client, reaches a tool without a prefix.
func TestCallBeforeList(t *testing.T) {
	t.Parallel()
	bare := newEntry(t, "bare")
	bare.NoPrefix = true
	r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{bare}})
	if got := r.connectClient(t, clientSetup{user: "ann", version: legacy}).callTool("echo", args{"text": "x"}); got != "x" {
		t.Errorf("the call returns %q", got)
	}
}

// TestRules checks that hidden and renamed tools are consistent in lists and calls.
func TestRules(t *testing.T) {
	t.Parallel()
	e := newEntry(t, "one")
	e.Tools = map[string]config.UpstreamTool{
		"env": {Hide: true}, "echo": {Name: "say", Description: "Says it."},
	}
	r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{e}})
	p := r.connectClient(t, clientSetup{user: "ann", version: legacy})
	names := p.toolNames()
	if slices.Contains(names, "one__env") || slices.Contains(names, "one__echo") || !slices.Contains(names, "one__say") {
		t.Errorf("the names are %v", names)
	}
	if got := p.callTool("one__say", args{"text": "x"}); got != "x" {
		t.Errorf("say: %q", got)
	}
	for _, hidden := range []string{"one__env", "one__echo"} {
		if got := p.callTool(hidden, nil); !strings.Contains(got, "unknown tool") {
			t.Errorf("%s: %q", hidden, got)
		}
	}
}

// TestPoisonedDescription checks that hidden characters in descriptions are removed and
// long descriptions are truncated, and that both are reported.
func TestPoisonedDescription(t *testing.T) {
	t.Parallel()
	r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "one", upstreamtest.Poisoned)}})
	p := r.connectClient(t, clientSetup{user: "ann", version: legacy})
	for tool, err := range p.session.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		if len(tool.Description) > 4<<10 || strings.ContainsAny(tool.Description, "\u200b\u202e\U000E0041") {
			t.Errorf("%s: %d bytes, %q", tool.Name, len(tool.Description), tool.Description[:40])
		}
	}
	prompts, err := p.session.ListPrompts(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	resources, err := p.session.ListResources(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	tools, err := p.session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if all := marshalText(t, []any{prompts, resources, tools}); strings.ContainsAny(all, "\u200b\u202e\U000E0041\U000E0042") || !strings.Contains(all, "What it is") {
		t.Errorf("%q contains hidden characters", all)
	}
	notes := fmt.Sprint(r.Notes())
	if !strings.Contains(notes, "hidden characters removed: 3") || !strings.Contains(notes, "truncated to") ||
		!strings.Contains(notes, "hidden characters removed from descriptions: 2") || !strings.Contains(notes, "greet hidden characters removed: 1") {
		t.Errorf("the notes are %s", notes)
	}
}

// A principal sees and calls only the tools it may use.
func TestAccess(t *testing.T) {
	t.Parallel()
	two := newEntry(t, "two")
	two.Project = "p"
	r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "one"), two}})
	r.allow = map[string]auth.Allow{
		"upstream": {Upstreams: []string{"one"}}, "project": {Projects: []string{"p"}},
		"tool": {Tools: []string{"one__e*"}}, "all": {All: true}, "nothing": {},
	}
	for user, want := range map[string]map[string]bool{
		"upstream": {"one__echo": true, "one__count": true},
		"project":  {"two__echo": true, "two__count": true},
		"tool":     {"one__echo": true, "one__env": true},
		"all":      {"one__echo": true, "one__count": true, "two__echo": true, "two__count": true, "one__env": true},
		"nothing":  {},
	} {
		for _, version := range []string{legacy, modern} {
			p := r.connectClient(t, clientSetup{user: user, version: version})
			names := p.toolNames()
			for _, tool := range []string{"one__echo", "one__env", "one__count", "two__echo", "two__count"} {
				allowed := want[tool] || tool == "one__env" && (user == "upstream")
				if slices.Contains(names, tool) != allowed {
					t.Errorf("%s sees %s: want %v", user, tool, allowed)
				}
				got := p.callTool(tool, args{"text": "x"})
				if refused := strings.Contains(got, "unknown tool"); refused == allowed {
					t.Errorf("%s calls %s: %s", user, tool, got)
				}
			}
			resources, err := p.session.ListResources(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if some := len(resources.Resources) > 0; some != (user != "nothing" && user != "tool") {
				t.Errorf("%s sees the resources %s", user, marshalText(t, resources))
			}
		}
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	one, two := newEntry(t, "one"), newEntry(t, "two")
	one.PerMinute, two.ToolPerMinute = 3, 2
	r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{one, two}, ClientPerMinute: 20})
	ann := r.connectClient(t, clientSetup{user: "ann", version: legacy})
	ann.toolNames()
	over := func(p *testClient, tool string) (calls int) {
		for calls = range 100 {
			if got := p.callTool(tool, args{"text": "x"}); strings.HasPrefix(got, "isError") {
				if !strings.Contains(got, "call again in") {
					t.Errorf("%s: %s", tool, got)
				}
				break
			}
		}
		return calls
	}
	if n := over(ann, "one__echo"); n != 3 {
		t.Errorf("the upstream was called %d times, its limit is 3", n)
	}
	if n := over(ann, "two__echo"); n != 2 {
		t.Errorf("the tool was called %d times, its limit is 2", n)
	}
	if n := over(ann, "two__count"); n != 2 {
		t.Errorf("the other tool was called %d times, its limit is 2", n)
	}
	// A call that one limit refuses does not count against other limits.
	three := newEntry(t, "three")
	three.PerMinute, three.ToolPerMinute = 3, 2
	if err := r.Configure(gateway.Settings{Upstreams: []gateway.Entry{one, two, three}, ClientPerMinute: 100}); err != nil {
		t.Fatal(err)
	}
	if n := over(ann, "three__echo"); n != 2 {
		t.Errorf("the tool was called %d times, its limit is 2", n)
	}
	over(ann, "three__echo")
	if n := over(ann, "three__env"); n != 1 {
		t.Errorf("%d calls of the upstream's limit were left", n)
	}
	if got := countCalls(two); got != 2 {
		t.Errorf("the upstream counted %d calls", got)
	}
	// New settings, as after a change of the configuration.
	if err := r.Configure(gateway.Settings{Upstreams: []gateway.Entry{one, two}, ClientPerMinute: 1}); err != nil {
		t.Fatal(err)
	}
	bob := r.connectClient(t, clientSetup{user: "bob", version: modern})
	if n := over(bob, "two__env"); n != 1 {
		t.Errorf("the client made %d calls, its limit is 1", n)
	}
}

// The limit of an upstream also covers requests other than tool calls: prompts, resources
// and completions count too.
func TestLimitsOfAllRequests(t *testing.T) {
	t.Parallel()
	for name, request := range map[string]func(p *testClient) error{
		"a prompt": func(p *testClient) error {
			_, err := p.session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "one__greet", Arguments: map[string]string{"who": "you"}})
			return err
		},
		"a resource": func(p *testClient) error {
			_, err := p.session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "note://one"})
			return err
		},
		"a completion": func(p *testClient) error {
			_, err := p.session.Complete(t.Context(), &mcp.CompleteParams{
				Ref: &mcp.CompleteReference{Type: "ref/prompt", Name: "one__greet"}, Argument: mcp.CompleteParamsArgument{Name: "who", Value: "a"},
			})
			return err
		},
	} {
		one := newEntry(t, "one")
		one.PerMinute = 2
		p := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{one}}).connectClient(t, clientSetup{user: "ann", version: modern})
		if got := p.callTool("one__echo", args{"text": "x"}); strings.HasPrefix(got, "isError") {
			t.Fatal(got)
		}
		if err := request(p); err != nil {
			t.Errorf("%s within the limit returned %v", name, err)
		}
		if err := request(p); err == nil || !strings.Contains(err.Error(), "call again in") {
			t.Errorf("%s over the limit returned %v", name, err)
		}
		if got := p.callTool("one__echo", args{"text": "x"}); !strings.Contains(got, "call again in") {
			t.Errorf("a call after %s returned %s", name, got)
		}
	}
}

// TestLazy checks that with tool search, two tools replace all tools of upstreams.
func TestLazy(t *testing.T) {
	t.Parallel()
	r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "one"), newEntry(t, "two", upstreamtest.Poisoned)}, Lazy: true})
	for _, version := range []string{legacy, modern} {
		p := r.connectClient(t, clientSetup{user: "ann", version: version})
		if names := p.toolNames(); !slices.Equal(names, []string{"own_tool", "tool_search", "tool_call"}) {
			t.Errorf("the tools are %v", names)
		}
		got := p.callTool("tool_search", args{"query": "what is the weather like", "limit": 1})
		if !strings.Contains(got, `"name":"two__weather"`) || !strings.Contains(got, "inputSchema") || strings.Contains(got, "__echo") {
			t.Errorf("the search returned %s", got)
		}
		if got := p.callTool("tool_call", args{"name": "one__echo", "arguments": args{"text": "through two"}}); got != "through two" {
			t.Errorf("the call returned %s", got)
		}
		if got := p.callTool("tool_call", args{"name": "one__ask", "arguments": args{"text": "sure?"}}); !strings.Contains(got, "ann says yes") {
			t.Errorf("the question returned %s", got)
		}
		for _, bad := range []args{{}, {"name": 1}, {"name": "tool_call"}, {"name": "one__echo", "arguments": 1}} {
			if got := p.callTool("tool_call", bad); !strings.HasPrefix(got, "isError") {
				t.Errorf("%v gives %s", bad, got)
			}
		}
		if got := p.callTool("tool_call", args{"name": "one__none"}); !strings.Contains(got, "unknown tool") {
			t.Errorf("an unknown tool returned %s", got)
		}
	}
}

// TestListsWithoutSilentUpstream checks that an upstream is offered although one of the
// others does not answer and another cannot start.
func TestListsWithoutSilentUpstream(t *testing.T) {
	t.Parallel()
	r := newFixture(t, gateway.Options{
		Upstreams: []gateway.Entry{
			newEntry(t, "good"), newEntry(t, "mute", upstreamtest.NeverAnswers), {Spec: upstream.Spec{Name: "none", Command: "no-such-program"}},
		},
		Upstream: upstream.Options{StartTime: 500 * time.Millisecond},
	})
	names := r.connectClient(t, clientSetup{user: "ann", version: legacy}).toolNames()
	if !slices.Contains(names, "good__echo") {
		t.Errorf("the tools are %v", names)
	}
}

// TestListsOfClientsWithCapabilities checks that a client with capabilities sees a tool
// that its upstream offers only to such clients, in the first list and after each refresh.
func TestListsOfClientsWithCapabilities(t *testing.T) {
	t.Parallel()
	for _, version := range []string{legacy, modern} {
		r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "one", upstreamtest.ToolForCapableClients)}})
		p := r.connectClient(t, clientSetup{user: "ann", version: version})
		if names := p.toolNames(); !slices.Contains(names, "one__choosy") {
			t.Errorf("%s: the tools are %v", version, names)
		}
		mute := r.connectClient(t, clientSetup{user: "bob", version: version, mute: true})
		mute.callTool("one__echo", args{"text": "x"}) // There is now a session without capabilities.
		p.callTool("one__echo", args{"text": "x"})
		for range 5 {
			if err := r.Refresh(t.Context(), "one", ""); err != nil {
				t.Fatal(err)
			}
			r.Reload()
			if names := p.toolNames(); !slices.Contains(names, "one__choosy") {
				t.Errorf("%s: after a refresh the tools are %v", version, names)
			}
		}
	}
}

// A prompt and a template of an upstream whose catalog is unknown are found without listing
// first.
func TestUnlistedPrompts(t *testing.T) {
	t.Parallel()
	for _, version := range []string{legacy, modern} {
		r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "one")}})
		p := r.connectClient(t, clientSetup{user: "ann", version: version})
		if _, err := p.session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "one__greet", Arguments: map[string]string{"who": "you"}}); err != nil {
			t.Errorf("%s: %v", version, err)
		}
		for _, ref := range []*mcp.CompleteReference{{Type: "ref/prompt", Name: "two__greet"}, {Type: "ref/resource", URI: "note://{id}"}} {
			r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "two")}})
			p := r.connectClient(t, clientSetup{user: "ann", version: version})
			if _, err := p.session.Complete(t.Context(), &mcp.CompleteParams{Ref: ref, Argument: mcp.CompleteParamsArgument{Name: "who", Value: "a"}}); err != nil {
				t.Errorf("%s: %s%s: %v", version, ref.Name, ref.URI, err)
			}
		}
	}
}
