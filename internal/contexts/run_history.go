package contexts

import (
	"bytes"
	"cmp"
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
	"github.com/guideway-dev/guideway/internal/platform/textpart"
	"github.com/guideway-dev/guideway/internal/run"
)

// runHistory is the cached history of a run: the step at which each variable last changed,
// the sections of the run, and its passages. The history stays in memory,
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
	// Ref loads the outputs of the section.
	Ref string `json:"ref"`
	// Text is written by a model, or empty. Named reports whether the part is a phase or a
	// loop.
	Text  string `json:"-"`
	Named bool   `json:"-"`
}

// historyCache caches the histories of runs by user and run.
type historyCache struct {
	mu   sync.Mutex
	byID map[string]*runHistory
}

const (
	// sectionTokens and summaryTokens bound the summaries that a model writes of a section
	// and of a run.
	sectionTokens = 160
	summaryTokens = 400
	// maxHistoryTokens bounds the statements of a run in memory. Beyond it the least
	// important are removed until thinnedTokens are left.
	maxHistoryTokens = 64_000
	thinnedTokens    = 16_000
	// sectionSteps is the number of steps of a section if no phase or loop ends.
	sectionSteps = 25
	// passageBytes bounds the text that is read of one output, refusedBytes that of a refused
	// one, maxSections the sections of a run before older ones are merged.
	passageBytes = 4 << 10
	refusedBytes = 200
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
	// sections are the ended parts of the run; open counts the passages after the last of
	// them, openFrom is the event of the first and openTitle its heading.
	sections  []Section
	open      int
	openFrom  int64
	openTitle string
	// passages are the outputs, answers and refusals of the run; tokens is their size.
	passages []compress.Passage
	tokens   int
}

// takeSnapshot returns a copy that later events do not change.
func (t historySnapshot) takeSnapshot() *historySnapshot {
	t.set, t.sections, t.passages = maps.Clone(t.set), slices.Clone(t.sections), slices.Clone(t.passages)
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
	if e.Kind == run.KindRefused {
		st.addRefusal(e)
		return
	}
	if !isFact(e) {
		return
	}
	var fact struct {
		engine.Event
		Vars map[string]json.RawMessage `json:"vars"`
	}
	if json.Unmarshal(e.Data, &fact) != nil {
		return
	}
	if fact.Kind == engine.EventStepCompleted {
		st.steps++
	}
	for key, value := range fact.Vars {
		if hash := valueHash(value); st.set[key].hash != hash {
			st.set[key] = lastSet{hash: hash, step: st.steps}
		}
	}
	st.addOutput(e, fact.Event)
	switch fact.Kind {
	case engine.EventPhaseExited, engine.EventLoopEnded:
		st.closeSection(fact.Step, e.Seq)
	case engine.EventLoopEntered, engine.EventRunCompleted: // in a step workflow the steps before a loop are one section
		st.closeSection("", e.Seq)
	}
	if st.open >= sectionSteps {
		st.closeSection("", e.Seq)
	}
}

// addRefusal adds a refused attempt to the passages.
func (st *runHistory) addRefusal(e run.Event) {
	var r run.Refused
	if json.Unmarshal(e.Data, &r) != nil {
		return
	}
	text := "Refused: " + cmp.Or(strings.Join(r.Issues, "; "), r.Message)
	if output := strings.Join(strings.Fields(truncateText(r.Output, refusedBytes)), " "); output != "" {
		text += " The refused output: " + output
	}
	st.addPassage(compress.Passage{Heading: r.Step, Seq: e.Seq, Statements: []compress.Statement{compress.NewFact(text)}})
}

// addOutput adds the output of an event to the passages. The heading of a step with checks
// has its label.
func (st *runHistory) addOutput(e run.Event, fact engine.Event) {
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
	if st.open == 0 {
		st.openFrom, st.openTitle = e.Seq, heading
	}
	st.open++
	st.addPassage(compress.ReadPassage(heading, e.Seq, text))
}

// addPassage adds a passage. If the passages are too large, it removes statements.
func (st *runHistory) addPassage(p compress.Passage) {
	st.passages = append(st.passages, p)
	st.tokens += compress.SumTokens([]compress.Passage{p})
	if st.tokens > maxHistoryTokens {
		st.passages = compress.ThinPassages(st.passages, thinnedTokens)
		st.tokens = compress.SumTokens(st.passages)
	}
}

// closeSection ends a section. Without a title the section is named after its first and last
// step.
func (st *runHistory) closeSection(title string, to int64) {
	if st.open == 0 {
		return
	}
	named := title != ""
	if !named {
		title = st.openTitle
		if last := st.passages[len(st.passages)-1].Heading; last != title {
			title += " to " + last
		}
	}
	st.sections = append(st.sections, Section{Title: title, Steps: st.open, From: st.openFrom, To: to, Named: named})
	st.open, st.openFrom, st.openTitle = 0, 0, ""
	if len(st.sections) > maxSections {
		st.mergeSections()
	}
}

// mergeSections replaces the older half of the sections by one section, to bound their
// number.
func (st *runHistory) mergeSections() {
	half := st.sections[:len(st.sections)/2]
	first, last := half[0], half[len(half)-1]
	one := Section{Title: firstTitle(first.Title) + " to " + last.Title, From: first.From, To: last.To}
	for _, c := range half {
		one.Steps += c.Steps
	}
	st.sections = append([]Section{one}, st.sections[len(half):]...)
}

// firstTitle returns the part of a title before " to ": in the title of a merged section,
// the title of the first of its sections.
func firstTitle(title string) string {
	begin, _, _ := strings.Cut(title, " to ")
	return begin
}

// groupPassages returns the passages of the events after a given one, in groups: one for each
// section, and one for those after the last section. A section that a model has summarized
// has its text instead of its passages. The groups have titles if a phase or a loop has ended.
func (t *historySnapshot) groupPassages(after int64) []compress.PassageGroup {
	var groups []compress.PassageGroup
	rest := t.passages
	take := func(title string, to int64) compress.PassageGroup {
		n := 0
		for n < len(rest) && rest[n].Seq <= to {
			n++
		}
		taken := rest[:n]
		rest = rest[n:]
		return compress.PassageGroup{Title: title, Passages: taken}
	}
	take("", after)
	titled := slices.ContainsFunc(t.sections, func(s Section) bool { return s.Named || s.Text != "" })
	title := func(text string) string {
		if titled {
			return text
		}
		return ""
	}
	for _, one := range t.sections {
		if one.To <= after {
			continue
		}
		group := take(title(one.Title), one.To)
		if one.Text != "" {
			group.Passages = []compress.Passage{compress.ReadPassage(one.Title, one.From, one.Text)}
		}
		groups = append(groups, group)
	}
	return append(groups, take(title("under way"), t.seq))
}

// summarize returns the extract of the events after a given one, and its reference.
func (t *historySnapshot) summarize(id string, after int64, budget int) (text, ref string) {
	groups := t.groupPassages(after)
	from := t.seq
	for _, g := range slices.Backward(groups) {
		if len(g.Passages) > 0 {
			from = g.Passages[0].Seq
		}
	}
	ref = runPassageRef(id, from, t.seq)
	return strings.TrimSpace(compress.Summarize(groups, compress.Options{Budget: budget, Ref: func(event string, _ []byte) string {
		if event != "" {
			return runPassageRef(id, parseNumber(event), parseNumber(event))
		}
		return ref
	}}).Text), ref
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

// extractSummary returns the extract of a run, or nil for a run with fewer than
// minSummarySteps steps.
func (t *historySnapshot) extractSummary(id string, budget int) *Summary {
	if t.steps < minSummarySteps {
		return nil
	}
	const mostSections = 8
	out := &Summary{Steps: t.steps, Sections: t.sections[max(len(t.sections)-mostSections, 0):]}
	for i, one := range out.Sections {
		out.Sections[i].Ref = runPassageRef(id, one.From, one.To)
	}
	out.Text, out.Ref = t.summarize(id, 0, budget)
	return out
}

// truncateText returns the beginning of a text: whole characters, with most bytes at most.
func truncateText(text string, most int) string { return textpart.Clip(text, most) }
