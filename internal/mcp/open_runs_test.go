package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/gateway"
	"github.com/guideway-dev/guideway/internal/gateway/upstream"
	mcpserver "github.com/guideway-dev/guideway/internal/mcp"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/workflow"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"pgregory.net/rapid"
)

// policyTools are the tools of the upstream, with their readOnlyHint.
var policyTools = map[string]bool{"get_issue": true, "get_file": true, "put_file": false, "drop": false}

// policyServer is a server with a gateway to one upstream.
type policyServer struct {
	*testServer
	// reached counts the calls that reached the upstream.
	reached atomic.Int64

	mu          sync.Mutex
	definitions map[string]*workflow.Definition
}

// Startable implements run.Definitions.
func (p *policyServer) Startable(_ context.Context, id string) (*workflow.Definition, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if d := p.definitions[id]; d != nil {
		return d, nil
	}
	return nil, guideway.Errorf(guideway.CodeNotFound, "no workflow %q", id)
}

// addDefinition adds a workflow.
func (p *policyServer) addDefinition(t rapid.TB, text string) {
	t.Helper()
	d, found := workflow.Parse("", []byte(text))
	if d == nil {
		t.Fatalf("%s: %v", text, found)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.definitions[d.ID] = d
}

func newPolicyServer(t *testing.T) *policyServer {
	t.Helper()
	p := &policyServer{definitions: map[string]*workflow.Definition{}}
	tools := mcp.NewServer(&mcp.Implementation{Name: "tools", Version: "1"}, nil)
	for name, readOnly := range policyTools {
		tools.AddTool(&mcp.Tool{Name: name, InputSchema: map[string]any{"type": "object"}, Annotations: &mcp.ToolAnnotations{ReadOnlyHint: readOnly}},
			func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				p.reached.Add(1)
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}}, nil
			})
	}
	srv := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return tools }, nil))
	t.Cleanup(srv.Close)
	p.testServer = newTestServer(t, func(o *mcpserver.Options) {
		runs, err := run.New(run.Options{Journal: newStore(t), Definitions: p, Key: bytes.Repeat([]byte{7}, run.KeySize), Now: o.Now})
		if err != nil {
			t.Fatal(err)
		}
		open := mcpserver.NewOpenRuns(runs, o.Now)
		g, err := gateway.New(gateway.Options{
			Upstreams: []gateway.Entry{{Spec: upstream.Spec{Name: "x", URL: srv.URL}}}, Key: bytes.Repeat([]byte{1}, 32), Policies: open,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { g.Close(context.WithoutCancel(t.Context())) })
		o.Runs, o.OpenRuns, o.Upstreams, o.Memory = runs, open, g, nil
		o.Toolsets = []string{mcpserver.ToolsetRuns, mcpserver.ToolsetGateway}
	})
	return p
}

// call calls a tool of the upstream, and reports whether the call reached it. The answer is
// a text.
func (p *policyServer) call(t rapid.TB, cs *mcp.ClientSession, tool, arguments string) (reached bool, answer string) {
	t.Helper()
	before := p.reached.Load()
	res, err := cs.CallTool(context.Background(), &mcp.CallToolParams{Name: "x__" + tool, Arguments: json.RawMessage(arguments)})
	if err != nil {
		t.Fatal(err)
	}
	text, _ := json.Marshal(res)
	if (p.reached.Load() > before) == res.IsError {
		t.Fatalf("%s reached the upstream: %v, answer %s", tool, !res.IsError, text)
	}
	return !res.IsError, string(text)
}

// TestPolicyOfConnection checks that a run restricts the connection that started it, or
// asked for it by id, until it ends, and no other connection; and that without a connection
// all open runs of the user apply.
func TestPolicyOfConnection(t *testing.T) {
	t.Parallel()
	p := newPolicyServer(t)
	p.addDefinition(t, `{"id":"look","name":"L","description":"L","version":"1.0.0","steps":[
		{"id":"read","title":"Read","prompt":"Read.","tools":{"allow":["x__get_*"]}},
		{"id":"write","title":"Write","prompt":"Write."}]}`)
	first := connectClient(t, p.server, "stdio", "ann", "2025-11-25", nil)
	second := connectClient(t, p.server, "http", "ann", "2025-11-25", nil)
	modern := connectClient(t, p.server, "http", "ann", "2026-07-28", nil)
	other := connectClient(t, p.server, "http", "bob", "2026-07-28", nil)
	check := func(when string, cs *mcp.ClientSession, want bool) {
		t.Helper()
		if reached, answer := p.call(t, cs, "drop", `{}`); reached != want {
			t.Errorf("%s: the call reached the upstream: %v, %s", when, reached, answer)
		}
	}
	check("without a run", first, true)
	check("without a run, modern", modern, true)
	a := callTool(t, first, "workflow_start", map[string]any{"workflowId": "look"})
	if tools := fmt.Sprint(a["position"].(map[string]any)["tools"]); tools != "map[allow:[x__get_*]]" {
		t.Errorf("the position says %s", tools)
	}
	check("the connection that started it", first, false)
	if reached, answer := p.call(t, first, "get_file", `{}`); !reached {
		t.Errorf("an allowed call: %s", answer)
	}
	check("another connection", second, true)
	p.advanceClock(2e9)
	check("no connection", modern, false)
	check("another user", other, true)
	callTool(t, second, "workflow_status", map[string]any{"runId": a["runId"]})
	check("a connection that asked for the run", second, false)
	b := callTool(t, second, "workflow_continue", map[string]any{"handle": a["handle"], "output": "read"})
	for when, cs := range map[string]*mcp.ClientSession{"first": first, "second": second, "modern": modern} {
		check("at a free step, "+when, cs, true)
	}
	// A second run at a restricted step: the first does not widen it.
	c := callTool(t, first, "workflow_start", map[string]any{"workflowId": "look"})
	check("with two runs", first, false)
	callTool(t, first, "workflow_continue", map[string]any{"handle": b["handle"], "output": "written"})
	check("after the end of one", first, false)
	callTool(t, first, "workflow_abort", map[string]any{"handle": c["handle"]})
	check("after the end of both", first, true)
}

// TestPolicyOfToken checks that a run which a connection of a token uses also restricts
// requests of this token without a connection, and those of no other token.
func TestPolicyOfToken(t *testing.T) {
	t.Parallel()
	p := newPolicyServer(t)
	p.addDefinition(t, `{"id":"look","name":"L","description":"L","version":"1.0.0","steps":[
		{"id":"read","title":"Read","prompt":"Read.","tools":{"allow":["x__get_*"]}}]}`)
	a := callTool(t, connectClient(t, p.server, "http", "ann+one", "2026-07-28", nil), "workflow_start", map[string]any{"workflowId": "look"})
	callTool(t, connectClient(t, p.server, "http", "ann+two", "2025-11-25", nil), "workflow_status", map[string]any{"runId": a["runId"]})
	for user, want := range map[string]bool{"ann+one": false, "ann+two": false, "ann+three": true} {
		cs := connectClient(t, p.server, "http", user, "2026-07-28", nil)
		if reached, answer := p.call(t, cs, "drop", `{}`); reached != want {
			t.Errorf("%s: the call reached the upstream: %v, %s", user, reached, answer)
		}
	}
}

// drawPolicy returns a policy and its JSON. The oracle of TestPolicyWalk knows only these
// patterns.
type drawnPolicy struct {
	Allow []string `json:"allow,omitzero"`
	Deny  []any    `json:"deny,omitempty"`
}

func drawPolicy(t *rapid.T, label string) *drawnPolicy {
	patterns := []string{"*", "x__*", "x__get_*", "x__get_file", "x__put_file", "x__drop", "*file", "Edit"}
	var p drawnPolicy
	switch rapid.IntRange(0, 3).Draw(t, label) {
	case 0:
		return nil
	case 1:
		p.Allow = rapid.SliceOfN(rapid.SampledFrom(patterns), 0, 3).Draw(t, label+" allow")
		if p.Allow == nil {
			p.Allow = []string{}
		}
	}
	for range rapid.IntRange(0, 2).Draw(t, label+" denials") {
		switch rapid.IntRange(0, 2).Draw(t, label+" deny") {
		case 0:
			p.Deny = append(p.Deny, rapid.SampledFrom(patterns[2:]).Draw(t, label+" tool"))
		case 1:
			p.Deny = append(p.Deny, map[string]any{"tool": "*", "annotations": map[string]any{"readOnly": false}})
		default:
			p.Deny = append(p.Deny, map[string]any{"tool": "*", "arguments": map[string]any{"to": "/etc*"}})
		}
	}
	return &p
}

// permits is the oracle: it reports whether the policy permits a call.
func (p *drawnPolicy) permits(tool, to string) bool {
	if p == nil {
		return true
	}
	matches := func(pattern string) bool {
		head, tail, star := strings.Cut(pattern, "*")
		return pattern == tool || star && strings.HasPrefix(tool, head) && strings.HasSuffix(tool, tail)
	}
	if p.Allow != nil && !slices.ContainsFunc(p.Allow, matches) {
		return false
	}
	return !slices.ContainsFunc(p.Deny, func(rule any) bool {
		object, ok := rule.(map[string]any)
		switch {
		case !ok:
			return matches(rule.(string))
		case object["annotations"] != nil:
			return !policyTools[strings.TrimPrefix(tool, "x__")]
		default:
			return strings.HasPrefix(to, "/etc")
		}
	})
}

// walkedRun is an open run of TestPolicyWalk: the policies of its steps, each with that of
// its loop or phase, and the current step.
type walkedRun struct {
	handle string
	steps  [][]*drawnPolicy
	at     int
}

// TestPolicyWalk walks through runs of random definitions with random policies: at each
// step every call outside the policies of the client's open runs is refused, and no call
// inside, on a connection and without one.
func TestPolicyWalk(t *testing.T) {
	t.Parallel()
	p := newPolicyServer(t)
	var number atomic.Int64
	rapid.Check(t, func(rt *rapid.T) {
		n := number.Add(1)
		version := rapid.SampledFrom([]string{"2025-11-25", "2026-07-28"}).Draw(rt, "version")
		transportName := rapid.SampledFrom([]string{"memory", "http"}).Draw(rt, "transport")
		cs := connectClient(t, p.server, transportName, fmt.Sprintf("user%d", n), version, nil)
		defer cs.Close()
		var open []*walkedRun
		for i := range rapid.IntRange(4, 14).Draw(rt, "actions") {
			switch what := rapid.IntRange(0, 5).Draw(rt, "action"); {
			case what == 0 && len(open) < 3:
				open = append(open, startWalk(rt, t, p, cs, fmt.Sprintf("walk%d-%d", n, i)))
			case what == 1 && len(open) > 0:
				j := rapid.IntRange(0, len(open)-1).Draw(rt, "run")
				r := open[j]
				r.handle, _ = callTool(t, cs, "workflow_continue", map[string]any{"handle": r.handle, "output": "done"})["handle"].(string)
				if r.at++; r.at == len(r.steps) {
					open = slices.Delete(open, j, j+1)
				}
			default:
				checkWalk(rt, p, cs, open)
			}
		}
		for _, r := range open {
			callTool(t, cs, "workflow_abort", map[string]any{"handle": r.handle})
		}
		checkWalk(rt, p, cs, nil)
	})
}

// checkWalk makes a random call and compares the result with the oracle.
func checkWalk(rt *rapid.T, p *policyServer, cs *mcp.ClientSession, open []*walkedRun) {
	tool := rapid.SampledFrom([]string{"get_issue", "get_file", "put_file", "drop"}).Draw(rt, "tool")
	to := rapid.SampledFrom([]string{"/etc/passwd", "/tmp/x", ""}).Draw(rt, "to")
	want := true
	for _, r := range open {
		for _, policy := range r.steps[r.at] {
			want = want && policy.permits("x__"+tool, to)
		}
	}
	if reached, answer := p.call(rt, cs, tool, `{"to":"`+to+`"}`); reached != want {
		rt.Fatalf("%s to %q reached the upstream: %v, want %v: %s", tool, to, reached, want, answer)
	}
}

// startWalk starts a run of a random definition.
func startWalk(rt *rapid.T, t *testing.T, p *policyServer, cs *mcp.ClientSession, id string) *walkedRun {
	r := &walkedRun{}
	var parts []any
	phases := rapid.Bool().Draw(rt, "phases")
	drawStep := func(name string, outer ...*drawnPolicy) map[string]any {
		step := map[string]any{"id": name, "title": name, "prompt": "Do it."}
		if phases {
			step = map[string]any{"id": name, "name": name}
		}
		policy := drawPolicy(rt, name)
		setTools(step, policy)
		r.steps = append(r.steps, append(outer, policy))
		return step
	}
	for i := range rapid.IntRange(1, 3).Draw(rt, "parts") {
		name := fmt.Sprintf("part%d", i)
		switch outer := drawPolicy(rt, name+" outer"); {
		case phases:
			phase := map[string]any{"id": name, "name": name, "steps": []any{drawStep(name+"-a", outer), drawStep(name+"-b", outer)}}
			setTools(phase, outer)
			parts = append(parts, phase)
		case rapid.Bool().Draw(rt, name+" loop"):
			loop := map[string]any{
				"id": name, "title": name, "type": "loop", "loop": map[string]any{"type": "for", "count": 1, "maxIterations": 1},
				"body": []any{drawStep(name+"-a", outer), drawStep(name+"-b", outer)},
			}
			setTools(loop, outer)
			parts = append(parts, loop)
		default:
			parts = append(parts, drawStep(name))
		}
	}
	d := map[string]any{"id": id, "name": id, "description": "W", "version": "1.0.0", "steps": parts}
	if phases {
		for i := range len(parts) - 1 {
			parts[i].(map[string]any)["transitions"] = []any{map[string]any{"to": fmt.Sprintf("part%d", i+1)}}
		}
		d = map[string]any{"id": id, "title": id, "version": "1.0.0", "initialPhase": "part0", "phases": parts}
	}
	p.addDefinition(rt, encodeJSON(t, d))
	r.handle, _ = callTool(t, cs, "workflow_start", map[string]any{"workflowId": id})["handle"].(string)
	return r
}

func setTools(of map[string]any, p *drawnPolicy) {
	if p != nil {
		of["tools"] = p
	}
}
