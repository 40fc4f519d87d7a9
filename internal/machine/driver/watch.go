package driver

import (
	"context"
	"encoding/json"
	"sync"

	machineengine "github.com/guideway-dev/guideway/internal/machine/engine"
	"github.com/guideway-dev/guideway/internal/machine/llm"
	"github.com/guideway-dev/guideway/internal/run"
)

// watchers are who looks on at runs.
type watchers struct {
	mu    sync.Mutex
	byRun map[string]map[chan Update]bool
	// recent are the last events of the runs that are being driven, for who comes
	// a moment after the beginning.
	recent map[string][]Update
}

// watchRecent is how many of them there are.
const watchRecent = 32

// watchBuffer is how many updates wait for one who looks on.
const watchBuffer = 512

// Watch gives what happens in a run that this process drives, its last events first,
// until cancel is called. Who is too slow misses some: what a run has come to is told by
// its status alone.
func (b *Background) Watch(id string) (updates <-chan Update, cancel func()) {
	w := &b.watchers
	c := make(chan Update, watchBuffer)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byRun == nil {
		w.byRun = map[string]map[chan Update]bool{}
	}
	if w.byRun[id] == nil {
		w.byRun[id] = map[chan Update]bool{}
	}
	w.byRun[id][c] = true
	for _, u := range w.recent[id] {
		c <- u // there is room for all of them
	}
	return c, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if delete(w.byRun[id], c); len(w.byRun[id]) == 0 {
			delete(w.byRun, id)
		}
	}
}

// tell tells who looks on at a run, and waits for nobody.
func (w *watchers) tell(id string, u Update) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if u.Event != nil {
		if w.recent == nil {
			w.recent = map[string][]Update{}
		}
		last := w.recent[id]
		last = append(last[max(0, len(last)-watchRecent+1):], u)
		w.recent[id] = last
	}
	for c := range w.byRun[id] {
		select {
		case c <- u:
		default:
		}
	}
}

// forget forgets the last events of a run that is not driven any more.
func (w *watchers) forget(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.recent, id)
}

// Resume lets a paused run go on, and drives it.
func (b *Background) Resume(ctx context.Context, c run.Caller, id string, limits machineengine.Limits) (*Status, error) {
	s, err := b.Service.Resume(ctx, c, id, limits)
	if err == nil {
		b.drive(c.User, id)
	}
	return s, err
}

// Fork makes a new run of the events of another one up to seq, and drives it.
func (b *Background) Fork(ctx context.Context, c run.Caller, id string, seq int64) (*Status, error) {
	s, err := b.Service.Fork(ctx, c, id, seq)
	if err == nil {
		b.drive(c.User, s.RunID)
	}
	return s, err
}

// View is all of a run but its events: where it stands, what was said, and what it
// runs.
type View struct {
	Status *Status `json:"status"`
	// Conversations are the contexts, by name.
	Conversations map[string][]llm.Message `json:"conversations"`
	// Data is common_data.
	Data map[string]json.RawMessage `json:"data"`
	// Definition pins the machine: configuration, roles and script.
	Definition json.RawMessage      `json:"definition"`
	Ways       any                  `json:"ways"`
	Limits     machineengine.Limits `json:"limits"`
}

// View shows a run of the caller's.
func (s *Service) View(ctx context.Context, c run.Caller, id string) (*View, error) {
	l, _, err := s.load(ctx, c.User, id, 0)
	if err != nil {
		return nil, err
	}
	status, err := s.tell(ctx, l)
	if err != nil {
		return nil, err
	}
	v := &View{
		Status: status, Conversations: map[string][]llm.Message{}, Data: l.state.Data,
		Definition: json.RawMessage(l.program.Canonical), Ways: l.program.Edges(), Limits: l.state.Limits,
	}
	for name, list := range l.state.Conversations {
		v.Conversations[name] = append([]llm.Message{}, list...)
	}
	return v, nil
}
