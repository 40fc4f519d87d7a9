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
	// Handle names a run, Session a line of checkpoints; with neither a new
	// session begins. The id of a run as a session means the run.
	Handle, Session string
	Workflow        string
	// Context is the context of a session. With a run it may be nil: it is added
	// to the run's in the checkpoint, and the run stays as it is.
	Context      map[string]any
	Name         string
	Tags         []string
	Agent        string
	Project      string
	ExpectedHead string
}

// Saved is a checkpoint that is there for good.
type Saved struct {
	ID      string `json:"checkpointId"`
	Session string `json:"sessionId"`
	RunID   string `json:"runId,omitempty"`
	Parent  string `json:"parentId,omitempty"`
	// Head is what the expected head was overtaken by.
	Head     string               `json:"head,omitempty"`
	Bytes    int64                `json:"bytes"`
	Stored   int64                `json:"storedBytes"`
	Tokens   int64                `json:"tokens"`
	Warnings []checkpoint.Warning `json:"warnings,omitempty"`
	Store    checkpoint.Store     `json:"store"`
}

// isRun says whether a session is named as runs are. What is not one of the
// caller's is no session either: nobody begins a line in a run's name.
func isRun(session string) bool { return strings.HasPrefix(session, "r_") }

// refOf names the run of a request; ok is false where it is about none.
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

// Save saves a checkpoint. What the run's owner may not set is a *run.Refusal;
// see checkpoint.Service.Save for the rest.
func (s *Service) Save(ctx context.Context, c run.Caller, r SaveRequest) (*Saved, error) {
	if ref, ok := refOf(r.Handle, r.Session); ok {
		return s.saveRun(ctx, c, ref, r)
	}
	return s.saveSession(ctx, c, r)
}

// runs gives the service of runs, or says that there is none.
func (s *Service) runs() (Runs, error) {
	if s.o.Runs == nil {
		return nil, invalid("no runs are kept here").WithFix("name a session with sessionId, and give its context")
	}
	return s.o.Runs, nil
}

func (s *Service) saveRun(ctx context.Context, c run.Caller, ref run.Ref, r SaveRequest) (*Saved, error) {
	runs, err := s.runs()
	if err != nil {
		return nil, err
	}
	d, err := runs.Look(ctx, c, ref)
	if err != nil {
		return nil, err
	}
	if r.Session != "" && !isRun(r.Session) && r.Session != d.ID {
		return nil, invalid("a run's checkpoints are in the session of its id, %s", d.ID).WithFix("leave sessionId out")
	}
	if r.Workflow != "" && r.Workflow != d.Workflow {
		return nil, invalid("the run is of the workflow %s, not of %.80q", d.Workflow, r.Workflow).WithFix("leave workflowId out")
	}
	if err := checkTags(r.Tags); err != nil {
		return nil, err
	}
	if err := s.admit(ctx, runs, c, ref, r.Context); err != nil {
		return nil, err
	}
	s.settled(ctx, c, d.ID) // what belongs before this one comes before it
	doc, err := prepare(d.Variables, r.Context, placeOf(d.Record, d.Status, d.Position))
	if err != nil {
		return nil, err
	}
	return s.store(ctx, c, checkpoint.SaveRequest{
		Session: d.ID, Run: d.ID, RunSeq: d.Seq, Context: doc, Workflow: d.Workflow, Project: d.Project.ID,
		Agent: r.Agent, Name: r.Name, Tags: withTags(r.Tags, tagsOf(d.Marks)...), ExpectedHead: r.ExpectedHead,
	})
}

// admit refuses what a caller may not set in a run, and what is the server's in a
// checkpoint.
func (s *Service) admit(ctx context.Context, runs Runs, c run.Caller, ref run.Ref, added map[string]any) error {
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
		return invalid("only the server sets %s", strings.Join(ours, ", ")).WithFix("leave it out of context")
	}
	return runs.Admit(ctx, c, ref, added)
}

func (s *Service) saveSession(ctx context.Context, c run.Caller, r SaveRequest) (*Saved, error) {
	if r.Context == nil {
		return nil, invalid("there is no context to save").WithFix("give context, or the handle of a run")
	}
	if r.Session == "" {
		r.Session, _ = r.Context[keySession].(string)
		if isRun(r.Session) {
			return nil, invalid("%s names a run: its context is the run's", keySession).WithFix("give the run's handle")
		}
	}
	vars := without(r.Context, keyRun, keyNext)
	if err := checkTags(r.Tags); err != nil {
		return nil, err
	}
	marks, err := s.sessionMarks(ctx, c, r.Session, vars)
	if err != nil {
		return nil, err
	}
	if marks != nil {
		r.Tags = withTags(r.Tags, marks.tags()...)
	}
	if _, own := vars[keyCritical]; marks != nil && !own {
		vars[keyCritical] = marks
	}
	doc, err := encode(vars)
	if err != nil {
		return nil, err
	}
	return s.store(ctx, c, checkpoint.SaveRequest{
		Session: r.Session, Context: doc, Workflow: r.Workflow, Project: r.Project,
		Agent: r.Agent, Name: r.Name, Tags: r.Tags, ExpectedHead: r.ExpectedHead,
	})
}

// store counts and saves.
func (s *Service) store(ctx context.Context, c run.Caller, r checkpoint.SaveRequest) (*Saved, error) {
	if r.Agent == "" {
		r.Agent = c.Client
	}
	r.Tokens = int64(s.count(r.Context))
	saved, err := s.o.Checkpoints.Save(ctx, c.Principal, r)
	if err != nil {
		return nil, err
	}
	return &Saved{
		ID: saved.ID, Session: saved.Session, RunID: saved.Run, Parent: saved.Parent, Head: saved.Head,
		Bytes: saved.Bytes, Stored: saved.Stored, Tokens: saved.Tokens, Warnings: saved.Warnings, Store: saved.Store,
	}, nil
}

// count counts the tokens of a stored context, each member for itself, so that one
// that has not changed is not counted again.
func (s *Service) count(doc json.RawMessage) int {
	members, err := objectOf(doc)
	if err != nil {
		return s.o.Counter.Count(string(doc))
	}
	n := 0
	for key, value := range members {
		n += s.o.Counter.Count(key) + s.o.Counter.Count(string(value)) + 3
	}
	return n
}

// tagMarked is on every checkpoint whose session has marks, so that a save without
// them knows of them at the price of one look at the index.
const tagMarked = "has-marks"

// The bounds of tags: a caller gives a few, and those of marks come to them.
const (
	maxTags    = 20
	maxAllTags = 40
	maxTag     = 64
)

// checkTags refuses more tags of a caller's than there is room for beside those of
// marks.
func checkTags(tags []string) error {
	if len(tags) <= maxTags {
		return nil
	}
	return invalid("there are %d tags, more than %d", len(tags), maxTags).WithFix("give fewer tags")
}

// withTags adds the tags of marks to those of a checkpoint, as far as there is room,
// so that lists find by them what was saved of marked variables.
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

// tagsOf are the tags of a run's marks.
func tagsOf(list []run.Mark) []string {
	var out []string
	for _, m := range list {
		out = withTags(out, m.Tags...)
	}
	return out
}

// tags are on every checkpoint of a session with marks.
func (m *marks) tags() []string { return append([]string{tagMarked}, m.Tags...) }

// marks are the keys of a session that an agent has called critical.
type marks struct {
	Keys []string `json:"keys"`
	Tags []string `json:"tags,omitempty"`
}

// marksIn reads the marks that a context carries.
func marksIn(value any) *marks {
	text, err := encode(value)
	if err != nil {
		return nil
	}
	var m marks
	if json.Unmarshal(text, &m) != nil || len(m.Keys) == 0 {
		return nil
	}
	return &m
}

// sessionMarks gives the marks that are to be saved with a context: its own, or
// those that the session had; nil is none.
func (s *Service) sessionMarks(ctx context.Context, c run.Caller, session string, vars map[string]any) (*marks, error) {
	if own, there := vars[keyCritical]; there {
		return marksIn(own), nil
	}
	m, _, err := lastMarks(ctx, s.o.Checkpoints, c.Principal, session)
	return m, err
}

// lastMarks gives the marks of a session's last checkpoint, and what is known of
// that.
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
		return nil, head, nil // it is damaged, and so are its marks
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
