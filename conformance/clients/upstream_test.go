//go:build unix

package clients

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// upstreamVariable makes the test program a server of MCP with this name.
const upstreamVariable = "GUIDEWAY_TEST_UPSTREAM"

// longName is longer than the names that providers of models accept.
const longName = "count_the_rows_of_every_table_in_the_database_and_compare_them_again"

// The two halves of the result of the tool probe.
const (
	textHalf      = "WORDS-OF-THE-TEXT"
	structureHalf = "VALUE-OF-THE-STRUCTURE"
)

// serveUpstream serves the tool probe, whose result has different halves, and a tool with a
// long name.
func serveUpstream(name string) error {
	server := mcp.NewServer(&mcp.Implementation{Name: name, Version: "1.0.0"}, nil)
	schema := json.RawMessage(`{"type":"object","properties":{"q":{"type":"string"}}}`)
	add := func(tool string, result *mcp.CallToolResult) {
		server.AddTool(&mcp.Tool{Name: tool, Description: "Tool of " + name, InputSchema: schema},
			func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return result, nil })
	}
	add("probe", &mcp.CallToolResult{
		Content:           []mcp.Content{&mcp.TextContent{Text: textHalf}},
		StructuredContent: map[string]any{"v": structureHalf},
	})
	add(longName, &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "rows of " + name}}})
	add("create_issue", &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "created"}}})
	return server.Run(context.Background(), &mcp.StdioTransport{})
}

// guarded is a workflow whose step holds a tool of an upstream.
const guarded = `{"id": "guarded", "name": "Guarded", "description": "A change under supervision.", "version": "1.0.0", "steps": [
	{"id": "probe", "title": "Probe", "prompt": "Call the tool.", "tools": {"hold": ["alpha__probe"]}}]}`

// Each client calls the tools of two upstreams through the gateway. It passes on the half of
// a result that programs says, and sends its model no name of more than 64 characters. A call
// that a step holds is carried out after a person approved it at a terminal. The entry is in
// the file of the project, if the client reads one.
func TestGatewayInClients(t *testing.T) {
	eachClient(t, func(r *rig) {
		r.writeUpstreams("")
		r.write(filepath.Join("project", ".guideway", "workflows", "guarded.json"), guarded)
		approve := func() {
			r.person("", "runs approve --set-passphrase", secretWords, secretWords)
			r.person("", "calls approve "+r.model.last(`hc_[0-9a-z]{23}`), secretWords, "")
		}
		r.work(append(callUpstreams(),
			step{name: "start", tool: "workflow_start", arguments: `{"workflowId": "guarded", "goal": "call the tool"}`},
			step{name: "held", tool: "alpha__probe", arguments: `{"q": "under supervision"}`},
			step{name: "approved", tool: "alpha__probe", arguments: `{"q": "under supervision"}`, before: approve},
		), func() {
			if r.client.trust == nil {
				r.install()
				return
			}
			r.runCommand(r.guideway, "install", r.client.name, "--scope", "project")
			r.client.trust(r)
		})
		r.checkUpstreams()
		r.checkTexts(map[string][]string{"held": {"guideway calls approve hc_"}, "approved": {r.client.shows.example()}})
		for _, offered := range r.model.offered {
			if len(offered) > 64 {
				r.Errorf("the model is offered %s, a name of %d characters", offered, len(offered))
			}
		}
		r.Logf("%s: the result of a tool: %s", r.client.name, r.model.text("beta"))
	})
}

// writeUpstreams configures two upstreams of the gateway with this home directory.
func (r *rig) writeUpstreams(home string) {
	r.Helper()
	server, err := os.Executable()
	if err != nil {
		r.Fatal(err)
	}
	upstreams := object{}
	for _, name := range []string{"alpha", "beta"} {
		upstreams[name] = object{
			"command": server, "env": object{upstreamVariable: name},
			// Without a person, Codex calls only tools that are known to change nothing.
			"tools": object{"probe": object{"readOnly": true}, longName: object{"readOnly": true}},
		}
	}
	settings, err := json.Marshal(object{"toolsets": []string{"gateway", "runs", "steps"}, "upstreams": upstreams})
	if err != nil {
		r.Fatal(err)
	}
	r.write(filepath.Join(home, ".config/guideway/guideway.json"), string(settings))
}

// callUpstreams returns the steps that call a tool of each upstream.
func callUpstreams() []step {
	return []step{
		{name: "alpha", tool: "alpha__probe", arguments: `{"q": "first"}`},
		{name: "beta", tool: "beta__" + longName[:20], arguments: `{"q": "second"}`},
	}
}

// checkUpstreams checks the texts that the model receives at the steps of callUpstreams.
func (r *rig) checkUpstreams() {
	r.Helper()
	seen := r.model.text("alpha")
	for half, shown := range map[string]bool{textHalf: r.client.shows != showsStructure, structureHalf: r.client.shows != showsText} {
		if strings.Contains(seen, half) != shown {
			r.Errorf("the model of a client that shows %s receives %s", r.client.shows, seen)
		}
	}
	r.checkTexts(map[string][]string{"beta": {"rows of beta"}})
}

// example returns a part of the result of probe that the model receives.
func (h half) example() string {
	if h == showsStructure {
		return structureHalf
	}
	return textHalf
}
