package driver

import (
	"context"
	"encoding/json"
	"sync"

	machineengine "github.com/guideway-dev/guideway/internal/machine/engine"
	"github.com/guideway-dev/guideway/internal/machine/llm"
	"github.com/guideway-dev/guideway/internal/run"
)

// watchers are the subscribers to updates of runs.
type watchers struct {
	mu    sync.Mutex
	byRun map[string]map[chan Update]bool
	// recent holds the last events of the driven runs, for subscribers that start late.
	recent map[string][]Update
}

// watchRecent is the number of recent events per run.
const watchRecent = 32

// watchBuffer is the number of buffered updates per subscriber.
const watchBuffer = 512

// Watch returns the updates of a run until cancel is called. Of a run that this process drives,
// they begin with its last events; of a run that another process drives, they are the events
// that it records from now on. A slow subscriber misses updates; Status returns the final
// outcome.
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
		c <- u // the buffer has space for all recent updates
	}
	ctx, stop := context.WithCancel(b.ctx)
	if b.o.Store != nil {
		b.work.Go(func() { b.relayRecorded(ctx, id, c) })
	}
	return c, func() {
		stop()
		w.mu.Lock()
		defer w.mu.Unlock()
		if delete(w.byRun[id], c); len(w.byRun[id]) == 0 {
			delete(w.byRun, id)
		}
	}
}

// relayRecorded sends the events of a run that other processes record to a subscriber, until
// ctx ends or the store does not answer.
func (b *Background) relayRecorded(ctx context.Context, id string, to chan<- Update) {
	signal := b.o.Journal.Watch(ctx)
	at, err := b.o.Journal.Latest(ctx)
	if err != nil {
		return
	}
	rec, err := b.o.Journal.Run(ctx, id)
	for seq := rec.Seq; err == nil; {
		at, err = b.awaitChange(ctx, signal, id, at)
		if err != nil || b.instance.IsDriving(id) {
			continue
		}
		var events []run.Event
		events, err = b.o.Journal.Events(ctx, id, seq, watchBuffer)
		for _, e := range events {
			seq = e.Seq
			var fact machineengine.Event
			if e.By.Client == b.instance.ID() || json.Unmarshal(e.Data, &fact) != nil || string(fact.Kind) != e.Kind {
				continue // this process has sent it, or it is no event of the engine
			}
			select {
			case to <- Update{RunID: id, Event: &fact, State: fact.State, Agent: fact.Agent}:
			default:
			}
		}
	}
}

// sendUpdate sends an update to the subscribers of a run without blocking.
func (w *watchers) sendUpdate(id string, u Update) {
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

// dropRecent drops the recent events of a run whose drive ended.
func (w *watchers) dropRecent(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.recent, id)
}

// View is a run without its events: status, conversations, data, definition, transitions
// and limits.
type View struct {
	Status *Status `json:"status"`
	// Conversations are the contexts, by name.
	Conversations map[string][]llm.Message `json:"conversations"`
	// Data is common_data.
	Data map[string]json.RawMessage `json:"data"`
	// Definition is the pinned machine: configuration, roles and script.
	Definition json.RawMessage      `json:"definition"`
	Ways       any                  `json:"ways"`
	Limits     machineengine.Limits `json:"limits"`
}

// View returns the view of a run of the caller.
func (s *Service) View(ctx context.Context, c run.Caller, id string) (*View, error) {
	l, _, err := s.loadRun(ctx, c.User, id, 0)
	if err != nil {
		return nil, err
	}
	status, err := s.buildStatus(ctx, l)
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
