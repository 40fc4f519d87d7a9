package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	workflowpkg "github.com/guideway-dev/guideway/internal/workflow"
)

// loaded is a run with its state at an event. It is not changed once it is in
// the cache.
type loaded struct {
	// of is whose run of which definition it is.
	of      identity
	seq     int64
	head    []byte
	program *program
	state   engine.State
	// refused counts the refused attempts that were recorded since the run moved.
	refused int
	// marks are the variables that were called critical.
	marks []Mark
	// snapshot is the last event that a snapshot was stored of, size how large
	// that was.
	snapshot int64
	size     int
}

// identity is what of a record decides about a run. Records can be edited, so it
// is checked against the first event.
type identity struct{ user, workflow, hash string }

func (r Record) identity() identity { return identity{r.User, r.Workflow, r.Hash} }

// program is a definition that is ready to run, with its canonical text.
type program struct {
	engine.Flow
	text string
}

func compile(d *workflowpkg.Definition) *program {
	p := &program{text: d.Canonical}
	if d.Phases != nil {
		p.Flow = engine.CompilePhases(d.Phases)
	} else {
		p.Flow = engine.Compile(d.Steps)
	}
	return p
}

// cache holds the runs that were last used, by id, and compiled definitions, by
// hash. What is in it is checked against the journal before it is used.
type cache struct {
	mu       sync.Mutex
	runs     map[string]*loaded
	programs map[string]*program
	// handles are those that this process gave last, by token. What a handle stands
	// for never changes; whether it is its run's current one, the run's record says.
	handles map[string]Handle
}

const (
	maxCachedRuns     = 64
	maxCachedPrograms = 64
	maxCachedHandles  = 1024
)

func newCache() *cache {
	return &cache{runs: map[string]*loaded{}, programs: map[string]*program{}, handles: map[string]Handle{}}
}

// gave notes a handle that was given in the place of another.
func (c *cache) gave(h Handle, before string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.handles, before)
	put(c.handles, h.Token, h, maxCachedHandles)
}

func (c *cache) handle(token string) (Handle, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h, ok := c.handles[token]
	return h, ok
}

func (c *cache) run(id string) *loaded {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.runs[id]
}

// keep stores a run unless a later state of it is there.
func (c *cache) keep(id string, l *loaded) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.runs[id]; old != nil && old.seq > l.seq {
		return
	}
	put(c.runs, id, l, maxCachedRuns)
}

func (c *cache) forget(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.runs, id)
}

// put stores a value and makes room by dropping any other one.
func put[T any](m map[string]T, key string, value T, most int) {
	m[key] = value
	for other := range m {
		if len(m) <= most {
			return
		}
		if other != key {
			delete(m, other)
		}
	}
}

// load brings a run to the event that its record names. It begins with the
// nearest state that is known, and checks the chain from there.
func (s *Service) load(ctx context.Context, r Record) (*loaded, error) {
	l := s.cache.run(r.ID)
	if l != nil && l.of != r.identity() {
		l = nil
	}
	if l != nil && l.seq == r.Seq && sameMAC(l.head, r.Head) {
		return l, nil
	}
	fresh := l == nil
	if l == nil || l.seq > r.Seq {
		l = s.fromSnapshot(ctx, r)
	}
	next, err := s.follow(ctx, r, l)
	if err != nil && l != nil {
		// The state may have been of events that are no more: from the
		// beginning, the fault is found where it is.
		s.cache.forget(r.ID)
		next, err = s.follow(ctx, r, nil)
	}
	if err != nil {
		return nil, err
	}
	s.cache.keep(r.ID, next)
	if fresh {
		s.seen(ctx, r)
	}
	return next, nil
}

// fromSnapshot gives the state that the run's snapshot holds, or nil. It is a
// cache: what is wrong with it costs time and nothing else.
func (s *Service) fromSnapshot(ctx context.Context, r Record) *loaded {
	snap, err := s.journal.Snapshot(ctx, r.ID)
	if err != nil || snap == nil || snap.Seq > r.Seq || !sameMAC(snap.MAC, s.key.snapshot(r, *snap)) {
		return nil
	}
	program, err := s.compiled(ctx, r.Hash)
	if err != nil {
		return nil
	}
	l := &loaded{of: r.identity(), seq: snap.Seq, head: snap.Head, program: program, snapshot: snap.Seq, size: len(snap.State)}
	dec := json.NewDecoder(bytes.NewReader(snap.State))
	dec.UseNumber()
	var kept stored
	if dec.Decode(&kept) != nil {
		return nil
	}
	l.state, l.marks = kept.State, kept.Marks
	return l
}

// page is how many events are read at once.
const page = 500

// follow folds the events after a state, from the beginning where that is nil,
// up to the record's last one.
func (s *Service) follow(ctx context.Context, r Record, from *loaded) (*loaded, error) {
	l := loaded{of: r.identity(), head: s.key.Root(r.ID)}
	if from != nil {
		l = *from
	} else {
		program, err := s.compiled(ctx, r.Hash)
		if err != nil {
			return nil, err
		}
		l.program = program
	}
	for l.seq < r.Seq {
		events, err := s.journal.Events(ctx, r.ID, l.seq, int(min(page, r.Seq-l.seq)))
		if err != nil {
			return nil, err
		}
		if len(events) == 0 {
			return nil, broken(r.ID, l.seq+1, "it is missing")
		}
		for _, e := range events {
			if e.Seq != l.seq+1 {
				return nil, broken(r.ID, l.seq+1, "it is missing")
			}
			if !sameMAC(e.MAC, s.key.Chain(r.ID, l.head, e)) {
				return nil, broken(r.ID, e.Seq, "it is not what was written")
			}
			if e.Seq == 1 {
				c, err := createdOf(r, e)
				if err != nil {
					return nil, broken(r.ID, 1, err.Error())
				}
				l.marks = c.Marks
			}
			if e.Kind == KindMarked {
				l.note([]Event{e})
			}
			l.seq, l.head = e.Seq, e.MAC
			fact, ok, err := factOf(e)
			if err != nil {
				return nil, broken(r.ID, e.Seq, err.Error())
			}
			if !ok {
				continue
			}
			if l.state, err = l.program.FoldFrom(l.state, []engine.Event{fact}); err != nil {
				return nil, broken(r.ID, e.Seq, err.Error())
			}
		}
	}
	if !sameMAC(l.head, r.Head) {
		return nil, broken(r.ID, r.Seq, "the run's record names another one")
	}
	return &l, nil
}

// createdOf reads the first event of a run and checks that the record is of that
// run.
func createdOf(r Record, e Event) (Created, error) {
	var c Created
	if e.Kind != KindCreated || json.Unmarshal(e.Data, &c) != nil {
		return c, errors.New("it does not say what the run is")
	}
	if (identity{e.By.User, c.Workflow, c.Hash}) != r.identity() {
		return c, errors.New("the record of the run says something else")
	}
	return c, nil
}

// broken says that a run cannot be loaded because of one of its events.
func broken(run string, seq int64, why string) error {
	return guideway.Errorf(guideway.CodeUnavailable, "event %d of run %s cannot be trusted: %s", seq, run, why).
		WithFix("guideway runs verify %s", run)
}

// compiled gives a pinned definition, ready to run.
func (s *Service) compiled(ctx context.Context, hash string) (*program, error) {
	s.cache.mu.Lock()
	p := s.cache.programs[hash]
	s.cache.mu.Unlock()
	if p != nil {
		return p, nil
	}
	d, err := s.pinned(ctx, hash)
	if err != nil {
		return nil, err
	}
	p = compile(d)
	s.cache.mu.Lock()
	defer s.cache.mu.Unlock()
	put(s.cache.programs, hash, p, maxCachedPrograms)
	return p, nil
}

// pinned reads a definition from the journal and checks that it is the one.
func (s *Service) pinned(ctx context.Context, hash string) (*workflowpkg.Definition, error) {
	stored, err := s.journal.Definition(ctx, hash)
	if guideway.ErrorCode(err) == guideway.CodeNotFound {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "the pinned definition %s is gone", hash).WithFix("guideway runs verify")
	}
	if err != nil {
		return nil, err
	}
	return parsePinned(stored)
}

func parsePinned(stored Definition) (*workflowpkg.Definition, error) {
	d, found := workflowpkg.Parse("", []byte(stored.Text))
	switch {
	case d == nil:
		return nil, guideway.Errorf(guideway.CodeUnavailable, "the pinned definition %s does not load: %s", stored.Hash, found[0].Message).
			WithFix("guideway runs verify")
	case d.Hash != stored.Hash:
		return nil, guideway.Errorf(guideway.CodeUnavailable, "the pinned definition %s was changed", stored.Hash).
			WithFix("guideway runs verify")
	}
	return d, nil
}

// factOf gives the engine's event, or ok false for one that is not the engine's.
func factOf(e Event) (fact engine.Event, ok bool, err error) {
	if e.Kind == KindCreated || e.Kind == KindRefused || e.Kind == KindMarked {
		return engine.Event{}, false, nil
	}
	dec := json.NewDecoder(bytes.NewReader(e.Data))
	dec.UseNumber()
	if err := dec.Decode(&fact); err != nil {
		return fact, false, err
	}
	return fact, true, nil
}

// eventOf makes a journal's event of the engine's.
func eventOf(fact engine.Event) (Event, error) { return newEvent(string(fact.Kind), fact) }

func newEvent(kind string, data any) (Event, error) {
	text, err := jsontext.Marshal(data)
	if err != nil {
		return Event{}, guideway.Errorf(guideway.CodeInvalid, "the %s cannot be written as JSON: %w", kind, err)
	}
	return Event{Kind: kind, Data: text}, nil
}
