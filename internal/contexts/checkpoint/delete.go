package checkpoint

import (
	"context"
	"errors"
	"slices"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/blob"
)

// Delete removes checkpoints, or a session with all its data. Checkpoints that depend on a
// removed checkpoint are first stored again without it.
func (s *Service) Delete(ctx context.Context, who guideway.Principal, r DeleteRequest) (*Deleted, error) {
	if err := s.requireWritable("delete checkpoints"); err != nil {
		return nil, err
	}
	switch {
	case r.Session == "" && len(r.IDs) == 0:
		return nil, guideway.Errorf(guideway.CodeInvalid, "checkpoint ids or a session is required").WithFix("pass ids, or a session")
	case r.Session != "" && len(r.IDs) > 0:
		return nil, guideway.Errorf(guideway.CodeInvalid, "both checkpoint ids and a session are given").WithFix("pass only ids, or only a session")
	}
	if err := s.ensureIndex(ctx); err != nil {
		return nil, err
	}
	out := &Deleted{Checkpoints: []string{}, Store: s.o.Store}
	defer s.compactIndex(ctx) // the log of the index still has the deleted words
	if r.Session != "" {
		return out, s.deleteSession(ctx, who, SeriesKey{User: who.User, Session: SessionID(r.Session)}, out)
	}
	// If one of the checkpoints does not exist, none is deleted. Otherwise they are deleted
	// one after the other.
	for _, id := range r.IDs {
		if _, err := s.ownRecord(ctx, who, id); err != nil {
			return nil, err
		}
	}
	for _, id := range r.IDs {
		if err := s.deleteOne(ctx, who, id, out); err != nil && guideway.ErrorCode(err) != guideway.CodeNotFound {
			return out, err
		}
	}
	return out, nil
}

func (s *Service) deleteSession(ctx context.Context, who guideway.Principal, key SeriesKey, out *Deleted) error {
	unlock := s.locks.lockSeries(key)
	defer unlock()
	s.FinishFolds() // a delta that is being written has deleted words
	for range attempts {
		gone, err := s.o.Index.History(ctx, key, History{})
		if err != nil {
			return err
		}
		fragments, err := s.listFragments(ctx, key)
		if err != nil {
			return err
		}
		gone = append(gone, fragments...)
		if len(gone) == 0 {
			return guideway.Errorf(guideway.CodeNotFound, "the session %.100q has no checkpoints", key.Session).WithFix("list the checkpoints with: guideway checkpoint list")
		}
		err = s.removeRecords(ctx, key, gone, Entry{Action: ActionDelete, Client: who.Client, Detail: "the session"})
		if guideway.ErrorCode(err) == guideway.CodeConflict {
			continue // another process saved a checkpoint
		}
		if err != nil {
			return err
		}
		out.Erased = !slices.ContainsFunc(gone, func(r Record) bool { return r.Key == "" })
		for _, r := range gone {
			out.addRecord(r)
		}
		return nil
	}
	return guideway.Errorf(guideway.CodeUnavailable, "other processes keep saving to the session %s", key.Session).WithFix("try again")
}

func (d *Deleted) addRecord(r Record) {
	d.Stored += r.Stored
	if r.Kind == KindFragment {
		d.Reduced = append(d.Reduced, r.ID)
		return
	}
	d.Checkpoints = append(d.Checkpoints, r.ID)
}

func (s *Service) deleteOne(ctx context.Context, who guideway.Principal, id string, out *Deleted) error {
	for range attempts {
		rec, err := s.ownRecord(ctx, who, id)
		if err != nil {
			return err
		}
		err = s.removeLinked(ctx, who, rec)
		if guideway.ErrorCode(err) == guideway.CodeConflict {
			continue
		}
		if err == nil {
			out.addRecord(rec)
		}
		return err
	}
	return guideway.Errorf(guideway.CodeUnavailable, "other processes keep storing the checkpoint %s again", id).WithFix("try again")
}

// removeLinked removes a checkpoint and, in the same change, stores the checkpoints that
// depend on it as deltas against its base, or whole if it has no readable base.
func (s *Service) removeLinked(ctx context.Context, who guideway.Principal, rec Record) error {
	unlock := s.locks.lockSeries(rec.SeriesKey)
	defer unlock()
	s.FinishFolds() // a delta that is being written has deleted words
	rec, err := s.o.Index.Checkpoint(ctx, rec.ID)
	if err != nil {
		return err
	}
	dependents, err := s.o.Index.Checkpoints(ctx, Filter{User: rec.User, Session: rec.Session, Base: rec.ID, Limit: unlimited})
	if err != nil {
		return err
	}
	change := Change{Series: rec.SeriesKey, Remove: []Removal{{rec.ID, rec.Blob}}, At: s.currentTime()}
	var written, freed []blob.Name
	for _, d := range sortedByNumber(dependents) {
		swap, err := s.storeAgainst(ctx, d, rec.Base)
		if errors.Is(err, errDamaged) { // the checkpoint is already damaged
			change.Swaps = append(change.Swaps, Swap{ID: d.ID, Old: d.Blob, New: Form{Blob: d.Blob, Stored: d.Stored, Key: d.Key}})
			continue
		}
		if err != nil {
			s.unlinkBlobs(ctx, written...)
			return err
		}
		written, freed = append(written, swap.New.Blob), append(freed, swap.Old)
		change.Swaps = append(change.Swaps, *swap)
	}
	change.Audit = []Entry{{At: change.At, Action: ActionDelete, SeriesKey: rec.SeriesKey, Checkpoint: rec.ID, Client: who.Client}}
	if err := s.o.Index.Apply(ctx, change); err != nil {
		if guideway.ErrorCode(err) == guideway.CodeConflict {
			s.unlinkBlobs(ctx, written...)
		}
		return err
	}
	if rec.Key != "" {
		if _, err := s.eraseUnused(ctx, rec.SeriesKey, map[string]bool{rec.Key: true}); err != nil {
			s.o.Logger.WarnContext(ctx, "a data key could not be destroyed yet", "session", rec.Session, "error", err)
		}
	}
	s.unlinkBlobs(ctx, append(freed, rec.Blob)...)
	return nil
}

// storeAgainst stores a checkpoint again, against another base or whole, and returns the swap
// that activates the new form.
func (s *Service) storeAgainst(ctx context.Context, rec Record, base string) (*Swap, error) {
	raw, err := s.readRetrying(ctx, rec)
	if err != nil {
		return nil, err
	}
	var baseRaw []byte
	if base != "" {
		next, err := s.o.Index.Checkpoint(ctx, base)
		if err == nil {
			baseRaw, err = s.readRetrying(ctx, next)
		}
		if err != nil {
			base, baseRaw = "", nil // store the checkpoint whole instead
		}
	}
	packed, err := s.packForm(ctx, rec, raw, Form{Base: base, Key: rec.Key}, baseRaw)
	if err != nil {
		return nil, err
	}
	_, err = s.o.Blobs.Put(ctx, packed.blob)
	return &packed.swap, err
}
