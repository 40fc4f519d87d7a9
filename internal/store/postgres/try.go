package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/ctxsleep"
)

const (
	firstPause = 10 * time.Millisecond
	longPause  = 500 * time.Millisecond
)

// attempt is one try of a call. doubt tells that an earlier one got no answer
// and may have been carried out: a writer looks before it writes.
type attempt func(ctx context.Context, doubt bool) error

// try carries out a call that writes. It tries again where the server was away,
// restarted or sent the transaction back, as long as the store's patience lasts.
func (s *Store) try(ctx context.Context, what string, f attempt) error {
	doubt, err := s.repeat(ctx, what, f)
	if !doubt || guideway.ErrorCode(err) != guideway.CodeUnavailable {
		return err
	}
	return guideway.Errorf(guideway.CodeUnavailable, "%w; whether the call was carried out is not known", err).
		WithFix("once the server answers, look at the run or document before the call is repeated")
}

// read carries out a call that changes nothing, in the same way.
func (s *Store) read(ctx context.Context, what string, f func(ctx context.Context) error) error {
	_, err := s.repeat(ctx, what, func(ctx context.Context, _ bool) error { return f(ctx) })
	return err
}

// readList returns the rows of a query.
func readList[T any](ctx context.Context, s *Store, what string, scan pgx.RowToFunc[T], sql string, args ...any) (list []T, err error) {
	err = s.read(ctx, what, func(ctx context.Context) error {
		rows, err := s.pool.Query(ctx, sql, args...)
		if err != nil {
			return err
		}
		list, err = pgx.CollectRows(rows, scan)
		return err
	})
	return list, err
}

// readRow scans the row of a query; missing is the error where there is none.
func (s *Store) readRow(ctx context.Context, what string, missing error, sql string, args, into []any) error {
	return s.read(ctx, what, func(ctx context.Context) error {
		err := s.pool.QueryRow(ctx, sql, args...).Scan(into...)
		if noRows(err) {
			return missing
		}
		return err
	})
}

func (s *Store) repeat(ctx context.Context, what string, f attempt) (doubt bool, err error) {
	done, err := s.enter()
	if err != nil {
		return false, err
	}
	defer done()
	begun, delay := time.Now(), firstPause
	for {
		if err := ctx.Err(); err != nil {
			return doubt, s.fault(what, err)
		}
		err := s.once(ctx, doubt, f)
		if err == nil {
			return false, nil
		}
		fate := fateOf(err)
		doubt = doubt || fate == unknown
		if fate == final || time.Since(begun)+delay > s.patience || ctxsleep.For(ctx, delay) != nil {
			return doubt, s.fault(what, err)
		}
		delay = min(2*delay, longPause)
	}
}

// once is one attempt, with an end.
func (s *Store) once(ctx context.Context, doubt bool, f attempt) error {
	ctx, cancel := context.WithTimeout(ctx, s.callTimeout)
	defer cancel()
	return f(ctx, doubt)
}
