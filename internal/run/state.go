package run

import (
	"context"
	"encoding/json"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
)

// State returns a run of the caller as a document that is valid against the state schema,
// for either dialect.
func (s *Service) State(ctx context.Context, c Caller, ref Ref) (*engine.StateDocument, error) {
	_, rec, err := s.findByRef(ctx, c, ref)
	if err != nil {
		return nil, err
	}
	p, err := s.compiledProgram(ctx, rec.Hash)
	if err != nil {
		return nil, err
	}
	events, err := s.readEvents(ctx, rec, rec.Seq)
	if err != nil {
		return nil, err
	}
	timed := make([]engine.TimedEvent, 0, len(events))
	for _, e := range events {
		if e.Kind == KindRefused {
			timed = append(timed, newRefusedEvent(e))
			continue
		}
		fact, ok, err := parseFact(e)
		if err != nil {
			return nil, untrustedEventError(rec.ID, e.Seq, err.Error())
		}
		if ok {
			timed = append(timed, engine.TimedEvent{At: e.At, Event: fact})
		}
	}
	doc := p.Document(timed)
	return &doc, nil
}

// newRefusedEvent returns a refused attempt in the format of state documents.
func newRefusedEvent(e Event) engine.TimedEvent {
	out := engine.TimedEvent{At: e.At, Event: engine.Event{Kind: engine.EventError, Message: "an attempt was refused"}}
	var r Refused
	if json.Unmarshal(e.Data, &r) == nil {
		out.Message, out.Reason = r.Message, r.Rule
	}
	return out
}

// ImportState starts a run of the caller at the position of a state document, with the
// current definition of its workflowId. The document is trusted, so if the workflow needs
// human approvals, only a person can import.
func (s *Service) ImportState(ctx context.Context, c Caller, document []byte, project Project) (*Answer, error) {
	var head struct {
		WorkflowID      string `json:"workflowId"`
		WorkflowVersion string `json:"workflowVersion"`
	}
	if err := json.Unmarshal(document, &head); err != nil {
		return nil, guideway.Errorf(guideway.CodeInvalid, "the state document cannot be decoded: %w", err).
			WithFix("write a state document as guideway schema phases --kind state describes it")
	}
	d, err := s.definitions.Startable(ctx, head.WorkflowID)
	if err != nil {
		return nil, startError(head.WorkflowID, err)
	}
	p := compileProgram(d)
	importer, ok := p.Flow.(*engine.PhaseProgram)
	if !ok {
		return nil, guideway.Errorf(guideway.CodeInvalid, "'%s' is not a phase workflow: a state document cannot describe its position", d.ID).
			WithFix("import the bundle of a run with: guideway runs import")
	}
	if err := s.checkStateImport(c, p, d.ID); err != nil {
		return nil, err
	}
	e, err := importer.Import(document)
	if err != nil {
		return nil, err
	}
	if s.personGates {
		e.Person = true
	}
	created := Created{
		Workflow: d.ID, Name: d.Name, Version: d.Version, Hash: d.Hash, Project: s.shares.AllowedProject(c, project),
		Imported: Truncate("state of version "+head.WorkflowVersion, maxKey),
	}
	return s.createRun(ctx, c, p, created, factEntries([]engine.Event{e}), "")
}

// checkStateImport refuses the import of a state by an agent if a gate of the run requires
// human approval.
func (s *Service) checkStateImport(c Caller, p *program, workflowID string) error {
	phases, ok := p.Flow.(*engine.PhaseProgram)
	asks := s.personGates || ok && phases.AsksPersons()
	if !asks || c.Approves() {
		return nil
	}
	return &Refusal{
		Code: guideway.CodeRefused, Rule: engine.RulePerson,
		Message: "the workflow requires human approval, and a state document does not prove that a person gave it",
		Fix:     "let a person import the state document at a terminal with guideway runs import, or start a new run",
		Next:    &Call{Tool: "workflow_start", Arguments: map[string]any{"workflowId": workflowID}},
	}
}
