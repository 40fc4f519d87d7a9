package contexts

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/guideway-dev/guideway/internal/contexts/compress"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/run"
)

// story is what is known of a run from its events: when its variables were last
// set, and what its phases have brought, folded as they end. It stays in memory
// and the next question reads only the events that were added, so that a process
// reads a long run once.
type story struct {
	mu sync.Mutex
	// seq is the last event that was read, head its MAC.
	seq  int64
	head []byte
	// steps counts the completed steps; set has the count at which each variable
	// was last set, with a hash of it.
	steps int
	set   map[string]lastSet
	// chapters are the phases that have ended, open what came since the last one.
	chapters []Chapter
	open     []compress.Passage
	openFrom int64
}

type lastSet struct {
	hash string
	step int
}

// Chapter is a part of a run that has ended: a phase, a loop, or some steps.
type Chapter struct {
	Title string `json:"title"`
	// Steps counts what was handed in, From and To are the events.
	Steps int   `json:"steps"`
	From  int64 `json:"from"`
	To    int64 `json:"to"`
	// Text is made of sentences of what was handed in, or Written by a model.
	Text    string `json:"-"`
	Written bool   `json:"-"`
}

// stories are the runs that were last read.
type stories struct {
	mu   sync.Mutex
	byID map[string]*story
}

const (
	// chapterTokens and storyTokens bound the summaries of a phase and of a run.
	chapterTokens = 160
	storyTokens   = 400
	// chapterSteps is how many steps make a chapter where no phase or loop ends.
	chapterSteps = 25
	// passageBytes bounds what is read of one output, keptChapters how many
	// chapters are kept apart.
	passageBytes = 4 << 10
	keptChapters = 40
	// leastSteps is how long a run must be to have a summary.
	leastSteps = 4
)

func (s *stories) of(key string) *story {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byID == nil {
		s.byID = map[string]*story{}
	}
	st := s.byID[key]
	if st == nil {
		st = &story{}
		st.reset()
		put(s.byID, key, st)
	}
	return st
}

// story returns the story of a run of the caller's, up to the run's last event.
func (s *Service) story(ctx context.Context, c run.Caller, d *run.Details) (*telling, error) {
	st := s.stories.of(c.User + " " + d.ID)
	st.mu.Lock()
	defer st.mu.Unlock()
	err := st.readEvents(ctx, s.o.Runs, c, d)
	if errors.Is(err, errOtherEvents) {
		st.reset()
		err = st.readEvents(ctx, s.o.Runs, c, d)
	}
	if err != nil {
		return nil, err
	}
	return st.tell(), nil
}

// reset makes a story one of no events. The caller has the lock.
func (st *story) reset() {
	st.seq, st.head, st.steps, st.set = 0, nil, 0, map[string]lastSet{}
	st.chapters, st.open, st.openFrom = nil, nil, 0
}

// errOtherEvents reports a story of events that the run does not have: the database
// was restored from a copy, and the run continued differently.
var errOtherEvents = errors.New("the run has other events")

// readEvents adds the events after the last one in a story, and checks that they
// follow it.
func (st *story) readEvents(ctx context.Context, runs Runs, c run.Caller, d *run.Details) error {
	if st.seq == d.Seq && !bytes.Equal(st.head, d.Head) {
		return errOtherEvents
	}
	for st.seq < d.Seq {
		after := max(st.seq-1, 0) // includes the last event that was read
		events, err := runs.Events(ctx, c, run.Ref{RunID: d.ID}, after, int(min(d.Seq-after, eventPage)))
		if err != nil {
			return err
		}
		if st.seq > 0 {
			if len(events) == 0 || !bytes.Equal(events[0].MAC, st.head) {
				return errOtherEvents
			}
			events = events[1:]
		}
		if len(events) == 0 {
			return nil
		}
		for _, e := range events {
			st.add(d.ID, e)
		}
	}
	return nil
}

// telling is a story at one moment.
type telling struct {
	steps    int
	set      map[string]lastSet
	chapters []Chapter
	open     []compress.Passage
	openFrom int64
	seq      int64
}

func (st *story) tell() *telling {
	t := &telling{
		steps: st.steps, set: make(map[string]lastSet, len(st.set)), openFrom: st.openFrom, seq: st.seq,
		chapters: slices.Clone(st.chapters), open: slices.Clone(st.open),
	}
	for key, last := range st.set {
		t.set[key] = last
	}
	return t
}

// ages are for how many steps variables have been what they are.
func (t *telling) ages(values compress.Context) map[string]int {
	ages := map[string]int{}
	for key, value := range values {
		if last, ok := t.set[key]; ok && last.hash == valueHash(value) {
			ages[key] = t.steps - last.step
		}
	}
	return ages
}

// add reads an event.
func (st *story) add(id string, e run.Event) {
	st.seq, st.head = e.Seq, e.MAC
	if !isFact(e) {
		return
	}
	var fact engine.Event
	if json.Unmarshal(e.Data, &fact) != nil {
		return
	}
	if fact.Kind == engine.EventStepCompleted {
		st.steps++
	}
	var vars struct {
		Vars map[string]json.RawMessage `json:"vars"`
	}
	if len(fact.Vars) > 0 && json.Unmarshal(e.Data, &vars) == nil {
		for key, value := range vars.Vars {
			if hash := valueHash(value); st.set[key].hash != hash {
				st.set[key] = lastSet{hash: hash, step: st.steps}
			}
		}
	}
	st.pass(e.Seq, fact)
	switch fact.Kind {
	case engine.EventPhaseExited:
		st.close(id, fact.Step, e.Seq)
	case engine.EventLoopEntered: // of a step workflow: what was before is one chapter
		st.close(id, "", e.Seq)
	case engine.EventLoopEnded:
		st.close(id, fact.Step, e.Seq)
	case engine.EventRunCompleted:
		st.close(id, "", e.Seq)
	}
	if len(st.open) >= chapterSteps {
		st.close(id, "", e.Seq)
	}
}

// pass notes what was handed in.
func (st *story) pass(seq int64, fact engine.Event) {
	text := first(fact.Output, passageBytes)
	if fact.Notes != "" {
		text = strings.TrimSpace(text + "\n" + first(fact.Notes, passageBytes))
	}
	if fact.Option != "" {
		text = strings.TrimSpace("Answered: " + fact.Option + ".\n" + text)
	}
	if text == "" {
		return
	}
	heading := fact.Step
	if fact.Round > 0 {
		heading = fmt.Sprintf("%s, round %d", fact.Step, fact.Round)
	}
	if len(st.open) == 0 {
		st.openFrom = seq
	}
	st.open = append(st.open, compress.Passage{Heading: heading, Text: text})
}

// close folds what is open into a chapter. Without a title it is named by its
// steps.
func (st *story) close(id, title string, to int64) {
	if len(st.open) == 0 {
		return
	}
	if title == "" {
		title = st.open[0].Heading
		if last := st.open[len(st.open)-1].Heading; last != title {
			title += " to " + last
		}
	}
	f := compress.Summarize("", st.open, foldOptions(id, st.openFrom, to, chapterTokens))
	st.chapters = append(st.chapters, Chapter{Title: title, Steps: len(st.open), From: st.openFrom, To: to, Text: f.Text})
	st.open, st.openFrom = nil, 0
	if len(st.chapters) > keptChapters {
		st.merge(id)
	}
}

// merge folds the older half of the chapters into one: a run may have any number
// of them.
func (st *story) merge(id string) {
	half := st.chapters[:len(st.chapters)/2]
	first, last := half[0], half[len(half)-1]
	one := Chapter{Title: first.Title + " to " + last.Title, From: first.From, To: last.To}
	for _, c := range half {
		one.Steps += c.Steps
	}
	one.Title = firstTitle(first.Title) + " to " + last.Title
	one.Text = compress.Summarize("", passagesOf(half), foldOptions(id, one.From, one.To, 2*chapterTokens)).Text
	st.chapters = append([]Chapter{one}, st.chapters[len(half):]...)
}

// firstTitle is where a chapter that was merged before begins.
func firstTitle(title string) string {
	begin, _, _ := strings.Cut(title, " to ")
	return begin
}

func passagesOf(chapters []Chapter) []compress.Passage {
	list := make([]compress.Passage, len(chapters))
	for i, c := range chapters {
		list[i] = compress.Passage{Heading: c.Title, Text: c.Text}
	}
	return list
}

// foldOptions have the summary point to the events that it is of.
func foldOptions(id string, from, to int64, budget int) compress.Options {
	return compress.Options{Budget: budget, Ref: func(string, []byte) string { return runPassageRef(id, from, to) }}
}

// Summary is a run of some length in short: sentences of what was handed in.
type Summary struct {
	Text string `json:"text"`
	// Steps counts the completed steps, Chapters are what has ended.
	Steps    int       `json:"steps"`
	Chapters []Chapter `json:"chapters,omitempty"`
	// Ref reads all of it back.
	Ref string `json:"ref"`
	// Written says that a model wrote the text, so that it may say what was not
	// handed in so.
	Written bool `json:"written,omitempty"`
}

// summary folds the chapters, and what is open, into that of the run; nil for a
// short one.
func (t *telling) summary(id string) *Summary {
	if t.steps < leastSteps {
		return nil
	}
	passages := passagesOf(t.chapters)
	if len(t.open) > 0 {
		f := compress.Summarize("", t.open, foldOptions(id, t.openFrom, t.seq, chapterTokens))
		passages = append(passages, compress.Passage{Heading: "under way", Text: f.Text})
	}
	from := t.openFrom
	if len(t.chapters) > 0 {
		from = t.chapters[0].From
	}
	f := compress.Summarize("", passages, foldOptions(id, from, t.seq, storyTokens))
	const mostChapters = 8
	return &Summary{
		Text: strings.TrimSpace(f.Text), Steps: t.steps, Ref: runPassageRef(id, from, t.seq),
		Chapters: t.chapters[max(len(t.chapters)-mostChapters, 0):],
	}
}

// first is the beginning of a text, at most so many bytes of whole characters.
func first(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "")
}
