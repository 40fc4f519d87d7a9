package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway/internal/catalog"
	mcpserver "github.com/guideway-dev/guideway/internal/mcp"
	"github.com/guideway-dev/guideway/workflows"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// The regexp2 package stops its clock a moment after the last match.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/dlclark/regexp2.runClock"))
}

// protocolVersions returns a legacy and a modern protocol version.
func protocolVersions() []string { return []string{"2025-11-25", "2026-07-28"} }

// connectToDir connects to a server with the definitions in dir and the bundled ones.
func connectToDir(t *testing.T, dir, version string, opts *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	cat := catalog.New(catalog.Standard(catalog.Layout{Bundled: workflows.FS(), Custom: []string{dir}}), catalog.Options{})
	if err := cat.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cat.Close)
	server, err := mcpserver.New(mcpserver.Options{Catalog: cat})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return connectClient(t, server, "memory", "ann", version, opts)
}

// TestNoVersionWithBatches checks that a client that asks for 2025-03-26, which has
// batches, gets the newest legacy version. Other legacy versions are accepted.
func TestNoVersionWithBatches(t *testing.T) {
	t.Parallel()
	for asked, want := range map[string]string{"2024-11-05": "2024-11-05", "2025-03-26": "2025-11-25", "2025-06-18": "2025-06-18"} {
		if got := connectToDir(t, t.TempDir(), asked, nil).InitializeResult().ProtocolVersion; got != want {
			t.Errorf("a client that asks for %s gets %s, want %s", asked, got, want)
		}
	}
}

// callRaw calls a tool and returns its answer. It checks that the structured content and
// the text are the same, or for a run's answer, that the text has all of the content.
func callRaw(t *testing.T, cs *mcp.ClientSession, name string, args any) (answer map[string]any, isError bool) {
	t.Helper()
	res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	text := res.Content[0].(*mcp.TextContent).Text
	structured, _ := res.StructuredContent.(map[string]any)
	if strings.Contains(text, "\n(page 1 of ") {
		return structured, false // TestPages checks the text.
	}
	if _, stands := structured["position"]; stands && !res.IsError {
		checkTextComplete(t, text, "", structured)
		return structured, false
	}
	if res.IsError {
		return decodeError(t, res), true
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		t.Fatalf("%s: the text is not JSON: %v\n%s", name, err, text)
	}
	if d := cmp.Diff(answer, res.StructuredContent); d != "" {
		t.Fatalf("%s: text and structured content differ:\n%s", name, d)
	}
	return answer, res.IsError
}

// decodeError returns the content of an error, which is sent only once.
func decodeError(t *testing.T, res *mcp.CallToolResult) (content map[string]any) {
	t.Helper()
	if len(res.Content) != 1 || res.StructuredContent != nil {
		t.Fatalf("the error is not sent once: %v, %v", res.Content, res.StructuredContent)
	}
	text := res.Content[0].(*mcp.TextContent).Text
	if err := json.Unmarshal([]byte(text), &content); err != nil {
		t.Fatalf("the error is not JSON: %v\n%s", err, text)
	}
	return content
}

// omittedFromText are the members that the text of a run's answer omits, because the handle
// or another member contains them.
var omittedFromText = []string{".runId", ".status", ".position.loop.title", ".position.phase.id"}

// checkTextComplete checks that the text of an answer contains each of its members.
func checkTextComplete(t *testing.T, text, path string, v any) {
	t.Helper()
	switch v := v.(type) {
	case map[string]any:
		if path == ".state" {
			return // The text has the value as JSON with its members in a different order.
		}
		for name, member := range v {
			checkTextComplete(t, text, path+"."+name, member)
		}
	case []any:
		for _, item := range v {
			checkTextComplete(t, text, path, item)
		}
	case string:
		quoted, _ := json.Marshal(v)
		if !slices.Contains(omittedFromText, path) && !strings.Contains(text, v) && !strings.Contains(text, string(quoted)) {
			t.Errorf("the text lacks %s, %q:\n%s", path, v, text)
		}
	}
}

func writeFile(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

const small = `{"id":"small","name":"Small","description":"A small one","version":"1.0.0","steps":[
	{"id":"only","title":"Only","prompt":"Do it.","validationCriteria":[{"type":"contains","value":"DONE","message":"say DONE"}]},
	{"id":"each","type":"loop","title":"Each","loop":{"type":"for","count":2,"maxIterations":3},"body":[{"id":"inner","title":"I","prompt":"i","validationCriteria":[{"type":"length","min":5,"message":"too short","condition":{"var":"strict","equals":true}}]}]}]}`

// A client follows a workflow from workflow_list to completion with both protocol versions.
func TestWorkflowNextFromListToCompletion(t *testing.T) {
	t.Parallel()
	for _, version := range protocolVersions() {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			writeFile(t, dir, "small.json", small)
			cs := connectToDir(t, dir, version, nil)

			list, _ := callRaw(t, cs, "workflow_list", nil)
			ids := []string{}
			for _, w := range list["workflows"].([]any) {
				ids = append(ids, w.(map[string]any)["id"].(string))
			}
			if !slices.Contains(ids, "small") || !slices.Contains(ids, "coding-task") {
				t.Fatalf("workflow_list = %v", ids)
			}
			got, _ := callRaw(t, cs, "workflow_get", map[string]any{"id": "small"})
			if got["firstStep"].(map[string]any)["id"] != "only" || got["totalSteps"] != 2.0 {
				t.Errorf("workflow_get = %v", got)
			}
			meta, _ := callRaw(t, cs, "workflow_get", map[string]any{"id": "small", "mode": "metadata"})
			if _, ok := meta["firstStep"]; ok {
				t.Errorf("metadata shows the first step: %v", meta)
			}
			var completed []string
			var context any = map[string]any{}
			for len(completed) < 10 {
				res, isError := callRaw(t, cs, "workflow_next", map[string]any{"workflowId": "small", "completedSteps": completed, "context": context})
				if isError {
					t.Fatalf("after %v: %v", completed, res)
				}
				context = res["context"]
				if res["isComplete"] == true {
					break
				}
				completed = append(completed, res["step"].(map[string]any)["id"].(string))
			}
			if d := cmp.Diff([]string{"only", "inner", "inner"}, completed); d != "" {
				t.Errorf("walk (-want +got):\n%s", d)
			}
		})
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFile(t, dir, "small.json", small)
	writeFile(t, dir, "bare.json", `{"id":"bare","name":"B","description":"d","version":"1.0.0","steps":[{"id":"only","title":"Only","prompt":"Do it."}]}`)
	cs := connectToDir(t, dir, "2026-07-28", nil)
	tests := []struct {
		name   string
		args   map[string]any
		valid  bool
		issues []any
	}{
		{"good", map[string]any{"stepId": "only", "output": "DONE"}, true, []any{}},
		{"bad", map[string]any{"stepId": "only", "output": "nope"}, false, []any{"say DONE"}},
		{"blank", map[string]any{"stepId": "only", "output": "  "}, false, nil},
		{"empty, without criteria", map[string]any{"workflowId": "bare", "stepId": "only", "output": ""}, false, []any{"Output is empty or invalid."}},
		{"a step in a loop", map[string]any{"stepId": "inner", "output": "no", "context": map[string]any{"strict": true}}, false, []any{"too short"}},
		{"a rule whose condition is false", map[string]any{"stepId": "inner", "output": "no"}, true, []any{}},
	}
	for _, tt := range tests {
		if tt.args["workflowId"] == nil {
			tt.args["workflowId"] = "small"
		}
		res, isError := callRaw(t, cs, "workflow_validate", tt.args)
		if isError || res["valid"] != tt.valid || (tt.issues != nil && !cmp.Equal(tt.issues, res["issues"])) {
			t.Errorf("%s: %v, want valid %v with %v", tt.name, res, tt.valid, tt.issues)
		}
	}
}

func TestValidateJSON(t *testing.T) {
	t.Parallel()
	cs := connectToDir(t, t.TempDir(), "2025-11-25", nil)
	tests := []struct {
		name, text, issue string
		valid             bool
	}{
		{"good", small, "", true},
		{"yaml", "id: small\nname: S\ndescription: d\nversion: 1.0.0\nsteps:\n  - {id: one, title: One, prompt: Do.}\n", "", true},
		{"case 36: no JSON", `{bad`, "Invalid JSON syntax: ", false},
		{"a pattern that does not compile", strings.Replace(small, `"type":"contains","value":"DONE"`, `"type":"regex","pattern":"(open"`, 1), "pattern", false},
		{"missing fields", `{"id":"x-1"}`, "Missing required field 'name' at root level. This field is mandatory and must be provided.", false},
		{"an unknown key", strings.Replace(small, `"name"`, `"extra":1,"name"`, 1), "Unexpected property 'extra' found at root level.", false},
		{"empty", " ", "", false},
		{"zero bytes of meaning", "\x00", "", false},
	}
	for _, tt := range tests {
		res, isError := callRaw(t, cs, "workflow_validate_json", map[string]any{"workflowJson": tt.text})
		if isError || res["valid"] != tt.valid {
			t.Errorf("%s: %v", tt.name, res)
			continue
		}
		if !tt.valid && (len(res["issues"].([]any)) == 0 || len(res["suggestions"].([]any)) == 0) {
			t.Errorf("%s: no issue or no suggestion: %v", tt.name, res)
		}
		if text, _ := json.Marshal(res["issues"]); !strings.Contains(string(text), tt.issue) {
			t.Errorf("%s: issues %s lack %q", tt.name, text, tt.issue)
		}
	}
}

// TestBadCalls checks that a bad call returns a short tool error with the field and the
// reason, and that workflow_list names the files that did not load.
func TestBadCalls(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFile(t, dir, "small.json", small)
	writeFile(t, dir, "broken-one.json", `{"id":"broken-one","name":"B"}`)
	writeFile(t, dir, "zero.json", "")
	cs := connectToDir(t, dir, "2025-11-25", nil)
	deep := map[string]any{}
	for range 100 {
		deep = map[string]any{"d": deep}
	}
	tests := []struct {
		name, tool string
		args       any
		field      string
		message    string
	}{
		{"no id", "workflow_get", map[string]any{}, "id", "id parameter is required"},
		{"null id", "workflow_get", map[string]any{"id": nil}, "id", "id parameter is required"},
		{"an id that is not a string", "workflow_get", map[string]any{"id": 7}, "id", "must be a string"},
		{"an unknown mode", "workflow_get", map[string]any{"id": "small", "mode": "all"}, "mode", "metadata, preview"},
		{"an unknown id", "workflow_next", map[string]any{"workflowId": "nope"}, "workflowId", "Workflow with id 'nope' not found"},
		{"a path as id", "workflow_get", map[string]any{"id": "../../etc/passwd"}, "id", "not found"},
		{"a broken definition", "workflow_get", map[string]any{"id": "broken-one"}, "id", "did not load"},
		{"a misspelt parameter", "workflow_next", map[string]any{"workflowId": "small", "completed_steps": []string{}}, "completed_steps", "no parameter"},
		{"completedSteps as text", "workflow_next", map[string]any{"workflowId": "small", "completedSteps": "only"}, "completedSteps", "list of strings"},
		{"a number in completedSteps", "workflow_next", map[string]any{"workflowId": "small", "completedSteps": []any{1}}, "completedSteps", "completedSteps[0]"},
		{"context as a list", "workflow_next", map[string]any{"workflowId": "small", "context": []any{}}, "context", "must be an object"},
		{"context too deep", "workflow_next", map[string]any{"workflowId": "small", "context": deep}, "context", "deeper than 80"},
		{"context too large", "workflow_next", map[string]any{"workflowId": "small", "context": map[string]any{"x": strings.Repeat("x", 140_000)}}, "", "Context size (273KB) exceeds maximum allowed size (256KB)"},
		{"an unknown step", "workflow_validate", map[string]any{"workflowId": "small", "stepId": "zzz", "output": "x"}, "stepId", "Step with id 'zzz' not found in workflow"},
		{"a loop", "workflow_validate", map[string]any{"workflowId": "small", "stepId": "each", "output": "x"}, "stepId", "'each' is a loop and has no output"},
		{"no output", "workflow_validate", map[string]any{"workflowId": "small", "stepId": "only"}, "output", "output parameter is required"},
		{"a definition that is too long", "workflow_validate_json", map[string]any{"workflowJson": strings.Repeat("x", 1<<20+1)}, "workflowJson", "at most 1048576"},
	}
	for _, tt := range tests {
		res, isError := callRaw(t, cs, tt.tool, tt.args)
		field, _ := res["field"].(string)
		message, _ := res["error"].(string)
		if !isError || field != tt.field || !strings.Contains(message, tt.message) || res["code"] == "internal" {
			t.Errorf("%s: error %v: %v", tt.name, isError, res)
		}
		if text, _ := json.Marshal(res); len(text) > 4096 {
			t.Errorf("%s: the error has %d bytes", tt.name, len(text))
		}
	}
	syntax, _ := callRaw(t, cs, "workflow_validate_json", map[string]any{"workflowJson": "{bad"})
	if got := len(syntax["suggestions"].([]any)); got != 4 {
		t.Errorf("case 36: %d suggestions, want 4: %v", got, syntax)
	}
	list, _ := callRaw(t, cs, "workflow_list", nil)
	if text, _ := json.Marshal(list["diagnostics"]); !strings.Contains(string(text), "broken-one.json") || !strings.Contains(string(text), "zero.json") {
		t.Errorf("workflow_list does not show the file that did not load: %s", text)
	}
}

// The suggested call keeps the caller's valid arguments, and works.
func TestSuggestedCallsWork(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFile(t, dir, "small.json", small)
	cs := connectToDir(t, dir, "2026-07-28", nil)
	tests := []struct {
		name, tool string
		args       map[string]any
		next       string
		fix        string
	}{
		{
			"a misspelt parameter", "workflow_next",
			map[string]any{"workflowId": "small", "completed_steps": []string{"only"}},
			`{"arguments":{"completedSteps":["only"],"workflowId":"small"},"tool":"workflow_next"}`, `did you mean "completedSteps"?`,
		},
		{
			"text in place of an object", "workflow_next",
			map[string]any{"workflowId": "small", "completedSteps": []string{"only"}, "context": `{"a":1}`},
			`{"arguments":{"completedSteps":["only"],"context":{"a":1},"workflowId":"small"},"tool":"workflow_next"}`, "send a JSON value, not a string that contains JSON",
		},
		{
			"a misspelt step", "workflow_validate",
			map[string]any{"workflowId": "small", "stepId": "iner", "output": "x"},
			`{"arguments":{"output":"the output of the step","stepId":"inner","workflowId":"small"},"tool":"workflow_validate"}`, "",
		},
		{
			"a loop", "workflow_validate",
			map[string]any{"workflowId": "small", "stepId": "each", "output": "x"},
			`{"arguments":{"output":"the output of the step","stepId":"inner","workflowId":"small"},"tool":"workflow_validate"}`, "check the output of a step in the loop: inner",
		},
		{
			"an output that is not a string", "workflow_validate",
			map[string]any{"workflowId": "coding-task", "output": 1},
			`{"arguments":{"output":"1","stepId":"frame-task","workflowId":"coding-task"},"tool":"workflow_validate"}`, "",
		},
	}
	for _, tt := range tests {
		res, isError := callRaw(t, cs, tt.tool, tt.args)
		text, _ := json.Marshal(res["next"])
		fix, _ := res["fix"].(string)
		if !isError || string(text) != tt.next || fix != tt.fix {
			t.Errorf("%s: next %s and fix %q, want %s and %q", tt.name, text, fix, tt.next, tt.fix)
			continue
		}
		next := res["next"].(map[string]any)
		if again, isError := callRaw(t, cs, next["tool"].(string), next["arguments"]); isError {
			t.Errorf("%s: the suggested call fails: %v", tt.name, again)
		}
	}
}

// TestManyDiagnosticsStayShort checks that a definition with thousands of errors gets a
// short answer, which states that more diagnostics exist.
func TestManyDiagnosticsStayShort(t *testing.T) {
	t.Parallel()
	cs := connectToDir(t, t.TempDir(), "2026-07-28", nil)
	var steps []string
	for i := range 3000 {
		steps = append(steps, fmt.Sprintf(`{"id":"S %d","titel":"%s","prompt":""}`, i, strings.Repeat("x", 40)))
	}
	text := `{"id":"many","name":"Many","description":"d","version":"1.0.0","steps":[` + strings.Join(steps, ",") + `]}`
	res, isError := callRaw(t, cs, "workflow_validate_json", map[string]any{"workflowJson": text})
	size, _ := json.Marshal(res)
	if isError || res["valid"] != false || len(size) > 64<<10 {
		t.Errorf("error %v, valid %v, %d bytes", isError, res["valid"], len(size))
	}
	issues := res["issues"].([]any)
	if last := issues[len(issues)-1].(string); !strings.Contains(last, "more diagnostics are not shown") {
		t.Errorf("the last issue does not state that there are more: %q", last)
	}
}

// A number in the context that a float cannot hold is returned unchanged.
func TestLargeNumbersAreExact(t *testing.T) {
	t.Parallel()
	cs := connectToDir(t, t.TempDir(), "2026-07-28", nil)
	res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "workflow_next", Arguments: map[string]any{
		"workflowId": "coding-task", "context": map[string]any{"ticket": json.Number("12345678901234567")},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if text := res.Content[0].(*mcp.TextContent).Text; !strings.Contains(text, `"ticket":12345678901234567`) {
		t.Errorf("the number changed: %s", text[max(0, len(text)-200):])
	}
}

// panickingCatalog is a catalog that panics while broken is set.
type panickingCatalog struct {
	mcpserver.Catalog
	broken atomic.Bool
}

func (p *panickingCatalog) Snapshot() *catalog.Snapshot {
	if p.broken.Load() {
		panic("the catalog is gone")
	}
	return p.Catalog.Snapshot()
}

// A panic in a call returns an error for that call and is logged; the server continues.
func TestPanicEndsOnlyOneCall(t *testing.T) {
	t.Parallel()
	cat := catalog.New(catalog.Standard(catalog.Layout{Bundled: workflows.FS()}), catalog.Options{})
	if err := cat.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cat.Close)
	var log bytes.Buffer
	broken := &panickingCatalog{Catalog: cat}
	server, err := mcpserver.New(mcpserver.Options{Catalog: broken, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	cs := connectClient(t, server, "memory", "ann", "2025-11-25", nil)
	broken.broken.Store(true)
	if _, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "workflow_list"}); err == nil || strings.Contains(err.Error(), "gone") {
		t.Errorf("the call returned %v; want an error without the server's details", err)
	}
	broken.broken.Store(false)
	if _, isError := callRaw(t, cs, "workflow_list", nil); isError {
		t.Error("the server stopped")
	}
	if !strings.Contains(log.String(), "the catalog is gone") {
		t.Errorf("the log lacks the panic: %s", log.String())
	}
}

// TestToolsListIsSmall checks that tools/list has at most 7000 bytes for the toolset
// "steps", and that caches must not share it between users.
func TestToolsListIsSmall(t *testing.T) {
	t.Parallel()
	cs := connectToDir(t, t.TempDir(), "2026-07-28", nil)
	res, err := cs.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(res.Tools)
	if err != nil {
		t.Fatal(err)
	}
	if len(text) > 7000 {
		t.Errorf("tools/list has %d bytes for the steps toolset", len(text))
	}
	if res.CacheScope != "private" {
		t.Errorf("cacheScope = %q: a shared cache could show one user's list to another", res.CacheScope)
	}
}

func TestResourcesAndPrompts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFile(t, dir, "small.json", small)
	cs := connectToDir(t, dir, "2025-11-25", nil)
	read, err := cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "guideway://workflows/small"})
	if err != nil {
		t.Fatal(err)
	}
	var def map[string]any
	if err := json.Unmarshal([]byte(read.Contents[0].Text), &def); err != nil || def["id"] != "small" {
		t.Errorf("resource = %v, %v", def, err)
	}
	if _, err := cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "guideway://workflows/nope"}); err == nil {
		t.Error("an unknown workflow could be read")
	}
	if _, err := cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "guideway://schemas/steps"}); err != nil {
		t.Error(err)
	}
	prompt, err := cs.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "small", Arguments: map[string]string{"goal": "ship it"}})
	if err != nil {
		t.Fatal(err)
	}
	text := prompt.Messages[0].Content.(*mcp.TextContent).Text
	if !strings.Contains(text, "ship it") || !strings.Contains(text, `workflow_next {"workflowId": "small"`) {
		t.Errorf("prompt = %s", text)
	}
	done, err := cs.Complete(t.Context(), &mcp.CompleteParams{
		Ref:      &mcp.CompleteReference{Type: "ref/resource", URI: "guideway://workflows/{id}"},
		Argument: mcp.CompleteParamsArgument{Name: "id", Value: "sma"},
	})
	if err != nil || !slices.Equal(done.Completion.Values, []string{"small"}) {
		t.Errorf("completion = %+v, %v", done, err)
	}
}

// A new definition on disk is announced to clients and can be used.
func TestChangesOnDiskReachClients(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	prompts, resources := make(chan struct{}, 100), make(chan struct{}, 100)
	cs := connectToDir(t, dir, "2025-11-25", &mcp.ClientOptions{
		PromptListChangedHandler:   func(context.Context, *mcp.PromptListChangedRequest) { prompts <- struct{}{} },
		ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) { resources <- struct{}{} },
	})
	writeFile(t, dir, "small.json", small)
	deadline := time.After(10 * time.Second)
	for _, told := range []chan struct{}{prompts, resources} {
		select {
		case <-told:
		case <-deadline:
			t.Fatal("no list-changed notification arrived")
		}
	}
	if res, isError := callRaw(t, cs, "workflow_get", map[string]any{"id": "small"}); isError {
		t.Errorf("workflow_get = %v", res)
	}
}
