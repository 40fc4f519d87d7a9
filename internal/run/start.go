package run

import (
	"context"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
)

// Start begins a run of the definition that is served for an id now. The
// definition is pinned: later edits do not change the run.
func (s *Service) Start(ctx context.Context, c Caller, r StartRequest) (*Answer, error) {
	err := withinLimits(limit{"goal", r.Goal, maxGoal}, limit{"requestId", r.RequestID, maxKey},
		limit{"project.id", r.Project.ID, maxKey}, limit{"project.path", r.Project.Path, maxGoal},
		limit{"project.branch", r.Project.Branch, maxBranch}, limit{"project.commit", r.Project.Commit, maxKey})
	if err != nil {
		return nil, err
	}
	if r.RequestID != "" {
		if a, err := s.started(ctx, c, r); a != nil || err != nil {
			return a, err
		}
	}
	d, err := s.definitions.Startable(ctx, r.WorkflowID)
	if err != nil {
		return nil, cannotStart(r.WorkflowID, err)
	}
	p := compile(d)
	vars, err := own(r.Context)
	if err != nil {
		return nil, err
	}
	facts, refusal := p.Decide(engine.State{}, engine.Command{Start: &engine.Start{Context: vars, Person: s.personGates}})
	if refusal != nil {
		return nil, refused(refusal)
	}
	created := Created{
		Workflow: d.ID, Name: d.Name, Version: d.Version, Hash: d.Hash, Source: d.Source, Revision: d.Revision, Goal: goalOf(r), Project: r.Project,
	}
	a, err := s.begin(ctx, c, p, created, factsOnly(facts), r.RequestID)
	if r.RequestID != "" && guideway.ErrorCode(err) == guideway.CodeConflict {
		if first, again := s.started(ctx, c, r); first != nil {
			return first, again // the same request was faster
		}
	}
	return a, err
}

// started gives the answer of a request that was carried out before, or nil.
func (s *Service) started(ctx context.Context, c Caller, r StartRequest) (*Answer, error) {
	if err := s.open(ctx); err != nil {
		return nil, err
	}
	h, err := s.journal.Outcome(ctx, "", c.User, r.RequestID)
	if guideway.ErrorCode(err) == guideway.CodeNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	rec, err := s.journal.Run(ctx, h.Run)
	if err != nil {
		return nil, err
	}
	id, _, _ := strings.Cut(r.WorkflowID, "@") // what follows names a source
	if rec.Workflow != id || rec.Goal != goalOf(r) {
		return nil, &Refusal{
			Code: guideway.CodeRefused, Rule: RuleRequestReused, Given: r.RequestID, RunID: rec.ID,
			Message: "this request id has begun another run", Fix: "use a new request id for each run",
			Next: StatusCall(Ref{RunID: rec.ID}),
		}
	}
	return s.answerAt(ctx, rec, h)
}

// goalOf is the goal of a request as it is kept.
func goalOf(r StartRequest) string { return strings.TrimSpace(wellFormed(r.Goal)) }

// cannotStart says why a workflow cannot be run.
func cannotStart(id string, err error) error {
	switch code := guideway.ErrorCode(err); code {
	case guideway.CodeNotFound, guideway.CodeInvalidDefinition:
		rule := RuleUnknownWorkflow
		if code == guideway.CodeInvalidDefinition {
			rule = engine.RuleDefinition
		}
		return &Refusal{
			Code: code, Rule: rule, Message: err.Error(), Given: cut(id, maxKey), Fix: guideway.ErrorFix(err),
			Next: &Call{Tool: "workflow_list", Arguments: map[string]any{}},
		}
	default:
		return err
	}
}

// entry is an event with whose doing it was, or without for the command's own.
type entry struct {
	fact  engine.Event
	event Event
}

func factsOnly(facts []engine.Event) []entry {
	entries := make([]entry, len(facts))
	for i, f := range facts {
		entries[i].fact = f
	}
	return entries
}

// begin stores a new run that has had these events.
func (s *Service) begin(ctx context.Context, c Caller, p *program, created Created, entries []entry, request string) (*Answer, error) {
	if err := s.open(ctx); err != nil {
		return nil, err
	}
	first, err := newEvent(KindCreated, created)
	if err != nil {
		return nil, err
	}
	now := s.clock()
	first.At, first.By = now, by(c)
	rec := recordOf(newRunID(now), created, first)
	l := &loaded{of: rec.identity(), head: s.key.Root(rec.ID), program: p, marks: created.Marks}
	ch := change{others: []Event{first}, key: request, moves: true}
	facts := make([]engine.Event, 0, len(entries))
	for _, e := range entries {
		ev, err := eventOf(e.fact)
		if err != nil {
			return nil, err
		}
		ev.At, ev.By = e.event.At, e.event.By
		ch.others = append(ch.others, ev)
		l.state = engine.Apply(l.state, e.fact)
		facts = append(facts, e.fact)
		if e.event.At.IsZero() {
			ch.news = append(ch.news, e.fact)
		}
	}
	ch.words = wordsOf(facts)
	rec, l, err = s.commit(ctx, by(c), rec, l, ch)
	if err != nil {
		return nil, err
	}
	return answerOf(rec, l.program, l.state, rec.Handle), nil
}
