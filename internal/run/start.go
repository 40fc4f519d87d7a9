package run

import (
	"context"
	"fmt"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
)

// Start starts a run of the current definition of r.WorkflowID. The definition is pinned:
// later edits do not affect the run.
func (s *Service) Start(ctx context.Context, c Caller, r StartRequest) (*Answer, error) {
	err := checkLimits(sizeLimit{"goal", r.Goal, maxGoal}, sizeLimit{"requestId", r.RequestID, maxKey},
		sizeLimit{"project.id", r.Project.ID, maxKey}, sizeLimit{"project.path", r.Project.Path, maxGoal},
		sizeLimit{"project.branch", r.Project.Branch, maxBranch}, sizeLimit{"project.commit", r.Project.Commit, maxKey})
	if err != nil {
		return nil, err
	}
	if r.RequestID != "" {
		if a, err := s.replayStart(ctx, c, r); a != nil || err != nil {
			return a, err
		}
	}
	definitions := r.Definitions
	if definitions == nil {
		definitions = s.definitions
	}
	d, err := definitions.Startable(ctx, r.WorkflowID)
	if err != nil {
		return nil, startError(r.WorkflowID, err)
	}
	p := compileProgram(d)
	vars, err := normalizeVars(r.Context)
	if err != nil {
		return nil, err
	}
	facts, refusal := p.Decide(engine.State{}, engine.Command{Start: &engine.Start{Context: vars, Person: s.personGates}})
	if refusal != nil {
		return nil, newRefusal(refusal)
	}
	created := Created{
		Workflow: d.ID, Name: d.Name, Version: d.Version, Hash: d.Hash, Source: d.Source, Revision: d.Revision, Goal: normalizeGoal(r), Project: r.Project,
		Workspace: s.startWorkspace(ctx, p, r.Project.Path),
	}
	a, err := s.createRun(ctx, c, p, created, factEntries(facts), r.RequestID)
	return s.orReplayStart(ctx, c, r, a, err)
}

// orReplayStart returns the result of a new run, or, if a concurrent repeat of the request
// created its run first, the answer of that one.
func (s *Service) orReplayStart(ctx context.Context, c Caller, r StartRequest, a *Answer, err error) (*Answer, error) {
	if r.RequestID == "" || guideway.ErrorCode(err) != guideway.CodeConflict {
		return a, err
	}
	if first, again := s.replayStart(ctx, c, r); first != nil || again != nil {
		return first, again
	}
	return a, err
}

// replayStart returns the answer of a request that was executed before, or nil.
func (s *Service) replayStart(ctx context.Context, c Caller, r StartRequest) (*Answer, error) {
	if err := s.openJournal(ctx); err != nil {
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
	id, _, _ := strings.Cut(r.WorkflowID, "@") // "@" is followed by a source
	if rec.Workflow != id || rec.Goal != normalizeGoal(r) {
		return nil, &Refusal{
			Code: guideway.CodeRefused, Rule: RuleRequestReused, Given: r.RequestID, RunID: rec.ID,
			Message: fmt.Sprintf("run %s was started with this request id and another workflow or goal", rec.ID), Fix: "use a new request id for each run",
			Next: StatusCall(Ref{RunID: rec.ID}),
		}
	}
	return s.earlierAnswer(ctx, rec, h)
}

// normalizeGoal returns the goal of a request as it is stored.
func normalizeGoal(r StartRequest) string { return strings.TrimSpace(toValidUTF8(r.Goal)) }

// startError returns the error for a workflow that cannot be started.
func startError(id string, err error) error {
	switch code := guideway.ErrorCode(err); code {
	case guideway.CodeNotFound, guideway.CodeInvalidDefinition:
		rule := RuleUnknownWorkflow
		if code == guideway.CodeInvalidDefinition {
			rule = engine.RuleDefinition
		}
		return &Refusal{
			Code: code, Rule: rule, Message: err.Error(), Given: Truncate(id, maxKey), Fix: guideway.ErrorFix(err),
			Next: &Call{Tool: "workflow_list", Arguments: map[string]any{}},
		}
	default:
		return err
	}
}

// entry is an event of the engine with its journal event. The journal event has no time and
// no author if it belongs to the current command.
type entry struct {
	fact  engine.Event
	event Event
}

func factEntries(facts []engine.Event) []entry {
	entries := make([]entry, len(facts))
	for i, f := range facts {
		entries[i].fact = f
	}
	return entries
}

// createRun stores a new run with these events.
func (s *Service) createRun(ctx context.Context, c Caller, p *program, created Created, entries []entry, request string) (*Answer, error) {
	if err := s.openJournal(ctx); err != nil {
		return nil, err
	}
	first, err := newEvent(KindCreated, created)
	if err != nil {
		return nil, err
	}
	now := s.currentTime()
	first.At, first.By = now, ByCaller(c)
	rec := InitialRecord(newRunID(now), created, first)
	l := &loadedRun{identity: rec.identityOf(), head: s.key.Root(rec.ID), program: p, marks: created.Marks}
	ch := runChange{otherEvents: []Event{first}, key: request, moves: true}
	facts := make([]engine.Event, 0, len(entries))
	for _, e := range entries {
		ev, err := newFactEvent(e.fact)
		if err != nil {
			return nil, err
		}
		ev.At, ev.By = e.event.At, e.event.By
		ch.otherEvents = append(ch.otherEvents, ev)
		l.state = engine.Apply(l.state, e.fact)
		facts = append(facts, e.fact)
		if e.event.At.IsZero() {
			ch.extraFacts = append(ch.extraFacts, e.fact)
		}
	}
	ch.words = searchText(facts)
	rec, l, err = s.commitChange(ctx, ByCaller(c), rec, l, ch)
	if err != nil {
		return nil, err
	}
	return s.newAnswer(ctx, rec, l, rec.Handle), nil
}
