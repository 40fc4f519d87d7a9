package checkpoint

import (
	"context"
	"sync"
	"time"
)

// To see how much all checkpoints take is to add up all sessions, of all processes.
// Where that was far below the limit a moment ago, the next few saves cannot reach
// it, and do not ask.
const (
	// headroomSaves and headroomTime bound how many saves do not ask, and for how
	// long: what others save meanwhile is not seen.
	headroomSaves = 32
	headroomTime  = 10 * time.Second
	// headroomWriters is how many processes may save as much at the same time
	// without the limit being passed.
	headroomWriters = 16
)

// headroom is how many saves may come before all checkpoints are added up again.
type headroom struct {
	mu    sync.Mutex
	left  int64
	asked time.Time
}

// take takes one save from it, if there is one.
func (h *headroom) take(now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.left <= 0 || now.Before(h.asked) || now.Sub(h.asked) >= headroomTime {
		return false
	}
	h.left--
	return true
}

// learn notes how much all checkpoints take.
func (h *headroom) learn(now time.Time, l Limits, used int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.left, h.asked = 0, now
	if l.CheckpointBytes > 0 {
		free := min(part(l.TotalBytes, l.Warn), part(l.TotalBytes, l.Clean)) - used
		h.left = min(headroomSaves, free/(headroomWriters*l.CheckpointBytes))
	}
}

// usedWith gives how much all checkpoints will take with so many more bytes; false
// says that it is too little to matter.
func (s *Service) usedWith(ctx context.Context, more int64) (used int64, matters bool, err error) {
	now := s.o.Now()
	if more <= s.o.Limits.CheckpointBytes && s.headroom.take(now) {
		return 0, false, nil
	}
	totals, err := s.o.Index.Totals(ctx)
	if err != nil {
		return 0, false, err
	}
	s.headroom.learn(now, s.o.Limits, totals.Stored+more)
	return totals.Stored + more, true, nil
}
