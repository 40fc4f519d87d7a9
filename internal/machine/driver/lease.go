package driver

import (
	"context"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/run"
)

// serverBy returns the author of the driver's events.
func (s *Service) serverBy(l *loaded) run.By {
	return run.By{User: l.rec.User, Client: run.Truncate(s.o.Owner, 128), Via: run.ViaServer}
}

// leaseConflict returns an error if another process holds the lease of a run.
func (s *Service) leaseConflict(l *loaded) error {
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
	return guideway.Errorf(guideway.CodeConflict, "another process, %s, is executing run %s", l.lease.Owner, l.rec.ID).
		WithFix("wait: the lease of that process expires at %s unless the process renews it", until.Format(time.RFC3339))
}

// takeLease takes the lease of a run. If two processes try at the same time, one gets a conflict.
func (s *Service) takeLease(ctx context.Context, l *loaded) error {
	if err := s.leaseConflict(l); err != nil {
		return err
	}
	if err := l.addLeaseEvent(KindLeaseTaken, s.newLease()); err != nil {
		return err
	}
	return s.flushEvents(ctx, l, s.serverBy(l))
}

func (s *Service) newLease() Lease {
	return Lease{Owner: s.o.Owner, Until: s.clock().Add(s.o.Lease)}
}

// renewLease appends a renewal of the lease during a long call.
func (s *Service) renewLease(ctx context.Context, l *loaded) error {
	if err := l.addLeaseEvent(KindLeaseKept, s.newLease()); err != nil {
		return err
	}
	return s.flushEvents(ctx, l, s.serverBy(l))
}

// enterDrive records that this process drives a run. It returns false if it already does.
func (s *Service) enterDrive(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active[id] {
		return false
	}
	s.active[id] = true
	return true
}

func (s *Service) leaveDrive(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.active, id)
}

// Driving reports whether this process currently drives a run.
func (s *Service) Driving(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.active[id]
}
