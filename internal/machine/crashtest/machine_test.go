//go:build unix

package crashtest

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/guideway-dev/guideway"
	machinedef "github.com/guideway-dev/guideway/internal/machine/definition"
	machineengine "github.com/guideway-dev/guideway/internal/machine/engine"
	"github.com/guideway-dev/guideway/internal/machine/llm"
)

// machineName is the name of the machine of all runs. It has two rounds, each with four
// answers of the model that contain tool calls, and one that contains a text.
const machineName = "ten"

const config = `{
  "workflow_name": "ten", "description": "Ten calls.", "input": {"name": "task", "type": "string", "description": "What to do."},
  "output": {"name": "done", "type": "string", "description": "What was done."},
  "contexts": [{"name": "talk"}],
  "agents": [{"agent_role": "worker", "context": "talk", "role": "assistant"}],
  "tools": {"s__key": {"retry": "key"}, "s__ask": {"retry": "ask"}},
  "states": [
    {"name": "start", "pre_handler": "ask", "agent": "worker", "post_handler": "note", "transition_handler": "more"},
    {"name": "again", "pre_handler": "ask", "agent": "worker", "post_handler": "note", "transition_handler": "more"},
    {"name": "stop", "input": "common_data.done"}
  ]
}`

const roles = `{"worker": {"systemMessage": "Work.", "includedTools": ["s__*"], "reminder": "Go on."}}`

// source is the script of the machine. It counts its calls in common_data, so that the
// output shows if the result of a handler is applied twice.
const source = `export default {
  ask() {
    this.common_data.round = (this.common_data.round ?? 0) + 1;
    this.workflow_contexts.get("talk").addMessage({ role: "user", content: this.input + " round " + this.common_data.round });
  },
  note() {
    const text = this.last_response.choices[0].message.content;
    this.common_data.done = (this.common_data.done ?? "") + text + ";";
    this.workflow_contexts.get("talk").addMessage({ role: "assistant", content: text });
  },
  more() { return this.common_data.round === 2 ? "stop" : "again"; },
};
`

// modelCalls returns the tools that the model calls in each request of a round; none means
// that the model answers with a text.
func modelCalls() [][]string {
	return [][]string{{"s__safe", "s__key"}, {"s__ask"}, {"s__safe"}, {"s__key", "s__ask"}, nil}
}

// The calls of an undisturbed run.
const (
	requests = 10
	calls    = 12
)

// wantedOutput is the output of every run.
const wantedOutput = `"round 1 done;round 2 done;"`

// toolInfos returns the available tools.
func toolInfos() []machineengine.ToolInfo {
	var out []machineengine.ToolInfo
	for _, name := range []string{"s__safe", "s__key", "s__ask"} {
		out = append(out, machineengine.ToolInfo{
			Definition: llm.Definition{Name: name, Parameters: json.RawMessage(`{"type":"object"}`)}, Repeatable: name == "s__safe",
		})
	}
	return out
}

// shelf implements driver.Machines with one machine.
type shelf struct{ *machinedef.Definition }

func newShelf() (shelf, error) {
	d, found := machinedef.Parse(machinedef.Files{
		Config: machinedef.File{Path: "ten.json", Data: []byte(config)},
		Script: &machinedef.File{Path: "ten/script.js", Data: []byte(source)},
		Roles:  []machinedef.File{{Path: "ten/roles.json", Data: []byte(roles)}},
	})
	if d == nil {
		return shelf{}, fmt.Errorf("the machine does not parse: %+v", found)
	}
	return shelf{d}, nil
}

// Machine implements driver.Machines.
func (s shelf) Machine(_ context.Context, name string) (*machinedef.Definition, error) {
	if name != s.Name {
		return nil, guideway.Errorf(guideway.CodeNotFound, "there is no machine %s", name)
	}
	return s.Definition, nil
}
