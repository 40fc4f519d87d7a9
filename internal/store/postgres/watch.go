package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/guideway-dev/guideway/internal/platform/ctxsleep"
)

// pollInterval is how often the listener polls for changes without a notification: a
// process can end between its commit and its notification.
const pollInterval = 2 * time.Second

const (
	// readInterval is the minimum time between two reads of the feed: the cost of the
	// followers is bounded for any number of commits.
	readInterval = 20 * time.Millisecond
	// readBatch is the maximum number of changes in one read.
	readBatch = 512
)

// Watch implements run.Feed.
func (s *Store) Watch(ctx context.Context) <-chan struct{} { return s.hub.Add(ctx) }

// runListener reads the feed for all followers of this process, on a connection of its own,
// and notifies the watchers of changes, until the context ends. If the connection is lost, it
// reconnects and reads the changes since.
func (s *Store) runListener(ctx context.Context) {
	var recent *recentChanges
	delay := firstPause
	for ctx.Err() == nil {
		heard, err := s.listenUntilLost(ctx, &recent)
		s.recent.CompareAndSwap(recent, nil) // another listener may run already
		if ctx.Err() != nil {
			return
		}
		if heard {
			delay = firstPause
		}
		s.log.WarnContext(ctx, "lost the connection that listens for changes", "error", err, "retry_in", delay)
		if ctxsleep.For(ctx, delay) != nil {
			return
		}
		delay = min(2*delay, 10*maxPause)
	}
}

// listenUntilLost listens on one connection until the connection is lost. heard reports
// whether the connection was established.
func (s *Store) listenUntilLost(ctx context.Context, recent **recentChanges) (heard bool, err error) {
	c, err := pgx.ConnectConfig(ctx, s.pool.Config().ConnConfig)
	if err != nil {
		return false, err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = c.Close(closing)
	}()
	if err := setUpConn(ctx, c, s.schema); err != nil {
		return false, err
	}
	if _, err := c.Exec(ctx, `listen `+s.channelName().Sanitize()); err != nil {
		return false, err
	}
	for {
		found, more, err := s.readRecent(ctx, c, recent)
		if err != nil {
			return true, err
		}
		if found {
			s.hub.NotifyAll()
		}
		if err := ctxsleep.For(ctx, readInterval); err != nil {
			return true, err
		}
		if more {
			continue
		}
		if err := waitForNotification(ctx, c); err != nil {
			return true, err
		}
	}
}

// readRecent reads the changes after the last one that the listener has read. It reports
// whether there were any, and whether there may be more.
func (s *Store) readRecent(ctx context.Context, c *pgx.Conn, recent **recentChanges) (found, more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.callTimeout)
	defer cancel()
	if err := s.assignPositions(ctx, c, false); err != nil {
		return false, false, err
	}
	after, limit := int64(0), 0
	if *recent != nil {
		after, limit = (*recent).last, readBatch // only the listener changes them
	}
	p, err := readPage(ctx, c, after, limit)
	if err != nil {
		return false, false, err
	}
	if *recent == nil || p.misses(after) {
		*recent = &recentChanges{start: p.last, last: p.last}
		s.recent.Store(*recent)
		return true, p.more, nil
	}
	(*recent).add(p.list)
	s.recent.Store(*recent)
	return len(p.list) > 0, p.more || len(p.list) == readBatch, nil
}

// waitForNotification returns after a notification, or after an interval without one. It
// drops the further notifications that have arrived, because one read serves them all.
func waitForNotification(ctx context.Context, c *pgx.Conn) error {
	quiet, cancel := context.WithTimeout(ctx, pollInterval)
	defer cancel()
	_, err := c.WaitForNotification(quiet)
	cancel()
	for err == nil {
		_, err = c.WaitForNotification(quiet)
	}
	if ctx.Err() == nil && !c.IsClosed() && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)) {
		return nil
	}
	return err
}

// channelName returns the channel on which processes with the same tables notify each
// other.
func (s *Store) channelName() pgx.Identifier { return pgx.Identifier{"guideway " + s.schema} }
