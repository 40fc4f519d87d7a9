package driver_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/cluster"
	"github.com/guideway-dev/guideway/internal/run"
)

// memory is a journal in memory that can be killed: afterwards it rejects writes, as if the
// process had ended.
type memory struct {
	mu       sync.Mutex
	records  map[string]run.Record
	events   map[string][]run.Event
	defs     map[string]run.Definition
	outcomes map[string]run.Handle
	// dies is the number of the write at which the process is killed, and writes the number
	// of writes so far.
	dies, writes int
	dead         bool
	// fails is the number of the write at which the journal is not available for a time, until
	// fixed. lost is the number of a write that succeeds but returns a conflict.
	fails, lost int
	fixed       time.Time
	// instances are the instances that exist. jobs has the jobs for the workers.
	instances map[string]bool
	jobs      chan run.Job
	changes   []run.Change
	changed   chan struct{}
}

var (
	_ run.Journal   = (*memory)(nil)
	_ cluster.Store = (*memory)(nil)
)

var errKilled = errors.New("the process was killed")

func newMemory() *memory {
	return &memory{
		records: map[string]run.Record{}, events: map[string][]run.Event{}, defs: map[string]run.Definition{}, outcomes: map[string]run.Handle{},
		instances: map[string]bool{}, jobs: make(chan run.Job, 1000), changed: make(chan struct{}),
	}
}

// outage is how long the journal is not available.
const outage = 30 * time.Second

func notFoundError(what string) error { return guideway.Errorf(guideway.CodeNotFound, "no %s", what) }

func (m *memory) beginWrite() error {
	m.writes++
	if m.dead || m.writes == m.dies {
		m.dead = true
		return errKilled
	}
	if m.writes == m.fails {
		m.fixed = time.Now().Add(outage)
	}
	if time.Now().Before(m.fixed) {
		return guideway.Errorf(guideway.CodeUnavailable, "disk full")
	}
	return nil
}

// endWrite returns the error that the caller of a completed write gets.
func (m *memory) endWrite() error {
	if m.writes == m.lost {
		return guideway.Errorf(guideway.CodeConflict, "the run has changed")
	}
	return nil
}

// kill ends the process.
func (m *memory) kill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dead = true
}

// isDead reports whether the process has ended.
func (m *memory) isDead() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.dead
}

// revive accepts writes again, like a new process on the same journal.
func (m *memory) revive() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dead, m.dies = false, 0
}

func (m *memory) Create(_ context.Context, d run.Definition, c run.Commit) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.beginWrite(); err != nil {
		return err
	}
	if _, ok := m.records[c.Record.ID]; ok {
		return guideway.Errorf(guideway.CodeConflict, "the run already exists")
	}
	if c.Key != "" {
		key := c.Record.User + " " + c.Key
		if _, ok := m.outcomes[key]; ok {
			return guideway.Errorf(guideway.CodeConflict, "the request already exists")
		}
		m.outcomes[key] = run.Handle{Token: c.Handle, Run: c.Record.ID, Seq: c.Record.Seq}
	}
	m.defs[d.Hash] = d
	m.appendEvents(c)
	return nil
}

func (m *memory) Append(_ context.Context, c run.Commit) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.beginWrite(); err != nil {
		return err
	}
	old, ok := m.records[c.Record.ID]
	if !ok {
		return notFoundError("run")
	}
	if old.Seq != c.Expected {
		return guideway.Errorf(guideway.CodeConflict, "the run has changed")
	}
	m.appendEvents(c)
	return m.endWrite()
}

func (m *memory) appendEvents(c run.Commit) {
	m.records[c.Record.ID] = c.Record
	m.events[c.Record.ID] = append(m.events[c.Record.ID], slices.Clone(c.Events)...)
	if c.Job != nil {
		m.schedule(*c.Job)
	}
	m.changes = append(m.changes, run.Change{Pos: int64(len(m.changes) + 1), ID: c.Record.ID, Seq: c.Record.Seq})
	close(m.changed)
	m.changed = make(chan struct{})
}

func (m *memory) schedule(j run.Job) { time.AfterFunc(j.Delay, func() { m.jobs <- j }) }

// Schedule implements cluster.Store. So do the methods below.
func (m *memory) Schedule(_ context.Context, j run.Job) error {
	m.schedule(j)
	return nil
}

func (m *memory) WorkJobs(ctx context.Context, _ string, most int, do func(context.Context, run.Job) error) error {
	var work sync.WaitGroup
	defer work.Wait()
	slots := make(chan struct{}, most)
	for {
		select {
		case <-ctx.Done():
			return nil
		case slots <- struct{}{}:
		}
		select {
		case <-ctx.Done():
			return nil
		case j := <-m.jobs:
			work.Go(func() {
				defer func() { <-slots }()
				if j.Delay = time.Second; do(ctx, j) != nil {
					m.schedule(j)
				}
			})
		}
	}
}

func (m *memory) Beat(_ context.Context, id string, register bool) (known bool, cancelled []string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.instances[id] = m.instances[id] || register
	return m.instances[id], nil, nil
}

func (m *memory) HasInstance(_ context.Context, id string) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.instances[id], nil
}

func (m *memory) ReapInstances(context.Context, time.Duration) error { return nil }

func (m *memory) LeaveInstance(_ context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.instances, id)
	return nil
}

func (m *memory) Events(_ context.Context, id string, after int64, limit int) ([]run.Event, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := m.events[id]
	all = all[min(int(after), len(all)):]
	return slices.Clone(all[:min(limit, len(all))]), nil
}

func (m *memory) Definition(_ context.Context, hash string) (run.Definition, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, ok := m.defs[hash]
	if !ok {
		return d, notFoundError("definition")
	}
	return d, nil
}

func (m *memory) Outcome(_ context.Context, _, user, key string) (run.Handle, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	h, ok := m.outcomes[user+" "+key]
	if !ok {
		return h, notFoundError("outcome")
	}
	return h, nil
}

func (m *memory) Run(_ context.Context, id string) (run.Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.records[id]
	if !ok {
		return r, notFoundError("run")
	}
	return r, nil
}

func (m *memory) Runs(_ context.Context, f run.Filter) ([]run.Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []run.Record
	for _, id := range slices.Sorted(maps.Keys(m.records)) {
		r := m.records[id]
		if (f.User == "" || r.User == f.User) && (len(f.Users) == 0 || slices.Contains(f.Users, r.User)) && (f.Project == "" || r.Project.ID == f.Project) {
			out = append(out, r)
		}
	}
	return out, nil
}

func (m *memory) Handle(context.Context, string) (run.Handle, error) {
	return run.Handle{}, notFoundError("handle")
}
func (m *memory) Snapshot(context.Context, string) (*run.Snapshot, error) { return nil, nil }
func (m *memory) Search(context.Context, run.Search) ([]run.Hit, error)   { return nil, nil }
func (m *memory) Close() error                                            { return nil }

// Watch implements run.Feed. So do the methods below.
func (m *memory) Watch(ctx context.Context) <-chan struct{} {
	out := make(chan struct{}, 1)
	go func() {
		defer close(out)
		for {
			m.mu.Lock()
			changed := m.changed
			m.mu.Unlock()
			select {
			case <-ctx.Done():
				return
			case <-changed:
			}
			select {
			case out <- struct{}{}:
			default:
			}
		}
	}()
	return out
}

func (m *memory) Latest(context.Context) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return int64(len(m.changes)), nil
}

func (m *memory) Changes(_ context.Context, after int64, limit int) ([]run.Change, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := m.changes[min(int(after), len(m.changes)):]
	return slices.Clone(list[:min(limit, len(list))]), false, nil
}
