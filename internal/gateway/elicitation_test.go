package gateway_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway/internal/gateway"
	"github.com/guideway-dev/guideway/internal/gateway/upstream/upstreamtest"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// forEachVersionPair runs f for all pairs of a client's and an upstream's protocol version,
// through the SDK and on the fast path.
func forEachVersionPair(t *testing.T, f func(t *testing.T, client, mode, way string)) {
	for _, client := range []string{legacy, modern} {
		for _, mode := range []string{"", upstreamtest.Modern} {
			for _, way := range []string{"", slow} {
				t.Run(fmt.Sprintf("client %s upstream %s %s", client, mode, way), func(t *testing.T) {
					t.Parallel()
					f(t, client, mode, way)
				})
			}
		}
	}
}

// TestAllListsAndCallsPassThrough checks that tools, prompts, resources and completions of
// an upstream reach the client, for every pair of protocol versions.
func TestAllListsAndCallsPassThrough(t *testing.T) {
	t.Parallel()
	forEachVersionPair(t, func(t *testing.T, version, mode, way string) {
		r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "one", mode), newEntry(t, "two", mode)}}, way)
		p := r.connectClient(t, clientSetup{user: "ann", version: version})
		names := p.toolNames()
		for _, want := range []string{"own_tool", "one__echo", "two__echo"} {
			if !slices.Contains(names, want) {
				t.Errorf("%s is missing in %v", want, names)
			}
		}
		if got := p.callTool("two__echo", args{"text": "hi é\n\u2028<&>"}); got != "hi é\n\u2028<&>" {
			t.Errorf("echo: %q", got)
		}
		if got := p.callTool("own_tool", nil); got != "own" {
			t.Errorf("the server's own tool returned %q", got)
		}
		if got := p.callTool("one__fail", nil); got != "isError: it failed" {
			t.Errorf("fail: %q", got)
		}
		if got := p.callTool("one__refuse", nil); !strings.Contains(got, "not today") {
			t.Errorf("refuse: %q", got)
		}
		if got := p.callTool("one__nothing", nil); !strings.Contains(got, "unknown tool") {
			t.Errorf("an unknown tool returned %q", got)
		}
		checkOtherLists(t, p)
	})
}

// checkOtherLists checks that the client can get a prompt, read resources and complete an
// argument.
func checkOtherLists(t *testing.T, p *testClient) {
	t.Helper()
	prompt, err := p.session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "two__greet", Arguments: map[string]string{"who": "you"}})
	if err != nil || !strings.Contains(marshalText(t, prompt), `\"who\":\"you\"`) {
		t.Errorf("prompt: %v %v", prompt, err)
	}
	for _, uri := range []string{"note://one/one", "note://one/any", "note://two/one"} {
		note, err := p.session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
		modernHas := err == nil && (note.CacheScope == "private" || p.session.InitializeResult().ProtocolVersion != modern)
		if err != nil || note.Contents[0].Text != "the note" || !modernHas {
			t.Errorf("read %s: %v %v", uri, note, err)
		}
	}
	if _, err := p.session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "other://x"}); err == nil {
		t.Error("a resource that no upstream has was read")
	}
	done, err := p.session.Complete(t.Context(), &mcp.CompleteParams{
		Ref: &mcp.CompleteReference{Type: "ref/prompt", Name: "one__greet"}, Argument: mcp.CompleteParamsArgument{Name: "who", Value: "a"},
	})
	if err != nil || !slices.Equal(done.Completion.Values, []string{"alpha", "beta"}) {
		t.Errorf("complete: %v %v", done, err)
	}
}

// For every pair of protocol versions, the questions of an upstream reach the client that
// made the call, and the answers reach the upstream.
func TestQuestions(t *testing.T) {
	t.Parallel()
	forEachVersionPair(t, func(t *testing.T, version, mode, way string) {
		r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "one", mode)}}, way)
		people := map[string]*testClient{}
		for _, user := range []string{"ann", "bob"} {
			people[user] = r.connectClient(t, clientSetup{user: user, version: version})
			people[user].toolNames()
		}
		var wg sync.WaitGroup
		for user, p := range people {
			for i := range 8 {
				wg.Go(func() {
					got := p.callTool("one__ask", args{"text": fmt.Sprintf("question %d of %s", i, user)})
					if !strings.Contains(got, user+" says yes") {
						t.Errorf("%s got %s", user, got)
					}
				})
			}
		}
		wg.Wait()
		for user, p := range people {
			asked := p.takeEntries(&p.asked)
			if len(asked) != 8 {
				t.Errorf("%s was asked %d times", user, len(asked))
			}
			for _, text := range asked {
				if !strings.HasPrefix(text, `The MCP server "one" asks: question`) || !strings.HasSuffix(text, "of "+user) {
					t.Errorf("%s was asked %q", user, text)
				}
			}
		}
	})
}

// TestQuestionToClientWithoutCapability checks that a call of a tool that asks a question
// returns an error if the client does not support questions.
func TestQuestionToClientWithoutCapability(t *testing.T) {
	t.Parallel()
	forEachVersionPair(t, func(t *testing.T, version, mode, way string) {
		r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "one", mode)}}, way)
		p := r.connectClient(t, clientSetup{user: "ann", version: version, mute: true})
		p.toolNames()
		got := p.callTool("one__ask", args{"text": "anybody?"})
		if !strings.Contains(got, "-32601") && !strings.Contains(got, "capability") {
			t.Errorf("the answer is %s", got)
		}
	})
}

// Progress reaches the client that made the call, with the client's own token.
func TestProgress(t *testing.T) {
	t.Parallel()
	forEachVersionPair(t, func(t *testing.T, version, mode, way string) {
		r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "one", mode)}}, way)
		var wg sync.WaitGroup
		for _, user := range []string{"ann", "bob"} {
			p := r.connectClient(t, clientSetup{user: user, version: version})
			p.toolNames()
			wg.Go(func() {
				params := &mcp.CallToolParams{Name: "one__slow", Arguments: args{"ms": 10, "text": user}}
				params.SetProgressToken("token of " + user)
				if _, err := p.session.CallTool(t.Context(), params); err != nil {
					t.Error(err)
				}
				for range 4 { // The SDK's client may deliver an answer before earlier notifications.
					<-p.progressed
				}
				got := p.takeEntries(&p.progress)
				var want []string
				for i := range 4 {
					want = append(want, fmt.Sprintf("token of %s %d %s", user, i, user))
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", user, diff)
				}
			})
		}
		wg.Wait()
	})
}

// TestOnlyWebPagesAreOpened checks that an upstream can ask a client to open an HTTPS URL
// without a user name if the client supports it, and no other URL.
func TestOnlyWebPagesAreOpened(t *testing.T) {
	t.Parallel()
	r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "one", upstreamtest.Phishing)}})
	for _, c := range []struct {
		url  string
		can  bool
		want bool
	}{
		{"https://example.com/login", true, true},
		{"https://example.com/login", false, false},
		{"javascript:alert(1)", true, false},
		{"file:///etc/passwd", true, false},
		{"http://example.com", true, false},
		{"https://bank.example@evil.example/", true, false},
	} {
		p := r.connectClient(t, clientSetup{user: "ann", version: legacy, url: c.can})
		p.toolNames()
		got := p.callTool("one__ask", args{"text": c.url})
		if asked := len(p.takeEntries(&p.asked)) > 0; asked != c.want {
			t.Errorf("%s, client that can %v: asked %v, answer %s", c.url, c.can, asked, got)
		}
	}
}

// A server may ask a question that is unrelated to the current call, and answer the call
// before the question. The client receives the result and the server its answer, each once.
func TestUnrelatedQuestionDuringCall(t *testing.T) {
	t.Parallel()
	for _, version := range []string{legacy, modern} {
		e := newEntry(t, "one")
		r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{e}})
		client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
			ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) { return nil, nil },
		})
		client.AddRoots(&mcp.Root{URI: "file:///r"}) //nolint:staticcheck // SA1019: servers still ask for roots
		base := &http.Transport{}
		t.Cleanup(base.CloseIdleConnections)
		session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: r.url, HTTPClient: &http.Client{Transport: asUser(base, "ann")}},
			&mcp.ClientSessionOptions{ProtocolVersion: version})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = session.Close() })
		p := &testClient{t: t, session: session}
		p.toolNames()
		for i := range 20 {
			if got := p.callTool("one__astray", nil); got != "gone on" {
				t.Errorf("%s, call %d: %s", version, i, got)
			}
		}
		if version == legacy { // A question that arrives too late does not reach a modern client.
			waitFor(t, func() bool { return countCalls(e) == 20 })
		}
	}
}
