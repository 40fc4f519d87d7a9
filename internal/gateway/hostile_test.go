package gateway_test

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/guideway-dev/guideway/internal/gateway"
	"github.com/guideway-dev/guideway/internal/gateway/upstream/upstreamtest"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestHostileUpstreams checks that a call of a misbehaving tool returns an answer or an
// error with the reason. A call of another client in the same upstream process is answered,
// and the number of goroutines stays bounded.
func TestHostileUpstreams(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ tool, want string }{
		{upstreamtest.Unasked, "after all"},
		{upstreamtest.Strangers, "after all"},
		{upstreamtest.Shout, "after all"},
		{upstreamtest.Overlong, "after all"},
		{upstreamtest.Abyss, "the message is nested deeper"},
		{upstreamtest.Wide, "members"},
		{upstreamtest.Latin, "the message is not UTF-8"},
		{upstreamtest.Deaf, "after all"},
	} {
		if testing.Short() && tt.tool != upstreamtest.Deaf && tt.tool != upstreamtest.Shout {
			continue // With -short, only the two cases with the most concurrency run.
		}
		t.Run(tt.tool, func(t *testing.T) {
			t.Parallel()
			e := newEntry(t, "one", upstreamtest.Hostile)
			r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{e}})
			ann := r.connectClient(t, clientSetup{user: "ann", version: legacy, mute: true})
			bob := r.connectClient(t, clientSetup{user: "bob", version: modern, mute: true})
			ann.toolNames()
			bob.toolNames()
			begun := make(chan string, 1)
			var wg sync.WaitGroup
			wg.Go(func() {
				params := &mcp.CallToolParams{Name: "one__slow", Arguments: args{"ms": 100, "text": "bob"}}
				params.SetProgressToken("bob")
				result, err := bob.session.CallTool(t.Context(), params)
				begun <- fmt.Sprint(marshalText(t, result), err)
			})
			<-bob.progressed
			if got := ann.callTool("one__"+tt.tool, nil); !strings.Contains(got, tt.want) {
				t.Errorf("the answer is %.300s", got)
			}
			if n := runtime.NumGoroutine(); n > 10000 {
				t.Errorf("there are %d goroutines", n)
			}
			wg.Wait()
			if got := <-begun; !strings.Contains(got, "done bob") {
				t.Errorf("another client's call returned %.300s", got)
			}
		})
	}
}

// A result that has a member twice, at any level, fails its call: a hook, a pin and a client
// could read different values.
func TestDuplicateMembersInResults(t *testing.T) {
	t.Parallel()
	forEachVersionPair(t, func(t *testing.T, version, mode, way string) {
		r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "one", mode, upstreamtest.Hostile)}}, way)
		p := r.connectClient(t, clientSetup{user: "ann", version: version})
		p.toolNames()
		for result, member := range map[string]string{
			`{"content":[],"content":[{"type":"text","text":"b"}]}`:                         "content",
			`{"content":[],"isError":false,"isError":true}`:                                 "isError",
			`{"content":[{"type":"text","text":"a","text":"b"}]}`:                           "text",
			`{"content":[{"type":"text","text":"a","te\u0078t":"b"}]}`:                      "text",
			`{"content":[],"structuredContent":{"a":[{"b":{"c":1,"d":2,"c":3}}]}}`:          "c",
			`{"content":[],"_meta":{"ui":{"resourceUri":"ui://a","resourceUri":"ui://b"}}}`: "resourceUri",
		} {
			want := fmt.Sprintf("its answer is invalid: an object has a member twice: %q", member)
			if got := p.callTool("one__"+upstreamtest.Raw, args{"text": result}); !strings.Contains(strings.ReplaceAll(got, `\"`, `"`), want) {
				t.Errorf("%s gives %s", result, got)
			}
		}
		if got := p.callTool("one__"+upstreamtest.Raw, args{"text": `{"content":[{"type":"text","text":"a"}],"structuredContent":{"text":{"text":"b"}}}`}); got != "a" {
			t.Errorf("a valid result gives %s", got)
		}
	})
}

// TestFakeInputRequest checks that an upstream cannot ask a client by a fake input request
// in an answer, which would bypass the checks of questions.
func TestFakeInputRequest(t *testing.T) {
	t.Parallel()
	forEachVersionPair(t, func(t *testing.T, version, mode, way string) {
		r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "one", mode, upstreamtest.Hostile)}}, way)
		p := r.connectClient(t, clientSetup{user: "ann", version: version, url: true})
		p.toolNames()
		for _, tool := range []string{upstreamtest.Pretend, upstreamtest.PretendTwice} {
			got := p.callTool("one__"+tool, nil)
			if asked := p.takeEntries(&p.asked); len(asked) > 0 || strings.Contains(got, "too many") {
				t.Errorf("%s: the client was asked %q: %s", tool, asked, got)
			}
		}
	})
}

// TestHostileLists checks that hostile entries do not break a list or a search, that hidden
// characters are removed, and that the problems are reported.
func TestHostileLists(t *testing.T) {
	t.Parallel()
	for _, lazy := range []bool{false, true} {
		if lazy && testing.Short() {
			continue
		}
		r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "one", upstreamtest.Hostile), newEntry(t, "two")}, Lazy: lazy})
		for _, version := range []string{legacy, modern} {
			p := r.connectClient(t, clientSetup{user: "ann", version: version})
			var names []string
			if lazy {
				for _, query := range []string{"pit", "whisper", "many", "cycle", "echo", ""} {
					got := p.callTool("tool_search", args{"query": query, "limit": 50})
					if strings.Contains(got, "rror") || strings.ContainsAny(got, "\u200b\u202e\u2066") {
						t.Errorf("%s: %q finds %.300s", version, query, got)
					}
				}
				continue
			}
			names = p.toolNames()
			for _, want := range []string{"one__echo", "two__echo", "one__many", "one__cycle", "one__whisper"} {
				if !slices.Contains(names, want) {
					t.Errorf("%s: %s is missing in %.2000v", version, want, names)
				}
			}
			for tool, err := range p.session.Tools(t.Context(), nil) {
				if err != nil {
					t.Fatal(err)
				}
				if text := marshalText(t, tool); strings.ContainsAny(text, "\u200b\u202e\u2066\x00") || tool.Name == "one__whisper" && len(text) > 5<<10 {
					t.Errorf("%s: %.500q", version, text)
				}
			}
		}
		notes := fmt.Sprint(r.Notes())
		for _, want := range []string{"pit", "whisper", "hidden characters"} {
			if !strings.Contains(notes, want) {
				t.Errorf("the notes lack %q: %.3000s", want, notes)
			}
		}
	}
}

// To a client all upstreams are one server, so a sampling request never includes the
// context of other upstreams.
func TestSamplingGetsNoServerContext(t *testing.T) {
	t.Parallel()
	forEachVersionPair(t, func(t *testing.T, version, mode, way string) {
		if mode != "" {
			return // Only legacy servers send sampling requests.
		}
		r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "one", upstreamtest.Hostile)}}, way)
		var added atomic.Value
		client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
			CreateMessageHandler: func(_ context.Context, req *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) { //nolint:staticcheck // SA1019: servers still send sampling requests
				added.Store(req.Params.IncludeContext)
				return &mcp.CreateMessageResult{Model: "none", Role: "assistant", Content: &mcp.TextContent{Text: "said"}}, nil //nolint:staticcheck // SA1019: servers still send sampling requests
			},
		})
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
		if got := p.callTool("one__nosy", nil); !strings.Contains(got, "said") || added.Load() != "none" {
			t.Errorf("the answer is %s; the model was asked with the context %q", got, added.Load())
		}
	})
}
