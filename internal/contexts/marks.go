package contexts

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/run"
)

// MarkRequest marks variables as critical.
type MarkRequest struct {
	Handle, Session string
	Keys, Tags      []string
}

// Marked is the result of Mark.
type Marked struct {
	// Marked are all marked keys.
	Marked []string `json:"marked"`
	// Missing are the requested keys that the context does not contain yet.
	Missing []string         `json:"missing,omitempty"`
	RunID   string           `json:"runId,omitempty"`
	Session string           `json:"sessionId,omitempty"`
	Store   checkpoint.Store `json:"store"`
}

// The limits of a session's marks equal the limits of a run's marks.
const (
	maxMarks   = 500
	maxMarkKey = 200
)

// Mark marks variables of a run or session as critical: compression never changes or omits
// them. For a session it saves a checkpoint if the marks change.
func (s *Service) Mark(ctx context.Context, c run.Caller, r MarkRequest) (*Marked, error) {
	if ref, ok := refOf(r.Handle, r.Session); ok {
		return s.markRun(ctx, c, ref, r)
	}
	if r.Session == "" {
		return nil, newInvalid("a run or a session is required").WithFix("pass the handle of a run, or a sessionId")
	}
	if len(r.Keys) == 0 {
		return nil, newInvalid("keys is empty").WithFix(`pass keys such as ["userGoal"]`)
	}
	if slices.ContainsFunc(r.Keys, func(key string) bool { return key == "" || len(key) > maxMarkKey }) {
		return nil, newInvalid("keys must contain names of variables, of 1 to %d bytes each", maxMarkKey).WithFix("remove the empty or long names from keys")
	}
	if err := checkTags(r.Tags); err != nil {
		return nil, err
	}
	return s.markSession(ctx, c, r)
}

func (s *Service) markRun(ctx context.Context, c run.Caller, ref run.Ref, r MarkRequest) (*Marked, error) {
	runs, err := s.requireRuns()
	if err != nil {
		return nil, err
	}
	list, err := runs.Mark(ctx, c, run.MarkRequest{Ref: ref, Keys: slices.Clone(r.Keys), Tags: slices.Clone(r.Tags)})
	if err != nil {
		return nil, err
	}
	d, err := runs.Get(ctx, c, ref)
	if err != nil {
		return nil, err
	}
	out := &Marked{RunID: d.ID, Store: s.Store()}
	for _, m := range list {
		out.Marked = append(out.Marked, m.Key)
	}
	for _, key := range r.Keys {
		if _, set := d.Variables[key]; !set {
			out.Missing = append(out.Missing, key)
		}
	}
	return out, nil
}

// markSession saves the session's last context again with the marks.
func (s *Service) markSession(ctx context.Context, c run.Caller, r MarkRequest) (*Marked, error) {
	var context map[string]json.RawMessage
	head := ""
	loaded, err := s.o.Checkpoints.Load(ctx, c.Principal, checkpoint.LoadRequest{Session: r.Session})
	switch {
	case err == nil:
		if context, err = objectOf(loaded.Context); err != nil {
			return nil, err
		}
		head = loaded.ID
	case guideway.ErrorCode(err) != guideway.CodeNotFound:
		return nil, err
	default:
		context = map[string]json.RawMessage{}
	}
	m := marksIn(context[keyCritical])
	if m == nil {
		m = &marks{}
	}
	before := len(m.Keys) + len(m.Tags)
	m.Keys, m.Tags = unionOf(m.Keys, r.Keys), unionOf(m.Tags, r.Tags)
	if len(m.Keys) > maxMarks {
		return nil, guideway.Errorf(guideway.CodeRefused, "%d variables would be marked, more than the maximum of %d", len(m.Keys), maxMarks).
			WithFix("mark fewer variables")
	}
	out := &Marked{Marked: m.Keys, Session: checkpoint.SessionID(r.Session), Store: s.Store()}
	for _, key := range r.Keys {
		if _, set := context[key]; !set {
			out.Missing = append(out.Missing, key)
		}
	}
	if len(m.Keys)+len(m.Tags) == before {
		return out, nil
	}
	if context[keyCritical], err = encodeJSON(m); err != nil {
		return nil, err
	}
	doc, err := encodeJSON(context)
	if err != nil {
		return nil, err
	}
	request := checkpoint.SaveRequest{Session: r.Session, Context: doc, Name: "marks", Tags: withTags(r.Tags, m.allTags()...), ExpectedHead: head}
	if loaded != nil {
		request.Workflow, request.Project = loaded.Workflow, loaded.Project
	}
	_, err = s.saveContext(ctx, c, request)
	return out, err
}

// unionOf returns the union of two lists.
func unionOf(list, more []string) []string {
	out := slices.Clone(list)
	for _, one := range more {
		if !slices.Contains(out, one) {
			out = append(out, one)
		}
	}
	return out
}
