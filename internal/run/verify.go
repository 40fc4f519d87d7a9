package run

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
)

// Verify checks the chains of all runs, of every user, or of one run: each event
// against the one before, the last one against the heads that are kept apart,
// the pinned definitions and the records. A fault is no error.
func (s *Service) Verify(ctx context.Context, runID string) (*Report, error) {
	if err := s.open(ctx); err != nil {
		return nil, err
	}
	return s.verifier().Verify(ctx, runID)
}

// AcceptRestore has the heads follow the journal as it is now. It is for after
// a deliberate restore, and forgets what was lost by it.
func (s *Service) AcceptRestore(ctx context.Context) error {
	if err := s.open(ctx); err != nil {
		return err
	}
	return s.verifier().AcceptRestore(ctx)
}

func (s *Service) verifier() *Verifier {
	return &Verifier{Journal: s.journal, Key: s.key, Heads: s.heads, Now: s.clock, Follow: s.follower}
}

// follower implements Verifier.Follow for guided runs.
func (s *Service) follower(ctx context.Context, rec Record) (Follower, error) {
	program, err := s.compiled(ctx, rec.Hash)
	if err != nil {
		return nil, err
	}
	return &guided{loaded{program: program}}, nil
}

// guided follows a guided run.
type guided struct{ loaded loaded }

func (g *guided) Event(e Event) error {
	fact, ok, err := factOf(e)
	if err == nil && ok {
		g.loaded.state, err = g.loaded.program.FoldFrom(g.loaded.state, []engine.Event{fact})
	}
	return err
}

func (g *guided) Describe(r *Record) {
	describe(r, &g.loaded, g.loaded.program.PositionOf(g.loaded.state))
}

// Follower follows one run from its first event on.
type Follower interface {
	// Event takes the next event, which the chain vouches for. An error says that
	// it cannot have happened there.
	Event(e Event) error
	// Describe puts where the run stands now into its record.
	Describe(r *Record)
}

// Verifier checks a journal, whatever its runs are of. All fields but Heads are
// needed.
type Verifier struct {
	Journal Journal
	Key     Key
	// Heads may be nil: then the end of a run that was removed is not noticed.
	Heads Heads
	Now   func() time.Time
	// Follow makes the follower of a run. An error of CodeUnavailable or
	// CodeNotFound says what is wrong with the pinned definition.
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
		n, fault, err := v.verify(ctx, rec, head, known)
		report.Events += n
		if fault != nil {
			report.Faults = append(report.Faults, *fault)
		}
		return err
	}
	if err := v.eachRun(ctx, runID, visit); err != nil {
		return nil, err
	}
	// A run that is at work moves in the list, and may have been missed.
	if runID == "" {
		if err := v.eachSince(ctx, begun, seen, visit); err != nil {
			return nil, err
		}
	}
	for _, id := range slices.Sorted(maps.Keys(heads)) {
		if seen[id] || runID != "" && runID != id {
			continue
		}
		err := v.eachRun(ctx, id, visit)
		if err != nil {
			return nil, err
		}
		if !seen[id] {
			report.Faults = append(report.Faults, Fault{
				Run: id, Seq: 1, Kind: FaultMissing,
				Message: fmt.Sprintf("the run is gone; it had %d events", heads[id].Seq),
			})
		}
	}
	if runID != "" && report.Runs == 0 && len(report.Faults) == 0 {
		return nil, guideway.Errorf(guideway.CodeNotFound, "there is no run %s", cut(runID, maxHandle)).WithFix("guideway runs list")
	}
	return report, nil
}

// eachSince visits the runs that have changed since a time and were not seen.
func (v *Verifier) eachSince(ctx context.Context, since time.Time, seen map[string]bool, visit func(Record) error) error {
	const skew = 10 * time.Minute // of the clocks of several machines
	f := Filter{Since: since.Add(-skew), Limit: page}
	for {
		runs, err := v.Journal.Runs(ctx, f)
		if err != nil {
			return err
		}
		for _, rec := range runs {
			if seen[rec.ID] {
				continue
			}
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

// AcceptRestore has the heads follow the journal as it is now.
func (v *Verifier) AcceptRestore(ctx context.Context) error {
	if v.Heads == nil {
		return guideway.Errorf(guideway.CodeInvalid, "no heads are kept for this journal")
	}
	begun, seen := v.Now(), map[string]bool{}
	heads := map[string]Head{}
	visit := func(rec Record) error {
		seen[rec.ID] = true
		heads[rec.ID] = Head{Seq: rec.Seq, MAC: rec.Head}
		return nil
	}
	if err := v.eachRun(ctx, "", visit); err != nil {
		return err
	}
	if err := v.eachSince(ctx, begun, seen, visit); err != nil {
		return err
	}
	return v.Heads.Replace(heads)
}

// eachRun visits every run, or one.
func (v *Verifier) eachRun(ctx context.Context, id string, visit func(Record) error) error {
	if id != "" {
		rec, err := v.Journal.Run(ctx, id)
		if guideway.ErrorCode(err) == guideway.CodeNotFound {
			return nil // the heads may know it
		}
		if err != nil {
			return err
		}
		return visit(rec)
	}
	f := Filter{Limit: page}
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

// verify checks one run. What is appended while it is checked counts too.
func (v *Verifier) verify(ctx context.Context, rec Record, head Head, known bool) (int64, *Fault, error) {
	w := &walk{key: v.Key, rec: rec, head: head, mac: v.Key.Root(rec.ID)}
	var err error
	w.follower, err = v.Follow(ctx, rec)
	if guideway.ErrorCode(err) == guideway.CodeUnavailable || guideway.ErrorCode(err) == guideway.CodeNotFound {
		return 0, w.fault(1, FaultDefinition, "%s", err.Error()), nil
	}
	if err != nil {
		return 0, nil, err
	}
	for {
		events, err := v.Journal.Events(ctx, rec.ID, w.seq, page)
		if err != nil {
			return w.seq, nil, err
		}
		for _, e := range events {
			if f := w.event(e); f != nil {
				return w.seq, f, nil
			}
		}
		if len(events) < page {
			break
		}
	}
	now, err := v.Journal.Run(ctx, rec.ID)
	if err != nil && guideway.ErrorCode(err) != guideway.CodeNotFound {
		return w.seq, nil, err
	}
	return w.seq, w.end(now, known), nil
}

// walk is the check of one run's chain.
type walk struct {
	key      Key
	rec      Record
	head     Head
	follower Follower
	// seq and mac are of the last event that was checked.
	seq int64
	mac []byte
	// derived is the record that follows from the events so far.
	derived Record
	// atRecord and atHead are the MACs of the events that the record and the
	// head name.
	atRecord, atHead []byte
}

func (w *walk) fault(seq int64, kind FaultKind, format string, args ...any) *Fault {
	return &Fault{Run: w.rec.ID, Seq: seq, Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// event checks the next event: its number, its chain, and that it fits what was
// before.
func (w *walk) event(e Event) *Fault {
	if e.Seq != w.seq+1 {
		return w.fault(w.seq+1, FaultGap, "event %d is missing, and there are others behind it", w.seq+1)
	}
	if !sameMAC(e.MAC, w.key.Chain(w.rec.ID, w.mac, e)) {
		return w.fault(e.Seq, FaultEdited, "event %d (%s) is not what was written", e.Seq, e.Kind)
	}
	if e.Seq == 1 {
		c, err := createdOf(w.rec, e)
		if err != nil {
			return w.fault(1, FaultRecord, "event 1 (%s): %s", e.Kind, err.Error())
		}
		w.derived = recordOf(w.rec.ID, c, e)
	}
	if err := w.follower.Event(e); err != nil {
		return w.fault(e.Seq, FaultEdited, "event %d (%s): %s", e.Seq, e.Kind, err.Error())
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
		if h.Seq == e.Seq && !sameMAC(h.MAC, e.MAC) {
			return w.fault(e.Seq, FaultReplaced, "event %d is not the one that was written: the run went on from an older copy", e.Seq)
		}
	}
	return nil
}

// end checks the last event against the head and the record; now is the record
// as it is after the walk.
func (w *walk) end(now Record, known bool) *Fault {
	switch {
	case known && w.seq < w.head.Seq:
		return w.fault(w.seq+1, FaultTruncated, "the run had %d events and has %d: its end was removed, or the database is an older copy", w.head.Seq, w.seq)
	case known && !sameMAC(w.atHead, w.head.MAC):
		return w.fault(w.head.Seq, FaultReplaced, "event %d is not the one that was written: the run went on from an older copy", w.head.Seq)
	case w.seq < w.rec.Seq:
		return w.fault(w.seq+1, FaultTruncated, "the record names %d events and there are %d", w.rec.Seq, w.seq)
	case !sameMAC(w.atRecord, w.rec.Head):
		return w.fault(w.rec.Seq, FaultRecord, "the record of the run does not name its last event")
	case now.Seq < w.seq:
		return w.fault(now.Seq+1, FaultRecord, "the record of the run names %d events and there are %d", now.Seq, w.seq)
	}
	if now.Seq != w.seq {
		return nil // it went on behind the walk
	}
	w.follower.Describe(&w.derived)
	if field := differs(w.derived, now); field != "" {
		return w.fault(w.seq, FaultRecord, "the %s in the record of the run does not follow from its events", field)
	}
	return nil
}

// recordOf is the record of a run as its first event gives it.
func recordOf(id string, c Created, e Event) Record {
	return Record{
		ID: id, User: e.By.User, Client: e.By.Client,
		Workflow: c.Workflow, Name: c.Name, Version: c.Version, Hash: c.Hash,
		Goal: c.Goal, Project: c.Project, Parent: c.Parent, ParentSeq: c.ParentSeq, Created: e.At, Updated: e.At,
	}
}

// differs names the first field in which two records of a run differ; the handle
// is not of the events.
func differs(a, b Record) string {
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
		{"beginning", a.Created.Equal(b.Created)},
		{"last change", a.Updated.Equal(b.Updated)},
		{"status", a.Status == b.Status},
		{"position", a.Kind == b.Kind && a.Step == b.Step && a.Title == b.Title && a.Person == b.Person},
		{"count of steps", a.Done == b.Done},
		{"last event", sameMAC(a.Head, b.Head)},
	} {
		if !field.same {
			return field.name
		}
	}
	return ""
}
