package contexts_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/guideway-dev/guideway/internal/contexts"
	"github.com/guideway-dev/guideway/internal/run"
)

// author is a Summarizer that writes summaries, returns the error err if it is set, or
// blocks until it is released.
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

func (a *author) callCount() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.asked)
}

// syncedLog is a log that is safe for concurrent reads.
type syncedLog struct {
	mu   sync.Mutex
	text strings.Builder
}

func (h *syncedLog) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.Write(p)
}

func (h *syncedLog) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.String()
}

// withSummarizer enables summaries by an author.
func withSummarizer(a *author, log *syncedLog) func(*parts) {
	return func(p *parts) {
		p.memory.Level, p.memory.Summarizer = contexts.LevelAdvanced, a
		if log != nil {
			p.memory.Logger = slog.New(slog.NewTextHandler(log, nil))
		}
	}
}

// TestModelSummaries checks that a brief contains the extract until the model has answered,
// and then the summary that the model wrote. The summary has a reference to the whole
// outputs, and another process has the same summary.
func TestModelSummaries(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	model := &author{wait: make(chan struct{})}
	r := reopenRig(t, dir, withSummarizer(model, nil))
	a, err := stepsWalk(t.Context(), r, "release", 6) // walk into the phase "build", after its loop
	mustSucceed(t, err)
	before, err := r.Brief(t.Context(), testCaller(), a.RunID)
	mustSucceed(t, err)
	if before.Summary == nil || before.Summary.Written || !strings.Contains(before.Summary.Text, "Did list") {
		t.Fatalf("before the model has answered, the summary is %+v", before.Summary)
	}
	close(model.wait)
	var s *contexts.Summary
	for range 10_000 { // the summary is written in the background
		b, err := r.Brief(t.Context(), testCaller(), a.RunID)
		mustSucceed(t, err)
		if s = b.Summary; s.Written {
			break
		}
		<-time.After(time.Millisecond)
	}
	if !s.Written || !strings.Contains(s.Text, "In short of") || strings.Contains(s.Text, "Did list") {
		t.Fatalf("after the model has answered, the summary is %+v", s)
	}
	whole, err := r.Load(t.Context(), testCaller(), contexts.LoadRequest{Ref: s.Ref})
	mustSucceed(t, err)
	if !strings.Contains(string(whole.Value), "Did list") {
		t.Errorf("the reference of the summary loads %s", whole.Value)
	}
	if first := model.asked[0]; first.Title != "prepare" || !strings.Contains(first.Text, "Did list") || first.Workflow != "release" {
		t.Errorf("the first request to the model is %+v", first)
	}
	_, err = finishRun(t.Context(), r, a)
	mustSucceed(t, err)
	mustSucceed(t, r.saver.Close())

	asked := model.callCount()
	again := reopenRig(t, dir, withSummarizer(model, nil))
	b, err := again.Brief(t.Context(), testCaller(), a.RunID)
	mustSucceed(t, err)
	if text := b.Summary.Sections[0].Text; !strings.Contains(text, "In short of") {
		t.Errorf("the next process has %q (the model was asked %d times)", text, asked)
	}
	loaded, err := again.Load(t.Context(), testCaller(), contexts.LoadRequest{Session: a.RunID})
	mustSucceed(t, err)
	if strings.Contains(string(loaded.Context), "In short of") {
		t.Errorf("the summary is a part of the context: %s", loaded.Context)
	}
}

// TestModelSummariesFail checks that with a failing or missing model the extracts are
// used, requests are not repeated, and the log reports it once.
func TestModelSummariesFail(t *testing.T) {
	t.Parallel()
	log := &syncedLog{}
	model := &author{err: errors.New("the quota is used up")}
	r := setupRig(t, withSummarizer(model, log))
	a, err := stepsWalk(t.Context(), r, "release", 6)
	mustSucceed(t, err)
	for n := 0; n < 20 || n < 10_000 && !strings.Contains(log.String(), "quota"); n++ { // the model fails in the background
		b, err := r.Brief(t.Context(), testCaller(), a.RunID)
		mustSucceed(t, err)
		if b.Summary.Written || !strings.Contains(b.Summary.Text, "Did list") {
			t.Fatalf("summary %+v", b.Summary)
		}
		a, err = r.runs.Status(t.Context(), testCaller(), run.Ref{RunID: a.RunID})
		mustSucceed(t, err)
		<-time.After(time.Millisecond)
	}
	_, err = finishRun(t.Context(), r, a)
	mustSucceed(t, err)
	mustSucceed(t, r.saver.Close())
	if n := model.callCount(); n != 1 {
		t.Errorf("the model was asked %d times", n)
	}
	if n := strings.Count(log.String(), "quota"); n != 1 {
		t.Errorf("the log contains %q", log.String())
	}

	quiet := &syncedLog{}
	none := setupRig(t, func(p *parts) {
		p.memory.Level, p.memory.Logger = contexts.LevelAdvanced, slog.New(slog.NewTextHandler(quiet, nil))
	})
	a, err = stepsWalk(t.Context(), none, "release", 6)
	mustSucceed(t, err)
	b, err := none.Brief(t.Context(), testCaller(), a.RunID)
	mustSucceed(t, err)
	if b.Summary.Written || strings.Count(quiet.String(), "no model") != 1 {
		t.Errorf("without a model, the summary is %+v, and the log contains %q", b.Summary, quiet.String())
	}
}
