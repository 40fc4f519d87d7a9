package contexts

import (
	"context"

	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/run"
)

// Page is a part of a list of checkpoints.
type Page struct {
	*checkpoint.Page
	// Ranked says by what the order is: "newest", "words" where none has all words
	// of the query, or "meaning".
	Ranked string `json:"ranked"`
	// Note says that a part of the search was not possible.
	Note string `json:"note,omitempty"`
}

// candidates is how many that the words have found are ranked by their meaning.
const candidates = 50

// List lists checkpoints of the caller's, the newest first. Where an embedder is
// there, what a query has found is ranked by its meaning; where that fails, it
// stays as the words have found it.
func (s *Service) List(ctx context.Context, c run.Caller, r checkpoint.ListRequest) (*Page, error) {
	limit := r.Limit
	ranking := s.o.Embedder != nil && r.Query != "" && r.Cursor == ""
	if ranking {
		r.Limit = max(limit, candidates)
	}
	s.settled(ctx, c, r.Session)
	page, err := s.o.Checkpoints.List(ctx, c.Principal, r)
	if err != nil {
		return nil, err
	}
	out := &Page{Page: page, Ranked: "newest"}
	if page.Partial {
		out.Ranked = "words"
	}
	if r.Query != "" && page.Wordless {
		out.Note = "encrypted checkpoints are not found by words: leave query out and name the session, workflow, project, tags or time"
	}
	if !ranking || len(page.Checkpoints) == 0 {
		return out, nil
	}
	if err := s.rank(ctx, c, r.Query, page.Checkpoints); err != nil {
		s.o.Logger.WarnContext(ctx, "a search was not ranked by its meaning", "error", err)
		out.Note += more(out.Note) + "found by words alone: the embeddings endpoint did not answer"
	} else {
		out.Ranked = "meaning"
	}
	if limit <= 0 {
		limit = 20
	}
	if len(page.Checkpoints) > limit {
		page.Checkpoints, page.Next = page.Checkpoints[:limit], ""
		out.Note += more(out.Note) + "there are more: ask with a higher limit"
	}
	return out, nil
}

func more(note string) string {
	if note == "" {
		return ""
	}
	return "; "
}

// Get gives what is known of a checkpoint of the caller's.
func (s *Service) Get(ctx context.Context, c run.Caller, id string) (checkpoint.Record, error) {
	return s.o.Checkpoints.Get(ctx, c.Principal, id)
}

// Diff says what changed from one checkpoint of the caller's to another.
func (s *Service) Diff(ctx context.Context, c run.Caller, from, to string) (*checkpoint.Difference, error) {
	return s.o.Checkpoints.Diff(ctx, c.Principal, from, to)
}
