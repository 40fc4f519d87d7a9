package httpapi

import (
	"encoding/json"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/definition"
	"github.com/guideway-dev/guideway/internal/guide"
)

func (a *api) schema(c *call) (any, error) {
	dialect := guideway.Dialect(c.PathValue("dialect"))
	text := definition.Schema(definition.As{Dialect: dialect})
	if text == nil {
		return nil, guideway.Errorf(guideway.CodeNotFound, "there is no dialect %q", clip(string(dialect))).WithFix("ask for steps or phases")
	}
	return json.RawMessage(text), nil
}

type validateBody struct {
	Text string `json:"text"`
}

// validate says what there is to say of a text. It keeps nothing. The member valid says
// that the definition loads and is fit for use.
func (a *api) validate(_ *call, body validateBody) (any, error) {
	loads, found := definition.Check("", []byte(body.Text))
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

// maxTried bounds the moves of a trial: each request walks all of them.
const maxTried = 500

// tryBody is a trial: what was handed in from the beginning.
type tryBody struct {
	Text    string         `json:"text"`
	Context map[string]any `json:"context"`
	Moves   []tryMove      `json:"moves"`
}

// tryMove is what is handed in at one position.
type tryMove struct {
	Output  string         `json:"output"`
	Notes   string         `json:"notes"`
	Context map[string]any `json:"context"`
	Option  string         `json:"optionId"`
	Decline bool           `json:"decline"`
	Skip    string         `json:"skip"`
}

func (m tryMove) command() guide.Command {
	c := &guide.Continue{Output: m.Output, Notes: m.Notes, Context: m.Context, Person: true}
	if m.Option != "" || m.Decline {
		c.Answer = &guide.Answer{OptionID: m.Option, Decline: m.Decline, Note: m.Notes}
		c.Notes = ""
	}
	if m.Skip != "" {
		c.Skip = &guide.Skip{Reason: m.Skip}
	}
	return guide.Command{Continue: c}
}

// triedEvent is an event of a trial. Nobody keeps it, so it has no time.
type triedEvent struct {
	Seq  int             `json:"seq"`
	Kind guide.EventKind `json:"kind"`
	Data guide.Event     `json:"data"`
}

// tried is where a trial has come to.
type tried struct {
	Status guide.Status `json:"status"`
	// Refused is set if the last move was not legal; the rest is as before it.
	Refused   *guide.Refusal `json:"refused,omitempty"`
	Position  guide.Position `json:"position"`
	Variables map[string]any `json:"variables"`
	Events    []triedEvent   `json:"events"`
}

// try walks through a definition with the engine that agents get, and keeps
// nothing: the caller has the moves, and leaves the last one out to undo it.
func (a *api) try(c *call, body tryBody) (any, error) {
	if len(body.Moves) > maxTried {
		return nil, guideway.Errorf(guideway.CodeTooLarge, "a trial has at most %d moves", maxTried).WithFix("start a run")
	}
	loads, found := definition.Parse("", []byte(body.Text))
	if loads == nil {
		return nil, guideway.Errorf(guideway.CodeInvalidDefinition, "the definition does not load: %s", firstError(found))
	}
	t := &trial{flow: flowOf(loads)}
	refused := t.move(guide.Command{Start: &guide.Start{Context: body.Context}})
	for i, m := range body.Moves {
		if refused == nil {
			refused = t.move(m.command())
		}
		if refused != nil && i+1 < len(body.Moves) {
			return nil, guideway.Errorf(guideway.CodeInvalid, "move %d is refused: %s", i+1, refused.Message).
				WithFix("leave it out, and what follows")
		}
		if err := c.Context().Err(); err != nil {
			return nil, err
		}
	}
	if t.state.Vars == nil {
		t.state.Vars = map[string]any{}
	}
	return tried{
		Status: t.flow.Status(t.state), Refused: refused, Position: t.flow.PositionOf(t.state),
		Variables: t.state.Vars, Events: t.events,
	}, nil
}

func flowOf(d *definition.Definition) guide.Flow {
	if d.Phases != nil {
		return guide.CompilePhases(d.Phases)
	}
	return guide.Compile(d.Steps)
}

// trial is a run that is not kept.
type trial struct {
	flow   guide.Flow
	state  guide.State
	events []triedEvent
}

func (t *trial) move(c guide.Command) *guide.Refusal {
	events, refusal := t.flow.Decide(t.state, c)
	if t.events == nil {
		t.events = []triedEvent{}
	}
	for _, e := range events {
		t.state = guide.Apply(t.state, e)
		t.events = append(t.events, triedEvent{len(t.events) + 1, e.Kind, e})
	}
	return refusal
}
