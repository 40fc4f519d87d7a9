package contexts

import (
	"context"
	"fmt"
	"strings"

	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/contexts/compress"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/run"
)

// Brief is the summary for an agent that resumes a run: the variables that fit into an
// answer, and the completed work.
type Brief struct {
	Context compress.Context `json:"context,omitempty"`
	// Tokens is the size of the whole context. It is an estimate if the whole context fits.
	Tokens  int        `json:"contextTokens,omitempty"`
	Omitted []Omission `json:"omitted,omitempty"`
	Summary *Summary   `json:"summary,omitempty"`
	// Note is a remark on the context for the agent.
	Note string `json:"contextNote,omitempty"`
	// Problem is set if automatic saves failed.
	Problem string `json:"checkpointProblem,omitempty"`
}

// cachedBrief is a Brief at an event of a run, made when the summaries had a revision.
type cachedBrief struct {
	seq      int64
	revision int
	Brief
}

// Brief returns the brief of a run of the caller. If the context is large, the brief was
// usually prepared in the background.
func (s *Service) Brief(ctx context.Context, c run.Caller, id string) (*Brief, error) {
	d, err := s.lookUpRun(ctx, c, run.Ref{RunID: id})
	if err != nil {
		return nil, err
	}
	key := c.User + " " + id
	// The revision is read before the brief is made: a summary stored meanwhile makes it stale.
	revision := s.writing.currentRevision()
	s.mu.Lock()
	known := s.briefs[key]
	s.mu.Unlock()
	if known == nil || known.seq != d.Seq || known.revision != revision {
		b, err := s.newBrief(ctx, c, d)
		if err != nil {
			return nil, err
		}
		known = &cachedBrief{seq: d.Seq, revision: revision, Brief: *b}
		s.mu.Lock()
		putCached(s.briefs, key, known)
		s.mu.Unlock()
	}
	out := known.Brief
	out.Problem = s.Health().userNotice()
	return &out, nil
}

func (s *Service) newBrief(ctx context.Context, c run.Caller, d *run.Details) (*Brief, error) {
	st, err := s.loadHistory(ctx, c, d)
	if err != nil {
		return nil, err
	}
	b := &Brief{Summary: s.runSummary(ctx, c, d, st)}
	if len(d.Variables) == 0 {
		return b, nil
	}
	// An estimate is enough if the whole context fits.
	b.Tokens = estimateTokens(d.Variables)
	if b.Tokens <= s.o.AnswerTokens*3/4 {
		b.Context, err = valuesOf(d.Variables)
		return b, err
	}
	m, err := s.materialOf(ctx, c, d)
	if err != nil {
		return nil, err
	}
	m.envelope = func(left []Omission) any { return left }
	reduced, err := s.compressMaterial(ctx, m, Fit{Budget: s.o.AnswerTokens})
	if err != nil {
		return nil, err
	}
	b.Context, b.Tokens, b.Omitted = reduced.Context, reduced.Before, reduced.Omitted
	if len(b.Omitted) > 0 {
		b.Note = "the context is reduced; load omitted values with workflow_checkpoint_load {ref}"
	}
	if reduced.Over != "" {
		b.Note = reduced.Over
	}
	return b, nil
}

// Notice returns a notice that the context of a run is large, and that a call stored likely
// secrets in the run, or "".
func (s *Service) Notice(id string, stored map[string]any) string {
	var notes []string
	if s.o.Secrets != nil {
		for _, w := range checkpoint.SecretWarnings(s.o.Secrets.Scan(stored)) {
			notes = append(notes, w.Path+": "+w.Message)
		}
	}
	if tokens := s.largeTokens(id); tokens > 0 {
		notes = append(notes, fmt.Sprintf("the run's context has about %d tokens (limit: %d): set variables that you no longer need to null or to a path; workflow_status returns the reduced context", tokens, s.o.LimitTokens))
	}
	return strings.Join(notes, "\n")
}

// largeTokens returns the size of a run's context if it reached the threshold, or 0.
func (s *Service) largeTokens(id string) int {
	if s.o.AutoSaver == nil || s.tokenThreshold() == 0 {
		return 0
	}
	if tokens := s.o.AutoSaver.largeTokens(id); tokens >= s.tokenThreshold() {
		return tokens
	}
	return 0
}

// prepareBrief makes and caches the brief of a run. Background jobs call it.
func (s *Service) prepareBrief(ctx context.Context, c run.Caller, id string) error {
	_, err := s.Brief(ctx, c, id)
	return err
}

// estimateTokens estimates the tokens of variables from their size, several hundred times faster
// than counting.
func estimateTokens(vars map[string]any) int {
	const unitsPerToken = 7 // 2 bytes per UTF-16 unit times 3.5 units per token
	return engine.ContextSize(vars) / unitsPerToken
}
