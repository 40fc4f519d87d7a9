package driver

import (
	"context"
	"errors"
	"time"

	"github.com/guideway-dev/guideway"
	machineengine "github.com/guideway-dev/guideway/internal/machine/engine"
	"github.com/guideway-dev/guideway/internal/machine/llm"
)

// Update tells who looks on what happens in a run.
type Update struct {
	RunID string
	// Depth is 0 for the run itself, and 1 for a machine within it.
	Depth int
	// Event is what has happened; nil where a part of an answer has come.
	Event *machineengine.Event
	// Delta is a part of the answer of an agent.
	Delta llm.Delta
	Agent string
	State string
	Spent machineengine.Spent
}

// Drive goes on with a run until it ends, waits, or is paused. It is an error if
// another process drives it, or if something here fails that is not the run's: the
// run stays where it is, and can be driven again. observe may be nil.
func (s *Service) Drive(ctx context.Context, user, id string, observe func(Update)) error {
	if observe == nil {
		observe = func(Update) {}
	}
	if !s.enter(id) {
		return guideway.Errorf(guideway.CodeConflict, "run %s is being driven by this process", id)
	}
	defer s.leave(id)
	l, err := s.takeOver(ctx, user, id)
	if l == nil || err != nil {
		return err
	}
	d := &drive{s: s, l: l, observe: observe}
	ctx, end := d.begin(ctx, Activity{Kind: ActivityRun})
	err = d.loop(ctx)
	end(d.stands(err))
	if errors.Is(err, errCancelled) {
		return nil
	}
	if err != nil && !errors.Is(err, errLost) {
		// What was only decided waits for the next drive, and so does the end of the
		// lease, if this fails, too.
		d.l.buffer = d.l.buffer[:d.l.owed]
		err = errors.Join(err, d.release(context.WithoutCancel(ctx)))
	}
	return err
}

// takeOver loads a run and takes its lease; nil where there is nothing to do. What a
// process that is gone had sent may arrive in between: then the run is looked at
// again.
func (s *Service) takeOver(ctx context.Context, user, id string) (*loaded, error) {
	for n := 1; ; n++ {
		l, _, err := s.load(ctx, user, id, 0)
		if err != nil || !s.due(l) {
			return nil, err
		}
		if err := s.held(l); err != nil {
			return nil, err
		}
		err = s.take(ctx, l)
		if err == nil {
			return l, nil
		}
		if guideway.ErrorCode(err) != guideway.CodeConflict || n == attempts {
			return nil, err
		}
	}
}

// due says whether there is anything to do in a run.
func (s *Service) due(l *loaded) bool {
	st := &l.state
	return !st.Status.Ended() && st.Status != machineengine.StatusPaused && (st.Status != machineengine.StatusWaiting || st.Pending != nil)
}

var (
	// errLost is a run that another process has taken over.
	errLost = errors.New("another process has taken the run over")
	// errCancelled is a run that somebody has cancelled.
	errCancelled = errors.New("the run was cancelled")
)

// drive is the work on one run.
type drive struct {
	s       *Service
	l       *loaded
	observe func(Update)
	// tools are those that there are, as of the last state.
	tools []machineengine.ToolInfo
	known bool
}

// loop does what comes next until the run rests.
func (d *drive) loop(ctx context.Context) (err error) {
	inner, end := d.states(ctx)
	defer func() { end(err) }()
	for {
		ctx := inner()
		if err := ctx.Err(); err != nil {
			return d.interrupted(err)
		}
		env, err := d.env(ctx)
		if err != nil {
			return err
		}
		effect := d.l.program.Next(&d.l.state, env)
		if effect, err = d.permitted(ctx, effect); err != nil {
			return err
		}
		rest := false
		switch {
		case effect.Event != nil:
			err = d.add(*effect.Event)
			d.known = d.known && effect.Event.Kind != machineengine.KindStateEntered
		case effect.Handler != nil:
			err = d.handler(ctx, effect.Handler)
		case effect.Model != nil:
			err = d.model(ctx, effect.Model)
		case effect.Tool != nil:
			err = d.tool(ctx, *effect.Tool)
		case effect.Sub != nil:
			err = d.sub(ctx, effect.Sub)
		case effect.Unresolved != nil:
			rest, err = d.unresolved(ctx, effect.Unresolved)
		case effect.Wait != nil:
			err = d.wait(ctx, *effect.Wait)
		default:
			rest = true
		}
		if err != nil {
			return err
		}
		if rest {
			d.l.resting = d.l.state.Pending != nil
			return d.release(ctx)
		}
	}
}

// permitted gives a pause in the place of what may not be done any more in the name
// of who began the run.
func (d *drive) permitted(ctx context.Context, effect machineengine.Effect) (machineengine.Effect, error) {
	if effect.Model == nil && effect.Tool == nil && effect.Sub == nil {
		return effect, nil
	}
	why, err := d.s.forbids(ctx, d.l)
	if err != nil || why == "" {
		return effect, err
	}
	return machineengine.Effect{Event: &machineengine.Event{Kind: machineengine.KindPaused, Pause: &machineengine.Pause{
		Code: machineengine.PausePermit, Message: why, Fix: "begin it anew, or cancel it: guideway machine cancel " + d.l.rec.ID,
	}}}, nil
}

// forbids says why a run may not go on; "" is that it may.
func (s *Service) forbids(ctx context.Context, l *loaded) (string, error) {
	if s.o.Permit == nil || len(l.state.Allow) == 0 {
		return "", nil
	}
	return s.o.Permit(ctx, l.purpose())
}

// interrupted is the end of a drive that was stopped from outside.
func (d *drive) interrupted(err error) error {
	return guideway.Errorf(guideway.CodeUnavailable, "run %s was interrupted; it goes on where it was: %w", d.l.rec.ID, err).
		WithFix("guideway machine resume %s", d.l.rec.ID)
}

// env is what the next decision needs.
func (d *drive) env(ctx context.Context) (machineengine.Env, error) {
	if !d.known && d.s.o.Tools != nil && d.l.program.WantsTools() {
		if err := d.pay(ctx); err != nil {
			return machineengine.Env{}, err
		}
		tools, err := d.s.o.Tools.Tools(ctx, d.l.purpose())
		if err != nil {
			return machineengine.Env{}, guideway.Errorf(guideway.CodeUnavailable, "list the tools: %w", err)
		}
		d.tools, d.known = tools, true
	}
	return machineengine.Env{Tools: d.tools, Counter: d.s.o.Counter}, nil
}

// add takes an event, and tells who looks on.
func (d *drive) add(e machineengine.Event) error {
	if err := d.l.add(e); err != nil {
		return err
	}
	d.observe(Update{RunID: d.l.rec.ID, Event: &e, State: d.l.state.At, Agent: e.Agent, Spent: d.l.state.Spent})
	return nil
}

// flush appends what there is. Where another command came in between, the run is
// looked at again: what was only decided is decided anew, and results that were
// paid for are handed in again.
func (d *drive) flush(ctx context.Context) error {
	const attempts = 5
	for range attempts {
		err := d.s.flush(context.WithoutCancel(ctx), d.l, d.s.server(d.l))
		if guideway.ErrorCode(err) != guideway.CodeConflict {
			return err
		}
		if err := d.again(ctx); err != nil {
			return err
		}
	}
	return guideway.Errorf(guideway.CodeConflict, "the events of run %s could not be appended", d.l.rec.ID)
}

// pay keeps a result that waits for the next intent, before anything else is done.
func (d *drive) pay(ctx context.Context) error {
	if d.l.owed == 0 {
		return nil
	}
	return d.flush(ctx)
}

// again loads the run anew behind events of others, and puts the results that it
// has not into its buffer.
func (d *drive) again(ctx context.Context) error {
	buffered := d.l.buffer
	l, _, err := d.s.load(context.WithoutCancel(ctx), d.l.rec.User, d.l.rec.ID, 0)
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
		if err != nil || !l.awaits(fact) {
			return err
		}
		if err := l.add(fact); err != nil {
			return err
		}
		l.owed = len(l.buffer)
	}
	return nil
}

// awaits says whether the run has the intent of a result, and not the result.
func (l *loaded) awaits(result machineengine.Event) bool {
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

// release gives the lease back with the last events.
func (d *drive) release(ctx context.Context) error {
	if d.l.lease == nil || d.l.lease.Owner != d.s.o.Owner {
		return d.flush(ctx)
	}
	if err := d.l.mark(KindLeaseReleased, Lease{Owner: d.s.o.Owner, Until: d.s.clock(), Rests: d.l.resting}); err != nil {
		return err
	}
	return d.flush(ctx)
}

// during waits for something that is done in the background, and keeps the lease
// meanwhile. Where the lease is lost, or the run cancelled, ctx of the work ends.
func during[T any](ctx context.Context, d *drive, work func(context.Context) T) (T, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if err := d.fresh(ctx); err != nil {
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
			if err := d.keep(ctx); err != nil {
				stop()
				<-done
				var none T
				return none, err
			}
		}
	}
}

// fresh makes sure of the lease before something is begun: a process that was halted
// for long, behind an intent that it has written, must not do what another one has
// been told nobody did.
func (d *drive) fresh(ctx context.Context) error {
	if d.s.clock().Before(d.l.seen.Add(d.s.o.Lease / 3)) {
		return nil
	}
	return d.keep(ctx)
}

// keep gives a sign of life. Where the run has got other events it is looked at
// again: the lease may be lost.
func (d *drive) keep(ctx context.Context) error {
	err := d.s.keep(context.WithoutCancel(ctx), d.l)
	if guideway.ErrorCode(err) != guideway.CodeConflict {
		return err
	}
	d.l.buffer, d.l.owed = nil, 0 // the sign of life alone: what is owed is kept before
	return d.again(ctx)
}

// wait waits until an attempt is due.
func (d *drive) wait(ctx context.Context, until time.Time) error {
	if err := d.flush(ctx); err != nil {
		return err
	}
	left := until.Sub(d.s.clock())
	_, err := during(ctx, d, func(ctx context.Context) struct{} {
		t := time.NewTimer(left)
		defer t.Stop()
		select {
		case <-ctx.Done():
		case <-t.C:
		}
		return struct{}{}
	})
	d.l.state.Waited()
	return err
}
