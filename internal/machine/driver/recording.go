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

// Recording holds the external inputs of a run and its outcome: sufficient to run the
// machine again without a model, a tool or a person. A scripted model reads its responses.
type Recording struct {
	Machine string                     `json:"machine"`
	Inputs  map[string]json.RawMessage `json:"inputs,omitempty"`
	Limits  machineengine.Limits       `json:"limits,omitzero"`
	// Responses are the answers and errors of models in order, including those of
	// sub-machines.
	Responses []json.RawMessage `json:"responses"`
	// Tools are the tool calls with their results, and Given the inputs from people, in
	// order.
	Tools []RecordedTool    `json:"tools,omitempty"`
	Given []json.RawMessage `json:"given,omitempty"`

	// Status, States and Output are the outcome.
	Status machineengine.Status `json:"status"`
	States []string             `json:"states"`
	Output json.RawMessage      `json:"output,omitempty"`
}

// RecordedTool is a tool call and its result.
type RecordedTool struct {
	Name      string                   `json:"name"`
	Arguments string                   `json:"arguments"`
	Result    machineengine.ToolResult `json:"result"`
}

// Record returns the recording of a run and its pinned definition.
func (s *Service) Record(ctx context.Context, c run.Caller, id string) (*Recording, *machinedef.Definition, error) {
	l, events, err := s.loadRun(ctx, c.User, id, 0)
	if err != nil {
		return nil, nil, err
	}
	st := &l.state
	r := &Recording{
		Machine: l.rec.Workflow, Inputs: st.Inputs, Limits: st.Limits, Responses: []json.RawMessage{},
		Status: st.Status, States: st.Visited, Output: st.Output,
	}
	return r, l.program.Definition, s.recordEvents(ctx, c, r, id, events)
}

// recordEvents adds the events of the run id and of its sub-machines to the recording.
func (s *Service) recordEvents(ctx context.Context, c run.Caller, r *Recording, id string, events []run.Event) error {
	for _, e := range events {
		fact, err := factOf(e)
		if err != nil {
			return untrustedEventError(id, e.Seq, err.Error())
		}
		switch {
		case fact.Kind == machineengine.KindSubIntent:
			_, within, err := s.loadRun(ctx, c.User, fact.Run, 0)
			if guideway.ErrorCode(err) == guideway.CodeNotFound {
				continue // the sub-machine was not started
			}
			if err != nil {
				return err
			}
			if err := s.recordEvents(ctx, c, r, fact.Run, within); err != nil {
				return err
			}
		case fact.Kind == machineengine.KindInputGiven:
			r.Given = append(r.Given, fact.Value)
		case fact.Kind == machineengine.KindModelResult && fact.Response != nil:
			r.Responses = append(r.Responses, fact.Response.Completion())
		case fact.Kind == machineengine.KindModelResult && !fact.Unknown:
			r.Responses = append(r.Responses, recordedFault(fact.Error))
		case (fact.Kind == machineengine.KindToolResult || fact.Kind == machineengine.KindToolDecided) && fact.Result != nil && fact.Tool.Key != "":
			r.Tools = append(r.Tools, RecordedTool{Name: fact.Tool.Name, Arguments: fact.Tool.Arguments, Result: *fact.Result})
		}
	}
	return nil
}

// recordedFault returns an error in the format of the scripted model.
func recordedFault(f *machineengine.RunError) json.RawMessage {
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
