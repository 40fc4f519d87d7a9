package run

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"maps"
	"slices"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/platform/ctxsleep"
)

// Key authenticates the chains of a journal. It is stored outside of the journal, so that
// an editor of the database cannot forge events.
type Key []byte

// KeySize is the length of a key in bytes.
const KeySize = sha256.Size

// Root returns the value that the first event of a run is chained to.
func (k Key) Root(run string) []byte {
	return k.computeMAC("guideway run 1", func(h hash.Hash) { writeField(h, []byte(run)) })
}

// Chain returns the MAC of an event that follows an event with the MAC prev.
func (k Key) Chain(run string, prev []byte, e Event) []byte {
	return k.computeMAC("guideway event 1", func(h hash.Hash) {
		writeField(h, prev)
		writeField(h, []byte(run))
		writeNumber(h, e.Seq)
		writeNumber(h, e.At.UnixMicro())
		writeField(h, []byte(e.Kind))
		writeField(h, []byte(e.By.User))
		writeField(h, []byte(e.By.Client))
		writeField(h, []byte(e.By.Via))
		if e.Sealed != nil {
			writeField(h, e.Sealed)
		} else {
			writeField(h, e.Data)
		}
	})
}

// snapshotMAC returns the MAC of a snapshot. It covers the owner, the workflow and the
// definition of the run, so that no snapshot is valid for an edited record. Snapshots of
// version 1 are not used: their states lack engine.State.Before.
func (k Key) snapshotMAC(r Record, s Snapshot) []byte {
	return k.computeMAC("guideway snapshot 2", func(h hash.Hash) {
		writeField(h, []byte(r.ID))
		writeField(h, []byte(r.User))
		writeField(h, []byte(r.Workflow))
		writeField(h, []byte(r.Hash))
		writeNumber(h, s.Seq)
		writeField(h, s.Head)
		writeField(h, s.State)
	})
}

// computeMAC authenticates the output of write. The purpose separates the kinds of values.
func (k Key) computeMAC(purpose string, write func(hash.Hash)) []byte {
	h := hmac.New(sha256.New, k)
	writeField(h, []byte(purpose))
	write(h)
	return h.Sum(nil)
}

// writeField writes a value with its length, so that different lists of fields have
// different bytes.
func writeField(h hash.Hash, value []byte) {
	writeNumber(h, int64(len(value)))
	h.Write(value)
}

func writeNumber(h hash.Hash, n int64) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(n))
	h.Write(b[:])
}

// Sealer is a Journal that encrypts the data of events. The chain covers the ciphertext, so
// it can be verified without the key of the encryption.
type Sealer interface {
	// SealEvents sets Sealed of numbered events of a run.
	SealEvents(ctx context.Context, run string, events []Event) error
	// StoredEvents is Log.Events without decryption: an encrypted event has no Data.
	StoredEvents(ctx context.Context, run string, after int64, limit int) ([]Event, error)
}

// ChainEvents numbers, encrypts and chains events that follow event seq of a run, whose MAC
// is head. It changes the events in place and returns the MAC of the last one.
func (k Key) ChainEvents(ctx context.Context, j Journal, run string, seq int64, head []byte, events []Event) ([]byte, error) {
	for i := range events {
		events[i].Seq, events[i].Sealed = seq+int64(i)+1, nil // an event copied from another run was encrypted with another key
	}
	if s, ok := j.(Sealer); ok {
		if err := s.SealEvents(ctx, run, events); err != nil {
			return nil, err
		}
	}
	for i := range events {
		head = k.Chain(run, head, events[i])
		events[i].MAC = head
	}
	return head, nil
}

// equalMAC compares in constant time.
func equalMAC(a, b []byte) bool { return hmac.Equal(a, b) }

// Verify checks one run, or all runs of all users: each event against the previous one, the
// last event against the separately stored heads, the pinned definition, and the record.
// Broken links are reported and not returned as an error.
func (s *Service) Verify(ctx context.Context, runID string) (*Report, error) {
	if err := s.openJournal(ctx); err != nil {
		return nil, err
	}
	return s.newVerifier().Verify(ctx, runID)
}

// AcceptRestore replaces the heads by the current journal after a deliberate restore.
// Events that the restore lost are no longer reported.
func (s *Service) AcceptRestore(ctx context.Context) error {
	if err := s.openJournal(ctx); err != nil {
		return err
	}
	return s.newVerifier().AcceptRestore(ctx)
}

// FollowHeads is Verifier.FollowHeads, as soon as the journal opens.
func (s *Service) FollowHeads(ctx context.Context) {
	for s.openJournal(ctx) != nil {
		if ctxsleep.For(ctx, headInterval) != nil {
			return
		}
	}
	s.newVerifier().FollowHeads(ctx, s.log)
}

func (s *Service) newVerifier() *Verifier {
	return &Verifier{Journal: s.journal, Key: s.key, Heads: s.heads, Now: s.currentTime, Follow: s.newFollower}
}

// newFollower implements Verifier.Follow for guided runs.
func (s *Service) newFollower(ctx context.Context, rec Record) (Follower, error) {
	program, err := s.compiledProgram(ctx, rec.Hash)
	if err != nil {
		return nil, err
	}
	return &guidedFollower{loadedRun{program: program}}, nil
}

// guidedFollower follows a guided run.
type guidedFollower struct{ loaded loadedRun }

func (g *guidedFollower) Event(e Event) error {
	fact, ok, err := parseFact(e)
	if err == nil && ok {
		g.loaded.state, err = g.loaded.program.FoldFrom(g.loaded.state, []engine.Event{fact})
	}
	return err
}

func (g *guidedFollower) Describe(r *Record) {
	updateRecord(r, &g.loaded, g.loaded.program.PositionOf(g.loaded.state))
}

// Follower follows one run from its first event on.
type Follower interface {
	// Event applies the next event, whose MAC is valid. It returns an error if the event is
	// not possible at the current position.
	Event(e Event) error
	// Describe stores the current position in the record.
	Describe(r *Record)
}

// Verifier checks a journal with runs of any kind. All fields except Heads are required.
type Verifier struct {
	Journal Journal
	Key     Key
	// Heads may be nil. Then removed events at the end of a run are not detected.
	Heads Heads
	Now   func() time.Time
	// Follow returns the follower of a run. It returns CodeUnavailable or CodeNotFound for
	// an error of the pinned definition.
	Follow func(ctx context.Context, r Record) (Follower, error)
}

// Verify checks the chains of all runs, or of one.
func (v *Verifier) Verify(ctx context.Context, runID string) (*Report, error) {
	heads := map[string]Head{}
	report := &Report{Faults: []Fault{}}
	begun := v.Now()
	if v.Heads != nil {
		known, err := v.Heads.Heads()
		if err != nil && guideway.ErrorCode(err) != guideway.CodeInvalid {
			return nil, err
		}
		if err != nil {
			report.Faults = append(report.Faults, Fault{Kind: FaultHeads, Message: err.Error()})
		}
		heads = known
	}
	seen := map[string]bool{}
	visit := func(rec Record) error {
		seen[rec.ID] = true
		report.Runs++
		head, known := heads[rec.ID]
		n, fault, err := v.verifyRun(ctx, rec, head, known)
		report.Events += n
		if fault != nil {
			report.Faults = append(report.Faults, *fault)
		}
		return err
	}
	if err := v.visitRuns(ctx, runID, visit); err != nil {
		return nil, err
	}
	// A run that changes during the verification changes its place in the list and may have
	// been missed.
	if runID == "" {
		if err := v.visitSince(ctx, begun, seen, visit); err != nil {
			return nil, err
		}
	}
	for _, id := range slices.Sorted(maps.Keys(heads)) {
		if seen[id] || runID != "" && runID != id {
			continue
		}
		err := v.visitRuns(ctx, id, visit)
		if err != nil {
			return nil, err
		}
		if !seen[id] {
			report.Faults = append(report.Faults, Fault{
				Run: id, Seq: 1, Kind: FaultMissing,
				Message: fmt.Sprintf("the run is missing from the journal; its last known event was %d", heads[id].Seq),
			})
		}
	}
	if runID != "" && report.Runs == 0 && len(report.Faults) == 0 {
		return nil, guideway.Errorf(guideway.CodeNotFound, "there is no run %q", Truncate(runID, maxHandle)).WithFix("guideway runs list")
	}
	return report, nil
}

// visitSince visits the runs that changed since a time and are not in seen.
func (v *Verifier) visitSince(ctx context.Context, since time.Time, seen map[string]bool, visit func(Record) error) error {
	const skew = 10 * time.Minute // skew is the maximum difference between the clocks of machines
	return v.visitPages(ctx, Filter{Since: since.Add(-skew)}, func(rec Record) error {
		if seen[rec.ID] {
			return nil
		}
		return visit(rec)
	})
}

// AcceptRestore replaces the heads by the current journal.
func (v *Verifier) AcceptRestore(ctx context.Context) error {
	if v.Heads == nil {
		return guideway.Errorf(guideway.CodeInvalid, "the journal has no head file")
	}
	begun, seen := v.Now(), map[string]bool{}
	heads := map[string]Head{}
	visit := func(rec Record) error {
		seen[rec.ID] = true
		heads[rec.ID] = Head{Seq: rec.Seq, MAC: rec.Head}
		return nil
	}
	if err := v.visitRuns(ctx, "", visit); err != nil {
		return err
	}
	if err := v.visitSince(ctx, begun, seen, visit); err != nil {
		return err
	}
	return v.Heads.Replace(heads)
}

// visitRuns visits one run or all runs.
func (v *Verifier) visitRuns(ctx context.Context, id string, visit func(Record) error) error {
	if id != "" {
		rec, err := v.Journal.Run(ctx, id)
		if guideway.ErrorCode(err) == guideway.CodeNotFound {
			return nil // the heads may still contain the run
		}
		if err != nil {
			return err
		}
		return visit(rec)
	}
	return v.visitPages(ctx, Filter{}, visit)
}

// visitPages visits the runs that a filter selects.
func (v *Verifier) visitPages(ctx context.Context, f Filter, visit func(Record) error) error {
	f.Limit = pageSize
	for {
		runs, err := v.Journal.Runs(ctx, f)
		if err != nil {
			return err
		}
		for _, rec := range runs {
			if err := visit(rec); err != nil {
				return err
			}
		}
		if len(runs) < f.Limit {
			return nil
		}
		f.Before = &runs[len(runs)-1]
	}
}

// verifyRun checks one run, including events appended during the check.
func (v *Verifier) verifyRun(ctx context.Context, rec Record, head Head, known bool) (int64, *Fault, error) {
	w := &chainCheck{key: v.Key, rec: rec, head: head, mac: v.Key.Root(rec.ID)}
	var err error
	w.follower, err = v.Follow(ctx, rec)
	if guideway.ErrorCode(err) == guideway.CodeUnavailable || guideway.ErrorCode(err) == guideway.CodeNotFound {
		return 0, w.newFault(1, FaultDefinition, "%s", err.Error()), nil
	}
	if err != nil {
		return 0, nil, err
	}
	for {
		events, err := v.readEvents(ctx, rec.ID, w.seq)
		if err != nil {
			return w.seq, nil, err
		}
		for _, e := range events {
			if f := w.checkEvent(e); f != nil {
				return w.seq, f, nil
			}
		}
		if len(events) < pageSize {
			break
		}
	}
	now, err := v.Journal.Run(ctx, rec.ID)
	if err != nil && guideway.ErrorCode(err) != guideway.CodeNotFound {
		return w.seq, nil, err
	}
	return w.seq, w.checkEnd(now, known), nil
}

// readEvents reads the next events of a run. If the key of their encryption is missing, they
// have no Data.
func (v *Verifier) readEvents(ctx context.Context, id string, after int64) ([]Event, error) {
	events, err := v.Journal.Events(ctx, id, after, pageSize)
	if s, ok := v.Journal.(Sealer); ok && guideway.ErrorCode(err) == guideway.CodeUnavailable {
		return s.StoredEvents(ctx, id, after, pageSize)
	}
	return events, err
}

// chainCheck is the verification of one run.
type chainCheck struct {
	key      Key
	rec      Record
	head     Head
	follower Follower
	// seq and mac belong to the last checked event.
	seq int64
	mac []byte
	// locked reports that an event cannot be decrypted, so that only the chain is checked.
	locked bool
	// derived is the record derived from the checked events.
	derived Record
	// atRecord and atHead are the MACs of the events that the record and the head name.
	atRecord, atHead []byte
}

func (w *chainCheck) newFault(seq int64, kind FaultKind, format string, args ...any) *Fault {
	return &Fault{Run: w.rec.ID, Seq: seq, Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// checkEvent checks the next event: its number, its MAC, and that it is possible after the
// previous ones.
func (w *chainCheck) checkEvent(e Event) *Fault {
	if e.Seq != w.seq+1 {
		return w.newFault(w.seq+1, FaultGap, "event %d is missing, but later events exist", w.seq+1)
	}
	if !equalMAC(e.MAC, w.key.Chain(w.rec.ID, w.mac, e)) {
		return w.newFault(e.Seq, FaultEdited, "event %d (%s) was changed outside Guideway", e.Seq, e.Kind)
	}
	w.locked = w.locked || e.Sealed != nil && e.Data == nil
	if f := w.followEvent(e); f != nil {
		return f
	}
	w.seq, w.mac = e.Seq, e.MAC
	w.derived.Seq, w.derived.Head = e.Seq, e.MAC
	if e.At.After(w.derived.Updated) {
		w.derived.Updated = e.At
	}
	if e.Seq == w.rec.Seq {
		w.atRecord = e.MAC
	}
	if e.Seq == w.head.Seq {
		w.atHead = e.MAC
	}
	for _, h := range w.head.Witnesses {
		if h.Seq == e.Seq && !equalMAC(h.MAC, e.MAC) {
			return w.newFault(e.Seq, FaultReplaced, "event %d was replaced: the run was continued from an older copy", e.Seq)
		}
	}
	return nil
}

// followEvent checks that the next event is possible, unless an event up to it is encrypted
// and cannot be decrypted.
func (w *chainCheck) followEvent(e Event) *Fault {
	if w.locked {
		return nil
	}
	if e.Seq == 1 {
		c, err := parseCreated(w.rec, e)
		if err != nil {
			return w.newFault(1, FaultRecord, "event 1 (%s): %s", e.Kind, err.Error())
		}
		w.derived = InitialRecord(w.rec.ID, c, e)
	}
	if err := w.follower.Event(e); err != nil {
		return w.newFault(e.Seq, FaultEdited, "event %d (%s): %s", e.Seq, e.Kind, err.Error())
	}
	return nil
}

// checkEnd checks the last event against the head and the record. now is the record after
// the check.
func (w *chainCheck) checkEnd(now Record, known bool) *Fault {
	switch {
	case known && w.seq < w.head.Seq:
		return w.newFault(w.seq+1, FaultTruncated, "the last event was %d and is now %d: events were removed, or the database is an older copy", w.head.Seq, w.seq)
	case known && !equalMAC(w.atHead, w.head.MAC):
		return w.newFault(w.head.Seq, FaultReplaced, "event %d was replaced: the run was continued from an older copy", w.head.Seq)
	case w.seq < w.rec.Seq:
		return w.newFault(w.seq+1, FaultTruncated, "the last event is %d in the record of the run, but %d in the log", w.rec.Seq, w.seq)
	case !equalMAC(w.atRecord, w.rec.Head):
		return w.newFault(w.rec.Seq, FaultRecord, "the record of the run does not match its last event")
	case now.Seq < w.seq:
		return w.newFault(now.Seq+1, FaultRecord, "the last event is %d in the record of the run, but %d in the log", now.Seq, w.seq)
	}
	if now.Seq != w.seq || w.locked {
		return nil // events were appended during the check, or cannot be decrypted
	}
	w.follower.Describe(&w.derived)
	if field := differingField(w.derived, now); field != "" {
		return w.newFault(w.seq, FaultRecord, "the %s in the record of the run does not match its events", field)
	}
	return nil
}

// InitialRecord returns the record of a run after its first event.
func InitialRecord(id string, c Created, e Event) Record {
	return Record{
		ID: id, User: e.By.User, Client: e.By.Client,
		Workflow: c.Workflow, Name: c.Name, Version: c.Version, Hash: c.Hash,
		Goal: c.Goal, Project: c.Project, Parent: c.Parent, ParentSeq: c.ParentSeq, Created: e.At, Updated: e.At,
	}
}

// differingField returns the first field in which two records of a run differ, except the
// handle, which does not depend on the events.
func differingField(a, b Record) string {
	for _, field := range []struct {
		name string
		same bool
	}{
		{"goal", a.Goal == b.Goal},
		{"client", a.Client == b.Client},
		{"workflow's name", a.Name == b.Name},
		{"version", a.Version == b.Version},
		{"project", a.Project == b.Project},
		{"parent", a.Parent == b.Parent && a.ParentSeq == b.ParentSeq},
		{"start time", a.Created.Equal(b.Created)},
		{"time of the last change", a.Updated.Equal(b.Updated)},
		{"status", a.Status == b.Status},
		{"position", a.Kind == b.Kind && a.Step == b.Step && a.Title == b.Title && a.Person == b.Person},
		{"number of completed steps", a.Done == b.Done},
		{"last event", equalMAC(a.Head, b.Head)},
	} {
		if !field.same {
			return field.name
		}
	}
	return ""
}
