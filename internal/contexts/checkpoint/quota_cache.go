package checkpoint

import (
	"context"
	"sync"
	"time"
)

// The total size of all checkpoints is a sum over all sessions of all processes. If the
// total was recently far below the limit, the next few saves cannot exceed it and skip the
// sum.
const (
	// cachedSaves bounds the number of saves that skip the sum, cachedTime the time during
	// which they may skip it, since other processes save too.
	cachedSaves = 32
	cachedTime  = 10 * time.Second
	// cachedWriters is the number of processes that can save at the same rate without
	// exceeding the limit.
	cachedWriters = 16
)

// quotaCache is the number of saves that may still skip the sum.
type quotaCache struct {
	mu    sync.Mutex
	left  int64
	asked time.Time
}

// takeSave reports whether one more save may skip the sum, and counts that save.
func (h *quotaCache) takeSave(now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.left <= 0 || now.Before(h.asked) || now.Sub(h.asked) >= cachedTime {
		return false
	}
	h.left--
	return true
}

// setUsed sets the number of saves that may skip the sum, after the total was computed.
func (h *quotaCache) setUsed(now time.Time, l Limits, used int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.left, h.asked = 0, now
	if l.CheckpointBytes > 0 {
		free := min(fractionOf(l.TotalBytes, l.Warn), fractionOf(l.TotalBytes, l.Clean)) - used
		h.left = min(cachedSaves, free/(cachedWriters*l.CheckpointBytes))
	}
}

// usedWith returns the total size after a save of more bytes. matters is false, and the
// size is not computed, if the total was recently far below the limit.
func (s *Service) usedWith(ctx context.Context, more int64) (used int64, matters bool, err error) {
	now := s.o.Now()
	if more <= s.o.Limits.CheckpointBytes && s.headroom.takeSave(now) {
		return 0, false, nil
	}
	totals, err := s.o.Index.Totals(ctx)
	if err != nil {
		return 0, false, err
	}
	s.headroom.setUsed(now, s.o.Limits, totals.Stored+more)
	return totals.Stored + more, true, nil
}
