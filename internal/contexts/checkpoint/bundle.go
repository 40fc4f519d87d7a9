package checkpoint

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
)

const (
	bundleFormat  = "guideway-checkpoints"
	bundleVersion = 1
	// maxBundle is the maximum number of checkpoints of one import.
	maxBundle = 10_000
)

// Bundle contains exported checkpoints as plain JSON, for people and other programs. It is
// not encrypted, even if the store is.
type Bundle struct {
	Format     string    `json:"format"`
	Version    int       `json:"version"`
	ExportedAt time.Time `json:"exportedAt"`
	// Checkpoints are ordered by number.
	Checkpoints []Bundled `json:"checkpoints"`
	// Damaged are the checkpoints that could not be read.
	Damaged []Finding `json:"damaged,omitempty"`
}

// Bundled is a checkpoint with its context.
type Bundled struct {
	ID       string          `json:"checkpointId"`
	Session  string          `json:"sessionId"`
	Run      string          `json:"runId,omitempty"`
	RunSeq   int64           `json:"runSeq,omitempty"`
	Parent   string          `json:"parentId,omitempty"`
	Workflow string          `json:"workflowId,omitempty"`
	Project  string          `json:"projectId,omitempty"`
	Agent    string          `json:"agentId,omitempty"`
	Name     string          `json:"name,omitempty"`
	Tags     []string        `json:"tags,omitempty"`
	Kind     Kind            `json:"kind"`
	Created  time.Time       `json:"createdAt"`
	Tokens   int64           `json:"tokens,omitempty"`
	Context  json.RawMessage `json:"context"`
}

// ExportRequest selects one checkpoint or a session.
type ExportRequest struct {
	ID      string
	Session string
	// Outputs returns the outputs of a run up to an event, or nil; it may be nil.
	Outputs func(ctx context.Context, run string, seq int64) json.RawMessage
}

const (
	// keyOutputs is the variable of an exported checkpoint that has the outputs of its run.
	keyOutputs = "_outputs"
	// maxOutputs bounds the outputs, in bytes, so that the checkpoint can be imported.
	maxOutputs = 16 << 20
)

// addOutputs adds the outputs of each run to the context of its newest checkpoint.
func (r ExportRequest) addOutputs(ctx context.Context, list []Bundled) error {
	seen := map[string]bool{"": true}
	for i, one := range slices.Backward(list) {
		if seen[one.Run] || r.Outputs == nil {
			continue
		}
		seen[one.Run] = true
		tree, err := decodeObject(one.Context)
		if outputs := r.Outputs(ctx, one.Run, one.RunSeq); err == nil && outputs != nil && len(outputs) <= maxOutputs {
			tree[keyOutputs] = outputs
			list[i].Context, err = jsontext.Marshal(tree)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// hasSum reports whether the context of a bundle has the given hash, with or without outputs.
func (b Bundled) hasSum(sum []byte) bool {
	c, err := parseCanonical(b.Context)
	if err != nil || bytes.Equal(c.sum, sum) {
		return err == nil
	}
	delete(c.tree, keyOutputs)
	raw, err := jsontext.Marshal(c.tree)
	return err == nil && bytes.Equal(sumOf(raw), sum)
}

// ImportRequest is the request of Import.
type ImportRequest struct {
	Data []byte
	// Session is the target session. If it is empty, each checkpoint goes to its original
	// session. A session to which checkpoints are added must have none.
	Session string
}

// Imported is the result of Import.
type Imported struct {
	// Sessions and Checkpoints are those that were created.
	Sessions    []string `json:"sessions"`
	Checkpoints []string `json:"checkpoints"`
	// Skipped counts the checkpoints that already existed.
	Skipped int   `json:"skipped"`
	Store   Store `json:"store"`
}

// Export returns a bundle. It lists damaged checkpoints without their contexts.
func (s *Service) Export(ctx context.Context, who guideway.Principal, r ExportRequest) ([]byte, error) {
	if err := s.prepareRead(ctx, "export checkpoints"); err != nil {
		return nil, err
	}
	var list []Record
	if r.ID != "" {
		rec, err := s.ownRecord(ctx, who, r.ID)
		if err == nil && rec.Kind == KindFragment {
			err = guideway.Errorf(guideway.CodeInvalid, "%s is a reduced context, not a checkpoint, so it cannot be exported", rec.ID).WithFix("guideway checkpoint load %s", rec.ID)
		}
		if err != nil {
			return nil, err
		}
		list = []Record{rec}
	} else {
		var err error
		if list, err = s.o.Index.History(ctx, SeriesKey{User: who.User, Session: SessionID(r.Session)}, History{Oldest: true}); err != nil {
			return nil, err
		}
	}
	if len(list) == 0 {
		return nil, guideway.Errorf(guideway.CodeNotFound, "the session %.100q has no checkpoints", r.Session).WithFix("list the checkpoints with: guideway checkpoint list")
	}
	b := Bundle{Format: bundleFormat, Version: bundleVersion, ExportedAt: s.currentTime(), Checkpoints: []Bundled{}}
	for _, rec := range list {
		raw, err := s.readContent(ctx, rec)
		if errors.Is(err, errDamaged) {
			b.Damaged = append(b.Damaged, Finding{Checkpoint: rec.ID, SeriesKey: rec.SeriesKey, Problem: err.Error()})
			continue
		}
		if err != nil {
			return nil, err
		}
		b.Checkpoints = append(b.Checkpoints, Bundled{
			ID: rec.ID, Session: rec.Session, Run: rec.Run, RunSeq: rec.RunSeq, Parent: rec.Parent, Workflow: rec.Workflow,
			Project: rec.Project, Agent: rec.Agent, Name: rec.Name, Tags: rec.Tags, Kind: rec.Kind, Created: rec.Created,
			Tokens: rec.Tokens, Context: raw,
		})
	}
	if err := r.addOutputs(ctx, b.Checkpoints); err != nil {
		return nil, err
	}
	text, err := jsontext.Indent(b)
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeInternal, "write the bundle: %w", err)
	}
	key := list[0].SeriesKey
	s.activityLog.addEntry(Entry{
		At: s.currentTime(), Action: ActionExport, SeriesKey: key, Checkpoint: r.ID, Client: who.Client,
		Detail: fmt.Sprintf("checkpoints: %d", len(b.Checkpoints)),
	}, false)
	return append(text, '\n'), nil
}

// Import adds the checkpoints of a bundle for the caller. It skips checkpoints that already
// exist in the target session with the same context. A checkpoint whose id is invalid or
// already used gets a new id.
func (s *Service) Import(ctx context.Context, who guideway.Principal, r ImportRequest) (*Imported, error) {
	if err := s.requireWritable("import checkpoints"); err != nil {
		return nil, err
	}
	b, err := readBundle(r.Data)
	if err != nil {
		return nil, err
	}
	if err := s.ensureIndex(ctx); err != nil {
		return nil, err
	}
	out := &Imported{Sessions: []string{}, Checkpoints: []string{}, Store: s.o.Store}
	targets, err := s.importTargets(ctx, who, b, r.Session, out)
	if err != nil {
		return nil, err
	}
	renamed := map[string]string{}
	for _, item := range targets {
		saved, err := s.importOne(ctx, who, item, renamed)
		if err != nil {
			return out, err
		}
		renamed[item.ID] = saved.ID
		out.Checkpoints = append(out.Checkpoints, saved.ID)
		if n := len(out.Sessions); n == 0 || out.Sessions[n-1] != saved.Session {
			out.Sessions = append(out.Sessions, saved.Session)
		}
	}
	return out, nil
}

func readBundle(data []byte) (*Bundle, error) {
	var b Bundle
	if err := json.Unmarshal(data, &b); err != nil {
		return nil, guideway.Errorf(guideway.CodeInvalid, "the file is not a checkpoint bundle: %w", err).
			WithFix("use a file written by `guideway checkpoint export`")
	}
	switch {
	case b.Format != bundleFormat:
		return nil, guideway.Errorf(guideway.CodeInvalid, "the file is not a checkpoint bundle: its format is %.40q, not %q", b.Format, bundleFormat).
			WithFix("use a file written by `guideway checkpoint export`")
	case b.Version > bundleVersion:
		return nil, guideway.Errorf(guideway.CodeInvalid, "the bundle has version %d, but this version of Guideway supports versions up to %d", b.Version, bundleVersion).
			WithFix("use the version of Guideway that wrote the bundle, or a later one")
	case b.Version < 1:
		return nil, guideway.Errorf(guideway.CodeInvalid, "the bundle has the invalid version %d", b.Version).
			WithFix("use a file written by `guideway checkpoint export`")
	case len(b.Checkpoints) > maxBundle:
		return nil, guideway.Errorf(guideway.CodeTooLarge, "the bundle has %d checkpoints, more than the maximum of %d", len(b.Checkpoints), maxBundle).
			WithFix("remove the oldest checkpoints from the file")
	}
	return &b, nil
}

// importTargets returns the checkpoints to import, and counts the others in out.Skipped. It
// returns an error if a target session already has checkpoints.
func (s *Service) importTargets(ctx context.Context, who guideway.Principal, b *Bundle, session string, out *Imported) ([]Bundled, error) {
	var targets []Bundled
	into := map[string]bool{}
	for _, item := range b.Checkpoints {
		if session != "" {
			item.Session = session
		}
		item.Session = SessionID(item.Session)
		known, err := s.o.Index.Checkpoint(ctx, item.ID)
		sum := known.Sum
		if err == nil && len(sum) == 0 {
			if raw, err := s.readContent(ctx, known); err == nil {
				sum = sumOf(raw)
			}
		}
		if err == nil && known.User == who.User && known.Session == item.Session && item.hasSum(sum) {
			out.Skipped++
			continue
		}
		if err != nil && guideway.ErrorCode(err) != guideway.CodeNotFound {
			return nil, err
		}
		targets = append(targets, item)
		into[item.Session] = true
	}
	for name := range into {
		series, err := s.o.Index.Series(ctx, SeriesKey{User: who.User, Session: name})
		if err != nil {
			return nil, err
		}
		if series.Count > 0 {
			return nil, guideway.Errorf(guideway.CodeConflict, "the session %s already has checkpoints; checkpoints can be imported only into a session without any, and nothing was imported", name).
				WithFix("use --session to import into a different session")
		}
	}
	return targets, nil
}

// importOne saves a checkpoint of a bundle. It keeps the id if it is valid and not used,
// and the time unless it is in the future or before the time of the last checkpoint.
func (s *Service) importOne(ctx context.Context, who guideway.Principal, item Bundled, renamed map[string]string) (*Saved, error) {
	kind := item.Kind
	if kind != KindAuto {
		kind = KindManual
	}
	r := SaveRequest{
		Session: item.Session, Run: item.Run, RunSeq: item.RunSeq, Context: item.Context, Workflow: item.Workflow, Project: item.Project,
		Agent: item.Agent, Name: item.Name, Tags: item.Tags, Kind: kind, Tokens: item.Tokens, ExpectedHead: renamed[item.Parent],
		created: item.Created.UTC().Truncate(time.Microsecond),
	}
	if newIDPattern().MatchString(item.ID) {
		_, err := s.o.Index.Checkpoint(ctx, item.ID)
		if guideway.ErrorCode(err) == guideway.CodeNotFound {
			r.id = item.ID
		} else if err != nil {
			return nil, err
		}
	}
	saved, err := s.Save(ctx, who, r)
	if err != nil {
		return nil, guideway.Errorf(guideway.ErrorCode(err), "import the checkpoint %.80q: %w; checkpoints imported before this error: %d", item.ID, err, len(renamed)).WithFix("%s", guideway.ErrorFix(err))
	}
	s.activityLog.addEntry(Entry{At: s.currentTime(), Action: ActionImport, SeriesKey: saved.SeriesKey, Checkpoint: saved.ID, Client: who.Client, Detail: "original id: " + item.ID}, false)
	return saved, nil
}
