package gateway_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/gateway"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestNoPrefixCannotTakeServerPrompts checks that an upstream without a prefix cannot take
// the name of a prompt of the server, also if the server adds the prompt later. When the
// server drops the prompt, the upstream may use the name again.
func TestNoPrefixCannotTakeServerPrompts(t *testing.T) {
	t.Parallel()
	bare := newEntry(t, "bare")
	bare.NoPrefix = true
	r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{bare}})
	r.server.AddPrompt(&mcp.Prompt{Name: "other"}, nil)
	for _, version := range []string{legacy, modern} {
		p := r.connectClient(t, clientSetup{user: "ann", version: version, mute: true})
		for _, reserved := range [][]string{nil, {"greet", "other"}, {"other"}} {
			r.Reserve(reserved)
			list, err := p.session.ListPrompts(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			ours := slices.Contains(reserved, "greet")
			if there := slices.ContainsFunc(list.Prompts, func(p *mcp.Prompt) bool { return p.Name == "greet" }); there == ours {
				t.Errorf("%s: with %v reserved the prompt is listed: %v", version, reserved, there)
			}
			_, err = p.session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "greet", Arguments: map[string]string{"who": "me"}})
			if (err != nil) != ours {
				t.Errorf("%s: with %v reserved the upstream's prompt returned %v", version, reserved, err)
			}
			_, err = p.session.Complete(t.Context(), &mcp.CompleteParams{
				Ref: &mcp.CompleteReference{Type: "ref/prompt", Name: "greet"}, Argument: mcp.CompleteParamsArgument{Name: "who"},
			})
			if (err != nil) != ours {
				t.Errorf("%s: with %v reserved the upstream's completion returned %v", version, reserved, err)
			}
			if said := strings.Contains(fmt.Sprint(r.Notes()), "reserved or already in use"); said != ours {
				t.Errorf("with %v reserved the notes are %v", reserved, r.Notes())
			}
		}
	}
}

// The exposure of tools and the project can change while calls are in progress: the calls
// are answered, clients are notified, and names from an earlier list stay valid. Invalid
// settings change nothing.
func TestConfigure(t *testing.T) {
	t.Parallel()
	one, two := newEntry(t, "one"), newEntry(t, "two")
	two.Project = "p"
	all := []gateway.Entry{one, two}
	r := newFixture(t, gateway.Options{Upstreams: all})
	for _, version := range []string{legacy, modern} {
		configure := func(s gateway.Settings) {
			t.Helper()
			if err := r.Configure(s); err != nil {
				t.Fatal(err)
			}
		}
		configure(gateway.Settings{Upstreams: all})
		p := r.connectClient(t, clientSetup{user: "ann", version: version, mute: true})
		p.toolNames()
		got := make(chan error, 1)
		go func() {
			params := &mcp.CallToolParams{Name: "one__sleep", Arguments: args{"ms": 300}}
			params.SetProgressToken("sleep")
			_, err := p.session.CallTool(t.Context(), params)
			got <- err
		}()
		<-p.progressed // The call has reached the upstream.
		configure(gateway.Settings{Upstreams: all, Lazy: true})
		<-p.changed
		if names := p.toolNames(); !slices.Equal(names, []string{"own_tool", "tool_search", "tool_call"}) {
			t.Errorf("%s: with tool search the tools are %v", version, names)
		}
		if text := p.callTool("one__echo", args{"text": "as before"}); text != "as before" {
			t.Errorf("%s: a tool of the earlier list returned %s", version, text)
		}
		configure(gateway.Settings{Upstreams: all, Project: "p"})
		<-p.changed
		if names := p.toolNames(); slices.Contains(names, "one__echo") || !slices.Contains(names, "two__echo") || slices.Contains(names, "tool_call") {
			t.Errorf("%s: with one project the tools are %v", version, names)
		}
		if text := p.callTool("tool_call", args{"name": "two__echo", "arguments": args{"text": "as found"}}); text != "as found" {
			t.Errorf("%s: a tool found earlier returned %s", version, text)
		}
		if err := r.Configure(gateway.Settings{Upstreams: []gateway.Entry{one, one}, Lazy: true}); err == nil {
			t.Error("two upstreams with the same name were accepted")
		}
		if names := p.toolNames(); slices.Contains(names, "one__echo") || !slices.Contains(names, "two__echo") {
			t.Errorf("%s: after rejected settings the tools are %v", version, names)
		}
		if err := <-got; err != nil {
			t.Errorf("%s: the call in progress returned %v", version, err)
		}
	}
}

// TestExposureOfTokens checks that the exposure in a token replaces the one in the
// settings. With either, the client reaches only the tools that the token allows.
func TestExposureOfTokens(t *testing.T) {
	t.Parallel()
	for _, lazy := range []bool{false, true} {
		r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "one"), newEntry(t, "two")}, Lazy: lazy})
		r.allow = map[string]auth.Allow{"open": {Upstreams: []string{"one"}}, "searching": {Upstreams: []string{"one"}}, "unsaid": {Upstreams: []string{"one"}}, "none": {Toolsets: []string{"steps"}}}
		if names := r.connectClient(t, clientSetup{user: "none", version: modern, mute: true}).toolNames(); !slices.Equal(names, []string{"own_tool"}) {
			t.Errorf("settings %v: a client without access is offered %v", lazy, names)
		}
		r.exposure = map[string]auth.Exposure{"open": auth.ExposureAll, "searching": auth.ExposureSearch}
		for user, searches := range map[string]bool{"open": false, "searching": true, "unsaid": lazy} {
			p := r.connectClient(t, clientSetup{user: user, version: modern, mute: true})
			names := p.toolNames()
			if slices.Contains(names, "tool_search") != searches || slices.Contains(names, "one__echo") == searches || slices.Contains(names, "two__echo") {
				t.Errorf("settings %v: %s is offered %v", lazy, user, names)
			}
			if found := p.callTool("tool_search", args{"query": "echo"}); !strings.Contains(found, "one__echo") || strings.Contains(found, "two__") {
				t.Errorf("settings %v: %s finds %s", lazy, user, found)
			}
			if text := p.callTool("one__echo", args{"text": "x"}); text != "x" {
				t.Errorf("settings %v: the call of %s returned %s", lazy, user, text)
			}
			if text := p.callTool("tool_call", args{"name": "two__echo"}); !strings.Contains(text, "unknown tool") {
				t.Errorf("settings %v: a forbidden call of %s returned %s", lazy, user, text)
			}
		}
	}
}
