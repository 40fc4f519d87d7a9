package mcp_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	mcpserver "github.com/guideway-dev/guideway/internal/mcp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// textClients are names of clients that show their models the text of an answer.
func textClients() []string {
	return []string{
		"claude-code", "codex-mcp-client", "copilot-cli", "gemini-cli-mcp-client", "qwen-cli-mcp-client-guideway", "opencode",
		"@cline/core", "Cline", "continue-cli-client", "continue-client", "Visual Studio Code", "Visual Studio Code - Insiders",
	}
}

// ignoresInstructions reports whether the model of a client does not see the instructions.
func ignoresInstructions(name string) bool {
	return name == "copilot-cli" || name == "@cline/core" || strings.HasPrefix(name, "continue-")
}

func callResult(t *testing.T, cs *mcp.ClientSession, tool string, args map[string]any) *mcp.CallToolResult {
	t.Helper()
	res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	return res
}

// textOf returns the only text of a result.
func textOf(t *testing.T, res *mcp.CallToolResult) string {
	t.Helper()
	if len(res.Content) != 1 {
		t.Fatalf("the result has %d texts: %v", len(res.Content), res.Content)
	}
	return res.Content[0].(*mcp.TextContent).Text
}

// The form of answers is the configured one, or the one that fits the client, in each
// protocol version and over each transport. A tool has an output schema if and only if its
// answers have structured content. An error has a text and nothing else.
func TestFormsOfAnswers(t *testing.T) {
	t.Parallel()
	type form struct{ text, structured bool }
	both, text, structured := form{true, true}, form{text: true}, form{structured: true}
	type client struct {
		answers, name string
		want          form
	}
	clients := []client{
		{"", "test", both},
		{"", "", both},
		{"auto", "claude", both},
		{"auto", "claude-code-fork", both},
		{"auto", "cursor-vscode", both},
		{"text", "test", text},
		{"structured", "claude-code", structured},
		{"both", "claude-code", both},
	}
	for _, name := range textClients() {
		clients = append(clients, client{"auto", name, text})
	}
	servers := map[string]*testServer{}
	for _, answers := range []string{"", "auto", "text", "structured", "both"} {
		servers[answers] = newTestServer(t, func(o *mcpserver.Options) { o.Answers = answers })
	}
	names := transportNames()
	for i, c := range clients {
		for _, version := range []string{"2025-11-25", "2026-07-28"} {
			transport := names[i%len(names)]
			t.Run(fmt.Sprintf("%s/%s/%s/%s", c.answers, c.name, version, transport), func(t *testing.T) {
				cs := connectNamedClient(t, servers[c.answers].server, transport, "ann", c.name, version, nil)
				for _, tool := range listTools(t, cs) {
					if (tool.OutputSchema != nil) != c.want.structured && c.want != structured {
						t.Errorf("%s: the output schema is %v", tool.Name, tool.OutputSchema)
					}
				}
				for tool, args := range map[string]map[string]any{"workflow_list": nil, "workflow_start": {"workflowId": "guarded"}, "workflow_get": {"id": "guarded"}} {
					res := callResult(t, cs, tool, args)
					if got := (form{len(res.Content) == 1, res.StructuredContent != nil}); got != c.want {
						t.Errorf("%s: the answer has %+v, want %+v", tool, got, c.want)
					}
				}
				refused := callResult(t, cs, "workflow_continue", map[string]any{"handle": "h_0123456789abcdefghjkm", "output": "x"})
				if isJSON := json.Valid([]byte(textOf(t, refused))); !refused.IsError || refused.StructuredContent != nil || isJSON != c.want.structured {
					t.Errorf("the refusal is %s, %v", textOf(t, refused), refused.StructuredContent)
				}
				bad := callResult(t, cs, "workflow_get", map[string]any{"name": "guarded"})
				if !bad.IsError || bad.StructuredContent != nil || !json.Valid([]byte(textOf(t, bad))) {
					t.Errorf("the error is %s, %v", textOf(t, bad), bad.StructuredContent)
				}
			})
		}
	}
}

// TestUnknownFormOfAnswers checks that an unknown form is refused with the allowed ones.
func TestUnknownFormOfAnswers(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	_, err := mcpserver.New(mcpserver.Options{Catalog: r.catalog, Answers: "words"})
	if err == nil || !strings.Contains(err.Error(), `"words"`) {
		t.Errorf("the error is %v", err)
	}
}

// demo is the workflow of the measured run: a step with a criterion, a step, and a gate.
const demo = `{"id":"demo","name":"Demo","description":"A small change","version":"1.0.0","steps":[
	{"id":"plan","title":"Plan the change","prompt":"Read the code and write down what you will change, and why.",
		"validationCriteria":[{"type":"contains","value":"Plan:","message":"Begin with Plan:."}]},
	{"id":"change","title":"Make the change","prompt":"Make the change and run the tests.","requireConfirmation":true}]}`

// The text of start, refusal, step, gate and end of a run has at most 1,300 bytes for each
// client that shows text, also if the start is the first call, and still has the handle, the
// call and the reason.
func TestRunIsSmall(t *testing.T) {
	t.Parallel()
	handle := regexp.MustCompile(`h_[0-9a-z]{21}`)
	r := newTestServer(t)
	writeFile(t, r.dir, "demo.json", demo)
	if err := r.catalog.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, name := range textClients() {
		for _, version := range []string{"2025-11-25", "2026-07-28"} {
			cs := connectNamedClient(t, r.server, "memory", "ann", name, version, nil)
			size, token := 0, ""
			for i, args := range []map[string]any{
				{"workflowId": "demo", "goal": "add retries"},
				{"output": "done"},
				{"output": "Plan: retry three times.", "context": map[string]any{"retries": 3}},
				{"output": "All tests pass."},
				{"answer": map[string]any{"optionId": "confirm"}},
			} {
				tool := "workflow_start"
				if i > 0 {
					tool, args["handle"] = "workflow_continue", token
				}
				res := callResult(t, cs, tool, args)
				text := textOf(t, res)
				size += len(text)
				token = handle.FindString(text)
				wanted := [][]string{
					{"step plan: Plan the change", "Begin with Plan:.", "Read the code", "Next: workflow_continue", "- output:"},
					{"refused (criteria-failed)", "- Begin with Plan:.", "Fix: ", "Next: workflow_continue", "- output:", "workflow_fork", "workflow_abort"},
					{"step change: ", "Next: workflow_continue", "- output:"},
					{"gate change: ", "- confirm: ", "- revise: ", "ask the user", "Next: workflow_continue", "- answer.optionId:"},
					{"end: the run is completed"},
				}[i]
				for _, words := range append(wanted, token) {
					if words == "" || !strings.Contains(text, words) {
						t.Errorf("%s: the answer lacks %q:\n%s", name, words, text)
					}
				}
				if res.IsError != (i == 1) {
					t.Fatalf("%s: call %d: %s", name, i, text)
				}
			}
			if size > 1300 {
				t.Errorf("%s, %s: %d bytes", name, version, size)
			}
		}
	}
}

// readPages returns all pages of an answer, joined, with the calls that the pages name.
func readPages(t *testing.T, cs *mcp.ClientSession, tool string, args map[string]any) (joined string, pages int) {
	t.Helper()
	for {
		res := callResult(t, cs, tool, args)
		text := res.Content[0].(*mcp.TextContent).Text
		pages++
		if len(text) > 10_000 || res.IsError {
			t.Fatalf("%s %v: %d bytes: %s", tool, args, len(text), text)
		}
		page, marker, paged := strings.Cut(text, fmt.Sprintf("\n(page %d of ", pages))
		joined += page
		_, next, more := strings.Cut(marker, "; for the next page call ")
		if !more {
			if paged && !strings.HasPrefix(marker, fmt.Sprintf("%d)", pages)) {
				t.Errorf("the last page ends with %q", marker)
			}
			return joined, pages
		}
		tool, next, _ = strings.Cut(strings.TrimSuffix(next, ")"), " ")
		if args = nil; json.Unmarshal([]byte(next), &args) != nil {
			t.Fatalf("the next call is %q", marker)
		}
	}
}

// Answers over 10 kB come in pages, which together have everything. What a program reads is
// complete.
func TestPages(t *testing.T) {
	t.Parallel()
	var prompt strings.Builder
	for i := range 200 {
		fmt.Fprintf(&prompt, "Look at file %d – its tests, too. ", i)
	}
	r := newTestServer(t)
	steps := fmt.Sprintf(`[{"id":"first","title":"First","prompt":%q},{"id":"again","title":"Again","prompt":%q,"guidance":[%q]}]`,
		"Begin.", prompt.String(), prompt.String())
	writeFile(t, r.dir, "long.json", `{"id":"long","name":"Long","description":"Much to read","version":"1.0.0","steps":`+steps+`}`)
	if err := r.catalog.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	cs := connectNamedClient(t, r.server, "memory", "ann", "codex-mcp-client", "2025-11-25", nil)
	program := connectClient(t, r.server, "memory", "ann", "2025-11-25", nil)

	schema, pages := readPages(t, cs, "workflow_get_schema", nil)
	last := pages
	var joined any
	if err := json.Unmarshal([]byte(schema), &joined); pages < 3 || err != nil {
		t.Errorf("the schema has %d pages: %v: %s", pages, err, schema)
	}
	if d := cmp.Diff(callResult(t, program, "workflow_get_schema", nil).StructuredContent, joined); d != "" {
		t.Errorf("the pages of the schema (-want +got):\n%s", d)
	}
	started := callTool(t, program, "workflow_start", map[string]any{"workflowId": "long"})
	args := map[string]any{"handle": started["handle"], "output": "done"}
	text, pages := readPages(t, cs, "workflow_continue", args)
	if lines := strings.ReplaceAll(text, "\n", ""); pages != 2 || strings.Count(lines, strings.TrimSpace(prompt.String())) != 2 ||
		!strings.Contains(text, "Next: workflow_continue") {
		t.Errorf("the step has %d pages: %s", pages, text)
	}
	whole := callTool(t, program, "workflow_continue", args)
	if said := textMember(whole["position"].(map[string]any), "prompt"); strings.Count(said, prompt.String()) != 2 {
		t.Errorf("the structured content is incomplete: %s", said)
	}
	for _, page := range []int{0, -1, last + 1} {
		if res := callResult(t, program, "workflow_get_schema", map[string]any{"page": page}); !res.IsError || !strings.Contains(textOf(t, res), fmt.Sprintf("from 1 to %d", last)) {
			t.Errorf("page %d: %s", page, textOf(t, res))
		}
	}
}

// The pages of a loaded checkpoint have its whole context, and fork the run only once.
func TestPagesOfCheckpoint(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	cs := connectNamedClient(t, r.server, "memory", "ann", "opencode", "2025-11-25", nil)
	program := connectClient(t, r.server, "memory", "ann", "2025-11-25", nil)
	started := callTool(t, program, "workflow_start", map[string]any{"workflowId": "guarded", "context": map[string]any{"log": longText("log")}})
	saved := callTool(t, program, "workflow_checkpoint_save", map[string]any{"handle": started["handle"]})
	callTool(t, program, "workflow_continue", map[string]any{"handle": started["handle"], "output": "PLAN"})
	count := func() int {
		list, _ := callTool(t, program, "workflow_resume", nil)["candidates"].([]any)
		return len(list)
	}
	before := count()
	text, pages := readPages(t, cs, "workflow_checkpoint_load", map[string]any{"checkpointId": saved["checkpointId"]})
	if pages < 2 || !strings.Contains(strings.ReplaceAll(text, "\n", ""), longText("log")) || strings.Count(text, `"handle":"h_`) < 1 {
		t.Errorf("%d pages: %s", pages, text)
	}
	if forks := count() - before; forks != 1 {
		t.Errorf("loading made %d forks, want 1", forks)
	}
}

// A model that does not see the instructions gets them with the first answer of a connection
// that is not about a run, once. Without a connection it gets them with the list of
// workflows.
func TestIntroduction(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	const words = "Only the user may answer gates"
	for _, name := range []string{"copilot-cli", "continue-cli-client", "continue-client", "claude-code", "opencode", "test"} {
		for _, version := range []string{"2025-11-25", "2026-07-28"} {
			for _, transport := range []string{"memory", "http"} {
				t.Run(name+"/"+version+"/"+transport, func(t *testing.T) {
					cs := connectNamedClient(t, r.server, transport, "ann", name, version, nil)
					var got []bool
					for _, tool := range []string{"workflow_resume", "workflow_list", "workflow_get_schema"} {
						got = append(got, strings.Contains(textOf(t, callResult(t, cs, tool, nil)), words))
					}
					want := fmt.Sprint([]bool{false, ignoresInstructions(name), false})
					if fmt.Sprint(got) != want {
						t.Errorf("the answers with the introduction are %v, want %s", got, want)
					}
				})
			}
		}
	}
}

// One search for a workflow run finds all tools of a run, and the instructions name the
// tools to load together.
func TestSearchFindsRunTools(t *testing.T) {
	t.Parallel()
	cs := connectClient(t, newTestServer(t).server, "memory", "ann", "2025-11-25", nil)
	said := cs.InitializeResult().Instructions
	for _, name := range []string{"workflow_list", "workflow_start", "workflow_continue", "workflow_status", "workflow_resume"} {
		if !strings.Contains(said, name) {
			t.Errorf("the instructions do not name %s: %s", name, said)
		}
	}
	found := 0
	for _, tool := range listTools(t, cs) {
		switch tool.Name {
		case "workflow_start", "workflow_continue", "workflow_status", "workflow_resume", "workflow_fork", "workflow_abort":
			found++
			if !strings.Contains(tool.Title, "workflow run") || !strings.Contains(tool.Description, "workflow run") {
				t.Errorf("%s: %s: %s", tool.Name, tool.Title, tool.Description)
			}
		}
		if tool.Name == "workflow_start" && !strings.Contains(tool.Description, "Only the user may answer gates") {
			t.Errorf("the description of workflow_start is %q", tool.Description)
		}
	}
	if found != 6 {
		t.Errorf("%d tools of runs", found)
	}
}

// Claude Code passes only the first word of a goal to a prompt. The prompt then asks the
// model for the whole goal, and does not suggest a call with the first word.
func TestPromptWithFirstWordOfGoal(t *testing.T) {
	t.Parallel()
	cs := connectNamedClient(t, newTestServer(t).server, "memory", "ann", "claude-code", "2025-11-25", nil)
	for goal, want := range map[string]string{
		"add":                      `My goal: all that I typed after the command, which begins with add`,
		`"add`:                     `which begins with "add`,
		"add retries to the thing": `"goal":"add retries to the thing"`,
	} {
		prompt, err := cs.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "guarded", Arguments: map[string]string{"goal": goal}})
		if err != nil {
			t.Fatal(err)
		}
		said := prompt.Messages[0].Content.(*mcp.TextContent).Text
		if !strings.Contains(said, want) || !strings.Contains(goal, " ") && strings.Contains(said, `"goal"`) {
			t.Errorf("%s: the prompt is %s", goal, said)
		}
	}
}
