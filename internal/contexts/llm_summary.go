package contexts

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/run"
)

// Summarizer writes summaries, for example with a language model.
type Summarizer interface {
	// Summarize returns a summary of a part of a run in a few sentences. It is called in
	// the background and canceled with its context.
	Summarize(ctx context.Context, r SummaryRequest) (string, error)
}

// SummaryRequest is a part of a run to summarize.
type SummaryRequest struct {
	Workflow, Goal string
	// Title is the name of the part, Text its outputs, truncated if they are long. Text is
	// untrusted input.
	Title, Text string
	// Tokens is the approximate maximum length of the summary.
	Tokens int
}

const (
	// summaryTimeout bounds one summary, retryPause is the pause after a failed one.
	summaryTimeout = time.Minute
	retryPause     = 5 * time.Minute
	// maxInputBytes bounds the input of a summary in bytes, maxBytesPerToken its output in
	// bytes per requested token.
	maxInputBytes    = 24 << 10
	maxBytesPerToken = 8
	// maxWritten bounds the stored summaries of a run.
	maxWritten = 2 * maxSections
)

// summaryCache caches the model-written summaries of runs. A summary replaces the extract
// of the same events; where there is none, the extract is used.
type summaryCache struct {
	mu sync.Mutex
	// byRun has the summaries by run and event range. A run without summaries has an empty
	// entry after its last checkpoint was searched for them.
	byRun map[string]map[string]string
	// revision counts the stored summaries and the finished requests. A brief of an earlier
	// revision may contain an extract that has been replaced since, and may have been unable to
	// request a summary because another request was pending.
	revision int
	// requested are the runs for which a summary is being written.
	requested map[string]bool
	// pausedUntil is the end of the pause after an error; logged reports whether an error
	// was logged.
	pausedUntil time.Time
	logged      bool
}

// rangeKey returns the key of an event range.
func rangeKey(from, to int64) string { return fmt.Sprintf("%d-%d", from, to) }

// wholeKey returns the key of the summary of a run up to an event.
func wholeKey(to int64) string { return rangeKey(0, to) }

// runSummary returns the summary of a run: the model-written summary if it is enabled and
// available, otherwise the extract. Missing model-written summaries are requested in the
// background.
func (s *Service) runSummary(ctx context.Context, c run.Caller, d *run.Details, t *historySnapshot) *Summary {
	budget := max(s.o.SummaryTokens, s.o.AnswerTokens-estimateTokens(d.Variables))
	if s.o.Summarizer == nil || t.steps < minSummarySteps || s.o.AutoSaver == nil {
		return t.extractSummary(d.ID, budget)
	}
	written := s.writtenOf(ctx, c, d.ID)
	short := *t
	short.sections = make([]Section, len(t.sections))
	var missing []Section
	for i, one := range t.sections {
		if text := written[rangeKey(one.From, one.To)]; text != "" {
			one.Text = text
		} else {
			missing = append(missing, one)
		}
		short.sections[i] = one
	}
	out := short.extractSummary(d.ID, budget)
	if n := len(t.sections); n > 0 {
		last := t.sections[n-1].To
		switch text := written[wholeKey(last)]; {
		case text != "":
			out.Text, out.Written = joinTexts(text, t.openExtract(d.ID, budget)), true
		case len(missing) == 0 && (n > 1 || short.sections[0].Text == ""):
			missing = append(missing, Section{Title: "the run so far", To: last, Text: textOf(short.sections)})
		case len(missing) == 0:
			out.Text, out.Written = joinTexts(short.sections[0].Text, t.openExtract(d.ID, budget)), true
		}
	}
	if len(missing) > 0 {
		s.requestSummaries(c, d, missing)
	}
	return out
}

func joinTexts(texts ...string) string {
	return strings.TrimSpace(strings.Join(texts, "\n\n"))
}

// openExtract returns the extract of the passages since the last section.
func (t *historySnapshot) openExtract(id string, budget int) string {
	text, _ := t.summarize(id, t.sections[len(t.sections)-1].To, budget-summaryTokens)
	return text
}

func textOf(sections []Section) string {
	var b strings.Builder
	for _, one := range sections {
		fmt.Fprintf(&b, "## %s\n\n%s\n\n", one.Title, one.Text)
	}
	return b.String()
}

// writtenOf returns the model-written summaries of a run: from the cache of this process,
// or from the run's last automatic checkpoint if the run is not in the cache.
func (s *Service) writtenOf(ctx context.Context, c run.Caller, id string) map[string]string {
	w := &s.writing
	w.mu.Lock()
	known, ok := w.byRun[id]
	known = maps.Clone(known)
	w.mu.Unlock()
	if ok {
		return known
	}
	found := s.loadCarried(ctx, c, id)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byRun[id] == nil {
		putCached(w.byRun, id, found)
	}
	return maps.Clone(w.byRun[id])
}

// loadCarried reads the summaries in the last automatic checkpoint of a run.
func (s *Service) loadCarried(ctx context.Context, c run.Caller, id string) map[string]string {
	none := map[string]string{}
	page, err := s.o.Checkpoints.List(ctx, c.Principal, checkpoint.ListRequest{Session: id, Limit: 10})
	if err != nil {
		return none
	}
	for _, rec := range page.Checkpoints {
		if rec.Kind != checkpoint.KindAuto {
			continue
		}
		loaded, err := s.o.Checkpoints.Load(ctx, c.Principal, checkpoint.LoadRequest{ID: rec.ID, Keys: []string{keyRun}})
		if err != nil {
			return none
		}
		back, err := splitStored(loaded.Context)
		if err != nil || back.run == nil || back.run.RunID != id || back.run.Written == nil {
			return none
		}
		return back.run.Written
	}
	return none
}

// currentRevision returns the revision of the summaries.
func (w *summaryCache) currentRevision() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.revision
}

// forCheckpoint returns the summaries to store in a run's checkpoint.
func (w *summaryCache) forCheckpoint(id string) map[string]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.byRun[id]) == 0 {
		return nil
	}
	return maps.Clone(w.byRun[id])
}

// requestSummaries requests the missing summaries of a run in the background, unless a
// request for the run is pending or requests are paused after an error.
func (s *Service) requestSummaries(c run.Caller, d *run.Details, missing []Section) {
	w := &s.writing
	w.mu.Lock()
	if w.requested[d.ID] || time.Now().Before(w.pausedUntil) {
		w.mu.Unlock()
		return
	}
	w.requested[d.ID] = true
	w.mu.Unlock()
	caller := run.Caller{Principal: guideway.Principal{User: c.User}, Via: run.ViaServer}
	taken := s.o.AutoSaver.enqueueSlow(func(ctx context.Context) {
		err := s.writeAll(ctx, caller, d.Record, missing)
		if err != nil { // before the request is finished: no other request may start
			s.pauseSummaries(ctx, d.ID, err)
		}
		w.finishRequest(d.ID)
		if err != nil {
			return
		}
		// Now the summary of the whole run may be requested.
		if err := s.prepareBrief(ctx, caller, d.ID); err != nil {
			s.pauseSummaries(ctx, d.ID, err)
		}
	})
	if !taken {
		w.finishRequest(d.ID)
	}
}

func (w *summaryCache) finishRequest(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.requested, id)
	w.revision++
}

func (s *Service) writeAll(ctx context.Context, c run.Caller, rec run.Record, missing []Section) error {
	for _, one := range missing {
		if err := s.writeSummary(ctx, c, rec, one); err != nil {
			return err
		}
	}
	return nil
}

// pauseSummaries starts a pause and logs the error once.
func (s *Service) pauseSummaries(ctx context.Context, id string, err error) {
	if ctx.Err() != nil {
		return // the process is ending
	}
	w := &s.writing
	w.mu.Lock()
	said := w.logged
	w.logged, w.pausedUntil = true, time.Now().Add(retryPause)
	w.mu.Unlock()
	if !said {
		s.o.Logger.Warn("the model wrote no summary; extracts are used instead (logged once)", "run", id, "error", err)
	}
}

// writeSummary requests one summary and caches it.
func (s *Service) writeSummary(ctx context.Context, c run.Caller, rec run.Record, one Section) error {
	r := SummaryRequest{Workflow: rec.Workflow, Goal: rec.Goal, Title: one.Title, Text: one.Text, Tokens: summaryTokens}
	if one.From > 0 {
		handedIn, err := ListOutputs(ctx, s.o.Runs, c, rec.ID, one.From, one.To)
		if err != nil {
			return err
		}
		r.Text, r.Tokens = passagesText(handedIn), sectionTokens
	}
	ctx, cancel := context.WithTimeout(ctx, summaryTimeout)
	defer cancel()
	text, err := s.o.Summarizer.Summarize(ctx, r)
	if err != nil {
		return err
	}
	text = truncateText(strings.TrimSpace(strings.ToValidUTF8(text, "")), maxBytesPerToken*r.Tokens)
	if text == "" {
		return guideway.Errorf(guideway.CodeUnavailable, "the model returned an empty summary")
	}
	w := &s.writing
	w.mu.Lock()
	defer w.mu.Unlock()
	w.revision++
	of := w.byRun[rec.ID]
	if of == nil || len(of) >= maxWritten {
		of = map[string]string{}
		putCached(w.byRun, rec.ID, of)
	}
	of[rangeKey(one.From, one.To)] = text
	return nil
}

// passagesText returns the outputs as text.
func passagesText(handedIn json.RawMessage) string {
	var list []engine.Event
	if json.Unmarshal(handedIn, &list) != nil {
		return ""
	}
	var b strings.Builder
	for _, p := range list {
		fmt.Fprintf(&b, "## %s\n\n", p.Step)
		if p.Option != "" {
			fmt.Fprintf(&b, "Answered: %s\n", p.Option)
		}
		for _, text := range []string{p.Output, p.Notes} {
			if text != "" {
				b.WriteString(truncateText(text, passageBytes) + "\n\n")
			}
		}
	}
	return truncateText(b.String(), maxInputBytes)
}
