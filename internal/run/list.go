package run

import (
	"context"
	"strings"
	"time"
	"unicode"

	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/platform/words"
)

// List returns the runs of the caller and those of shared projects, with the last changed one first.
func (s *Service) List(ctx context.Context, c Caller, f Filter) ([]Record, error) {
	if err := s.openJournal(ctx); err != nil {
		return nil, err
	}
	list, err := s.visibleRuns(ctx, c, f)
	for _, rec := range list {
		s.notifySeen(ctx, rec)
	}
	return list, err
}

// Events returns up to limit events of a run after an event, each checked against the
// previous one.
func (s *Service) Events(ctx context.Context, c Caller, ref Ref, after int64, limit int) ([]Event, error) {
	_, rec, err := s.findByRef(ctx, c, ref)
	if err != nil {
		return nil, err
	}
	after = min(max(after, 0), rec.Seq)
	head := s.key.Root(rec.ID)
	if after > 0 {
		before, err := s.journal.Events(ctx, rec.ID, after-1, 1)
		if err != nil {
			return nil, err
		}
		if len(before) == 0 || before[0].Seq != after {
			return nil, untrustedEventError(rec.ID, after, "the event is missing")
		}
		head = before[0].MAC
	}
	events, err := s.journal.Events(ctx, rec.ID, after, limit)
	if err != nil {
		return nil, err
	}
	for i, e := range events {
		if e.Seq != after+int64(i)+1 {
			return nil, untrustedEventError(rec.ID, after+int64(i)+1, "the event is missing")
		}
		if !equalMAC(e.MAC, s.key.Chain(rec.ID, head, e)) {
			return nil, untrustedEventError(rec.ID, e.Seq, eventChanged)
		}
		head = e.MAC
	}
	return withLabels(events), nil
}

// GetWithEvents returns the details of a run of the caller with all its events.
func (s *Service) GetWithEvents(ctx context.Context, c Caller, ref Ref) (*Details, error) {
	d, err := s.Get(ctx, c, ref)
	if err != nil {
		return nil, err
	}
	events, err := s.readEvents(ctx, d.Record, d.Seq)
	if err != nil {
		return nil, err
	}
	d.Events = withLabels(events)
	return d, nil
}

// Get returns the details of a run of the caller without its events, so that the cost does
// not depend on the number of events. Use Events or GetWithEvents to read them.
func (s *Service) Get(ctx context.Context, c Caller, ref Ref) (*Details, error) {
	rec, l, err := s.loadByRef(ctx, c, ref)
	if err != nil {
		return nil, err
	}
	vars := l.state.Vars
	if vars == nil {
		vars = map[string]any{}
	}
	d := &Details{
		Record: rec, Current: rec.Handle, Position: l.program.PositionOf(l.state), Variables: vars,
		Marks: l.marks, Declined: l.attempts.Last, Hooked: l.hooked, Definition: l.program.text,
	}
	if d.Position.Kind == engine.PositionGate {
		d.Submission, err = s.readSubmission(ctx, c, rec, l)
	}
	return d, err
}

// Flow returns the compiled definition of a run of the caller.
func (s *Service) Flow(ctx context.Context, c Caller, ref Ref) (engine.Flow, error) {
	_, rec, err := s.findByRef(ctx, c, ref)
	if err != nil {
		return nil, err
	}
	p, err := s.compiledProgram(ctx, rec.Hash)
	if err != nil {
		return nil, err
	}
	return p.Flow, nil
}

// resumeQuery is the description of a run in words.
type resumeQuery struct {
	// words are the search words without stop words.
	words words.Query
	// since and until bound the time of the last change if the query mentions a time.
	since, until time.Time
}

// parseQuery removes time expressions and stop words from a request such as "resume the
// auth refactoring from yesterday".
func parseQuery(text string, now time.Time) resumeQuery {
	var q resumeQuery
	var rest []string
	list := strings.FieldsFunc(text, func(r rune) bool {
		return !unicode.In(r, unicode.L, unicode.M, unicode.N) && !strings.ContainsRune("-_./#@", r)
	})
	for i := 0; i < len(list); i++ {
		word := strings.Trim(list[i], "-_./#@")
		following := ""
		if i+1 < len(list) {
			following = strings.ToLower(strings.Trim(list[i+1], "-_./#@"))
		}
		used := q.parseTime(strings.ToLower(word), following, now)
		i += max(used-1, 0)
		if used == 0 && !words.IsStopWord(strings.ToLower(word)) {
			rest = append(rest, word)
		}
	}
	q.words = words.Parse(strings.Join(rest, " "))
	return q
}

// parseTime parses a time expression of one or two words and returns the number of words
// used.
func (q *resumeQuery) parseTime(word, following string, now time.Time) int {
	today := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
	week := today.AddDate(0, 0, -(int(today.Weekday())+6)%7)
	month := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, now.Location())
	switch {
	case word == "today":
		q.since, q.until = today, time.Time{}
		return 1
	case word == "yesterday":
		q.since, q.until = today.AddDate(0, 0, -1), today
		return 1
	case word == "this" && following == "week":
		q.since, q.until = week, time.Time{}
	case word == "last" && following == "week":
		q.since, q.until = week.AddDate(0, 0, -7), week
	case word == "this" && following == "month":
		q.since, q.until = month, time.Time{}
	case word == "last" && following == "month":
		q.since, q.until = month.AddDate(0, -1, 0), month
	default:
		day, err := time.ParseInLocation(time.DateOnly, word, now.Location())
		if err != nil {
			return 0
		}
		q.since, q.until = day, day.AddDate(0, 0, 1)
		return 1
	}
	return 2
}
