package mcp_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	mcpserver "github.com/guideway-dev/guideway/internal/mcp"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A client creates, updates and reads a document over every transport with both protocol
// versions.
func TestSessionDocuments(t *testing.T) {
	t.Parallel()
	forEachTransport(t, func(t *testing.T, transportName, version string) {
		r := newTestServer(t)
		cs := connectClient(t, r.server, transportName, "ann", version, nil)
		name := func(more map[string]any) map[string]any {
			args := map[string]any{"workflowId": "bug", "sessionId": "T-1"}
			for k, v := range more {
				args[k] = v
			}
			return args
		}
		made := callTool(t, cs, "workrail_create_session", name(map[string]any{"initialData": map[string]any{"a": map[string]any{"b": 1}, "list": []any{1}}}))
		want := map[string]any{
			"success": true, "sessionId": "T-1", "workflowId": "bug", "projectId": "0123456789ab",
			"path": "guideway://sessions/0123456789ab/bug/T-1", "message": "Session created: bug/T-1", "createdAt": made["createdAt"],
		}
		if d := cmp.Diff(want, made); d != "" || made["createdAt"] == nil {
			t.Errorf("workrail_create_session (-want +got):\n%s", d)
		}
		again, isError := callRaw(t, cs, "workrail_create_session", name(nil))
		if !isError || again["success"] != false || again["code"] != "conflict" || again["tool"] != "workrail_create_session" || again["fix"] == nil ||
			again["error"] != "session already exists: bug/T-1" {
			t.Errorf("creating the document again returns %v", again)
		}
		updated := callTool(t, cs, "workrail_update_session", name(map[string]any{"updates": map[string]any{"a": map[string]any{"c": nil}, "dashboard.progress": 25, "list": []any{}}}))
		if updated["success"] != true || updated["message"] != "Session updated: bug/T-1" || updated["updatedAt"] == nil {
			t.Errorf("workrail_update_session = %v", updated)
		}
		for path, want := range map[string]any{
			"a": map[string]any{"b": 1.0, "c": nil}, "dashboard.progress": 25.0, "list": []any{}, "a.c": nil, "$.a.b": 1.0,
		} {
			got := callTool(t, cs, "workrail_read_session", name(map[string]any{"path": path}))
			if data, ok := got["data"]; !ok || !cmp.Equal(data, want) || got["query"] != path || got["found"] != true || got["message"] != nil {
				t.Errorf("%s: %v, want %v", path, got, want)
			}
		}
		if got := callTool(t, cs, "workrail_read_session", name(map[string]any{"path": "a.nothing"})); got["success"] != true || got["found"] != false ||
			slices.Contains(sortedMembers(got), "data") || !strings.Contains(textMember(got, "message"), "Nothing was found at a.nothing in the session document bug/T-1") {
			t.Errorf("reading a missing path returns %v", got)
		}
		if got := callTool(t, cs, "workrail_read_session", name(nil)); got["query"] != "(full session)" {
			t.Errorf("reading the whole document returns %v", got)
		}
		if got := callTool(t, cs, "workrail_read_session", map[string]any{"workflowId": "w", "sessionId": "none", "path": "$schema"}); got["data"] == nil {
			t.Errorf("$schema: %v", got)
		}
		lost, isError := callRaw(t, cs, "workrail_read_session", map[string]any{"workflowId": "bug", "sessionId": "none"})
		if !isError || lost["success"] != false || lost["code"] != "not_found" ||
			lost["suggestion"] != "Make sure the session exists. Use workrail_create_session() first." || !strings.Contains(textMember(lost, "error"), "session not found: bug/none") {
			t.Errorf("reading a missing document returns %v", lost)
		}
	})
}

func sortedMembers(m map[string]any) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	return out
}

// TestSessionToolErrors checks that an invalid or incomplete call returns an error with a
// fix or a next call, and writes nothing.
func TestSessionToolErrors(t *testing.T) {
	t.Parallel()
	nowhere := func(o *mcpserver.Options) { o.Project = func(context.Context) run.Project { return run.Project{} } }
	tests := []struct {
		name, tool string
		args       map[string]any
		nowhere    bool
		message    string
	}{
		{"a path as an id", "workrail_create_session", map[string]any{"workflowId": "bug", "sessionId": "../etc"}, false, "not a valid id"},
		{"a slash in a workflow", "workrail_create_session", map[string]any{"workflowId": "a/b", "sessionId": "s"}, false, "not a valid id"},
		{"no id", "workrail_update_session", map[string]any{"workflowId": "bug", "updates": map[string]any{}}, false, "sessionId parameter is required"},
		{"updates as text", "workrail_update_session", map[string]any{"workflowId": "bug", "sessionId": "s", "updates": "{}"}, false, "updates must be an object"},
		{"no project", "workrail_create_session", map[string]any{"workflowId": "bug", "sessionId": "s"}, true, "project is required"},
		{"a relative project", "workrail_read_session", map[string]any{"workflowId": "bug", "sessionId": "s", "project": "src"}, true, "neither an absolute path"},
	}
	for _, tt := range tests {
		change := func(*mcpserver.Options) {}
		if tt.nowhere {
			change = nowhere
		}
		r := newTestServer(t, change)
		cs := connectClient(t, r.server, "memory", "ann", "2025-11-25", nil)
		res, isError := callRaw(t, cs, tt.tool, tt.args)
		if !isError || res["success"] != false || res["code"] != "invalid" || !strings.Contains(textMember(res, "error"), tt.message) ||
			res["suggestion"] == nil || res["fix"] == nil && res["next"] == nil {
			t.Errorf("%s: %v", tt.name, res)
		}
		if got := completeArgument(t, cs, "guideway://sessions/{projectId}/{+workflowId}/{+id}", "id", "", nil); len(got) != 0 {
			t.Errorf("%s: a document was written: %v", tt.name, got)
		}
	}
	r := newTestServer(t, nowhere)
	cs := connectClient(t, r.server, "memory", "ann", "2025-11-25", nil)
	a := callTool(t, cs, "workrail_create_session", map[string]any{"workflowId": "bug", "sessionId": "s", "project": "/srv/app"})
	if len(textMember(a, "projectId")) != 12 {
		t.Errorf("with a project: %v", a)
	}
	callTool(t, cs, "workrail_update_session", map[string]any{"workflowId": "bug", "sessionId": "s", "updates": map[string]any{"x": 1}})
}

// Documents are resources of their owner, with completion; for other users they do not
// exist.
func TestSessionResources(t *testing.T) {
	t.Parallel()
	for _, version := range protocolVersions() {
		r := newTestServer(t)
		ann := connectClient(t, r.server, "memory", "ann", version, nil)
		bob := connectClient(t, r.server, "memory", "bob", version, nil)
		for _, id := range []string{"T-1", "2026-11-20T10:00:00", "a.b_c"} {
			made := callTool(t, ann, "workrail_create_session", map[string]any{"workflowId": "bug", "sessionId": id, "initialData": map[string]any{"n": json.Number("12345678901234567")}})
			uri := textMember(made, "path")
			if encoded := strings.ReplaceAll(uri, "T10:00:00", "T10%3A00%3A00"); encoded != uri {
				if _, err := ann.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: encoded}); err != nil {
					t.Errorf("%s: %v", encoded, err)
				}
			}
			read, err := ann.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
			if err != nil {
				t.Errorf("%s: %v", uri, err)
				continue
			}
			if got := read.Contents[0].Text; !strings.Contains(got, `"n":12345678901234567`) || !strings.Contains(got, `"id":"`+id+`"`) {
				t.Errorf("%s: %s", uri, got)
			}
			if _, err := bob.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri}); err == nil || strings.Contains(err.Error(), "12345") {
				t.Errorf("bob reads ann's %s: %v", uri, err)
			}
		}
		callTool(t, ann, "workrail_create_session", map[string]any{"workflowId": "other", "sessionId": "T-2"})
		template := "guideway://sessions/{projectId}/{+workflowId}/{+id}"
		for _, tt := range []struct {
			name, value string
			given       map[string]string
			want        []string
		}{
			{"projectId", "01", nil, []string{"0123456789ab"}},
			{"workflowId", "", nil, []string{"bug", "other"}},
			{"id", "T", nil, []string{"T-1", "T-2"}},
			{"id", "T", map[string]string{"workflowId": "other"}, []string{"T-2"}},
			{"nothing", "", nil, []string{}},
		} {
			if got := completeArgument(t, ann, template, tt.name, tt.value, tt.given); !slices.Equal(got, tt.want) {
				t.Errorf("completion of %s %q: %v, want %v", tt.name, tt.value, got, tt.want)
			}
			if got := completeArgument(t, bob, template, tt.name, tt.value, tt.given); len(got) != 0 {
				t.Errorf("bob is shown %v", got)
			}
		}
		for _, uri := range []string{"guideway://sessions/0123456789ab/bug", "guideway://sessions/0123456789ab/bug/..", "guideway://sessions/x/bug/T-1"} {
			if _, err := ann.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri}); err == nil {
				t.Errorf("%s could be read", uri)
			}
		}
	}
}

// workrail_open_dashboard returns the URL of a running server; creating a document starts
// no server.
func TestOpenDashboard(t *testing.T) {
	t.Parallel()
	live := ""
	r := newTestServer(t, func(o *mcpserver.Options) {
		o.Dashboard = func(_ context.Context, id string) (string, error) {
			live = "http://127.0.0.1:3000/dashboard/"
			return live + id, nil
		}
		o.LiveDashboard = func(_ context.Context, id string) string {
			if live == "" {
				return ""
			}
			return live + id
		}
	})
	cs := connectClient(t, r.server, "memory", "ann", "2026-07-28", nil)
	first := callTool(t, cs, "workrail_create_session", map[string]any{"workflowId": "w", "sessionId": "one"})
	if first["dashboardUrl"] != nil || live != "" {
		t.Errorf("creating a document has started a server: %v", first)
	}
	opened := callTool(t, cs, "workrail_open_dashboard", map[string]any{"sessionId": "one"})
	if opened["success"] != true || opened["url"] != "http://127.0.0.1:3000/dashboard/one" || opened["note"] == nil {
		t.Errorf("workrail_open_dashboard = %v", opened)
	}
	second := callTool(t, cs, "workrail_create_session", map[string]any{"workflowId": "w", "sessionId": "two"})
	if second["dashboardUrl"] != "http://127.0.0.1:3000/dashboard/two" {
		t.Errorf("with a live server the answer is %v", second)
	}
	without := newTestServer(t, func(o *mcpserver.Options) { o.Dashboard = nil })
	for _, name := range toolNames(t, connectClient(t, without.server, "memory", "ann", "2026-07-28", nil)) {
		if name == "workrail_open_dashboard" {
			t.Error("a tool opens the dashboard, but there is none")
		}
	}
}
