package run

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
)

// Status returns the position of a run. It accepts any handle of the run and returns the
// current one.
func (s *Service) Status(ctx context.Context, c Caller, ref Ref) (*Answer, error) {
	rec, l, err := s.loadByRef(ctx, c, ref)
	if err != nil {
		return nil, err
	}
	return s.newAnswer(ctx, rec, l, rec.Handle), nil
}

// Abort ends a run permanently. Aborting an aborted run has no effect, except that a
// person's abort is recorded after that of an agent.
func (s *Service) Abort(ctx context.Context, c Caller, r AbortRequest) (*Answer, error) {
	if err := checkLimits(sizeLimit{"reason", r.Reason, maxNotes}); err != nil {
		return nil, err
	}
	return retryOnConflict(ctx, func() (*Answer, error) {
		rec, l, err := s.loadByRef(ctx, c, r.Ref)
		if err != nil {
			return nil, err
		}
		if rec.Status == engine.StatusAborted {
			return s.confirmAbort(ctx, c, rec, l, r.Reason)
		}
		facts, refusal := l.program.Decide(l.state, engine.Command{Abort: &engine.Abort{Reason: r.Reason}})
		if refusal != nil {
			return nil, s.newRefusalAt(ctx, refusal, rec, l)
		}
		rec, l, err = s.commitChange(ctx, ByCaller(c), rec, l, runChange{facts: facts, words: r.Reason, moves: true})
		if err != nil {
			return nil, err
		}
		return s.newAnswer(ctx, rec, l, rec.Handle), nil
	})
}

// confirmAbort answers the abort of an aborted run. It records a person's abort unless an
// earlier one is recorded.
func (s *Service) confirmAbort(ctx context.Context, c Caller, rec Record, l *loadedRun, reason string) (*Answer, error) {
	confirmed, err := s.isAbortedByPerson(ctx, rec)
	if err != nil {
		return nil, err
	}
	if c.Via.Person() && !confirmed {
		e, err := newEvent(KindAbortConfirmed, AbortConfirmed{Reason: reason})
		if err != nil {
			return nil, err
		}
		if rec, l, err = s.commitChange(ctx, ByCaller(c), rec, l, runChange{otherEvents: []Event{e}, words: reason}); err != nil {
			return nil, err
		}
		return s.newAnswer(ctx, rec, l, rec.Handle), nil
	}
	a := s.newAnswer(ctx, rec, l, rec.Handle)
	a.Replayed = true
	return a, nil
}

// Fork creates a new run with the events of a run up to one of them. The original run does
// not change. Without an event number, a fork of a run that has ended or is at a dead end
// begins at the last event that leaves work to do.
func (s *Service) Fork(ctx context.Context, c Caller, r ForkRequest) (*Answer, error) {
	if err := checkLimits(sizeLimit{"requestId", r.RequestID, maxKey}); err != nil {
		return nil, err
	}
	h, rec, err := s.findByRef(ctx, c, r.Ref)
	if err != nil {
		return nil, err
	}
	again := StartRequest{WorkflowID: rec.Workflow, Goal: rec.Goal, RequestID: r.RequestID}
	if r.RequestID != "" {
		if a, err := s.replayStart(ctx, c, again); a != nil || err != nil {
			return a, err
		}
	}
	seq := h.Seq
	if r.Handle == "" {
		seq = rec.Seq
	}
	if r.Seq != 0 {
		seq = r.Seq
	}
	entries, err := s.readEntries(ctx, rec, min(max(seq, 0), rec.Seq))
	if err != nil {
		return nil, err
	}
	now, err := s.loadRun(ctx, rec)
	if err != nil {
		return nil, err
	}
	program, err := s.compiledProgram(ctx, rec.Hash)
	if err != nil {
		return nil, err
	}
	entries, seq, err = s.inheritEntries(ctx, c, rec, entries, seq)
	if err != nil {
		return nil, err
	}
	last := program.lastForkable(entries)
	if r.Seq == 0 && last > 0 {
		entries = entries[:last]
		seq = min(seq, entries[last-1].event.Seq)
	}
	if seq > rec.Seq || last == 0 || last < len(entries) {
		return nil, s.unforkableRefusal(ctx, rec, program, seq)
	}
	origin, err := s.readCreated(ctx, rec)
	if err != nil {
		return nil, err
	}
	created := Created{
		Workspace: origin.Workspace,
		Workflow:  rec.Workflow, Name: rec.Name, Version: rec.Version, Hash: rec.Hash, Goal: rec.Goal, Project: rec.Project,
		Parent: rec.ID, ParentSeq: seq, Marks: now.marks,
	}
	a, err := s.createRun(ctx, c, program, created, entries, r.RequestID)
	return s.orReplayStart(ctx, c, again, a, err)
}

// inheritEntries returns the entries that a fork of the caller copies, and the number of
// the last event. A fork does not copy that the run was aborted. An agent inherits no human
// approval: the person approved one run, not its copies. A person inherits only what that
// person alone could approve.
func (s *Service) inheritEntries(ctx context.Context, c Caller, rec Record, entries []entry, seq int64) ([]entry, int64, error) {
	if !c.Via.Person() {
		if err := s.refuseAbortedByPerson(ctx, rec); err != nil {
			return nil, 0, err
		}
	}
	for n := len(entries); n > 0 && entries[n-1].fact.Kind == engine.EventRunAborted; n = len(entries) {
		entries = entries[:n-1]
	}
	if seq > rec.Seq {
		return entries, seq, nil
	}
	alone := func(g *engine.OpenGate) bool {
		return c.Via.Person() && g.Approval.Accepts(c.Principal) && g.Approval.Persons() == 1
	}
	if own := beforeHumanApproval(entries, alone); len(own) < len(entries) {
		return own, own[len(own)-1].event.Seq, nil
	}
	return entries, seq, nil
}

// refuseAbortedByPerson refuses to fork or import a run that a person aborted.
func (s *Service) refuseAbortedByPerson(ctx context.Context, rec Record) error {
	if by, err := s.isAbortedByPerson(ctx, rec); !by {
		return err
	}
	return &Refusal{
		Code: guideway.CodeRefused, Rule: RuleAbortedByPerson, RunID: rec.ID,
		Message: "a person aborted the run, so an agent cannot continue it in a fork or an import",
		Fix:     "start a new run, or ask the person to fork this run in the dashboard or with guideway runs fork " + rec.ID,
		Next:    &Call{Tool: "workflow_start", Arguments: map[string]any{"workflowId": rec.Workflow}},
	}
}

// isAbortedByPerson reports whether a person aborted the run, also after an agent did.
func (s *Service) isAbortedByPerson(ctx context.Context, rec Record) (bool, error) {
	if rec.Status != engine.StatusAborted {
		return false, nil
	}
	events, err := s.readEvents(ctx, rec, rec.Seq)
	return slices.ContainsFunc(events, func(e Event) bool {
		return (e.Kind == string(engine.EventRunAborted) || e.Kind == KindAbortConfirmed) && e.By.Via.Person()
	}), err
}

// lastForkable returns the length of the longest prefix of the entries after which there is
// work left to do, or 0. A dead end has no work left.
func (p *program) lastForkable(entries []entry) int {
	states := make([]engine.State, len(entries)+1)
	for i, e := range entries {
		states[i+1] = engine.Apply(states[i], e.fact)
	}
	for n := len(entries); n > 0; n-- {
		if pos := p.PositionOf(states[n]); !isEnded(states[n].Ended) && pos.Kind != engine.PositionEnd && !pos.DeadEnd {
			return n
		}
	}
	return 0
}

// unforkableRefusal refuses an event that cannot be forked at and names the last one that
// can.
func (s *Service) unforkableRefusal(ctx context.Context, rec Record, p *program, seq int64) error {
	message := fmt.Sprintf("the run cannot be forked at event %d: after this event, the run has ended or is at a position from which no call can continue", seq)
	if seq < 1 || seq > rec.Seq {
		message = fmt.Sprintf("the run has no event %d: its last event is %d", seq, rec.Seq)
	}
	r := &Refusal{
		Code: guideway.CodeRefused, Rule: RuleUnknownSeq, Given: seq, RunID: rec.ID,
		Message: message,
		Fix:     "guideway runs show " + rec.ID + " --events, to list the events",
		Next:    StatusCall(Ref{RunID: rec.ID}),
	}
	entries, err := s.readEntries(ctx, rec, rec.Seq)
	if err != nil {
		return err
	}
	if last := p.lastForkable(entries); last > 0 {
		highest := entries[last-1].event.Seq
		r.Allowed = []int64{entries[0].event.Seq, highest}
		r.Next = forkCall(rec.ID, highest)
	}
	return r
}

// readEntries returns the engine's events of a run up to one event, after checking the
// chain.
func (s *Service) readEntries(ctx context.Context, rec Record, upTo int64) ([]entry, error) {
	events, err := s.readEvents(ctx, rec, upTo)
	if err != nil {
		return nil, err
	}
	var entries []entry
	for _, e := range events {
		fact, ok, err := parseFact(e)
		if err != nil {
			return nil, untrustedEventError(rec.ID, e.Seq, err.Error())
		}
		if ok {
			entries = append(entries, entry{fact: fact, event: e})
		}
	}
	return entries, nil
}

// readEvents returns the events of a run up to one event, after checking the chain.
func (s *Service) readEvents(ctx context.Context, rec Record, upTo int64) ([]Event, error) {
	var all []Event
	head := s.key.Root(rec.ID)
	for seq := int64(0); seq < upTo; {
		events, err := s.journal.Events(ctx, rec.ID, seq, int(min(pageSize, upTo-seq)))
		if err != nil {
			return nil, err
		}
		if len(events) == 0 {
			return nil, untrustedEventError(rec.ID, seq+1, "the event is missing")
		}
		for _, e := range events {
			if e.Seq != seq+1 {
				return nil, untrustedEventError(rec.ID, seq+1, "the event is missing")
			}
			if !equalMAC(e.MAC, s.key.Chain(rec.ID, head, e)) {
				return nil, untrustedEventError(rec.ID, e.Seq, eventChanged)
			}
			seq, head = e.Seq, e.MAC
		}
		all = append(all, events...)
	}
	return all, nil
}

// Start starts a run of the current definition of r.WorkflowID. The definition is pinned:
// later edits do not affect the run.
func (s *Service) Start(ctx context.Context, c Caller, r StartRequest) (*Answer, error) {
	err := checkLimits(sizeLimit{"goal", r.Goal, maxGoal}, sizeLimit{"requestId", r.RequestID, maxKey},
		sizeLimit{"project.id", r.Project.ID, maxKey}, sizeLimit{"project.path", r.Project.Path, maxGoal},
		sizeLimit{"project.branch", r.Project.Branch, maxBranch}, sizeLimit{"project.commit", r.Project.Commit, maxKey})
	if err != nil {
		return nil, err
	}
	named := r.Project.Path
	r.Project = s.shares.AllowedProject(c, r.Project)
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
	workspace, err := s.callerWorkspace(ctx, c, p, r.Project.Path, named)
	if err != nil {
		return nil, err
	}
	created := Created{
		Workflow: d.ID, Name: d.Name, Version: d.Version, Hash: d.Hash, Source: d.Source, Revision: d.Revision, Goal: normalizeGoal(r), Project: r.Project,
		Workspace: workspace,
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
