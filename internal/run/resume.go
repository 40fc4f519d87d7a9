package run

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/guideway-dev/guideway/internal/engine"
)

// Resume finds runs of the caller's to go on with: by id, by words over goal,
// notes, workflow, project, branch and time, or, without any, the ones that were
// last at work. Each comes with a handle that is ready to use.
func (s *Service) Resume(ctx context.Context, c Caller, r ResumeRequest) ([]Candidate, error) {
	if err := withinLimits(limit{"query", r.Query, maxGoal}, limit{"project", r.Project, maxGoal}); err != nil {
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
	now := s.now() // in the time zone of this machine: its days are the person's
	q := parseQuery(query, now)
	most := r.Limit
	if most <= 0 {
		most = 5
	}
	hits, err := s.hits(ctx, c, q, r, most)
	if err != nil {
		return nil, err
	}
	ranked := rank(hits, r.Here, now)
	return s.candidates(ctx, ranked[:min(len(ranked), most)])
}

func (s *Service) resumeOne(ctx context.Context, c Caller, ref Ref) ([]Candidate, error) {
	_, rec, err := s.byRef(ctx, c, ref)
	if err != nil {
		return nil, err
	}
	return s.candidates(ctx, []ranking{{rec: rec, score: 1, why: "it is named"}})
}

// hits finds runs. Where the words find nothing in the time that the query
// names, the words alone count; where they find nothing at all, nothing does.
func (s *Service) hits(ctx context.Context, c Caller, q query, r ResumeRequest, most int) ([]Hit, error) {
	if err := s.open(ctx); err != nil {
		return nil, err
	}
	const perCandidate, least = 6, 30
	f := Filter{User: c.User, Since: q.since, Until: q.until, Limit: max(least, perCandidate*most)}
	if r.Project != "" {
		f.Project = projectID(r.Project, r.Here)
	}
	if len(q.words) == 0 {
		return s.recent(ctx, f)
	}
	hits, err := s.journal.Search(ctx, Search{Filter: f, Words: q.words})
	if err != nil || len(hits) > 0 || q.since.IsZero() {
		return hits, err
	}
	f.Since, f.Until = time.Time{}, time.Time{}
	return s.journal.Search(ctx, Search{Filter: f, Words: q.words})
}

// recent gives the runs that were last at work, those that have not ended first.
func (s *Service) recent(ctx context.Context, f Filter) ([]Hit, error) {
	open := f
	open.Statuses = []engine.Status{engine.StatusRunning, engine.StatusWaiting}
	var hits []Hit
	for _, filter := range []Filter{open, f} {
		runs, err := s.journal.Runs(ctx, filter)
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

// projectID gives the id of a project that is named by its id or path.
func projectID(name string, here Project) string {
	if name == here.ID || filepath.Clean(name) == filepath.Clean(here.Path) {
		return here.ID
	}
	return name
}

// ranking is a run with how well it fits.
type ranking struct {
	rec   Record
	score float64
	why   string
}

// The shares of what makes a run likely to be the one that is meant.
const (
	shareWords  = 0.55
	shareOpen   = 0.20
	shareRecent = 0.15
	shareHere   = 0.10
	// fresh is the age at which a run's recency counts half.
	fresh = 72 * time.Hour
)

// rank orders hits by how likely they are meant: the words, whether the run is
// still open, how long ago it was at work, and whether it is of the project
// that the caller is in.
func rank(hits []Hit, here Project, now time.Time) []ranking {
	best := 0.0
	for _, h := range hits {
		best = max(best, h.Score)
	}
	out := make([]ranking, 0, len(hits))
	for _, h := range hits {
		r := ranking{rec: h.Record}
		var why []string
		if best > 0 {
			r.score += shareWords * h.Score / best
			why = append(why, "the words fit")
			if h.Excerpt != "" {
				why = []string{"the words fit: " + strings.Join(strings.Fields(h.Excerpt), " ")}
			}
		}
		if !isEnded(h.Record.Status) {
			r.score += shareOpen
			why = append(why, "it is "+string(h.Record.Status))
		} else {
			why = append(why, "it is "+string(h.Record.Status)+": fork it to go on")
		}
		age := now.Sub(h.Record.Updated)
		r.score += shareRecent * math.Exp2(-float64(max(age, 0))/float64(fresh))
		why = append(why, "last at work "+ago(age))
		if here.ID != "" && h.Record.Project.ID == here.ID {
			r.score += shareHere
			why = append(why, "it is of this project")
			if here.Branch != "" && here.Branch == h.Record.Project.Branch {
				why[len(why)-1] += " and branch"
			}
		}
		r.score = math.Round(r.score*1000) / 1000
		r.why = strings.Join(why, "; ")
		out = append(out, r)
	}
	slices.SortStableFunc(out, func(a, b ranking) int {
		switch {
		case a.score != b.score:
			if a.score > b.score {
				return -1
			}
			return 1
		default:
			return b.rec.Updated.Compare(a.rec.Updated)
		}
	})
	return out
}

// ago says an age in words.
func ago(age time.Duration) string {
	switch {
	case age < time.Minute:
		return "just now"
	case age < time.Hour:
		return fmt.Sprintf("%d minutes ago", int(age/time.Minute))
	case age < 48*time.Hour:
		return fmt.Sprintf("%d hours ago", int(age/time.Hour))
	default:
		return fmt.Sprintf("%d days ago", int(age/(24*time.Hour)))
	}
}

// candidates adds to each run where it stands. One that cannot be loaded is left
// to a person: it shows in its place with the reason.
func (s *Service) candidates(ctx context.Context, list []ranking) ([]Candidate, error) {
	out := make([]Candidate, 0, len(list))
	for _, r := range list {
		c := Candidate{
			RunID: r.rec.ID, Handle: r.rec.Handle, WorkflowID: r.rec.Workflow, Goal: r.rec.Goal, Status: r.rec.Status,
			Project: r.rec.Project, Score: r.score, Why: r.why, UpdatedAt: r.rec.Updated,
		}
		l, err := s.load(ctx, r.rec)
		switch {
		case err == nil:
			c.Position = l.program.PositionOf(l.state)
			c.Next = nextCall(c.Handle, c.Position)
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
