package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/cli/app"
	requestscmd "github.com/guideway-dev/guideway/internal/cli/requests"
	"github.com/guideway-dev/guideway/internal/cli/server"
	"github.com/guideway-dev/guideway/internal/gateway"
	"github.com/guideway-dev/guideway/internal/gateway/requestlog"
)

const watchedGraph = `id: watched
name: Watched
workflowType: tools/call
bindings: [{ upstream: one, tool: echo }]
nodes:
  - { id: start, type: start }
  - { id: add, type: hook, data: { label: Add a word, hook: { script: "console.log('sees', context.request.params.arguments.text); context.request.params.arguments.text += '!';" } } }
  - { id: call, type: mcp-call }
  - { id: later, type: hook, data: { hook: { blocking: false, script: "await sleep(200); console.log('later');" } } }
  - { id: end, type: end }
edges: [{ source: start, target: add }, { source: add, target: call }, { source: call, target: later }, { source: call, target: end }]
`

// listRequests runs guideway requests list and returns its answer.
func (d *hookProject) listRequests(flags string) []requestlog.Entry {
	d.Helper()
	code, text := d.runCommand("requests list --json " + flags)
	var answer requestscmd.RequestsListAnswer
	if err := json.Unmarshal([]byte(text), &answer); err != nil || code != app.ExitOK {
		d.Fatalf("requests list %s: %d, %v: %s", flags, code, err, text)
	}
	return answer.Entries
}

// A call of an agent is in the log soon after, with the result of each hook, including
// fire-and-forget hooks. Its content is only logged if that is enabled.
func TestRequestLog(t *testing.T) {
	t.Parallel()
	d, _ := newGatewayProject(t)
	graph := filepath.Join(t.TempDir(), "watched.yaml")
	writeFile(t, graph, watchedGraph)
	d.wantCommand(app.ExitOK, "No requests found", "requests list")
	d.wantCommand(app.ExitOK, "", "hooks import "+graph)
	d.wantCommand(app.ExitOK, "", "hooks enable watched")
	a := d.connectClient("--toolsets", "gateway")
	if got := a.callWithText("one__echo", "a plain word"); got != "a plain word!" {
		t.Fatalf("the call returned %s", got)
	}
	a.callWithText("one__fail", "x")
	a.callWithText("one__nothing", "x")
	var list []requestlog.Entry
	waitFor(t, func() bool { list = d.listRequests(""); return len(list) == 3 })
	if list[0].Status != requestlog.StatusRefused || list[1].Status != requestlog.StatusToolError || list[2].Status != requestlog.StatusOK || list[2].Hooks[0] != "watched" {
		t.Errorf("%+v", list)
	}
	var e requestlog.Entry
	waitFor(t, func() bool { // the fire-and-forget hook ends later
		_, text := d.runCommand("requests show --json " + list[2].ID)
		return json.Unmarshal([]byte(text), &e) == nil && strings.Contains(text, `"later"`) && !strings.Contains(text, `"pending"`)
	})
	nodes := map[string]requestlog.Node{}
	for _, n := range e.Graphs[0].Nodes {
		nodes[n.ID] = n
	}
	add := nodes["add"]
	if add.Label != "Add a word" || add.MS <= 0 || len(add.Changes) != 1 || add.Changes[0].Pointer != "/request/params/arguments/text" || add.Changes[0].After != nil {
		t.Errorf("the trace of the hook is %+v", add)
	}
	if later := nodes["later"]; !later.FireAndForget || len(later.Console) != 1 || later.MS < 200 {
		t.Errorf("the trace of the fire-and-forget hook is %+v", later)
	}
	if e.Request != nil || e.Response != nil {
		t.Errorf("the entry contains the bodies: %+v", e)
	}
	a.end()
	d.wantCommand(app.ExitOK, "Add a word", "requests show "+e.ID)
	d.wantCommand(app.ExitOK, "echo", "requests stats")
	d.wantCommand(app.ExitUsage, "unknown status", "requests list --status odd")
	d.wantCommand(app.ExitUsage, "is not a cursor", "requests list --cursor 7")
	d.wantCommand(app.ExitFailed, "there is no recorded request", "requests show q_nothing")
	if got := d.listRequests("--failed"); len(got) != 1 || got[0].Tool != "fail" {
		t.Errorf("the failed requests are %+v", got)
	}
	if got := d.listRequests("--hook watched --upstream one --tool ec* plain"); len(got) != 0 {
		t.Errorf("the search for a word of the arguments found %+v", got)
	}

	b := d.connectClient("--toolsets", "gateway", "--record-bodies")
	b.callWithText("one__echo", "password=hunter2hunter2")
	waitFor(t, func() bool { list = d.listRequests("--tool echo"); return len(list) == 2 })
	b.end()
	_, text := d.runCommand("requests show --json " + list[0].ID)
	if !strings.Contains(text, `"request"`) || strings.Contains(text, "hunter2") {
		t.Errorf("the entry with bodies is %s", text)
	}
	d.wantCommand(app.ExitOK, "Deleted: 0", "requests prune")
	d.wantCommand(app.ExitOK, "Deleted: 3", "requests prune --max-size 1B")
}

// If requests.record is off, nothing is logged.
func TestRequestLogDisabled(t *testing.T) {
	t.Parallel()
	d, _ := newGatewayProject(t)
	a := d.connectClient("--toolsets", "gateway", "--record-requests=false")
	a.callWithText("one__echo", "hi")
	a.end()
	if len(d.listRequests("")) != 0 {
		t.Error("the request was recorded")
	}
	cfg, err := (&app.App{Host: &d.host, Flags: &app.SettingFlags{}}).Load()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(server.RequestLogPath(cfg)); err == nil {
		t.Error("the log file exists")
	}
	d.wantCommand(app.ExitOK, "requests.record is off", "requests list --record-requests=false")
}

// The gateway and the request log use the same status names.
func TestOutcomesMatchStatuses(t *testing.T) {
	t.Parallel()
	outcomes, statuses := []gateway.Outcome{
		gateway.OutcomeOK, gateway.OutcomeToolError, gateway.OutcomeAnswered, gateway.OutcomeAsked, gateway.OutcomeHeld, gateway.OutcomeDenied, gateway.OutcomeRefused,
		gateway.OutcomeTimeout, gateway.OutcomeCancelled, gateway.OutcomeCrash, gateway.OutcomeError,
	}, requestlog.Statuses()
	for i := range max(len(outcomes), len(statuses)) {
		if i >= len(outcomes) || i >= len(statuses) || string(outcomes[i]) != string(statuses[i]) {
			t.Fatalf("the outcomes %v differ from the statuses %v", outcomes, statuses)
		}
	}
}
