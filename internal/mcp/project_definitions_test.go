package mcp_test

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	mcpserver "github.com/guideway-dev/guideway/internal/mcp"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// dirDefinitions provides the definitions in directories, and records the directories.
type dirDefinitions struct {
	mu     sync.Mutex
	opened []string
}

func (d *dirDefinitions) Open(ctx context.Context, dir string) (*catalog.Snapshot, run.Definitions, error) {
	d.mu.Lock()
	d.opened = append(d.opened, dir)
	d.mu.Unlock()
	cat := catalog.New(catalog.Standard(catalog.Layout{Project: dir}), catalog.Options{})
	if err := cat.Load(ctx); err != nil {
		return nil, nil, err
	}
	return cat.Snapshot(), startableCatalog{cat}, nil
}

// newProject returns a directory with a workflow.
func newProject(t *testing.T, id string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, ".guideway", "workflows"), 0o700); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, ".guideway", "workflows"), id+".json", strings.Replace(small, `"small"`, `"`+id+`"`, 1))
	return dir
}

func rootOf(dir string) *mcp.Root { //nolint:staticcheck // SA1019: legacy clients have roots
	uri := url.URL{Scheme: "file", Path: filepath.ToSlash(dir)}
	return &mcp.Root{URI: uri.String()} //nolint:staticcheck // SA1019: legacy clients have roots
}

// connectWithRoots connects a client with roots.
func connectWithRoots(t *testing.T, r *testServer, version string, dirs ...string) (*mcp.Client, *mcp.ClientSession) {
	t.Helper()
	near, far := mcp.NewInMemoryTransports()
	ss, err := r.server.MCP().Connect(auth.WithPrincipal(context.Background(), guideway.Principal{User: "ann"}), far, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ss.Wait() })
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	for _, dir := range dirs {
		client.AddRoots(rootOf(dir)) //nolint:staticcheck // SA1019: legacy clients have roots
	}
	cs, err := client.Connect(t.Context(), near, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cs.Close() })
	return client, cs
}

// workflowIDs returns the ids that workflow_list returns.
func workflowIDs(t *testing.T, cs *mcp.ClientSession, args map[string]any) []string {
	t.Helper()
	list, isError := callRaw(t, cs, "workflow_list", args)
	if isError {
		t.Fatal(list)
	}
	var ids []string
	for _, each := range list["workflows"].([]any) {
		ids = append(ids, each.(map[string]any)["id"].(string))
	}
	return ids
}

// The workflows of the client's roots are listed, described, followed and started; a root
// that does not exist is ignored, and a change of the roots is noticed. A client of
// 2026-07-28 has no roots.
func TestDefinitionsOfRoots(t *testing.T) {
	t.Parallel()
	definitions := &dirDefinitions{}
	r := newTestServer(t, func(o *mcpserver.Options) { o.Definitions = definitions })
	one, two := newProject(t, "one"), newProject(t, "two")
	client, cs := connectWithRoots(t, r, "2025-11-25", filepath.Join(one, "missing"), one)
	if ids := workflowIDs(t, cs, nil); !slices.Contains(ids, "one") || slices.Contains(ids, "two") {
		t.Errorf("the workflows are %v", ids)
	}
	for tool, args := range map[string]map[string]any{
		"workflow_get": {"id": "one"}, "workflow_next": {"workflowId": "one", "completedSteps": []any{}},
		"workflow_start": {"workflowId": "one", "goal": "Do it"},
	} {
		if answer, isError := callRaw(t, cs, tool, args); isError {
			t.Errorf("%s returned %v", tool, answer)
		}
	}
	found, err := r.runs.Resume(t.Context(), run.Caller{Principal: guideway.Principal{User: "ann"}}, run.ResumeRequest{Query: "Do it"})
	if err != nil || len(found) != 1 {
		t.Fatalf("the runs are %v %v", found, err)
	}
	details, err := r.runs.Get(t.Context(), run.Caller{Principal: guideway.Principal{User: "ann"}}, run.Ref{RunID: found[0].RunID})
	if err != nil || details.Project.Path != one {
		t.Errorf("the project of the run is %+v, want %s; %v", details.Project, one, err)
	}
	client.RemoveRoots(rootOf(one).URI) //nolint:staticcheck // SA1019: legacy clients have roots
	client.AddRoots(rootOf(two))        //nolint:staticcheck // SA1019: legacy clients have roots
	for !slices.Contains(workflowIDs(t, cs, nil), "two") {
		if t.Context().Err() != nil {
			t.Fatal("the changed roots were not noticed")
		}
	}
	_, modern := connectWithRoots(t, r, "2026-07-28", one)
	if ids := workflowIDs(t, modern, nil); slices.Contains(ids, "one") {
		t.Errorf("a client without roots sees %v", ids)
	}
}

// A client that cancels its first call before it has listed its roots gets the workflows of
// its roots at the next call.
func TestRootsAfterCancelledCall(t *testing.T) {
	t.Parallel()
	r := newTestServer(t, func(o *mcpserver.Options) { o.Definitions = &dirDefinitions{} })
	client, cs := connectWithRoots(t, r, "2025-11-25", newProject(t, "one"))
	asked, answer := make(chan struct{}), make(chan struct{})
	var once sync.Once
	client.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method == "roots/list" {
				once.Do(func() { close(asked) })
				<-answer
			}
			return next(context.WithoutCancel(ctx), method, req)
		}
	})
	first, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = cs.CallTool(first, &mcp.CallToolParams{Name: "workflow_list", Arguments: map[string]any{}})
	}()
	<-asked
	cancel()
	<-done
	// The server handles the cancellation meanwhile.
	for range 200 {
		if err := cs.Ping(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	close(answer)
	if ids := workflowIDs(t, cs, nil); !slices.Contains(ids, "one") {
		t.Errorf("the workflows are %v", ids)
	}
}

// The argument project names another project for one call. An unknown workflow is refused
// with the searched directories, in every tool.
func TestDefinitionsOfNamedProject(t *testing.T) {
	t.Parallel()
	r := newTestServer(t, func(o *mcpserver.Options) { o.Definitions = &dirDefinitions{} })
	dir := newProject(t, "one")
	cs := connectClient(t, r.server, "memory", "ann", "2026-07-28", nil)
	if ids := workflowIDs(t, cs, map[string]any{"project": dir}); !slices.Contains(ids, "one") {
		t.Errorf("the workflows are %v", ids)
	}
	if ids := workflowIDs(t, cs, nil); slices.Contains(ids, "one") {
		t.Errorf("without the project, the workflows are %v", ids)
	}
	if answer, isError := callRaw(t, cs, "workflow_start", map[string]any{"workflowId": "one", "project": dir}); isError {
		t.Errorf("the start returned %v", answer)
	}
	for name, args := range map[string]map[string]any{
		"workflow_get": {"id": "onne", "project": dir}, "workflow_start": {"workflowId": "onne", "project": dir},
	} {
		answer, isError := callRaw(t, cs, name, args)
		fix, _ := answer["fix"].(string)
		if !isError || !strings.Contains(fix, "did you mean one?") || !strings.Contains(fix, filepath.Join(dir, ".guideway", "workflows")) {
			t.Errorf("%s returned %v", name, answer)
		}
	}
	for name, args := range map[string]map[string]any{
		"workflow_get": {"id": "zzzzzz", "project": dir}, "workflow_start": {"workflowId": "zzzzzz", "project": dir},
	} {
		answer, _ := callRaw(t, cs, name, args)
		want := map[string]any{"tool": "workflow_list", "arguments": map[string]any{"project": dir}}
		if diff := cmp.Diff(want, answer["next"]); diff != "" {
			t.Errorf("%s proposes another call (-want +got):\n%s", name, diff)
		}
	}
	for name, args := range map[string]map[string]any{"workflow_get": {"id": "one"}, "workflow_start": {"workflowId": "one"}} {
		answer, isError := callRaw(t, cs, name, args)
		if fix, _ := answer["fix"].(string); !isError || !strings.Contains(fix, r.dir) || strings.Contains(fix, dir) {
			t.Errorf("%s without the project returned %v", name, answer)
		}
	}
	if answer, isError := callRaw(t, cs, "workflow_list", map[string]any{"project": "relative"}); !isError || answer["field"] != "project" {
		t.Errorf("a relative path returned %v", answer)
	}
}

// A client with its own token gets the definitions of the server only, even if it names
// another project, and does not learn the directories of the server.
func TestTokensGetNoForeignDefinitions(t *testing.T) {
	t.Parallel()
	definitions := &dirDefinitions{}
	r := newTestServer(t, func(o *mcpserver.Options) { o.Definitions = definitions })
	dir := newProject(t, "one")
	for _, allow := range []auth.Allow{{All: true}, {Toolsets: []string{"steps", "runs"}}} {
		cs := connectWithToken(t, r, allow)
		if ids := workflowIDs(t, cs, map[string]any{"project": dir}); slices.Contains(ids, "one") {
			t.Errorf("the workflows are %v", ids)
		}
		for name, args := range map[string]map[string]any{
			"workflow_get": {"id": "one", "project": dir}, "workflow_start": {"workflowId": "one", "project": dir},
		} {
			answer, isError := callRaw(t, cs, name, args)
			fix, _ := answer["fix"].(string)
			if !isError || strings.Contains(fix, r.dir) || strings.Contains(fix, dir) || !strings.Contains(fix, "This token") {
				t.Errorf("%s returned %v", name, answer)
			}
		}
	}
	if len(definitions.opened) > 0 {
		t.Errorf("the directories %v were read", definitions.opened)
	}
}
