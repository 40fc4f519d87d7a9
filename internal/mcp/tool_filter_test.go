package mcp_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	mcpserver "github.com/guideway-dev/guideway/internal/mcp"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// connectWithToken connects a client whose token has the given permissions.
func connectWithToken(t *testing.T, r *testServer, allow auth.Allow) *mcp.ClientSession {
	t.Helper()
	ctx := auth.WithTokenLease(auth.WithPrincipal(context.Background(), guideway.Principal{User: "ann", Client: "laptop"}),
		&auth.TokenLease{ID: "1", Name: "laptop", Allow: allow})
	near, far := mcp.NewInMemoryTransports()
	ss, err := r.server.MCP().Connect(ctx, far, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ss.Wait() })
	cs, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), near, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cs.Close() })
	return cs
}

// A token limits a client to its toolsets, in lists and calls, and to their prompts and
// resources.
func TestTokensLimitToolsets(t *testing.T) {
	t.Parallel()
	r := newTestServer(t, func(o *mcpserver.Options) { o.Toolsets = mcpserver.Toolsets() })
	for _, tt := range []struct {
		name      string
		allow     auth.Allow
		tools     []string // tools that the client may use
		not       []string // tools that the client may not use
		workflows bool
		runs      bool
	}{
		{"nothing", auth.Allow{}, nil, []string{"workflow_list", "workflow_start", "workrail_create_session", "workflow_checkpoint_list", "get_rules"}, false, false},
		{"upstreams alone", auth.Allow{Upstreams: []string{"x"}}, nil, []string{"workflow_list", "workflow_start"}, false, false},
		{"steps", auth.Allow{Toolsets: []string{"steps"}}, []string{"workflow_list", "workflow_next"}, []string{"workflow_start", "workrail_create_session"}, true, false},
		{"runs", auth.Allow{Toolsets: []string{"runs"}}, []string{"workflow_start"}, []string{"workflow_list", "workflow_checkpoint_list"}, true, true},
		{"sessions", auth.Allow{Toolsets: []string{"sessions"}}, []string{"workrail_create_session"}, []string{"workflow_list", "workflow_start"}, false, false},
		{"everything", auth.Allow{All: true}, []string{"workflow_list", "workflow_start", "workrail_create_session", "get_rules"}, nil, true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cs := connectWithToken(t, r, tt.allow)
			listed, err := cs.ListTools(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			sees := func(name string) bool {
				return slices.ContainsFunc(listed.Tools, func(tool *mcp.Tool) bool { return tool.Name == name })
			}
			calls := func(name string) bool {
				_, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: map[string]any{}})
				return err == nil || !strings.Contains(err.Error(), "unknown tool")
			}
			for _, name := range tt.tools {
				if !sees(name) || !calls(name) {
					t.Errorf("%s is missing", name)
				}
			}
			for _, name := range tt.not {
				if sees(name) || calls(name) {
					t.Errorf("%s is available", name)
				}
			}
			checkVisible(t, cs, tt.workflows, tt.runs)
		})
	}
}

// checkVisible checks the prompts, resources and completions of workflows and runs.
func checkVisible(t *testing.T, cs *mcp.ClientSession, workflows, runs bool) {
	t.Helper()
	prompts, err := cs.ListPrompts(t.Context(), nil)
	if err != nil || len(prompts.Prompts) > 0 != workflows {
		t.Errorf("the prompts are %v, %v", prompts, err)
	}
	if _, err := cs.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "guarded"}); (err == nil) != workflows {
		t.Errorf("a prompt: %v", err)
	}
	resources, err := cs.ListResources(t.Context(), nil)
	if err != nil || len(resources.Resources) > 0 != workflows {
		t.Errorf("the resources are %v, %v", resources, err)
	}
	if _, err := cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "guideway://workflows/guarded"}); (err == nil) != workflows {
		t.Errorf("a resource: %v", err)
	}
	templates, err := cs.ListResourceTemplates(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	there := slices.ContainsFunc(templates.ResourceTemplates, func(e *mcp.ResourceTemplate) bool { return strings.HasPrefix(e.URITemplate, "guideway://runs/") })
	if there != runs {
		t.Errorf("the template of runs is available: %v", there)
	}
	_, err = cs.Complete(t.Context(), &mcp.CompleteParams{
		Ref: &mcp.CompleteReference{Type: "ref/resource", URI: "guideway://runs/{runId}"}, Argument: mcp.CompleteParamsArgument{Name: "runId", Value: ""},
	})
	if (err == nil) != runs {
		t.Errorf("ids of runs are completed: %v", err)
	}
}

// A token without the toolset runs loads contexts, but reads no outputs of a run and
// continues none, neither by a handle nor by a fork.
func TestContextTokensUseNoRuns(t *testing.T) {
	t.Parallel()
	r := newTestServer(t, func(o *mcpserver.Options) { o.Toolsets = mcpserver.Toolsets() })
	owner := connectWithToken(t, r, auth.Allow{Toolsets: []string{"runs", "context"}})
	a := callTool(t, owner, "workflow_start", map[string]any{"workflowId": "guarded", "goal": "Move the login", "context": map[string]any{"log": longText("login")}})
	saved := callTool(t, owner, "workflow_checkpoint_save", map[string]any{"handle": a["handle"]})
	load := map[string]any{"checkpointId": saved["checkpointId"]}
	cs := connectWithToken(t, r, auth.Allow{Toolsets: []string{"context"}})
	for _, moved := range []bool{false, true} {
		if moved {
			callTool(t, owner, "workflow_continue", map[string]any{"handle": a["handle"], "output": "the PLAN"})
		}
		loaded := callTool(t, cs, "workflow_checkpoint_load", load)
		for _, name := range []string{"handle", "runId", "forked", "position", "next"} {
			if loaded[name] != nil {
				t.Errorf("a run that has moved %v: %s is %v", moved, name, loaded[name])
			}
		}
		if loaded["context"].(map[string]any)["log"] == nil || !strings.Contains(textMember(loaded, "note"), "toolset runs") {
			t.Errorf("a run that has moved %v: the answer is %v", moved, loaded)
		}
	}
	if list, err := r.runs.List(t.Context(), newCaller("ann"), run.Filter{User: "ann"}); err != nil || len(list) != 1 {
		t.Errorf("the runs are %v, %v", list, err)
	}

	// A reduced context of a run has no reference that the token cannot load.
	reduce := map[string]any{"sessionId": a["runId"], "budgetTokens": 50}
	reduced := callTool(t, cs, "workflow_context_compress", reduce)
	if len(reduced["omitted"].([]any)) != 0 || !strings.Contains(textMember(reduced, "over"), "toolset runs") {
		t.Errorf("the reduced context is %v", reduced)
	}
	for _, item := range callTool(t, cs, "workflow_context_prioritize", reduce)["items"].([]any) {
		if item.(map[string]any)["kept"] != true {
			t.Errorf("the prioritized context lacks %v", item)
		}
	}
	refs := []string{textMember(a, "runId") + ".1-99"}
	for _, omitted := range callTool(t, owner, "workflow_context_compress", reduce)["omitted"].([]any) {
		refs = append(refs, textMember(omitted.(map[string]any), "ref"))
	}
	if len(refs) < 2 {
		t.Fatal("nothing was omitted")
	}
	for _, ref := range refs {
		callTool(t, owner, "workflow_checkpoint_load", map[string]any{"ref": ref})
		bad := callInvalid(t, cs, "workflow_checkpoint_load", map[string]any{"ref": ref})
		if bad["code"] != string(guideway.CodeForbidden) || !strings.Contains(textMember(bad, "error"), "toolset runs") {
			t.Errorf("%s: the refusal is %v", ref, bad)
		}
	}

	// The omitted parts of a session remain available.
	session := callTool(t, cs, "workflow_context_compress", map[string]any{"context": map[string]any{"log": longText("disk")}, "budgetTokens": 50})
	callTool(t, cs, "workflow_checkpoint_load", map[string]any{"ref": session["omitted"].([]any)[0].(map[string]any)["ref"]})
	// A run without a checkpoint suggests no call that the token cannot make.
	other := callTool(t, owner, "workflow_start", map[string]any{"workflowId": "guarded"})
	if bad := callInvalid(t, cs, "workflow_checkpoint_load", map[string]any{"sessionId": other["runId"]}); strings.Contains(fmt.Sprint(bad["next"]), "workflow_status") {
		t.Errorf("a run without a checkpoint: %v", bad)
	}
}
