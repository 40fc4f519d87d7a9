package gateway_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/gateway"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Hooks wrap reads of resources and requests for prompts: they see the upstream's own names
// and change the response and the arguments of a prompt. They cannot change the target.
func TestHooksOnResourcesAndPrompts(t *testing.T) {
	t.Parallel()
	const refused, noJSON = "error: a hook changed params of", "error: a hook returned a result that is not JSON"
	for name, tt := range map[string]struct {
		pairs        map[string][]string
		read, prompt string
	}{
		"no hook":           {map[string][]string{}, "the note", "ann"},
		"response":          {map[string][]string{"resources/read ": {"the note", "redacted"}, "prompts/get ": {`"role":"user"`, `"role":"assistant"`}}, "redacted", "assistant"},
		"arguments":         {map[string][]string{"prompts/get ": {`{"who":"ann"}`, `{"who":"bob"}`}}, "the note", "bob"},
		"another target":    {map[string][]string{"resources/read ": {"note://one", "note://two"}, "prompts/get ": {`"name":"greet"`, `"name":"other"`}}, refused, refused},
		"an unknown member": {map[string][]string{"resources/read ": {`"uri":"note`, `"arguments":{},"uri":"note`}, "prompts/get ": {`"arguments"`, `"argument"`}}, refused, refused},
		"failing":           {map[string][]string{"resources/read ": {"fail", ""}, "prompts/get ": {"fail", ""}}, "error: the hook has failed", "error: the hook has failed"},
		"no JSON":           {map[string][]string{"resources/read ": {"contents", `"`}, "prompts/get ": {"messages", `"`}}, noJSON, noJSON},
	} {
		for _, version := range []string{legacy, modern} {
			t.Run(name+" "+version, func(t *testing.T) {
				t.Parallel()
				hooks := &replaceHooks{pairs: tt.pairs}
				r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "one")}, Hooks: hooks})
				p := r.connectClient(t, clientSetup{user: "ann", version: version})
				check := func(what, want, got string, err error) {
					if err != nil {
						got = "error: " + err.Error()
					}
					if !strings.Contains(strings.ReplaceAll(got, "calling", ""), strings.TrimPrefix(want, "error: ")) || strings.HasPrefix(want, "error: ") != (err != nil) {
						t.Errorf("%s: %s, want %s", what, got, want)
					}
				}
				read, err := p.session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "note://one"})
				check("the resource", tt.read, marshalText(t, read), err)
				prompt, err := p.session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "one__greet", Arguments: map[string]string{"who": "ann"}})
				check("the prompt", tt.prompt, marshalText(t, prompt), err)
				for _, call := range hooks.seenCalls() {
					if !strings.HasPrefix(call, `resources/read one/ {"uri":"note://one"}`) && !strings.HasPrefix(call, `prompts/get one/ {"name":"greet","arguments":{"who":"ann"}}`) {
						t.Errorf("the hooks saw %s", call)
					}
				}
			})
		}
	}
}

// progressHooks drops or changes the progress messages of calls, with two nested changes.
type progressHooks struct{ seen []string }

func (*progressHooks) Versions(string, string) map[string]string { return nil }

func (*progressHooks) Applies(method, _, tool string) bool {
	return method == "tools/call" && tool == "slow"
}

func (h *progressHooks) Around(ctx context.Context, call gateway.HookCall, send func(context.Context, json.RawMessage) (json.RawMessage, error)) (json.RawMessage, error) {
	ctx = gateway.WithProgress(ctx, func(_ context.Context, params json.RawMessage) json.RawMessage {
		h.seen = append(h.seen, string(params))
		return json.RawMessage(strings.ReplaceAll(string(params), "inner", "outer"))
	})
	ctx = gateway.WithProgress(ctx, func(_ context.Context, params json.RawMessage) json.RawMessage {
		if strings.Contains(string(params), `"progress":2`) {
			return nil
		}
		return json.RawMessage(strings.ReplaceAll(string(params), "plain", "inner"))
	})
	return send(ctx, call.Params)
}

// Hooks change and drop progress messages, the innermost first; the token of the client stays.
func TestHooksOnProgress(t *testing.T) {
	t.Parallel()
	for _, version := range []string{legacy, modern} {
		hooks := &progressHooks{}
		r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "one")}, Hooks: hooks})
		p := r.connectClient(t, clientSetup{user: "ann", version: version})
		call := &mcp.CallToolParams{Name: "one__slow", Arguments: args{"text": "plain"}}
		call.SetProgressToken("mine")
		if _, err := p.session.CallTool(t.Context(), call); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			<-p.progressed
		}
		got := strings.Join(p.takeEntries(&p.progress), " ")
		if strings.Contains(got, "plain") || strings.Count(got, "outer") != 3 {
			t.Errorf("%s: the client got %s", version, got)
		}
		if len(hooks.seen) != 3 || !strings.Contains(hooks.seen[0], "inner") {
			t.Errorf("%s: the outer hook saw %q", version, hooks.seen)
		}
	}
}
