package mcp_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
	mcpserver "github.com/guideway-dev/guideway/internal/mcp"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A run's checkpoint returns the run's handle if the run has not changed since, or else the
// handle of a fork at the checkpoint's position.
func TestCheckpointReturnsHandleOrFork(t *testing.T) {
	t.Parallel()
	for _, version := range protocolVersions() {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			r := newTestServer(t)
			cs := connectClient(t, r.server, "memory", "ann", version, nil)
			a := callTool(t, cs, "workflow_start", map[string]any{"workflowId": "guarded", "goal": "Move the login", "context": map[string]any{"size": "small"}})
			saved := callTool(t, cs, "workflow_checkpoint_save", map[string]any{"handle": a["handle"], "context": map[string]any{"hunch": "the cache"}, "name": "before the plan", "tags": []any{"auth"}})
			if saved["sessionId"] != a["runId"] || saved["bytes"].(float64) < 10 || saved["tokens"].(float64) < 5 || saved["storedBytes"].(float64) < 10 {
				t.Fatalf("saved: %v", saved)
			}
			load := map[string]any{"checkpointId": saved["checkpointId"]}
			same := callTool(t, cs, "workflow_checkpoint_load", load)
			if same["handle"] != a["handle"] || same["forked"] != nil || positionID(same) != "step plan" {
				t.Fatalf("loading the checkpoint of an unchanged run: %v", same)
			}
			if d := cmp.Diff(map[string]any{"size": "small", "hunch": "the cache"}, same["context"]); d != "" {
				t.Errorf("context (-want +got):\n%s", d)
			}
			if d := cmp.Diff([]any{"hunch"}, same["notSetInRun"]); d != "" {
				t.Errorf("variables of the run (-want +got):\n%s", d)
			}
			planned := callTool(t, cs, "workflow_continue", map[string]any{"handle": a["handle"], "output": "the PLAN"})
			forked := callTool(t, cs, "workflow_checkpoint_load", load)
			if forked["forked"] != true || forked["runId"] == a["runId"] || positionID(forked) != "step plan" {
				t.Fatalf("loading the checkpoint of a run that has continued: %v", forked)
			}
			again := callTool(t, cs, "workflow_checkpoint_load", load)
			if again["handle"] != forked["handle"] {
				t.Errorf("the same load again made a second fork: %v", again)
			}
			other := followNext(t, cs, forked, map[string]any{"output": "another PLAN"})
			if third := callTool(t, cs, "workflow_checkpoint_load", load); positionID(third) != "step plan" || third["runId"] == forked["runId"] {
				t.Errorf("loading again after the fork has continued: %v", third)
			}
			if positionID(other) != "step agree" || positionID(callTool(t, cs, "workflow_status", map[string]any{"handle": planned["handle"]})) != "step agree" {
				t.Errorf("the fork is at %s", positionID(other))
			}
			found := callTool(t, cs, "workflow_checkpoint_list", map[string]any{"query": "caches", "tags": []any{"auth"}})
			if list := found["checkpoints"].([]any); len(list) != 1 || list[0].(map[string]any)["checkpointId"] != saved["checkpointId"] {
				t.Errorf("search by words and tags: %v", found)
			}
		})
	}
}

// Loading a checkpoint moves no run past a gate and sets no reserved variable, and another
// user cannot load it.
func TestCheckpointBypassesNoGate(t *testing.T) {
	t.Parallel()
	r := newTestServer(t, func(o *mcpserver.Options) {
		o.LiveDashboard = func(context.Context, string) string { return "http://127.0.0.1:3000/" }
	})
	cs := connectClient(t, r.server, "memory", "ann", "2026-07-28", nil)
	a := callTool(t, cs, "workflow_start", map[string]any{"workflowId": "manned"})
	callRefused(t, cs, "workflow_checkpoint_save", map[string]any{"handle": a["handle"], "context": map[string]any{"currentIteration": 2}}, engine.RuleServerVariable)
	callRefused(t, cs, "workflow_checkpoint_save", map[string]any{"handle": "h_0123456789abcdefghjkm"}, run.RuleUnknownHandle)
	callInvalid(t, cs, "workflow_checkpoint_save", map[string]any{"handle": a["handle"], "context": map[string]any{"_run": map[string]any{"seq": 99}}})
	callInvalid(t, cs, "workflow_checkpoint_save", map[string]any{"handle": a["handle"], "workflowId": "guarded"})
	callInvalid(t, cs, "workflow_checkpoint_save", map[string]any{"context": map[string]any{"_sessionId": a["runId"]}})

	atGate := callTool(t, cs, "workflow_continue", map[string]any{"handle": a["handle"], "output": "a draft"})
	saved := callTool(t, cs, "workflow_checkpoint_save", map[string]any{
		"handle": atGate["handle"], "context": map[string]any{"approved": true, "draft": "confirmed", "gate": nil},
	})
	loaded := callTool(t, cs, "workflow_checkpoint_load", map[string]any{"checkpointId": saved["checkpointId"]})
	if positionID(loaded) != "gate draft" {
		t.Fatalf("at a person's gate: %v", loaded)
	}
	for _, way := range []string{"guideway runs approve " + textMember(a, "runId"), "http://127.0.0.1:3000/runs/" + textMember(a, "runId")} {
		if hint := textMember(loaded, "hint"); !strings.Contains(hint, way) {
			t.Errorf("the hint %q lacks %s", hint, way)
		}
	}
	callRefused(t, cs, "workflow_continue", map[string]any{"handle": loaded["handle"], "answer": map[string]any{"optionId": "confirm"}}, engine.RulePerson)
	details, err := r.runs.Get(t.Context(), newCaller("ann"), run.Ref{RunID: textMember(a, "runId")})
	if err != nil || len(details.Variables) != 0 {
		t.Errorf("the state of the run is %v, %v", details.Variables, err)
	}

	// A person answers the gate, and the run continues; the checkpoint is still at the
	// gate.
	person := newCaller("ann")
	person.Via = run.ViaTerminal
	if _, err := r.runs.Answer(t.Context(), person, run.AnswerRequest{Ref: run.Ref{RunID: textMember(a, "runId")}, Answer: engine.Answer{OptionID: engine.OptionConfirm}}); err != nil {
		t.Fatal(err)
	}
	back := callTool(t, cs, "workflow_checkpoint_load", map[string]any{"checkpointId": saved["checkpointId"]})
	if back["forked"] != true || positionID(back) != "gate draft" {
		t.Fatalf("loading a checkpoint from before the gate: %v", back)
	}
	callRefused(t, cs, "workflow_continue", map[string]any{"handle": back["handle"], "answer": map[string]any{"optionId": "confirm"}}, engine.RulePerson)

	// A series with the name of a run belongs to the run; other users cannot see it.
	eve := connectClient(t, r.server, "memory", "eve", "2026-07-28", nil)
	callRefused(t, eve, "workflow_checkpoint_save", map[string]any{"sessionId": a["runId"], "context": map[string]any{"x": 1}}, run.RuleUnknownRun)
	callRefused(t, eve, "workflow_mark_critical", map[string]any{"sessionId": a["runId"], "keys": []any{"x"}}, run.RuleUnknownRun)
	for _, args := range []map[string]any{{"checkpointId": saved["checkpointId"]}, {"sessionId": a["runId"]}} {
		if bad := callInvalid(t, eve, "workflow_checkpoint_load", args); bad["code"] != string(guideway.CodeNotFound) {
			t.Errorf("another user's call with %v returns %v", args, bad)
		}
	}
	if list := callTool(t, eve, "workflow_checkpoint_list", nil)["checkpoints"].([]any); len(list) != 0 {
		t.Errorf("another user sees %v", list)
	}
}

// callInvalid makes a bad call, and checks that the error has a fix or a next call.
func callInvalid(t *testing.T, cs *mcp.ClientSession, tool string, args map[string]any) map[string]any {
	t.Helper()
	res, isError := callRaw(t, cs, tool, args)
	if !isError || res["error"] == nil || res["code"] == nil || res["fix"] == nil && res["next"] == nil {
		t.Fatalf("%s %v: want an error with a fix or a next call, got %v", tool, args, res)
	}
	return res
}

// longText returns a few thousand tokens of text, in different sentences.
func longText(about string) string {
	var b strings.Builder
	for i := range 300 {
		fmt.Fprintf(&b, "The %s of part %d took %d milliseconds and left file-%d.txt behind. ", about, i, i*37%1000, i)
	}
	return b.String()
}

// The omitted items of a session and of a run are returned byte for byte, and critical
// items never change.
func TestOmittedItemsAreReadable(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	cs := connectClient(t, r.server, "memory", "ann", "2026-07-28", nil)
	given := map[string]any{
		"userGoal": "Ship <the> gate & don't break it", "analysis": longText("analysis"), "codeExamples": longText("code"), "debugLog": longText("debugging"), "contract": longText("contract"),
	}
	callTool(t, cs, "workflow_mark_critical", map[string]any{"sessionId": "gate", "keys": []any{"contract"}, "tags": []any{"api"}})
	started := callTool(t, cs, "workflow_start", map[string]any{"workflowId": "guarded", "context": given})
	callTool(t, cs, "workflow_mark_critical", map[string]any{"handle": started["handle"], "keys": []any{"contract"}})
	for name, from := range map[string]map[string]any{
		"session": {"context": given, "sessionId": "gate"},
		"run":     {"handle": started["handle"]},
	} {
		for _, tool := range []string{"workflow_context_compress", "workflow_context_prioritize"} {
			args := map[string]any{"budgetTokens": 9000, "question": "what took so long?"}
			for k, v := range from {
				args[k] = v
			}
			out := callTool(t, cs, tool, args)
			kept := out["context"].(map[string]any)
			for _, key := range []string{"userGoal", "contract"} {
				if kept[key] != given[key] {
					t.Errorf("%s of a %s: critical item %s has changed", tool, name, key)
				}
			}
			refs := omittedRefs(out)
			if len(refs) < 2 || refs["debugLog"] == nil {
				t.Fatalf("%s of a %s: omitted items %v", tool, name, refs)
			}
			for key, call := range refs {
				if readBack(t, cs, call) != given[key] {
					t.Errorf("%s of a %s: %s differs when read back", tool, name, key)
				}
			}
		}
	}
	eve := connectClient(t, r.server, "memory", "eve", "2026-07-28", nil)
	out := callTool(t, cs, "workflow_context_compress", map[string]any{"context": given, "budgetTokens": 9000})
	for _, call := range omittedRefs(out) {
		if res, isError := callRaw(t, eve, "workflow_checkpoint_load", call); !isError {
			t.Errorf("another user reads %v", res)
		}
	}
}

// omittedRefs returns the calls that load the omitted items, by key.
func omittedRefs(answer map[string]any) map[string]map[string]any {
	calls := map[string]map[string]any{}
	for _, member := range []string{"omitted", "items"} {
		list, _ := answer[member].([]any)
		for _, one := range list {
			item := one.(map[string]any)
			ref, _ := item["ref"].(string)
			keys, _ := item["keys"].([]any)
			for _, key := range keys {
				if ref == "" {
					continue
				}
				call := map[string]any{"ref": ref}
				if len(keys) > 1 {
					call["keys"] = []any{key}
				}
				calls[key.(string)] = call
			}
		}
	}
	return calls
}

// readBack loads an omitted item.
func readBack(t *testing.T, cs *mcp.ClientSession, call map[string]any) any {
	t.Helper()
	back := callTool(t, cs, "workflow_checkpoint_load", call)
	if keys, ok := call["keys"].([]any); ok {
		return back["context"].(map[string]any)[keys[0].(string)]
	}
	return back["value"]
}

// TestContextToolErrors checks that the error of a bad call names the field and has a fix
// or a next call.
func TestContextToolErrors(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	cs := connectClient(t, r.server, "memory", "ann", "2025-11-25", nil)
	context := map[string]any{"goal": "g"}
	for _, c := range []struct {
		tool  string
		args  map[string]any
		field string
	}{
		{"workflow_checkpoint_save", nil, "context"},
		{"workflow_checkpoint_save", map[string]any{"context": context, "tags": []any{""}}, "tags"},
		{"workflow_checkpoint_save", map[string]any{"context": context, "tags": []any{strings.Repeat("x", 300)}, "sessionId": "s"}, "tags"},
		{"workflow_checkpoint_save", map[string]any{"context": context, "sessionId": "s", "expectedHead": "c_nowhere"}, "expectedHead"},
		{"workflow_checkpoint_load", nil, "checkpointId"},
		{"workflow_checkpoint_load", map[string]any{"checkpointId": "c_nowhere"}, "checkpointId"},
		{"workflow_checkpoint_load", map[string]any{"sessionId": "s", "budgetTokens": 0}, "budgetTokens"},
		{"workflow_checkpoint_load", map[string]any{"sessionId": "nowhere"}, "sessionId"},
		{"workflow_checkpoint_load", map[string]any{"ref": "../../etc/passwd"}, "ref"},
		{"workflow_checkpoint_load", map[string]any{"ref": "o_0123456789abcdefghjkmnp.3"}, "ref"},
		{"workflow_checkpoint_list", map[string]any{"since": "yesterday"}, "since"},
		{"workflow_checkpoint_list", map[string]any{"cursor": "x"}, "cursor"},
		{"workflow_context_compress", nil, "context"},
		{"workflow_context_compress", map[string]any{"context": context, "handle": "h_0123456789abcdefghjkm"}, "handle"},
		{"workflow_context_compress", map[string]any{"context": context, "ratio": 0.5}, "ratio"},
		{"workflow_context_compress", map[string]any{"context": context, "ratio": 0}, "ratio"},
		{"workflow_context_compress", map[string]any{"context": context, "ratio": "4"}, "ratio"},
		{"workflow_context_compress", map[string]any{"context": context, "ratio": 2, "budgetTokens": 10}, "ratio"},
		{"workflow_context_prioritize", map[string]any{"context": context, "budgetTokens": -1}, "budgetTokens"},
		{"workflow_context_prioritize", map[string]any{"context": context, "budgetTokens": 0}, "budgetTokens"},
		{"workflow_mark_critical", map[string]any{"keys": []any{"a"}}, "handle"},
		{"workflow_mark_critical", map[string]any{"sessionId": "s", "keys": []any{}}, "keys"},
	} {
		bad := callInvalid(t, cs, c.tool, c.args)
		if field, _ := bad["field"].(string); field != c.field {
			t.Errorf("%s %v: the field is %q, want %q: %v", c.tool, c.args, field, c.field, bad)
		}
	}
}

// The call that a refusal suggests works even if nothing was saved yet.
func TestContextToolSuggestionsWork(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	cs := connectClient(t, r.server, "memory", "ann", "2025-11-25", nil)
	a := callTool(t, cs, "workflow_start", map[string]any{"workflowId": "guarded"})
	context := map[string]any{"goal": "g"}
	for _, c := range []struct {
		tool string
		args map[string]any
		next string
	}{
		{"workflow_checkpoint_save", nil, "workflow_checkpoint_save"},
		{"workflow_checkpoint_save", map[string]any{"context": context, "sessionId": "s", "expectedHead": "c_nowhere"}, "workflow_checkpoint_list"},
		{"workflow_checkpoint_load", nil, "workflow_checkpoint_list"},
		{"workflow_checkpoint_load", map[string]any{"checkpointId": "c_nowhere"}, "workflow_checkpoint_list"},
		{"workflow_checkpoint_load", map[string]any{"ref": "nowhere"}, "workflow_checkpoint_list"},
		{"workflow_checkpoint_load", map[string]any{"sessionId": a["runId"]}, "workflow_status"},
		{"workflow_checkpoint_list", map[string]any{"since": "yesterday"}, "workflow_checkpoint_list"},
		{"workflow_context_compress", map[string]any{"context": context, "ratio": 0}, "workflow_context_compress"},
		{"workflow_context_compress", map[string]any{"context": context, "sessionId": a["runId"]}, "workflow_context_compress"},
		{"workflow_checkpoint_save", map[string]any{"handle": a["handle"], "sessionId": "s"}, "workflow_checkpoint_save"},
		{"workflow_checkpoint_save", map[string]any{"handle": a["handle"], "workflowId": "manned"}, "workflow_checkpoint_save"},
		{"workflow_checkpoint_save", map[string]any{"context": context, "tags": []any{strings.Repeat("x", 300)}}, "workflow_checkpoint_save"},
		{"workflow_checkpoint_list", map[string]any{"cursor": "x"}, "workflow_checkpoint_list"},
		{"workflow_mark_critical", map[string]any{"sessionId": "s", "keys": []any{}}, "workflow_mark_critical"},
		{"workflow_mark_critical", map[string]any{"keys": []any{"a"}}, "workflow_mark_critical"},
	} {
		res, isError := callRaw(t, cs, c.tool, c.args)
		next, _ := res["next"].(map[string]any)
		if !isError || next["tool"] != c.next {
			t.Errorf("%s %v: %v", c.tool, c.args, res)
			continue
		}
		args, _ := next["arguments"].(map[string]any)
		if res, isError := callRaw(t, cs, c.next, args); isError {
			t.Errorf("%s %v suggests %v, which is refused: %v", c.tool, c.args, next, res)
		}
	}
}

// workflow_next saves the context if it names a session; loading it in the middle of a loop
// restores it.
func TestWorkflowNextSavesNamedSession(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	cs := connectClient(t, r.server, "memory", "ann", "2025-11-25", nil)
	next := func(completed []any, context any) map[string]any {
		return callTool(t, cs, "workflow_next", map[string]any{"workflowId": "manned", "completedSteps": completed, "context": context})
	}
	next([]any{}, map[string]any{"plain": true})
	first := next([]any{}, map[string]any{"_sessionId": "walk", "note": "remember"})
	middle := next([]any{"draft"}, first["context"])
	if err := r.keeper.Close(); err != nil {
		t.Fatal(err)
	}
	list := callTool(t, cs, "workflow_checkpoint_list", nil)["checkpoints"].([]any)
	if len(list) != 2 {
		t.Fatalf("saved: %v", list)
	}
	back := callTool(t, cs, "workflow_checkpoint_load", map[string]any{"sessionId": "walk"})
	if d := cmp.Diff(middle["context"], back["context"]); d != "" {
		t.Errorf("context (-given +loaded):\n%s", d)
	}
	if d := cmp.Diff([]any{"draft"}, back["completedSteps"]); d != "" {
		t.Fatalf("completed (-want +got):\n%s", d)
	}
	if d := cmp.Diff(middle, next(back["completedSteps"].([]any), back["context"])); d != "" {
		t.Errorf("the steps after loading differ (-want +got):\n%s", d)
	}
	// A context that was reduced in the middle of a loop leads to the same next step.
	small := callTool(t, cs, "workflow_context_compress", map[string]any{"context": back["context"], "budgetTokens": 1, "workflowId": "manned"})
	if d := cmp.Diff(middle["step"], next([]any{"draft"}, small["context"])["step"]); d != "" {
		t.Errorf("the steps with the reduced context differ (-want +got):\n%s", d)
	}
}

// TestStatusIncludesContext checks that workflow_status and workflow_resume return the
// context of a run within a budget, with references to the omitted items.
func TestStatusIncludesContext(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	cs := connectClient(t, r.server, "memory", "ann", "2026-07-28", nil)
	few := callTool(t, cs, "workflow_start", map[string]any{"workflowId": "guarded", "context": map[string]any{"size": "small"}})
	told := callTool(t, cs, "workflow_status", map[string]any{"handle": few["handle"]})
	if d := cmp.Diff(map[string]any{"size": "small"}, told["context"]); d != "" || told["omitted"] != nil {
		t.Errorf("a small context (-want +got):\n%s%v", d, told["omitted"])
	}
	much := map[string]any{"userGoal": "keep me", "analysis": longText("analysis"), "code": longText("code"), "rawOutput": longText("output")}
	a := callTool(t, cs, "workflow_start", map[string]any{"workflowId": "guarded", "goal": "the large one", "context": much})
	if a["context"] != nil {
		t.Error("workflow_start repeats the context")
	}
	for name, answer := range map[string]map[string]any{
		"status": callTool(t, cs, "workflow_status", map[string]any{"handle": a["handle"]}),
		"resume": callTool(t, cs, "workflow_resume", map[string]any{"query": "large"}),
	} {
		if size := len(encodeJSON(t, answer["context"])); size > 20_000 || size < 2000 {
			t.Errorf("%s: the context has %d bytes", name, size)
		}
		if kept := answer["context"].(map[string]any); kept["userGoal"] != "keep me" {
			t.Errorf("%s: the goal is missing: %v", name, kept)
		}
		refs := omittedRefs(answer)
		for key, call := range refs {
			if readBack(t, cs, call) != much[key] {
				t.Errorf("%s: %s differs when read back", name, key)
			}
		}
		if len(refs) == 0 {
			t.Errorf("%s: nothing is omitted from %d bytes", name, len(encodeJSON(t, much)))
		}
	}
}

// The toolset context is on by default, and requires its service.
func TestContextToolset(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*mcpserver.Options)
		want   bool
	}{
		"by default": {func(*mcpserver.Options) {}, true},
		"alone":      {func(o *mcpserver.Options) { o.Toolsets = []string{mcpserver.ToolsetContext} }, true},
		"not chosen": {func(o *mcpserver.Options) { o.Toolsets = []string{mcpserver.ToolsetSteps} }, false},
		"no service": {func(o *mcpserver.Options) { o.Memory = nil }, false},
	} {
		r := newTestServer(t, tt.change)
		names := toolNames(t, connectClient(t, r.server, "memory", "ann", "2025-11-25", nil))
		if slices.Contains(names, "workflow_checkpoint_save") != tt.want {
			t.Errorf("%s: %v", name, names)
		}
	}
}

func newCaller(user string) run.Caller {
	return run.Caller{Principal: guideway.Principal{User: user}}
}
