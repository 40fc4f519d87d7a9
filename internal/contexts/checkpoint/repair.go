package checkpoint

import (
	"bytes"
	"context"
	"time"

	"github.com/guideway-dev/guideway"
)

// Repairer is an index whose records have no checksums, so that only a comparison with the
// blobs detects damage.
type Repairer interface {
	// Repair rebuilds derived data: search indexes and totals of series. It removes totals of
	// series without records.
	Repair(ctx context.Context) error
	// Drop removes records completely: the parents of successors are not changed, and the
	// ids do not count as deleted.
	Drop(ctx context.Context, ids []string) error
}

const (
	// repairInterval is the minimum time between two attempts for the same damage.
	repairInterval = 10 * time.Minute
	// maxRepairs bounds the number of remembered attempts.
	maxRepairs = 1000
)

// repairIndex repairs the index from the blobs after a mismatch was found, and reports
// whether it did. It handles the same mismatch again only after repairInterval. It cannot
// restore lost blobs.
func (s *Service) repairIndex(ctx context.Context, about string) bool {
	if s.o.ReadOnly && !s.isVolatile() {
		return false
	}
	now := s.currentTime()
	s.repairing.Lock()
	defer s.repairing.Unlock()
	if last, there := s.repairs[about]; there && now.Sub(last) < repairInterval && !now.Before(last) {
		return false
	}
	if s.repairs == nil || len(s.repairs) > maxRepairs {
		s.repairs = map[string]time.Time{}
	}
	s.repairs[about] = now
	made, err := s.rebuildIndex(ctx)
	if err != nil {
		s.o.Logger.ErrorContext(ctx, "the checkpoint index does not match the blobs and could not be repaired", "about", about, "error", err)
		return false
	}
	s.o.Logger.WarnContext(ctx, "the checkpoint index did not match the blobs and was repaired",
		"about", about, "adopted", made.Adopted, "repaired", made.Mended, "damaged", made.Damaged)
	return true
}

// mismatches returns the known records that differ from h, the header of their blob.
func (v *surveyResult) mismatches(h Record, known []Record) (list []Record) {
	for _, rec := range known {
		_, taken := v.numbers[seriesNumber{h.SeriesKey, h.Number}]
		if !sameCheckpoint(rec, h) || rec.Base != h.Base || rec.Key != h.Key || rec.Stored != h.Stored || (rec.Number != h.Number && !taken) {
			list = append(list, rec)
		}
	}
	return list
}

// sameCheckpoint reports whether two records describe the same checkpoint, regardless of
// their storage form.
func sameCheckpoint(a, b Record) bool {
	return a.ID == b.ID && a.SeriesKey == b.SeriesKey && a.Bytes == b.Bytes && a.Run == b.Run && a.Kind == b.Kind && bytes.Equal(a.Sum, b.Sum)
}

// markOrphaned adds to mismatched the records without a blob, if another blob contains a
// different checkpoint with the same id.
func (v *surveyResult) markOrphaned() {
	for id, forms := range v.orphans {
		rec, known := v.records[id]
		if _, fine := v.existing[rec.Blob]; known && !fine && !sameCheckpoint(rec, forms[0]) {
			v.mismatched = append(v.mismatched, rec)
		}
	}
}

// seriesNumber identifies a checkpoint by series and number.
type seriesNumber struct {
	SeriesKey
	number int64
}

// dropMismatches removes the mismatched records from the index, so that they can be rebuilt from
// their blobs.
func (s *Service) dropMismatches(ctx context.Context, v *surveyResult) error {
	repairer, ok := s.o.Index.(Repairer)
	if !ok || len(v.mismatched) == 0 {
		return nil
	}
	ids := make([]string, 0, len(v.mismatched))
	for _, rec := range v.mismatched {
		ids = append(ids, rec.ID)
		delete(v.records, rec.ID)
	}
	return repairer.Drop(ctx, ids)
}

// newMismatch returns the error for an index that does not match the blobs and could not be
// repaired.
func newMismatch(doing string, err error) error {
	return guideway.Errorf(guideway.CodeInternal, "%s: %w", doing, err).
		WithFix("`guideway checkpoint verify` lists what is damaged; with --rebuild it rebuilds the index from the blobs, unless checkpoints are read-only; restore missing blobs from a backup")
}

// newestRecord returns the last checkpoint of a series, or nil if the series has none. A
// mismatch between the totals of the series and its records is damage: without this check a
// save could continue from an old context unnoticed.
func (s *Service) newestRecord(ctx context.Context, series Series) (*Record, error) {
	list, err := s.o.Index.History(ctx, series.SeriesKey, History{Limit: 1})
	if err != nil {
		return nil, err
	}
	var last int64
	var newest *Record
	if len(list) > 0 {
		newest, last = &list[0], list[0].Number
	}
	if last == series.Last {
		return newest, nil
	}
	// The last checkpoint may have just been deleted, or another one saved.
	all, err := s.o.Index.History(ctx, series.SeriesKey, History{})
	if err != nil {
		return nil, err
	}
	now, err := s.o.Index.Series(ctx, series.SeriesKey)
	switch {
	case err != nil:
		return nil, err
	case now.Last != series.Last || now.Count != series.Count:
		return nil, guideway.Errorf(guideway.CodeConflict, "the session %s changed while it was read", series.Session)
	case last > series.Last, len(all) != series.Count:
		return nil, damagedf("the checkpoints of the session %s in the index (count %d, last number %d) do not match its totals (count %d, last number %d)",
			series.Session, len(all), last, series.Count, series.Last)
	case len(all) > 0 && all[len(all)-1].Number < 1:
		return nil, damagedf("a checkpoint of the session %s has the invalid number %d", series.Session, all[len(all)-1].Number)
	}
	return newest, nil
}
