//go:build unix

package clients

import (
	"context"
	"encoding/json"
	"os"
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
	return server.Run(context.Background(), &mcp.StdioTransport{})
}

// Each client calls the tools of two upstreams through the gateway. It passes on the half of
// a result that programs says, and sends its model no name of more than 64 characters.
func TestGatewayInClients(t *testing.T) {
	eachClient(t, func(r *rig) {
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
		r.write(".config/guideway/guideway.json", string(settings))
		r.work([]step{
			{name: "alpha", tool: "alpha__probe", arguments: `{"q": "first"}`},
			{name: "beta", tool: "beta__" + longName[:20], arguments: `{"q": "second"}`},
		}, r.install)
		seen := r.model.text("alpha")
		for half, shown := range map[string]bool{textHalf: r.client.shows != showsStructure, structureHalf: r.client.shows != showsText} {
			if strings.Contains(seen, half) != shown {
				r.Errorf("the model of a client that shows %s receives %s", r.client.shows, seen)
			}
		}
		if seen := r.model.text("beta"); !strings.Contains(seen, "rows of beta") {
			r.Errorf("the model receives %s of the tool with the long name", seen)
		}
		for _, offered := range r.model.offered {
			if len(offered) > 64 {
				r.Errorf("the model is offered %s, a name of %d characters", offered, len(offered))
			}
		}
		r.Logf("%s: the result of a tool: %s", r.client.name, seen)
	})
}
