package mcp_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway/internal/catalog"
	mcpserver "github.com/guideway-dev/guideway/internal/mcp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// manyTransitions is a workflow with a transition of each kind, for validate_transition.
const manyTransitions = `{"id":"ways","version":"1.0.0","title":"Ways","description":"All ways out of a phase","initialPhase":"a",
	"variables":[{"name":"x","type":"boolean"}],
	"phases":[
	{"id":"a","name":"A","steps":[{"id":"s1","name":"S"}],
	 "transitions":[{"to":"b","condition":{"type":"simple","variable":"x","operator":"==","value":true}}],
	 "decisions":[{"id":"d1","name":"D","branches":[
		{"id":"one","label":"One","transitionTo":"c","condition":{"type":"simple","variable":"y","operator":">","value":1}},
		{"id":"two","label":"Two","transitionTo":"f","condition":{"type":"simple","variable":"y","operator":"<","value":0}}]}],
	 "checkpoints":[{"id":"c1","name":"C","message":"Go?","options":[{"id":"go","label":"Go","effect":{"transitionTo":"d"}},
		{"id":"skip","label":"Skip","effect":{"skipPhases":["e"]}}]}]},
	{"id":"b","name":"B"},{"id":"c","name":"C"},{"id":"d","name":"D","transitions":[{"to":"e"}]},{"id":"e","name":"E"},{"id":"f","name":"F"}]}`

// phaseServer writes the files to a directory, and connects a client to a server that
// offers the directory by the toolset "phases".
func phaseServer(t *testing.T, files map[string]string) *mcp.ClientSession {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		writeFile(t, dir, name, text)
	}
	return serveDir(t, dir)
}

func serveDir(t *testing.T, dir string) *mcp.ClientSession {
	t.Helper()
	cat := catalog.New(catalog.Standard(catalog.Layout{Custom: []string{dir}}), catalog.Options{})
	if err := cat.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cat.Close)
	server, err := mcpserver.New(mcpserver.Options{Catalog: cat, Version: "1.2.3", Toolsets: []string{mcpserver.ToolsetPhases}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return connectClient(t, server, "memory", "ann", "2025-11-25", nil)
}

// libraryFiles returns a small directory with the layout of the original server.
func libraryFiles() map[string]string {
	return map[string]string{
		"ways/ways.json": manyTransitions, "guarded.json": guarded,
		"ways/guides/00-start-here.md":    "# Start\n\n## One\nfirst\n\n## Two\nsecond\n",
		"ways/guides/01-plan.yaml":        "plan: yes\n",
		"ways/templates/03-report.md":     "# Report {x}\n",
		"ways/skills/01-review.json":      `{"id":"review","version":"1.0.0","capability":"Review"}`,
		"meta/rules.json":                 `{"sections":[],"id":"r","title":"Rules"}`,
		"meta/skills/00-state.json":       `{"capability":"Keep state","id":"state","version":"1.0.0"}`,
		"meta/activities/01-begin.json":   activityText("begin", `"Start a workflow","Begin <now> & here"`, `,"mandatory_guide":{"workflow_id":"ways","index":"0"}`),
		"meta/activities/02-go-on.json":   activityText("go-on", `"Resume workflow","Where were we?"`, ""),
		"meta/activities/03-restart.json": activityText("restart", `"Again from the start","where were we?"`, ""),
	}
}

func activityText(id, phrases, more string) string {
	return fmt.Sprintf(`{"id":%q,"version":"1.0.0","problem":"The user wants %s.","recognition":[%s],"skills":{"primary":"state"},"outcome":["o"],"flow":["1. Look"]%s}`,
		id, id, phrases, more)
}

// textAndStructure is a tool's answer in both forms.
type textAndStructure struct {
	texts     []string
	structure map[string]any
	isError   bool
}

func callText(t *testing.T, cs *mcp.ClientSession, tool string, args map[string]any) textAndStructure {
	t.Helper()
	res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	structure, ok := res.StructuredContent.(map[string]any)
	if res.IsError {
		structure, ok = decodeError(t, res), true
	}
	if !ok {
		t.Fatalf("%s: the structured content is not an object: %v", tool, res.StructuredContent)
	}
	out := textAndStructure{structure: structure, isError: res.IsError}
	for _, c := range res.Content {
		out.texts = append(out.texts, c.(*mcp.TextContent).Text)
	}
	return out
}

// TestPhaseToolsMatchOriginal checks that the texts of the phase tools equal those of the
// original server, byte for byte: indented JSON, or an unchanged file.
func TestPhaseToolsMatchOriginal(t *testing.T) {
	t.Parallel()
	cs := phaseServer(t, libraryFiles())
	ways := map[string]any{"workflow_id": "ways"}
	tests := []struct {
		tool string
		args map[string]any
		want string
	}{
		{"list_workflows", nil, "[\n  {\n    \"id\": \"ways\",\n    \"title\": \"Ways\",\n    \"version\": \"1.0.0\",\n    \"description\": \"All ways out of a phase\"\n  }\n]"},
		{"get_phase", withMember(ways, "phase_id", "b"), "{\n  \"id\": \"b\",\n  \"name\": \"B\",\n  \"required\": true\n}"},
		{"get_phase", withMember(ways, "phase_id", "2"), "{\n  \"id\": \"b\",\n  \"name\": \"B\",\n  \"required\": true\n}"},
		{"list_guides", ways, "[\n  {\n    \"index\": \"00\",\n    \"name\": \"start-here\",\n    \"title\": \"Start Here\",\n    \"format\": \"markdown\"\n  }," +
			"\n  {\n    \"index\": \"01\",\n    \"name\": \"plan\",\n    \"title\": \"Plan\",\n    \"format\": \"yaml\"\n  }\n]"},
		{"get_guide", withMember(ways, "index", "1"), "plan: yes\n"},
		{"get_guide", withMember(ways, "index", "001"), "plan: yes\n"},
		{"get_guide", withMember(withMember(ways, "index", "00"), "section", "one"), "## One\nfirst\n"},
		{"list_templates", ways, "[\n  {\n    \"index\": \"03\",\n    \"name\": \"report\",\n    \"title\": \"Report\"\n  }\n]"},
		{"get_template", withMember(ways, "index", "3"), "# Report {x}\n"},
		{"list_templates", map[string]any{"workflow_id": "meta"}, "[]"},
		{"get_skill", map[string]any{"skill_id": "state"}, "{\n  \"id\": \"state\",\n  \"version\": \"1.0.0\",\n  \"capability\": \"Keep state\"\n}"},
		{"get_skill", withMember(ways, "skill_id", "review"), "{\n  \"id\": \"review\",\n  \"version\": \"1.0.0\",\n  \"capability\": \"Review\"\n}"},
		{"get_rules", nil, "{\n  \"id\": \"r\",\n  \"title\": \"Rules\",\n  \"sections\": []\n}"},
		{"list_skills", nil, "[\n  {\n    \"index\": \"00\",\n    \"id\": \"state\",\n    \"name\": \"State\",\n    \"path\": \"meta/skills/00-state.json\"\n  }," +
			"\n  {\n    \"index\": \"01\",\n    \"id\": \"review\",\n    \"name\": \"Review\",\n    \"path\": \"ways/skills/01-review.json\",\n    \"workflowId\": \"ways\"\n  }\n]"},
		{"validate_transition", withMember(withMember(ways, "from_phase", "b"), "to_phase", "c"), "{\n  \"valid\": false,\n  \"reason\": \"No valid transition. Valid: none\"\n}"},
	}
	for _, tt := range tests {
		got := callText(t, cs, tt.tool, tt.args)
		if diff := cmp.Diff([]string{tt.want}, got.texts); diff != "" || got.isError {
			t.Errorf("%s %v:\n%s", tt.tool, tt.args, diff)
		}
	}
}

func withMember(base map[string]any, name string, value any) map[string]any {
	out := map[string]any{name: value}
	for k, v := range base {
		out[k] = v
	}
	return out
}

// TestGetWorkflow checks that get_workflow returns the complete workflow with defaults, and
// its members in the order of the original server.
func TestGetWorkflow(t *testing.T) {
	t.Parallel()
	cs := phaseServer(t, libraryFiles())
	got := callText(t, cs, "get_workflow", map[string]any{"workflow_id": "ways"})
	var fromText, original map[string]any
	if err := json.Unmarshal([]byte(got.texts[0]), &fromText); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(fromText, got.structure); diff != "" {
		t.Error(diff)
	}
	if !strings.HasPrefix(got.texts[0], "{\n  \"id\": \"ways\",\n  \"version\"") || strings.Index(got.texts[0], `"variables"`) > strings.Index(got.texts[0], `"phases"`) {
		t.Errorf("the order of members is wrong: %.200s", got.texts[0])
	}
	if err := json.Unmarshal([]byte(manyTransitions), &original); err != nil {
		t.Fatal(err)
	}
	var lost func(path string, want, have any)
	lost = func(path string, want, have any) {
		switch want := want.(type) {
		case map[string]any:
			members, _ := have.(map[string]any)
			for name, v := range want {
				lost(path+"/"+name, v, members[name])
			}
		case []any:
			items, _ := have.([]any)
			if len(items) != len(want) {
				t.Errorf("%s: %v", path, have)
				return
			}
			for i, v := range want {
				lost(fmt.Sprintf("%s/%d", path, i), v, items[i])
			}
		default:
			if want != have {
				t.Errorf("%s: %v, want %v", path, have, want)
			}
		}
	}
	lost("", original, fromText)
	for path, want := range map[string]any{
		"variables/0/required": false, "phases/0/required": true, "phases/0/steps/0/required": true, "phases/0/transitions/0/isDefault": false,
		"phases/0/decisions/0/branches/0/isDefault": false, "phases/0/checkpoints/0/required": true, "phases/0/checkpoints/0/blocking": true,
	} {
		if got := memberAt(fromText, path); got != want {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
	checkpoint := callText(t, cs, "get_checkpoint", map[string]any{"workflow_id": "ways", "phase_id": "1", "checkpoint_id": "1"})
	if diff := cmp.Diff(memberAt(fromText, "phases/0/checkpoints/0"), any(checkpoint.structure)); diff != "" {
		t.Error(diff)
	}
}

// memberAt returns a member of decoded JSON by its path.
func memberAt(v any, path string) any {
	for _, part := range strings.Split(path, "/") {
		switch x := v.(type) {
		case map[string]any:
			v = x[part]
		case []any:
			var i int
			if _, err := fmt.Sscan(part, &i); err != nil || i >= len(x) {
				return nil
			}
			v = x[i]
		default:
			return nil
		}
	}
	return v
}

func TestGetActivities(t *testing.T) {
	t.Parallel()
	cs := phaseServer(t, libraryFiles())
	got := callText(t, cs, "get_activities", nil)
	for path, want := range map[string]any{
		"next_action/tool": "get_rules", "activities/0/id": "begin", "activities/0/primary_skill": "state", "activities/0/problem": "The user wants begin.",
		"activities/0/next_action/tool": "get_skill", "activities/0/next_action/parameters/skill_id": "state",
		"activities/0/mandatory_guide/index": "0", "activities/0/mandatory_guide/format": "markdown", "activities/1/mandatory_guide": nil,
		"quick_match/begin <now> & here": "begin", "quick_match/where were we?": "go-on", // The first activity wins.
		"quick_match/again from the start": "restart",
	} {
		if have := memberAt(got.structure, path); have != want {
			t.Errorf("%s: %v, want %v", path, have, want)
		}
	}
	if content, _ := memberAt(got.structure, "activities/0/mandatory_guide/content").(string); !strings.HasPrefix(content, "# Start") {
		t.Errorf("%q", content)
	}
	if !strings.Contains(got.texts[0], `"begin <now> & here"`) {
		t.Error("the text has HTML escapes")
	}
	one := callText(t, cs, "get_activity", map[string]any{"activity_id": "begin"})
	if one.isError || memberAt(one.structure, "flow/0") != "1. Look" || memberAt(one.structure, "next_action/parameters/skill_id") != "state" {
		t.Errorf("%v", one.structure)
	}
	skills := callText(t, cs, "get_skills", nil)
	if memberAt(skills.structure, "universal/0/id") != "state" || memberAt(skills.structure, "workflow_specific/ways/0/next_action/parameters/workflow_id") != "ways" {
		t.Errorf("%v", skills.structure)
	}
	listed := callText(t, cs, "list_skills", map[string]any{"workflow_id": "ways"})
	if memberAt(listed.structure, "universal/0/id") != "state" || memberAt(listed.structure, "workflow/0/id") != "review" {
		t.Errorf("%v", listed.structure)
	}
	all := callText(t, cs, "list_resources", nil)
	if memberAt(all.structure, "ways/guides/count") != 2.0 || memberAt(all.structure, "ways/templates/tool") != "list_templates" ||
		memberAt(all.structure, "workflows/0/id") != "ways" || memberAt(all.structure, "universal_skills/items/0") != "state" {
		t.Errorf("%v", all.structure)
	}
}

func TestMatchActivity(t *testing.T) {
	t.Parallel()
	cs := phaseServer(t, libraryFiles())
	tests := []struct{ goal, status, best, tool string }{
		{"resume workflow", "matched", "go-on", "get_activity"},
		{"please start a workflow for this ticket", "matched", "begin", "get_activity"},
		{"Where were we?", "ambiguous", "go-on", "get_activity"},
		{"bake a cake", "none", "", "get_activities"},
	}
	for _, tt := range tests {
		got := callText(t, cs, "match_activity", map[string]any{"goal": tt.goal})
		best, _ := memberAt(got.structure, "matches/0/id").(string)
		if got.structure["status"] != tt.status || best != tt.best || memberAt(got.structure, "next_action/tool") != tt.tool {
			t.Errorf("%q: %v", tt.goal, got.structure)
		}
		if question, _ := got.structure["question"].(string); (question == "") != (tt.status == "matched") {
			t.Errorf("%q: question %q", tt.goal, question)
		}
		if again := callText(t, cs, "match_activity", map[string]any{"goal": tt.goal}); !cmp.Equal(got.texts, again.texts) {
			t.Errorf("%q: the second answer differs", tt.goal)
		}
	}
	ambiguous := callText(t, cs, "match_activity", map[string]any{"goal": "Where were we?"})
	if question, _ := ambiguous.structure["question"].(string); !strings.Contains(question, "go-on") || !strings.Contains(question, "restart") {
		t.Errorf("%q does not name both", question)
	}
	found := callText(t, cs, "match_activity", map[string]any{"goal": "resume workflow"})
	tool, args := memberAt(found.structure, "next_action/tool").(string), memberAt(found.structure, "next_action/parameters").(map[string]any)
	if next := callText(t, cs, tool, args); next.isError || next.structure["id"] != "go-on" {
		t.Errorf("the next call does not work: %v", next.structure)
	}
}

// TestPhaseToolErrors checks the message of each error, and that the call suggested for an
// unknown name does not fail in the same way. No path leads out of the directory.
func TestPhaseToolErrors(t *testing.T) {
	t.Parallel()
	cs := phaseServer(t, libraryFiles())
	ways := map[string]any{"workflow_id": "ways"}
	tests := []struct {
		tool    string
		args    map[string]any
		message string
	}{
		{"get_workflow", map[string]any{"workflow_id": "nope"}, "Workflow not found: nope"},
		{"get_workflow", map[string]any{"workflow_id": "../../etc/passwd"}, "Workflow not found: ../../etc/passwd"},
		{"get_workflow", map[string]any{"workflow_id": "guarded"}, "'guarded' is a step workflow: it has no phases"},
		{"get_phase", withMember(ways, "phase_id", "nope"), "Phase not found: nope"},
		{"get_phase", withMember(ways, "phase_id", "0"), "Phase not found: 0"},
		{"get_phase", withMember(ways, "phase_id", "7"), "Phase not found: 7"},
		{"get_phase", withMember(map[string]any{"workflow_id": "../ways"}, "phase_id", "a"), "Workflow not found: ../ways"},
		{"get_checkpoint", withMember(withMember(ways, "phase_id", "a"), "checkpoint_id", "nope"), "Checkpoint not found: nope"},
		{"get_checkpoint", withMember(withMember(ways, "phase_id", "b"), "checkpoint_id", "1"), "Checkpoint not found: 1"},
		{"validate_transition", map[string]any{"workflow_id": "nope", "from_phase": "a", "to_phase": "b"}, "Workflow not found: nope"},
		{"list_guides", map[string]any{"workflow_id": "nope"}, "Workflow not found: nope"},
		{"list_templates", map[string]any{"workflow_id": "../ways"}, "Workflow not found: ../ways"},
		{"get_guide", withMember(ways, "index", "99"), "Guide not found: 99 in workflow ways"},
		{"get_guide", withMember(ways, "index", "../../secret"), "Guide not found: ../../secret in workflow ways"},
		{"get_guide", withMember(map[string]any{"workflow_id": "../ways"}, "index", "00"), "Workflow not found: ../ways"},
		{"get_guide", withMember(withMember(ways, "index", "0"), "section", "Three"), "Section not found: Three"},
		{"get_template", withMember(ways, "index", "99"), "Template not found: index 99 in workflow ways"},
		{"get_skill", map[string]any{"skill_id": "nope"}, "Skill not found: nope"},
		{"get_skill", map[string]any{"skill_id": "review"}, "Skill not found: review"},
		{"get_skill", withMember(map[string]any{"skill_id": "state"}, "workflow_id", "nope"), "Workflow not found: nope"},
		{"get_activity", map[string]any{"activity_id": "nope"}, "Activity not found: nope"},
		{"list_skills", map[string]any{"workflow_id": "nope"}, "Workflow not found: nope"},
		{"get_guide", ways, "index parameter is required"},
		{"get_phase", withMember(ways, "phase_id", 1.5), "Phase not found: 1.5"},
		{"get_phase", withMember(ways, "phase_id", true), "phase_id must be a string, not a boolean"},
		{"get_workflow", map[string]any{"workflow_id": 1}, "workflow_id must be a string, not a number"},
		{"get_skill", map[string]any{"skill_id": "7"}, "Skill not found: 7"},
		{"get_activity", map[string]any{"activity_id": "../01"}, "Activity not found: ../01"},
		{"match_activity", nil, "goal parameter is required"},
	}
	for _, tt := range tests {
		got := callText(t, cs, tt.tool, tt.args)
		if !got.isError || got.structure["error"] != tt.message {
			t.Errorf("%s %v: %v", tt.tool, tt.args, got.structure)
			continue
		}
		tool, _ := memberAt(got.structure, "next/tool").(string)
		args, ok := memberAt(got.structure, "next/arguments").(map[string]any)
		if !ok {
			t.Errorf("%s %v: no next call in %v", tt.tool, tt.args, got.structure)
			continue
		}
		if strings.Contains(tt.message, "not found") {
			if next := callText(t, cs, tool, args); next.isError && next.structure["error"] == got.structure["error"] {
				t.Errorf("%s %v: the next call fails too: %v", tt.tool, tt.args, next.structure)
			}
		}
	}
	near := callText(t, cs, "get_phase", map[string]any{"workflow_id": "wasy", "phase_id": "a"})
	if near.structure["fix"] != `did you mean "ways"?` || memberAt(near.structure, "next/arguments/workflow_id") != "ways" {
		t.Errorf("%v", near.structure)
	}
	if diff := cmp.Diff([]any{"ways"}, near.structure["allowed"]); diff != "" {
		t.Error(diff)
	}
}

// TestDocumentsAreFoundByNumber checks that phases, checkpoints, guides, templates, skills
// and activities are found by their number, given as text or as a number. Guides and
// templates are also found by file name.
func TestDocumentsAreFoundByNumber(t *testing.T) {
	t.Parallel()
	files := libraryFiles()
	files["ways/templates/04-empty.md"] = ""
	files["ways/skills/02-state.json"] = `{"capability":"Keep it so","id":"state","version":"1.0.0"}`
	cs := phaseServer(t, files)
	ways := map[string]any{"workflow_id": "ways"}
	tests := []struct {
		tool     string
		args     map[string]any
		at, want string
	}{
		{"get_phase", withMember(ways, "phase_id", 2), "id", "b"},
		{"get_phase", withMember(ways, "phase_id", "2"), "id", "b"},
		{"get_checkpoint", withMember(withMember(ways, "phase_id", 1), "checkpoint_id", 1), "id", "c1"},
		{"get_guide", withMember(ways, "index", 1), "content", "plan: yes\n"},
		{"get_guide", withMember(ways, "index", "guides/01-plan.yaml"), "content", "plan: yes\n"},
		{"get_template", withMember(ways, "index", "04-empty.md"), "content", ""},
		{"get_skill", map[string]any{"skill_id": 0}, "id", "state"},
		{"get_skill", withMember(ways, "skill_id", "01"), "id", "review"},
		{"get_skill", withMember(ways, "skill_id", "state"), "capability", "Keep it so"},
		{"get_activity", map[string]any{"activity_id": "2"}, "id", "go-on"},
	}
	for _, tt := range tests {
		got := callText(t, cs, tt.tool, tt.args)
		if got.isError || memberAt(got.structure, tt.at) != tt.want {
			t.Errorf("%s %v: %v", tt.tool, tt.args, got.structure)
		}
	}
	if empty := callText(t, cs, "get_template", withMember(ways, "index", 4)); empty.texts[0] != "" {
		t.Errorf("an empty template is %q", empty.texts[0])
	}
	lost := callText(t, cs, "get_skill", withMember(ways, "skill_id", "nope"))
	if diff := cmp.Diff([]any{"review", "state"}, lost.structure["allowed"]); diff != "" {
		t.Errorf("a skill is listed more than once: %s", diff)
	}
}

// Every tool reports a file that did not load, and other files still load.
func TestBrokenFilesAreReported(t *testing.T) {
	t.Parallel()
	files := libraryFiles()
	files["broken/broken.json"] = `{"id":"broken","version":"1.0.0","title":"T","initialPhase":"nope","phases":[{"id":"p1","name":"P"}]}`
	files["meta/skills/01-cut.json"] = `{"id":"cut",`
	files["meta/activities/04-cut-off.json"] = `{"id":"cut-off"`
	files["ways/guides/05-binary.md"] = "\xff\xfe"
	cs := phaseServer(t, files)
	list := callText(t, cs, "list_workflows", nil)
	if len(list.texts) != 2 || !strings.Contains(list.texts[1], "broken.json") || len(memberAt(list.structure, "items").([]any)) != 1 {
		t.Errorf("%q", list.texts)
	}
	for tool, args := range map[string]map[string]any{
		"get_workflow": {"workflow_id": "broken"}, "get_skill": {"skill_id": "cut"}, "get_activity": {"activity_id": "cut-off"},
		"get_guide": {"workflow_id": "ways", "index": "5"},
	} {
		got := callText(t, cs, tool, args)
		message, _ := got.structure["error"].(string)
		if !got.isError || got.structure["code"] != "invalid_definition" || !strings.Contains(message, "load") {
			t.Errorf("%s: %v", tool, got.structure)
		}
	}
	if got := callText(t, cs, "get_workflow", map[string]any{"workflow_id": "broken"}); !strings.HasPrefix(got.structure["error"].(string), "Workflow validation failed for broken: ") {
		t.Errorf("%v", got.structure)
	}
	h := callText(t, cs, "health_check", nil)
	if h.structure["status"] != "degraded" || h.structure["workflows_available"] != 1.0 || h.structure["problems"].(float64) < 4 || h.structure["version"] != "1.2.3" {
		t.Errorf("%v", h.structure)
	}
	well := callText(t, phaseServer(t, libraryFiles()), "health_check", nil)
	if well.structure["status"] != "healthy" || well.structure["server"] != "guideway" || len(well.texts) != 1 {
		t.Errorf("%v", well.structure)
	}
	bare := phaseServer(t, map[string]string{"ways.json": manyTransitions})
	if got := callText(t, bare, "get_rules", nil); !got.isError || got.structure["error"] != "Global rules not found" {
		t.Errorf("%v", got.structure)
	}
}

// Every answer matches the output schema of its tool.
func TestPhaseAnswersMatchSchemas(t *testing.T) {
	t.Parallel()
	cs := phaseServer(t, libraryFiles())
	w := map[string]any{"workflow_id": "ways"}
	calls := map[string]map[string]any{
		"list_workflows": nil, "get_workflow": w, "get_phase": withMember(w, "phase_id", "a"),
		"get_checkpoint":      withMember(withMember(w, "phase_id", "a"), "checkpoint_id", "c1"),
		"validate_transition": withMember(withMember(w, "from_phase", "a"), "to_phase", "b"),
		"get_activities":      nil, "get_activity": {"activity_id": "begin"}, "match_activity": {"goal": "resume workflow"}, "get_rules": nil,
		"get_skills": nil, "list_skills": nil, "get_skill": {"skill_id": "state"}, "list_guides": w, "get_guide": withMember(w, "index", "0"),
		"list_templates": w, "get_template": withMember(w, "index", "3"), "list_resources": nil, "health_check": nil,
	}
	list := listTools(t, cs)
	if len(list) != len(calls) {
		t.Errorf("%d tools exist, but %d were called", len(list), len(calls))
	}
	for _, tool := range list {
		if !tool.Annotations.ReadOnlyHint {
			t.Errorf("%s is not marked as read-only", tool.Name)
		}
		got := callText(t, cs, tool.Name, calls[tool.Name])
		if err := compileSchema(t, tool).Validate(any(got.structure)); err != nil || got.isError {
			t.Errorf("%s: %v %v", tool.Name, err, got.structure)
		}
		properties, _ := tool.OutputSchema.(map[string]any)["properties"].(map[string]any)
		if !slices.ContainsFunc(sortedMembers(got.structure), func(name string) bool { return properties[name] != nil }) {
			t.Errorf("%s: the schema names no member of %v", tool.Name, got.structure)
		}
	}
	if size := len(encodeJSON(t, list)); size > 14_000 {
		t.Errorf("tools/list has %d bytes", size)
	}
}
