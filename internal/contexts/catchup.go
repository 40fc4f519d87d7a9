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

// A process that is killed between an answer and the save beside it leaves a run
// without its last checkpoint. So every run that comes into a process's view for the
// first time is looked after: its events tell where a checkpoint belongs, and what
// is missing behind the newest one is saved.

const (
	// maxLate bounds the runs that wait to be looked after, maxLooked those that it
	// is remembered of.
	maxLate   = 256
	maxLooked = 10_000
	// maxMissing is how many of the last checkpoints of a run are made up for,
	// maxSearched how many events are read for that.
	maxMissing  = 8
	maxSearched = 2000
	// lateAge is how long after its last event a run is still looked after: what is
	// older may lack checkpoints because its session has been retired.
	lateAge = 14 * 24 * time.Hour
	// settleTime bounds how long a call on a run waits for what is still to be
	// saved of it.
	settleTime = 500 * time.Millisecond
)

// late are the runs that have come into view.
type late struct {
	runs chan string

	mu sync.Mutex
	of Runs
	// waiting are those to be looked after, looked those that were, or are.
	waiting map[string]run.Record
	looked  map[string]bool
	// busy says that one is being looked after.
	busy bool
}

// follow says where to read what runs have done. Before that none is looked after.
func (k *Keeper) follow(runs Runs) {
	k.late.mu.Lock()
	defer k.late.mu.Unlock()
	k.late.of = runs
}

// Seen implements run.Observer.
func (k *Keeper) Seen(_ context.Context, r run.Record) {
	if k.o.Off || k.o.Now().Sub(r.Updated) > lateAge {
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
		return // too many wait: it may come again
	}
	if l.looked == nil || len(l.looked) >= maxLooked {
		l.looked = map[string]bool{}
	}
	if l.waiting == nil {
		l.waiting = map[string]run.Record{}
	}
	l.looked[r.ID], l.waiting[r.ID] = true, r
}

// take gives a run that waits to be looked after, once.
func (l *late) take(id string) (run.Record, Runs, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r, ok := l.waiting[id]
	delete(l.waiting, id)
	l.busy = ok
	return r, l.of, ok
}

// pending says whether a run waits, or any is being looked after.
func (l *late) pending(id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, waits := l.waiting[id]
	return waits || l.busy
}

func (l *late) done() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.busy = false
}

// lookAfter saves what is missing of a run that waits for it.
func (k *Keeper) lookAfter(id string) {
	rec, runs, ok := k.late.take(id)
	if !ok {
		return
	}
	defer k.late.done()
	ctx, cancel := context.WithTimeout(context.Background(), jobTime)
	defer cancel()
	if err := k.catchUp(ctx, runs, rec); err != nil {
		k.o.Logger.Warn("whether a run lacks checkpoints could not be seen", "run", id, "error", err)
	}
}

// lookAfterAll does so with all that wait.
func (k *Keeper) lookAfterAll() {
	for {
		select {
		case id := <-k.late.runs:
			k.lookAfter(id)
		default:
			return
		}
	}
}

// settle waits until all that is to be saved of a run so far is saved, but not for
// long: it is for calls that ask for the run's checkpoints.
func (k *Keeper) settle(ctx context.Context, id string) {
	k.mu.Lock()
	idle := k.health.Waiting == 0
	k.mu.Unlock()
	if idle && !k.late.pending(id) {
		return
	}
	done := make(chan struct{})
	taken := k.enqueue(job{what: "what is missing of " + id, do: func(context.Context) error {
		defer close(done)
		k.lookAfter(id)
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

// settled has what is to be saved of a run saved before its checkpoints are looked
// at; without an id, what waits of any. A run that is not the caller's is left alone.
func (s *Service) settled(ctx context.Context, c run.Caller, id string) {
	if s.o.Keeper == nil || s.o.Runs == nil {
		return
	}
	if !isRun(id) {
		s.o.Keeper.settle(ctx, "")
		return
	}
	if _, err := s.o.Runs.Look(ctx, c, run.Ref{RunID: id}); err == nil { // so it comes into view
		s.o.Keeper.settle(ctx, id)
	}
}

// catchUp saves what is missing of a run behind its newest automatic checkpoint.
func (k *Keeper) catchUp(ctx context.Context, runs Runs, rec run.Record) error {
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
		c, err := runs.Behind(ctx, caller, run.Ref{RunID: rec.ID}, m.seq)
		if err != nil {
			return err
		}
		err = k.save(ctx, c, first(strings.Join(m.names, "; "), 200), m.tags)
		k.count(err)
		if err != nil && !isMoot(err) {
			return err
		}
	}
	return nil
}

// missed is a command of a run's that should have brought a checkpoint.
type missed struct {
	seq         int64
	names, tags []string
}

// missingOf reads a run's events backwards and gives the last commands behind an
// event that call for a checkpoint, the first of them first.
func missingOf(ctx context.Context, runs Runs, rec run.Record, covered int64) ([]missed, error) {
	caller := run.Caller{Principal: guideway.Principal{User: rec.User}, Via: run.ViaServer}
	var found []missed
	var open command
	covered = max(covered, rec.Seq-maxSearched)
	for last := rec.Seq; last > covered && len(found) < maxMissing; {
		after := max(last-eventPage, covered)
		events, err := runs.Events(ctx, caller, run.Ref{RunID: rec.ID}, after, int(last-after))
		if err != nil {
			return nil, err
		}
		for _, e := range slices.Backward(events) {
			if !isFact(e) || e.At.Before(rec.Created) { // a fork's are its parent's
				continue
			}
			if !open.has(e) {
				found = open.into(found)
				open = command{last: e}
			}
			var fact engine.Event
			if json.Unmarshal(e.Data, &fact) == nil {
				open.facts = append(open.facts, fact)
			}
		}
		last = after
	}
	found = open.into(found)
	found = found[:min(len(found), maxMissing)]
	slices.Reverse(found)
	return found, nil
}

// command is the events of one command, the last of them first: what was decided at
// one moment by one caller.
type command struct {
	last  run.Event
	facts []engine.Event
}

func (c *command) has(e run.Event) bool {
	return c.last.Seq > 0 && e.At.Equal(c.last.At) && e.By == c.last.By
}

// into adds a command to what is missing, if it calls for a checkpoint.
func (c *command) into(list []missed) []missed {
	slices.Reverse(c.facts)
	names, tags := occasions(c.facts)
	if len(names) == 0 {
		return list
	}
	return append(list, missed{seq: c.last.Seq, names: names, tags: tags})
}
