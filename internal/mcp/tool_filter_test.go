package mcp_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	mcpserver "github.com/guideway-dev/guideway/internal/mcp"
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
