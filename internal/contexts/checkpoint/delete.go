package checkpoint

import (
	"context"
	"errors"
	"slices"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/blob"
)

// Delete removes checkpoints, or a session with all that belongs to it. What
// depends on a checkpoint that goes is stored anew first.
func (s *Service) Delete(ctx context.Context, who guideway.Principal, r DeleteRequest) (*Deleted, error) {
	if err := s.writable("delete checkpoints"); err != nil {
		return nil, err
	}
	if (r.Session == "") == (len(r.IDs) == 0) {
		return nil, guideway.Errorf(guideway.CodeInvalid, "either checkpoints or a session are to be named").WithFix("give ids, or a session")
	}
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	out := &Deleted{Checkpoints: []string{}, Store: s.o.Store}
	if r.Session != "" {
		return out, s.deleteSession(ctx, who, LineKey{User: who.User, Session: SessionID(r.Session)}, out)
	}
	// All or none where one is not there; one after the other else.
	for _, id := range r.IDs {
		if _, err := s.own(ctx, who, id); err != nil {
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

func (s *Service) deleteSession(ctx context.Context, who guideway.Principal, key LineKey, out *Deleted) error {
	unlock := s.lines.lock(key)
	defer unlock()
	for range attempts {
		gone, err := s.o.Index.History(ctx, key, History{})
		if err != nil {
			return err
		}
		pieces, err := s.pieces(ctx, key)
		if err != nil {
			return err
		}
		gone = append(gone, pieces...)
		if len(gone) == 0 {
			return guideway.Errorf(guideway.CodeNotFound, "the session %.100q has no checkpoints", key.Session)
		}
		err = s.remove(ctx, key, gone, Entry{Action: ActionDelete, Client: who.Client, Detail: "the session"})
		if guideway.ErrorCode(err) == guideway.CodeConflict {
			continue // somebody has saved meanwhile
		}
		if err != nil {
			return err
		}
		out.Erased = !slices.ContainsFunc(gone, func(r Record) bool { return r.Key == "" })
		for _, r := range gone {
			out.add(r)
		}
		return nil
	}
	return guideway.Errorf(guideway.CodeUnavailable, "others save to the session %s all the time", key.Session).WithFix("try again")
}

func (d *Deleted) add(r Record) {
	d.Stored += r.Stored
	if r.Kind != KindPiece {
		d.Checkpoints = append(d.Checkpoints, r.ID)
	}
}

func (s *Service) deleteOne(ctx context.Context, who guideway.Principal, id string, out *Deleted) error {
	for range attempts {
		rec, err := s.own(ctx, who, id)
		if err != nil {
			return err
		}
		err = s.unhook(ctx, who, rec)
		if guideway.ErrorCode(err) == guideway.CodeConflict {
			continue
		}
		if err == nil {
			out.add(rec)
		}
		return err
	}
	return guideway.Errorf(guideway.CodeUnavailable, "the checkpoint %s is being stored anew again and again", id).WithFix("try again")
}

// unhook removes a checkpoint, and in the same change has those that depend on it
// depend on its base, or stand alone where it has none.
func (s *Service) unhook(ctx context.Context, who guideway.Principal, rec Record) error {
	unlock := s.lines.lock(rec.LineKey)
	defer unlock()
	dependents, err := s.o.Index.Checkpoints(ctx, Filter{User: rec.User, Session: rec.Session, Base: rec.ID, Limit: everything})
	if err != nil {
		return err
	}
	change := Change{Line: rec.LineKey, Remove: []string{rec.ID}, At: s.clock()}
	var written, freed []blob.Name
	for _, d := range sortedByNumber(dependents) {
		swap, err := s.rebase(ctx, d, rec.Base)
		if errors.Is(err, errDamaged) { // it cannot get worse
			change.Swaps = append(change.Swaps, Swap{ID: d.ID, Old: d.Blob, New: Form{Blob: d.Blob, Stored: d.Stored, Key: d.Key}})
			continue
		}
		if err != nil {
			s.unlink(ctx, written...)
			return err
		}
		written, freed = append(written, swap.New.Blob), append(freed, swap.Old)
		change.Swaps = append(change.Swaps, *swap)
	}
	change.Audit = []Entry{{At: change.At, Action: ActionDelete, LineKey: rec.LineKey, Checkpoint: rec.ID, Client: who.Client}}
	if err := s.o.Index.Apply(ctx, change); err != nil {
		if guideway.ErrorCode(err) == guideway.CodeConflict {
			s.unlink(ctx, written...)
		}
		return err
	}
	if rec.Key != "" {
		if _, err := s.eraseUnused(ctx, rec.LineKey, map[string]bool{rec.Key: true}); err != nil {
			s.o.Logger.WarnContext(ctx, "a data key could not be destroyed yet", "session", rec.Session, "error", err)
		}
	}
	s.unlink(ctx, append(freed, rec.Blob)...)
	return nil
}

// rebase stores a checkpoint anew, against another base or whole, and gives the
// swap that makes it count.
func (s *Service) rebase(ctx context.Context, rec Record, base string) (*Swap, error) {
	raw, err := s.read(ctx, rec)
	if err != nil {
		return nil, err
	}
	var baseRaw []byte
	if base != "" {
		next, err := s.o.Index.Checkpoint(ctx, base)
		if err == nil {
			baseRaw, err = s.read(ctx, next)
		}
		if err != nil {
			base, baseRaw = "", nil // whole is always possible
		}
	}
	form := Form{Base: base, Key: rec.Key}
	key, err := s.keyOf(ctx, form.Key)
	if err != nil {
		return nil, err
	}
	anew := rec
	anew.Form = form
	data, err := s.pack(anew, raw, baseRaw, key)
	if err != nil {
		return nil, err
	}
	if err := s.readable(data, baseRaw, key, s.maxRaw()); err != nil {
		return nil, err
	}
	name, err := s.o.Blobs.Put(ctx, data)
	if err != nil {
		return nil, err
	}
	form.Blob, form.Stored = name, int64(len(data))
	return &Swap{ID: rec.ID, Old: rec.Blob, New: form}, nil
}
