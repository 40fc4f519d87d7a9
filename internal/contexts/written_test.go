package contexts_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/guideway-dev/guideway/internal/contexts"
	"github.com/guideway-dev/guideway/internal/run"
)

// author writes summaries, fails as long as it is told to, or waits for its turn.
type author struct {
	mu    sync.Mutex
	asked []contexts.SummaryRequest
	err   error
	wait  chan struct{}
}

func (a *author) Summarize(ctx context.Context, r contexts.SummaryRequest) (string, error) {
	if a.wait != nil {
		select {
		case <-a.wait:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = append(a.asked, r)
	return fmt.Sprintf("In short of %q: number %d.", r.Title, len(a.asked)), a.err
}

func (a *author) times() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.asked)
}

// heard is a log that is read while it is written.
type heard struct {
	mu   sync.Mutex
	text strings.Builder
}

func (h *heard) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.Write(p)
}

func (h *heard) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.String()
}

// advanced has an author write the summaries.
func advanced(a *author, log *heard) func(*parts) {
	return func(p *parts) {
		p.memory.Level, p.memory.Summarizer = contexts.LevelAdvanced, a
		if log != nil {
			p.memory.Logger = slog.New(slog.NewTextHandler(log, nil))
		}
	}
}

// TestSummariesByAModel: where a model writes summaries, an answer has the extract until
// they are there, and never waits; then it has them, each part asked for once; and the
// run's next checkpoint carries them to the next process.
func TestSummariesByAModel(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	model := &author{wait: make(chan struct{})}
	r := reopen(t, dir, advanced(model, nil))
	a, err := walk(t.Context(), r, "release", 6) // into the phase "build", behind its loop
	must(t, err)
	before, err := r.Brief(t.Context(), ada(), a.RunID)
	must(t, err)
	if before.Summary == nil || before.Summary.Written || !strings.Contains(before.Summary.Text, "Did list") {
		t.Fatalf("before the model has answered: %+v", before.Summary)
	}
	close(model.wait)
	var s *contexts.Summary
	for range 20_000 { // it is written beside the answers
		b, err := r.Brief(t.Context(), ada(), a.RunID)
		must(t, err)
		if s = b.Summary; s.Written {
			break
		}
	}
	if !s.Written || !strings.Contains(s.Text, "In short of") || strings.Contains(s.Text, "Did list") {
		t.Fatalf("once it has: %+v", s)
	}
	whole, err := r.Load(t.Context(), ada(), contexts.LoadRequest{Ref: s.Ref})
	must(t, err)
	if !strings.Contains(string(whole.Value), "Did list") {
		t.Errorf("the summary reads back as %s", whole.Value)
	}
	if first := model.asked[0]; first.Title != "prepare" || !strings.Contains(first.Text, "Did list") || first.Workflow != "release" {
		t.Errorf("the model was asked for %+v", first)
	}
	_, err = finish(t.Context(), r, a)
	must(t, err)
	must(t, r.keeper.Close())

	asked := model.times()
	again := reopen(t, dir, advanced(model, nil))
	b, err := again.Brief(t.Context(), ada(), a.RunID)
	must(t, err)
	if text := b.Summary.Chapters[0].Text; !strings.Contains(text, "In short of") {
		t.Errorf("the next process has %q (the model was asked %d times)", text, asked)
	}
	loaded, err := again.Load(t.Context(), ada(), contexts.LoadRequest{Session: a.RunID})
	must(t, err)
	if strings.Contains(string(loaded.Context), "In short of") {
		t.Errorf("what was written is a part of the context: %s", loaded.Context)
	}
}

// TestNoSummariesByAModel: a model that fails, or that is not there, leaves the extracts,
// is not asked again and again, and the log says so once.
func TestNoSummariesByAModel(t *testing.T) {
	t.Parallel()
	log := &heard{}
	model := &author{err: errors.New("the quota is used up")}
	r := setup(t, advanced(model, log))
	a, err := walk(t.Context(), r, "release", 6)
	must(t, err)
	for n := 0; n < 20 || n < 20_000 && !strings.Contains(log.String(), "quota"); n++ { // it fails beside the answers
		b, err := r.Brief(t.Context(), ada(), a.RunID)
		must(t, err)
		if b.Summary.Written || !strings.Contains(b.Summary.Text, "Did list") {
			t.Fatalf("summary %+v", b.Summary)
		}
		a, err = r.runs.Status(t.Context(), ada(), run.Ref{RunID: a.RunID})
		must(t, err)
	}
	_, err = finish(t.Context(), r, a)
	must(t, err)
	must(t, r.keeper.Close())
	if n := model.times(); n != 1 {
		t.Errorf("the model was asked %d times", n)
	}
	if n := strings.Count(log.String(), "quota"); n != 1 {
		t.Errorf("the log says %q", log.String())
	}

	quiet := &heard{}
	none := setup(t, func(p *parts) {
		p.memory.Level, p.memory.Logger = contexts.LevelAdvanced, slog.New(slog.NewTextHandler(quiet, nil))
	})
	a, err = walk(t.Context(), none, "release", 6)
	must(t, err)
	b, err := none.Brief(t.Context(), ada(), a.RunID)
	must(t, err)
	if b.Summary.Written || strings.Count(quiet.String(), "no model") != 1 {
		t.Errorf("without a model: %+v, the log says %q", b.Summary, quiet.String())
	}
}
