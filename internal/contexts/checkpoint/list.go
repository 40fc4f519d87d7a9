package checkpoint

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/words"
)

const (
	defaultPage = 20
	maxPage     = 200
)

// List returns checkpoints of the caller, the newest first. With a query it returns the
// checkpoints that match all words; if none exist, those that match some of the words,
// the best matches first.
func (s *Service) List(ctx context.Context, who guideway.Principal, r ListRequest) (*Page, error) {
	f, err := r.toFilter(who)
	if err != nil {
		return nil, err
	}
	if err := s.ensureIndex(ctx); err != nil {
		return nil, err
	}
	limit := f.Limit
	f.Limit++ // one more result shows whether there is a next page
	out := &Page{Checkpoints: []Record{}, Store: s.o.Store, Wordless: s.o.Locked != nil}
	if r.Query != "" && len(f.Query) == 0 {
		return out, nil // the query contains no word
	}
	if s.o.Keys != nil && r.Query != "" {
		hash, err := s.wordHash(ctx, false)
		if err != nil {
			return nil, err
		}
		if hash != nil {
			f.Query = hash.Query(f.Query)
		}
	}
	list, err := s.o.Index.Checkpoints(ctx, f)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 && len(f.Query) > 1 && f.Before == nil {
		f.Any, out.Partial = true, true
		if list, err = s.o.Index.Checkpoints(ctx, f); err != nil {
			return nil, err
		}
	}
	if len(list) > limit {
		list = list[:limit]
		if !out.Partial {
			out.Next = list[limit-1].listCursor()
		}
	}
	out.Checkpoints = append(out.Checkpoints, list...)
	for _, r := range list {
		if !r.Followed && r.Kind != KindFragment {
			out.Heads = append(out.Heads, r.ID)
		}
	}
	return out, nil
}

// toFilter validates the request and converts it to a filter.
func (r ListRequest) toFilter(who guideway.Principal) (Filter, error) {
	f := Filter{
		User: who.User, Workflow: r.Workflow, Project: r.Project, Since: r.Since, Until: r.Until,
		Tags: tidyTags(r.Tags), Query: words.Parse(r.Query), Limit: r.Limit, All: r.Reduced,
	}
	if r.Session != "" {
		f.Session = SessionID(r.Session)
	}
	if f.Limit <= 0 {
		f.Limit = defaultPage
	}
	f.Limit = min(f.Limit, maxPage)
	if r.Cursor != "" {
		before, ok := parseCursor(r.Cursor)
		if !ok {
			return f, guideway.Errorf(guideway.CodeInvalid, "the cursor %.40q does not belong to a checkpoint list", r.Cursor).
				WithFix("pass the nextCursor of the previous page, or omit cursor")
		}
		f.Before = &before
	}
	return f, nil
}

func (r Record) listCursor() string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d %s", r.Pos, r.ID))
}

func parseCursor(text string) (c Cursor, ok bool) {
	plain, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return c, false
	}
	n, err := fmt.Sscanf(string(plain), "%d %s", &c.Pos, &c.ID)
	return c, err == nil && n == 2
}

// Get returns the metadata of a checkpoint of the caller.
func (s *Service) Get(ctx context.Context, who guideway.Principal, id string) (Record, error) {
	if err := s.ensureIndex(ctx); err != nil {
		return Record{}, err
	}
	return s.ownRecord(ctx, who, id)
}

// SessionOf returns the session of a checkpoint of any user, or "".
func (s *Service) SessionOf(ctx context.Context, id string) string {
	if s.ensureIndex(ctx) != nil {
		return "" // the request for the checkpoint returns the error
	}
	rec, err := s.o.Index.Checkpoint(ctx, id)
	if err != nil {
		return ""
	}
	return rec.Session
}

// Audit returns the last entries of the audit log for the caller's sessions, the newest
// first.
func (s *Service) Audit(ctx context.Context, who guideway.Principal, limit int) ([]Entry, error) {
	if limit <= 0 {
		limit = 100
	}
	return s.o.Index.Notes(ctx, who.User, limit)
}

// largestSeries returns the series with the largest stored size.
func largestSeries(seriesList []Series, most int) []Series {
	list := slices.SortedFunc(slices.Values(seriesList), func(a, b Series) int {
		return cmp.Or(cmp.Compare(b.Stored, a.Stored), cmp.Compare(a.Session, b.Session))
	})
	return append([]Series{}, list[:min(most, len(list))]...)
}

func sortedDays(byDate map[string]*Day) []Day {
	list := []Day{}
	for _, date := range slices.Sorted(maps.Keys(byDate)) {
		list = append(list, *byDate[date])
	}
	return list
}
