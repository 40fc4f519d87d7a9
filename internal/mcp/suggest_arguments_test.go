package mcp_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A call with a slightly wrong name or type gets a corrected call as a suggestion, which
// keeps the caller's values and works.
func TestNextCallKeepsCallersValues(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	cs := connectClient(t, r.server, "memory", "ann", "2026-07-28", nil)
	run := callTool(t, cs, "workflow_start", map[string]any{"workflowId": "guarded"})
	handle := run["handle"]
	atGate := callTool(t, cs, "workflow_start", map[string]any{"workflowId": "manned", "goal": "gates"})
	atGate = callTool(t, cs, "workflow_continue", map[string]any{"handle": atGate["handle"], "output": "a draft"})
	type m = map[string]any
	tests := []struct {
		name, tool string
		args       m
		next       string
		want       m
	}{
		{"the name of an id in other tools", "workflow_get", m{"workflowId": "guarded"}, "workflow_get", m{"id": "guarded"}},
		{"a name with another case", "workflow_next", m{"workflow_id": "small", "completed_steps": []any{"only"}}, "workflow_next", m{"workflowId": "small", "completedSteps": []any{"only"}}},
		{"a string instead of a list", "workflow_next", m{"workflowId": "small", "completedSteps": "only"}, "workflow_next", m{"workflowId": "small", "completedSteps": []any{"only"}}},
		{"JSON in a text", "workflow_next", m{"workflowId": "small", "context": `{"a":{"b":1}}`}, "workflow_next", m{"workflowId": "small", "context": m{"a": m{"b": 1.0}}}},
		{"a similar workflow id", "workflow_next", m{"workflowId": "smal", "completedSteps": []any{"only"}}, "workflow_next", m{"workflowId": "small", "completedSteps": []any{"only"}}},
		{"a similar workflow id for a run", "workflow_start", m{"workflowId": "gaurded", "goal": "g"}, "workflow_start", m{"workflowId": "guarded", "goal": "g"}},
		{"an invalid output with variables", "workflow_continue", m{"handle": handle, "output": "x", "context": m{"size": "large"}}, "workflow_continue", m{"handle": handle, "context": m{"size": "large"}}},
		{"variables alone", "workflow_continue", m{"handle": handle, "context": m{"size": "large"}}, "workflow_continue", m{"handle": handle, "context": m{"size": "large"}}},
		{"an output with an answer where there is no gate", "workflow_continue", m{"handle": handle, "output": "a plan", "answer": m{"optionId": "confirm"}}, "workflow_continue", m{"handle": handle, "output": "a plan"}},
		{"variables that only the server sets", "workflow_continue", m{"handle": handle, "output": "a plan", "context": m{"_currentLoop": 1}}, "workflow_continue", m{"handle": handle, "output": "a plan"}},
		{"an output that is not a string", "workflow_continue", m{"handle": handle, "output": m{"PLAN": 1}}, "workflow_continue", m{"handle": handle, "output": `{"PLAN":1}`}},
		{"a number as text", "workflow_fork", m{"handle": handle, "seq": "2"}, "workflow_fork", m{"handle": handle, "seq": 2.0}},
		{"no handle", "workflow_continue", m{"output": "x"}, "workflow_resume", m{}},
		{"no run", "workflow_status", m{}, "workflow_resume", m{}},
		{"a run id instead of its handle", "workflow_context_compress", m{"runId": run["runId"], "budgetTokens": 20}, "workflow_status", m{"runId": run["runId"]}},
		{"a session parameter in another case", "workflow_checkpoint_save", m{"session_id": "s", "context": m{"goal": "g"}}, "workflow_checkpoint_save", m{"sessionId": "s", "context": m{"goal": "g"}}},
		{"a session parameter with a shorter name", "workflow_checkpoint_save", m{"session": "s", "context": m{"goal": "g"}}, "workflow_checkpoint_save", m{"sessionId": "s", "context": m{"goal": "g"}}},
		{"an id parameter with a shorter name", "workflow_get", m{"workflow": "guarded"}, "workflow_get", m{"id": "guarded"}},
		{"a parameter with a shorter name", "workflow_context_compress", m{"context": m{"goal": "g"}, "budget": 100}, "workflow_context_compress", m{"context": m{"goal": "g"}, "budgetTokens": 100.0}},
		{"a document that exists", "workrail_create_session", m{"workflowId": "bug", "sessionId": "s"}, "workrail_read_session", m{"workflowId": "bug", "sessionId": "s"}},
		{"a document with a similar name", "workrail_read_session", m{"workflowId": "bug", "sessionId": "login-fail", "path": "a"}, "workrail_read_session", m{"workflowId": "bug", "sessionId": "login-fails", "path": "a"}},
		{"a write to a document with a similar name", "workrail_update_session", m{"workflowId": "bug", "sessionId": "login-fail", "updates": m{"a": 1}}, "workrail_create_session", m{"workflowId": "bug", "sessionId": "login-fail"}},
	}
	for _, id := range []string{"s", "login-fails"} {
		callTool(t, cs, "workrail_create_session", m{"workflowId": "bug", "sessionId": id})
	}
	for _, tt := range tests {
		res, isError := callRaw(t, cs, tt.tool, tt.args)
		tool, next := nextCallOf(t, res)
		if d := cmp.Diff(tt.want, next); !isError || tool != tt.next || d != "" {
			t.Errorf("%s: next %s (-want +got):\n%s", tt.name, tool, d)
			continue
		}
		if again, isError := callRaw(t, cs, tool, next); isError && again["rule"] != "criteria-failed" && again["rule"] != "output-missing" {
			t.Errorf("%s: the suggested call fails: %v", tt.name, again)
		}
	}
	// At a gate the suggested call has the caller's own option, or lists the options.
	gate := callTool(t, cs, "workflow_start", m{"workflowId": "guarded", "goal": "gate"})
	gate = callTool(t, cs, "workflow_continue", m{"handle": gate["handle"], "output": "PLAN"})
	gate = callTool(t, cs, "workflow_continue", m{"handle": gate["handle"], "output": "agreed"})
	for name, args := range map[string]m{
		"an option without an answer object": {"handle": gate["handle"], "optionId": "revise"},
		"an option as the answer":            {"handle": gate["handle"], "answer": "revise"},
		"an option with a similar name":      {"handle": gate["handle"], "answer": m{"option": "revise"}},
	} {
		res, _ := callRaw(t, cs, "workflow_continue", args)
		if _, next := nextCallOf(t, res); cmp.Diff(m{"handle": gate["handle"], "answer": m{"optionId": "revise"}}, next) != "" {
			t.Errorf("%s: next is %v", name, next)
		}
	}
	for name, args := range map[string]m{
		"an option that the gate does not have": {"handle": gate["handle"], "answer": "yes"},
		"an unknown member name":                {"handle": gate["handle"], "verdict": "yes"},
	} {
		res, _ := callRaw(t, cs, "workflow_continue", args)
		if tool, next := nextCallOf(t, res); tool != "workflow_continue" || cmp.Diff(m{"handle": gate["handle"]}, next) != "" || !strings.Contains(encodeJSON(t, res["next"]), `"choices":["confirm","revise"]`) {
			t.Errorf("%s: next is %v", name, res["next"])
		}
	}
	if next := atGate["next"]; next != nil {
		t.Errorf("a human approval suggests a call to the agent: %v", next)
	}
	res, _ := callRaw(t, cs, "workflow_continue", m{"handle": atGate["handle"], "answer": "confirm"})
	if tool, next := nextCallOf(t, res); tool != "workflow_status" {
		t.Errorf("a bad answer to a human approval suggests %s %v", tool, next)
	}
}

// TestRefusalsKeepValidValues checks that the call suggested after a refusal keeps the
// caller's values, without the refused ones.
func TestRefusalsKeepValidValues(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	writeToCatalog(t, r, "checked.json", `{"id":"checked","title":"Checked","version":"1.0.0","description":"A checked workflow","initialPhase":"a","variables":[{"name":"report","type":"object"}],"phases":[
		{"id":"a","name":"A","steps":[{"id":"s","name":"S","actions":[{"action":"validate","target":"report.ok","value":true,"message":"report must be ok"}]}],"transitions":[{"to":"b"}]},
		{"id":"b","name":"B","steps":[{"id":"t","name":"T"}]}]}`)
	cs := connectClient(t, r.server, "memory", "ann", protocolVersions()[0], nil)
	guarded := callTool(t, cs, "workflow_start", map[string]any{"workflowId": "guarded"})["handle"]
	checked := callTool(t, cs, "workflow_start", map[string]any{"workflowId": "checked"})["handle"]
	for name, tt := range map[string]struct {
		args map[string]any
		want map[string]any // the suggested arguments, apart from the handle
	}{
		"a placeholder as notes": {
			map[string]any{"handle": guarded, "output": "PLAN", "notes": "...", "context": map[string]any{"n": 1.0}},
			map[string]any{"context": map[string]any{"n": 1.0}},
		},
		"a placeholder in the context": {
			map[string]any{"handle": guarded, "output": "PLAN", "context": map[string]any{"n": 1.0, "about": map[string]any{"text": "...", "size": 2.0}}},
			map[string]any{"context": map[string]any{"n": 1.0, "about": map[string]any{"size": 2.0}}},
		},
		"another step": {
			map[string]any{"handle": guarded, "stepId": "later", "output": "PLAN", "context": map[string]any{"n": 1.0}},
			map[string]any{"context": map[string]any{"n": 1.0}},
		},
		"a member that fails a check": {
			map[string]any{"handle": checked, "output": "done", "context": map[string]any{"n": 1.0, "report": map[string]any{"ok": false, "files": []any{"x.go"}}}},
			map[string]any{"output": "done", "context": map[string]any{"n": 1.0, "report": map[string]any{"files": []any{"x.go"}}}},
		},
	} {
		res, isError := callRaw(t, cs, "workflow_continue", tt.args)
		got, _ := memberAt(res, "next/arguments").(map[string]any)
		if !isError || got == nil {
			t.Errorf("%s: %v", name, res)
			continue
		}
		delete(got, "handle")
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s: the suggested arguments (-want +got):\n%s", name, d)
		}
	}
}
