package driver

import (
	"context"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/run"
)

// serverBy returns the author of the driver's events.
func (s *Service) serverBy(l *loaded) run.By {
	return run.By{User: l.rec.User, Client: run.Truncate(s.instance.ID(), 128), Via: run.ViaServer}
}

// leaseConflict returns an error if another instance holds the lease of a run.
func (s *Service) leaseConflict(ctx context.Context, l *loaded) error {
	if l.lease == nil || l.lease.Owner == s.instance.ID() {
		return nil
	}
	if alive, err := s.instance.IsAlive(ctx, l.lease.Owner); err != nil || !alive {
		return err
	}
	return guideway.Errorf(guideway.CodeConflict, "another process, %s, is executing run %s", l.lease.Owner, l.rec.ID).
		WithFix("wait until the run pauses or ends; if that process has ended, the run can be continued after 15 seconds")
}

// takeLease takes the lease of a run, which no other instance may hold. If two instances try at the same time, one gets a
// conflict.
func (s *Service) takeLease(ctx context.Context, l *loaded) error {
	if err := l.addLeaseEvent(KindLeaseTaken, Lease{Owner: s.instance.ID()}); err != nil {
		return err
	}
	l.drive = &run.DriveChange{Kind: run.DriveTaken, Instance: s.instance.ID(), Attended: s.o.Attended}
	return s.flushEvents(ctx, l, s.serverBy(l))
}
