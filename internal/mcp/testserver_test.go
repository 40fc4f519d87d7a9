package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/contexts"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/contexts/compress"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	mcpserver "github.com/guideway-dev/guideway/internal/mcp"
	"github.com/guideway-dev/guideway/internal/mcp/transport"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/session"
	"github.com/guideway-dev/guideway/internal/workflow"
	"github.com/guideway-dev/guideway/workflows"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// guarded has a criterion, a gate that an agent may answer, a step for large work only, and
// a last step that is hidden until the run reaches it.
const guarded = `{"id":"guarded","name":"Guarded","description":"A guarded one","version":"1.0.0","steps":[
	{"id":"plan","title":"Plan","prompt":"Plan it.","validationCriteria":[{"type":"contains","value":"PLAN","message":"say PLAN"}]},
	{"id":"agree","title":"Agree","prompt":"Agree on it.","requireConfirmation":true},
	{"id":"large","title":"Large","prompt":"Only for what is large.","runCondition":{"var":"size","equals":"large"}},
	{"id":"report","title":"Report","prompt":"SECRET LAST STEP"}]}`

// manned has a gate with human approval, in a loop of two rounds.
const manned = `{"id":"manned","name":"Manned","description":"For people","version":"1.0.0","steps":[
	{"id":"each","type":"loop","title":"Each","loop":{"type":"for","count":2,"maxIterations":3},"body":[
		{"id":"draft","title":"Draft","prompt":"Draft it.","approval":"human"}]},
	{"id":"ship","title":"Ship","prompt":"SHIP IT"}]}`

// currentProject returns the project of the clients.
func currentProject(context.Context) run.Project {
	return run.Project{ID: "0123456789ab", Path: "/work/here", Branch: "main"}
}

// testServer is a server and its services.
type testServer struct {
	// dir is the custom source of the catalog.
	dir      string
	catalog  *catalog.Catalog
	server   *mcpserver.Server
	runs     *run.Service
	sessions *session.Service
	// checkpoints, keeper and memory serve the toolset "context".
	checkpoints *checkpoint.Service
	keeper      *contexts.AutoSaver
	memory      *contexts.Service

	mu  sync.Mutex
	now time.Time
}

// newTestServer returns a server with the default toolsets, the definitions above and the
// bundled ones.
func newTestServer(t *testing.T, change ...func(*mcpserver.Options)) *testServer {
	t.Helper()
	dir := t.TempDir()
	writeFile(t, dir, "guarded.json", guarded)
	writeFile(t, dir, "manned.json", manned)
	writeFile(t, dir, "small.json", small)
	cat := catalog.New(catalog.Standard(catalog.Layout{Bundled: workflows.FS(), Custom: []string{dir}}), catalog.Options{})
	if err := cat.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cat.Close)
	r := &testServer{now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), dir: dir, catalog: cat}
	store := newStore(t)
	r.checkpoints = newCheckpoints(t, store, r.readClock)
	var err error
	r.keeper, err = contexts.NewAutoSaver(contexts.AutoSaverOptions{Checkpoints: r.checkpoints, Now: r.readClock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.keeper.Close() })
	r.runs, err = run.New(run.Options{
		Journal: store, Definitions: startableCatalog{cat}, Key: bytes.Repeat([]byte{7}, run.KeySize), Now: r.readClock, Observer: r.keeper,
	})
	if err != nil {
		t.Fatal(err)
	}
	r.memory, err = contexts.New(contexts.Options{
		Checkpoints: r.checkpoints, Runs: r.runs, AutoSaver: r.keeper, Definitions: startableCatalog{cat}, Counter: compress.Estimator{},
	})
	if err != nil {
		t.Fatal(err)
	}
	r.sessions = session.New(session.Options{Store: store, Now: r.readClock})
	opts := mcpserver.Options{
		Catalog: cat, Runs: r.runs, Sessions: r.sessions, Memory: r.memory, Project: currentProject, Now: r.readClock,
		Dashboard: func(_ context.Context, id string) (string, error) {
			return "http://127.0.0.1:3000/dashboard/" + id, nil
		},
	}
	for _, f := range change {
		f(&opts)
	}
	r.server, err = mcpserver.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.server.Close)
	return r
}

// readClock returns a later time at each call, so that no two events have the same time.
func (r *testServer) readClock() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = r.now.Add(time.Millisecond)
	return r.now
}

func (r *testServer) advanceClock(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = r.now.Add(d)
}

// startableCatalog returns the definitions of a catalog.
type startableCatalog struct{ catalog mcpserver.Catalog }

func (s startableCatalog) Startable(_ context.Context, id string) (*workflow.Definition, error) {
	e, err := s.catalog.Snapshot().Get(id)
	if err != nil {
		return nil, err
	}
	return e.Definition, nil
}

// transportNames returns the names of a server's transports.
func transportNames() []string { return []string{"memory", "stdio", "http"} }

// connectClient connects a user's client to a server.
func connectClient(t *testing.T, server *mcpserver.Server, transportName, user, version string, opts *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	return connectNamedClient(t, server, transportName, user, "test", version, opts)
}

// connectNamedClient is like connectClient, for a client with a name.
func connectNamedClient(t *testing.T, server *mcpserver.Server, transportName, user, name, version string, opts *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	ctx := auth.WithPrincipal(t.Context(), guideway.Principal{User: user})
	var to mcp.Transport
	switch transportName {
	case "memory":
		near, far := mcp.NewInMemoryTransports()
		ss, err := server.MCP().Connect(ctx, far, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = ss.Wait() })
		to = near
	case "stdio":
		inR, inW := io.Pipe()
		outR, outW := io.Pipe()
		done := make(chan struct{})
		go func() { defer close(done); _ = transport.ServeStdio(ctx, server.MCP(), nil, inR, outW) }()
		t.Cleanup(func() { <-done })
		to = &mcp.IOTransport{Reader: outR, Writer: inW}
	case "http":
		to = serveHTTP(t, server, user)
	}
	client := mcp.NewClient(&mcp.Implementation{Name: name, Version: "1"}, opts)
	cs, err := client.Connect(t.Context(), to, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cs.Close() })
	return cs
}

// serveHTTP serves a server for one user, as auth.Bearer does for a token. The user
// "ann+laptop" is ann with her token laptop.
func serveHTTP(t *testing.T, server *mcpserver.Server, user string) mcp.Transport {
	t.Helper()
	h := transport.NewHTTPHandler(server.MCP(), transport.HTTPOptions{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("Authorization", "Bearer "+user)
		name, token, hasToken := strings.Cut(user, "+")
		ctx := auth.WithPrincipal(r.Context(), guideway.Principal{User: name, Client: token})
		if hasToken {
			ctx = auth.WithTokenLease(ctx, &auth.TokenLease{ID: token, Name: token, Allow: auth.Allow{All: true}})
		}
		h.ServeHTTP(w, r.WithContext(ctx))
	}))
	wire := &http.Transport{}
	t.Cleanup(func() {
		srv.CloseClientConnections()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := h.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
		srv.Close()
		wire.CloseIdleConnections()
	})
	return &mcp.StreamableClientTransport{Endpoint: srv.URL, HTTPClient: &http.Client{Transport: wire}}
}

// callTool calls a tool, and fails the test if the answer is an error.
func callTool(t *testing.T, cs *mcp.ClientSession, tool string, args map[string]any) map[string]any {
	t.Helper()
	res, isError := callRaw(t, cs, tool, args)
	if isError {
		t.Fatalf("%s %v: %v", tool, args, res)
	}
	return res
}

// callRefused calls a tool, and fails the test unless the answer is a refusal by the rule
// with a next call that can be copied.
func callRefused(t *testing.T, cs *mcp.ClientSession, tool string, args map[string]any, rule string) map[string]any {
	t.Helper()
	res, isError := callRaw(t, cs, tool, args)
	if !isError || res["rule"] != rule {
		t.Fatalf("%s %v: want a refusal by %s, got %v", tool, args, rule, res)
	}
	message, _ := res["message"].(string)
	next, _ := res["next"].(map[string]any)
	if rule == engine.RulePerson || rule == "gate-declined" || rule == "form-failed" {
		next = map[string]any{"tool": res["fix"], "arguments": true} // only a person can continue the run
	}
	if message == "" || next["tool"] == nil || next["arguments"] == nil {
		t.Errorf("%s: the refusal lacks message or next: %v", tool, res)
	}
	return res
}

// followNext makes the next call of an answer, with more arguments and the first choice of
// each field.
func followNext(t *testing.T, cs *mcp.ClientSession, answer, with map[string]any) map[string]any {
	t.Helper()
	tool, args := nextCallOf(t, answer)
	fields, _ := answer["next"].(map[string]any)["fields"].([]any)
	for _, f := range fields {
		field := f.(map[string]any)
		if choices, _ := field["choices"].([]any); len(choices) > 0 {
			name, member, _ := strings.Cut(textMember(field, "name"), ".")
			args[name] = map[string]any{member: choices[0]}
		}
	}
	for k, v := range with {
		args[k] = v
	}
	return callTool(t, cs, tool, args)
}

func nextCallOf(t *testing.T, answer map[string]any) (tool string, args map[string]any) {
	t.Helper()
	next, _ := answer["next"].(map[string]any)
	tool, _ = next["tool"].(string)
	args, ok := next["arguments"].(map[string]any)
	if !ok {
		t.Fatalf("no next call in %v", answer)
	}
	return tool, args
}

// positionID returns the kind and id of an answer's position.
func positionID(answer map[string]any) string {
	position, _ := answer["position"].(map[string]any)
	kind, _ := position["kind"].(string)
	id, _ := position["id"].(string)
	return kind + " " + id
}

func textMember(answer map[string]any, name string) string {
	s, _ := answer[name].(string)
	return s
}

func encodeJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
