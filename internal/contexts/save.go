package contexts

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/run"
)

// SaveRequest saves a context of a session, or a run with its context.
type SaveRequest struct {
	// Handle selects a run, Session a series of checkpoints; without either a new session
	// begins. If Session is the id of a run, it selects the run.
	Handle, Session string
	Workflow        string
	// Context is the context of a session. For a run it may be nil: it is added to the
	// run's variables in the checkpoint, and does not change the run.
	Context      map[string]any
	Name         string
	Tags         []string
	Agent        string
	Project      string
	ExpectedHead string
}

// Saved is a stored checkpoint.
type Saved struct {
	ID      string `json:"checkpointId"`
	Session string `json:"sessionId"`
	RunID   string `json:"runId,omitempty"`
	Parent  string `json:"parentId,omitempty"`
	// Head is the last checkpoint of the session before this one, if this one began a
	// branch.
	Head     string               `json:"head,omitempty"`
	Bytes    int64                `json:"bytes"`
	Stored   int64                `json:"storedBytes"`
	Tokens   int64                `json:"tokens"`
	Warnings []checkpoint.Warning `json:"warnings,omitempty"`
	Store    checkpoint.Store     `json:"store"`
}

// isRun reports whether a session id has the form of a run id. A run of another user is
// treated as missing, so that no session can begin under the id of a run.
func isRun(session string) bool { return strings.HasPrefix(session, "r_") }

// refOf returns the run that a request refers to; ok is false if it does not refer to a
// run.
func refOf(handle, session string) (ref run.Ref, ok bool) {
	switch {
	case handle != "" && session != "" && isRun(session):
		return run.Ref{Handle: handle, RunID: session}, true
	case handle != "":
		return run.Ref{Handle: handle}, true
	case isRun(session):
		return run.Ref{RunID: session}, true
	default:
		return run.Ref{}, false
	}
}

// Save saves a checkpoint. It returns a *run.Refusal for variables that the owner of a run
// may not set; see checkpoint.Service.Save for other errors.
func (s *Service) Save(ctx context.Context, c run.Caller, r SaveRequest) (*Saved, error) {
	if ref, ok := refOf(r.Handle, r.Session); ok {
		return s.saveRun(ctx, c, ref, r)
	}
	return s.saveSession(ctx, c, r)
}

// requireRuns returns the run service, or an error if none exists.
func (s *Service) requireRuns() (Runs, error) {
	if s.o.Runs == nil {
		return nil, newInvalid("runs are not available").WithFix("pass a sessionId and a context")
	}
	return s.o.Runs, nil
}

// lookUpRun returns a run of the caller.
func (s *Service) lookUpRun(ctx context.Context, c run.Caller, ref run.Ref) (*run.Details, error) {
	runs, err := s.requireRuns()
	if err != nil {
		return nil, err
	}
	return runs.Get(ctx, c, ref)
}

func (s *Service) saveRun(ctx context.Context, c run.Caller, ref run.Ref, r SaveRequest) (*Saved, error) {
	d, err := s.lookUpRun(ctx, c, ref)
	if err != nil {
		return nil, err
	}
	if r.Session != "" && !isRun(r.Session) && r.Session != d.ID {
		return nil, newInvalid("the checkpoints of the run %s are in the session with the same id, not in %.80q", d.ID, r.Session).WithFix("omit sessionId")
	}
	if r.Workflow != "" && r.Workflow != d.Workflow {
		return nil, newInvalid("the run belongs to the workflow %s, not to %.80q", d.Workflow, r.Workflow).WithFix("omit workflowId")
	}
	if err := checkTags(r.Tags); err != nil {
		return nil, err
	}
	if err := s.checkVariables(ctx, c, ref, r.Context); err != nil {
		return nil, err
	}
	s.flushSaves(ctx, c, d.ID) // save earlier checkpoints of the run first
	doc, err := encodeRun(d.Variables, r.Context, placeOf(d.Record, d.Status, d.Position))
	if err != nil {
		return nil, err
	}
	return s.saveContext(ctx, c, checkpoint.SaveRequest{
		Session: d.ID, Run: d.ID, RunSeq: d.Seq, Context: doc, Workflow: d.Workflow, Project: d.Project.ID,
		Agent: r.Agent, Name: r.Name, Tags: withTags(r.Tags, tagsOf(d.Marks)...), ExpectedHead: r.ExpectedHead,
	})
}

// checkVariables refuses variables that a caller may not set in a run, and the keys that
// only the server sets in a checkpoint.
func (s *Service) checkVariables(ctx context.Context, c run.Caller, ref run.Ref, added map[string]any) error {
	if len(added) == 0 {
		return nil
	}
	var ours []string
	for _, key := range []string{keyRun, keyNext} {
		if _, there := added[key]; there {
			ours = append(ours, key)
		}
	}
	if len(ours) > 0 {
		return newInvalid("only the server sets %s", strings.Join(ours, ", ")).WithFix("remove from context: %s", strings.Join(ours, ", "))
	}
	return s.o.Runs.Admit(ctx, c, ref, added)
}

func (s *Service) saveSession(ctx context.Context, c run.Caller, r SaveRequest) (*Saved, error) {
	if r.Context == nil {
		return nil, newInvalid("a context to save is required").WithFix("pass context, or the handle of a run")
	}
	if r.Session == "" {
		r.Session, _ = r.Context[keySession].(string)
		if isRun(r.Session) {
			return nil, newInvalid("%s is the id of the run %s, but a run's context is saved with its handle", keySession, r.Session).WithFix("pass the handle of the run")
		}
	}
	vars := withoutKeys(r.Context, keyRun, keyNext)
	if err := checkTags(r.Tags); err != nil {
		return nil, err
	}
	marks, err := s.sessionMarks(ctx, c, r.Session, vars)
	if err != nil {
		return nil, err
	}
	if marks != nil {
		r.Tags = withTags(r.Tags, marks.allTags()...)
	}
	tree := vars
	if _, own := vars[keyCritical]; marks != nil && !own {
		vars[keyCritical], tree = marks, nil
	}
	doc, err := encodeJSON(vars)
	if err != nil {
		return nil, err
	}
	return s.saveContext(ctx, c, checkpoint.SaveRequest{
		Session: r.Session, Context: doc, Tree: tree, Workflow: r.Workflow, Project: r.Project,
		Agent: r.Agent, Name: r.Name, Tags: r.Tags, ExpectedHead: r.ExpectedHead,
	})
}

// saveContext saves a context.
func (s *Service) saveContext(ctx context.Context, c run.Caller, r checkpoint.SaveRequest) (*Saved, error) {
	if r.Agent == "" {
		r.Agent = c.Client
	}
	saved, err := s.o.Checkpoints.Save(ctx, s.ownerFor(ctx, c, r.Session, ""), r)
	if err != nil {
		return nil, err
	}
	return &Saved{
		ID: saved.ID, Session: saved.Session, RunID: saved.Run, Parent: saved.Parent, Head: saved.Head,
		Bytes: saved.Bytes, Stored: saved.Stored, Tokens: saved.Tokens, Warnings: saved.Warnings, Store: saved.Store,
	}, nil
}

// tagMarked is the tag of every checkpoint of a session with marks, so that a save without
// marks detects them with one read of the index.
const tagMarked = "has-marks"

// maxTags bounds the tags that a caller passes, maxAllTags these and the tags of marks
// together, maxTag the length of a tag of a mark in bytes.
const (
	maxTags    = 20
	maxAllTags = 40
	maxTag     = 64
)

// checkTags refuses too many tags of a caller, because some are reserved for marks.
func checkTags(tags []string) error {
	if len(tags) <= maxTags {
		return nil
	}
	return newInvalid("there are %d tags, more than the maximum of %d", len(tags), maxTags).WithFix("pass fewer tags")
}

// withTags adds the tags of marks to the tags of a checkpoint, up to maxAllTags tags.
func withTags(tags []string, more ...string) []string {
	out := slices.Clone(tags)
	for _, tag := range more {
		if len(out) >= maxAllTags {
			break
		}
		if tag != "" && len(tag) <= maxTag && !slices.Contains(out, tag) {
			out = append(out, tag)
		}
	}
	return out
}

// tagsOf returns the tags of a run's marks.
func tagsOf(list []run.Mark) []string {
	var out []string
	for _, m := range list {
		out = withTags(out, m.Tags...)
	}
	return out
}

// allTags returns the tags that every checkpoint of a session with these marks has.
func (m *marks) allTags() []string { return append([]string{tagMarked}, m.Tags...) }

// marks are the keys of a session that an agent marked as critical.
type marks struct {
	Keys []string `json:"keys"`
	Tags []string `json:"tags,omitempty"`
}

// marksIn parses the marks in a context.
func marksIn(value any) *marks {
	text, err := encodeJSON(value)
	if err != nil {
		return nil
	}
	var m marks
	if json.Unmarshal(text, &m) != nil || len(m.Keys) == 0 {
		return nil
	}
	return &m
}

// sessionMarks returns the marks to save with a context: the marks in the context if it has
// keyCritical, otherwise the marks of the session's last checkpoint. They are nil if there
// are none.
func (s *Service) sessionMarks(ctx context.Context, c run.Caller, session string, vars map[string]any) (*marks, error) {
	if own, there := vars[keyCritical]; there {
		return marksIn(own), nil
	}
	m, _, err := lastMarks(ctx, s.o.Checkpoints, c.Principal, session)
	return m, err
}

// lastMarks returns the marks in a session's last checkpoint, and the record of the
// checkpoint.
func lastMarks(ctx context.Context, from Checkpoints, who guideway.Principal, session string) (*marks, checkpoint.Record, error) {
	if session == "" {
		return nil, checkpoint.Record{}, nil
	}
	page, err := from.List(ctx, who, checkpoint.ListRequest{Session: session, Limit: 1})
	if err != nil || len(page.Checkpoints) == 0 {
		return nil, checkpoint.Record{}, err
	}
	head := page.Checkpoints[0]
	if !slices.Contains(head.Tags, tagMarked) {
		return nil, head, nil
	}
	loaded, err := from.Load(ctx, who, checkpoint.LoadRequest{ID: head.ID, Keys: []string{keyCritical}})
	if guideway.ErrorCode(err) == guideway.CodeInternal {
		return nil, head, nil // the marks are lost with the damaged checkpoint
	}
	if err != nil {
		return nil, head, err
	}
	members, err := objectOf(loaded.Context)
	if err != nil {
		return nil, head, err
	}
	return marksIn(members[keyCritical]), head, nil
}
