package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/cli/app"
)

// readOnlyRun is a guided run whose first step allows only the tools one__e*, and whose
// second allows all.
const readOnlyRun = `id: look
name: Look
description: Look, then change.
version: 1.0.0
steps:
  - { id: look, title: Look, prompt: Look., tools: { allow: ["one__e*"], hold: ["one__env"] } }
  - { id: change, title: Change, prompt: Change. }
`

// TestMachineFollowsTheRunsOfItsClient checks that an agent cannot get around the step of
// its guided run by a machine: the machine that it starts, or answers, gets the policy of
// the step too, also in another process, as long as the guided run is in this step. Runs of
// other clients and a machine of a person are not restricted.
func TestMachineFollowsTheRunsOfItsClient(t *testing.T) {
	t.Parallel()
	d, count := newGatewayProject(t)
	url := serveScriptedModel(t, func(last modelMessage, _ []string) (text, name, arguments string) {
		if last.Role == "user" { // the task is the tool to call
			return "", last.Content, `{"text":"hi"}`
		}
		return last.Content, "", ""
	})
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
	machine := machineOf(t, filepath.Join(d.host.Dir, "workflows", "machines"), `["one__*"]`)
	config := filepath.Join(machine, "machine.json")
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, config, strings.Replace(string(text), `"post_handler": "keep"}`,
		`"post_handler": "keep", "next_state": "wait"}, {"name": "wait", "input": {"name": "task", "type": "string", "description": "More?"}, "next_state": "again"}, {"name": "again", "agent": "helper", "pre_handler": "ask", "post_handler": "keep"}`, 1))
	writeFile(t, filepath.Join(d.host.Dir, "workflows", "look.yaml"), readOnlyRun)
	a := d.connectClient("--toolsets", "runs,machines", "--source-trust", "project=trusted")
	call := func(tool, arguments string) string {
		return string(a.sendRequest("tools/call", map[string]any{"name": tool, "arguments": json.RawMessage(arguments)}).Result)
	}
	output := func(command string) string {
		_, out := d.runCommand(command)
		return out
	}
	idIn := func(prefix, answer string) string {
		id := regexp.MustCompile(prefix + `_\w+`).FindString(answer)
		if id == "" {
			t.Fatalf("no id in %s", answer)
		}
		return id
	}
	start := func(tool string) string {
		return idIn("m", call("machine_start", `{"machine":"helper","inputs":{"task":"`+tool+`"},"wait":20}`))
	}
	wantCalls := func(when string, want int) {
		if text, _ := os.ReadFile(count); strings.Count(string(text), "once") != want {
			t.Errorf("%s: the calls of one__count are %q, want %d", when, text, want)
		}
	}

	early := start("one__count")
	person := idIn("m", output("machine run "+machine+" --input task=one__echo --json"))
	wantCalls("before the guided run", 1)
	handle := idIn("h", call("workflow_start", `{"workflowId":"look","goal":"look"}`))
	restarted, continued, held := start("one__count"), start("one__count"), start("one__env")
	call("machine_input", `{"runId":"`+early+`","value":"one__count","wait":20}`)
	wantCalls("in the step that denies it", 1)
	if got := output("machine show " + held + " --json"); !strings.Contains(got, "was not sent: it waits for the approval of a person") || strings.Contains(got, "PATH=") {
		t.Errorf("after a held call the machine is %s", got)
	}
	d.wantCommand(app.ExitOK, "does not allow one__count", "machine input "+restarted+" one__count --json")
	wantCalls("in another process", 1)
	d.wantCommand(app.ExitOK, `"output": "counted"`, "machine input "+person+" one__count --json")
	wantCalls("for a person", 2)
	call("workflow_continue", `{"handle":"`+handle+`","output":"looked at everything"}`)
	call("machine_input", `{"runId":"`+continued+`","value":"one__count","wait":20}`)
	wantCalls("in the next step", 3)
	a.end()
}
