// Package cluster connects the processes that use one store and drive machine runs: its
// instances. An order to drive a run is a job, which the store keeps with the events that
// caused it. Each instance records that it is alive, by the clock of the database, and
// schedules the runs of instances that ended.
//
// The events of a run are the truth about it. If two instances drive the same run, the
// appends of one of them conflict.
package cluster

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/shortid"
	"github.com/guideway-dev/guideway/internal/run"
)

// Store keeps jobs and instances. Its clock is that of the database.
type Store interface {
	// Schedule stores a job. A commit can store one with its events (run.Commit).
	Schedule(ctx context.Context, j run.Job) error
	// WorkJobs executes due jobs until the context ends, at most a number at a time. A job
	// whose execution fails is executed again, after a delay that increases. If a process
	// ends during a job, ReapInstances schedules its run.
	WorkJobs(ctx context.Context, instance string, most int, do func(context.Context, run.Job) error) error
	// Beat records that an instance is alive, and returns which of its runs were cancelled.
	// known is false if the instance does not exist and was not to be registered.
	Beat(ctx context.Context, instance string, register bool) (known bool, cancelled []string, err error)
	// HasInstance reports whether an instance exists: it was registered, and neither left nor
	// was silent.
	HasInstance(ctx context.Context, instance string) (bool, error)
	// ReapInstances removes the instances that were silent for a time, and schedules the runs
	// of instances that do not exist.
	ReapInstances(ctx context.Context, silent time.Duration) error
	// LeaveInstance removes an instance.
	LeaveInstance(ctx context.Context, instance string) error
}

const (
	// beatInterval is how often an instance records that it is alive.
	beatInterval = 2 * time.Second
	// silentAfter is how long an instance can be silent before others take over its runs.
	silentAfter = 9 * time.Second
	// trustInterval is how long an instance may call models and tools after a beat. It is
	// shorter than silentAfter: an instance that was paused learns that others took over its
	// runs before it makes another call.
	trustInterval = 2 * beatInterval
)

var (
	// ErrReaped is the cause of the end of a drive if other instances considered this one as
	// ended.
	ErrReaped = errors.New("other processes considered this process as ended")
	// ErrCancelled is the cause of the end of a drive if the run was cancelled.
	ErrCancelled = errors.New("the run was cancelled")
)

// Instance is this process among the instances of a store.
type Instance struct {
	id    string
	store Store // nil if this is the only instance
	log   *slog.Logger

	mu sync.Mutex
	// drives has the runs that this instance drives.
	drives map[string]context.CancelCauseFunc
	// beaten is the time of the last beat, steady the time since when each beat succeeded.
	beaten, steady time.Time
	workers        int
	stop           chan struct{} // stop ends the loop; nil if it is not running
	loop           sync.WaitGroup
}

// New returns an instance with an id, or with a unique one if it is empty. store may be nil.
func New(id string, store Store, log *slog.Logger) *Instance {
	if id == "" {
		id = shortid.Token("i_")
	}
	return &Instance{id: id, store: store, log: log, drives: map[string]context.CancelCauseFunc{}}
}

// ID returns the id of the instance.
func (i *Instance) ID() string { return i.id }

// Enter records that this instance drives a run, until leave is called. The context ends if
// the run is cancelled, or if other instances take over the runs of this one. If this
// instance already drives the run, the error has CodeConflict.
func (i *Instance) Enter(ctx context.Context, id string) (driving context.Context, leave func(), err error) {
	i.mu.Lock()
	if i.drives[id] != nil {
		i.mu.Unlock()
		return nil, nil, guideway.Errorf(guideway.CodeConflict, "this process is already executing run %s", id).
			WithFix("wait until the run pauses or ends; to see its progress: guideway machine status %s", id)
	}
	driving, cancel := context.WithCancelCause(ctx)
	i.drives[id] = cancel
	i.startLoop()
	i.mu.Unlock()
	leave = func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		delete(i.drives, id)
		cancel(nil)
		i.stopLoop()
	}
	if err := i.confirm(ctx, true); err != nil {
		leave()
		return nil, nil, err
	}
	return driving, leave, nil
}

// Interrupt ends the drive of a run by this instance.
func (i *Instance) Interrupt(id string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if cancel := i.drives[id]; cancel != nil {
		cancel(ErrCancelled)
	}
}

// IsDriving reports whether this instance drives a run.
func (i *Instance) IsDriving(id string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.drives[id] != nil
}

// IsAlive reports whether another instance may drive runs.
func (i *Instance) IsAlive(ctx context.Context, id string) (bool, error) {
	if i.store == nil || id == i.id {
		return id == i.id, nil
	}
	return i.store.HasInstance(ctx, id)
}

// Confirm returns an error if other instances may have taken over the runs of this one. It
// must be called before a call of a model or a tool.
func (i *Instance) Confirm(ctx context.Context) error { return i.confirm(ctx, false) }

func (i *Instance) confirm(ctx context.Context, register bool) error {
	i.mu.Lock()
	recent := time.Since(i.beaten) < trustInterval
	i.mu.Unlock()
	if i.store == nil || recent {
		return nil
	}
	return i.beat(ctx, register)
}

// beat records that this instance is alive. If it does not exist any more, it ends its
// drives.
func (i *Instance) beat(ctx context.Context, register bool) error {
	begun := time.Now()
	known, cancelled, err := i.store.Beat(ctx, i.id, register)
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case err != nil:
		i.steady = time.Time{}
		return err
	case !known:
		i.beaten = time.Time{}
		for _, cancel := range i.drives {
			cancel(ErrReaped)
		}
		return ErrReaped
	}
	if i.steady.IsZero() || begun.Sub(i.beaten) > silentAfter/2 {
		i.steady = begun
	}
	i.beaten = begun
	for _, id := range cancelled {
		if cancel := i.drives[id]; cancel != nil {
			cancel(ErrCancelled)
		}
	}
	return nil
}

// Work executes the jobs of the store until the context ends, and schedules the runs of
// instances that ended.
func (i *Instance) Work(ctx context.Context, most int, do func(context.Context, run.Job) error) error {
	if err := i.confirm(ctx, true); err != nil && guideway.ErrorCode(err) != guideway.CodeUnavailable {
		return err
	}
	i.mu.Lock()
	i.workers++
	i.startLoop()
	i.mu.Unlock()
	defer func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.workers--
		i.stopLoop()
	}()
	return i.store.WorkJobs(ctx, i.id, most, do)
}

// startLoop starts the loop that beats. The caller holds the mutex, as for stopLoop.
func (i *Instance) startLoop() {
	if i.store == nil || i.stop != nil {
		return
	}
	stop := make(chan struct{})
	i.stop = stop
	i.loop.Go(func() { i.runLoop(stop) })
}

// stopLoop ends the loop if this instance neither drives runs nor works.
func (i *Instance) stopLoop() {
	if i.stop != nil && len(i.drives) == 0 && i.workers == 0 {
		close(i.stop)
		i.stop = nil
	}
}

// runLoop beats at an interval. An instance that works also looks for instances that ended,
// if it has reached the store for long enough: after an outage of the database, the others
// must have had time for a beat.
func (i *Instance) runLoop(stop chan struct{}) {
	ticker := time.NewTicker(beatInterval)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
		}
		ctx, cancel := context.WithTimeout(context.Background(), silentAfter)
		err := i.beat(ctx, false)
		if errors.Is(err, ErrReaped) {
			i.log.Warn("other processes took over the machine runs of this process, because it was silent", "instance", i.id)
			err = i.beat(ctx, true)
		}
		i.mu.Lock()
		reaps := err == nil && i.workers > 0 && time.Since(i.steady) >= silentAfter
		i.mu.Unlock()
		if reaps {
			err = i.store.ReapInstances(ctx, silentAfter)
		}
		if err != nil {
			i.log.Warn("cannot record that this process is alive", "instance", i.id, "error", err)
		}
		cancel()
	}
}

// Close removes the instance. Its drives must have ended.
func (i *Instance) Close(ctx context.Context) error {
	i.mu.Lock()
	registered := !i.beaten.IsZero()
	i.beaten = time.Time{}
	i.mu.Unlock()
	i.loop.Wait()
	if i.store == nil || !registered {
		return nil
	}
	return i.store.LeaveInstance(ctx, i.id)
}
