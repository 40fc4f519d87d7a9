package notice

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/guideway-dev/guideway/internal/contexts/blob/seal"
	"github.com/guideway-dev/guideway/internal/platform/ctxsleep"
	"github.com/guideway-dev/guideway/internal/platform/deployment"
)

const (
	// lockInterval is the interval at which a process tries to take the lock of an outbox,
	// and at which sources that cannot be watched are read.
	lockInterval = time.Second
	// firstRetry and lastRetry are the shortest and the longest time between two attempts.
	firstRetry = time.Second
	lastRetry  = 5 * time.Minute
	// maxAge is the age at which a notice that its receiver does not accept is dropped.
	maxAge = 72 * time.Hour
)

// Options configure a Sender. All members but Texts and Shared are required.
type Options struct {
	Receivers []Receiver
	Sources   []Source
	// Dir contains the outboxes.
	Dir string
	// Texts encrypts the outboxes. If nil, they are not encrypted.
	Texts *seal.Texts
	Log   *slog.Logger
	// Shared is the state of the instances of a deployment, of which one delivers each notice.
	// It is nil for a single instance.
	Shared deployment.State
	// Address returns the address of a running dashboard, such as http://127.0.0.1:3000, or "".
	Address func(ctx context.Context) string
}

// Sender delivers notices in the background.
type Sender struct {
	opts Options
	// deliver is Receiver.Deliver; tests replace it.
	deliver func(context.Context, *Receiver, Notice) error
	cancel  context.CancelFunc
	done    sync.WaitGroup
}

// Start starts the delivery. Close stops it.
func Start(o Options) *Sender {
	return start(o, func(ctx context.Context, r *Receiver, n Notice) error { return r.Deliver(ctx, n) })
}

func start(o Options, deliver func(context.Context, *Receiver, Notice) error) *Sender {
	ctx, cancel := context.WithCancel(context.Background())
	s := &Sender{opts: o, deliver: deliver, cancel: cancel}
	for i := range o.Receivers {
		s.done.Go(func() { s.serve(ctx, &o.Receivers[i]) })
	}
	return s
}

// Close stops the delivery. A notice that is being sent is sent again later.
func (s *Sender) Close() {
	if s == nil {
		return
	}
	s.cancel()
	s.done.Wait()
}

// serve delivers the notices of a receiver while this process holds its lock.
func (s *Sender) serve(ctx context.Context, r *Receiver) {
	lock := s.waitForLock(ctx, r)
	if lock == nil {
		return
	}
	defer func() { _ = lock.Close() }()
	changed := make(chan struct{}, 1)
	watching := map[string]bool{}
	box, claims := takeOutbox(&s.opts, r.Name), newClaims(&s.opts, r)
	for ctx.Err() == nil {
		s.watchSources(ctx, watching, changed)
		s.readSources(ctx, r, box)
		s.deliverPending(ctx, r, box, claims)
		timer := time.NewTimer(s.pause(box, len(watching) == len(s.opts.Sources)))
		select {
		case <-ctx.Done():
		case <-changed:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// waitForLock returns the lock of an outbox, or nil if ctx ends first.
func (s *Sender) waitForLock(ctx context.Context, r *Receiver) *flock.Flock {
	reported := false
	for {
		lock, err := tryLock(s.opts.Dir, r.Name)
		if lock != nil {
			return lock
		}
		if err != nil && !reported {
			reported = true
			s.opts.Log.Error("cannot lock the outbox of a receiver of notices, so this process sends it no notices until it holds the lock", "receiver", r.Name, "error", err)
		}
		if ctxsleep.For(ctx, lockInterval) != nil {
			return nil
		}
	}
}

// watchSources watches the sources that are not watched yet.
func (s *Sender) watchSources(ctx context.Context, watching map[string]bool, changed chan<- struct{}) {
	for _, source := range s.opts.Sources {
		if watching[source.Name()] {
			continue
		}
		ch := source.Watch(ctx)
		if ch == nil {
			continue
		}
		watching[source.Name()] = true
		s.done.Go(func() {
			for range ch {
				select {
				case changed <- struct{}{}:
				default:
				}
			}
		})
	}
}

// pause returns the time until the next attempt, or until sources that are not watched are
// read again.
func (s *Sender) pause(box *Outbox, allWatched bool) time.Duration {
	pause := lastRetry
	if !allWatched {
		pause = lockInterval
	}
	if len(box.Pending) > 0 {
		pause = min(pause, max(0, time.Until(box.RetryAt)))
	}
	return pause
}

// readSources adds new notices to the outbox. If the outbox cannot be stored, the positions
// are not moved, and the notices are read again.
func (s *Sender) readSources(ctx context.Context, r *Receiver, box *Outbox) {
	for _, source := range s.opts.Sources {
		for ctx.Err() == nil {
			after, known := box.Positions[source.Name()]
			if !known {
				after = -1
			}
			list, next, err := source.Read(ctx, after)
			if err != nil && ctx.Err() == nil {
				s.opts.Log.Warn("cannot read the changes for notices", "source", source.Name(), "error", err)
			}
			if err != nil || next == after {
				break
			}
			list = slices.DeleteFunc(list, func(n Notice) bool { return !slices.Contains(r.Types, n.Type) || box.contains(n.ID) })
			before := *box
			box.Positions = map[string]int64{}
			for name, pos := range before.Positions {
				box.Positions[name] = pos
			}
			box.Positions[source.Name()] = next
			box.add(slices.Clone(list))
			if err := box.save(&s.opts, r.Name); err != nil {
				*box = before
				s.opts.Log.Error("cannot store notices; another attempt follows", "receiver", r.Name, "error", err)
				break
			}
		}
	}
}

// deliverPending delivers the pending notices in order, until one is not accepted, or another
// instance is delivering it.
func (s *Sender) deliverPending(ctx context.Context, r *Receiver, box *Outbox, c *claims) {
	for len(box.Pending) > 0 && ctx.Err() == nil && !time.Now().Before(box.RetryAt) {
		n := box.Pending[0]
		if address := s.opts.Address(ctx); address != "" && n.Page != "" {
			n.URL = address + n.Page
		}
		n.Page = ""
		token, done, err := c.takeClaim(ctx, n.ID)
		switch {
		case done:
			box.Pending, box.Attempts, box.RetryAt = box.Pending[1:], 0, time.Time{}
		case err != nil || token == "":
			box.RetryAt = time.Now().Add(firstRetry).UTC()
			return
		default:
			err = s.deliver(ctx, r, n)
			if failed := c.endClaim(n.ID, token, err == nil); failed != nil {
				s.opts.Log.Warn("cannot record for the other instances whether a notice was delivered: another one may send it again", "receiver", r.Name, "notice", n.ID, "error", failed)
			}
			if ctx.Err() != nil && err != nil {
				return
			}
			s.noteDelivery(r, box, n, err)
		}
		if err := box.save(&s.opts, r.Name); err != nil {
			s.opts.Log.Error("cannot store that a notice was delivered: it is sent again", "receiver", r.Name, "notice", n.ID, "error", err)
		}
	}
}

// noteDelivery changes the outbox after an attempt to deliver its first notice.
func (s *Sender) noteDelivery(r *Receiver, box *Outbox, n Notice, err error) {
	now := time.Now()
	if err == nil {
		box.Pending = box.Pending[1:]
		box.Delivered++
		box.LastAt, box.LastError, box.Attempts, box.RetryAt = now.UTC(), "", 0, time.Time{}
		return
	}
	if box.Attempts == 0 {
		s.opts.Log.Warn("a receiver did not accept a notice", "receiver", r.Name, "notice", n.ID, "error", err)
	}
	box.LastError = err.Error()
	if now.Sub(n.At) > maxAge {
		box.dropOldest(1)
		s.opts.Log.Error("a notice was dropped, because its receiver did not accept it", "receiver", r.Name, "notice", n.ID, "age", maxAge)
		return
	}
	box.RetryAt = now.Add(min(lastRetry, firstRetry<<min(box.Attempts, 10))).UTC()
	box.Attempts++
}
