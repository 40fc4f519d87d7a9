package contexts

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/contexts/compress"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/run"
)

// LoadRequest selects a checkpoint by its id, the last checkpoint of a session, or an
// omitted value by its reference.
type LoadRequest struct {
	ID, Session, Ref string
	// Keys are the requested variables; empty means all.
	Keys []string
	// Lines is a range of lines of the text, such as "120-180". Find is a text: the lines
	// that contain it are loaded, with their numbers.
	Lines, Find string
	// Question selects what is kept within a budget.
	Question string
	// Budget reduces the answer to that many tokens. 0 means that variables or lines are left
	// out above maxLoaded bytes, or questionBudget if there is a question.
	Budget int
	// NoRuns reports that the caller may not use runs. Then references to runs are refused
	// with CodeForbidden, and no run is continued.
	NoRuns bool
}

// maxPlaceNote bounds the part of a note about the position of a run, in bytes.
const maxPlaceNote = 400

// Loaded is a loaded context, and for a run the handle to continue from the checkpoint.
type Loaded struct {
	ID      string          `json:"checkpointId,omitempty"`
	Session string          `json:"sessionId,omitempty"`
	Context json.RawMessage `json:"context,omitempty"`
	// Handle continues the run from the checkpoint. RunID is the run of the handle: a fork
	// if the original run has continued since.
	Handle   string           `json:"handle,omitempty"`
	RunID    string           `json:"runId,omitempty"`
	Forked   bool             `json:"forked,omitempty"`
	Status   engine.Status    `json:"status,omitempty"`
	Position *engine.Position `json:"position,omitempty"`
	Workflow string           `json:"workflowId,omitempty"`
	// NotSet are the variables of the checkpoint that the run lacks or has with a different
	// value.
	NotSet []string `json:"notSetInRun,omitempty"`
	// Completed are the completed steps of a walk by workflow_next.
	Completed []string `json:"completedSteps,omitempty"`
	// Next is the call that continues the run.
	Next *run.Call `json:"next,omitempty"`
	// Note is a remark for the agent.
	Note    string     `json:"note,omitempty"`
	Name    string     `json:"name,omitempty"`
	Created *time.Time `json:"createdAt,omitempty"`
	Missing []string   `json:"missing,omitempty"`
	// Omitted lists the values omitted for the budget.
	Omitted  []Omission           `json:"omitted,omitempty"`
	Degraded *checkpoint.Degraded `json:"degraded,omitempty"`
	Heads    []string             `json:"otherHeads,omitempty"`
	Warnings []checkpoint.Warning `json:"warnings,omitempty"`
	// Ref and Value are the requested reference and the omitted value, if a reference was
	// loaded.
	Ref   string           `json:"ref,omitempty"`
	Value json.RawMessage  `json:"value,omitempty"`
	Store checkpoint.Store `json:"store"`
}

// Load loads a checkpoint. For a checkpoint of a run it returns a handle to continue from
// the checkpoint: the handle of the run if the run has no later events, otherwise the
// handle of a fork. The run's variables and gates follow from its events only; the stored
// context does not change them.
func (s *Service) Load(ctx context.Context, c run.Caller, r LoadRequest) (*Loaded, error) {
	if err := r.validate(); err != nil {
		return nil, err
	}
	var out *Loaded
	var src *source
	var err error
	if r.Ref != "" {
		out = &Loaded{Ref: r.Ref, Store: s.Store()}
		src, err = s.loadRef(ctx, c, r, out)
	} else {
		out, src, err = s.loadCheckpoint(ctx, c, r)
	}
	if err != nil {
		return nil, err
	}
	if err := src.selectKeys(r, out); err != nil {
		return nil, err
	}
	return out, s.selectPart(ctx, c, r, src, out)
}

// loadCheckpoint loads the variables of a checkpoint, and continues its run.
func (s *Service) loadCheckpoint(ctx context.Context, c run.Caller, r LoadRequest) (*Loaded, *source, error) {
	out, loaded, back, err := s.readCheckpoint(ctx, c, r)
	if err != nil {
		return nil, nil, err
	}
	switch {
	case r.partOnly():
	case loaded.Run != "" && r.NoRuns:
		out.Note = "the token does not allow the toolset runs, so the run " + loaded.Run + " is not continued and only its context is returned"
	case loaded.Run != "" && s.o.Runs != nil:
		err = s.continueFrom(ctx, c, loaded, back, out)
	case back.walk != nil:
		out.Completed = back.walk.Completed
		out.Note = "continue with workflow_next: pass workflowId, completedSteps and context unchanged"
	}
	return out, s.checkpointSource(c, loaded, back), err
}

// checkpointSource returns the variables of a checkpoint. For a run they are reduced with the
// hints of its pinned definition and the run's marks, which the checkpoint does not contain.
func (s *Service) checkpointSource(c run.Caller, loaded *checkpoint.Loaded, back *storedContext) *source {
	whole := back.context
	return &source{ref: loaded.ID, vars: whole, material: func(ctx context.Context, vars compress.Context) (*material, error) {
		m, err := s.sessionMaterial(ctx, c, sessionContext{session: loaded.Session, workflow: loaded.Workflow, values: vars, stored: loaded.ID, whole: whole})
		if err != nil || loaded.Run == "" || s.o.Runs == nil {
			return m, err
		}
		// If the run does not exist, the hints of the current workflow apply.
		if d, err := s.o.Runs.Get(ctx, c, run.Ref{RunID: loaded.Run}); err == nil {
			own, err := s.materialOf(ctx, c, d)
			if err != nil {
				return nil, err
			}
			m.hints, m.question = own.hints, own.question
		}
		return m, nil
	}}
}

// Show returns the content of a checkpoint for the dashboard. It creates no fork and
// returns no handle.
func (s *Service) Show(ctx context.Context, c run.Caller, id string) (*Loaded, error) {
	out, _, back, err := s.readCheckpoint(ctx, c, LoadRequest{ID: id})
	if err != nil {
		return nil, err
	}
	if out.Context, err = encodeJSON(back.context); err != nil {
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

// readCheckpoint reads a checkpoint. It does not change the run.
func (s *Service) readCheckpoint(ctx context.Context, c run.Caller, r LoadRequest) (*Loaded, *checkpoint.Loaded, *storedContext, error) {
	if r.ID == "" {
		s.flushSaves(ctx, c, r.Session)
	}
	loaded, err := s.o.Checkpoints.Load(ctx, s.ownerFor(ctx, c, r.Session, r.ID), checkpoint.LoadRequest{ID: r.ID, Session: r.Session})
	if err != nil {
		return nil, nil, nil, s.noneYet(ctx, c, r, err)
	}
	back, err := splitStored(loaded.Context)
	if err == nil && loaded.Kind == checkpoint.KindFragment { // A fragment has only the caller's variables.
		back = &storedContext{}
		back.context, err = objectOf(loaded.Context)
	}
	if err != nil {
		return nil, nil, nil, err
	}
	out := &Loaded{
		ID: loaded.ID, Session: loaded.Session, Workflow: loaded.Workflow, Name: loaded.Name, Created: &loaded.Created,
		Degraded: loaded.Degraded, Heads: loaded.Heads, Warnings: loaded.Warnings, Store: loaded.Store,
	}
	return out, loaded, back, nil
}

// noneYet returns a refusal that suggests workflow_status if the request names a run that
// has no checkpoint yet, otherwise err.
func (s *Service) noneYet(ctx context.Context, c run.Caller, r LoadRequest, err error) error {
	if r.ID != "" || r.NoRuns || !isRun(r.Session) || s.o.Runs == nil || guideway.ErrorCode(err) != guideway.CodeNotFound {
		return err
	}
	ref := run.Ref{RunID: r.Session}
	if _, look := s.o.Runs.Get(ctx, c, ref); look != nil {
		return err // the session is not a run of the caller
	}
	return &run.Refusal{
		Code: guideway.CodeNotFound, Rule: ruleNoCheckpoint, RunID: r.Session,
		Message: "the run has no checkpoint yet; workflow_status returns its context and the handle to continue", Next: run.StatusCall(ref),
	}
}

// ruleNoCheckpoint refuses to load a run that has no checkpoint yet.
const ruleNoCheckpoint = "no-checkpoint"

// continueFrom sets the handle that continues from a checkpoint of a run.
func (s *Service) continueFrom(ctx context.Context, c run.Caller, loaded *checkpoint.Loaded, back *storedContext, out *Loaded) error {
	ref := run.Ref{RunID: loaded.Run}
	now, err := s.o.Runs.Status(ctx, c, ref)
	switch code := guideway.ErrorCode(err); {
	case code == guideway.CodeNotFound || code == guideway.CodeUnavailable:
		out.Note = "the run " + loaded.Run + " cannot be continued on this server, so only its context is returned: " + err.Error()
		if back.run != nil { // the place is only shown as text, because an import may be forged
			at := back.run.Position
			out.Note += truncateText(fmt.Sprintf("; according to the checkpoint, it was %s, at the %s %s (%s)", back.run.Status, at.Kind, at.ID, at.Title), maxPlaceNote)
		}
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
			if refusal, ok := run.AsRefusal(err); ok {
				out.Note, out.Next = "the run cannot continue from the checkpoint: "+refusal.Message, refusal.Next
				if refusal.Fix != "" {
					out.Note += "; to continue the run: " + refusal.Fix
				}
				return nil
			}
			return err
		}
		out.Forked = true
		out.Note = "the run has continued since the checkpoint: the handle belongs to a fork that starts there"
	}
	out.Handle, out.RunID, out.Status, out.Position, out.Next = now.Handle, now.RunID, now.Status, &now.Position, now.Next
	return s.notSet(ctx, c, now.RunID, back, out)
}

// notSet sets out.NotSet to the variables whose values in the checkpoint differ from the
// run's. They were stored for the agent, which may submit them to the run.
func (s *Service) notSet(ctx context.Context, c run.Caller, id string, back *storedContext, out *Loaded) error {
	d, err := s.o.Runs.Get(ctx, c, run.Ref{RunID: id})
	if err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(back.context)) {
		have, set := d.Variables[key]
		if set {
			text, err := encodeJSON(have)
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

// hasMoved reports whether a run has engine events after the event seq.
func (s *Service) hasMoved(ctx context.Context, c run.Caller, ref run.Ref, seq int64) (bool, error) {
	for {
		events, err := s.o.Runs.Events(ctx, c, ref, seq, eventPage)
		if err != nil || len(events) == 0 {
			return false, err
		}
		for _, e := range events {
			if e.IsFact() || e.Kind == run.KindCreated {
				return true, nil
			}
			seq = e.Seq
		}
	}
}

// forkAt forks a run at a checkpoint. An unused fork that was created for the same
// checkpoint before is reused, so that a repeated call creates no second one.
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
