package gateway_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/guideway-dev/guideway/internal/gateway"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestTokensAreIsolated checks that two clients of one user with separate tokens, which
// make requests concurrently, do not see each other's answers, progress, questions or logs.
// Both use the same client name.
func TestTokensAreIsolated(t *testing.T) {
	t.Parallel()
	forEachVersionPair(t, func(t *testing.T, version, mode, way string) {
		r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "one", mode)}}, way)
		r.allow = map[string]auth.Allow{"phone": {Upstreams: []string{"one"}}, "laptop": {Tools: []string{"one__*"}}}
		people := map[string]*testClient{}
		for name := range r.allow {
			people[name] = r.connectClient(t, clientSetup{user: name, version: version})
			people[name].toolNames()
			if version == legacy {
				if err := people[name].session.SetLoggingLevel(t.Context(), &mcp.SetLoggingLevelParams{Level: "debug"}); err != nil { //nolint:staticcheck // SA1019: legacy clients receive log messages
					t.Fatal(err)
				}
			}
		}
		var wg sync.WaitGroup
		for name, p := range people {
			for i := range 6 {
				wg.Go(func() { runExchange(t, p, name, i) })
			}
		}
		wg.Wait()
		if phone := people["phone"]; version == legacy && mode == "" {
			waitFor(t, func() bool { return len(phone.takeEntries(&phone.logs)) == 6 })
		}
		for name, p := range people {
			for _, text := range slices.Concat(p.takeEntries(&p.asked), p.takeEntries(&p.progress), p.takeEntries(&p.logs)) {
				if !strings.Contains(text, name) {
					t.Errorf("%s was notified of %q", name, text)
				}
			}
			if n := len(p.takeEntries(&p.asked)); n != 6 {
				t.Errorf("%s was asked %d times", name, n)
			}
		}
	})
}

// runExchange calls tools that return a text, report progress and ask a question. A client
// other than "laptop" also uses a prompt, a resource and the log.
func runExchange(t *testing.T, p *testClient, name string, i int) {
	text := fmt.Sprintf("%s %d %s", name, i, strings.Repeat("x", i*50))
	if got := p.callTool("one__echo", args{"text": text}); got != text {
		t.Errorf("%s got %.40q", name, got)
	}
	params := &mcp.CallToolParams{Name: "one__slow", Arguments: args{"ms": 2, "text": name}}
	params.SetProgressToken(fmt.Sprintf("%s/%d", name, i))
	if _, err := p.session.CallTool(t.Context(), params); err != nil {
		t.Error(err)
	}
	if got := p.callTool("one__ask", args{"text": fmt.Sprintf("question %d of %s", i, name)}); !strings.Contains(got, name+" says yes") {
		t.Errorf("%s got %s", name, got)
	}
	prompt, err := p.session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "one__greet", Arguments: map[string]string{"who": text}})
	if name == "laptop" { // The token of laptop allows tools only.
		if err == nil {
			t.Errorf("%s got a prompt", name)
		}
		return
	}
	if err != nil || !strings.Contains(marshalText(t, prompt), text) {
		t.Errorf("%s got the prompt %s %v", name, marshalText(t, prompt), err)
	}
	uri := fmt.Sprintf("note://%s-%d", name, i)
	note, err := p.session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
	if err != nil || note.Contents[0].URI != uri {
		t.Errorf("%s read %s as %s %v", name, uri, marshalText(t, note), err)
	}
	p.callTool("one__log", args{"text": text})
}

// TestAccessOutsideTokenIsRefused checks that clients see and reach nothing that their
// tokens do not allow, in both protocol versions and on both call paths.
func TestAccessOutsideTokenIsRefused(t *testing.T) {
	t.Parallel()
	forEachVersionPair(t, func(t *testing.T, version, mode, way string) {
		two := newEntry(t, "two", mode)
		two.Project = "secret"
		r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "one", mode), two}}, way)
		r.allow = map[string]auth.Allow{
			"laptop": {Upstreams: []string{"one"}}, "phone": {Tools: []string{"one__echo"}}, "watch": {Projects: []string{"none"}}, "tv": {},
		}
		all := r.connectClient(t, clientSetup{user: "ann", version: version}) // This client makes all tools known.
		all.toolNames()
		for name := range r.allow {
			p := r.connectClient(t, clientSetup{user: name, version: version})
			for _, tool := range p.toolNames() {
				if tool != "own_tool" && (!strings.HasPrefix(tool, "one__") || name == "phone" && tool != "one__echo" || name != "laptop" && name != "phone") {
					t.Errorf("%s sees %s", name, tool)
				}
			}
			checkRefusals(t, p, name, name == "laptop")
		}
	})
}

// checkRefusals checks that a client gets no part of upstream "two", and none of the parts
// of "one" that its token does not allow.
func checkRefusals(t *testing.T, p *testClient, name string, one bool) {
	t.Helper()
	ctx := t.Context()
	for tool, ok := range map[string]bool{"two__echo": false, "two__count": false, "two__nothing": false, "one__count": one, "one__echo": one || name == "phone"} {
		if got := p.callTool(tool, args{"text": "x"}); strings.Contains(got, "unknown tool") == ok {
			t.Errorf("%s calls %s: %s", name, tool, got)
		}
	}
	for prompt, ok := range map[string]bool{"two__greet": false, "one__greet": one} {
		if _, err := p.session.GetPrompt(ctx, &mcp.GetPromptParams{Name: prompt, Arguments: map[string]string{"who": "you"}}); (err == nil) != ok {
			t.Errorf("%s got the prompt %s: %v", name, prompt, err)
		}
		_, err := p.session.Complete(ctx, &mcp.CompleteParams{
			Ref: &mcp.CompleteReference{Type: "ref/prompt", Name: prompt}, Argument: mcp.CompleteParamsArgument{Name: "who", Value: "a"},
		})
		if (err == nil) != ok {
			t.Errorf("%s completes %s: %v", name, prompt, err)
		}
	}
	for uri, ok := range map[string]bool{"note://two/one": false, "note://one": false, "note://one/one": one, "note://one/any": one} {
		if _, err := p.session.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri}); (err == nil) != ok {
			t.Errorf("%s reads %s: %v", name, uri, err)
		}
	}
	lists := ""
	prompts, err := p.session.ListPrompts(ctx, nil)
	lists += marshalText(t, prompts)
	if err == nil {
		var resources *mcp.ListResourcesResult
		resources, err = p.session.ListResources(ctx, nil)
		lists += marshalText(t, resources)
	}
	if err == nil {
		var templates *mcp.ListResourceTemplatesResult
		templates, err = p.session.ListResourceTemplates(ctx, nil)
		lists += marshalText(t, templates)
	}
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(lists, "two") || strings.Contains(lists, "greet") != one {
		t.Errorf("%s lists %s", name, lists)
	}
	if p.session.InitializeResult().ProtocolVersion == legacy {
		if err := p.session.Subscribe(ctx, &mcp.SubscribeParams{URI: "note://two/one"}); err == nil {
			t.Errorf("%s could follow a resource that it may not read", name)
		}
	}
}

// Tool search respects the access of the token.
func TestSearchRespectsToken(t *testing.T) {
	t.Parallel()
	r := newFixture(t, gateway.Options{Lazy: true, Upstreams: []gateway.Entry{newEntry(t, "one"), newEntry(t, "two")}})
	r.allow = map[string]auth.Allow{"laptop": {Tools: []string{"one__echo"}}}
	for _, version := range []string{legacy, modern} {
		p := r.connectClient(t, clientSetup{user: "laptop", version: version})
		if got := p.callTool("tool_search", args{"query": ""}); !strings.Contains(got, "one__echo") || !strings.Contains(got, `"of":1`) {
			t.Errorf("found: %s", got)
		}
		if got := p.callTool("tool_call", args{"name": "one__echo", "arguments": args{"text": "hi"}}); got != "hi" {
			t.Errorf("called: %s", got)
		}
		for _, tool := range []string{"two__echo", "one__count"} {
			if got := p.callTool("tool_call", args{"name": tool}); !strings.Contains(got, "unknown tool") {
				t.Errorf("%s: %s", tool, got)
			}
		}
	}
}

// TestServersWithoutAccessAreNotStarted checks that a list or an unknown name does not
// start an upstream that the client may not use. An upstream whose tools a token's pattern
// may match is started, because its tools are unknown until then.
func TestServersWithoutAccessAreNotStarted(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		allow auth.Allow
		known []string
	}{
		{"one upstream", auth.Allow{Upstreams: []string{"one"}}, []string{"one"}},
		{"one tool", auth.Allow{Tools: []string{"one__echo"}}, []string{"one"}},
		{"a pattern that matches one upstream", auth.Allow{Tools: []string{"one__*"}}, []string{"one"}},
		{"a pattern that matches both", auth.Allow{Tools: []string{"*__echo"}}, []string{"one", "two"}},
		{"a character class", auth.Allow{Tools: []string{"[a-t]wo__echo"}}, []string{"one", "two"}},
		{"a project", auth.Allow{Projects: []string{"site"}}, []string{"two"}},
		{"no upstream", auth.Allow{Toolsets: []string{"runs"}}, nil},
		{"everything", auth.Allow{All: true}, []string{"one", "two"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			two := newEntry(t, "two")
			two.Project = "site"
			r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "one"), two}})
			r.allow = map[string]auth.Allow{"laptop": tt.allow}
			p := r.connectClient(t, clientSetup{user: "laptop", version: legacy})
			p.toolNames()
			p.callTool("two__nothing", args{})
			if _, err := p.session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "none://x"}); err == nil {
				t.Error("a resource that no upstream has was read")
			}
			for _, name := range []string{"one", "two"} {
				if want := slices.Contains(tt.known, name); (r.Known(name) != nil) != want {
					t.Errorf("%s was asked: %v", name, !want)
				}
			}
		})
	}
}

// TestTokensCannotTakeOverState checks that a client cannot use the session or answer the
// question of another client, even with another token of the same user.
func TestTokensCannotTakeOverState(t *testing.T) {
	t.Parallel()
	r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "one")}})
	r.allow = map[string]auth.Allow{"laptop": {Upstreams: []string{"one"}}, "phone": {Upstreams: []string{"one"}}}
	laptop := r.connectClient(t, clientSetup{user: "laptop", version: legacy})
	laptop.toolNames()
	if err := laptop.session.Subscribe(t.Context(), &mcp.SubscribeParams{URI: "note://one"}); err != nil {
		t.Fatal(err)
	}
	for _, user := range []string{"phone", "all", "ann"} {
		for _, body := range []string{
			`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`,
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"one__echo","arguments":{"text":"stolen"}}}`,
			`{"jsonrpc":"2.0","id":1,"method":"resources/unsubscribe","params":{"uri":"note://one"}}`,
		} {
			status, text := r.postAs(t, user, body, map[string]string{"Mcp-Session-Id": laptop.session.ID(), "Mcp-Protocol-Version": legacy})
			if status != http.StatusForbidden {
				t.Errorf("%q in the session of another token: %d %s", user, status, text)
			}
		}
	}
	// A client with another token answers the question of a call.
	asked := `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"one__ask","arguments":{"text":"who?"},%s` + modernMeta + `}}`
	header := map[string]string{"Mcp-Protocol-Version": modern, "Mcp-Method": "tools/call", "Mcp-Name": "one__ask"}
	_, text := r.postAs(t, "laptop", fmt.Sprintf(asked, ""), header)
	var question struct {
		Result struct {
			RequestState string `json:"requestState"`
		} `json:"result"`
	}
	if err := json.Unmarshal([]byte(text), &question); err != nil || question.Result.RequestState == "" {
		t.Fatalf("%v in %s", err, text)
	}
	answer := fmt.Sprintf(asked, `"requestState":"`+question.Result.RequestState+`","inputResponses":{"q":{"action":"accept","content":{"ok":"stolen"}}},`)
	if _, text := r.postAs(t, "phone", answer, header); !strings.Contains(text, "belongs to another call") {
		t.Errorf("the answer with another token returned %s", text)
	}
	if _, text := r.postAs(t, "laptop", answer, header); !strings.Contains(text, "stolen") {
		t.Errorf("the answer with its own token returned %s", text)
	}
}

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"},` +
	`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}`

// postAs sends a message and returns the answer, without the event that may wrap it.
func (r *fixture) postAs(t *testing.T, user, body string, header map[string]string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-User", user)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for k, v := range header {
		req.Header.Set(k, v)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var text strings.Builder
	buf := make([]byte, 32<<10)
	for {
		n, err := resp.Body.Read(buf)
		text.Write(buf[:n])
		if err != nil {
			break
		}
	}
	for line := range strings.Lines(text.String()) {
		if data, ok := strings.CutPrefix(line, "data: "); ok && strings.HasPrefix(data, `{"jsonrpc":"2.0","id":`) {
			return resp.StatusCode, data
		}
	}
	return resp.StatusCode, text.String()
}
