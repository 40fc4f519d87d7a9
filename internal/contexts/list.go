package contexts

import (
	"context"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/run"
)

// Page is one page of a list of checkpoints.
type Page struct {
	*checkpoint.Page
	// Ranked is the order of the list: "newest", "words" if no checkpoint matches all words
	// of the query, or "meaning" if an embedder ranked the matches by similarity to the
	// query.
	Ranked string `json:"ranked"`
	// Note is set if a part of the search was not possible.
	Note string `json:"note,omitempty"`
}

// candidates is the minimum number of word matches that are ranked by meaning.
const candidates = 50

// List lists checkpoints of the caller, the newest first. With an embedder the matches of a
// query are ranked by meaning; if the ranking fails, they keep their order.
func (s *Service) List(ctx context.Context, c run.Caller, r checkpoint.ListRequest) (*Page, error) {
	limit := r.Limit
	ranking := s.o.Embedder != nil && r.Query != "" && r.Cursor == ""
	if ranking {
		r.Limit = max(limit, candidates)
	}
	s.flushSaves(ctx, c, r.Session)
	page, err := s.o.Checkpoints.List(ctx, s.ownerFor(ctx, c, r.Session, ""), r)
	if err != nil {
		return nil, err
	}
	out := &Page{Page: page, Ranked: "newest"}
	if page.Partial {
		out.Ranked = "words"
	}
	if r.Query != "" && page.Wordless {
		out.addNote("encrypted checkpoints cannot be searched by words without their key: leave query out and filter by session, workflow, project, tags or time")
	}
	if !ranking || len(page.Checkpoints) == 0 {
		return out, nil
	}
	if err := s.rankByMeaning(ctx, c, r.Query, page.Checkpoints); err != nil {
		s.o.Logger.WarnContext(ctx, "a search was not ranked by meaning", "error", err)
		out.addNote("found by keywords only, because the ranking by meaning failed; see the server's log")
	} else {
		out.Ranked = "meaning"
	}
	if limit <= 0 {
		limit = 20
	}
	if len(page.Checkpoints) > limit {
		page.Checkpoints, page.Next = page.Checkpoints[:limit], ""
		out.addNote("there are more checkpoints: use a higher limit")
	}
	return out, nil
}

func (p *Page) addNote(note string) {
	p.Note = strings.TrimPrefix(p.Note+"; "+note, "; ")
}

// Get returns the metadata of a checkpoint of the caller.
func (s *Service) Get(ctx context.Context, c run.Caller, id string) (checkpoint.Record, error) {
	return s.o.Checkpoints.Get(ctx, s.ownerFor(ctx, c, "", id), id)
}

// Diff compares two checkpoints of the caller.
func (s *Service) Diff(ctx context.Context, c run.Caller, from, to string) (*checkpoint.Difference, error) {
	return s.o.Checkpoints.Diff(ctx, s.ownerFor(ctx, c, "", from), from, to)
}

// ownerFor returns the principal whose checkpoints a session, or else a checkpoint, belongs to:
// the owner of the run of the session if the caller may use that run, otherwise the caller.
func (s *Service) ownerFor(ctx context.Context, c run.Caller, session, id string) guideway.Principal {
	if session == "" && id != "" {
		session = s.o.Checkpoints.SessionOf(ctx, id)
	}
	if !isRun(session) || s.o.Runs == nil {
		return c.Principal
	}
	if d, err := s.o.Runs.Get(ctx, c, run.Ref{RunID: session}); err == nil {
		c.User = d.User
	}
	return c.Principal
}
