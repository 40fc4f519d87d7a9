package run

import (
	"context"
	"slices"

	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
)

// The bounds of what a record keeps for lists.
const (
	maxTitle = 200
	maxWords = 4000
)

// change is what a command adds to a run.
type change struct {
	// facts are the engine's events; others come after them.
	facts  []engine.Event
	others []Event
	// news are the facts that an observer is told of, besides facts.
	news []engine.Event
	// moves says that the run moves to another position, and so gets a new
	// handle.
	moves bool
	// key is the command's.
	key string
	// words are what the run is to be found by.
	words string
}

// commit appends a change to a run.
func (s *Service) commit(ctx context.Context, by By, r Record, l *loaded, ch change) (Record, *loaded, error) {
	next := *l
	events := make([]Event, 0, len(ch.facts)+len(ch.others))
	for _, fact := range ch.facts {
		e, err := eventOf(fact)
		if err != nil {
			return r, nil, err
		}
		events = append(events, e)
		next.state = engine.Apply(next.state, fact)
	}
	events = append(events, ch.others...)
	next.note(events)
	if ch.moves {
		next.refused = 0
	}
	at := s.clock()
	if at.Before(r.Updated) { // the clock was set back, or is another machine's
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
	c := Commit{Expected: r.Seq, Events: events, Key: ch.key, Words: cut(ch.words, maxWords)}
	next.head = s.key.chain(r.ID, r.Seq, l.head, events)
	next.seq = r.Seq + int64(len(events))
	r.Seq, r.Head = next.seq, next.head
	describe(&r, &next, next.program.PositionOf(next.state))
	before := r.Handle
	if ch.moves {
		c.Handle = newHandle()
		r.Handle = c.Handle
	}
	c.Record = r
	c.Snapshot = s.takeSnapshot(r, &next)
	var err error
	if c.Expected == 0 {
		// A run's first commit brings its definition.
		err = s.journal.Create(ctx, Definition{Hash: r.Hash, Text: next.program.text}, c)
	} else {
		err = s.journal.Append(ctx, c)
	}
	if err != nil {
		return r, nil, err
	}
	s.cache.keep(r.ID, &next)
	if c.Handle != "" {
		s.cache.gave(Handle{Token: c.Handle, Run: r.ID, Seq: r.Seq}, before)
	}
	s.record(ctx, r)
	if s.observer != nil {
		s.observer.Committed(ctx, Committed{
			Record: r, By: by, Facts: append(ch.news, ch.facts...), State: next.state, Flow: next.program.Flow, Marks: next.marks,
		})
	}
	return r, &next, nil
}

// takeSnapshot gives a snapshot where it is time for one: the larger the state,
// the rarer, so that a command's cost does not grow with it and no more than a
// few dozen events are ever folded.
func (s *Service) takeSnapshot(r Record, l *loaded) *Snapshot {
	const perEvent, rarest = 4 << 10, 32
	if l.seq-l.snapshot < int64(min(1+l.size/perEvent, rarest)) {
		return nil
	}
	state, err := jsontext.Marshal(stored{State: l.state, Marks: l.marks})
	if err != nil {
		return nil
	}
	snap := Snapshot{Seq: l.seq, Head: l.head, State: state}
	snap.MAC = s.key.snapshot(r, snap)
	l.snapshot, l.size = l.seq, len(state)
	return &snap
}

// wordsOf are what a command's facts are found by: notes, and the beginning of
// outputs.
func wordsOf(facts []engine.Event) string {
	const most = 1000
	var words []byte
	for _, e := range facts {
		for _, text := range []string{e.Notes, cut(e.Output, most)} {
			if text != "" {
				words = append(append(words, text...), '\n')
			}
		}
	}
	return string(words)
}

// cut shortens a text to at most so many bytes, at the end of a character.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8Start(text[most]) {
		most--
	}
	return text[:most]
}

func utf8Start(b byte) bool { return b&0xC0 != 0x80 }

// isEnded says whether a run takes no more commands.
func isEnded(status engine.Status) bool {
	return slices.Contains([]engine.Status{engine.StatusCompleted, engine.StatusAborted}, status)
}
