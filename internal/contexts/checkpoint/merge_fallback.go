package checkpoint

import (
	"context"
	"slices"

	"github.com/guideway-dev/guideway"
)

// FallbackIndex is an index that temporarily replaced the service's index, with the same
// blobs.
type FallbackIndex interface {
	// Deleted reports which of the ids were removed from the index.
	Deleted(ctx context.Context, ids []string) (map[string]bool, error)
	// Notes returns the entries of the index's audit log, the newest first.
	Notes(ctx context.Context, user string, limit int) ([]Entry, error)
	// Discard removes the data of the index after it was merged.
	Discard(ctx context.Context) error
}

// MergeFallback merges the changes that were made while another index was in use: saves are
// read from the blobs, deletions and audit entries from the other index, which is then
// discarded.
func (s *Service) MergeFallback(ctx context.Context, other FallbackIndex) error {
	if err := s.prepareChange(ctx, "merge another index"); err != nil {
		return err
	}
	v, err := s.surveyBlobs(ctx, 0, false)
	if err != nil {
		return err
	}
	var ids []string
	for id := range v.orphans {
		ids = append(ids, id)
	}
	for id := range v.records {
		ids = append(ids, id)
	}
	gone, err := other.Deleted(ctx, ids)
	if err != nil {
		return err
	}
	for id := range gone {
		delete(v.orphans, id)
	}
	if _, err := s.reconcileIndex(ctx, v); err != nil {
		return err
	}
	if err := s.followDeletions(ctx, v, gone); err != nil {
		return err
	}
	notes, err := other.Notes(ctx, "", unlimited)
	if err != nil {
		return err
	}
	slices.Reverse(notes)
	if err := s.o.Index.Note(ctx, notes); err != nil {
		return err
	}
	return other.Discard(ctx)
}

// followDeletions removes the records that the other index removed. A record is kept if a
// remaining record depends on it; it then counts as damaged.
func (s *Service) followDeletions(ctx context.Context, v *surveyResult, gone map[string]bool) error {
	seriesList := map[SeriesKey][]Record{}
	for id := range gone {
		if rec, there := v.records[id]; there {
			seriesList[rec.SeriesKey] = append(seriesList[rec.SeriesKey], rec)
		}
	}
	for key, list := range seriesList {
		e := Entry{Action: ActionDelete, Client: "guideway", Detail: "deleted while the metadata of checkpoints was in contexts/index"}
		err := s.removeRecords(ctx, key, list, e)
		if guideway.ErrorCode(err) != guideway.CodeConflict {
			if err != nil {
				return err
			}
			continue
		}
		for _, one := range sortedByNumber(list) {
			if err := s.removeRecords(ctx, key, []Record{one}, e); err != nil && guideway.ErrorCode(err) != guideway.CodeConflict {
				return err
			}
		}
	}
	return nil
}
