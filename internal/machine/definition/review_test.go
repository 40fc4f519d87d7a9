package definition_test

import (
	"strings"
	"testing"

	machinedef "github.com/guideway-dev/guideway/internal/machine/definition"
	"github.com/guideway-dev/guideway/internal/testutil/leaves"
)

// wholeMachine has every member of the dialect that a run uses.
const wholeMachine = `{
  "workflow_name": "whole", "description": "d", "version": "1",
  "inputs": [{"name": "a", "type": "string", "description": "d", "required": false, "default": "x", "options": ["x", "x2"]}],
  "output": {"name": "out", "type": "string", "description": "d"},
  "variables": {"count": 1, "list": ["y"]},
  "contexts": [
    {"name": "talk", "max_length": 900, "starting_messages": [{"role": "user", "content": "go", "name": "n"}]},
    {"name": "talk2", "max_tokens": 90}],
  "agents": [{"agent_role": "one", "context": "talk", "role": "user"}, {"agent_role": "one2", "context": "talk", "role": "assistant"}],
  "budgets": {"states": 5, "calls": 5, "tokens": 5, "cost": 5, "time": "5m", "tool_calls": 5},
  "tools": {"fs__*": {"retry": "safe", "timeout": "5s"}},
  "states": [
    {"name": "start", "agent": "one", "pre_handler": "f", "post_handler": "f", "transition_handler": "f", "error_handler": "f", "max_retries": 2, "next_state": "ask"},
    {"name": "ask", "input": {"name": "b", "type": "string", "description": "d", "required": true, "default": "x", "options": ["x", "x2"], "show": "common_data.a", "approval": "human"}, "next_state": "sub"},
    {"name": "sub", "sub_machine": {"machine": "m", "inputs": {"q": "common_data.a"}, "output": "o"}, "next_state": "ask"},
    {"name": "ask2"}, {"name": "sub2"},
    {"name": "stop", "input": "common_data.b"}]}`

const wholeRoles = `{
  "one": {"level": "base", "model": "m", "systemMessage": "Work.\nThen rest.", "includedTools": ["fs__read"], "reminder": "r", "maxTokens": 5, "temperature": 1,
    "examples": [{"role": "user", "content": "e"}],
    "parsingTools": [{"type": "function", "function": {"name": "p", "description": "d", "parameters": {"type": "object", "properties": {"z": {"type": "string"}}}}}]},
  "one2": {"systemMessage": "s", "excludedTools": ["fs__write"]}}`

const wholeScript = "export default {\n  f() {},\n  f2() {},\n}\n"

func reviewText(t *testing.T, config, roles, script string) (text, hash string, ok bool) {
	t.Helper()
	d, _ := machinedef.Parse(machinedef.Files{
		Config: machinedef.File{Path: "whole.json", Data: []byte(config)}, Roles: []machinedef.File{{Path: "roles.json", Data: []byte(roles)}},
		Script: &machinedef.File{Path: "whole/script.js", Data: []byte(script)},
	})
	if d == nil {
		return "", "", false
	}
	text, err := d.ReviewText()
	if err != nil {
		t.Fatal(err)
	}
	return text + d.Script, d.Hash, true
}

// TestApprovalCoversEveryMember checks that a change of any value of the machine, of its
// roles or of its script changes the hash and the text that a reviewer reads.
func TestApprovalCoversEveryMember(t *testing.T) {
	t.Parallel()
	text, hash, ok := reviewText(t, wholeMachine, wholeRoles, wholeScript)
	if !ok {
		t.Fatal("the machine does not load")
	}
	check := func(path string, variants []string, parse func(string) (string, string, bool)) {
		valid := 0
		for _, variant := range variants {
			otherText, otherHash, ok := parse(variant)
			if !ok {
				continue
			}
			valid++
			if otherHash == hash || otherText == text {
				t.Errorf("%s: after a change, same hash: %t, same text: %t", path, otherHash == hash, otherText == text)
			}
		}
		if valid == 0 {
			t.Errorf("%s: no change of this member is valid", path)
		}
	}
	options := map[string][]any{
		"inputs/0/type": {"number"}, "output/type": {"number"}, "states/1/input/type": {"number"}, "states/1/input/approval": {"any"},
		"contexts/0/starting_messages/0/role": {"assistant"}, "agents/0/role": {"assistant"}, "agents/1/role": {"user"},
		"tools/fs__*/retry": {"ask"}, "tools/fs__*/timeout": {"6s"}, "budgets/time": {"6m"},
		"agents/0/agent_role": {"one2"}, "agents/1/agent_role": {"one"},
	}
	for _, c := range leaves.ChangesOf(t, wholeMachine, options) {
		switch c.Path {
		case "inputs/0/type", "states/1/input/type": // the options do not fit a different type; the type of the output is tested instead
		case "states/0/name", "states/1/name", "states/2/name", "states/5/name", "agents/0/agent_role", "agents/1/agent_role", "contexts/0/name": // other members refer to these names
		default:
			check(c.Path, c.Texts, func(s string) (string, string, bool) { return reviewText(t, s, wholeRoles, wholeScript) })
		}
	}
	options = map[string][]any{
		"one/level": {"fast"}, "one/examples/0/role": {"assistant"}, "one/parsingTools/0/function/parameters/type": {"string"},
	}
	for _, c := range leaves.ChangesOf(t, wholeRoles, options) {
		if c.Path != "one/parsingTools/0/type" { // the type has only one allowed value
			check(c.Path, c.Texts, func(s string) (string, string, bool) { return reviewText(t, wholeMachine, s, wholeScript) })
		}
	}
	check("script", []string{strings.Replace(wholeScript, "f() {}", "f() { }", 1)}, func(s string) (string, string, bool) { return reviewText(t, wholeMachine, wholeRoles, s) })
	for path, renamed := range map[string][2]string{
		"names of states": {`"ask"`, `"ask3"`}, "names of contexts": {`"talk"`, `"talk3"`}, "names of tools": {`"fs__*"`, `"fs__r*"`}, "names of variables": {`"count"`, `"counts"`},
	} {
		check(path, []string{strings.ReplaceAll(wholeMachine, renamed[0], renamed[1])}, func(s string) (string, string, bool) { return reviewText(t, s, wholeRoles, wholeScript) })
	}
}
