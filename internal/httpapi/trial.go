package httpapi

import (
	"encoding/json"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/workflow"
)

func (a *api) getSchema(c *call) (any, error) {
	dialect := guideway.Dialect(c.PathValue("dialect"))
	text := workflow.Schema(workflow.As{Dialect: dialect})
	if text == nil {
		return nil, guideway.Errorf(guideway.CodeNotFound, "there is no dialect %q", clipText(string(dialect))).WithFix("use steps, phases, hooks or machines")
	}
	return json.RawMessage(text), nil
}

type validateBody struct {
	Text string `json:"text"`
}

// validateText returns the diagnostics of a text. It stores nothing. The member valid
// reports whether the definition loads and has no errors.
func (a *api) validateText(_ *call, body validateBody) (any, error) {
	loads, found := workflow.Check("", []byte(body.Text))
	valid := loads != nil
	for _, d := range found {
		valid = valid && d.Severity != guideway.SeverityError
	}
	out := object{"valid": valid, "diagnostics": replaceNil(found)}
	if loads != nil {
		out["id"], out["dialect"], out["definition"] = loads.ID, loads.Dialect, json.RawMessage(loads.Canonical)
	}
	return out, nil
}

// maxTrialMoves is the maximum number of moves of a trial. Each request replays all of
// them.
const maxTrialMoves = 500

// trialBody describes a trial: the initial context and all moves.
type trialBody struct {
	Text    string         `json:"text"`
	Context map[string]any `json:"context"`
	Moves   []trialMove    `json:"moves"`
}

// trialMove is the input at one position.
type trialMove struct {
	Output  string         `json:"output"`
	Notes   string         `json:"notes"`
	Context map[string]any `json:"context"`
	Option  string         `json:"optionId"`
	Decline bool           `json:"decline"`
	Skip    string         `json:"skip"`
}

func (m trialMove) guideCommand() engine.Command {
	c := &engine.Continue{Output: m.Output, Notes: m.Notes, Context: m.Context, Person: true}
	if m.Option != "" || m.Decline {
		c.Answer = &engine.Answer{OptionID: m.Option, Decline: m.Decline, Note: m.Notes}
		c.Notes = ""
	}
	if m.Skip != "" {
		c.Skip = &engine.Skip{Reason: m.Skip}
	}
	return engine.Command{Continue: c}
}

// trialEvent is an event of a trial. It has no time, because it is not stored.
type trialEvent struct {
	Seq  int              `json:"seq"`
	Kind engine.EventKind `json:"kind"`
	Data engine.Event     `json:"data"`
}

// trialResult is the state of a trial after its last move.
type trialResult struct {
	Status engine.Status `json:"status"`
	// Refused is set if the last move was refused. The other fields are as before the move.
	Refused   *engine.Refusal `json:"refused,omitempty"`
	Position  engine.Position `json:"position"`
	Variables map[string]any  `json:"variables"`
	Events    []trialEvent    `json:"events"`
}

// tryMoves replays a trial with the same engine as runs, and stores nothing. The caller
// keeps the moves, and removes the last one to undo it.
func (a *api) tryMoves(c *call, body trialBody) (any, error) {
	if len(body.Moves) > maxTrialMoves {
		return nil, guideway.Errorf(guideway.CodeTooLarge, "the trial has %d moves, more than the maximum of %d", len(body.Moves), maxTrialMoves).WithFix("start a run, which has no such limit")
	}
	loads, found := workflow.Parse("", []byte(body.Text))
	if loads == nil {
		return nil, loadError(found)
	}
	t := &trial{flow: compileFlow(loads)}
	refused := t.applyMove(engine.Command{Start: &engine.Start{Context: body.Context}})
	for i, m := range body.Moves {
		if refused == nil {
			refused = t.applyMove(m.guideCommand())
		}
		if refused != nil && i+1 < len(body.Moves) {
			return nil, guideway.Errorf(guideway.CodeInvalid, "move %d is refused: %s", i+1, refused.Message).
				WithFix("remove the refused move and the moves after it")
		}
		if err := c.Context().Err(); err != nil {
			return nil, err
		}
	}
	if t.state.Vars == nil {
		t.state.Vars = map[string]any{}
	}
	return trialResult{
		Status: t.flow.Status(t.state), Refused: refused, Position: t.flow.PositionOf(t.state),
		Variables: t.state.Vars, Events: t.events,
	}, nil
}

func compileFlow(d *workflow.Definition) engine.Flow {
	if d.Phases != nil {
		return engine.CompilePhases(d.Phases)
	}
	return engine.Compile(d.Steps)
}

// trial is a run that is not stored.
type trial struct {
	flow   engine.Flow
	state  engine.State
	events []trialEvent
}

func (t *trial) applyMove(c engine.Command) *engine.Refusal {
	events, refusal := t.flow.Decide(t.state, c)
	if t.events == nil {
		t.events = []trialEvent{}
	}
	for _, e := range events {
		t.state = engine.Apply(t.state, e)
		t.events = append(t.events, trialEvent{len(t.events) + 1, e.Kind, e})
	}
	return refusal
}
