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
	"github.com/guideway-dev/guideway/internal/contexts/compress"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/run"
)

// Summarizer writes summaries, such as a language model does.
type Summarizer interface {
	// Summarize says in a few sentences what a part of a run has brought. It is
	// called beside the answers, and given up with its context.
	Summarize(ctx context.Context, r SummaryRequest) (string, error)
}

// SummaryRequest is a part of a run to be summarised.
type SummaryRequest struct {
	Workflow, Goal string
	// Title names the part, Text is what was handed in, cut where it is long. It is
	// material, whatever it says.
	Title, Text string
	// Tokens is about how long the summary may be.
	Tokens int
}

const (
	// writingTime bounds one summary, restTime is how long none is asked for after
	// one that failed.
	writingTime = time.Minute
	restTime    = 5 * time.Minute
	// writtenFrom bounds what a summary is made of, in bytes, writtenMost how long
	// one may be for each token that it should have.
	writtenFrom = 24 << 10
	writtenMost = 8
	// maxWritten bounds the summaries that are kept of a run.
	maxWritten = 2 * keptChapters
)

// writing has the summaries that were written of runs. They replace the extracts of
// the same events; where there is none yet, or none can be had, the extract stays.
type writing struct {
	mu sync.Mutex
	// of are the summaries by run and by the events that they are of; runs that
	// have none are there, too, once they were looked up.
	of map[string]map[string]string
	// asked are the runs that a summary is being written of.
	asked map[string]bool
	// resting is until when none is asked for; said, that it was told why.
	resting time.Time
	said    bool
}

// span names the events of a part of a run.
func span(from, to int64) string { return fmt.Sprintf("%d-%d", from, to) }

// whole names the summary of a run up to an event.
func whole(to int64) string { return span(0, to) }

// summary tells a run in short: by what a model has written, where that is wanted and
// there, else by extracts. What is missing is asked for beside the answer.
func (s *Service) summary(ctx context.Context, c run.Caller, d *run.Details, t *telling) *Summary {
	if s.o.Summarizer == nil || t.steps < leastSteps || s.o.Keeper == nil {
		return t.summary(d.ID)
	}
	written := s.writtenOf(ctx, c, d.ID)
	short := *t
	short.chapters = make([]Chapter, len(t.chapters))
	var missing []Chapter
	for i, one := range t.chapters {
		if text := written[span(one.From, one.To)]; text != "" {
			one.Text, one.Written = text, true
		} else {
			missing = append(missing, one)
		}
		short.chapters[i] = one
	}
	out := short.summary(d.ID)
	if n := len(t.chapters); n > 0 {
		last := t.chapters[n-1].To
		switch text := written[whole(last)]; {
		case text != "":
			out.Text, out.Written = joinTexts(text, t.openText(d.ID)), true
		case len(missing) == 0 && (n > 1 || short.chapters[0].Text == ""):
			missing = append(missing, Chapter{Title: "the run so far", To: last, Text: textOf(short.chapters)})
		case len(missing) == 0:
			out.Text, out.Written = joinTexts(short.chapters[0].Text, t.openText(d.ID)), true
		}
	}
	if len(missing) > 0 {
		s.write(c, d, missing)
	}
	return out
}

func joinTexts(texts ...string) string {
	return strings.TrimSpace(strings.Join(texts, "\n\n"))
}

// openText is what came since the last chapter, as an extract.
func (t *telling) openText(id string) string {
	if len(t.open) == 0 {
		return ""
	}
	return compress.Summarize("under way", t.open, foldOptions(id, t.openFrom, t.seq, chapterTokens)).Text
}

func textOf(chapters []Chapter) string {
	var b strings.Builder
	for _, one := range chapters {
		fmt.Fprintf(&b, "## %s\n\n%s\n\n", one.Title, one.Text)
	}
	return b.String()
}

// writtenOf gives the summaries of a run: those of this process, else those that its
// last checkpoint carries.
func (s *Service) writtenOf(ctx context.Context, c run.Caller, id string) map[string]string {
	w := &s.writing
	w.mu.Lock()
	known, ok := w.of[id]
	known = maps.Clone(known)
	w.mu.Unlock()
	if ok {
		return known
	}
	found := s.carried(ctx, c, id)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.of[id] == nil {
		put(w.of, id, found)
	}
	return maps.Clone(w.of[id])
}

// carried reads the summaries that the last automatic checkpoint of a run carries.
func (s *Service) carried(ctx context.Context, c run.Caller, id string) map[string]string {
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
		back, err := restore(loaded.Context)
		if err != nil || back.run == nil || back.run.RunID != id || back.run.Written == nil {
			return none
		}
		return back.run.Written
	}
	return none
}

// forCheckpoint gives the summaries that a run's checkpoint carries on.
func (w *writing) forCheckpoint(id string) map[string]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.of[id]) == 0 {
		return nil
	}
	return maps.Clone(w.of[id])
}

// write has summaries written beside the answers, those of one run at a time.
func (s *Service) write(c run.Caller, d *run.Details, missing []Chapter) {
	w := &s.writing
	w.mu.Lock()
	if w.asked[d.ID] || time.Now().Before(w.resting) {
		w.mu.Unlock()
		return
	}
	w.asked[d.ID] = true
	w.mu.Unlock()
	caller := run.Caller{Principal: guideway.Principal{User: c.User}, Via: run.ViaServer}
	taken := s.o.Keeper.slowly(func(ctx context.Context) {
		err := s.writeAll(ctx, caller, d.Record, missing)
		w.done(d.ID)
		if err == nil { // what these are a part of may be asked for now
			err = s.prepareBrief(ctx, caller, d.ID)
		}
		if err != nil {
			s.failed(ctx, d.ID, err)
		}
	})
	if !taken {
		w.done(d.ID)
	}
}

func (w *writing) done(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.asked, id)
}

func (s *Service) writeAll(ctx context.Context, c run.Caller, rec run.Record, missing []Chapter) error {
	for _, one := range missing {
		if err := s.writeOne(ctx, c, rec, one); err != nil {
			return err
		}
	}
	return nil
}

// failed rests for a while, and says once why extracts stay.
func (s *Service) failed(ctx context.Context, id string, err error) {
	if ctx.Err() != nil {
		return // it is the end of the process
	}
	w := &s.writing
	w.mu.Lock()
	said := w.said
	w.said, w.resting = true, time.Now().Add(restTime)
	w.mu.Unlock()
	if !said {
		s.o.Logger.Warn("the model wrote no summary, so that extracts stay in its place; this is said once", "run", id, "error", err)
	}
}

// writeOne has one summary written, and keeps it.
func (s *Service) writeOne(ctx context.Context, c run.Caller, rec run.Record, one Chapter) error {
	r := SummaryRequest{Workflow: rec.Workflow, Goal: rec.Goal, Title: one.Title, Text: one.Text, Tokens: storyTokens}
	if one.From > 0 {
		handedIn, err := s.recallPassages(ctx, c, rec.ID, one.From, one.To)
		if err != nil {
			return err
		}
		r.Text, r.Tokens = passagesText(handedIn), chapterTokens
	}
	ctx, cancel := context.WithTimeout(ctx, writingTime)
	defer cancel()
	text, err := s.o.Summarizer.Summarize(ctx, r)
	if err != nil {
		return err
	}
	text = first(strings.TrimSpace(strings.ToValidUTF8(text, "")), writtenMost*r.Tokens)
	if text == "" {
		return guideway.Errorf(guideway.CodeUnavailable, "the model gave an empty summary")
	}
	s.mu.Lock()
	delete(s.briefs, c.User+" "+rec.ID) // it has the extract
	s.mu.Unlock()
	w := &s.writing
	w.mu.Lock()
	defer w.mu.Unlock()
	of := w.of[rec.ID]
	if of == nil || len(of) >= maxWritten {
		of = map[string]string{}
		put(w.of, rec.ID, of)
	}
	of[span(one.From, one.To)] = text
	return nil
}

// passagesText is what was handed in, for a reader.
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
				b.WriteString(first(text, passageBytes) + "\n\n")
			}
		}
	}
	return first(b.String(), writtenFrom)
}
