package bypasstest

import (
	"context"
	"sync"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/run"
)

// memoryJournal is a journal in memory without lists and search, which a service does not
// need to execute runs.
type memoryJournal struct {
	run.Journal
	mu       sync.Mutex
	records  map[string]run.Record
	events   map[string][]run.Event
	handles  map[string]run.Handle
	outcomes map[[3]string]run.Handle
	pinned   map[string]run.Definition
	snaps    map[string]run.Snapshot
}

func newLedger() *memoryJournal {
	return &memoryJournal{
		records: map[string]run.Record{}, events: map[string][]run.Event{}, handles: map[string]run.Handle{},
		outcomes: map[[3]string]run.Handle{}, pinned: map[string]run.Definition{}, snaps: map[string]run.Snapshot{},
	}
}

func (l *memoryJournal) Create(_ context.Context, d run.Definition, c run.Commit) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.outcomes[[3]string{"", c.Record.User, c.Key}]; known && c.Key != "" {
		return guideway.Errorf(guideway.CodeConflict, "the request id is in use")
	}
	l.pinned[d.Hash] = d
	l.addCommit(c, [3]string{"", c.Record.User, c.Key})
	return nil
}

func (l *memoryJournal) Append(_ context.Context, c run.Commit) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := [3]string{c.Record.ID, "", c.Key}
	if _, known := l.outcomes[key]; known && c.Key != "" || l.records[c.Record.ID].Seq != c.Expected {
		return guideway.Errorf(guideway.CodeConflict, "another command was committed first")
	}
	l.addCommit(c, key)
	return nil
}

func (l *memoryJournal) addCommit(c run.Commit, key [3]string) {
	id := c.Record.ID
	l.records[id] = c.Record
	l.events[id] = append(l.events[id], c.Events...)
	if c.Handle != "" {
		l.handles[c.Handle] = run.Handle{Token: c.Handle, Run: id, Seq: c.Record.Seq}
	}
	if c.Key != "" {
		l.outcomes[key] = run.Handle{Token: c.Record.Handle, Run: id, Seq: c.Record.Seq}
	}
	if c.Snapshot != nil {
		l.snaps[id] = *c.Snapshot
	}
}

func (l *memoryJournal) Events(_ context.Context, id string, after int64, limit int) ([]run.Event, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	events := l.events[id]
	events = events[min(int(after), len(events)):]
	return events[:min(limit, len(events))], nil
}

func (l *memoryJournal) Snapshot(_ context.Context, id string) (*run.Snapshot, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s, ok := l.snaps[id]; ok {
		return &s, nil
	}
	return nil, nil //nolint:nilnil // the interface defines nil for a run without a snapshot
}

func (l *memoryJournal) Definition(_ context.Context, hash string) (run.Definition, error) {
	return lookUp(l, l.pinned, hash)
}

func (l *memoryJournal) Outcome(_ context.Context, id, user, key string) (run.Handle, error) {
	return lookUp(l, l.outcomes, [3]string{id, user, key})
}

func (l *memoryJournal) Run(_ context.Context, id string) (run.Record, error) {
	return lookUp(l, l.records, id)
}

func (l *memoryJournal) Handle(_ context.Context, token string) (run.Handle, error) {
	return lookUp(l, l.handles, token)
}

func lookUp[K comparable, V any](l *memoryJournal, in map[K]V, key K) (V, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	v, ok := in[key]
	if !ok {
		return v, guideway.Errorf(guideway.CodeNotFound, "not found")
	}
	return v, nil
}

// countFacts counts the events of all runs except refused attempts and their checks.
func (l *memoryJournal) countFacts() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, events := range l.events {
		for _, e := range events {
			if e.Kind != run.KindRefused && e.Kind != run.KindCheckRun {
				n++
			}
		}
	}
	return n
}
