package cli

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/guideway-dev/guideway/internal/audit"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/gateway/holds"
)

// holdGraph holds calls of the tool env.
const holdGraph = `id: ask-first
name: Ask first
workflowType: tools/call
bindings: [{ upstream: one, tool: env }]
nodes:
  - { id: start, type: start }
  - { id: h, type: hook, data: { hook: { script: "return { hold: 'it shows secrets' };" } } }
  - { id: call, type: mcp-call }
  - { id: end, type: end }
edges: [{ source: start, target: h }, { source: h, target: call }, { source: call, target: end }]
`

// heldCallID returns the id of the held call in an answer.
func heldCallID(t *testing.T, answer string) string {
	t.Helper()
	id := regexp.MustCompile(`"heldCall":"(hc_\w+)"`).FindStringSubmatch(answer)
	if id == nil {
		t.Fatalf("the call is not held: %s", answer)
	}
	return id[1]
}

// TestHeldCallsAtTheTerminal checks that the running program holds calls, by the setting and
// by a hook graph, and sends one after a person approved it with the passphrase; that a
// denied call is refused; and that the request log shows all of it.
func TestHeldCallsAtTheTerminal(t *testing.T) {
	t.Parallel()
	const words = "four words in a row"
	d, count := newGatewayProject(t)
	d.writeSettings(`{"tools":{"hold":["one__count"]}}`)
	graph := filepath.Join(t.TempDir(), "ask-first.yaml")
	writeFile(t, graph, holdGraph)
	d.wantCommand(app.ExitOK, "", "hooks import "+graph)
	d.wantCommand(app.ExitOK, "", "hooks enable ask-first")
	a := d.connectClient("--toolsets", "gateway")
	a.toolNames()
	first := a.callWithText("one__count", "password=hunter22hunter22")
	id := heldCallID(t, first)
	if !strings.Contains(first, "guideway calls approve "+id) {
		t.Errorf("the answer does not name the command: %s", first)
	}
	hooked := a.callWithText("one__env", "x")
	if !strings.Contains(hooked, "the hook graph ask-first: it shows secrets") {
		t.Errorf("the call with a hook: %s", hooked)
	}

	d.wantCommand(app.ExitFailed, "no passphrase has been set", "calls approve "+id, words, "")
	d.wantCommand(app.ExitOK, "", "runs approve --set-passphrase", words, words)
	d.wantCommand(app.ExitFailed, "incorrect passphrase", "calls approve "+id, "a guess", "")
	d.wantCommand(app.ExitOK, id+"  waiting", "calls list --status waiting")
	if _, out := d.runCommand("calls list"); strings.Contains(out, "hunter22") || !strings.Contains(out, "[redacted") {
		t.Errorf("the list shows a secret:\n%s", out)
	}
	code, out := d.runCommand("calls approve "+id, words, "be quick")
	for _, want := range []string{"one__count", `"text": "password=hunter22hunter22"`, "the configuration holds calls of one__count", "Approved. The client"} {
		if code != app.ExitOK || !strings.Contains(out, want) {
			t.Errorf("exit code %d, without %q:\n%s", code, want, out)
		}
	}
	d.wantCommand(app.ExitFailed, "is approved; only a call that waits", "calls approve "+id, words, "")
	if got := a.callWithText("one__count", "password=hunter22hunter22"); got != "counted" {
		t.Errorf("the approved call: %s", got)
	}
	second := heldCallID(t, a.callWithText("one__count", "password=hunter22hunter22"))
	d.wantCommand(app.ExitOK, "Denied.", "calls deny "+second, words, "not again")
	if got := a.callWithText("one__count", "password=hunter22hunter22"); !strings.Contains(got, "a person denied this call") || !strings.Contains(got, "not again") {
		t.Errorf("the denied call: %s", got)
	}
	a.end()
	if text, err := os.ReadFile(count); err != nil || string(text) != "once\n" {
		t.Errorf("the tool's count is %q %v, want one call", text, err)
	}
	checkHeldEntries(t, d, id, second)
	d.wantCommand(app.ExitOK, "used", "calls show "+id)
	d.wantCommand(app.ExitFailed, "there is no held call", "calls show hc_nothing")
}

// checkHeldEntries checks that the request log shows held, approved and denied calls.
func checkHeldEntries(t *testing.T, d *hookProject, used, denied string) {
	t.Helper()
	_, out := d.runCommand("requests list --tool count --json")
	var log struct {
		Requests []struct{ Status, HeldCall string }
	}
	if err := json.Unmarshal([]byte(out), &log); err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	var got []string
	for _, e := range log.Requests {
		got = append(got, e.Status+" "+e.HeldCall)
	}
	want := "denied " + denied + ", held " + denied + ", ok " + used + ", held " + used
	if strings.Join(got, ", ") != want {
		t.Errorf("the request log has %q, want %q", got, want)
	}
}

// TestHeldCallCannotBeApprovedElsewhere checks that no command answers a held call without a terminal,
// and that no other files replace the passphrase of the person.
func TestHeldCallCannotBeApprovedElsewhere(t *testing.T) {
	t.Parallel()
	b := newGuardedInstallation(t, "")
	held := b.holdCall()
	for _, w := range b.relocations() {
		b.runAtTerminal(w, "runs approve --set-passphrase", agentsWords, agentsWords)
		if code, out := b.runAtTerminal(w, "calls approve "+held, agentsWords, ""); code == app.ExitOK {
			t.Fatalf("%s: the call was approved:\n%s", w, out)
		}
	}
	if code, out := b.runAtTerminal(relocation{}, "calls show "+held); code != app.ExitOK || !strings.Contains(out, "waiting") {
		t.Errorf("the call does not wait:\n%s", out)
	}
	if code, out := b.runAtTerminal(relocation{}, "calls approve "+held, personsWords, ""); code != app.ExitOK {
		t.Errorf("the person cannot approve the call:\n%s", out)
	}
	if _, out := b.runAtTerminal(relocation{}, "audit list"); strings.Count(out, "call "+held) != 1 {
		t.Errorf("the approval is not in the audit log once:\n%s", out)
	}
	host, _ := newTerminal(t, nil)
	host.Dir, host.Getenv, host.InTerminal = b.home, homeDirectory(b.home), false
	for _, command := range []string{"approve", "deny"} {
		if code := Run(t.Context(), []string{"calls", command, held}, host); code != app.ExitUsage {
			t.Errorf("without a terminal, calls %s has the exit code %d", command, code)
		}
	}
}

// TestAuditOutlivesTheRequest checks that an answer is in the audit log if its client is gone
// when it is recorded.
func TestAuditOutlivesTheRequest(t *testing.T) {
	t.Parallel()
	host, out := newTerminal(t, nil)
	a := &app.App{Host: &host, Flags: &app.SettingFlags{}}
	t.Cleanup(a.Close)
	cfg, _, err := a.LoadUser()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a.NewAudit(cfg).Record(ctx, audit.Entry{Kind: audit.Approval, User: "ann", Subject: "call hc_1 of push"})
	if code := Run(t.Context(), []string{"audit", "list"}, host); code != app.ExitOK || !strings.Contains(out.String(), "call hc_1 of push") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
}

// holdCall creates a held call of the user and returns its id.
func (b *guardedInstallation) holdCall() string {
	b.t.Helper()
	host, _ := newTerminal(b.t, nil)
	host.Dir, host.Getenv = b.home, homeDirectory(b.home)
	a := &app.App{Host: &host, Flags: &app.SettingFlags{}}
	cfg, person, err := a.LoadUser()
	if err != nil {
		b.t.Fatal(err)
	}
	c, err := a.OpenHolds(cfg).Claim(b.t.Context(), holds.Request{Binding: holds.Binding{User: person.User, Tool: "push"}, Name: "git__push", Wait: 10_000 * time.Hour})
	if err != nil {
		b.t.Fatal(err)
	}
	return c.ID
}

// TestHeldCallLetsTheAgentStop checks that an agent may stop while a call of its run waits
// for a person, and no longer after the answer; a call of another user, and one without the
// run, do not count.
func TestHeldCallLetsTheAgentStop(t *testing.T) {
	t.Parallel()
	const words = "four words in a row"
	d, _ := newGatewayProject(t)
	writeFile(t, filepath.Join(d.host.Dir, "workflows", "look.yaml"), readOnlyRun)
	a := d.connectClient("--toolsets", "runs,gateway")
	other := d.connectClient("--toolsets", "runs,gateway")
	start := func(a *gatewayClient, session string) {
		answer := a.sendRequest("tools/call", map[string]any{"name": "workflow_start", "arguments": map[string]any{"workflowId": "look", "goal": "look"}})
		event, err := json.Marshal(map[string]any{"session_id": session, "tool_name": "mcp__guideway__workflow_start", "tool_input": map[string]any{}, "tool_response": answer.Result})
		if err != nil {
			t.Fatal(err)
		}
		d.wantHook("PostToolUse", string(event), "")
	}
	start(a, "one")
	start(other, "two")
	held := heldCallID(t, a.callWithText("one__env", "x"))
	d.wantHook("Stop", `{"session_id":"one"}`, "")
	d.wantHook("Stop", `{"session_id":"two"}`, `"decision":"block"`)
	d.wantCommand(app.ExitOK, "", "runs approve --set-passphrase", words, words)
	d.wantCommand(app.ExitOK, "Approved.", "calls approve "+held, words, "")
	d.wantHook("Stop", `{"session_id":"one"}`, `"decision":"block"`)
	a.end()
	other.end()
}

// wantHook answers an event of Claude Code and checks that the answer contains a text, or is
// empty.
func (d *hookProject) wantHook(event, input, want string) {
	d.Helper()
	d.out.Reset()
	host := d.host
	host.In = strings.NewReader(input)
	code := Run(d.Context(), []string{"client-hook", "claude-code", event}, host)
	if out := d.out.String(); code != app.ExitOK || !strings.Contains(out, want) || want == "" && out != "" {
		d.Errorf("%s %s is answered %s with the exit code %d, want %q", event, input, out, code, want)
	}
}
