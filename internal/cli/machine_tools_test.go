package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/cli/server"
	"github.com/guideway-dev/guideway/internal/machine/driver"
	"github.com/guideway-dev/guideway/internal/platform/wildcard"
)

// modelMessage is a message in a request to a model.
type modelMessage struct {
	Role    string
	Content string
}

// scriptedModel returns the response of a model: a text, or a tool call if name is not
// empty.
type scriptedModel func(last modelMessage, tools []string) (text, name, arguments string)

// serveScriptedModel starts a server with OpenAI's protocol.
func serveScriptedModel(t *testing.T, think scriptedModel) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Messages []modelMessage
			Tools    []struct{ Function struct{ Name string } }
		}
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		var tools []string
		for _, tool := range in.Tools {
			tools = append(tools, tool.Function.Name)
		}
		text, name, arguments := think(in.Messages[len(in.Messages)-1], tools)
		message := map[string]any{"role": "assistant", "content": text}
		if name != "" {
			message["tool_calls"] = []any{map[string]any{
				"id": fmt.Sprintf("call_%d", len(in.Messages)), "type": "function", "function": map[string]any{"name": name, "arguments": arguments},
			}}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": "stop"}},
			"usage": map[string]any{"prompt_tokens": 10, "completion_tokens": 5},
		})
	}))
	t.Cleanup(server.Close)
	return server.URL + "/v1"
}

// machineOf writes a machine with one agent that has the tools of included, and returns its
// path.
func machineOf(t *testing.T, dir, included string) string {
	t.Helper()
	writeFile(t, filepath.Join(dir, "helper", "machine.json"), `{
  "workflow_name": "helper", "description": "Helps.", "input": {"name": "task", "type": "string", "description": "What is to be done."},
  "output": {"name": "done", "type": "string", "description": "What was done."},
  "contexts": [{"name": "talk"}], "agents": [{"agent_role": "helper", "context": "talk", "role": "assistant"}],
  "states": [{"name": "start", "agent": "helper", "pre_handler": "ask", "post_handler": "keep"}, {"name": "stop", "input": "common_data.done"}]
}`)
	writeFile(t, filepath.Join(dir, "helper", "roles.json"), `{"helper": {"systemMessage": "Help.", "includedTools": `+included+`}}`)
	writeFile(t, filepath.Join(dir, "helper", "script.js"), `export default {
  ask() { this.workflow_contexts.get("talk").addMessage({ role: "user", content: this.common_data.task }); },
  keep() { this.common_data.done = this.last_response.choices[0].message.content; },
};`)
	return filepath.Join(dir, "helper")
}

// A machine's agent works through a guided workflow with the same tools as clients: it gets
// one step at a time, an output that violates a criterion is refused, and the end is
// reached only after all steps. The guided run has the same owner as the machine run.
func TestAgentRunsWorkflow(t *testing.T) {
	t.Parallel()
	var refused, steps []string
	url := serveScriptedModel(t, func(last modelMessage, tools []string) (text, name, arguments string) {
		if slices.Contains(tools, "machine_start") || slices.Contains(tools, "workflow_list") || !slices.Contains(tools, "workflow_start") {
			return fmt.Sprintf("wrong tools: %v", tools), "", ""
		}
		if last.Role == "user" {
			return "", "workflow_start", `{"workflowId":"small","goal":"try it"}`
		}
		handle := regexp.MustCompile(`"handle":"(h_\w+)"`).FindStringSubmatch(last.Content)
		step := regexp.MustCompile(`(?m)^step (\w+):`).FindStringSubmatch(last.Content)
		switch {
		case strings.HasPrefix(last.Content, "refused ("):
			refused = append(refused, last.Content)
			return "", "workflow_continue", `{"handle":"` + handle[1] + `","output":"The plan: begin with tests."}`
		case step == nil:
			return "walked " + strings.Join(steps, ", ") + ": " + last.Content, "", ""
		}
		steps = append(steps, step[1])
		return "", "workflow_continue", `{"handle":"` + handle[1] + `","output":"nothing"}`
	})
	host, out := newTerminal(t, map[string]string{"OPENAI_BASE_URL": url})
	writeFile(t, filepath.Join(host.Dir, "workflows", "small.yaml"), `id: small
name: Small
description: Two steps.
version: 1.0.0
steps:
  - { id: plan, title: Plan, prompt: Plan it., validationCriteria: [{ type: contains, value: tests, message: Name the tests. }] }
  - { id: work, title: Work, prompt: Do it. }
`)
	machine := machineOf(t, t.TempDir(), `["workflow_start", "workflow_continue"]`)
	code := Run(t.Context(), []string{"machine", "run", machine, "--input", "task=go", "--model", "openai:m", "--json"}, host)
	var got driver.Status
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || code != app.ExitOK {
		t.Fatalf("exit code %d, %v: %s", code, err, out)
	}
	if text := string(got.Output); !strings.HasPrefix(text, `"walked plan, work: `) || !strings.Contains(text, "completed") || len(refused) != 1 || got.Usage.ToolCalls != 4 {
		t.Errorf("the output is %s, the refusals are %v, with %d tool calls", got.Output, refused, got.Usage.ToolCalls)
	}
	out.Reset()
	if code := Run(t.Context(), []string{"runs", "list", "--json"}, host); code != app.ExitOK || !strings.Contains(out.String(), `"machine helper"`) || !strings.Contains(out.String(), "completed") {
		t.Errorf("the user's runs do not include the guided run: %s", out)
	}
}

// TestAgentCallsUpstream checks that an agent calls the tools of an upstream through the
// gateway: a blocking hook refuses a call, another tool is called once, and a tool that is
// not in the role is neither offered nor called.
func TestAgentCallsUpstream(t *testing.T) {
	t.Parallel()
	d, count := newGatewayProject(t)
	var offered, answers []string
	url := serveScriptedModel(t, func(last modelMessage, tools []string) (text, name, arguments string) {
		offered = tools
		switch {
		case last.Role == "user":
			return "", "one__params", `{"text":"/home/u/.ssh/id_rsa"}`
		case len(answers) == 0:
			answers = append(answers, last.Content)
			return "", "one__count", `{"text":"x"}`
		case len(answers) == 1:
			answers = append(answers, last.Content)
			return "", "one__echo", `{"text":"not in the role"}`
		}
		answers = append(answers, last.Content)
		return "done", "", ""
	})
	environment := d.host.Getenv
	d.host.Getenv = func(name string) string {
		if name == "OPENAI_BASE_URL" {
			return url
		}
		return environment(name)
	}
	d.wantCommand(app.ExitOK, "", "hooks import --template block-by-argument --id block --upstream one --tool params")
	d.wantCommand(app.ExitOK, "", "hooks enable block")
	machine := machineOf(t, t.TempDir(), `["one__params", "one__c*"]`)
	d.wantCommand(app.ExitOK, `"status": "completed"`, "machine run "+machine+" --input task=go --model openai:m --json")
	slices.Sort(offered)
	if !slices.Equal(offered, []string{"one__case", "one__count", "one__crash", "one__params"}) {
		t.Errorf("the agent is offered the tools %v", offered)
	}
	if len(answers) != 3 || !strings.Contains(answers[0], "it names a file of secrets") || !strings.Contains(answers[1], "counted") || !strings.Contains(answers[2], `The tool "one__echo" is not available`) {
		t.Errorf("the tool results are %q", answers)
	}
	if text, err := os.ReadFile(count); err != nil || string(text) != "once\n" {
		t.Errorf("the tool's count is %q, %v, want one call", text, err)
	}
}

// TestAgentFollowsTheToolsOfItsState checks that a call outside the policy of the machine's
// state is refused with the state, and that an allowed call is sent.
func TestAgentFollowsTheToolsOfItsState(t *testing.T) {
	t.Parallel()
	d, count := newGatewayProject(t)
	var answers []string
	url := serveScriptedModel(t, func(last modelMessage, _ []string) (text, name, arguments string) {
		if last.Role == "user" {
			return "", "one__count", `{"text":"x"}`
		}
		if answers = append(answers, last.Content); len(answers) == 1 {
			return "", "one__echo", `{"text":"hi"}`
		}
		return "done", "", ""
	})
	environment := d.host.Getenv
	d.host.Getenv = func(name string) string {
		if name == "OPENAI_BASE_URL" {
			return url
		}
		return environment(name)
	}
	machine := machineOf(t, t.TempDir(), `["one__*"]`)
	config := filepath.Join(machine, "machine.json")
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, config, strings.Replace(string(text), `"agent": "helper", "pre`, `"agent": "helper", "tools": {"allow": ["one__e*"]}, "pre`, 1))
	d.wantCommand(app.ExitOK, `"status": "completed"`, "machine run "+machine+" --input task=go --model openai:m --json")
	if len(answers) != 2 || !strings.Contains(answers[0], "does not allow one__count") || !strings.Contains(answers[0], `"start"`) || answers[1] != "hi" {
		t.Errorf("the tool results are %q", answers)
	}
	if text, err := os.ReadFile(count); err == nil {
		t.Errorf("the refused call was sent: %s", text)
	}
}

// TestModelToolNames checks the names under which models see the tools of upstreams.
func TestModelToolNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"one__a": "one__a", "fs.read": "fs_read", "a/b": "a_b"} {
		if got := server.ModelToolName(name); got != want || !wildcard.Match(want, got) {
			t.Errorf("%s is %s", name, got)
		}
	}
}

// If an upstream ends during a call, the outcome of the call is unknown: the run waits for
// a person, and the call is not repeated.
func TestAgentCallsCrashingUpstream(t *testing.T) {
	t.Parallel()
	d, _ := newGatewayProject(t)
	calls := 0
	url := serveScriptedModel(t, func(last modelMessage, _ []string) (text, name, arguments string) {
		if calls++; calls == 1 {
			return "", "one__crash", `{"text":"x"}`
		}
		return "told: " + last.Content, "", ""
	})
	environment := d.host.Getenv
	d.host.Getenv = func(name string) string {
		if name == "OPENAI_BASE_URL" {
			return url
		}
		return environment(name)
	}
	machine := machineOf(t, t.TempDir(), `["one__crash"]`)
	code, out := d.runCommand("machine run " + machine + " --input task=go --model openai:m --json")
	_, out, _ = strings.Cut(out, "\n{") // the JSON follows the log lines
	var got driver.Status
	if err := json.Unmarshal([]byte("{"+out), &got); err != nil || code != app.ExitFailed || got.Pause == nil || got.Pause.Code != "unknown_outcome" {
		t.Fatalf("exit code %d, %v: %s", code, err, out)
	}
	d.wantCommand(app.ExitOK, `told: it_was_sent`, "machine input "+got.RunID+" --outcome done --result it_was_sent --model openai:m --json")
}

// TestAgentKeepsItsTools checks that a run does not continue after a hook graph or a tool
// that it pinned at its start is gone, until it is back or a person accepts the change with
// the passphrase.
func TestAgentKeepsItsTools(t *testing.T) {
	t.Parallel()
	d, count := newGatewayProject(t)
	fails, answers := filepath.Join(t.TempDir(), "fails.json"), filepath.Join(t.TempDir(), "answers.json")
	writeFile(t, fails, `[{"fault": "401"}]`)
	writeFile(t, answers, `{"rules": [{"content": "done"}]}`)
	d.wantCommand(app.ExitOK, "", "hooks import --template block-by-argument --id block --upstream one --tool params")
	d.wantCommand(app.ExitOK, "", "hooks enable block")
	machine := machineOf(t, t.TempDir(), `["one__params", "one__count"]`)
	begin := func() string {
		code, out := d.runCommand("machine run " + machine + " --input task=go --model scripted:" + fails)
		id := regexp.MustCompile(`m_[0-9a-z]{23}`).FindString(out)
		if code != app.ExitFailed || id == "" {
			t.Fatalf("exit code %d: %s", code, out)
		}
		return id
	}
	wantResume := func(code int, text, id, more string, typed ...string) {
		t.Helper()
		d.wantCommand(code, text, "machine resume "+id+" --model scripted:"+answers+more, typed...)
	}
	first, second := begin(), begin()
	d.wantCommand(app.ExitOK, "", "hooks disable block")
	wantResume(app.ExitFailed, "the hook graph block (", first, "")
	d.wantCommand(app.ExitOK, "", "hooks enable block")
	wantResume(app.ExitOK, "done", first, "")
	d.wantCommand(app.ExitOK, "", "upstream remove one")
	wantResume(app.ExitFailed, "the tool one__count (", second, "")
	d.addTestUpstream(count, "good")
	d.wantCommand(app.ExitOK, "", "hooks disable block")
	d.wantCommand(app.ExitOK, "", "runs approve --set-passphrase", "four words in a row", "four words in a row")
	wantResume(app.ExitFailed, "incorrect passphrase", second, " --accept-tools", "something else")
	wantResume(app.ExitOK, "done", second, " --accept-tools", "four words in a row")
}

// TestServerReportsChangedTools checks that a server pauses a run whose hook graph is gone,
// that machine_status, doctor and the command line show the reason, that an agent cannot
// accept the change, and that the run ends after a person did.
func TestServerReportsChangedTools(t *testing.T) {
	t.Parallel()
	d, _ := newGatewayProject(t)
	url := serveScriptedModel(t, func(modelMessage, []string) (text, name, arguments string) { return "done", "", "" })
	environment := d.host.Getenv
	d.host.Getenv = func(name string) string {
		switch name {
		case "OPENAI_BASE_URL":
			return url
		case "GUIDEWAY_MODEL":
			return "openai:m"
		}
		return environment(name)
	}
	config := filepath.Join(machineOf(t, filepath.Join(d.host.Dir, "workflows", "machines"), `["one__params"]`), "machine.json")
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	states := strings.NewReplacer(`"name": "start", "agent"`, `"name": "start", "input": {"name": "task", "type": "string", "description": "More?"}, "next_state": "agent"}, {"name": "agent", "agent"`)
	writeFile(t, config, states.Replace(string(text)))
	d.wantCommand(app.ExitOK, "", "hooks import --template block-by-argument --id block --upstream one --tool params")
	d.wantCommand(app.ExitOK, "", "hooks enable block")
	connect := func() *gatewayClient {
		return d.connectClient("--toolsets", "machines", "--source-trust", "project=trusted")
	}
	call := func(a *gatewayClient, tool, arguments string) string {
		return string(a.sendRequest("tools/call", map[string]any{"name": tool, "arguments": json.RawMessage(arguments)}).Result)
	}
	a := connect()
	id := regexp.MustCompile(`m_[0-9a-z]{23}`).FindString(call(a, "machine_start", `{"machine":"helper","inputs":{"task":"x"},"wait":20}`))
	a.end()
	d.wantCommand(app.ExitOK, "", "hooks disable block")
	a = connect()
	if got := call(a, "machine_input", `{"runId":"`+id+`","value":"go","wait":20}`); !strings.Contains(got, `"code":"tools"`) || !strings.Contains(got, "the hook graph block (") {
		t.Errorf("the answer to the agent is %s", got)
	}
	a.end()
	d.wantCommand(app.ExitOK, "the hook graph block (", "machine status "+id)
	if _, out := d.runCommand("doctor"); !strings.Contains(out, id+" is paused: ") || !strings.Contains(out, "--accept-tools") {
		t.Errorf("doctor shows %s", out)
	}
	d.wantCommand(app.ExitOK, "", "runs approve --set-passphrase", "four words in a row", "four words in a row")
	d.wantCommand(app.ExitOK, `"output": "done"`, "machine resume "+id+" --accept-tools --json", "four words in a row")
	d.wantCommand(app.ExitOK, "tools_accepted", "machine show "+id)
}
