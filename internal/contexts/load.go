package contexts

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/contexts/compress"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/run"
)

// LoadRequest loads a checkpoint by its id, the last one of a session, or what
// was left out of a context by its reference.
type LoadRequest struct {
	ID, Session, Ref string
	// Keys are the variables that are wanted; none is all.
	Keys []string
	// Budget has the context reduced to so many tokens; 0 gives it as it is.
	Budget int
}

// Loaded is a context as it was saved, and where to go on with it.
type Loaded struct {
	ID      string          `json:"checkpointId,omitempty"`
	Session string          `json:"sessionId,omitempty"`
	Context json.RawMessage `json:"context,omitempty"`
	// Handle goes on with the run from where the checkpoint was taken. RunID is
	// the run that it belongs to: a fork where the run has gone on since.
	Handle   string           `json:"handle,omitempty"`
	RunID    string           `json:"runId,omitempty"`
	Forked   bool             `json:"forked,omitempty"`
	Status   engine.Status    `json:"status,omitempty"`
	Position *engine.Position `json:"position,omitempty"`
	Workflow string           `json:"workflowId,omitempty"`
	// NotSet are variables that the checkpoint has and the run has not.
	NotSet []string `json:"notSetInRun,omitempty"`
	// Completed are the steps of a walk by workflow_next.
	Completed []string `json:"completedSteps,omitempty"`
	// Next is a call that goes on.
	Next *run.Call `json:"next,omitempty"`
	// Note says what an agent should know before it goes on.
	Note    string     `json:"note,omitempty"`
	Name    string     `json:"name,omitempty"`
	Created *time.Time `json:"createdAt,omitempty"`
	Missing []string   `json:"missing,omitempty"`
	// Omitted tells what was left out for the budget.
	Omitted  []Omission           `json:"omitted,omitempty"`
	Degraded *checkpoint.Degraded `json:"degraded,omitempty"`
	Heads    []string             `json:"otherHeads,omitempty"`
	Warnings []checkpoint.Warning `json:"warnings,omitempty"`
	// Ref and Value are what a reference reads back.
	Ref   string           `json:"ref,omitempty"`
	Value json.RawMessage  `json:"value,omitempty"`
	Store checkpoint.Store `json:"store"`
}

// Load loads a checkpoint. Of a run it gives a handle that goes on from there:
// the run's own where nothing has happened since, else that of a fork. The run's
// variables and gates are those of its events; nothing of the stored context goes
// into it.
func (s *Service) Load(ctx context.Context, c run.Caller, r LoadRequest) (*Loaded, error) {
	if r.Ref != "" {
		if r.ID != "" || r.Session != "" {
			return nil, invalid("a ref is read back alone").WithFix("leave checkpointId and sessionId out")
		}
		return s.recall(ctx, c, r.Ref)
	}
	out, loaded, back, err := s.read(ctx, c, r)
	if err != nil {
		return nil, err
	}
	switch {
	case loaded.Run != "" && s.o.Runs != nil:
		err = s.goOn(ctx, c, loaded, back, out)
	case back.walk != nil:
		out.Completed = back.walk.Completed
		out.Note = "go on with workflow_next: give it workflowId, completedSteps and context as they are here"
	}
	return out, err
}

// Show gives what a checkpoint holds, for whoever looks on: it forks nothing and
// gives no handle.
func (s *Service) Show(ctx context.Context, c run.Caller, id string) (*Loaded, error) {
	out, _, back, err := s.read(ctx, c, LoadRequest{ID: id})
	if err != nil {
		return nil, err
	}
	if back.run != nil {
		out.RunID, out.Status, out.Position = back.run.RunID, back.run.Status, &back.run.Position
	}
	if back.walk != nil {
		out.Completed = back.walk.Completed
	}
	return out, nil
}

// read reads a checkpoint, and changes nothing.
func (s *Service) read(ctx context.Context, c run.Caller, r LoadRequest) (*Loaded, *checkpoint.Loaded, *restored, error) {
	if r.ID == "" {
		s.settled(ctx, c, r.Session)
	}
	loaded, err := s.o.Checkpoints.Load(ctx, c.Principal, checkpoint.LoadRequest{ID: r.ID, Session: r.Session})
	if err != nil {
		return nil, nil, nil, s.noneYet(ctx, c, r, err)
	}
	back, err := restore(loaded.Context)
	if err != nil {
		return nil, nil, nil, err
	}
	out := &Loaded{
		ID: loaded.ID, Session: loaded.Session, Workflow: loaded.Workflow, Name: loaded.Name, Created: &loaded.Created,
		Degraded: loaded.Degraded, Heads: loaded.Heads, Warnings: loaded.Warnings, Store: loaded.Store,
	}
	vars := back.context
	if len(r.Keys) > 0 {
		vars, out.Missing = chosen(vars, r.Keys)
	}
	if r.Budget > 0 {
		if vars, err = s.fit(ctx, c, out, loaded, vars, r.Budget); err != nil {
			return nil, nil, nil, err
		}
	}
	out.Context, err = encode(vars)
	return out, loaded, back, err
}

// noneYet points to the run itself where a run has no checkpoint yet.
func (s *Service) noneYet(ctx context.Context, c run.Caller, r LoadRequest, err error) error {
	if r.ID != "" || !isRun(r.Session) || s.o.Runs == nil || guideway.ErrorCode(err) != guideway.CodeNotFound {
		return err
	}
	ref := run.Ref{RunID: r.Session}
	if _, look := s.o.Runs.Look(ctx, c, ref); look != nil {
		return err // it is no run of the caller's
	}
	return &run.Refusal{
		Code: guideway.CodeNotFound, Rule: ruleNoCheckpoint, RunID: r.Session,
		Message: "the run has no checkpoint yet; workflow_status gives its context and the handle that goes on", Next: run.StatusCall(ref),
	}
}

// ruleNoCheckpoint refuses to load a run that has not been saved yet.
const ruleNoCheckpoint = "no-checkpoint"

// chosen takes some variables, and names those that are not there.
func chosen(all map[string]json.RawMessage, keys []string) (some map[string]json.RawMessage, missing []string) {
	some = map[string]json.RawMessage{}
	for _, key := range keys {
		if value, there := all[key]; there {
			some[key] = value
		} else {
			missing = append(missing, key)
		}
	}
	return some, missing
}

// fit reduces a context to a budget. That of a run goes by the hints of its pinned
// definition and by the run's marks; its checkpoint has neither.
func (s *Service) fit(ctx context.Context, c run.Caller, out *Loaded, loaded *checkpoint.Loaded, vars map[string]json.RawMessage, budget int) (compress.Context, error) {
	m, err := s.sessionMaterial(ctx, c, sessionContext{session: loaded.Session, workflow: loaded.Workflow, values: vars})
	if err != nil {
		return nil, err
	}
	if loaded.Run != "" && s.o.Runs != nil {
		// A run that is away leaves what its workflow says now.
		if d, err := s.o.Runs.Look(ctx, c, run.Ref{RunID: loaded.Run}); err == nil {
			own, err := s.materialOf(ctx, c, d)
			if err != nil {
				return nil, err
			}
			m.hints, m.question = own.hints, own.question
		}
	}
	reduced, err := s.compress(ctx, m, Fit{Budget: budget})
	if err != nil {
		return nil, err
	}
	out.Omitted, out.Note = reduced.Omitted, reduced.Over
	return reduced.Context, nil
}

// goOn gives the handle that goes on from a checkpoint of a run.
func (s *Service) goOn(ctx context.Context, c run.Caller, loaded *checkpoint.Loaded, back *restored, out *Loaded) error {
	ref := run.Ref{RunID: loaded.Run}
	now, err := s.o.Runs.Status(ctx, c, ref)
	switch code := guideway.ErrorCode(err); {
	case code == guideway.CodeNotFound || code == guideway.CodeUnavailable:
		out.Note = "the run " + loaded.Run + " cannot be gone on with here, so this is its context alone: " + err.Error()
		return nil
	case err != nil:
		return err
	}
	moved, err := s.hasMoved(ctx, c, ref, loaded.RunSeq)
	if err != nil {
		return err
	}
	if moved {
		if now, err = s.forkAt(ctx, c, loaded); err != nil {
			if refusal, ok := run.IsRefusal(err); ok {
				out.Note, out.Next = "nothing can be done from there: "+refusal.Message, refusal.Next
				return nil
			}
			return err
		}
		out.Forked = true
		out.Note = "the run has gone on since: the handle is that of a fork that begins at the checkpoint"
	}
	out.Handle, out.RunID, out.Status, out.Position, out.Next = now.Handle, now.RunID, now.Status, &now.Position, now.Next
	return s.notSet(ctx, c, now.RunID, back, out)
}

// notSet names what the checkpoint has besides the run's variables: it was kept
// for the agent, who may hand it in.
func (s *Service) notSet(ctx context.Context, c run.Caller, id string, back *restored, out *Loaded) error {
	d, err := s.o.Runs.Look(ctx, c, run.Ref{RunID: id})
	if err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(back.context)) {
		have, set := d.Variables[key]
		if set {
			text, err := encode(have)
			if err != nil {
				return err
			}
			set = string(text) == string(back.context[key])
		}
		if !set {
			out.NotSet = append(out.NotSet, key)
		}
	}
	return nil
}

// hasMoved says whether a run has done anything behind an event of it.
func (s *Service) hasMoved(ctx context.Context, c run.Caller, ref run.Ref, seq int64) (bool, error) {
	for {
		events, err := s.o.Runs.Events(ctx, c, ref, seq, eventPage)
		if err != nil || len(events) == 0 {
			return false, err
		}
		for _, e := range events {
			if e.Kind != run.KindRefused && e.Kind != run.KindMarked {
				return true, nil
			}
			seq = e.Seq
		}
	}
}

// forkAt forks a run where a checkpoint was taken. A fork that was made for the
// checkpoint before, and has not been gone on with, is taken again: a call that is
// repeated makes no second one.
func (s *Service) forkAt(ctx context.Context, c run.Caller, loaded *checkpoint.Loaded) (*run.Answer, error) {
	request := run.ForkRequest{Ref: run.Ref{RunID: loaded.Run}, Seq: loaded.RunSeq, RequestID: "checkpoint " + loaded.ID}
	forked, err := s.o.Runs.Fork(ctx, c, request)
	if err != nil || !forked.Replayed {
		return forked, err
	}
	now, err := s.o.Runs.Status(ctx, c, run.Ref{RunID: forked.RunID})
	if err != nil || now.Handle == forked.Handle {
		return now, err
	}
	request.RequestID = ""
	return s.o.Runs.Fork(ctx, c, request)
}
