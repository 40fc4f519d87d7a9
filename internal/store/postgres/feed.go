package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/store/rows"
)

// sqlChangesAfter reads a page of the feed, the last position that was pruned, the last
// position, and whether there are changes without a position, all in one snapshot. If a
// reader's position is after the end of the feed, the feed was rolled back since, and the
// reader starts again.
const sqlChangesAfter = `
select f.pruned, f.last, exists (select from outbox), c.pos, c.at, c.subject, c.op, c.user_id, c.item, c.workflow, c.project, c.seq
from feed f left join lateral (
	select * from changes where pos > case when $1::bigint > f.last then f.pruned else $1::bigint end order by pos limit $2
) c on true order by c.pos`

// feedPage is the result of sqlChangesAfter.
type feedPage struct {
	pruned, last int64
	more         bool
	list         []run.Change
}

// Changes implements run.Feed. While the process watches the feed, the newest changes come
// from memory, to which they are added within readInterval.
func (s *Store) Changes(ctx context.Context, after int64, limit int) ([]run.Change, bool, error) {
	if list, ok := s.recent.Load().after(after, limit); ok {
		return list, false, nil
	}
	var p feedPage
	err := s.retryRead(ctx, "read the feed", func(ctx context.Context) (err error) {
		p, err = readPage(ctx, s.pool, after, limit)
		if err != nil || !p.more || len(p.list) >= limit {
			return err
		}
		if err := s.assignPositions(ctx, s.pool, true); err != nil {
			return err
		}
		p, err = readPage(ctx, s.pool, after, limit)
		return err
	})
	return p.list, p.misses(after), err
}

// misses reports whether some changes after a position are no longer in the feed, or the
// feed was rolled back to before the position.
func (p *feedPage) misses(after int64) bool { return after < p.pruned || after > p.last }

func readPage(ctx context.Context, db database, after int64, limit int) (p feedPage, err error) {
	q := rows.Query{Text: sqlChangesAfter, Args: []any{after, max(limit, 0)}}
	err = conn{db}.Each(ctx, q, func(row rows.Scanner) error {
		var pos, seq *int64
		var at *time.Time
		var subject, op *string
		var c run.Change
		err := row.Scan(&p.pruned, &p.last, &p.more, &pos, &at, &subject, &op,
			(*byteString)(&c.User), (*byteString)(&c.ID), (*byteString)(&c.Workflow), (*byteString)(&c.Project), &seq)
		if err == nil && pos != nil {
			c.Pos, c.At, c.Subject, c.Op, c.Seq = *pos, at.UTC(), *subject, *op, *seq
			p.list = append(p.list, c)
		}
		return err
	})
	return p, err
}

// Latest implements run.Feed.
func (s *Store) Latest(ctx context.Context) (int64, error) {
	var last int64
	err := s.retryRead(ctx, "read the feed", func(ctx context.Context) error {
		const sql = `select last, exists (select from outbox) from feed`
		var more bool
		if err := s.pool.QueryRow(ctx, sql).Scan(&last, &more); err != nil || !more {
			return err
		}
		if err := s.assignPositions(ctx, s.pool, true); err != nil {
			return err
		}
		return s.pool.QueryRow(ctx, sql).Scan(&last, &more)
	})
	return last, err
}

// assignPositions assigns positions to new changes, in the order in which their
// transactions wrote them, and prunes the feed. If another process is assigning positions,
// the call waits for it or, if wait is false, does nothing. Writers never wait.
func (s *Store) assignPositions(ctx context.Context, db database, wait bool) error {
	lock := `select true from feed for update`
	if !wait {
		lock += ` skip locked`
	}
	return pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		var locked bool
		err := tx.QueryRow(ctx, lock).Scan(&locked)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		b := &pgx.Batch{}
		b.Queue(`
			with taken as (
				delete from outbox returning *
			), placed as (
				insert into changes (pos, at, subject, op, user_id, item, workflow, project, seq)
				select f.last + row_number() over (order by t.id), t.at, t.subject, t.op, t.user_id, t.item, t.workflow, t.project, t.seq
				from taken t cross join feed f
			)
			update feed set last = last + (select count(*) from taken)`)
		b.Queue(`
			with old as (
				select last - $1::bigint as upto from feed where last - pruned > $1::bigint + $1::bigint / 10 + 1
			), gone as (
				delete from changes using old where pos <= old.upto
			)
			update feed set pruned = old.upto from old`, s.keepChanges)
		return tx.SendBatch(ctx, b).Close()
	})
}

// maintainFeed assigns positions if many changes have no position because the feed has no
// reader.
func (s *Store) maintainFeed(ctx context.Context) error {
	var waiting int
	err := s.pool.QueryRow(ctx, `select count(*) from (select from outbox limit $1) o`, maintainEvery).Scan(&waiting)
	if err != nil || waiting < maintainEvery {
		return err
	}
	return s.assignPositions(ctx, s.pool, false)
}
