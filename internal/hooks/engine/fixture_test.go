package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	hookdef "github.com/guideway-dev/guideway/internal/hooks/definition"
	hookengine "github.com/guideway-dev/guideway/internal/hooks/engine"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// script replaces a user's script: it changes the context and returns the script's return
// value. Values that it appends to the list "audit" of the context replace calls of the
// function audit.
type script func(ctx context.Context, c map[string]any) (any, error)

// scripts runs a Go function in place of each script, selected by the script's text.
type scripts struct {
	mu    sync.Mutex
	known map[string]script
	// ran are the texts of the scripts in the order in which they started.
	ran []string
}

func (s *scripts) RunHook(ctx context.Context, call hookengine.ScriptCall) (*hookengine.ScriptResult, error) {
	s.mu.Lock()
	s.ran = append(s.ran, call.Script.Text)
	run := s.known[call.Script.Text]
	s.mu.Unlock()
	var c map[string]any
	if err := json.Unmarshal(call.Context, &c); err != nil {
		return nil, fmt.Errorf("the engine passed an invalid context %s: %w", call.Context, err)
	}
	if run == nil {
		return &hookengine.ScriptResult{Context: call.Context}, nil
	}
	value, err := run(ctx, c)
	if err != nil {
		return nil, err
	}
	audit, _ := c["audit"].([]any)
	delete(c, "audit")
	after, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	result := &hookengine.ScriptResult{Context: after, Console: []hookengine.Line{{Level: "log", Text: call.Script.Text}}}
	for _, record := range audit {
		text, err := json.Marshal(record)
		if err != nil {
			return nil, err
		}
		result.Audit = append(result.Audit, text)
	}
	if value != nil {
		result.Value, err = json.Marshal(value)
	}
	return result, err
}

// ranScripts returns the scripts that ran so far.
func (s *scripts) ranScripts() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.ran, " ")
}

// server records its calls and returns a response and an error.
type server struct {
	mu       sync.Mutex
	calls    []hookengine.Call
	response string
	err      error
}

func (s *server) Call(_ context.Context, call hookengine.Call) (json.RawMessage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, call)
	if s.response == "" {
		s.response = `{"content":[{"type":"text","text":"done"}]}`
	}
	return json.RawMessage(s.response), s.err
}

func (s *server) countCalls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.calls)
}

// fixture is an engine with a graph, a server and scripts.
type fixture struct {
	*testing.T
	engine  *hookengine.Engine
	program *hookengine.Program
	scripts *scripts
	server  *server
}

// newFixture returns a fixture. The graph is written as edges between nodes:
//
// \tstart > a > call > b > end; start > x
//
// These names are node kinds; other names are blocking hooks with their name as script, or
// fire-and-forget hooks if the name ends in a star.
func newFixture(t *testing.T, graph string, known map[string]script, opts ...func(*hookengine.Options)) *fixture {
	t.Helper()
	r := &fixture{T: t, scripts: &scripts{known: known}, server: &server{}}
	options := hookengine.Options{Scripts: r.scripts}
	for _, opt := range opts {
		opt(&options)
	}
	r.engine = hookengine.New(options)
	t.Cleanup(func() { r.engine.Close(context.WithoutCancel(t.Context())) })
	r.program = compileGraph(t, newDocument(graph, ""))
	return r
}

// newDocument returns a graph as JSON; more are members of its root.
func newDocument(graph, more string) string {
	var nodes, edges []string
	seen := map[string]bool{}
	node := func(name string) string {
		id := strings.TrimSuffix(name, "*")
		if seen[id] {
			return id
		}
		seen[id] = true
		kind, data := "hook", fmt.Sprintf(`{"hook": {"script": %q, "blocking": %v, "answers": %v}}`, id, id == name, strings.HasPrefix(id, "answer"))
		switch strings.TrimRight(id, "0123456789") {
		case "start", "end":
			kind, data = strings.TrimRight(id, "0123456789"), "{}"
		case "call":
			kind, data = "mcp-call", "{}"
		}
		nodes = append(nodes, fmt.Sprintf(`{"id": %q, "type": %q, "data": %s}`, id, kind, data))
		return id
	}
	for way := range strings.SplitSeq(graph, ";") {
		before := ""
		for name := range strings.SplitSeq(way, ">") {
			id := node(strings.TrimSpace(name))
			if before != "" {
				edges = append(edges, fmt.Sprintf(`{"source": %q, "target": %q}`, before, id))
			}
			before = id
		}
	}
	if more == "" {
		more = `"workflowType": "tools/call"`
	}
	return fmt.Sprintf(`{"id": "graph", "name": "Graph", %s, "nodes": [%s], "edges": [%s]}`, more, strings.Join(nodes, ","), strings.Join(edges, ","))
}

// compileGraph compiles a valid graph.
func compileGraph(t *testing.T, text string) *hookengine.Program {
	t.Helper()
	p, err := hookengine.Compile(linkGraph(t, text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func linkGraph(t *testing.T, text string) *hookdef.Linked {
	t.Helper()
	root, found := doc.Parse("graph.json", []byte(text), doc.Limits{})
	if root == nil {
		t.Fatal(found)
	}
	g, found := hookdef.Parse("graph.json", root)
	if g == nil {
		t.Fatalf("%v\n%s", found, text)
	}
	l, found := hookdef.Link(g, hookdef.Library{})
	if l == nil {
		t.Fatal(found)
	}
	return l
}

const params = `{"name":"read","arguments":{"path":"/tmp/a","big":12345678901234567890}}`

// runRequest runs the graph on one request.
func (r *fixture) runRequest() *hookengine.Outcome {
	r.Helper()
	return r.engine.Run(r.Context(), r.program, hookengine.Request{
		Params: json.RawMessage(params), Metadata: hookengine.Metadata{ClientID: "client", ServerName: "files", Run: &hookengine.RunMetadata{ID: "r_1", Step: "plan"}},
	}, r.server)
}

// checkOutcome checks the outcome of a request, and how often the call was sent.
func (r *fixture) checkOutcome(out *hookengine.Outcome, status hookengine.Status, calls int) {
	r.Helper()
	if out.Status != status || r.server.countCalls() != calls || out.Sent != (calls > 0) {
		r.Errorf("the outcome is %s (%v) with %d calls, want %s with %d", out.Status, out.Err, r.server.countCalls(), status, calls)
	}
	if (out.Err != nil) == (len(out.Response) > 0) {
		r.Errorf("want an error or a response, got the error %v and the response %s", out.Err, out.Response)
	}
}

// settledNode waits until the fire-and-forget hooks have ended, and returns the trace of a
// node.
func (r *fixture) settledNode(out *hookengine.Outcome, id string) hookengine.NodeTrace {
	r.Helper()
	nodes, err := out.Settle(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	for _, n := range nodes {
		if n.ID == id {
			return n
		}
	}
	r.Fatalf("no trace of %s in %+v", id, nodes)
	return hookengine.NodeTrace{}
}

// valueAt returns a nested value of decoded JSON.
func valueAt(v any, path ...string) any {
	for _, key := range path {
		object, _ := v.(map[string]any)
		v = object[key]
	}
	return v
}

// throwScript is a script that throws an error.
func throwScript(context.Context, map[string]any) (any, error) {
	return nil, &hookengine.ScriptError{Code: hookengine.CodeScript, Message: "boom", File: "graph/a.js", Line: 3, Column: 7}
}

// onlyProgram returns the program of a chain of at most one.
func onlyProgram(chain []*hookengine.Program, err error) (*hookengine.Program, error) {
	if len(chain) == 0 {
		return nil, err
	}
	return chain[0], err
}
