package checkpoint

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/blob"
)

// foldQueue stores the parents of new checkpoints as deltas, one after the other, after the
// saves have returned. A parent that a crash leaves whole can be read as before; the next
// Maintain stores it as a delta.
type foldQueue struct {
	mu sync.Mutex
	// last is closed when the newest entry is done; nil if there was none.
	last    chan struct{}
	waiting atomic.Int64
}

// maxWaiting is the number of entries from which a save waits for those before it.
const maxWaiting = 32

// pushFold adds a checkpoint that has a successor now.
func (s *Service) pushFold(ctx context.Context, old, successor Record) {
	ctx = context.WithoutCancel(ctx)
	q, done := &s.folds, make(chan struct{})
	q.mu.Lock()
	before := q.last
	q.last = done
	q.mu.Unlock()
	full := q.waiting.Add(1) > maxWaiting
	go func() {
		defer close(done)
		defer q.waiting.Add(-1)
		if before != nil {
			<-before
		}
		if _, err := s.foldAgain(ctx, old, successor); err != nil {
			s.o.Logger.WarnContext(ctx, "a checkpoint could not be stored as a delta", "checkpoint", old.ID, "error", err)
		}
		s.recent.dropContent(old.ID)
	}()
	if full {
		<-before
	}
}

// FinishFolds waits until the checkpoints that earlier saves left whole are stored as deltas.
func (s *Service) FinishFolds() {
	s.folds.mu.Lock()
	last := s.folds.last
	s.folds.mu.Unlock()
	if last != nil {
		<-last
	}
}

// foldedParent is a checkpoint that is stored again as a delta against its successor.
type foldedParent struct {
	swap Swap
	blob []byte
}

// foldAgain stores one checkpoint as a delta against its successor.
func (s *Service) foldAgain(ctx context.Context, r, successor Record) (bool, error) {
	f, err := s.foldInto(ctx, r, successor)
	if errors.Is(err, errDamaged) || guideway.ErrorCode(err) == guideway.CodeNotFound {
		return false, nil
	}
	if err != nil || f == nil {
		return false, err
	}
	if _, err := s.o.Blobs.Put(ctx, f.blob); err != nil {
		return false, err
	}
	err = s.o.Index.Apply(ctx, Change{Series: r.SeriesKey, Swaps: []Swap{f.swap}})
	if guideway.ErrorCode(err) == guideway.CodeConflict {
		s.unlinkBlobs(ctx, f.swap.New.Blob)
		return false, nil
	}
	if err != nil {
		return false, err
	}
	s.unlinkBlobs(ctx, f.swap.Old)
	return true, nil
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
