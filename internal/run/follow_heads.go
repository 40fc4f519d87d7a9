package run

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/guideway-dev/guideway/internal/platform/ctxsleep"
)

const (
	// headInterval is the time between two reads of the feed, so that the runs that changed
	// several times in between are read once.
	headInterval = 2 * time.Second
	// headChanges is the maximum number of changes in one read.
	headChanges = 5000
)

// FollowHeads records the heads of the runs that any process changes, until ctx ends. Each
// machine then notices a rollback of the journal, also of runs that it never continued. It
// begins with the oldest change of the feed.
func (v *Verifier) FollowHeads(ctx context.Context, log *slog.Logger) {
	failing := false
	for at := int64(0); ctxsleep.For(ctx, headInterval) == nil; {
		next, err := v.recordChanged(ctx, at)
		if err != nil && !failing && ctx.Err() == nil {
			log.WarnContext(ctx, "cannot record the last events of the runs of other processes: if an older copy of the store is restored, this machine may not detect the restore; another attempt follows", "error", err)
		}
		at, failing = next, err != nil
	}
}

// recordChanged records the heads of the runs in the next changes of the feed, and returns the
// position of the last one. After an error, it returns the given position.
func (v *Verifier) recordChanged(ctx context.Context, at int64) (int64, error) {
	list, reset, err := v.Journal.Changes(ctx, at, headChanges)
	if err != nil {
		return at, err
	}
	next := at
	if reset { // the oldest changes are gone, or the feed is new
		next = 0
	}
	var ids []string
	for _, c := range list {
		next = c.Pos
		if c.Subject == SubjectRun {
			ids = append(ids, c.ID)
		}
	}
	slices.Sort(ids)
	for some := range slices.Chunk(slices.Compact(ids), pageSize) {
		runs, err := v.Journal.Runs(ctx, Filter{IDs: some, Limit: len(some)})
		if err != nil {
			return at, err
		}
		for i := range runs {
			if err := v.Heads.Record(runs[i].ID, runs[i].Seq, runs[i].Head); err != nil {
				return at, err
			}
		}
	}
	return next, nil
}
