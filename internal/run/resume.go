package run

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/platform/words"
)

// Resume finds runs of the caller to continue: by id, by words of goal, notes, outputs,
// workflow, project and branch, by time, or, without words, the most recently used ones.
// Each has a handle that is ready to use.
func (s *Service) Resume(ctx context.Context, c Caller, r ResumeRequest) ([]Candidate, error) {
	if err := checkLimits(sizeLimit{"query", r.Query, maxGoal}, sizeLimit{"project", r.Project, maxGoal}); err != nil {
		return nil, err
	}
	if id := strings.TrimSpace(r.RunID); id != "" {
		return s.resumeOne(ctx, c, Ref{RunID: id})
	}
	query := strings.TrimSpace(r.Query)
	if isRunID(query) && !strings.ContainsAny(query, " \t\n") {
		return s.resumeOne(ctx, c, Ref{RunID: query})
	}
	if isHandle(query) && !strings.ContainsAny(query, " \t\n") {
		return s.resumeOne(ctx, c, Ref{Handle: query})
	}
	now := s.now() // in the time zone of the machine, which is taken for the user's
	q := parseQuery(query, now)
	most := r.Limit
	if most <= 0 {
		most = 5
	}
	hits, err := s.findHits(ctx, c, q, r, most)
	if err != nil {
		return nil, err
	}
	ranked := rankHits(hits, r.Here, now)
	ranked = ranked[:min(len(ranked), most)]
	for i := range ranked {
		if excerpt := s.readExcerpt(ctx, ranked[i].Hit, q.words); excerpt != "" {
			ranked[i].why = strings.Replace(ranked[i].why, wordsMatch, wordsMatch+": "+excerpt, 1)
		}
	}
	return s.newCandidates(ctx, ranked)
}

func (s *Service) resumeOne(ctx context.Context, c Caller, ref Ref) ([]Candidate, error) {
	_, rec, err := s.findByRef(ctx, c, ref)
	if err != nil {
		return nil, err
	}
	return s.newCandidates(ctx, []rankedHit{{Hit: Hit{Record: rec}, score: 1, why: "exact id"}})
}

// findHits finds runs. If the words match nothing in the time of the query, the time is
// ignored. If they match nothing at all, there is no hit.
func (s *Service) findHits(ctx context.Context, c Caller, q resumeQuery, r ResumeRequest, most int) ([]Hit, error) {
	if err := s.openJournal(ctx); err != nil {
		return nil, err
	}
	const perCandidate, least = 6, 30
	f := Filter{Since: q.since, Until: q.until, Limit: max(least, perCandidate*most)}
	if r.Project != "" {
		f.Project = projectID(r.Project, r.Here)
	}
	if len(q.words) == 0 {
		return s.recentHits(ctx, c, f)
	}
	hits, err := s.searchVisible(ctx, c, Search{Filter: f, Query: q.words})
	if err != nil || len(hits) > 0 || q.since.IsZero() {
		return hits, err
	}
	f.Since, f.Until = time.Time{}, time.Time{}
	return s.searchVisible(ctx, c, Search{Filter: f, Query: q.words})
}

// recentHits returns the most recently used runs, with those that have not ended first.
func (s *Service) recentHits(ctx context.Context, c Caller, f Filter) ([]Hit, error) {
	open := f
	open.Statuses = []engine.Status{engine.StatusRunning, engine.StatusWaiting}
	var hits []Hit
	for _, filter := range []Filter{open, f} {
		runs, err := s.visibleRuns(ctx, c, filter)
		if err != nil {
			return nil, err
		}
		for _, rec := range runs {
			if !slices.ContainsFunc(hits, func(h Hit) bool { return h.Record.ID == rec.ID }) {
				hits = append(hits, Hit{Record: rec})
			}
		}
	}
	return hits, nil
}

// projectID returns the id of the caller's project if name is its id or path, and otherwise
// name, which must be the id of a project.
func projectID(name string, here Project) string {
	if name == here.ID || filepath.Clean(name) == filepath.Clean(here.Path) {
		return here.ID
	}
	return name
}

// rankedHit is a run with its rank.
type rankedHit struct {
	Hit
	score float64
	why   string
}

// wordsMatch is the reason for a hit of a search.
const wordsMatch = "the words match"

// readExcerpt returns a part of the record, or of the notes and outputs of the commit that
// matches, with a word of the query, or "".
func (s *Service) readExcerpt(ctx context.Context, h Hit, q words.Query) string {
	const most = 8 // the number of events of a commit that are read
	if excerpt := words.Excerpt(h.Record.SearchText(), q); excerpt != "" || h.Seq == 0 {
		return excerpt
	}
	events, err := s.journal.Events(ctx, h.Record.ID, max(h.Seq-most, 0), most)
	if err != nil {
		return "" // loading the run, which follows, reports the error
	}
	for _, e := range slices.Backward(events) {
		fact, _, _ := parseFact(e)
		if excerpt := words.Excerpt(searchText([]engine.Event{fact}), q); excerpt != "" {
			return excerpt
		}
	}
	return ""
}

// The weights of the ranking.
const (
	shareWords  = 0.55
	shareOpen   = 0.20
	shareRecent = 0.15
	shareHere   = 0.10
	// recencyHalfLife is the age at which the weight of a run's recency is halved.
	recencyHalfLife = 72 * time.Hour
)

// rankHits sorts hits by the match of the words, whether the run is open, its last use, and
// whether it belongs to the caller's project.
func rankHits(hits []Hit, here Project, now time.Time) []rankedHit {
	best := 0.0
	for _, h := range hits {
		best = max(best, h.Score)
	}
	out := make([]rankedHit, 0, len(hits))
	for _, h := range hits {
		r := rankedHit{Hit: h}
		var why []string
		if best > 0 {
			r.score += shareWords * h.Score / best
			why = append(why, wordsMatch)
		}
		if !isEnded(h.Record.Status) {
			r.score += shareOpen
			why = append(why, "the run is "+string(h.Record.Status))
		} else {
			why = append(why, "the run is "+string(h.Record.Status)+"; fork it to continue")
		}
		age := now.Sub(h.Record.Updated)
		r.score += shareRecent * math.Exp2(-float64(max(age, 0))/float64(recencyHalfLife))
		why = append(why, "last used "+formatAge(age))
		if here.ID != "" && h.Record.Project.ID == here.ID {
			r.score += shareHere
			why = append(why, "same project")
			if here.Branch != "" && here.Branch == h.Record.Project.Branch {
				why[len(why)-1] += " and branch"
			}
		}
		r.score = math.Round(r.score*1000) / 1000
		r.why = strings.Join(why, "; ")
		out = append(out, r)
	}
	slices.SortStableFunc(out, func(a, b rankedHit) int {
		return cmp.Or(cmp.Compare(b.score, a.score), b.Record.Updated.Compare(a.Record.Updated))
	})
	return out
}

// formatAge formats an age in words.
func formatAge(age time.Duration) string {
	switch {
	case age < time.Minute:
		return "just now"
	case age < time.Hour:
		return fmt.Sprintf("%d min ago", int(age/time.Minute))
	case age < 48*time.Hour:
		return fmt.Sprintf("%d h ago", int(age/time.Hour))
	default:
		return fmt.Sprintf("%d days ago", int(age/(24*time.Hour)))
	}
}

// newCandidates returns the ranked runs with their positions. A run that cannot be loaded
// is listed with the error, so that a person can handle it.
func (s *Service) newCandidates(ctx context.Context, list []rankedHit) ([]Candidate, error) {
	out := make([]Candidate, 0, len(list))
	for _, r := range list {
		c := Candidate{
			RunID: r.Record.ID, Handle: r.Record.Handle, WorkflowID: r.Record.Workflow, Goal: r.Record.Goal, Status: r.Record.Status,
			Project: r.Record.Project, Score: r.score, Why: r.why, UpdatedAt: r.Record.Updated,
		}
		l, err := s.loadRun(ctx, r.Record)
		switch {
		case err == nil:
			c.Position = l.program.PositionOf(l.state)
			c.Next = nextCall(c.RunID, c.Handle, c.Position)
			if isEnded(c.Status) {
				c.Next = &Call{Tool: "workflow_fork", Arguments: map[string]any{"runId": c.RunID}}
			}
		case ctx.Err() != nil:
			return nil, err
		default:
			c.Status, c.Why = StatusError, err.Error()
			c.Position = engine.Position{Kind: engine.PositionEnd, Message: err.Error()}
		}
		out = append(out, c)
	}
	return out, nil
}

// StatusError is the status of a run that cannot be loaded.
const StatusError engine.Status = "error"
