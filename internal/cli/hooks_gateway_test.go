package cli

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/gateway/upstream/upstreamtest"
)

// gatewayClient is a client of `guideway mcp` in this process.
type gatewayClient struct {
	*transcriptClient
	end func()
}

// connectClient starts the program with the settings of a project and does the handshake.
func (d *hookProject) connectClient(args ...string) *gatewayClient {
	d.Helper()
	return d.startClient(append([]string{"mcp"}, args...)...)
}

// sendRequest sends a request and returns the answer; notifications in between are skipped.
func (a *gatewayClient) sendRequest(method string, params map[string]any) (answer struct {
	ID     int
	Result json.RawMessage
	Error  *struct{ Message string }
},
) {
	a.t.Helper()
	a.id++
	a.writeMessage(map[string]any{"jsonrpc": "2.0", "id": a.id, "method": method, "params": params})
	for answer.ID != a.id {
		line, err := a.out.ReadString('\n')
		if err != nil {
			a.t.Fatalf("%s: no answer: %v", method, err)
		}
		if err := json.Unmarshal([]byte(line), &answer); err != nil {
			a.t.Fatalf("%s: %v: %s", method, err, line)
		}
	}
	return answer
}

// callWithText calls a tool with one text, and returns the text of the answer.
func (a *gatewayClient) callWithText(tool, text string) string {
	a.t.Helper()
	answer := a.sendRequest("tools/call", map[string]any{"name": tool, "arguments": map[string]any{"text": text}})
	if answer.Error != nil {
		return "error: " + answer.Error.Message
	}
	var result struct {
		Content []struct{ Text string }
		IsError bool
	}
	if err := json.Unmarshal(answer.Result, &result); err != nil || len(result.Content) == 0 {
		a.t.Fatalf("%s: %s", tool, answer.Result)
	}
	if result.IsError {
		return "isError: " + result.Content[0].Text
	}
	return result.Content[0].Text
}

func (a *gatewayClient) toolNames() []string {
	a.t.Helper()
	var list struct{ Tools []struct{ Name string } }
	if err := json.Unmarshal(a.sendRequest("tools/list", map[string]any{}).Result, &list); err != nil {
		a.t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	return names
}

// newGatewayProject returns a project with this binary as an upstream; the file count gets
// a line for each call of its tool "count".
func newGatewayProject(t *testing.T) (d *hookProject, count string) {
	t.Helper()
	d = newHookProject(t)
	count = filepath.Join(t.TempDir(), "count")
	d.addTestUpstream(count, "good")
	return d, count
}

// addTestUpstream adds this binary as an upstream with modes.
func (d *hookProject) addTestUpstream(count, modes string) {
	d.Helper()
	program, err := os.Executable()
	if err != nil {
		d.Fatal(err)
	}
	d.wantCommand(app.ExitOK, "", "upstream add one --env "+upstreamtest.Variable+"="+modes+" --env "+upstreamtest.CountFile+"="+count+" -- "+program)
}

const failingGraph = `id: failing
name: Failing
workflowType: tools/call
bindings: [{ upstream: one, tool: env }]
nodes:
  - { id: start, type: start }
  - { id: h, type: hook, data: { hook: { script: "null.x;" } } }
  - { id: call, type: mcp-call }
  - { id: end, type: end }
edges: [{ source: start, target: h }, { source: h, target: call }, { source: call, target: end }]
`

// TestGatewayRunsHookGraphs checks hook graphs in the running gateway: a response is
// redacted, a call is refused by its argument, a call is audited in the background, tools
// are renamed, and a hook that fails blocks the call. The audited call is sent once.
func TestGatewayRunsHookGraphs(t *testing.T) {
	t.Parallel()
	d, count := newGatewayProject(t)
	failing := filepath.Join(t.TempDir(), "failing.yaml")
	writeFile(t, failing, failingGraph)
	for _, command := range []string{
		"hooks import --template redact-secrets --id redact --upstream one --tool echo",
		"hooks import --template block-by-argument --id block --upstream one --tool params",
		"hooks import --template audit-calls --id audit --upstream one --tool count",
		`hooks import --template rename-tools --id names --upstream one --set names={"params":"show"}`,
		`hooks import --template rename-tools-back --id names-back --upstream one --tool show --set names={"params":"show"}`,
		"hooks import " + failing,
		"hooks enable redact", "hooks enable block", "hooks enable audit", "hooks enable names", "hooks enable names-back", "hooks enable failing",
	} {
		d.wantCommand(app.ExitOK, "", command)
	}
	a := d.connectClient("--toolsets", "gateway")
	if names := a.toolNames(); !slices.Contains(names, "one__show") || slices.Contains(names, "one__params") || !slices.Contains(names, "one__echo") {
		t.Errorf("the tools are %v", names)
	}
	for _, c := range []struct{ tool, text, want string }{
		{"one__echo", "key AKIAABCDEFGHIJKLMNOP", "key [redacted]"},
		{"one__show", "plain", `{"name":"params","arguments":{"text":"plain"}`},
		{"one__show", "/home/u/.ssh/id_rsa", "isError: "},
		{"one__params", "/home/u/.ssh/id_rsa", "it names a file of secrets"},
		{"one__env", "x", "isError: "},
		{"one__count", "x", "counted"},
	} {
		if got := a.callWithText(c.tool, c.text); !strings.Contains(got, c.want) {
			t.Errorf("%s %q gives %s", c.tool, c.text, got)
		}
	}
	var lines []string
	waitFor(t, func() bool { // the audit hook runs in the background
		lines = auditLines(t, &d.host)
		return len(lines) > 0
	})
	a.end()
	if text, err := os.ReadFile(count); err != nil || string(text) != "once\n" {
		t.Errorf("the tool's count is %q, %v, want one call", text, err)
	}
	if len(lines) != 1 || !strings.Contains(lines[0], `"graph":"audit"`) || !strings.Contains(lines[0], `"tool":"count"`) || !strings.Contains(lines[0], `"serverName":"one"`) {
		t.Errorf("the audit is %q, want one line of the graph audit", lines)
	}
}

// Graphs that are enabled or disabled while a gateway runs take effect soon after, and
// clients are notified that the tool list has changed.
func TestGatewayFollowsHookGraphs(t *testing.T) {
	t.Parallel()
	d, _ := newGatewayProject(t)
	d.wantCommand(app.ExitOK, "", `hooks import --template rename-tools --id names --upstream one --set names={"echo":"say"}`)
	a := d.connectClient("--toolsets", "gateway")
	for _, step := range []struct{ command, tool string }{
		{"hooks enable names", "one__say"}, {"hooks disable names", "one__echo"},
	} {
		before := a.toolNames()
		if slices.Contains(before, step.tool) {
			t.Fatalf("the tools are %v before the change", before)
		}
		d.wantCommand(app.ExitOK, "", step.command)
		for told := false; !told; {
			line, err := a.out.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			told = strings.Contains(line, "notifications/tools/list_changed")
		}
		if names := a.toolNames(); !slices.Contains(names, step.tool) {
			t.Errorf("after %s the tools are %v", step.command, names)
		}
	}
	a.end()
}

// auditLines returns the lines of the audit log.
func auditLines(t *testing.T, host *app.Host) []string {
	t.Helper()
	a := &app.App{Host: host, Flags: &app.SettingFlags{}}
	cfg, err := a.Load()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(cfg.DataDir, "hooks-audit.jsonl"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return slices.Collect(strings.Lines(string(text)))
}

// waitForNotification reads messages until one has the method.
func (a *gatewayClient) waitForNotification(method string) {
	a.t.Helper()
	for {
		line, err := a.out.ReadString('\n')
		if err != nil {
			a.t.Fatal(err)
		}
		if strings.Contains(line, method) {
			return
		}
	}
}
