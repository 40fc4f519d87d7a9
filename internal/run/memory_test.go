package run_test

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/run"
)

// memoryJournal is a journal in memory that tests can tamper with.
type memoryJournal struct {
	mu       sync.Mutex
	records  map[string]run.Record
	events   map[string][]run.Event
	handles  map[string]run.Handle
	outcomes map[string]run.Handle
	snaps    map[string]run.Snapshot
	defs     map[string]run.Definition
	words    map[string]string
	changes  []run.Change
	// failing is the error of the next write.
	failing error
	writes  int
	// lookups is the number of handles that were looked up.
	lookups int
}

var _ run.Journal = (*memoryJournal)(nil)

func newMemoryJournal() *memoryJournal {
	return &memoryJournal{
		records: map[string]run.Record{}, events: map[string][]run.Event{}, handles: map[string]run.Handle{},
		outcomes: map[string]run.Handle{}, snaps: map[string]run.Snapshot{}, defs: map[string]run.Definition{}, words: map[string]string{},
	}
}

func notFoundError(what string) error { return guideway.Errorf(guideway.CodeNotFound, "no %s", what) }

func (m *memoryJournal) Create(_ context.Context, d run.Definition, c run.Commit) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.records[c.Record.ID]; ok {
		return guideway.Errorf(guideway.CodeConflict, "the run already exists")
	}
	if _, ok := m.outcomes["user "+c.Record.User+" "+c.Key]; ok && c.Key != "" {
		return guideway.Errorf(guideway.CodeConflict, "the request id is already used")
	}
	m.defs[d.Hash] = d
	return m.appendCommit(c, "user "+c.Record.User+" "+c.Key)
}

func (m *memoryJournal) Append(_ context.Context, c run.Commit) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	old, ok := m.records[c.Record.ID]
	if !ok {
		return notFoundError("run")
	}
	if _, known := m.outcomes[c.Record.ID+" "+c.Key]; old.Seq != c.Expected || known && c.Key != "" {
		return guideway.Errorf(guideway.CodeConflict, "another command was committed first")
	}
	return m.appendCommit(c, c.Record.ID+" "+c.Key)
}

func (m *memoryJournal) appendCommit(c run.Commit, key string) error {
	if err := m.failing; err != nil {
		m.failing = nil
		return err
	}
	m.writes++
	id := c.Record.ID
	m.records[id] = c.Record
	m.events[id] = append(m.events[id], c.Events...)
	if c.Handle != "" {
		m.handles[c.Handle] = run.Handle{Token: c.Handle, Run: id, Seq: c.Record.Seq}
	}
	if c.Key != "" {
		m.outcomes[key] = run.Handle{Token: c.Record.Handle, Run: id, Seq: c.Record.Seq}
	}
	if c.Snapshot != nil {
		m.snaps[id] = *c.Snapshot
	}
	m.words[id] += " " + strings.Join(c.Terms, " ")
	m.changes = append(m.changes, run.Change{Pos: int64(len(m.changes) + 1), Subject: run.SubjectRun, ID: id, Seq: c.Record.Seq})
	return nil
}

func (m *memoryJournal) Events(_ context.Context, id string, after int64, limit int) ([]run.Event, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []run.Event
	for _, e := range m.events[id] {
		if e.Seq > after && len(out) < limit {
			out = append(out, e)
		}
	}
	return out, nil
}

func (m *memoryJournal) Snapshot(_ context.Context, id string) (*run.Snapshot, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s, ok := m.snaps[id]; ok {
		return &s, nil
	}
	return nil, nil
}

func (m *memoryJournal) Definition(_ context.Context, hash string) (run.Definition, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if d, ok := m.defs[hash]; ok {
		return d, nil
	}
	return run.Definition{}, notFoundError("definition")
}

func (m *memoryJournal) Outcome(_ context.Context, id, user, key string) (run.Handle, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	name := id + " " + key
	if id == "" {
		name = "user " + user + " " + key
	}
	if h, ok := m.outcomes[name]; ok {
		return h, nil
	}
	return run.Handle{}, notFoundError("command")
}

func (m *memoryJournal) Run(_ context.Context, id string) (run.Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r, ok := m.records[id]; ok {
		return r, nil
	}
	return run.Record{}, notFoundError("run")
}

func (m *memoryJournal) Handle(_ context.Context, token string) (run.Handle, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lookups++
	if h, ok := m.handles[token]; ok {
		return h, nil
	}
	return run.Handle{}, notFoundError("handle")
}

func (m *memoryJournal) Runs(_ context.Context, f run.Filter) ([]run.Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []run.Record
	for _, r := range m.records {
		if (f.User == "" || r.User == f.User) && (len(f.Users) == 0 || slices.Contains(f.Users, r.User)) && (len(f.IDs) == 0 || slices.Contains(f.IDs, r.ID)) && (f.Project == "" || r.Project.ID == f.Project) &&
			(len(f.Statuses) == 0 || slices.Contains(f.Statuses, r.Status)) &&
			!r.Updated.Before(f.Since) && (f.Until.IsZero() || r.Updated.Before(f.Until)) {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b run.Record) int {
		return cmp.Or(b.Updated.Compare(a.Updated), cmp.Compare(b.ID, a.ID))
	})
	if f.Before != nil {
		i := slices.IndexFunc(out, func(r run.Record) bool { return r.ID == f.Before.ID })
		out = out[i+1:]
	}
	if f.Limit > 0 {
		out = out[:min(f.Limit, len(out))]
	}
	return out, nil
}

func (m *memoryJournal) Search(ctx context.Context, s run.Search) ([]run.Hit, error) {
	runs, _ := m.Runs(ctx, s.Filter)
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []run.Hit
	for _, r := range runs {
		score := 0.0
		for _, w := range s.Query {
			if slices.ContainsFunc(w.Any(), func(terms []string) bool {
				return !slices.ContainsFunc(terms, func(term string) bool {
					return !strings.Contains(m.words[r.ID]+" ", " "+strings.Replace(term+" ", "* ", "", 1))
				})
			}) {
				score++
			}
		}
		if score > 0 {
			out = append(out, run.Hit{Record: r, Score: score})
		}
	}
	return out, nil
}

func (m *memoryJournal) Changes(_ context.Context, after int64, limit int) ([]run.Change, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.failing; err != nil {
		m.failing = nil
		return nil, false, err
	}
	list := m.changes[min(int(after), len(m.changes)):]
	return slices.Clone(list[:min(limit, len(list))]), int(after) > len(m.changes), nil
}
func (m *memoryJournal) Latest(context.Context) (int64, error) { return 0, nil }
func (m *memoryJournal) Watch(context.Context) <-chan struct{} { return nil }
func (m *memoryJournal) Close() error                          { return nil }

// memoryHeads stores heads in memory.
type memoryHeads struct {
	mu   sync.Mutex
	last map[string]run.Head
}

func newMemoryHeads() *memoryHeads { return &memoryHeads{last: map[string]run.Head{}} }

func (h *memoryHeads) Record(id string, seq int64, mac []byte) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.last[id].Seq < seq {
		h.last[id] = run.Head{Seq: seq, MAC: mac}
	}
	return nil
}

func (h *memoryHeads) Heads() (map[string]run.Head, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := map[string]run.Head{}
	for id, head := range h.last {
		out[id] = head
	}
	return out, nil
}

func (h *memoryHeads) Replace(next map[string]run.Head) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last = next
	return nil
}
