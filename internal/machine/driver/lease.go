package driver

import (
	"context"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/run"
)

// server is whose doing the driver's own events are.
func (s *Service) server(l *loaded) run.By {
	return run.By{User: l.rec.User, Client: cut(s.o.Owner, 128), Via: run.ViaServer}
}

// held says why this process may not drive a run, or nil.
func (s *Service) held(l *loaded) error {
	if l.lease == nil || l.lease.Owner == s.o.Owner {
		return nil
	}
	until := l.lease.Until
	if kept := l.seen.Add(s.o.Lease); kept.After(until) {
		until = kept
	}
	if !s.clock().Before(until) || s.o.Alive != nil && !s.o.Alive(l.lease.Owner) {
		return nil
	}
	return guideway.Errorf(guideway.CodeConflict, "run %s is being driven by another process (%s)", l.rec.ID, l.lease.Owner).
		WithFix("wait for it: its lease ends at %s unless it is at work", until.Format(time.RFC3339))
}

// take makes this process the one that drives a run. Of two that try at once, one
// gets a conflict.
func (s *Service) take(ctx context.Context, l *loaded) error {
	if err := s.held(l); err != nil {
		return err
	}
	if err := l.mark(KindLeaseTaken, s.lease()); err != nil {
		return err
	}
	return s.flush(ctx, l, s.server(l))
}

func (s *Service) lease() Lease {
	return Lease{Owner: s.o.Owner, Until: s.clock().Add(s.o.Lease)}
}

// keep gives a sign of life during something that takes long.
func (s *Service) keep(ctx context.Context, l *loaded) error {
	if err := l.mark(KindLeaseKept, s.lease()); err != nil {
		return err
	}
	return s.flush(ctx, l, s.server(l))
}

// enter notes that this process drives a run; false where it does already.
func (s *Service) enter(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active[id] {
		return false
	}
	s.active[id] = true
	return true
}

func (s *Service) leave(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.active, id)
}

// Driving says whether this process drives a run now.
func (s *Service) Driving(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.active[id]
}
