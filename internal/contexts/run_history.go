package contexts

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/guideway-dev/guideway/internal/contexts/compress"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/run"
)

// runHistory is the cached history of a run: the step at which each variable last changed,
// and the sections of the run, each summarized when it ends. The history stays in memory,
// and a later call reads only the new events, so that a process reads a long run once.
type runHistory struct {
	mu sync.Mutex
	// head is the MAC of the last event that was read.
	head []byte
	historySnapshot
}

type lastSet struct {
	hash string
	step int
}

// Section is an ended part of a run: a phase, a loop, or some steps.
type Section struct {
	Title string `json:"title"`
	// Steps counts the submitted outputs. From and To are the sequence numbers of the
	// section's first and last event.
	Steps int   `json:"steps"`
	From  int64 `json:"from"`
	To    int64 `json:"to"`
	// Text consists of sentences of the outputs, or is written by a model if Written is
	// set.
	Text    string `json:"-"`
	Written bool   `json:"-"`
}

// historyCache caches the histories of runs by user and run.
type historyCache struct {
	mu   sync.Mutex
	byID map[string]*runHistory
}

const (
	// sectionTokens bounds the summary of a section, summaryTokens the summary of a run.
	sectionTokens = 160
	summaryTokens = 400
	// sectionSteps is the number of steps of a section if no phase or loop ends.
	sectionSteps = 25
	// passageBytes bounds the text that is read of one output, maxSections the sections of
	// a run before older ones are merged.
	passageBytes = 4 << 10
	maxSections  = 40
	// minSummarySteps is the number of completed steps from which a run has a summary.
	minSummarySteps = 4
)

func (s *historyCache) getHistory(key string) *runHistory {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byID == nil {
		s.byID = map[string]*runHistory{}
	}
	st := s.byID[key]
	if st == nil {
		st = &runHistory{}
		st.clearHistory()
		putCached(s.byID, key, st)
	}
	return st
}

// loadHistory returns the history of a run of the caller, up to the run's last event.
func (s *Service) loadHistory(ctx context.Context, c run.Caller, d *run.Details) (*historySnapshot, error) {
	st := s.stories.getHistory(c.User + " " + d.ID)
	st.mu.Lock()
	defer st.mu.Unlock()
	err := st.readEvents(ctx, s.o.Runs, c, d)
	if errors.Is(err, errOtherEvents) {
		st.clearHistory()
		err = st.readEvents(ctx, s.o.Runs, c, d)
	}
	if err != nil {
		return nil, err
	}
	return st.takeSnapshot(), nil
}

// clearHistory clears a history. The caller holds the lock.
func (st *runHistory) clearHistory() {
	st.head, st.historySnapshot = nil, historySnapshot{set: map[string]lastSet{}}
}

// errOtherEvents reports that the events of the run changed: the database was restored from
// a copy, and the run continued differently.
var errOtherEvents = errors.New("the events of the run have changed")

// readEvents adds the events of a run after the last event that was read, and checks that
// this event is still part of the run.
func (st *runHistory) readEvents(ctx context.Context, runs Runs, c run.Caller, d *run.Details) error {
	if st.seq == d.Seq && !bytes.Equal(st.head, d.Head) {
		return errOtherEvents
	}
	for st.seq < d.Seq {
		after := max(st.seq-1, 0) // after is one less, so that the last event is read again
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
			st.addEvent(d.ID, e)
		}
	}
	return nil
}

// historySnapshot is the part of a runHistory that its readers use.
type historySnapshot struct {
	// seq is the sequence number of the last event that was read.
	seq int64
	// steps counts the completed steps; set has the count at which each variable last
	// changed, and a hash of its value.
	steps int
	set   map[string]lastSet
	// sections are the ended parts of the run, open the passages after the last of them,
	// and openFrom the event of the first open passage.
	sections []Section
	open     []compress.Passage
	openFrom int64
}

// takeSnapshot returns a copy that later events do not change.
func (t historySnapshot) takeSnapshot() *historySnapshot {
	t.set, t.sections, t.open = maps.Clone(t.set), slices.Clone(t.sections), slices.Clone(t.open)
	return &t
}

// variableAges maps a variable to the number of steps since its last change.
func (t *historySnapshot) variableAges(values compress.Context) map[string]int {
	ages := map[string]int{}
	for key, value := range values {
		if last, ok := t.set[key]; ok && last.hash == valueHash(value) {
			ages[key] = t.steps - last.step
		}
	}
	return ages
}

// addEvent adds an event to the history.
func (st *runHistory) addEvent(id string, e run.Event) {
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
	st.addPassage(e, fact)
	switch fact.Kind {
	case engine.EventPhaseExited, engine.EventLoopEnded:
		st.closeSection(id, fact.Step, e.Seq)
	case engine.EventLoopEntered, engine.EventRunCompleted: // in a step workflow the steps before a loop are one section
		st.closeSection(id, "", e.Seq)
	}
	if len(st.open) >= sectionSteps {
		st.closeSection(id, "", e.Seq)
	}
}

// addPassage adds the output of an event to the open passages. The heading of a step with
// checks has its label.
func (st *runHistory) addPassage(e run.Event, fact engine.Event) {
	text := truncateText(fact.Output, passageBytes)
	if fact.Notes != "" {
		text = strings.TrimSpace(text + "\n" + truncateText(fact.Notes, passageBytes))
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
	if len(fact.Evidence) > 0 {
		heading += " (" + e.Label + ")"
	}
	if len(st.open) == 0 {
		st.openFrom = e.Seq
	}
	st.open = append(st.open, compress.Passage{Heading: heading, Text: text})
}

// closeSection summarizes the open passages as a section. Without a title the section is
// named after its first and last step.
func (st *runHistory) closeSection(id, title string, to int64) {
	if len(st.open) == 0 {
		return
	}
	if title == "" {
		title = st.open[0].Heading
		if last := st.open[len(st.open)-1].Heading; last != title {
			title += " to " + last
		}
	}
	f := compress.Summarize("", st.open, summaryOptions(id, st.openFrom, to, sectionTokens))
	st.sections = append(st.sections, Section{Title: title, Steps: len(st.open), From: st.openFrom, To: to, Text: f.Text})
	st.open, st.openFrom = nil, 0
	if len(st.sections) > maxSections {
		st.mergeSections(id)
	}
}

// mergeSections replaces the older half of the sections by one section, to bound their
// number.
func (st *runHistory) mergeSections(id string) {
	half := st.sections[:len(st.sections)/2]
	first, last := half[0], half[len(half)-1]
	one := Section{Title: first.Title + " to " + last.Title, From: first.From, To: last.To}
	for _, c := range half {
		one.Steps += c.Steps
	}
	one.Title = firstTitle(first.Title) + " to " + last.Title
	one.Text = compress.Summarize("", passagesOf(half), summaryOptions(id, one.From, one.To, 2*sectionTokens)).Text
	st.sections = append([]Section{one}, st.sections[len(half):]...)
}

// firstTitle returns the part of a title before " to ": in the title of a merged section,
// the title of the first of its sections.
func firstTitle(title string) string {
	begin, _, _ := strings.Cut(title, " to ")
	return begin
}

func passagesOf(sections []Section) []compress.Passage {
	list := make([]compress.Passage, len(sections))
	for i, c := range sections {
		list[i] = compress.Passage{Heading: c.Title, Text: c.Text}
	}
	return list
}

// summaryOptions returns the options of a summary of a range of events: its budget in
// tokens, and the reference of these events.
func summaryOptions(id string, from, to int64, budget int) compress.Options {
	return compress.Options{Budget: budget, Ref: func(string, []byte) string { return runPassageRef(id, from, to) }}
}

// Summary is the summary of a long run: sentences of the run's outputs, or the text of a
// model.
type Summary struct {
	Text string `json:"text"`
	// Steps counts the completed steps, Sections are the last parts of the run that have
	// ended.
	Steps    int       `json:"steps"`
	Sections []Section `json:"sections,omitempty"`
	// Ref is the reference that loads all outputs of the run.
	Ref string `json:"ref"`
	// Written reports that a model wrote the text, so that it may contain statements that
	// are not in the outputs.
	Written bool `json:"written,omitempty"`
}

// extractSummary returns the extract of the sections and the open passages, or nil for a
// run with fewer than minSummarySteps steps.
func (t *historySnapshot) extractSummary(id string) *Summary {
	if t.steps < minSummarySteps {
		return nil
	}
	passages := passagesOf(t.sections)
	if len(t.open) > 0 {
		f := compress.Summarize("", t.open, summaryOptions(id, t.openFrom, t.seq, sectionTokens))
		passages = append(passages, compress.Passage{Heading: "under way", Text: f.Text})
	}
	from := t.openFrom
	if len(t.sections) > 0 {
		from = t.sections[0].From
	}
	f := compress.Summarize("", passages, summaryOptions(id, from, t.seq, summaryTokens))
	const mostChapters = 8
	return &Summary{
		Text: strings.TrimSpace(f.Text), Steps: t.steps, Ref: runPassageRef(id, from, t.seq),
		Sections: t.sections[max(len(t.sections)-mostChapters, 0):],
	}
}

// truncateText returns the beginning of a text: whole characters, with most bytes at most.
func truncateText(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "")
}
