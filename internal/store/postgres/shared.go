package postgres

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/guideway-dev/guideway/internal/platform/deployment"
)

// Shared returns the state that all instances of a deployment share.
func (s *Store) Shared() deployment.State { return shared{s} }

// shared implements deployment.State.
type shared struct{ store *Store }

func (d shared) exec(ctx context.Context, what, sql string, args ...any) (n int64, err error) {
	err = d.store.retryWrite(ctx, what, func(ctx context.Context, _ bool) error {
		tag, err := d.store.pool.Exec(ctx, sql, args...)
		n = tag.RowsAffected()
		return err
	})
	return n, err
}

// Entries implements deployment.State. So do the methods below.
func (d shared) Entries(ctx context.Context, prefix string) (list []deployment.Entry, err error) {
	err = d.store.retryRead(ctx, "read the shared state", func(ctx context.Context) error {
		found, err := d.store.pool.Query(ctx, `select name, value, touched from shared where starts_with(name, $1) and name >= $1 order by name`, prefix)
		if err != nil {
			return err
		}
		list, err = pgx.CollectRows(found, pgx.RowToStructByPos[deployment.Entry])
		return err
	})
	return list, err
}

// Create adds an entry.
func (d shared) Create(ctx context.Context, e deployment.Entry) error {
	n, err := d.exec(ctx, "add to the shared state", `insert into shared (name, value, touched) values ($1, $2, $3) on conflict do nothing`, e.Name, e.Text, e.Touched)
	if err == nil && n == 0 {
		return fs.ErrExist
	}
	return err
}

// Change replaces the text of an entry under a lock.
func (d shared) Change(ctx context.Context, name string, edit func(string) (string, error)) error {
	d.store.changingShared.Lock()
	defer d.store.changingShared.Unlock()
	var failed error // an error of edit is not an error of the database
	err := d.store.retryWrite(ctx, "change the shared state", func(ctx context.Context, _ bool) error {
		return pgx.BeginFunc(ctx, d.store.pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended(current_schema() || ' shared ' || $1, 0))`, name); err != nil {
				return err
			}
			var text string
			if err := tx.QueryRow(ctx, `select value from shared where name = $1`, name).Scan(&text); err != nil && !errors.Is(err, pgx.ErrNoRows) {
				return err
			}
			if text, failed = edit(text); failed != nil {
				return nil
			}
			if text == "" {
				_, err := tx.Exec(ctx, `delete from shared where name = $1`, name)
				return err
			}
			_, err := tx.Exec(ctx, `insert into shared (name, value, touched) values ($1, $2, now())
				on conflict (name) do update set value = excluded.value, touched = excluded.touched`, name, text)
			return err
		})
	})
	return errors.Join(failed, err)
}

// Touch sets the time of an entry.
func (d shared) Touch(ctx context.Context, name string, at time.Time) error {
	_, err := d.exec(ctx, "change the shared state", `update shared set touched = $2 where name = $1`, name, at)
	return err
}

// Remove removes an entry.
func (d shared) Remove(ctx context.Context, name string) (bool, error) {
	n, err := d.exec(ctx, "change the shared state", `delete from shared where name = $1`, name)
	return n > 0, err
}

// Prune removes old entries.
func (d shared) Prune(ctx context.Context, prefix string, before time.Time) error {
	_, err := d.exec(ctx, "change the shared state", `delete from shared where starts_with(name, $1) and name >= $1 and touched < $2`, prefix, before)
	return err
}

// sqlTake takes a call of a limit whose calls have the interval $2 in seconds. The column
// touched is the time at which no call counts any more; it is at most a minute ahead. Losing
// the last calls in a crash is harmless, so that the commit does not wait for the disk.
const sqlTake = `insert into shared as s (name, value, touched) values ($1, '', clock_timestamp() + make_interval(secs => $2))
	on conflict (name) do update set touched = greatest(s.touched, clock_timestamp()) + make_interval(secs => $2)
	returning extract(epoch from touched - clock_timestamp())::float8, xmax = 0, set_config('synchronous_commit', 'off', true) is null`

// errOver rolls the transaction of Take back.
var errOver = errors.New("a limit is reached")

// Take implements deployment.State. With a new limit, it removes those without a call in an
// hour.
func (d shared) Take(ctx context.Context, limits []deployment.Limit) (over int, wait time.Duration, err error) {
	err = d.store.retryWrite(ctx, "count a call", func(ctx context.Context, _ bool) error {
		over, wait = -1, 0
		err := pgx.BeginFunc(ctx, d.store.pool, func(tx pgx.Tx) error {
			for i, l := range limits {
				var seconds float64
				var added, unused bool
				if err := tx.QueryRow(ctx, sqlTake, l.Name, 60/float64(l.PerMinute)).Scan(&seconds, &added, &unused); err != nil {
					return err
				}
				if left := time.Duration(math.Ceil(seconds-60)) * time.Second; left > wait {
					over, wait = i, left
				}
				if added {
					if _, err := tx.Exec(ctx, `delete from shared where starts_with(name, 'limits/') and name >= 'limits/' and touched < now() - interval '1 hour'`); err != nil {
						return err
					}
				}
			}
			if over >= 0 {
				return errOver
			}
			return nil
		})
		if errors.Is(err, errOver) {
			return nil
		}
		return err
	})
	return over, wait, err
}
