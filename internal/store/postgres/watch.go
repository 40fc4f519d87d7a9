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

// Watch implements run.Feed.
func (s *Store) Watch(ctx context.Context) <-chan struct{} { return s.hub.Add(ctx) }

// runListener notifies the watchers whenever a process reports changes, until the context
// ends. If the connection is lost, it reconnects and notifies all watchers, because
// notifications may have been missed.
func (s *Store) runListener(ctx context.Context) {
	delay := firstPause
	for ctx.Err() == nil {
		heard, err := s.listenUntilLost(ctx)
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
func (s *Store) listenUntilLost(ctx context.Context) (heard bool, err error) {
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
	seen := int64(-1)
	for {
		newest, err := newestChange(ctx, c)
		if err != nil {
			return true, err
		}
		if newest != seen {
			s.hub.NotifyAll()
			seen = newest
		}
		if err := s.waitForNotifications(ctx, c); err != nil {
			return true, err
		}
	}
}

// waitForNotifications notifies the watchers at every notification. It returns after an
// interval without a notification.
func (s *Store) waitForNotifications(ctx context.Context, c *pgx.Conn) error {
	for {
		quiet, cancel := context.WithTimeout(ctx, pollInterval)
		_, err := c.WaitForNotification(quiet)
		cancel()
		switch {
		case err == nil:
			s.hub.NotifyAll()
		case ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) && !c.IsClosed():
			return nil
		default:
			return err
		}
	}
}

// newestChange returns a number that increases with every change of the feed: the number of
// changes that have a position or wait for one.
func newestChange(ctx context.Context, c *pgx.Conn) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	var n int64
	err := c.QueryRow(ctx, `select last + (select count(*) from outbox) from feed`).Scan(&n)
	return n, err
}

// channelName returns the channel on which processes with the same tables notify each
// other.
func (s *Store) channelName() pgx.Identifier { return pgx.Identifier{"guideway " + s.schema} }
