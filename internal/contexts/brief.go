package contexts

import (
	"context"
	"fmt"

	"github.com/guideway-dev/guideway/internal/contexts/compress"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/run"
)

// Brief is what an agent is told of a run that it comes to: its variables, as far
// as they fit into an answer, and what was done.
type Brief struct {
	Context compress.Context `json:"context,omitempty"`
	// Tokens is what the whole context costs; it is estimated where nothing was
	// left out.
	Tokens  int        `json:"contextTokens,omitempty"`
	Omitted []Omission `json:"omitted,omitempty"`
	Summary *Summary   `json:"summary,omitempty"`
	// Note says what the agent should know of the context.
	Note string `json:"contextNote,omitempty"`
	// Problem says that checkpoints could not be saved by themselves.
	Problem string `json:"checkpointProblem,omitempty"`
}

// brief is a Brief at an event of a run.
type brief struct {
	seq int64
	Brief
}

// Brief tells of a run of the caller's. It is made in the background where the
// context is large, and then it is there.
func (s *Service) Brief(ctx context.Context, c run.Caller, id string) (*Brief, error) {
	runs, err := s.runs()
	if err != nil {
		return nil, err
	}
	d, err := runs.Look(ctx, c, run.Ref{RunID: id})
	if err != nil {
		return nil, err
	}
	key := c.User + " " + id
	s.mu.Lock()
	known := s.briefs[key]
	s.mu.Unlock()
	if known == nil || known.seq != d.Seq {
		b, err := s.brief(ctx, c, d)
		if err != nil {
			return nil, err
		}
		known = &brief{seq: d.Seq, Brief: *b}
		s.mu.Lock()
		put(s.briefs, key, known)
		s.mu.Unlock()
	}
	out := known.Brief
	out.Problem = s.Health().problem()
	return &out, nil
}

func (s *Service) brief(ctx context.Context, c run.Caller, d *run.Details) (*Brief, error) {
	st, err := s.story(ctx, c, d)
	if err != nil {
		return nil, err
	}
	b := &Brief{Summary: s.summary(ctx, c, d, st)}
	if len(d.Variables) == 0 {
		return b, nil
	}
	// A guess is enough to see that all of it fits.
	b.Tokens = estimate(d.Variables)
	if b.Tokens <= s.o.AnswerTokens*3/4 {
		b.Context, err = valuesOf(d.Variables)
		return b, err
	}
	m, err := s.materialOf(ctx, c, d)
	if err != nil {
		return nil, err
	}
	m.brief = true
	reduced, err := s.compress(ctx, m, Fit{Budget: s.o.AnswerTokens})
	if err != nil {
		return nil, err
	}
	b.Context, b.Tokens, b.Omitted = reduced.Context, reduced.Before, reduced.Omitted
	if len(b.Omitted) > 0 {
		b.Note = "the context is reduced; workflow_checkpoint_load {ref} reads back what was left out"
	}
	if reduced.Over != "" {
		b.Note = reduced.Over
	}
	return b, nil
}

// Notice says that the context of a run has grown large, or "".
func (s *Service) Notice(id string) string {
	if s.o.Keeper == nil || s.threshold() == 0 {
		return ""
	}
	tokens := s.o.Keeper.large(id)
	if tokens < s.threshold() {
		return ""
	}
	return fmt.Sprintf("the run's context has about %d tokens, of %d: set what is done with to null or to a path; workflow_status gives it reduced", tokens, s.o.LimitTokens)
}

// prepareBrief makes the brief of a run whose context has grown large, before
// anybody asks for it.
func (s *Service) prepareBrief(ctx context.Context, c run.Caller, id string) error {
	_, err := s.Brief(ctx, c, id)
	return err
}

// estimate guesses the tokens of variables from their size, some hundred times
// faster than counting them.
func estimate(vars map[string]any) int {
	const unitsPerToken = 7 // two for each UTF-16 unit, and 3.5 of these for a token
	return engine.ContextSize(vars) / unitsPerToken
}
