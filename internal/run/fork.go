package run

import (
	"context"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
)

// Status says where a run stands. It takes any handle that the run ever had, and
// answers the current one.
func (s *Service) Status(ctx context.Context, c Caller, ref Ref) (*Answer, error) {
	_, rec, err := s.byRef(ctx, c, ref)
	if err != nil {
		return nil, err
	}
	l, err := s.load(ctx, rec)
	if err != nil {
		return nil, err
	}
	return answerOf(rec, l.program, l.state, rec.Handle), nil
}

// Abort ends a run for good. To abort one that is aborted changes nothing.
func (s *Service) Abort(ctx context.Context, c Caller, r AbortRequest) (*Answer, error) {
	if err := withinLimits(limit{"reason", r.Reason, maxNotes}); err != nil {
		return nil, err
	}
	return again(ctx, func() (*Answer, error) {
		_, rec, err := s.byRef(ctx, c, r.Ref)
		if err != nil {
			return nil, err
		}
		l, err := s.load(ctx, rec)
		if err != nil {
			return nil, err
		}
		if rec.Status == engine.StatusAborted {
			a := answerOf(rec, l.program, l.state, rec.Handle)
			a.Replayed = true
			return a, nil
		}
		facts, refusal := l.program.Decide(l.state, engine.Command{Abort: &engine.Abort{Reason: r.Reason}})
		if refusal != nil {
			return nil, refusedAt(refusal, rec, l)
		}
		rec, l, err = s.commit(ctx, by(c), rec, l, change{facts: facts, words: r.Reason, moves: true})
		if err != nil {
			return nil, err
		}
		return answerOf(rec, l.program, l.state, rec.Handle), nil
	})
}

// Fork makes a new run that has had the same events up to one, and goes its own
// way from there. The old run stays as it is. Where no event is named, a run that
// has ended is forked at the last one behind which there was something to do.
func (s *Service) Fork(ctx context.Context, c Caller, r ForkRequest) (*Answer, error) {
	if err := withinLimits(limit{"requestId", r.RequestID, maxKey}); err != nil {
		return nil, err
	}
	h, rec, err := s.byRef(ctx, c, r.Ref)
	if err != nil {
		return nil, err
	}
	if r.RequestID != "" {
		again := StartRequest{WorkflowID: rec.Workflow, Goal: rec.Goal, RequestID: r.RequestID}
		if a, err := s.started(ctx, c, again); a != nil || err != nil {
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
	entries, err := s.entries(ctx, rec, min(max(seq, 0), rec.Seq))
	if err != nil {
		return nil, err
	}
	now, err := s.load(ctx, rec)
	if err != nil {
		return nil, err
	}
	program, err := s.compiled(ctx, rec.Hash)
	if err != nil {
		return nil, err
	}
	// That it was aborted is not taken over.
	for n := len(entries); n > 0 && entries[n-1].fact.Kind == engine.EventRunAborted; n = len(entries) {
		entries = entries[:n-1]
	}
	last := program.lastOpen(entries)
	if r.Seq == 0 && last > 0 {
		entries = entries[:last]
		seq = min(seq, entries[last-1].event.Seq)
	}
	if seq < 1 || seq > rec.Seq || last == 0 || last < len(entries) {
		return nil, s.notAFork(ctx, rec, program, seq)
	}
	created := Created{
		Workflow: rec.Workflow, Name: rec.Name, Version: rec.Version, Hash: rec.Hash, Goal: rec.Goal, Project: rec.Project,
		Parent: rec.ID, ParentSeq: seq, Marks: now.marks,
	}
	return s.begin(ctx, c, program, created, entries, r.RequestID)
}

// lastOpen is how many of the entries lead to a position where there is
// something to do, at most; 0 if there are none such.
func (p *program) lastOpen(entries []entry) int {
	states := make([]engine.State, len(entries)+1)
	for i, e := range entries {
		states[i+1] = engine.Apply(states[i], e.fact)
	}
	for n := len(entries); n > 0; n-- {
		if !isEnded(states[n].Ended) && p.PositionOf(states[n]).Kind != engine.PositionEnd {
			return n
		}
	}
	return 0
}

// notAFork refuses a place that cannot be forked, and names the last one that can.
func (s *Service) notAFork(ctx context.Context, rec Record, p *program, seq int64) error {
	r := &Refusal{
		Code: guideway.CodeRefused, Rule: RuleUnknownSeq, Given: seq, RunID: rec.ID,
		Message: "the run cannot be forked at that event: it has none of that number, or nothing to do behind it",
		Fix:     "guideway runs show " + rec.ID + " --events lists them",
		Next:    StatusCall(Ref{RunID: rec.ID}),
	}
	entries, err := s.entries(ctx, rec, rec.Seq)
	if err != nil {
		return err
	}
	if last := p.lastOpen(entries); last > 0 {
		highest := entries[last-1].event.Seq
		r.Allowed = []int64{entries[0].event.Seq, highest}
		r.Next = &Call{Tool: "workflow_fork", Arguments: map[string]any{"runId": rec.ID, "seq": highest}}
	}
	return r
}

// entries gives the engine's events of a run up to one, each checked.
func (s *Service) entries(ctx context.Context, rec Record, upTo int64) ([]entry, error) {
	events, err := s.events(ctx, rec, upTo)
	if err != nil {
		return nil, err
	}
	var entries []entry
	for _, e := range events {
		fact, ok, err := factOf(e)
		if err != nil {
			return nil, broken(rec.ID, e.Seq, err.Error())
		}
		if ok {
			entries = append(entries, entry{fact: fact, event: e})
		}
	}
	return entries, nil
}

// events gives a run's events up to one, and checks their chain.
func (s *Service) events(ctx context.Context, rec Record, upTo int64) ([]Event, error) {
	var all []Event
	head := s.key.Root(rec.ID)
	for seq := int64(0); seq < upTo; {
		events, err := s.journal.Events(ctx, rec.ID, seq, int(min(page, upTo-seq)))
		if err != nil {
			return nil, err
		}
		if len(events) == 0 {
			return nil, broken(rec.ID, seq+1, "it is missing")
		}
		for _, e := range events {
			if e.Seq != seq+1 || !sameMAC(e.MAC, s.key.Chain(rec.ID, head, e)) {
				return nil, broken(rec.ID, seq+1, "it is not what was written")
			}
			seq, head = e.Seq, e.MAC
		}
		all = append(all, events...)
	}
	return all, nil
}
