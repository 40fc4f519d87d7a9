package checkpoint

import (
	"context"
	"slices"

	"github.com/guideway-dev/guideway"
)

// Leftover is an index that was in use for a while in place of this one, on the
// same blobs.
type Leftover interface {
	// Deleted says which of some checkpoints were removed there.
	Deleted(ctx context.Context, ids []string) (map[string]bool, error)
	// Notes gives the entries of its audit log, the newest first.
	Notes(ctx context.Context, user string, limit int) ([]Entry, error)
	// Discard takes away what Deleted and Notes have told.
	Discard(ctx context.Context) error
}

// TakeOver takes up what happened while another index was in use: what was saved
// and stored anew is in the blobs, what was deleted and noted in that index, which
// goes then.
func (s *Service) TakeOver(ctx context.Context, other Leftover) error {
	if err := s.writable("take over another index"); err != nil {
		return err
	}
	if err := s.ready(ctx); err != nil {
		return err
	}
	v, err := s.survey(ctx, 0, false)
	if err != nil {
		return err
	}
	var ids []string
	for id := range v.strangers {
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
		delete(v.strangers, id)
	}
	if _, err := s.reconcile(ctx, v); err != nil {
		return err
	}
	if err := s.followDeletions(ctx, v, gone); err != nil {
		return err
	}
	notes, err := other.Notes(ctx, "", everything)
	if err != nil {
		return err
	}
	slices.Reverse(notes)
	if err := s.o.Index.Note(ctx, notes); err != nil {
		return err
	}
	return other.Discard(ctx)
}

// followDeletions removes the records that another index has removed. Where one
// that stays needs one of them it stays, too; it then counts as damaged.
func (s *Service) followDeletions(ctx context.Context, v *survey, gone map[string]bool) error {
	lines := map[LineKey][]Record{}
	for id := range gone {
		if rec, there := v.records[id]; there {
			lines[rec.LineKey] = append(lines[rec.LineKey], rec)
		}
	}
	for key, list := range lines {
		e := Entry{Action: ActionDelete, Client: "guideway", Detail: "deleted while another index was in use"}
		err := s.remove(ctx, key, list, e)
		if guideway.ErrorCode(err) != guideway.CodeConflict {
			if err != nil {
				return err
			}
			continue
		}
		for _, one := range sortedByNumber(list) {
			if err := s.remove(ctx, key, []Record{one}, e); err != nil && guideway.ErrorCode(err) != guideway.CodeConflict {
				return err
			}
		}
	}
	return nil
}
