package checkpoint

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/blob"
)

// Fragment identifies a stored part of a context that was omitted.
type Fragment struct {
	// Ref is the reference to load it by.
	Ref   string `json:"ref"`
	Bytes int64  `json:"bytes"`
}

// StoreFragment stores an omitted part of a context in a session of the caller, byte for
// byte. The same part of the same session is stored once. The part is deleted with the
// session. In read-only mode StoreFragment returns CodeForbidden; the caller must then omit
// nothing.
func (s *Service) StoreFragment(ctx context.Context, who guideway.Principal, session string, part json.RawMessage) (Fragment, error) {
	if err := s.requireWritable("store a part of a context"); err != nil {
		return Fragment{}, err
	}
	if session == "" {
		return Fragment{}, guideway.Errorf(guideway.CodeInvalid, "a part of a context needs a session")
	}
	if len(part) == 0 {
		return Fragment{}, guideway.Errorf(guideway.CodeInvalid, "a part of a context must not be empty")
	}
	if err := s.ensureIndex(ctx); err != nil {
		return Fragment{}, err
	}
	key := SeriesKey{User: who.User, Session: SessionID(session)}
	sum := sumOf(part)
	fragment := Fragment{Ref: fragmentID(key, sum), Bytes: int64(len(part))}
	unlock := s.locks.lockSeries(key)
	defer unlock()
	cleaned := false
	for range attempts {
		err := s.storeFragment(ctx, key, fragment, part, sum)
		switch {
		case err == nil:
			return fragment, nil
		case blob.IsFull(err) && !cleaned:
			cleaned = true
			if _, again := s.freeFullDisk(ctx, key); again {
				continue
			}
		case guideway.ErrorCode(err) == guideway.CodeConflict:
			continue
		}
		return Fragment{}, err
	}
	return Fragment{}, guideway.Errorf(guideway.CodeUnavailable, "too many concurrent saves to the session %s", key.Session).WithFix("try again")
}

// FragmentRef returns the reference that StoreFragment returns for a part of a session, without storing
// the part.
func FragmentRef(user, session string, part []byte) string {
	return fragmentID(SeriesKey{User: user, Session: SessionID(session)}, sumOf(part))
}

func (s *Service) storeFragment(ctx context.Context, key SeriesKey, fragment Fragment, part, sum []byte) error {
	known, err := s.o.Index.Checkpoint(ctx, fragment.Ref)
	if err == nil {
		if _, err := s.readContent(ctx, known); !errors.Is(err, errDamaged) {
			return err
		}
		return s.replaceDamaged(ctx, known, part)
	}
	if guideway.ErrorCode(err) != guideway.CodeNotFound {
		return err
	}
	series, err := s.o.Index.Series(ctx, key)
	if err != nil {
		return err
	}
	now := s.currentTime()
	rec := Record{ID: fragment.Ref, SeriesKey: key, Kind: KindFragment, Created: now, Bytes: fragment.Bytes, Sum: sum}
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
		rec.Key, rec.Sum = sealed.Name, []byte{}
	}
	data, err := s.packBlob(rec, part, nil, sealed)
	if err != nil {
		return err
	}
	rec.Stored = int64(len(data))
	if most := s.o.Limits.SeriesBytes; most > 0 && series.Stored+rec.Stored > most {
		return guideway.Errorf(guideway.CodeTooLarge, "the session with this part would have %d bytes, above the limit of %d bytes", series.Stored+rec.Stored, most).
			WithFix("use another session, or raise checkpoints.maxSession")
	}
	if _, err := s.makeRoom(ctx, key, Series{SeriesKey: key}, rec.Stored); err != nil {
		return err
	}
	change := Change{Series: key, At: now, Touch: true}
	err = s.storeBlob(ctx, &rec, data, func() (Change, error) { return change, nil })
	if err != nil || sealed == nil {
		return err
	}
	// The session and its key may have been deleted during the save.
	if _, err = s.keyOf(ctx, rec.Key); errors.Is(err, errDamaged) {
		if err := s.removeRecords(ctx, key, []Record{rec}, Entry{Action: ActionDelete, Detail: "the data key was destroyed"}); err != nil {
			return err
		}
		return guideway.Errorf(guideway.CodeConflict, "the session %s was deleted during the save", key.Session).WithFix("repeat the call to start the session again")
	}
	return err
}

// replaceDamaged stores a damaged fragment again.
func (s *Service) replaceDamaged(ctx context.Context, rec Record, part []byte) error {
	packed, err := s.packForm(ctx, rec, part, Form{Key: rec.Key}, nil)
	if err != nil {
		return err
	}
	if _, err := s.o.Blobs.Put(ctx, packed.blob); err != nil {
		return err
	}
	return s.o.Index.Apply(ctx, Change{Series: rec.SeriesKey, Swaps: []Swap{packed.swap}, Marks: []Mark{{ID: rec.ID}}})
}
