package mcpserver

import (
	"context"
	"encoding/json"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/authn"
	"github.com/guideway-dev/guideway/internal/machine"
	"github.com/guideway-dev/guideway/internal/machine/driver"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Machines is the service behind the toolset "machines". What it refuses is a
// *run.Refusal; driver.Background says the rest of the contract.
type Machines interface {
	// Served lists the machines that there are.
	Served(ctx context.Context) ([]MachineInfo, error)
	Start(ctx context.Context, c run.Caller, r driver.StartRequest) (*driver.Status, error)
	Status(ctx context.Context, c run.Caller, id string) (*driver.Status, error)
	Wait(ctx context.Context, c run.Caller, id string, patience time.Duration) (*driver.Status, error)
	Input(ctx context.Context, c run.Caller, id string, value json.RawMessage) (*driver.Status, error)
	Decide(ctx context.Context, c run.Caller, id string, decision machine.Decision, result string) (*driver.Status, error)
	Cancel(ctx context.Context, c run.Caller, id, reason string) (*driver.Status, error)
	// Watch gives what happens in a run that this process drives until cancel is
	// called; updates is nil where none is.
	Watch(id string) (updates <-chan driver.Update, cancel func())
}

// MachineInfo is a machine, as clients choose it.
type MachineInfo struct {
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Inputs      []MachineInput `json:"inputs"`
}

// MachineInput is what a machine begins with.
type MachineInput struct {
	Name        string          `json:"name"`
	Type        string          `json:"type"`
	Description string          `json:"description"`
	Required    bool            `json:"required"`
	Default     json.RawMessage `json:"default,omitempty"`
}

// machineTools is the toolset "machines": runs of agent machines.
type machineTools struct{ machines Machines }

func (m *machineTools) tools() []*tool {
	return []*tool{m.list(), m.start(), m.status(), m.input(), m.cancel()}
}

const exampleMachineRun = "m_0123456789abcdefghjkmnp"

// longestPatience is the longest that a call waits for a run.
const longestPatience = 50

func machineRunParam() param {
	return param{
		name: "runId", kind: kindString, required: true, maxLength: maxID, example: exampleMachineRun,
		description: "Run of the last answer",
	}
}

func machineSchema() map[string]any {
	return object(map[string]any{
		"runId": typed("string"), "machine": typed("string"), "status": typed("string"), "state": typed("string"),
		"asks": typed("object"), "pause": typed("object"), "usage": typed("object"), "next": typed("object"),
	})
}

func (m *machineTools) list() *tool {
	t := &tool{
		name: "machine_list", title: "Agent machines",
		description: "List the agent machines: several agents that work on a task together, led through states by a script.",
		output:      object(map[string]any{"machines": listOf(typed("object"))}),
	}
	t.handle = func(ctx context.Context, _ arguments) (any, error) {
		list, err := m.machines.Served(ctx)
		if err != nil {
			return nil, err
		}
		if list == nil {
			list = []MachineInfo{}
		}
		return map[string]any{"machines": list}, nil
	}
	return t
}

func (m *machineTools) start() *tool {
	t := &tool{
		name: "machine_start", title: "Start an agent machine", effect: effectAdds,
		description: "Start a run of an agent machine. It goes on by itself; ask machine_status how far it is.",
		params: []param{
			{name: "machine", kind: kindString, required: true, maxLength: maxID, example: "code-and-review", description: "Name of machine_list"},
			{name: "inputs", kind: kindObject, description: "Its inputs, by name"},
			{name: "goal", kind: kindString, description: "What the run is for, in a sentence"},
			waitParam(), requestParam(),
		},
		output: machineSchema(),
	}
	t.converse = func(ctx context.Context, req *mcp.CallToolRequest, in arguments) (any, error) {
		caller, err := callerFrom(ctx)
		if err != nil {
			return nil, err
		}
		inputs := map[string]json.RawMessage{}
		for name, value := range in.object("inputs") {
			if inputs[name], err = json.Marshal(value); err != nil {
				return nil, t.badCall(in, "inputs", "inputs."+name+" cannot be written as JSON")
			}
		}
		allow, err := allowOf(ctx)
		if err != nil {
			return nil, err
		}
		s, err := m.machines.Start(ctx, caller, driver.StartRequest{
			Machine: in.text("machine"), Inputs: inputs, Goal: in.text("goal"), RequestID: in.text("requestId"), Allow: allow,
		})
		if err != nil {
			return s, err
		}
		// The request may be one that another client has made before.
		if err := m.isIts(ctx, caller, s.RunID); err != nil {
			return nil, err
		}
		if in.integer("wait") <= 0 {
			return s, nil
		}
		return m.wait(ctx, req, caller, s.RunID, in)
	}
	return t
}

// allowOf is what the agents of a run may use that this client begins: what it may
// use itself.
func allowOf(ctx context.Context) (json.RawMessage, error) {
	lent := authn.Lend(ctx)
	if lent == nil {
		return nil, nil
	}
	return json.Marshal(lent)
}

// isIts answers a client with a token of its own, but for one that may use everything,
// as if a run that it has not begun were not there: what the agents of another client
// are told and say is not its business, and they may be able to do what it may not.
func (m *machineTools) isIts(ctx context.Context, c run.Caller, id string) error {
	mine := authn.Lend(ctx)
	if mine == nil || mine.All {
		return nil
	}
	s, err := m.machines.Status(ctx, c, id)
	if err != nil {
		return err
	}
	var theirs authn.Lent
	if len(s.Allow) > 0 && json.Unmarshal(s.Allow, &theirs) == nil && theirs.Token == mine.Token {
		return nil
	}
	return &run.Refusal{
		Code: guideway.CodeNotFound, Rule: run.RuleUnknownRun, Given: id, Message: "there is no such run of a machine",
		Fix: "this client sees the runs that it has begun itself; machine_start begins one",
	}
}

// about makes the handler of a tool that is about one run of the client's.
func (m *machineTools) about(t *tool, do func(context.Context, *mcp.CallToolRequest, run.Caller, arguments) (*driver.Status, error)) *tool {
	t.output = machineSchema()
	t.params = append([]param{machineRunParam()}, t.params...)
	t.converse = func(ctx context.Context, req *mcp.CallToolRequest, in arguments) (any, error) {
		caller, err := callerFrom(ctx)
		if err != nil {
			return nil, err
		}
		if err := m.isIts(ctx, caller, in.text("runId")); err != nil {
			return nil, err
		}
		return do(ctx, req, caller, in)
	}
	return t
}

func (m *machineTools) status() *tool {
	return m.about(&tool{
		name: "machine_status", title: "Where a machine stands", effect: effectAddsOnce,
		description: "Tell where a run of a machine stands; one that was broken off goes on. With wait and a progress token, what happens meanwhile comes as progress.",
		params:      []param{waitParam()},
	}, func(ctx context.Context, req *mcp.CallToolRequest, c run.Caller, in arguments) (*driver.Status, error) {
		return m.wait(ctx, req, c, in.text("runId"), in)
	})
}

func (m *machineTools) input() *tool {
	t := &tool{
		name: "machine_input", title: "Answer a machine", effect: effectAdds,
		description: "Give a run the value that it asks for: the user's, not yours. Where a tool's outcome is unknown, say what came of it.",
		params: []param{
			{name: "value", kind: kindString, description: "The value; one that is no text as JSON"},
			{name: "outcome", kind: kindString, enum: []string{"retry", "done", "failed"}, description: "What came of the tool's call"},
			{name: "result", kind: kindString, description: "With outcome: what the tool answered"},
			waitParam(),
		},
	}
	give := func(ctx context.Context, c run.Caller, in arguments) (*driver.Status, error) {
		id := in.text("runId")
		if outcome := in.text("outcome"); outcome != "" {
			return m.machines.Decide(ctx, c, id, machine.Decision(outcome), in.text("result"))
		}
		var value json.RawMessage
		if _, given := in["value"]; given {
			text, err := json.Marshal(in.text("value"))
			if err != nil {
				return nil, t.badCall(in, "value", "value cannot be written as JSON")
			}
			value = text
		}
		return m.machines.Input(ctx, c, id, value)
	}
	return m.about(t, func(ctx context.Context, req *mcp.CallToolRequest, c run.Caller, in arguments) (*driver.Status, error) {
		s, err := give(ctx, c, in)
		if err != nil || in.integer("wait") <= 0 {
			return s, err
		}
		return m.wait(ctx, req, c, in.text("runId"), in)
	})
}

func (m *machineTools) cancel() *tool {
	return m.about(&tool{
		name: "machine_cancel", title: "Cancel a machine", effect: effectReplaces,
		description: "End a run of a machine for good.",
		params:      []param{{name: "reason", kind: kindString, description: "Why"}},
	}, func(ctx context.Context, _ *mcp.CallToolRequest, c run.Caller, in arguments) (*driver.Status, error) {
		return m.machines.Cancel(ctx, c, in.text("runId"), in.text("reason"))
	})
}
