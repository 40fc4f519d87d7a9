package postgres

import (
	"context"
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

// Changes implements run.Feed.
func (s *Store) Changes(ctx context.Context, after int64, limit int) ([]run.Change, bool, error) {
	var p feedPage
	err := s.retryRead(ctx, "read the feed", func(ctx context.Context) (err error) {
		p, err = s.readPage(ctx, after, limit)
		if err != nil || !p.more || len(p.list) >= limit {
			return err
		}
		if err := s.assignPositions(ctx); err != nil {
			return err
		}
		p, err = s.readPage(ctx, after, limit)
		return err
	})
	return p.list, after < p.pruned || after > p.last, err
}

func (s *Store) readPage(ctx context.Context, after int64, limit int) (p feedPage, err error) {
	q := rows.Query{Text: sqlChangesAfter, Args: []any{after, max(limit, 0)}}
	err = conn{s.pool}.Each(ctx, q, func(row rows.Scanner) error {
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
		if err := s.assignPositions(ctx); err != nil {
			return err
		}
		return s.pool.QueryRow(ctx, sql).Scan(&last, &more)
	})
	return last, err
}

// assignPositions assigns positions to new changes, in the order in which their
// transactions wrote them, and prunes the feed. Concurrent calls wait for each other's lock
// on the row of the feed; writers do not wait. The statements are one transaction and one
// round trip.
func (s *Store) assignPositions(ctx context.Context) error {
	b := &pgx.Batch{}
	b.Queue(`select from feed for update`)
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
	return s.pool.SendBatch(ctx, b).Close()
}

// maintainFeed assigns positions if many changes have no position because the feed has no
// reader.
func (s *Store) maintainFeed(ctx context.Context) error {
	var waiting int
	err := s.pool.QueryRow(ctx, `select count(*) from (select from outbox limit $1) o`, maintainEvery).Scan(&waiting)
	if err != nil || waiting < maintainEvery {
		return err
	}
	return s.assignPositions(ctx)
}
