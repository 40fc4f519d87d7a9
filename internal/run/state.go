package run

import (
	"context"
	"encoding/json"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
)

// State gives a run of the caller's as a document that is valid against the
// state schema (seed 002), whatever its dialect.
func (s *Service) State(ctx context.Context, c Caller, ref Ref) (*engine.StateDocument, error) {
	_, rec, err := s.byRef(ctx, c, ref)
	if err != nil {
		return nil, err
	}
	p, err := s.compiled(ctx, rec.Hash)
	if err != nil {
		return nil, err
	}
	events, err := s.events(ctx, rec, rec.Seq)
	if err != nil {
		return nil, err
	}
	timed := make([]engine.TimedEvent, 0, len(events))
	for _, e := range events {
		if e.Kind == KindRefused {
			timed = append(timed, refusedAttempt(e))
			continue
		}
		fact, ok, err := factOf(e)
		if err != nil {
			return nil, broken(rec.ID, e.Seq, err.Error())
		}
		if ok {
			timed = append(timed, engine.TimedEvent{At: e.At, Event: fact})
		}
	}
	doc := p.Document(timed)
	return &doc, nil
}

// refusedAttempt tells a refused attempt as documents do.
func refusedAttempt(e Event) engine.TimedEvent {
	out := engine.TimedEvent{At: e.At, Event: engine.Event{Kind: engine.EventError, Message: "an attempt was refused"}}
	var r Refused
	if json.Unmarshal(e.Data, &r) == nil {
		out.Message, out.Reason = r.Message, r.Rule
	}
	return out
}

// ImportState begins a run of the caller's where a state document says, of the
// definition that is served for its workflowId now. What the document says was
// done is believed, so that where gates are a person's, only a person imports.
func (s *Service) ImportState(ctx context.Context, c Caller, document []byte, project Project) (*Answer, error) {
	var head struct {
		WorkflowID      string `json:"workflowId"`
		WorkflowVersion string `json:"workflowVersion"`
	}
	if err := json.Unmarshal(document, &head); err != nil {
		return nil, guideway.Errorf(guideway.CodeInvalid, "the state does not read: %w", err)
	}
	d, err := s.definitions.Startable(ctx, head.WorkflowID)
	if err != nil {
		return nil, cannotStart(head.WorkflowID, err)
	}
	p := compile(d)
	importer, ok := p.Flow.(*engine.PhaseProgram)
	if !ok {
		return nil, guideway.Errorf(guideway.CodeInvalid, "'%s' is no phase workflow: a state document cannot say where it stands", d.ID).
			WithFix("guideway runs import takes the bundle of a run")
	}
	if (s.personGates || importer.AsksPersons()) && !c.Via.Person() {
		return nil, &Refusal{
			Code: guideway.CodeRefused, Rule: engine.RulePerson,
			Message: "the workflow has gates that only a person opens, and a document could claim that one did",
			Fix:     "a person imports it, or the run is started anew",
			Next:    &Call{Tool: "workflow_start", Arguments: map[string]any{"workflowId": d.ID}},
		}
	}
	e, err := importer.Import(document)
	if err != nil {
		return nil, err
	}
	if s.personGates {
		e.Person = true
	}
	created := Created{
		Workflow: d.ID, Name: d.Name, Version: d.Version, Hash: d.Hash, Project: project,
		Imported: cut("state of version "+head.WorkflowVersion, maxKey),
	}
	return s.begin(ctx, c, p, created, factsOnly([]engine.Event{e}), "")
}
