package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	workflowpkg "github.com/guideway-dev/guideway/internal/workflow"
)

// loadedRun is a run with its state at an event. It is immutable once it is in the cache.
type loadedRun struct {
	// identity is the owner, workflow and definition of the run.
	identity runIdentity
	seq      int64
	head     []byte
	program  *program
	state    engine.State
	// attempts are the attempts recorded since the position changed.
	attempts attempts
	// marks are the variables marked as critical.
	marks []Mark
	// hooked reports whether a hook of the client has reported for the run.
	hooked bool
	// submission is the event whose output the next gate asks about, or 0.
	submission int64
	// snapshotSeq is the event of the last stored snapshot, snapshotSize its size.
	snapshotSeq  int64
	snapshotSize int
}

// runIdentity has the fields of a record that determine the run. Records can be edited, so
// they are checked against the first event.
type runIdentity struct{ user, workflow, hash string }

func (r Record) identityOf() runIdentity { return runIdentity{r.User, r.Workflow, r.Hash} }

// program is a compiled definition with its canonical text.
type program struct {
	engine.Flow
	text string
	// hasTools reports whether a step may restrict tools.
	hasTools bool
}

func compileProgram(d *workflowpkg.Definition) *program {
	p := &program{text: d.Canonical, hasTools: strings.Contains(d.Canonical, `"tools":`)}
	if d.Phases != nil {
		p.Flow = engine.CompilePhases(d.Phases)
	} else {
		p.Flow = engine.Compile(d.Steps)
	}
	return p
}

// runCache caches runs by id and compiled definitions by hash. Runs and handles are checked
// against the journal before they are used.
type runCache struct {
	mu       sync.Mutex
	runs     map[string]*loadedRun
	programs map[string]*program
	// handles has handles that this process issued, by token. The run and position of a
	// handle never change; the record of the run shows whether it is current.
	handles map[string]Handle
}

const (
	maxCachedRuns     = 64
	maxCachedPrograms = 64
	maxCachedHandles  = 1024
)

func newRunCache() *runCache {
	return &runCache{runs: map[string]*loadedRun{}, programs: map[string]*program{}, handles: map[string]Handle{}}
}

// addHandle adds an issued handle and removes its predecessor.
func (c *runCache) addHandle(h Handle, before string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.handles, before)
	putBounded(c.handles, h.Token, h, maxCachedHandles)
}

func (c *runCache) getHandle(token string) (Handle, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h, ok := c.handles[token]
	return h, ok
}

func (c *runCache) getRun(id string) *loadedRun {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.runs[id]
}

// putRun stores a run unless a later state of the run is already stored.
func (c *runCache) putRun(id string, l *loadedRun) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.runs[id]; old != nil && old.seq > l.seq {
		return
	}
	putBounded(c.runs, id, l, maxCachedRuns)
}

func (c *runCache) removeRun(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.runs, id)
}

// putBounded stores a value and deletes arbitrary other values while the limit is exceeded.
func putBounded[T any](m map[string]T, key string, value T, most int) {
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

// loadRun loads a run up to the last event of its record. It starts from the nearest known
// state and checks the chain from there.
func (s *Service) loadRun(ctx context.Context, r Record) (*loadedRun, error) {
	l := s.cache.getRun(r.ID)
	if l != nil && l.identity != r.identityOf() {
		l = nil
	}
	if l != nil && l.seq == r.Seq && equalMAC(l.head, r.Head) {
		return l, nil
	}
	fresh := l == nil
	if l == nil || l.seq > r.Seq {
		l = s.loadSnapshot(ctx, r)
	}
	next, err := s.foldEvents(ctx, r, l)
	if err != nil && l != nil {
		// The cached state may include events that no longer exist. Replaying the run from
		// the beginning finds the actual error.
		s.cache.removeRun(r.ID)
		next, err = s.foldEvents(ctx, r, nil)
	}
	if err != nil {
		return nil, err
	}
	s.cache.putRun(r.ID, next)
	if fresh {
		s.notifySeen(ctx, r)
	}
	return next, nil
}

// loadSnapshot returns the state in the run's snapshot, or nil. A snapshot is a cache, so
// an invalid one only costs time.
func (s *Service) loadSnapshot(ctx context.Context, r Record) *loadedRun {
	snap, err := s.journal.Snapshot(ctx, r.ID)
	if err != nil || snap == nil || snap.Seq > r.Seq || !equalMAC(snap.MAC, s.key.snapshotMAC(r, *snap)) {
		return nil
	}
	program, err := s.compiledProgram(ctx, r.Hash)
	if err != nil {
		return nil
	}
	l := &loadedRun{identity: r.identityOf(), seq: snap.Seq, head: snap.Head, program: program, snapshotSeq: snap.Seq, snapshotSize: len(snap.State)}
	var kept snapshotState
	if jsontext.Decode(snap.State, &kept) != nil {
		return nil
	}
	l.state, l.marks, l.submission, l.attempts, l.hooked = kept.State, kept.Marks, kept.Submission, kept.Attempts, kept.Hooked
	return l
}

// pageSize is the number of events per read.
const pageSize = 500

// foldEvents folds the events after a state up to the last one of the record. If from is
// nil, it starts at the first event.
func (s *Service) foldEvents(ctx context.Context, r Record, from *loadedRun) (*loadedRun, error) {
	l := loadedRun{identity: r.identityOf(), head: s.key.Root(r.ID)}
	if from != nil {
		l = *from
	} else {
		program, err := s.compiledProgram(ctx, r.Hash)
		if err != nil {
			return nil, err
		}
		l.program = program
	}
	for l.seq < r.Seq {
		events, err := s.journal.Events(ctx, r.ID, l.seq, int(min(pageSize, r.Seq-l.seq)))
		if err != nil {
			return nil, err
		}
		if len(events) == 0 {
			return nil, untrustedEventError(r.ID, l.seq+1, "the event is missing")
		}
		for _, e := range events {
			if e.Seq != l.seq+1 {
				return nil, untrustedEventError(r.ID, l.seq+1, "the event is missing")
			}
			if !equalMAC(e.MAC, s.key.Chain(r.ID, l.head, e)) {
				return nil, untrustedEventError(r.ID, e.Seq, eventChanged)
			}
			if e.Seq == 1 {
				c, err := parseCreated(r, e)
				if err != nil {
					return nil, untrustedEventError(r.ID, 1, err.Error())
				}
				l.marks = c.Marks
			}
			l.applyEvents([]Event{e})
			l.seq, l.head = e.Seq, e.MAC
			fact, ok, err := parseFact(e)
			if err != nil {
				return nil, untrustedEventError(r.ID, e.Seq, err.Error())
			}
			if !ok {
				continue
			}
			if l.state, err = l.program.FoldFrom(l.state, []engine.Event{fact}); err != nil {
				return nil, untrustedEventError(r.ID, e.Seq, err.Error())
			}
		}
	}
	if !equalMAC(l.head, r.Head) {
		return nil, untrustedEventError(r.ID, r.Seq, "the event does not match the record of the run")
	}
	return &l, nil
}

// parseCreated parses the first event of a run and checks that the record belongs to that
// run.
func parseCreated(r Record, e Event) (Created, error) {
	var c Created
	if e.Kind != KindCreated {
		return c, fmt.Errorf("the first event must have the kind %q, not %.80q", KindCreated, e.Kind)
	}
	if json.Unmarshal(e.Data, &c) != nil {
		return c, errors.New("the event cannot be decoded")
	}
	if (runIdentity{e.By.User, c.Workflow, c.Hash}) != r.identityOf() {
		return c, errors.New("the event does not match the record of the run")
	}
	return c, nil
}

const eventChanged = "the event was changed outside Guideway"

// untrustedEventError returns the error for a run that cannot be loaded because of one of
// its events.
func untrustedEventError(run string, seq int64, why string) error {
	return guideway.Errorf(guideway.CodeUnavailable, "event %d of run %s cannot be trusted: %s", seq, run, why).
		WithFix("guideway runs verify %s", run)
}

// compiledProgram returns the program of a pinned definition.
func (s *Service) compiledProgram(ctx context.Context, hash string) (*program, error) {
	s.cache.mu.Lock()
	p := s.cache.programs[hash]
	s.cache.mu.Unlock()
	if p != nil {
		return p, nil
	}
	d, err := s.pinnedDefinition(ctx, hash)
	if err != nil {
		return nil, err
	}
	p = compileProgram(d)
	s.cache.mu.Lock()
	defer s.cache.mu.Unlock()
	putBounded(s.cache.programs, hash, p, maxCachedPrograms)
	return p, nil
}

// pinnedDefinition reads a definition from the journal and checks its hash.
func (s *Service) pinnedDefinition(ctx context.Context, hash string) (*workflowpkg.Definition, error) {
	stored, err := s.journal.Definition(ctx, hash)
	if guideway.ErrorCode(err) == guideway.CodeNotFound {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "the journal does not contain the pinned definition %s", hash).WithFix("guideway runs verify")
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
		return nil, guideway.Errorf(guideway.CodeUnavailable, "the pinned definition %s cannot be parsed: %s", stored.Hash, found[0].Message).
			WithFix("guideway runs verify")
	case d.Hash != stored.Hash:
		return nil, guideway.Errorf(guideway.CodeUnavailable, "the text of the pinned definition %s does not have this hash", stored.Hash).
			WithFix("guideway runs verify")
	}
	return d, nil
}

// parseFact returns the engine's event. ok is false for other events.
func parseFact(e Event) (fact engine.Event, ok bool, err error) {
	if !e.IsFact() {
		return engine.Event{}, false, nil
	}
	err = jsontext.Decode(e.Data, &fact)
	return fact, err == nil, err
}

// newFactEvent returns the journal event of an engine's event.
func newFactEvent(fact engine.Event) (Event, error) { return newEvent(string(fact.Kind), fact) }

func newEvent(kind string, data any) (Event, error) {
	text, err := jsontext.Marshal(data)
	if err != nil {
		return Event{}, guideway.Errorf(guideway.CodeInvalid, "the %s cannot be encoded as JSON: %w", kind, err)
	}
	return Event{Kind: kind, Data: text}, nil
}
