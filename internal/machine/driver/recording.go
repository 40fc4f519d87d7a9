package driver

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/guideway-dev/guideway"
	machinedef "github.com/guideway-dev/guideway/internal/machine/definition"
	machineengine "github.com/guideway-dev/guideway/internal/machine/engine"
	"github.com/guideway-dev/guideway/internal/machine/llm"
	"github.com/guideway-dev/guideway/internal/machine/llm/scripted"
	"github.com/guideway-dev/guideway/internal/run"
)

// Recording is what a run was told from outside, and what came of it: enough to
// run the machine again without a model, a tool or a person. A scripted model reads
// its responses.
type Recording struct {
	Machine string                     `json:"machine"`
	Inputs  map[string]json.RawMessage `json:"inputs,omitempty"`
	Limits  machineengine.Limits       `json:"limits,omitzero"`
	// Responses are the answers and failures of models, in order, those of
	// machines within the run among them.
	Responses []json.RawMessage `json:"responses"`
	// Tools are the calls of tools with what they answered, and Given what people
	// have given, in order.
	Tools []RecordedTool    `json:"tools,omitempty"`
	Given []json.RawMessage `json:"given,omitempty"`

	// Status, States and Output are how it went.
	Status machineengine.Status `json:"status"`
	States []string             `json:"states"`
	Output json.RawMessage      `json:"output,omitempty"`
}

// RecordedTool is a call of a tool and its result.
type RecordedTool struct {
	Name      string                   `json:"name"`
	Arguments string                   `json:"arguments"`
	Result    machineengine.ToolResult `json:"result"`
}

// Record makes the recording of a run, and gives the definition that it is pinned
// to.
func (s *Service) Record(ctx context.Context, c run.Caller, id string) (*Recording, *machinedef.Definition, error) {
	l, events, err := s.load(ctx, c.User, id, 0)
	if err != nil {
		return nil, nil, err
	}
	st := &l.state
	r := &Recording{
		Machine: l.rec.Workflow, Inputs: st.Inputs, Limits: st.Limits, Responses: []json.RawMessage{},
		Status: st.Status, States: st.Visited, Output: st.Output,
	}
	return r, l.program.Definition, s.record(ctx, c, r, events)
}

// record adds the events of a run, and of those within it where they stand.
func (s *Service) record(ctx context.Context, c run.Caller, r *Recording, events []run.Event) error {
	for _, e := range events {
		fact, err := factOf(e)
		if err != nil {
			return broken(r.Machine, e.Seq, "it does not read")
		}
		switch {
		case fact.Kind == machineengine.KindSubIntent:
			_, within, err := s.load(ctx, c.User, fact.Run, 0)
			if guideway.ErrorCode(err) == guideway.CodeNotFound {
				continue // it was not begun
			}
			if err != nil {
				return err
			}
			if err := s.record(ctx, c, r, within); err != nil {
				return err
			}
		case fact.Kind == machineengine.KindInputGiven:
			r.Given = append(r.Given, fact.Value)
		case fact.Kind == machineengine.KindModelResult && fact.Response != nil:
			r.Responses = append(r.Responses, fact.Response.Completion())
		case fact.Kind == machineengine.KindModelResult && !fact.Unknown:
			r.Responses = append(r.Responses, recordedFault(fact.Fault))
		case (fact.Kind == machineengine.KindToolResult || fact.Kind == machineengine.KindToolDecided) && fact.Result != nil && fact.Tool.Key != "":
			r.Tools = append(r.Tools, RecordedTool{Name: fact.Tool.Name, Arguments: fact.Tool.Arguments, Result: *fact.Result})
		}
	}
	return nil
}

// recordedFault is a failure as a scripted model repeats it.
func recordedFault(f *machineengine.Fault) json.RawMessage {
	fault := scripted.FaultServer
	switch llm.Kind(f.Kind) {
	case llm.RateLimit:
		fault = scripted.FaultRateLimit
	case llm.Auth, llm.Quota:
		fault = scripted.FaultAuth
	case llm.ContextLength:
		fault = scripted.FaultContext
	case llm.Refusal:
		fault = scripted.FaultRefusal
	case llm.Malformed:
		fault = scripted.FaultEmpty
	}
	return json.RawMessage(fmt.Sprintf(`{"fault": %q}`, fault))
}
