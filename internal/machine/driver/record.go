package driver

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/compress"
	"github.com/guideway-dev/guideway/internal/engine"
	machinedef "github.com/guideway-dev/guideway/internal/machine/definition"
	machineengine "github.com/guideway-dev/guideway/internal/machine/engine"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"github.com/guideway-dev/guideway/internal/platform/shortid"
	"github.com/guideway-dev/guideway/internal/platform/words"
	"github.com/guideway-dev/guideway/internal/run"
)

// RunPrefix is the prefix of the ids of machine runs.
const RunPrefix = "m_"

func newRunID(now time.Time) string { return shortid.Timed(RunPrefix, now) }

// subRunID returns the id of a sub-machine's run. It is deterministic, so that it is the
// same after a crash.
func subRunID(parent string, seq int64) string {
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(seq))
	sum := sha256.Sum256(append([]byte(parent), n[:]...))
	return RunPrefix + shortid.Spell(sum[:14])
}

// estimate is a Counter that estimates tokens from the length of a text.
type estimate struct{}

// Count implements machineengine.Counter.
func (estimate) Count(text string) int { return compress.Estimate(text) }

// The kinds of the driver's events.
const (
	// KindLeaseTaken and KindLeaseReleased are written when an instance takes or releases the
	// lease of a run.
	KindLeaseTaken    = "lease_taken"
	KindLeaseReleased = "lease_released"
)

// Lease is the content of a lease event.
type Lease struct {
	Owner string `json:"owner"`
	// WaitsForChild is set in a release if the run waits for a sub-machine.
	WaitsForChild bool `json:"rests,omitempty"`
}

// loaded is a run with its state at an event, and the events not yet in the journal.
type loaded struct {
	rec     run.Record
	created run.Created
	program *machineengine.Program
	state   machineengine.State
	head    []byte
	seq     int64
	// lease is the current lease, or nil.
	lease *Lease
	// drive and job are stored with the buffer.
	drive *run.DriveChange
	job   *run.Job
	// request is the id of the start request, or "".
	request string
	// waitsForChild is set if the run waits for a sub-machine.
	waitsForChild bool
	// buffer holds events that were applied to the state but not appended to the journal.
	buffer []run.Event
	// pending is the number of buffered events up to the last result. These events are
	// appended before the next external call, even after an error.
	pending int
}

// runScope returns the scope of the run's models and tools.
func (l *loaded) runScope() RunScope {
	scope := RunScope{User: l.rec.User, Run: l.rec.ID, Machine: l.rec.Workflow, Demo: l.state.Demo, Allow: l.state.Allow, Guided: l.state.Guided, State: l.state.At}
	if s := l.program.State(l.state.At); s != nil {
		scope.Policy = s.Tools
	}
	return scope
}

// newEvent returns a journal event.
func newEvent(kind string, data any) (run.Event, error) {
	text, err := jsontext.Marshal(data)
	if err != nil {
		return run.Event{}, guideway.Errorf(guideway.CodeInternal, "the %s cannot be encoded as JSON: %w", kind, err)
	}
	return run.Event{Kind: kind, Data: text}, nil
}

// addEvent applies an event to the state and buffers it for the journal.
func (l *loaded) addEvent(e machineengine.Event) error {
	ev, err := newEvent(string(e.Kind), e)
	if err != nil {
		return err
	}
	// Fold the event as decoded from JSON, so that the state is the same as after loading
	// the journal, even for values that JSON changes.
	var again machineengine.Event
	if err := json.Unmarshal(ev.Data, &again); err != nil {
		return guideway.Errorf(guideway.CodeInternal, "the encoded %s cannot be decoded: %w", e.Kind, err)
	}
	l.program.Apply(&l.state, again)
	l.buffer = append(l.buffer, ev)
	return nil
}

// addLeaseEvent buffers a lease event.
func (l *loaded) addLeaseEvent(kind string, lease Lease) error {
	ev, err := newEvent(kind, lease)
	if err == nil {
		l.buffer = append(l.buffer, ev)
		l.waitsForChild = lease.WaitsForChild
	}
	return err
}

// flushEvents appends the buffered events to the journal.
func (s *Service) flushEvents(ctx context.Context, l *loaded, by run.By) error {
	if len(l.buffer) == 0 {
		return nil
	}
	at := s.clock()
	if at.Before(l.rec.Updated) { // the clock was set back, or the previous event is from another machine
		at = l.rec.Updated
	}
	for i := range l.buffer {
		if l.buffer[i].By == (run.By{}) {
			l.buffer[i].At, l.buffer[i].By = at, by
		}
	}
	rec := l.rec
	c := run.Commit{Expected: l.seq, Events: l.buffer, Drive: l.drive, Job: l.job}
	head, err := s.o.Key.ChainEvents(ctx, s.o.Journal, rec.ID, l.seq, l.head, l.buffer)
	if err != nil {
		return err
	}
	rec.Seq, rec.Head = l.seq+int64(len(l.buffer)), head
	for i := range l.buffer { // the buffer of a fork contains older events of the original run
		if l.buffer[i].At.After(rec.Updated) {
			rec.Updated = l.buffer[i].At
		}
	}
	l.fillRecord(&rec)
	c.Record = rec
	if c.Expected == 0 {
		c.Handle, c.Record.Handle = rec.Handle, rec.Handle
		c.Key, c.Terms = l.request, words.Of(rec.SearchText())
		err = s.o.Journal.Create(ctx, run.Definition{Hash: rec.Hash, Text: l.program.Canonical}, c)
	} else {
		err = s.o.Journal.Append(ctx, c)
	}
	if err != nil {
		return err
	}
	for _, e := range l.buffer {
		l.noteLease(e)
	}
	l.rec, l.head, l.seq, l.buffer, l.pending, l.drive, l.job = rec, head, rec.Seq, nil, 0, nil, nil
	if s.o.Heads != nil {
		if err := s.o.Heads.Record(rec.ID, rec.Seq, rec.Head); err != nil {
			s.o.Logger.WarnContext(ctx, "cannot record the last event of a run: if an older copy of the store is restored, Guideway may not detect the restore", "run", rec.ID, "error", err)
		}
	}
	return nil
}

// noteLease updates the lease from an event.
func (l *loaded) noteLease(e run.Event) {
	switch e.Kind {
	case KindLeaseTaken, KindLeaseReleased:
		var lease Lease
		if json.Unmarshal(e.Data, &lease) != nil {
			return
		}
		l.lease, l.waitsForChild = &lease, lease.WaitsForChild
		if e.Kind == KindLeaseReleased {
			l.lease = nil
		}
	}
}

// fillRecord writes the status and position of the run to its record.
func (l *loaded) fillRecord(r *run.Record) {
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
		if l.waitsForChild {
			r.Status, r.Kind = engine.StatusWaiting, engine.PositionGate
		}
	}
	r.Step, r.Title, r.Done, r.Person = st.At, string(st.Status), st.Usage.States, false
	if ask := l.program.State(st.At); ask != nil && ask.Ask != nil && st.Status == machineengine.StatusWaiting {
		r.Person = ask.Ask.Person
	}
}

// eventPage is the number of events per read.
const eventPage = 500

// loadRun reads a run that a user may use and verifies its chain. Another run is treated as
// missing. upTo is the last event to fold; 0 means all.
func (s *Service) loadRun(ctx context.Context, user, id string, upTo int64) (*loaded, []run.Event, error) {
	rec, err := s.o.Journal.Run(ctx, id)
	unknown := &run.Refusal{
		Code: guideway.CodeNotFound, Rule: run.RuleUnknownRun, Given: run.Truncate(id, 64), Message: fmt.Sprintf("there is no machine run %q", run.Truncate(id, 64)),
		Fix: "use a run id that machine_start returned; `guideway machine status` lists the machine runs in a terminal",
	}
	if guideway.ErrorCode(err) == guideway.CodeNotFound || err == nil && !s.o.Shares.MayUse(user, rec.User, rec.Project.ID) {
		return nil, nil, unknown
	}
	if err != nil {
		return nil, nil, err
	}
	l := &loaded{rec: rec, head: s.o.Key.Root(id)}
	if l.program, err = s.cachedProgram(ctx, rec.Hash); err != nil {
		return nil, nil, err
	}
	if upTo == 0 || upTo > rec.Seq {
		upTo = rec.Seq
	}
	var all []run.Event
	for l.seq < upTo {
		events, err := s.o.Journal.Events(ctx, id, l.seq, int(min(eventPage, upTo-l.seq)))
		if err != nil {
			return nil, nil, err
		}
		if len(events) == 0 {
			return nil, nil, untrustedEventError(id, l.seq+1, "the event is missing")
		}
		for _, e := range events {
			if err := s.verifyAndFold(l, e); err != nil {
				return nil, nil, err
			}
		}
		all = append(all, events...)
	}
	if upTo == rec.Seq && !hmac.Equal(l.head, rec.Head) {
		return nil, nil, untrustedEventError(id, rec.Seq, "the record of the run does not match its last event")
	}
	if rec.User != user && l.created.Project.ID != rec.Project.ID { // the record was edited
		return nil, nil, unknown
	}
	return l, all, nil
}

// verifyAndFold verifies and folds the next event of a run.
func (s *Service) verifyAndFold(l *loaded, e run.Event) error {
	head := s.o.Key.Chain(l.rec.ID, l.head, e)
	switch {
	case e.Seq != l.seq+1:
		return untrustedEventError(l.rec.ID, l.seq+1, "the event is missing")
	case !hmac.Equal(e.MAC, head):
		return untrustedEventError(l.rec.ID, e.Seq, "the event was changed outside Guideway")
	}
	l.seq, l.head = e.Seq, e.MAC
	if e.Kind == run.KindCreated {
		l.noteLease(e)
		if json.Unmarshal(e.Data, &l.created) != nil {
			return untrustedEventError(l.rec.ID, e.Seq, "the event cannot be decoded")
		}
		if l.created.Hash != l.rec.Hash || e.By.User != l.rec.User {
			return untrustedEventError(l.rec.ID, e.Seq, "the record of the run differs from the event")
		}
		return nil
	}
	if err := l.foldEvent(e); err != nil {
		return untrustedEventError(l.rec.ID, e.Seq, err.Error())
	}
	return nil
}

// maxPrograms limits the cached definitions.
const maxPrograms = 64

// cachedProgram returns a compiled definition from the cache, or else from the journal.
// Definitions are immutable and identified by their hash.
func (s *Service) cachedProgram(ctx context.Context, hash string) (*machineengine.Program, error) {
	s.mu.Lock()
	p := s.programs[hash]
	s.mu.Unlock()
	if p != nil {
		return p, nil
	}
	p, err := s.pinnedProgram(ctx, hash)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.programs) >= maxPrograms { // definitions in use are cached again at their next use
		clear(s.programs)
	}
	s.programs[hash] = p
	return p, nil
}

// pinnedProgram reads a definition from the journal.
func (s *Service) pinnedProgram(ctx context.Context, hash string) (*machineengine.Program, error) {
	stored, err := s.o.Journal.Definition(ctx, hash)
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "read the stored definition %s of the machine: %w", hash, err).
			WithFix("guideway runs verify")
	}
	d, err := machinedef.Pinned(stored.Text)
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "the stored definition %s of the machine cannot be loaded: %w", hash, err).
			WithFix("guideway runs verify")
	}
	if d.Hash != hash {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "the text of the stored definition %s of the machine does not have this hash", hash).
			WithFix("guideway runs verify")
	}
	return machineengine.Compile(d), nil
}

// errUntrusted is the cause of the errors of untrustedEventError.
var errUntrusted = errors.New("cannot be trusted")

// untrustedEventError returns the error for a run with an invalid event.
func untrustedEventError(id string, seq int64, why string) error {
	return guideway.Errorf(guideway.CodeUnavailable, "event %d of run %s %w: %s", seq, id, errUntrusted, why).
		WithFix("guideway runs verify %s", id)
}
