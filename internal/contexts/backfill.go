package contexts

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/run"
)

// If a process is killed between an answer and the background save, the run lacks its last
// checkpoint. Therefore each run is checked when a process lists or loads it for the first
// time: its events show which checkpoints it needs, and the checkpoints that are missing
// after the newest one are saved.

const (
	// maxWaiting bounds the runs that wait for a backfill, maxChecked the runs in
	// backfillQueue.looked.
	maxWaiting = 256
	maxChecked = 10_000
	// maxMissing bounds the checkpoints that are backfilled per run, maxSearched the events
	// of the run that are read to find them.
	maxMissing  = 8
	maxSearched = 2000
	// maxBackfillAge is the maximum age of the last event of a run to backfill: older runs may
	// lack checkpoints because their sessions were removed.
	maxBackfillAge = 14 * 24 * time.Hour
	// settleTime bounds the wait of a call on a run for its pending saves.
	settleTime = 500 * time.Millisecond
)

// backfillQueue has the newly seen runs that wait for a check of their checkpoints.
type backfillQueue struct {
	runs chan string

	mu sync.Mutex
	of Runs
	// waiting are the runs to check; looked are the runs that were queued before, so that
	// no run is queued twice.
	waiting map[string]run.Record
	looked  map[string]bool
	// busy reports that a run is being checked.
	busy bool
}

// setRuns sets the source of events. No run is checked before the call.
func (k *AutoSaver) setRuns(runs Runs) {
	k.late.mu.Lock()
	defer k.late.mu.Unlock()
	k.late.of = runs
}

// Seen implements run.Observer.
func (k *AutoSaver) Seen(_ context.Context, r run.Record) {
	if k.o.Off || k.o.Now().Sub(r.Updated) > maxBackfillAge {
		return
	}
	l := &k.late
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of == nil || l.looked[r.ID] {
		return
	}
	select {
	case l.runs <- r.ID:
	default:
		return // the queue is full; the run may be seen again
	}
	if l.looked == nil || len(l.looked) >= maxChecked {
		l.looked = map[string]bool{}
	}
	if l.waiting == nil {
		l.waiting = map[string]run.Record{}
	}
	l.looked[r.ID], l.waiting[r.ID] = true, r
}

// takeRun removes a run from the waiting runs and returns it with the source of its events.
// It returns false if the run does not wait. The caller must call finishRun when the check
// has ended.
func (l *backfillQueue) takeRun(id string) (run.Record, Runs, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r, ok := l.waiting[id]
	delete(l.waiting, id)
	l.busy = ok
	return r, l.of, ok
}

// isPending reports whether the run is waiting, or any run is being checked.
func (l *backfillQueue) isPending(id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, waits := l.waiting[id]
	return waits || l.busy
}

func (l *backfillQueue) finishRun() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.busy = false
}

// backfillWaiting backfills a run if it is waiting.
func (k *AutoSaver) backfillWaiting(id string) {
	rec, runs, ok := k.late.takeRun(id)
	if !ok {
		return
	}
	defer k.late.finishRun()
	ctx, cancel := context.WithTimeout(context.Background(), jobTime)
	defer cancel()
	if err := k.backfill(ctx, runs, rec); err != nil {
		k.o.Logger.Warn("the missing checkpoints of a run could not be saved", "run", id, "error", err)
	}
}

// backfillAll backfills all waiting runs.
func (k *AutoSaver) backfillAll() {
	for {
		select {
		case id := <-k.late.runs:
			k.backfillWaiting(id)
		default:
			return
		}
	}
}

// waitForSaves waits for a limited time until all pending saves of a run are done, for calls that
// read the run's checkpoints.
func (k *AutoSaver) waitForSaves(ctx context.Context, id string) {
	k.mu.Lock()
	idle := k.health.Waiting == 0
	k.mu.Unlock()
	if idle && !k.late.isPending(id) {
		return
	}
	done := make(chan struct{})
	taken := k.enqueueJob(job{what: "the backfill of " + id, do: func(context.Context) error {
		defer close(done)
		k.backfillWaiting(id)
		return nil
	}})
	if !taken {
		return
	}
	timer := time.NewTimer(settleTime)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// flushSaves waits for the pending saves of the run with the given id, or for all pending
// saves if id is not the id of a run. It does not wait for a run of another user.
func (s *Service) flushSaves(ctx context.Context, c run.Caller, id string) {
	if s.o.AutoSaver == nil || s.o.Runs == nil {
		return
	}
	if !isRun(id) {
		s.o.AutoSaver.waitForSaves(ctx, "")
		return
	}
	if _, err := s.o.Runs.Get(ctx, c, run.Ref{RunID: id}); err == nil { // Get calls Seen for the run
		s.o.AutoSaver.waitForSaves(ctx, id)
	}
}

// backfill saves the checkpoints that a run lacks after its newest automatic one.
func (k *AutoSaver) backfill(ctx context.Context, runs Runs, rec run.Record) error {
	const page = 200
	who := guideway.Principal{User: rec.User}
	list, err := k.o.Checkpoints.List(ctx, who, checkpoint.ListRequest{Session: rec.ID, Limit: page})
	if err != nil {
		return err
	}
	covered := int64(0)
	for _, c := range list.Checkpoints {
		if c.Kind == checkpoint.KindAuto && c.Run == rec.ID {
			covered = max(covered, c.RunSeq)
		}
	}
	missing, err := missingOf(ctx, runs, rec, covered)
	if err != nil {
		return err
	}
	caller := run.Caller{Principal: who, Via: run.ViaServer}
	for _, m := range missing {
		c, err := runs.StateAt(ctx, caller, run.Ref{RunID: rec.ID}, m.seq)
		if err != nil {
			return err
		}
		err = k.saveCommitted(ctx, c, truncateText(strings.Join(m.names, "; "), 200), m.tags)
		k.countSave(err)
		if err != nil && !isMoot(err) {
			return err
		}
	}
	return nil
}

// missingSave is a command that needs a checkpoint, and the names and tags of the
// checkpoint.
type missingSave struct {
	seq         int64
	names, tags []string
}

// missingOf reads a run's events backwards and returns the last commands after the covered
// event that need a checkpoint, oldest first.
func missingOf(ctx context.Context, runs Runs, rec run.Record, covered int64) ([]missingSave, error) {
	caller := run.Caller{Principal: guideway.Principal{User: rec.User}, Via: run.ViaServer}
	var found []missingSave
	var open commandEvents
	covered = max(covered, rec.Seq-maxSearched)
	for last := rec.Seq; last > covered && len(found) < maxMissing; {
		after := max(last-eventPage, covered)
		events, err := runs.Events(ctx, caller, run.Ref{RunID: rec.ID}, after, int(last-after))
		if err != nil {
			return nil, err
		}
		for _, e := range slices.Backward(events) {
			if !isFact(e) || e.At.Before(rec.Created) { // earlier events belong to the parent of the fork
				continue
			}
			if !open.hasEvent(e) {
				found = open.appendMissing(found)
				open = commandEvents{last: e}
			}
			var fact engine.Event
			if json.Unmarshal(e.Data, &fact) == nil {
				open.facts = append(open.facts, fact)
			}
		}
		last = after
	}
	found = open.appendMissing(found)
	found = found[:min(len(found), maxMissing)]
	slices.Reverse(found)
	return found, nil
}

// commandEvents holds the events of one command in reverse order. They have the same time
// and caller.
type commandEvents struct {
	last  run.Event
	facts []engine.Event
}

func (c *commandEvents) hasEvent(e run.Event) bool {
	return c.last.Seq > 0 && e.At.Equal(c.last.At) && e.By == c.last.By
}

// appendMissing appends the command to the list if it needs a checkpoint.
func (c *commandEvents) appendMissing(list []missingSave) []missingSave {
	slices.Reverse(c.facts)
	names, tags := saveTriggers(c.facts)
	if len(names) == 0 {
		return list
	}
	return append(list, missingSave{seq: c.last.Seq, names: names, tags: tags})
}
