package driver

import (
	"context"
	"errors"
	"time"

	"github.com/guideway-dev/guideway"
	machineengine "github.com/guideway-dev/guideway/internal/machine/engine"
	"github.com/guideway-dev/guideway/internal/machine/llm"
)

// Update reports an event of a run, or a part of an agent's answer, to an observer.
type Update struct {
	RunID string
	// Depth is 0 for the driven run, 1 for its sub-machine, 2 for a sub-machine of that
	// one, and so on.
	Depth int
	// Event is nil if the update is a part of an agent's answer.
	Event *machineengine.Event
	// Delta is a part of an agent's answer.
	Delta llm.Delta
	Agent string
	State string
	Usage machineengine.Usage
}

// Drive executes a run until it ends, waits, or pauses. It returns an error if the run is
// already being driven, or if the driver itself fails; in both cases the run can be driven
// again. observe may be nil.
func (s *Service) Drive(ctx context.Context, user, id string, observe func(Update)) error {
	if observe == nil {
		observe = func(Update) {}
	}
	if !s.enterDrive(id) {
		return guideway.Errorf(guideway.CodeConflict, "this process is already executing run %s", id).
			WithFix("wait until the run pauses or ends; to see its progress: guideway machine status %s", id)
	}
	defer s.leaveDrive(id)
	l, err := s.takeOver(ctx, user, id)
	if l == nil || err != nil {
		return err
	}
	d := &drive{s: s, l: l, observe: observe}
	ctx, end := d.beginActivity(ctx, Activity{Kind: ActivityRun})
	err = d.runEffects(ctx)
	end(d.endingOf(err))
	if errors.Is(err, errCancelled) {
		return nil
	}
	if err != nil && !errors.Is(err, errLost) {
		// The dropped events are decided again by the next drive. If the release fails too,
		// the lease expires.
		d.l.buffer = d.l.buffer[:d.l.pending]
		err = errors.Join(err, d.releaseLease(context.WithoutCancel(ctx)))
	}
	return err
}

// takeOver loads a run and takes its lease. It returns nil if there is nothing to do. It
// retries on a conflict, because late writes of a dead process may arrive.
func (s *Service) takeOver(ctx context.Context, user, id string) (*loaded, error) {
	for n := 1; ; n++ {
		l, _, err := s.loadRun(ctx, user, id, 0)
		if err != nil || !s.needsDrive(l) {
			return nil, err
		}
		if err := s.leaseConflict(l); err != nil {
			return nil, err
		}
		err = s.takeLease(ctx, l)
		if err == nil {
			return l, nil
		}
		if guideway.ErrorCode(err) != guideway.CodeConflict || n == attempts {
			return nil, err
		}
	}
}

// needsDrive reports whether the run can make progress.
func (s *Service) needsDrive(l *loaded) bool {
	st := &l.state
	return !st.Status.Ended() && st.Status != machineengine.StatusPaused && (st.Status != machineengine.StatusWaiting || st.Pending != nil)
}

var (
	// errLost is returned if another process took over the run.
	errLost = errors.New("another process has taken over the run")
	// errCancelled is returned if the run was cancelled.
	errCancelled = errors.New("the run was cancelled")
)

// drive is the execution of one run by this process.
type drive struct {
	s       *Service
	l       *loaded
	observe func(Update)
	// tools are the available tools; known reports whether they are valid for the current
	// state.
	tools []machineengine.ToolInfo
	known bool
}

// runEffects executes effects until the run waits, pauses or ends.
func (d *drive) runEffects(ctx context.Context) (err error) {
	inner, end := d.traceStates(ctx)
	defer func() { end(err) }()
	for {
		ctx := inner()
		if err := ctx.Err(); err != nil {
			return d.interruptedError(err)
		}
		env, err := d.decisionEnv(ctx)
		if err != nil {
			return err
		}
		effect := d.l.program.Next(&d.l.state, env)
		if effect, err = d.checkPermit(ctx, effect); err != nil {
			return err
		}
		rest := false
		switch {
		case effect.Event != nil:
			err = d.addEvent(*effect.Event)
			d.known = d.known && effect.Event.Kind != machineengine.KindStateEntered
		case effect.Handler != nil:
			err = d.callHandler(ctx, effect.Handler)
		case effect.Model != nil:
			err = d.callModel(ctx, effect.Model)
		case effect.Tool != nil:
			err = d.callTool(ctx, *effect.Tool)
		case effect.Sub != nil:
			err = d.startSubMachine(ctx, effect.Sub)
		case effect.Unresolved != nil:
			rest, err = d.resolveIntent(ctx, effect.Unresolved)
		case effect.Wait != nil:
			err = d.waitUntil(ctx, *effect.Wait)
		default:
			rest = true
		}
		if err != nil {
			return err
		}
		if rest {
			d.l.waitsForChild = d.l.state.Pending != nil
			return d.releaseLease(ctx)
		}
	}
}

// checkPermit replaces an effect by a pause if the run's user lost the permission for it.
func (d *drive) checkPermit(ctx context.Context, effect machineengine.Effect) (machineengine.Effect, error) {
	if effect.Model == nil && effect.Tool == nil && effect.Sub == nil {
		return effect, nil
	}
	why, err := d.s.permitReason(ctx, d.l)
	if err != nil || why == "" {
		return effect, err
	}
	return machineengine.Effect{Event: &machineengine.Event{Kind: machineengine.KindPaused, Pause: &machineengine.Pause{
		Code: machineengine.PausePermit, Message: why, Fix: "start a new run, or cancel this run: guideway machine cancel " + d.l.rec.ID,
	}}}, nil
}

// permitReason returns why a run may not continue, or "".
func (s *Service) permitReason(ctx context.Context, l *loaded) (string, error) {
	if s.o.Permit == nil || len(l.state.Allow) == 0 {
		return "", nil
	}
	return s.o.Permit(ctx, l.runScope())
}

// interruptedError returns the error of a drive whose context ended.
func (d *drive) interruptedError(err error) error {
	return guideway.Errorf(guideway.CodeUnavailable, "run %s was interrupted and can be resumed: %w", d.l.rec.ID, err).
		WithFix("guideway machine resume %s", d.l.rec.ID)
}

// decisionEnv returns the environment of the next decision.
func (d *drive) decisionEnv(ctx context.Context) (machineengine.Env, error) {
	if !d.known && d.s.o.Tools != nil && d.l.program.WantsTools() {
		if err := d.flushResults(ctx); err != nil {
			return machineengine.Env{}, err
		}
		tools, err := d.s.o.Tools.Tools(ctx, d.l.runScope())
		if err != nil {
			return machineengine.Env{}, guideway.Errorf(guideway.CodeUnavailable, "list the tools for the run: %w", err).
				WithFix("guideway machine resume %s", d.l.rec.ID)
		}
		d.tools, d.known = tools, true
	}
	return machineengine.Env{Tools: d.tools, Counter: d.s.o.Counter}, nil
}

// addEvent adds an event to the run and reports it to the observer.
func (d *drive) addEvent(e machineengine.Event) error {
	if err := d.l.addEvent(e); err != nil {
		return err
	}
	d.observe(Update{RunID: d.l.rec.ID, Event: &e, State: d.l.state.At, Agent: e.Agent, Usage: d.l.state.Usage})
	return nil
}

// flushEvents appends the buffered events. On a conflict it reloads the run, drops the
// events that were only decided and appends the pending results again.
func (d *drive) flushEvents(ctx context.Context) error {
	const attempts = 5
	for range attempts {
		err := d.s.flushEvents(context.WithoutCancel(ctx), d.l, d.s.serverBy(d.l))
		if guideway.ErrorCode(err) != guideway.CodeConflict {
			return err
		}
		if err := d.reload(ctx); err != nil {
			return err
		}
	}
	return guideway.Errorf(guideway.CodeConflict, "the events of run %s could not be appended, because other processes kept changing the run", d.l.rec.ID).
		WithFix("guideway machine resume %s", d.l.rec.ID)
}

// flushResults appends the buffered events before the next external call, if they contain a
// result.
func (d *drive) flushResults(ctx context.Context) error {
	if d.l.pending == 0 {
		return nil
	}
	return d.flushEvents(ctx)
}

// reload loads the run after a conflict and buffers the results that the journal lacks.
func (d *drive) reload(ctx context.Context) error {
	buffered := d.l.buffer
	l, _, err := d.s.loadRun(context.WithoutCancel(ctx), d.l.rec.User, d.l.rec.ID, 0)
	if err != nil {
		return err
	}
	switch {
	case l.state.Status == machineengine.StatusCancelled:
		return errCancelled
	case l.lease == nil || l.lease.Owner != d.s.o.Owner:
		return errLost
	}
	d.l = l
	for _, e := range buffered {
		if e.Kind != string(machineengine.KindModelResult) && e.Kind != string(machineengine.KindToolResult) && e.Kind != string(machineengine.KindSubResult) {
			break
		}
		fact, err := factOf(e)
		if err != nil || !l.awaitsResult(fact) {
			return err
		}
		if err := l.addEvent(fact); err != nil {
			return err
		}
		l.pending = len(l.buffer)
	}
	return nil
}

// awaitsResult reports whether the run has the intent of a result but not the result.
func (l *loaded) awaitsResult(result machineengine.Event) bool {
	p := l.state.Pending
	switch {
	case p == nil:
		return false
	case result.Kind == machineengine.KindModelResult:
		return p.Kind == machineengine.KindModelIntent && p.Call == result.Call && p.Attempt == result.Attempt
	case result.Kind == machineengine.KindToolResult:
		return p.Kind == machineengine.KindToolIntent && p.Tool.Key == result.Tool.Key && p.Tool.Attempt == result.Tool.Attempt
	default:
		return p.Kind == machineengine.KindSubIntent && p.Run == result.Run
	}
}

// releaseLease releases the lease together with the last events.
func (d *drive) releaseLease(ctx context.Context) error {
	if d.l.lease == nil || d.l.lease.Owner != d.s.o.Owner {
		return d.flushEvents(ctx)
	}
	if err := d.l.addLeaseEvent(KindLeaseReleased, Lease{Owner: d.s.o.Owner, Until: d.s.clock(), WaitsForChild: d.l.waitsForChild}); err != nil {
		return err
	}
	return d.flushEvents(ctx)
}

// runKeepingLease runs work in the background and renews the lease until work returns. If
// the lease is lost or the run is cancelled, it cancels the context of work.
func runKeepingLease[T any](ctx context.Context, d *drive, work func(context.Context) T) (T, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if err := d.ensureLease(ctx); err != nil {
		var none T
		return none, err
	}
	done := make(chan T, 1)
	go func() { done <- work(ctx) }()
	tick := time.NewTicker(d.s.o.Lease / 3)
	defer tick.Stop()
	for {
		select {
		case out := <-done:
			return out, nil
		case <-tick.C:
			if err := d.renewLease(ctx); err != nil {
				stop()
				<-done
				var none T
				return none, err
			}
		}
	}
}

// ensureLease renews an old lease before a call. If this process was suspended for long,
// another process may have taken over and decided that the call of the last intent was not
// made.
func (d *drive) ensureLease(ctx context.Context) error {
	if d.s.clock().Before(d.l.seen.Add(d.s.o.Lease / 3)) {
		return nil
	}
	return d.renewLease(ctx)
}

// renewLease appends a renewal. On a conflict it reloads the run, because the lease may be
// lost.
func (d *drive) renewLease(ctx context.Context) error {
	err := d.s.renewLease(context.WithoutCancel(ctx), d.l)
	if guideway.ErrorCode(err) != guideway.CodeConflict {
		return err
	}
	d.l.buffer, d.l.pending = nil, 0 // the buffer contains only the renewal, because pending results were appended before
	return d.reload(ctx)
}

// waitUntil waits until the given time, at which the next attempt is due.
func (d *drive) waitUntil(ctx context.Context, until time.Time) error {
	if err := d.flushEvents(ctx); err != nil {
		return err
	}
	left := until.Sub(d.s.clock())
	_, err := runKeepingLease(ctx, d, func(ctx context.Context) struct{} {
		t := time.NewTimer(left)
		defer t.Stop()
		select {
		case <-ctx.Done():
		case <-t.C:
		}
		return struct{}{}
	})
	d.l.state.ClearWait()
	return err
}
