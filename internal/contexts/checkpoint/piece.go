package checkpoint

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/blob"
)

// Piece is a part of a context that was left out of it, to be read again.
type Piece struct {
	// Ref is what it is read again by.
	Ref   string `json:"ref"`
	Bytes int64  `json:"bytes"`
}

// Keep stores a part of a context under a session of the caller's, byte for byte.
// The same part of the same session is kept once. It goes when the session goes.
// In read-only mode it is CodeForbidden: then nothing may be left out.
func (s *Service) Keep(ctx context.Context, who guideway.Principal, session string, part json.RawMessage) (Piece, error) {
	if err := s.writable("keep a part of a context"); err != nil {
		return Piece{}, err
	}
	if session == "" || len(part) == 0 {
		return Piece{}, guideway.Errorf(guideway.CodeInvalid, "a part of a context needs a session, and something in it")
	}
	if err := s.ready(ctx); err != nil {
		return Piece{}, err
	}
	key := LineKey{User: who.User, Session: SessionID(session)}
	sum := sumOf(part)
	piece := Piece{Ref: pieceID(key, sum), Bytes: int64(len(part))}
	unlock := s.lines.lock(key)
	defer unlock()
	cleaned := false
	for range attempts {
		err := s.keep(ctx, key, piece, part, sum)
		switch {
		case err == nil:
			return piece, nil
		case blob.IsFull(err) && !cleaned:
			cleaned = true
			if _, again := s.emergency(ctx, key); again {
				continue
			}
		case guideway.ErrorCode(err) == guideway.CodeConflict:
			continue
		}
		return Piece{}, err
	}
	return Piece{}, guideway.Errorf(guideway.CodeUnavailable, "too many others save to the session %s at once", key.Session).WithFix("try again")
}

// PieceRef is what Keep answers for a part of a session: it names the part
// before it is kept.
func PieceRef(user, session string, part []byte) string {
	return pieceID(LineKey{User: user, Session: SessionID(session)}, sumOf(part))
}

func (s *Service) keep(ctx context.Context, key LineKey, piece Piece, part, sum []byte) error {
	known, err := s.o.Index.Checkpoint(ctx, piece.Ref)
	if err == nil {
		if _, err := s.content(ctx, known); !errors.Is(err, errDamaged) {
			return err
		}
		return s.replace(ctx, known, part)
	}
	if guideway.ErrorCode(err) != guideway.CodeNotFound {
		return err
	}
	line, err := s.o.Index.Line(ctx, key)
	if err != nil {
		return err
	}
	now := s.clock()
	rec := Record{ID: piece.Ref, LineKey: key, Kind: KindPiece, Created: now, Bytes: piece.Bytes, Sum: sum}
	newest, err := s.o.Index.History(ctx, key, History{Limit: 1})
	if err != nil {
		return err
	}
	var last *Record
	if len(newest) > 0 {
		last = &newest[0]
	}
	sealed, err := s.keyFor(ctx, last)
	if err != nil {
		return err
	}
	if sealed != nil {
		rec.Key = sealed.Name
	}
	data, err := s.pack(rec, part, nil, sealed)
	if err != nil {
		return err
	}
	rec.Stored = int64(len(data))
	if most := s.o.Limits.LineBytes; most > 0 && line.Stored+rec.Stored > most {
		return tooLarge("the session with this part", line.Stored+rec.Stored, most)
	}
	if _, err := s.room(ctx, key, Line{LineKey: key}, rec.Stored); err != nil {
		return err
	}
	change := Change{Line: key, NoWords: true, At: now, Touch: true}
	_, err = s.store(ctx, &rec, data, change, false, func() *folded { return nil })
	if err != nil || sealed == nil {
		return err
	}
	// The session may have been deleted meanwhile, and its key with it.
	if _, err = s.keyOf(ctx, rec.Key); errors.Is(err, errDamaged) {
		if err := s.remove(ctx, key, []Record{rec}, Entry{Action: ActionDelete, Detail: "its key is gone"}); err != nil {
			return err
		}
		return guideway.Errorf(guideway.CodeConflict, "the session %s was deleted meanwhile", key.Session)
	}
	return err
}

// replace stores a damaged piece anew: its content has come back.
func (s *Service) replace(ctx context.Context, rec Record, part []byte) error {
	key, err := s.keyOf(ctx, rec.Key)
	if err != nil {
		return err
	}
	data, err := s.pack(rec, part, nil, key)
	if err != nil {
		return err
	}
	name, err := s.o.Blobs.Put(ctx, data)
	if err != nil {
		return err
	}
	form := Form{Blob: name, Stored: int64(len(data)), Key: rec.Key}
	return s.o.Index.Apply(ctx, Change{
		Line: rec.LineKey, Swaps: []Swap{{ID: rec.ID, Old: rec.Blob, New: form}}, Marks: []Mark{{ID: rec.ID}},
	})
}

// Recall gives a part that was kept, as it was.
func (s *Service) Recall(ctx context.Context, who guideway.Principal, ref string) (json.RawMessage, error) {
	if err := s.unlocked("read back what was left out"); err != nil {
		return nil, err
	}
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	rec, err := s.o.Index.Checkpoint(ctx, ref)
	if guideway.ErrorCode(err) == guideway.CodeNotFound || (err == nil && (rec.User != who.User || rec.Kind != KindPiece)) {
		return nil, guideway.Errorf(guideway.CodeNotFound, "there is no %.80q to read again", ref).
			WithFix("give a ref of workflow_context_compress; those of a deleted session are gone")
	}
	if err != nil {
		return nil, err
	}
	raw, err := s.content(ctx, rec)
	if errors.Is(err, errDamaged) {
		return nil, guideway.Errorf(guideway.CodeInternal, "%s cannot be read: %w", ref, err)
	}
	if err != nil {
		return nil, err
	}
	s.ledger.note(Entry{At: s.clock(), Action: ActionLoad, LineKey: rec.LineKey, Checkpoint: rec.ID, Client: who.Client}, true)
	return raw, nil
}
