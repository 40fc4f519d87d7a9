package mcp_test

import (
	"encoding/json"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway/internal/catalog"
	mcpserver "github.com/guideway-dev/guideway/internal/mcp"
	"github.com/guideway-dev/guideway/workflows"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

func listTools(t *testing.T, cs *mcp.ClientSession) []*mcp.Tool {
	t.Helper()
	res, err := cs.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return res.Tools
}

func toolNames(t *testing.T, cs *mcp.ClientSession) []string {
	t.Helper()
	var names []string
	for _, tool := range listTools(t, cs) {
		names = append(names, tool.Name)
	}
	return names
}

// The tools/list result of the default toolsets is smaller than 20 kB, because it is part
// of every conversation.
func TestDefaultToolsAreSmall(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	list := listTools(t, connectClient(t, r.server, "memory", "ann", "2026-07-28", nil))
	if size := len(encodeJSON(t, list)); size > 19_900 {
		t.Errorf("tools/list has %d bytes", size)
	}
	if len(list) != 22 {
		t.Errorf("%d tools, want 6 + 6 + 4 + 6", len(list))
	}
}

// TestHints checks the hints of each tool. Clients ask the person before destructive calls,
// and may repeat idempotent ones.
func TestHints(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	type hints struct{ readOnly, idempotent, destructive bool }
	want := map[string]hints{
		"workflow_start": {}, "workflow_fork": {}, "workrail_create_session": {},
		"workflow_checkpoint_save": {}, "workflow_checkpoint_load": {},
		"workflow_context_compress": {idempotent: true}, "workflow_context_prioritize": {idempotent: true}, "workflow_mark_critical": {idempotent: true},
		"workflow_continue": {idempotent: true}, "workrail_open_dashboard": {idempotent: true},
		"workflow_abort": {idempotent: true, destructive: true}, "workrail_update_session": {idempotent: true, destructive: true},
	}
	for _, tool := range listTools(t, connectClient(t, r.server, "memory", "ann", "2025-11-25", nil)) {
		expected, ok := want[tool.Name]
		if !ok {
			expected = hints{readOnly: true, idempotent: true}
		}
		a := tool.Annotations
		got := hints{a.ReadOnlyHint, a.IdempotentHint, a.DestructiveHint != nil && *a.DestructiveHint}
		if got != expected || !a.ReadOnlyHint && a.DestructiveHint == nil || a.OpenWorldHint == nil || *a.OpenWorldHint {
			t.Errorf("%s: %+v, want %+v", tool.Name, got, expected)
		}
	}
}

// A position without its prompt is smaller than 4 kB in every bundled workflow.
func TestPositionsAreSmall(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	cs := connectClient(t, r.server, "memory", "ann", "2026-07-28", nil)
	cat := catalog.New(catalog.Standard(catalog.Layout{Bundled: workflows.FS()}), catalog.Options{})
	if err := cat.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cat.Close)
	entries := cat.Snapshot().List(catalog.Filter{})
	if len(entries) == 0 {
		t.Fatal("there are no bundled workflows")
	}
	for _, e := range entries {
		a := callTool(t, cs, "workflow_start", map[string]any{"workflowId": e.ID})
		for range 5 {
			position := a["position"].(map[string]any)
			prompt, _ := position["prompt"].(string)
			if size := len(encodeJSON(t, a)) - len(encodeJSON(t, prompt)); size > 4096 {
				t.Errorf("%s at %s: %d bytes without the prompt", e.ID, positionID(a), size)
			}
			if a["next"] == nil {
				break
			}
			tool, args := nextCallOf(t, a)
			args["output"] = "what was done"
			res, isError := callRaw(t, cs, tool, args)
			if isError {
				break // the output fails the step's criteria
			}
			a = res
		}
	}
}

// TestGatewayOnlyInstructions checks that with only the toolset "gateway", the instructions
// are about upstreams and do not mention workflows.
func TestGatewayOnlyInstructions(t *testing.T) {
	t.Parallel()
	r := newTestServer(t, func(o *mcpserver.Options) {
		o.Toolsets, o.Upstreams = []string{mcpserver.ToolsetGateway}, noUpstreams{}
	})
	said := connectClient(t, r.server, "memory", "ann", "2025-11-25", nil).InitializeResult().Instructions
	if !strings.Contains(said, "other MCP servers") || strings.Contains(said, "workflow") {
		t.Errorf("the instructions are %q", said)
	}
}

// promptRecorder is a gateway that records the reserved prompts.
type promptRecorder struct {
	noUpstreams
	reserved *atomic.Pointer[[]string]
}

func (r promptRecorder) Reserve(prompts []string) { r.reserved.Store(&prompts) }

// TestPromptsAreReserved checks that a gateway receives the names of the server's prompts,
// and again after a definition is added.
func TestPromptsAreReserved(t *testing.T) {
	t.Parallel()
	var reserved atomic.Pointer[[]string]
	r := newTestServer(t, func(o *mcpserver.Options) {
		o.Toolsets, o.Upstreams = append(mcpserver.DefaultToolsets(), mcpserver.ToolsetGateway), promptRecorder{reserved: &reserved}
	})
	session := connectClient(t, r.server, "memory", "ann", "2025-11-25", nil)
	list, err := session.ListPrompts(t.Context(), nil)
	if err != nil || len(list.Prompts) == 0 {
		t.Fatal(list, err)
	}
	for _, p := range list.Prompts {
		if !slices.Contains(*reserved.Load(), p.Name) {
			t.Errorf("the prompt %s is not reserved", p.Name)
		}
	}
	writeFile(t, r.dir, "later.json", strings.Replace(small, `"small"`, `"later"`, 1))
	if err := r.catalog.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(*reserved.Load(), "later") {
		t.Errorf("after a definition was added, the reserved prompts are %v", *reserved.Load())
	}
}

// noUpstreams is a gateway without upstreams.
type noUpstreams struct{}

func (noUpstreams) Extend(*mcp.ServerOptions)    {}
func (noUpstreams) Attach(*mcp.Server, []string) {}
func (noUpstreams) Reserve([]string)             {}

// Prompts and instructions only name available tools.
func TestPromptsNameAvailableTools(t *testing.T) {
	t.Parallel()
	stepsOnly := func(o *mcpserver.Options) { o.Toolsets = []string{mcpserver.ToolsetSteps} }
	noService := func(o *mcpserver.Options) { o.Runs = nil }
	for name, tt := range map[string]struct {
		change       func(*mcpserver.Options)
		named, else_ string
	}{
		"all":            {func(*mcpserver.Options) {}, "workflow_start", "workflow_next"},
		"steps alone":    {stepsOnly, "workflow_next", "workflow_start"},
		"no run service": {noService, "workflow_next", "workflow_start"},
	} {
		r := newTestServer(t, tt.change)
		cs := connectClient(t, r.server, "memory", "ann", "2025-11-25", nil)
		prompt, err := cs.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "guarded", Arguments: map[string]string{"goal": `ship "it"`}})
		if err != nil {
			t.Fatal(err)
		}
		var listed string
		for _, tool := range listTools(t, cs) {
			if tool.Name == "workflow_list" {
				listed = tool.Description
			}
		}
		said := prompt.Messages[0].Content.(*mcp.TextContent).Text
		for place, words := range map[string]string{"prompt": said, "instructions": cs.InitializeResult().Instructions, "workflow_list": listed} {
			if !strings.Contains(words, tt.named) || strings.Contains(words, tt.else_) {
				t.Errorf("%s: the %s: %s", name, place, words)
			}
		}
		if tt.named == "workflow_start" {
			_, call, _ := strings.Cut(said, "workflow_start ")
			var args map[string]any
			if err := json.NewDecoder(strings.NewReader(call)).Decode(&args); err != nil {
				t.Fatalf("%s: %v", said, err)
			}
			if d := cmp.Diff(map[string]any{"workflowId": "guarded", "goal": `ship "it"`}, args); d != "" {
				t.Errorf("the call in the prompt (-want +got):\n%s", d)
			}
			callTool(t, cs, "workflow_start", args)
		}
		if slices.Contains(toolNames(t, cs), "workflow_start") != (tt.named == "workflow_start") {
			t.Errorf("%s: tools %v", name, toolNames(t, cs))
		}
	}
}

// Every answer matches the output schema of its tool, and every tool has one.
func TestAnswersMatchSchemas(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	cs := connectClient(t, r.server, "memory", "ann", "2026-07-28", nil)
	a := callTool(t, cs, "workflow_start", map[string]any{"workflowId": "guarded"})
	run := map[string]any{"runId": a["runId"]}
	document := map[string]any{"workflowId": "w", "sessionId": "s"}
	with := func(base map[string]any, name string, value any) map[string]any {
		out := map[string]any{name: value}
		for k, v := range base {
			out[k] = v
		}
		return out
	}
	calls := []struct {
		tool string
		args map[string]any
	}{
		{"workflow_list", nil},
		{"workflow_get", map[string]any{"id": "guarded"}},
		{"workflow_next", map[string]any{"workflowId": "guarded"}},
		{"workflow_validate", map[string]any{"workflowId": "guarded", "stepId": "plan", "output": "PLAN"}},
		{"workflow_validate_json", map[string]any{"workflowJson": "{}"}},
		{"workflow_get_schema", nil},
		{"workflow_start", map[string]any{"workflowId": "guarded"}},
		{"workflow_continue", map[string]any{"handle": a["handle"], "output": "PLAN"}},
		{"workflow_status", run},
		{"workflow_resume", nil},
		{"workflow_fork", run},
		{"workflow_abort", run},
		{"workflow_checkpoint_save", map[string]any{"sessionId": "s", "context": map[string]any{"goal": "g"}}},
		{"workflow_checkpoint_load", map[string]any{"sessionId": "s"}},
		{"workflow_checkpoint_list", nil},
		{"workflow_context_compress", map[string]any{"context": map[string]any{"goal": "g"}, "ratio": 1.5}},
		{"workflow_context_prioritize", map[string]any{"context": map[string]any{"goal": "g"}, "budgetTokens": 100}},
		{"workflow_mark_critical", map[string]any{"sessionId": "s", "keys": []any{"goal"}}},
		{"workrail_create_session", document},
		{"workrail_update_session", with(document, "updates", map[string]any{"a": 1})},
		{"workrail_read_session", with(document, "path", "a")},
		{"workrail_open_dashboard", nil},
	}
	list := listTools(t, cs)
	if len(list) != len(calls) {
		t.Errorf("%d tools exist, but %d were called", len(list), len(calls))
	}
	for _, c := range calls {
		tool := list[slices.IndexFunc(list, func(tool *mcp.Tool) bool { return tool.Name == c.tool })]
		schema := compileSchema(t, tool)
		// A schema that names no member of the answer would accept any answer.
		properties, _ := tool.OutputSchema.(map[string]any)["properties"].(map[string]any)
		answer := callTool(t, cs, c.tool, c.args)
		if err := schema.Validate(answer); err != nil {
			t.Errorf("%s: %v", c.tool, err)
		}
		named := 0
		for name := range answer {
			if _, ok := properties[name]; ok {
				named++
			}
		}
		if named == 0 {
			t.Errorf("%s: the schema names no member of %v", c.tool, answer)
		}
	}
}

func compileSchema(t *testing.T, tool *mcp.Tool) *jsonschema.Schema {
	t.Helper()
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource(tool.Name, tool.OutputSchema); err != nil {
		t.Fatalf("%s: %v", tool.Name, err)
	}
	schema, err := compiler.Compile(tool.Name)
	if err != nil {
		t.Fatalf("%s: %v", tool.Name, err)
	}
	return schema
}
