package run

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/guide"
)

// Verify checks the chains of all runs, of every user, or of one run: each event
// against the one before, the last one against the heads that are kept apart,
// the pinned definitions and the records. A fault is no error.
func (s *Service) Verify(ctx context.Context, runID string) (*Report, error) {
	heads := map[string]Head{}
	if s.heads != nil {
		var err error
		if heads, err = s.heads.Heads(); err != nil {
			return nil, err
		}
	}
	report := &Report{Faults: []Fault{}}
	seen := map[string]bool{}
	err := s.eachRun(ctx, runID, func(rec Record) error {
		seen[rec.ID] = true
		report.Runs++
		head, known := heads[rec.ID]
		n, fault, err := s.verify(ctx, rec, head, known)
		report.Events += n
		if fault != nil {
			report.Faults = append(report.Faults, *fault)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, id := range slices.Sorted(maps.Keys(heads)) {
		if !seen[id] && (runID == "" || runID == id) {
			report.Faults = append(report.Faults, Fault{
				Run: id, Seq: 1, Kind: FaultMissing,
				Message: fmt.Sprintf("the run is gone; it had %d events", heads[id].Seq),
			})
		}
	}
	return report, nil
}

// AcceptRestore has the heads follow the journal as it is now. It is for after
// a deliberate restore, and forgets what was lost by it.
func (s *Service) AcceptRestore(ctx context.Context) error {
	if s.heads == nil {
		return guideway.Errorf(guideway.CodeInvalid, "no heads are kept for this journal")
	}
	heads := map[string]Head{}
	err := s.eachRun(ctx, "", func(rec Record) error {
		heads[rec.ID] = Head{Seq: rec.Seq, MAC: rec.Head}
		return nil
	})
	if err != nil {
		return err
	}
	return s.heads.Replace(heads)
}

// eachRun visits every run, or one.
func (s *Service) eachRun(ctx context.Context, id string, visit func(Record) error) error {
	if id != "" {
		rec, err := s.journal.Run(ctx, id)
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
		runs, err := s.journal.Runs(ctx, f)
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

// link is where the check of a chain stands.
type link struct {
	seq   int64
	mac   []byte
	state guide.State
}

// verify checks one run. What is appended while it is checked counts too.
func (s *Service) verify(ctx context.Context, rec Record, head Head, known bool) (int64, *Fault, error) {
	fault := func(seq int64, kind FaultKind, format string, args ...any) *Fault {
		return &Fault{Run: rec.ID, Seq: seq, Kind: kind, Message: fmt.Sprintf(format, args...)}
	}
	at := link{mac: s.key.Root(rec.ID)}
	program, err := s.compiled(ctx, rec.Hash)
	if guideway.ErrorCode(err) == guideway.CodeUnavailable || guideway.ErrorCode(err) == guideway.CodeNotFound {
		return 0, fault(1, FaultDefinition, "%s", err.Error()), nil
	}
	if err != nil {
		return 0, nil, err
	}
	var atRecord, atHead []byte
	for {
		events, err := s.journal.Events(ctx, rec.ID, at.seq, page)
		if err != nil {
			return at.seq, nil, err
		}
		for _, e := range events {
			if e.Seq != at.seq+1 {
				return at.seq, fault(at.seq+1, FaultGap, "event %d is missing, and there are others behind it", at.seq+1), nil
			}
			if !sameMAC(e.MAC, s.key.Chain(rec.ID, at.mac, e)) {
				return at.seq, fault(e.Seq, FaultEdited, "event %d (%s) is not what was written", e.Seq, e.Kind), nil
			}
			if f := s.fits(program, rec, &at, e); f != nil {
				return at.seq, f, nil
			}
			at.seq, at.mac = e.Seq, e.MAC
			if e.Seq == rec.Seq {
				atRecord = e.MAC
			}
			if e.Seq == head.Seq {
				atHead = e.MAC
			}
		}
		if len(events) < page {
			break
		}
	}
	switch {
	case known && at.seq < head.Seq:
		return at.seq, fault(at.seq+1, FaultTruncated, "the run had %d events and has %d: its end was removed, or the database is an older copy", head.Seq, at.seq), nil
	case known && !sameMAC(atHead, head.MAC):
		return at.seq, fault(head.Seq, FaultReplaced, "event %d is not the one that was written: the run went on from an older copy", head.Seq), nil
	case at.seq < rec.Seq:
		return at.seq, fault(at.seq+1, FaultTruncated, "the record names %d events and there are %d", rec.Seq, at.seq), nil
	case !sameMAC(atRecord, rec.Head):
		return at.seq, fault(rec.Seq, FaultRecord, "the record of the run does not name its last event"), nil
	}
	return at.seq, nil, nil
}

// fits checks what an event says: the first one against the record, the others
// against the definition.
func (s *Service) fits(p *program, rec Record, at *link, e Event) *Fault {
	bad := func(kind FaultKind, why string) *Fault {
		return &Fault{Run: rec.ID, Seq: e.Seq, Kind: kind, Message: fmt.Sprintf("event %d (%s): %s", e.Seq, e.Kind, why)}
	}
	if e.Seq == 1 {
		var c Created
		if e.Kind != KindCreated || json.Unmarshal(e.Data, &c) != nil {
			return bad(FaultEdited, "it does not say what the run is")
		}
		if c.Hash != rec.Hash || c.Workflow != rec.Workflow || c.Goal != rec.Goal || e.By.User != rec.User {
			return bad(FaultRecord, "the record of the run says something else")
		}
		return nil
	}
	fact, ok, err := factOf(e)
	if err == nil && ok {
		at.state, err = p.FoldFrom(at.state, []guide.Event{fact})
	}
	if err != nil {
		return bad(FaultEdited, err.Error())
	}
	return nil
}
