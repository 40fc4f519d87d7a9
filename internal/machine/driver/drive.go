package driver

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/cluster"
	machineengine "github.com/guideway-dev/guideway/internal/machine/engine"
	"github.com/guideway-dev/guideway/internal/machine/llm"
	"github.com/guideway-dev/guideway/internal/platform/ctxsleep"
	"github.com/guideway-dev/guideway/internal/run"
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

const (
	// shortWait is the longest wait for the next attempt during which a drive continues.
	shortWait = time.Second
	// retryDelay is the delay before a run is driven again after an error of the driver.
	retryDelay = 30 * time.Second
)

// Drive executes a run until it rests: it ends, waits, pauses, or waits longer than a second
// for its next attempt. In the last case it returns the time to wait, after which the run
// must be driven again; with Options.Schedule, a job does that. It returns an error if the
// run is already being driven, or if the driver itself fails; in both cases the run can be
// driven again. observe may be nil.
func (s *Service) Drive(ctx context.Context, user, id string, observe func(Update)) (wait time.Duration, err error) {
	return s.driveRun(ctx, user, id, observe, s.o.Schedule)
}

// DriveAttended drives a run like Drive, for a person who waits for it: between attempts, it
// waits until the next one.
func (s *Service) DriveAttended(ctx context.Context, user, id string, observe func(Update)) error {
	for {
		wait, err := s.Drive(ctx, user, id, observe)
		if err != nil || wait == 0 {
			return err
		}
		if err := ctxsleep.For(ctx, wait); err != nil {
			return interruptedError(id, err)
		}
	}
}

// driveRun is Drive. schedule stores jobs for the run.
func (s *Service) driveRun(ctx context.Context, user, id string, observe func(Update), schedule bool) (wait time.Duration, err error) {
	if observe == nil {
		observe = func(Update) {}
	}
	ctx, leave, err := s.instance.Enter(ctx, id)
	if err != nil {
		return 0, err
	}
	defer leave()
	l, tools, err := s.takeOver(ctx, user, id, schedule)
	if l == nil || err != nil {
		return 0, err
	}
	l.state.ClearWait() // the run rested for this time
	d := &drive{s: s, l: l, observe: observe, schedule: schedule, tools: tools, known: tools != nil}
	ctx, end := d.beginActivity(ctx, Activity{Kind: ActivityRun})
	err = d.runEffects(ctx)
	end(d.endingOf(err))
	switch {
	case errors.Is(err, errLost):
		return 0, err
	case err != nil:
		return 0, d.endInterrupted(ctx, err)
	}
	return d.wait, nil
}

// endInterrupted drops the events that were only decided and releases the lease after an
// error. A job continues the run, at once if the process ends. If the release fails too, the
// lease ends with the process. It returns nil if the run was cancelled.
func (d *drive) endInterrupted(ctx context.Context, cause error) error {
	switch d.wait = retryDelay; {
	case ctx.Err() != nil:
		d.wait = 0
	case lacksTools(cause):
		d.wait = firstPutBack
	}
	for {
		err := d.retryUnavailable(ctx, d.reload)
		cancelled := errors.Is(err, errCancelled)
		if err != nil && !cancelled {
			return errors.Join(cause, err)
		}
		again, err := d.releaseLease(ctx, !cancelled)
		switch {
		case again:
			continue
		case err != nil:
			return errors.Join(cause, err)
		case cancelled:
			return nil
		case d.schedule:
			return releasedError{cause}
		}
		return cause
	}
}

// releasedError is an error of a drive after which a job drives the run again.
type releasedError struct{ error }

// Unwrap returns the error of the drive.
func (e releasedError) Unwrap() error { return e.error }

// takeOver loads a run and takes its lease. It returns nil if there is nothing to do, and
// the tools of the run if it listed them. It retries on a conflict, because late writes of a
// dead process may arrive. If this process lacks tools of the run, it leaves the run alone,
// with a job for later if schedule is set.
func (s *Service) takeOver(ctx context.Context, user, id string, schedule bool) (*loaded, []machineengine.ToolInfo, error) {
	for n := 1; ; n++ {
		l, _, err := s.loadRun(ctx, user, id, 0)
		if err != nil || !s.needsDrive(l) {
			return nil, nil, err
		}
		if err := s.leaseConflict(ctx, l); err != nil {
			return nil, nil, err
		}
		tools, lacking, err := s.pinnedTools(ctx, l)
		if lacksTools(err) && schedule {
			return nil, nil, cmp.Or(s.putBack(ctx, id, lacking, err), err)
		}
		if err != nil {
			return nil, nil, err
		}
		if l.state.LacksTools() {
			if err := l.addEvent(machineengine.Event{Kind: machineengine.KindResumed}); err != nil {
				return nil, nil, err
			}
		}
		err = s.takeLease(ctx, l)
		if err == nil {
			s.mu.Lock()
			delete(s.lacking, id)
			s.mu.Unlock()
			return l, tools, nil
		}
		if guideway.ErrorCode(err) != guideway.CodeConflict || n == attempts {
			return nil, nil, err
		}
	}
}

// needsDrive reports whether the run can make progress.
func (s *Service) needsDrive(l *loaded) bool {
	st := &l.state
	return st.LacksTools() || !st.Status.Ended() && st.Status != machineengine.StatusPaused && (st.Status != machineengine.StatusWaiting || st.Pending != nil)
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
	// schedule stores jobs for the run. wait is the time until the run must be driven again.
	schedule bool
	wait     time.Duration
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
			rest, err = d.waitUntil(ctx, *effect.Wait)
		default:
			rest = true
		}
		if err != nil {
			return err
		}
		if rest {
			d.l.waitsForChild = d.l.state.Pending != nil
			if again, err := d.releaseLease(ctx, d.wait > 0); err != nil || !again {
				return err
			}
			d.wait = 0
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
func (d *drive) interruptedError(err error) error { return interruptedError(d.l.rec.ID, err) }

func interruptedError(id string, err error) error {
	return guideway.Errorf(guideway.CodeUnavailable, "run %s was interrupted and can be resumed: %w", id, err).WithFix("guideway machine resume %s", id)
}

// decisionEnv returns the environment of the next decision.
func (d *drive) decisionEnv(ctx context.Context) (machineengine.Env, error) {
	if !d.known && d.l.state.Pending == nil && d.l.program.WantsTools() {
		if err := d.flushResults(ctx); err != nil {
			return machineengine.Env{}, err
		}
		tools, _, err := d.s.pinnedTools(ctx, d.l)
		if err != nil {
			return machineengine.Env{}, err
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
// events that were only decided and appends the pending results again. While the store is
// not available, it keeps the events and tries again.
func (d *drive) flushEvents(ctx context.Context) error {
	conflicts := 0
	return d.retryUnavailable(ctx, func(ctx context.Context) error {
		for ; conflicts < maxConflicts; conflicts++ {
			err := d.s.flushEvents(ctx, d.l, d.s.serverBy(d.l))
			if guideway.ErrorCode(err) != guideway.CodeConflict {
				return err
			}
			if err := d.reload(ctx); err != nil {
				return err
			}
		}
		return guideway.Errorf(guideway.CodeConflict, "the events of run %s could not be appended, because other processes kept changing the run", d.l.rec.ID).
			WithFix("guideway machine resume %s", d.l.rec.ID)
	})
}

// maxConflicts limits the conflicts of one append.
const maxConflicts = 5

// retryUnavailable calls do until the store is available, or the drive is interrupted. The end
// of the context does not interrupt a call.
func (d *drive) retryUnavailable(ctx context.Context, do func(context.Context) error) error {
	const longest = time.Second
	for delay := 50 * time.Millisecond; ; delay = min(2*delay, longest) {
		err := do(context.WithoutCancel(ctx))
		if guideway.ErrorCode(err) != guideway.CodeUnavailable || errors.Is(err, errUntrusted) || ctxsleep.For(ctx, delay) != nil {
			return err
		}
		d.s.o.Logger.WarnContext(ctx, "the store of machine runs is not available; the process keeps the results of the run and tries again", "run", d.l.rec.ID, "error", err)
	}
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
	d.l = l
	switch {
	case l.lease == nil || l.lease.Owner != d.s.instance.ID():
		return errLost
	case l.state.Status == machineengine.StatusCancelled:
		return errCancelled
	}
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

// releaseLease releases the lease together with the last events, and stores a job if later
// is set. again reports that a command changed the run before, so that it may continue.
func (d *drive) releaseLease(ctx context.Context, later bool) (again bool, err error) {
	err = d.retryUnavailable(ctx, func(ctx context.Context) error {
		if d.l.drive == nil {
			if err := d.l.addLeaseEvent(KindLeaseReleased, Lease{Owner: d.s.instance.ID(), WaitsForChild: d.l.waitsForChild}); err != nil {
				return err
			}
			d.l.drive = &run.DriveChange{Kind: run.DriveReleased}
			if later && d.schedule {
				d.l.job = &run.Job{User: d.l.rec.User, Run: d.l.rec.ID, Delay: d.wait}
			}
		}
		err := d.s.flushEvents(ctx, d.l, d.s.serverBy(d.l))
		if guideway.ErrorCode(err) != guideway.CodeConflict {
			return err
		}
		err = d.reload(ctx)
		if again = !errors.Is(err, errLost); !again && d.l.lease == nil {
			return nil // the response to the release was lost
		}
		return err
	})
	return again, err
}

// confirmLease returns an error if another instance may have taken over the run. It must be
// called before a call of a model, a tool or a handler: if this process was suspended for
// long, another one may have decided that the call of the last intent was not made.
func (d *drive) confirmLease(ctx context.Context) error {
	err := d.retryUnavailable(ctx, d.s.instance.Confirm)
	if errors.Is(err, cluster.ErrReaped) {
		return errLost
	}
	return err
}

// waitUntil waits until the given time, at which the next attempt is due. rest reports that
// the run rests for d.wait instead.
func (d *drive) waitUntil(ctx context.Context, until time.Time) (rest bool, err error) {
	if left := until.Sub(d.s.clock()); left > shortWait {
		d.wait = left
		return true, nil
	} else if err := d.flushEvents(ctx); err != nil {
		return false, err
	} else if ctxsleep.For(ctx, left) != nil {
		return false, d.interruptedError(ctx.Err())
	}
	d.l.state.ClearWait()
	return false, nil
}
