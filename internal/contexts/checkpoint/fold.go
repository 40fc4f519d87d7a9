package checkpoint

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/blob"
)

// foldQueue has the checkpoints that are stored as deltas after the saves have returned: once
// no save follows for foldPause, so that further saves do not wait for this work, or if many
// wait. A checkpoint that a crash leaves whole can be read as before; the next Maintain
// stores it as a delta.
type foldQueue struct {
	// working is locked while checkpoints are stored.
	working sync.Mutex
	mu      sync.Mutex
	waiting []fold
	timer   *time.Timer
}

// fold is a checkpoint that has a successor.
type fold struct{ old, successor Record }

const (
	foldPause = 50 * time.Millisecond
	// manyFolds is the number of waiting checkpoints that are stored without a pause. A save
	// waits for this work if twice as many wait.
	manyFolds = 32
)

// pushFold adds a checkpoint that has a successor now.
func (s *Service) pushFold(f fold) {
	q := &s.folds
	q.mu.Lock()
	q.waiting = append(q.waiting, f)
	n, pause := len(q.waiting), foldPause
	if n >= manyFolds {
		pause = 0
	}
	if q.timer == nil {
		q.timer = time.AfterFunc(pause, s.FinishFolds)
	} else if n <= manyFolds {
		q.timer.Reset(pause)
	}
	q.mu.Unlock()
	if n >= 2*manyFolds {
		s.FinishFolds()
	}
}

// FinishFolds stores the checkpoints that earlier saves left whole as deltas.
func (s *Service) FinishFolds() {
	q := &s.folds
	q.working.Lock()
	defer q.working.Unlock()
	q.mu.Lock()
	list := q.waiting
	q.waiting = nil
	q.mu.Unlock()
	ctx := context.Background()
	for len(list) > 0 {
		n := 1
		for n < len(list) && list[n].old.SeriesKey == list[0].old.SeriesKey {
			n++
		}
		if _, err := s.storeFolds(ctx, list[:n]); err != nil {
			s.o.Logger.WarnContext(ctx, "checkpoints could not be stored as deltas", "session", list[0].old.Session, "error", err)
		}
		for _, f := range list[:n] {
			s.recent.dropContent(f.old.ID)
		}
		list = list[n:]
	}
}

// foldedParent is a checkpoint that is stored again as a delta against its successor.
type foldedParent struct {
	swap Swap
	blob []byte
}

// storeFolds stores checkpoints of one series as deltas against their successors, and returns
// their number.
func (s *Service) storeFolds(ctx context.Context, list []fold) (stored int, err error) {
	var swaps []Swap
	var failed error
	for _, each := range list {
		f, err := s.foldInto(ctx, each.old, each.successor)
		if errors.Is(err, errDamaged) || guideway.ErrorCode(err) == guideway.CodeNotFound || err == nil && f == nil {
			continue
		}
		if err == nil {
			_, err = s.o.Blobs.Put(ctx, f.blob)
		}
		if err != nil {
			failed = err
			break
		}
		swaps = append(swaps, f.swap)
	}
	if len(swaps) == 0 {
		return 0, failed
	}
	before, after := make([]blob.Name, len(swaps)), make([]blob.Name, len(swaps))
	for i, swap := range swaps {
		before[i], after[i] = swap.Old, swap.New.Blob
	}
	err = s.o.Index.Apply(ctx, Change{Series: list[0].old.SeriesKey, Swaps: swaps})
	switch {
	case err == nil:
		s.unlinkBlobs(ctx, before...)
		return len(swaps), failed
	case guideway.ErrorCode(err) != guideway.CodeConflict:
		return 0, err
	}
	// A checkpoint was deleted or stored again by another process.
	s.unlinkBlobs(ctx, after...)
	if len(list) == 1 {
		return 0, nil
	}
	for i := range list {
		n, err := s.storeFolds(ctx, list[i:i+1])
		if stored += n; err != nil {
			return stored, err
		}
	}
	return stored, nil
}

// foldInto packs a checkpoint as a delta against its successor. It returns nil if the
// checkpoint is a delta already or a keyframe, if both contents together are too large, or
// if a delta would save little space.
func (s *Service) foldInto(ctx context.Context, old, next Record) (*foldedParent, error) {
	if old.Base != "" || old.Link%keyframeEvery == keyframeEvery-1 || old.Bytes+next.Bytes > maxDelta {
		return nil, nil
	}
	raw, err := s.recentContent(ctx, old)
	if err != nil {
		return nil, err
	}
	nextRaw, err := s.recentContent(ctx, next)
	if err != nil {
		return nil, err
	}
	f, err := s.packForm(ctx, old, raw, Form{Base: next.ID, Key: next.Key}, nextRaw)
	if err != nil || f.swap.New.Stored > old.Stored*9/10 {
		return nil, err
	}
	return f, nil
}

// recentContent returns a content from the cache, or reads it.
func (s *Service) recentContent(ctx context.Context, rec Record) ([]byte, error) {
	if raw := s.recent.getContent(rec.ID); raw != nil {
		return raw, nil
	}
	return s.readRetrying(ctx, rec)
}

// packForm packs a checkpoint in a new form and checks that the blob can be read back.
// baseRaw is the content of the form's base.
func (s *Service) packForm(ctx context.Context, rec Record, raw []byte, form Form, baseRaw []byte) (*foldedParent, error) {
	key, err := s.keyOf(ctx, form.Key)
	if err != nil {
		return nil, err
	}
	old := rec.Blob
	rec.Form = form
	data, err := s.packBlob(rec, raw, baseRaw, key)
	if err != nil {
		return nil, err
	}
	if err := s.verifyPacked(data, baseRaw, key, s.maxRawBytes()); err != nil {
		return nil, err
	}
	form.Blob, form.Stored = blob.NameOf(data), int64(len(data))
	return &foldedParent{swap: Swap{ID: rec.ID, Old: old, New: form}, blob: data}, nil
}
