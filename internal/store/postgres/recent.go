package postgres

import (
	"slices"
	"sync"

	"github.com/guideway-dev/guideway/internal/run"
)

// keepRecent is the number of changes that the process keeps in memory while it watches the
// feed. A follower that lags further behind reads the feed from the database.
const keepRecent = 2048

// recentChanges are the newest changes of the feed. One reader of a process adds to them, and
// all followers of the feed read from them.
type recentChanges struct {
	mu sync.RWMutex
	// list has the changes after the position start up to the position last.
	list        []run.Change
	start, last int64
}

// add adds the changes that follow the last one.
func (r *recentChanges) add(list []run.Change) {
	if len(list) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, list...)
	r.last = list[len(list)-1].Pos
	if drop := len(r.list) - keepRecent; drop > 0 {
		r.start = r.list[drop-1].Pos
		r.list = slices.Clone(r.list[drop:])
	}
}

// after returns up to limit changes after a position. It returns false if they have to be
// read from the database. A nil receiver has no changes.
func (r *recentChanges) after(pos int64, limit int) ([]run.Change, bool) {
	if r == nil {
		return nil, false
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	if pos < r.start || pos > r.last {
		return nil, false
	}
	from, _ := slices.BinarySearchFunc(r.list, pos+1, func(c run.Change, pos int64) int { return int(c.Pos - pos) })
	return slices.Clone(r.list[from:min(from+max(limit, 0), len(r.list))]), true
}
