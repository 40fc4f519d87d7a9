package run

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"github.com/guideway-dev/guideway/internal/platform/textpart"
	"github.com/guideway-dev/guideway/internal/platform/words"
)

// The maximum sizes of the title in a record and of the searchable text of a commit, in
// bytes.
const (
	maxTitle = 200
	maxWords = 4000
)

// runChange is the change that a command makes to a run.
type runChange struct {
	// facts are the engine's events. checks are appended before them, otherEvents after them.
	facts       []engine.Event
	checks      []Event
	otherEvents []Event
	// extraFacts are facts that only the observer receives.
	extraFacts []engine.Event
	// moves reports whether the run gets a new position and a new handle.
	moves bool
	// key is the key of the command.
	key string
	// words are added to the searchable text of the run.
	words string
}

// commitChange appends a change to a run.
func (s *Service) commitChange(ctx context.Context, by By, r Record, l *loadedRun, ch runChange) (Record, *loadedRun, error) {
	next := *l
	events := slices.Grow(slices.Clone(ch.checks), len(ch.facts)+len(ch.otherEvents))
	for _, fact := range ch.facts {
		e, err := newFactEvent(fact)
		if err != nil {
			return r, nil, err
		}
		events = append(events, e)
		next.state = engine.Apply(next.state, fact)
	}
	events = append(events, ch.otherEvents...)
	at := s.currentTime()
	if at.Before(r.Updated) { // the clock was set back, or the last event is from a different machine
		at = r.Updated
	}
	for i := range events {
		if events[i].At.IsZero() {
			events[i].At, events[i].By = at, by
		}
		if events[i].At.After(r.Updated) {
			r.Updated = events[i].At
		}
	}
	var err error
	if next.head, err = s.key.ChainEvents(ctx, s.journal, r.ID, r.Seq, l.head, events); err != nil { // also numbers the events
		return r, nil, err
	}
	next.applyEvents(events)
	c := Commit{Expected: r.Seq, Events: events, Key: ch.key}
	var terms words.Terms
	terms.Add(Truncate(ch.words, maxWords))
	if r.Seq == 0 {
		terms.Add(r.SearchText())
	}
	c.Terms = terms.List()
	next.seq = r.Seq + int64(len(events))
	r.Seq, r.Head = next.seq, next.head
	updateRecord(&r, &next, next.program.PositionOf(next.state))
	before := r.Handle
	if ch.moves {
		c.Handle = newHandle()
		r.Handle = c.Handle
	}
	c.Record = r
	c.Snapshot = s.newSnapshot(r, &next)
	if c.Expected == 0 {
		// The first commit of a run stores its definition.
		err = s.journal.Create(ctx, Definition{Hash: r.Hash, Text: next.program.text}, c)
	} else {
		err = s.journal.Append(ctx, c)
	}
	if err != nil {
		return r, nil, err
	}
	s.cache.putRun(r.ID, &next)
	if c.Handle != "" {
		s.cache.addHandle(Handle{Token: c.Handle, Run: r.ID, Seq: r.Seq}, before)
	}
	s.recordHead(ctx, r)
	if s.observer != nil {
		s.observer.Committed(ctx, Committed{
			Record: r, By: by, Facts: append(ch.extraFacts, ch.facts...), State: next.state, Flow: next.program.Flow, Marks: next.marks,
		})
	}
	return r, &next, nil
}

// newSnapshot returns a snapshot if one is due. A larger state has fewer snapshots, so that
// the cost per command does not grow with the state. A few dozen events at most are folded
// after a snapshot.
func (s *Service) newSnapshot(r Record, l *loadedRun) *Snapshot {
	const perEvent, rarest = 4 << 10, 32
	if l.seq-l.snapshotSeq < int64(min(1+l.snapshotSize/perEvent, rarest)) {
		return nil
	}
	state, err := jsontext.Marshal(snapshotState{State: l.state, Marks: l.marks, Submission: l.submission, Attempts: l.attempts, Hooked: l.hooked})
	if err != nil {
		return nil
	}
	snap := Snapshot{Seq: l.seq, Head: l.head, State: state}
	snap.MAC = s.key.snapshotMAC(r, snap)
	l.snapshotSeq, l.snapshotSize = l.seq, len(state)
	return &snap
}

// SearchText returns the searchable text of a record.
func (r Record) SearchText() string {
	return strings.Join([]string{r.Goal, r.Workflow, r.Name, filepath.Base(r.Project.Path), r.Project.Branch}, "\n")
}

// searchText returns the searchable text of facts: notes and the beginning of outputs.
func searchText(facts []engine.Event) string {
	const most = 1000
	var words []byte
	for _, e := range facts {
		for _, text := range []string{e.Notes, Truncate(e.Output, most)} {
			if text != "" {
				words = append(append(words, text...), '\n')
			}
		}
	}
	return string(words)
}

// isEnded reports whether a run accepts no more commands.
func isEnded(status engine.Status) bool {
	return slices.Contains([]engine.Status{engine.StatusCompleted, engine.StatusAborted}, status)
}

// Truncate returns the start of a text, at most a number of bytes, without half a character.
func Truncate(text string, most int) string { return textpart.Clip(text, most) }
