package mcp_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	mcpserver "github.com/guideway-dev/guideway/internal/mcp"
	"github.com/guideway-dev/guideway/workflows"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// copyMachine copies a bundled machine into the custom source.
func copyMachine(t *testing.T, r *testServer) {
	t.Helper()
	to := filepath.Join(r.dir, "machines", "research-panel")
	if err := os.MkdirAll(to, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"machine.json", "roles.json", "script.js"} {
		text, err := workflows.FS().Open("machines/research-panel/" + name)
		if err != nil {
			t.Fatal(err)
		}
		defer text.Close()
		file, err := os.Create(filepath.Join(to, name))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.ReadFrom(text); err != nil {
			t.Fatal(err)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// With "auto" a client gets the default tools. The tools for phases and machines appear as
// soon as the user has such a definition, for open connections too, and stay.
func TestAutomaticToolsets(t *testing.T) {
	t.Parallel()
	defaults := toolNames(t, connectClient(t, newTestServer(t).server, "memory", "ann", "2025-11-25", nil))
	for _, transport := range []string{"stdio", "http"} {
		for _, tt := range []struct {
			toolset, tool string
			add           func(*testing.T, *testServer)
		}{
			{"phases", "get_phase", func(t *testing.T, r *testServer) {
				t.Helper()
				writeToCatalog(t, r, "routed/routed.json", phasesWithRoute("b"))
			}},
			{"machines", "machine_start", copyMachine},
		} {
			t.Run(transport+" "+tt.toolset, func(t *testing.T) {
				t.Parallel()
				r := newTestServer(t, func(o *mcpserver.Options) {
					o.Toolsets, o.Machines = []string{mcpserver.ToolsetAuto}, &waitingMachines{}
				})
				changed := make(chan struct{}, 10)
				cs := connectClient(t, r.server, transport, "ann", "2025-11-25", &mcp.ClientOptions{
					ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} },
				})
				if names := toolNames(t, cs); !slices.Equal(names, defaults) {
					t.Errorf("at first the tools are %v, want %v", names, defaults)
				}
				if result, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: tt.tool}); err == nil {
					t.Errorf("a tool that is not offered returned %+v", result)
				}
				tt.add(t, r)
				if err := r.catalog.Load(t.Context()); err != nil {
					t.Fatal(err)
				}
				<-changed
				later := connectClient(t, r.server, transport, "bob", "2026-07-28", nil)
				for _, each := range []*mcp.ClientSession{cs, later} {
					names := toolNames(t, each)
					if !slices.Contains(names, tt.tool) || slices.ContainsFunc(defaults, func(name string) bool { return !slices.Contains(names, name) }) {
						t.Errorf("with the definition, the tools are %v", names)
					}
				}
				if err := os.RemoveAll(r.dir); err != nil {
					t.Fatal(err)
				}
				if err := r.catalog.Load(t.Context()); err != nil {
					t.Fatal(err)
				}
				if names := toolNames(t, cs); !slices.Contains(names, tt.tool) {
					t.Errorf("without the definition, the tools are %v", names)
				}
			})
		}
	}
}

// Named toolsets are offered as they are: nothing is added, also not with "auto".
func TestNamedToolsetsAreFixed(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		toolsets []string
		phases   bool
		sessions bool
	}{
		"named":           {[]string{mcpserver.ToolsetSteps}, false, false},
		"auto and phases": {[]string{mcpserver.ToolsetAuto, mcpserver.ToolsetPhases}, true, true},
		"phases and auto": {[]string{mcpserver.ToolsetPhases, mcpserver.ToolsetAuto}, true, true},
	} {
		r := newTestServer(t, func(o *mcpserver.Options) { o.Toolsets = tt.toolsets })
		for range 2 {
			names := toolNames(t, connectClient(t, r.server, "memory", "ann", "2025-11-25", nil))
			if slices.Contains(names, "get_phase") != tt.phases || slices.Contains(names, "workrail_create_session") != tt.sessions {
				t.Errorf("%s: the tools are %v", name, names)
			}
			if len(slices.Compact(slices.Sorted(slices.Values(names)))) != len(names) {
				t.Errorf("%s: a tool is listed twice: %v", name, names)
			}
			if !tt.phases {
				writeToCatalog(t, r, "routed/routed.json", phasesWithRoute("b"))
			}
		}
	}
	if _, err := mcpserver.New(mcpserver.Options{Toolsets: []string{"all"}}); err == nil {
		t.Error("an unknown toolset is accepted")
	}
}
