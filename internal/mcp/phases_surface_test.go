package mcp_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway/internal/catalog"
	mcpserver "github.com/guideway-dev/guideway/internal/mcp"
	"github.com/guideway-dev/guideway/workflows"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// workflow_next refuses a phase workflow; workflow_start accepts it.
func TestStepToolsKnowPhaseWorkflows(t *testing.T) {
	t.Parallel()
	r := newTestServer(t, func(o *mcpserver.Options) {
		o.Toolsets = append(mcpserver.DefaultToolsets(), mcpserver.ToolsetPhases)
	})
	cs := connectClient(t, r.server, "memory", "ann", "2025-11-25", nil)
	const id = "incident-response"
	list := callText(t, cs, "workflow_list", nil)
	dialects := map[any]any{}
	for _, w := range list.structure["workflows"].([]any) {
		dialects[memberAt(w, "id")] = memberAt(w, "dialect")
	}
	if dialects[id] != "phases" || dialects["coding-task"] != "steps" {
		t.Errorf("%v", dialects)
	}
	refused := callText(t, cs, "workflow_next", map[string]any{"workflowId": id})
	if !refused.isError || memberAt(refused.structure, "next/tool") != "workflow_start" {
		t.Fatalf("%v", refused.structure)
	}
	run := callTool(t, cs, "workflow_start", memberAt(refused.structure, "next/arguments").(map[string]any))
	got := callText(t, cs, "workflow_get", map[string]any{"id": id})
	if got.isError || got.structure["dialect"] != "phases" || got.structure["totalPhases"].(float64) < 4 {
		t.Errorf("%v", got.structure)
	}
	prompt, err := cs.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: id})
	if err != nil || !strings.Contains(prompt.Messages[0].Content.(*mcp.TextContent).Text, "workflow_start") {
		t.Errorf("%v %v", prompt, err)
	}

	// With a handle, the check uses the run's own position and variables.
	first := callText(t, cs, "validate_transition", map[string]any{"workflow_id": id, "from_phase": "2", "to_phase": "1", "handle": run["handle"]})
	if reason, _ := first.structure["reason"].(string); first.structure["valid"] != false || !strings.HasPrefix(reason, "The current phase is ") {
		t.Errorf("%v", first.structure)
	}
	open := callText(t, cs, "validate_transition", map[string]any{"workflow_id": id, "from_phase": "1", "to_phase": "2", "handle": run["handle"]})
	if open.structure["valid"] != true || open.structure["leads_to"] != "inform" || open.structure["first"] != "step measure-impact" {
		t.Errorf("%v", open.structure)
	}
	unknown := callText(t, cs, "validate_transition", map[string]any{"workflow_id": id, "from_phase": "1", "to_phase": "2", "handle": "h_0000000000000000000000"})
	if !unknown.isError {
		t.Errorf("%v", unknown.structure)
	}
}

// TestCorpusByPhaseTools checks transitions, the number of guides and the recognition of
// goals in the directory of the original server.
func TestCorpusByPhaseTools(t *testing.T) {
	t.Parallel()
	const corpus = "../../../shared/corpus/phases"
	if _, err := os.Stat(corpus); err != nil {
		t.Skip("the directory shared/corpus is missing")
	}
	cs := serveDir(t, corpus)
	for _, tt := range []struct {
		from, to, reason string
	}{
		{"phase-1-issue-verification", "phase-2-requirements-elicitation", ""},
		{"1", "3", ""},
		{"7", "5", ""},
		{"7", "6", ""},
		{"7", "8", ""},
		{"1", "11", "No valid transition"},
		{"11", "1", "No valid transition. Valid: none"},
	} {
		got := callText(t, cs, "validate_transition", map[string]any{"workflow_id": "work-package", "from_phase": tt.from, "to_phase": tt.to})
		reason, _ := got.structure["reason"].(string)
		if got.structure["valid"] != (tt.reason == "") || !strings.HasPrefix(reason, tt.reason) {
			t.Errorf("%s to %s: %v", tt.from, tt.to, got.structure)
		}
	}
	guides := callText(t, cs, "list_guides", map[string]any{"workflow_id": "work-package"})
	if n := len(memberAt(guides.structure, "items").([]any)); n != 20 {
		t.Errorf("%d guides", n)
	}
	for _, goal := range []string{"Let's start the work-package workflow", "Where were we?", "We're done with the workflow"} {
		if got := callText(t, cs, "match_activity", map[string]any{"goal": goal}); got.structure["status"] != "matched" {
			t.Errorf("%q: %v", goal, got.structure)
		}
	}
}

func enableAllToolsets(o *mcpserver.Options) { o.Toolsets = mcpserver.Toolsets() }

// The bundled skills and activities only name existing tools and parameters, so that the
// calls in them work.
func TestBundledSkillsMatchTools(t *testing.T) {
	t.Parallel()
	r := newTestServer(t, enableAllToolsets)
	cs := connectClient(t, r.server, "memory", "ann", "2025-11-25", nil)
	params := map[string][]string{}
	for _, tool := range listTools(t, cs) {
		properties, _ := tool.InputSchema.(map[string]any)["properties"].(map[string]any)
		params[tool.Name] = slices.Sorted(maps.Keys(properties))
	}
	c := catalog.New(catalog.Standard(catalog.Layout{Bundled: workflows.FS()}), catalog.Options{})
	if err := c.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	lib := c.Snapshot().Library()
	name := regexp.MustCompile(`\b(?:get|list|match|validate|health|workflow|workrail)_[a-z_]+\b`)
	// These words in skills and activities look like tool names, but are not.
	other := []string{"workflow_id", "workflow_not_found"}
	documents := append(lib.Activities(), lib.Skills("")...)
	if len(documents) < 9 {
		t.Fatalf("%d documents", len(documents))
	}
	for _, e := range documents {
		for _, word := range name.FindAllString(e.Canonical, -1) {
			if _, ok := params[word]; !ok && !slices.Contains(other, word) {
				t.Errorf("%s mentions %s, which is not a tool", e.ID, word)
			}
		}
	}
	taught := map[string]bool{}
	for _, e := range lib.Skills("") {
		skill := callText(t, cs, "get_skill", map[string]any{"skill_id": e.ID})
		about, _ := skill.structure["tools"].(map[string]any)
		for tool := range about {
			taught[tool] = true
			said, _ := memberAt(about, tool+"/params").(string)
			list := strings.Split(said, ", ")
			if said == "none" {
				list = []string{}
			}
			if slices.Contains(params[tool], "page") {
				list = append(list, "page") // answers with pages name this parameter, so skills do not
			}
			slices.Sort(list)
			if diff := cmp.Diff(params[tool], list); diff != "" && (len(list) > 0 || len(params[tool]) > 0) {
				t.Errorf("%s on %s: parameters (-tool +skill)\n%s", e.ID, tool, diff)
			}
		}
	}
	only := newTestServer(t, func(o *mcpserver.Options) { o.Toolsets = []string{mcpserver.ToolsetPhases, mcpserver.ToolsetRuns} })
	for _, tool := range toolNames(t, connectClient(t, only.server, "memory", "ann", "2025-11-25", nil)) {
		if !taught[tool] {
			t.Errorf("no skill mentions %s", tool)
		}
	}
}

// TestGuidesAreResources checks that a client without the toolset "phases" can read guides
// and templates as resources, and complete the URIs of guides.
func TestGuidesAreResources(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	cs := connectClient(t, r.server, "memory", "ann", "2025-11-25", nil)
	read := func(uri string) string {
		res, err := cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
		if err != nil {
			return ""
		}
		return res.Contents[0].MIMEType + " " + res.Contents[0].Text
	}
	for uri, want := range map[string]string{
		"guideway://guides/incident-response/00":             "text/markdown # How bad is it",
		"guideway://guides/incident-response/00-severity":    "text/markdown # How bad is it",
		"guideway://templates/incident-response/1":           "text/markdown **[Service]",
		"guideway://guides/incident-response/99":             "",
		"guideway://guides/incident-response/../meta/rules":  "",
		"guideway://guides/../incident-response/00-severity": "",
		"guideway://guides/incident-response":                "",
	} {
		if got := read(uri); (want == "") != (got == "") || !strings.HasPrefix(got, want) {
			t.Errorf("%s: %.60q", uri, got)
		}
	}
	complete := func(argument, value string, given map[string]string) []string {
		res, err := cs.Complete(t.Context(), &mcp.CompleteParams{
			Ref:      &mcp.CompleteReference{Type: "ref/resource", URI: "guideway://guides/{workflow}/{index}"},
			Argument: mcp.CompleteParamsArgument{Name: argument, Value: value}, Context: &mcp.CompleteContext{Arguments: given},
		})
		if err != nil {
			t.Fatal(err)
		}
		return res.Completion.Values
	}
	if diff := cmp.Diff([]string{"incident-response"}, complete("workflow", "inc", nil)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"00", "01", "02", "03"}, complete("index", "", map[string]string{"workflow": "incident-response"})); diff != "" {
		t.Error(diff)
	}
}
