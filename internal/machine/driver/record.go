package driver

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/compress"
	"github.com/guideway-dev/guideway/internal/engine"
	machinedef "github.com/guideway-dev/guideway/internal/machine/definition"
	machineengine "github.com/guideway-dev/guideway/internal/machine/engine"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"github.com/guideway-dev/guideway/internal/platform/shortid"
	"github.com/guideway-dev/guideway/internal/run"
)

// RunPrefix begins the ids of runs of machines.
const RunPrefix = "m_"

func newRunID(now time.Time) string { return shortid.Timed(RunPrefix, now) }

// subRunID is the id of the run of a machine within a run: the same after a crash.
func subRunID(parent string, seq int64) string {
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(seq))
	sum := sha256.Sum256(append([]byte(parent), n[:]...))
	return RunPrefix + shortid.Spell(sum[:14])
}

// estimate counts tokens by their usual length.
type estimate struct{}

// Count implements machineengine.Counter.
func (estimate) Count(text string) int { return compress.Estimate(text) }

// The kinds of events that are the driver's own.
const (
	// KindLeaseTaken says who drives the run from here on, KindLeaseKept that it
	// still does, and KindLeaseReleased that nobody does.
	KindLeaseTaken    = "lease_taken"
	KindLeaseKept     = "lease_kept"
	KindLeaseReleased = "lease_released"
)

// Lease is the data of an event of a lease.
type Lease struct {
	Owner string `json:"owner"`
	// Until is when the lease ends, unless an event comes before.
	Until time.Time `json:"until"`
	// Rests says of one that is released that the run waits for a machine within.
	Rests bool `json:"rests,omitempty"`
}

// loaded is a run with its state at an event.
type loaded struct {
	rec     run.Record
	created run.Created
	program *machineengine.Program
	state   machineengine.State
	head    []byte
	seq     int64
	// lease is the one that holds, seen when it was last kept.
	lease *Lease
	seen  time.Time
	// request is the id of the request that begins the run, "" if it has none.
	request string
	// resting says that the run waits for a machine within it.
	resting bool
	// buffer are events that the state has had and the journal has not.
	buffer []run.Event
	// owed is how many of them, from the first, end with a result that was paid
	// for: they are kept before anything else is done outside, and whatever else
	// fails.
	owed int
}

// purpose is what models and tools of the run are wanted for.
func (l *loaded) purpose() For {
	return For{User: l.rec.User, Run: l.rec.ID, Machine: l.rec.Workflow, Demo: l.state.Demo, Allow: l.state.Allow}
}

// newEvent makes a journal's event.
func newEvent(kind string, data any) (run.Event, error) {
	text, err := jsontext.Marshal(data)
	if err != nil {
		return run.Event{}, guideway.Errorf(guideway.CodeInternal, "the %s cannot be written as JSON: %w", kind, err)
	}
	return run.Event{Kind: kind, Data: text}, nil
}

// add takes an event of the engine: the state has it at once, the journal with the
// next flush.
func (l *loaded) add(e machineengine.Event) error {
	ev, err := newEvent(string(e.Kind), e)
	if err != nil {
		return err
	}
	// What is folded is what was written: a value that JSON changes is changed
	// now, and not at the next load only.
	var again machineengine.Event
	if err := json.Unmarshal(ev.Data, &again); err != nil {
		return guideway.Errorf(guideway.CodeInternal, "the %s cannot be read back: %w", e.Kind, err)
	}
	l.program.Apply(&l.state, again)
	l.buffer = append(l.buffer, ev)
	return nil
}

// mark takes an event of the driver's own.
func (l *loaded) mark(kind string, lease Lease) error {
	ev, err := newEvent(kind, lease)
	if err == nil {
		l.buffer = append(l.buffer, ev)
		l.resting = lease.Rests
	}
	return err
}

// flush appends the events that the journal has not.
func (s *Service) flush(ctx context.Context, l *loaded, by run.By) error {
	if len(l.buffer) == 0 {
		return nil
	}
	at := s.clock()
	if at.Before(l.rec.Updated) { // the clock was set back, or is another machine's
		at = l.rec.Updated
	}
	for i := range l.buffer {
		if l.buffer[i].By == (run.By{}) {
			l.buffer[i].At, l.buffer[i].By = at, by
		}
	}
	rec := l.rec
	c := run.Commit{Expected: l.seq, Events: l.buffer}
	head := l.head
	for i := range l.buffer {
		e := &l.buffer[i]
		e.Seq = l.seq + int64(i) + 1
		head = s.o.Key.Chain(rec.ID, head, *e)
		e.MAC = head
	}
	rec.Seq, rec.Head = l.seq+int64(len(l.buffer)), head
	for i := range l.buffer { // a fork has events that are older than itself
		if l.buffer[i].At.After(rec.Updated) {
			rec.Updated = l.buffer[i].At
		}
	}
	l.describe(&rec)
	c.Record = rec
	var err error
	if c.Expected == 0 {
		c.Handle, c.Record.Handle = rec.Handle, rec.Handle
		c.Key = l.request
		err = s.o.Journal.Create(ctx, run.Definition{Hash: rec.Hash, Text: l.program.Canonical}, c)
	} else {
		err = s.o.Journal.Append(ctx, c)
	}
	if err != nil {
		return err
	}
	for _, e := range l.buffer {
		l.note(e)
	}
	l.rec, l.head, l.seq, l.buffer, l.owed = rec, head, rec.Seq, nil, 0
	if s.o.Heads != nil {
		if err := s.o.Heads.Record(rec.ID, rec.Seq, rec.Head); err != nil {
			s.o.Logger.WarnContext(ctx, "the head of a run could not be noted; a rollback to before it would not be detected", "run", rec.ID, "error", err)
		}
	}
	return nil
}

// note keeps what an event says about the lease.
func (l *loaded) note(e run.Event) {
	switch e.Kind {
	case KindLeaseTaken, KindLeaseKept, KindLeaseReleased:
		var lease Lease
		if json.Unmarshal(e.Data, &lease) != nil {
			return
		}
		l.lease, l.seen, l.resting = &lease, e.At, lease.Rests
		if e.Kind == KindLeaseReleased {
			l.lease = nil
		}
	default:
		if e.By.Via == run.ViaServer {
			l.seen = e.At
		}
	}
}

// describe puts where a run stands into its record.
func (l *loaded) describe(r *run.Record) {
	st := &l.state
	switch st.Status {
	case machineengine.StatusCompleted:
		r.Status, r.Kind = engine.StatusCompleted, engine.PositionEnd
	case machineengine.StatusCancelled:
		r.Status, r.Kind = engine.StatusAborted, engine.PositionEnd
	case machineengine.StatusWaiting, machineengine.StatusPaused:
		r.Status, r.Kind = engine.StatusWaiting, engine.PositionGate
	default:
		r.Status, r.Kind = engine.StatusRunning, engine.PositionStep
		if l.resting {
			r.Status, r.Kind = engine.StatusWaiting, engine.PositionGate
		}
	}
	r.Step, r.Title, r.Done, r.Person = st.At, string(st.Status), st.Spent.States, false
	if ask := l.program.State(st.At); ask != nil && ask.Ask != nil && st.Status == machineengine.StatusWaiting {
		r.Person = ask.Ask.Person
	}
}

// page is how many events are read at once.
const page = 500

// load reads a run of a user's, and checks its chain. What is somebody else's is
// not there. upTo bounds the events that are folded; 0 is all.
func (s *Service) load(ctx context.Context, user, id string, upTo int64) (*loaded, []run.Event, error) {
	rec, err := s.o.Journal.Run(ctx, id)
	if guideway.ErrorCode(err) == guideway.CodeNotFound || err == nil && rec.User != user {
		return nil, nil, &run.Refusal{
			Code: guideway.CodeNotFound, Rule: run.RuleUnknownRun, Given: cut(id, 64), Message: "there is no such run of a machine",
			Fix: "guideway machine status lists them",
		}
	}
	if err != nil {
		return nil, nil, err
	}
	l := &loaded{rec: rec, head: s.o.Key.Root(id)}
	if l.program, err = s.program(ctx, rec.Hash); err != nil {
		return nil, nil, err
	}
	if upTo == 0 || upTo > rec.Seq {
		upTo = rec.Seq
	}
	var all []run.Event
	for l.seq < upTo {
		events, err := s.o.Journal.Events(ctx, id, l.seq, int(min(page, upTo-l.seq)))
		if err != nil {
			return nil, nil, err
		}
		if len(events) == 0 {
			return nil, nil, broken(id, l.seq+1, "it is missing")
		}
		for _, e := range events {
			if err := s.fold(l, e); err != nil {
				return nil, nil, err
			}
		}
		all = append(all, events...)
	}
	if upTo == rec.Seq && !hmac.Equal(l.head, rec.Head) {
		return nil, nil, broken(id, rec.Seq, "the run's record names another one")
	}
	return l, all, nil
}

// fold takes the next event of a run.
func (s *Service) fold(l *loaded, e run.Event) error {
	head := s.o.Key.Chain(l.rec.ID, l.head, e)
	switch {
	case e.Seq != l.seq+1:
		return broken(l.rec.ID, l.seq+1, "it is missing")
	case !hmac.Equal(e.MAC, head):
		return broken(l.rec.ID, e.Seq, "it is not what was written")
	}
	l.seq, l.head = e.Seq, e.MAC
	if e.Kind == run.KindCreated {
		l.note(e)
		if json.Unmarshal(e.Data, &l.created) != nil || l.created.Hash != l.rec.Hash || e.By.User != l.rec.User {
			return broken(l.rec.ID, e.Seq, "the record of the run says something else")
		}
		return nil
	}
	if err := l.take(e); err != nil {
		return broken(l.rec.ID, e.Seq, err.Error())
	}
	return nil
}

// maxPrograms bounds the definitions that are kept ready.
const maxPrograms = 64

// program gives a definition that is ready to run: the one that was read before, or
// that of the journal. Nothing changes it, and its hash says what it is.
func (s *Service) program(ctx context.Context, hash string) (*machineengine.Program, error) {
	s.mu.Lock()
	p := s.programs[hash]
	s.mu.Unlock()
	if p != nil {
		return p, nil
	}
	p, err := s.pinned(ctx, hash)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.programs) >= maxPrograms { // those in use come back with their next run
		clear(s.programs)
	}
	s.programs[hash] = p
	return p, nil
}

// pinned reads a definition from the journal.
func (s *Service) pinned(ctx context.Context, hash string) (*machineengine.Program, error) {
	stored, err := s.o.Journal.Definition(ctx, hash)
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "read the pinned machine %s: %w", hash, err)
	}
	d, err := machinedef.Pinned(stored.Text)
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "the pinned machine %s does not read: %w", hash, err)
	}
	if d.Hash != hash {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "the pinned machine %s was changed", hash)
	}
	return machineengine.Compile(d), nil
}

// broken says that a run cannot be loaded because of one of its events.
func broken(id string, seq int64, why string) error {
	return guideway.Errorf(guideway.CodeUnavailable, "event %d of run %s cannot be trusted: %s", seq, id, why)
}

// cut shortens a text.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && text[most]&0xC0 == 0x80 {
		most--
	}
	return text[:most]
}
