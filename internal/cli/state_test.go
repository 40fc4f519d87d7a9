package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/workflow"
	"github.com/guideway-dev/guideway/internal/workflow/phases"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

const stepsFlow = `{"id": "flow", "name": "Flow", "description": "d", "version": "1.0.0", "steps": [
	{"id": "plan", "title": "Plan", "prompt": "Plan.", "requireConfirmation": true},
	{"id": "parts", "type": "loop", "title": "Parts", "loop": {"type": "forEach", "items": "list", "maxIterations": 5},
	 "body": [{"id": "part", "title": "Part", "prompt": "Do it."}]}]}`

const phasesFlow = `{"id": "flow", "version": "1.0.0", "title": "Flow", "initialPhase": "plan",
	"variables": [{"name": "good", "type": "boolean", "defaultValue": false}],
	"phases": [
	{"id": "plan", "name": "Plan", "steps": [{"id": "draft", "name": "Draft"}],
	 "checkpoints": [{"id": "word", "name": "Word", "message": "Good?", "options": [
		{"id": "good", "label": "Good", "effect": {"setVariable": {"good": true}, "skipPhases": ["rest"]}},
		{"id": "stop", "label": "Stop", "effect": {"transitionTo": "end"}}]}],
	 "decisions": [{"id": "way", "name": "Way", "branches": [
		{"id": "on", "label": "On", "transitionTo": "work", "condition": {"type": "simple", "variable": "good", "operator": "==", "value": true}},
		{"id": "off", "label": "Off", "transitionTo": "end", "isDefault": true}]}]},
	{"id": "rest", "name": "Rest", "transitions": [{"to": "work"}]},
	{"id": "work", "name": "Work", "loops": [{"id": "parts", "name": "Parts", "type": "forEach", "variable": "part", "over": "list",
	 "steps": [{"id": "make", "name": "Make"}, {"id": "try", "name": "Try"}]}], "transitions": [{"to": "end"}]},
	{"id": "end", "name": "End", "steps": [{"id": "tell", "name": "Tell"}]}]}`

// stateSchema is the published schema of state documents.
func stateSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	text := workflow.Schema(workflow.As{Dialect: guideway.DialectPhases, Kind: phases.KindState})
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("state.json", document); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("state.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// At every position of a run of either dialect, the output of runs show --state is valid
// against the published schema. The state of an unfinished phase workflow can be imported,
// and the new run has the same position.
func TestImportedStatesContinue(t *testing.T) {
	t.Parallel()
	schema := stateSchema(t)
	for _, tt := range []struct {
		name, flow, calls string
		// where is the expected position of the new run; if empty, nothing is imported.
		where string
	}{
		{"steps, at the start", stepsFlow, `start {"WorkflowID":"flow","Goal":"g"}`, ""},
		{"steps, at a gate", stepsFlow, `start {"WorkflowID":"flow"}
			continue {"Output":"a"}`, ""},
		{"steps, in a loop", stepsFlow, `start {"WorkflowID":"flow","Context":{"list":["a","b"]}}
			continue {"Output":"a"}
			continue {"Answer":{"OptionID":"revise"}}
			continue {"Output":"b"}
			continue {"Answer":{"OptionID":"confirm"}}
			continue {"Output":"c"}`, ""},
		{"steps, at the end", stepsFlow, `start {"WorkflowID":"flow","Context":{"list":[]}}
			continue {"Output":"a"}
			continue {"Answer":{"OptionID":"confirm"}}`, ""},
		{"phases, at the start", phasesFlow, `start {"WorkflowID":"flow"}`, `step "draft" of phase "plan"`},
		{"phases, at a gate", phasesFlow, `start {"WorkflowID":"flow","Context":{"list":["a"]}}
			continue {"Output":"a","Notes":"n"}`, `gate "word" of phase "plan"`},
		{"phases, waiting", phasesFlow, `start {"WorkflowID":"flow"}
			continue {"Output":"a"}
			continue {"Answer":{"OptionID":"good"}}`, `step "parts" of phase "work"`},
		{"phases, in a loop", phasesFlow, `start {"WorkflowID":"flow","Context":{"list":["a",{"b":1}]}}
			continue {"Output":"a"}
			continue {"Answer":{"OptionID":"good"}}
			continue {"Output":"b"}
			continue {"Output":"b"}
			continue {"Output":"b"}`, `step "try" of phase "work", round 2 of loop "parts"`},
		{"phases, after an answer with a transition", phasesFlow, `start {"WorkflowID":"flow"}
			continue {"Output":"a"}
			continue {"Answer":{"OptionID":"stop"}}`, `step "tell" of phase "end"`},
		{"phases, at the end", phasesFlow, `start {"WorkflowID":"flow"}
			continue {"Output":"a"}
			continue {"Answer":{"OptionID":"stop"}}
			continue {"Output":"a"}`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			host, out := newTerminal(t, map[string]string{"NO_COLOR": "1"})
			host.Dir = filepath.Join(host.Dir, "work")
			writeFile(t, filepath.Join(host.Dir, ".guideway", "workflows", "flow.json"), tt.flow)
			id := agent(t, host, tt.calls)
			command := func(line string) string {
				t.Helper()
				out.Reset()
				if code := Run(t.Context(), strings.Fields(line), host); code != app.ExitOK {
					t.Fatalf("guideway %s: %d\n%s", line, code, out)
				}
				return out.String()
			}
			state := command("runs show " + id + " --state")
			value, err := jsonschema.UnmarshalJSON(strings.NewReader(state))
			if err != nil {
				t.Fatal(err)
			}
			if err := schema.Validate(value); err != nil {
				t.Errorf("%v\n%s", err, state)
			}
			writeFile(t, filepath.Join(host.Dir, "state.json"), state)
			command("validate --dialect phases --kind state state.json")
			if tt.where == "" {
				return
			}
			if got := command("runs import state.json"); !strings.Contains(got, " at "+tt.where+"\n") {
				t.Errorf("the imported state is not at %s:\n%s\n%s", tt.where, got, state)
			}
			again := regexp.MustCompile(`r_[0-9a-z]{23}`).FindString(out.String())
			value, err = jsonschema.UnmarshalJSON(strings.NewReader(command("runs show " + again + " --state")))
			if err == nil {
				err = schema.Validate(value)
			}
			if err != nil {
				t.Errorf("the state of the imported run: %v\n%s", err, out)
			}
		})
	}
}

// A state of another version of the workflow is accepted with a warning.
func TestImportStateOfOtherVersion(t *testing.T) {
	t.Parallel()
	host, out := newTerminal(t, map[string]string{"NO_COLOR": "1"})
	host.Dir = filepath.Join(host.Dir, "work")
	writeFile(t, filepath.Join(host.Dir, ".guideway", "workflows", "flow.json"), phasesFlow)
	for version, told := range map[string]bool{"1.0.0": false, "0.9.0": true} {
		out.Reset()
		writeFile(t, filepath.Join(host.Dir, "state.json"), `{"workflowId":"flow","workflowVersion":"`+version+`",
			"startedAt":"2026-01-22T10:00:00Z","updatedAt":"2026-01-22T10:05:00Z","currentPhase":1}`)
		if code := Run(t.Context(), []string{"runs", "import", "state.json"}, host); code != app.ExitOK {
			t.Fatalf("%d\n%s", code, out)
		}
		if got := strings.Contains(out.String(), `warning: the state document is for version 0.9.0 of "flow"`); got != told {
			t.Errorf("version %s:\n%s", version, out)
		}
	}
}

// TestImportedStateNeedsHumanApproval checks that a state after a human approval can be
// imported only at a terminal and with the passphrase.
func TestImportedStateNeedsHumanApproval(t *testing.T) {
	t.Parallel()
	host, out := newTerminal(t, map[string]string{"NO_COLOR": "1"})
	host.Dir = filepath.Join(host.Dir, "work")
	flow := strings.Replace(phasesFlow, `"message": "Good?"`, `"message": "Good?", "approval": "human"`, 1)
	writeFile(t, filepath.Join(host.Dir, ".guideway", "workflows", "flow.json"), flow)
	writeFile(t, filepath.Join(host.Dir, "state.yaml"), `
workflowId: flow
workflowVersion: 1.0.0
startedAt: "2026-01-22T10:00:00Z"
updatedAt: "2026-01-22T10:05:00Z"
currentPhase: 4
completedPhases: [1]
`)
	typing := func(terminal bool, command string, typed ...string) int {
		out.Reset()
		in := &fakeTerminal{lines: typed, echo: out}
		host.In, host.InTerminal = in, terminal
		typeSecrets(&host, in)
		return Run(t.Context(), strings.Fields(command), host)
	}
	if code := typing(true, "runs approve --set-passphrase", "four words in a row", "four words in a row"); code != app.ExitOK {
		t.Fatal(out)
	}
	for name, code := range map[string]int{
		"a pipe":             typing(false, "runs import state.yaml", "four words in a row"),
		"a wrong passphrase": typing(true, "runs import state.yaml", "not that"),
		"no passphrase":      typing(true, "runs import state.yaml"),
	} {
		if code != app.ExitFailed {
			t.Errorf("%s: %d\n%s", name, code, out)
		}
	}
	if typing(true, "runs list"); strings.Contains(out.String(), "r_") {
		t.Fatalf("a run was created:\n%s", out)
	}
	if code := typing(true, "runs import state.yaml", "four words in a row"); code != app.ExitOK || !strings.Contains(out.String(), `step "tell" of phase "end"`) {
		t.Errorf("%d\n%s", code, out)
	}
}

// TestInvalidStates checks the error for each invalid state. No run is started.
func TestInvalidStates(t *testing.T) {
	t.Parallel()
	host, out := newTerminal(t, map[string]string{"NO_COLOR": "1"})
	writeFile(t, filepath.Join(host.Dir, "workflows", "flow.json"), phasesFlow)
	writeFile(t, filepath.Join(host.Dir, "workflows", "steps.json"), strings.Replace(stepsFlow, `"id": "flow"`, `"id": "steps"`, 1))
	const head = `{"workflowId": "flow", "workflowVersion": "1.0.0", "startedAt": "2026-01-22T10:00:00Z", "updatedAt": "2026-01-22T10:05:00Z", `
	for _, tt := range []struct{ state, want string }{
		{head + `"currentPhase": 0}`, "state.json:1:142: error: "},
		{head + `"currentPhase": 9}`, "currentPhase is 9, but the workflow has 4 phases"},
		{head + `"currentPhase": 1, "status": "completed"}`, "a run that is completed cannot continue"},
		{head + `"currentPhase": 1, "colour": "red"}`, "colour"},
		{strings.Replace(head, `"flow"`, `"steps"`, 1) + `"currentPhase": 1}`, "'steps' is not a phase workflow"},
		{strings.Replace(head, `"flow"`, `"nothing"`, 1) + `"currentPhase": 1}`, "nothing"},
	} {
		out.Reset()
		if err := os.WriteFile(filepath.Join(host.Dir, "state.json"), []byte(tt.state), 0o600); err != nil {
			t.Fatal(err)
		}
		if code := Run(t.Context(), []string{"runs", "import", "state.json"}, host); code == app.ExitOK || !strings.Contains(out.String(), tt.want) {
			t.Errorf("%s: %d, want %q:\n%s", tt.state, code, tt.want, out)
		}
	}
	out.Reset()
	if Run(t.Context(), []string{"runs", "list"}, host); strings.Contains(out.String(), "r_") {
		t.Errorf("a run was created:\n%s", out)
	}
}
