package memory

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/window"
)

// A story is kept with its run, now and then and beside the answers, so that the
// first question about a long run in a new process does not fold all of it again.
// It names the event that it ends with by number and MAC. One of other events, of
// another form or from another hand counts for nothing, and the run is read from its
// beginning.

const (
	// keepEvery is how many events a story goes on before it is kept again.
	keepEvery = 200
	// storyForm is that of what is kept. Another way of folding is another form.
	storyForm = 1
)

// keptStory is a story as it is kept.
type keptStory struct {
	Form     int                `json:"form"`
	Steps    int                `json:"steps"`
	Set      map[string]keptSet `json:"set,omitempty"`
	Chapters []keptChapter      `json:"chapters,omitempty"`
	Open     []keptPassage      `json:"open,omitempty"`
	OpenFrom int64              `json:"openFrom,omitempty"`
}

type keptSet struct {
	Hash string `json:"hash"`
	Step int    `json:"step"`
}

type keptChapter struct {
	Chapter
	Text string `json:"text"`
}

type keptPassage struct {
	Heading string `json:"heading,omitempty"`
	Text    string `json:"text"`
}

// gist writes a story down.
func (st *story) gist() (run.Gist, error) {
	k := keptStory{Form: storyForm, Steps: st.steps, OpenFrom: st.openFrom, Set: make(map[string]keptSet, len(st.set))}
	for key, last := range st.set {
		k.Set[key] = keptSet{Hash: last.hash, Step: last.step}
	}
	for _, one := range st.chapters {
		k.Chapters = append(k.Chapters, keptChapter{Chapter: one, Text: one.Text})
	}
	for _, p := range st.open {
		k.Open = append(k.Open, keptPassage(p))
	}
	data, err := encode(k)
	return run.Gist{Seq: st.seq, Head: st.head, Data: data}, err
}

// storyOf reads a story that was kept; nil where that is of another form.
func storyOf(g *run.Gist) *story {
	var k keptStory
	if json.Unmarshal(g.Data, &k) != nil || k.Form != storyForm {
		return nil
	}
	st := newStory()
	st.seq, st.head, st.kept = g.Seq, g.Head, g.Seq
	st.steps, st.openFrom = k.Steps, k.OpenFrom
	for key, last := range k.Set {
		st.set[key] = lastSet{hash: last.Hash, step: last.Step}
	}
	for _, one := range k.Chapters {
		one.Chapter.Text = one.Text
		st.chapters = append(st.chapters, one.Chapter)
	}
	for _, p := range k.Open {
		st.open = append(st.open, window.Passage(p))
	}
	return st
}

// take puts another story in the place of this one. The caller has the lock.
func (st *story) take(other *story) {
	st.seq, st.head, st.kept, st.steps = other.seq, other.head, other.kept, other.steps
	st.set, st.chapters, st.open, st.openFrom = other.set, other.chapters, other.open, other.openFrom
}

// story gives the story of a run of the caller's, up to the event that it stands at,
// and has it kept where much of it is not.
func (s *Service) story(ctx context.Context, c run.Caller, d *run.Details) (*telling, error) {
	st := s.stories.of(c.User + " " + d.ID)
	st.mu.Lock()
	defer st.mu.Unlock()
	if err := st.catchUp(ctx, s.o.Runs, c, d); err != nil {
		return nil, err
	}
	if s.wantsKeeping(st) {
		caller := run.Caller{Principal: guideway.Principal{User: c.User}, Via: run.ViaServer}
		st.keeping = s.o.Keeper.slowly(func(ctx context.Context) { s.keepStory(ctx, caller, d.ID, st) })
	}
	return st.tell(), nil
}

func (s *Service) wantsKeeping(st *story) bool {
	return st.seq-st.kept >= keepEvery && !st.keeping && s.o.Keeper != nil && !s.o.ReadOnly
}

// prepareStory reads a run on that has got far since its story was kept.
func (s *Service) prepareStory(ctx context.Context, c run.Caller, id string) error {
	d, err := s.o.Runs.Look(ctx, c, run.Ref{RunID: id})
	if err != nil {
		return err
	}
	_, err = s.story(ctx, c, d)
	return err
}

// keepStory keeps a story with its run. That it fails costs time and nothing else.
func (s *Service) keepStory(ctx context.Context, c run.Caller, id string, st *story) {
	st.mu.Lock()
	g, err := st.gist()
	st.mu.Unlock()
	if err == nil {
		err = s.o.Runs.KeepGist(ctx, c, run.Ref{RunID: id}, g)
	}
	if err != nil && ctx.Err() == nil {
		s.o.Logger.Warn("what a run has brought could not be kept in short with it", "run", id, "error", err)
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	st.keeping = false
	if err == nil {
		st.kept = g.Seq
	}
}

// catchUp reads a story on to where its run stands. The caller has the lock.
func (st *story) catchUp(ctx context.Context, runs Runs, c run.Caller, d *run.Details) error {
	if !st.asked {
		g, err := runs.Gist(ctx, c, run.Ref{RunID: d.ID})
		if err != nil {
			return err
		}
		st.asked = true
		if g != nil && g.Seq <= d.Seq {
			if kept := storyOf(g); kept != nil {
				st.take(kept)
			}
		}
	}
	err := st.readOn(ctx, runs, c, d)
	if errors.Is(err, errOtherEvents) {
		st.take(newStory())
		err = st.readOn(ctx, runs, c, d)
	}
	return err
}

// errOtherEvents says that a story is of events that the run does not have.
var errOtherEvents = errors.New("the run has other events")

// readOn reads the events behind a story, and sees that they follow its last one.
func (st *story) readOn(ctx context.Context, runs Runs, c run.Caller, d *run.Details) error {
	if st.seq == d.Seq && !bytes.Equal(st.head, d.Head) {
		return errOtherEvents
	}
	for st.seq < d.Seq {
		after := max(st.seq-1, 0) // with the last one that was read
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
