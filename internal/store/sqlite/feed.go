package sqlite

import (
	"context"

	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/store/rows"
)

// The statements of the feed.
const (
	changeColumns   = `pos, at, subject, op, user, id, workflow, project, seq`
	sqlInsertChange = `INSERT INTO feed (at, subject, op, user, id, workflow, project, seq) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`
	sqlChanges      = `SELECT ` + changeColumns + ` FROM feed WHERE pos > ? ORDER BY pos LIMIT ?`
	sqlLatest       = `SELECT coalesce(max(pos), 0) FROM feed`
)

// pruneEvery is the number of changes between two prunings of the feed. Most commits do not
// prune, and each pruning is cheap.
const pruneEvery = 64

// AddChange implements rows.Tx. Transactions do not overlap, so positions become visible in
// order.
func (t *txn) AddChange(ctx context.Context, c run.Change) error {
	result, err := t.execStatement(ctx, sqlInsertChange, fromTime(c.At), c.Subject, c.Op, c.User, c.ID, c.Workflow, c.Project, c.Seq)
	if err != nil {
		return err
	}
	pos, err := result.LastInsertId()
	if err != nil || pos%pruneEvery != 0 || pos <= t.store.o.KeepFeed {
		return err
	}
	_, err = t.execStatement(ctx, `DELETE FROM feed WHERE pos <= ?`, pos-t.store.o.KeepFeed)
	return err
}

// changeFields returns the fields of changeColumns.
func changeFields(c *run.Change) []any {
	return []any{&c.Pos, (*rows.Time)(&c.At), &c.Subject, &c.Op, &c.User, &c.ID, &c.Workflow, &c.Project, &c.Seq}
}

// Changes implements run.Feed. A position after the end of the feed comes from another
// file, or from this file before a rollback; reset is then true as well.
func (s *Store) Changes(ctx context.Context, after int64, limit int) (list []run.Change, reset bool, err error) {
	after = max(after, 0)
	err = s.withReadAccess(ctx, "read the feed", func() error {
		changes := func(after int64) ([]run.Change, error) {
			return rows.Collect(ctx, s.readers, rows.Query{Text: sqlChanges, Args: []any{after, limit}}, rows.ScanFields(changeFields))
		}
		if list, err = changes(after); err != nil {
			return err
		}
		if len(list) > 0 {
			reset = list[0].Pos > after+1 // only pruning leaves gaps in positions
			return nil
		}
		var latest int64
		if err := s.readers.queryRow(ctx, sqlLatest, nil, []any{&latest}); err != nil || latest >= after {
			return err
		}
		reset = true
		list, err = changes(0)
		return err
	})
	return list, reset, err
}

// Latest implements run.Feed.
func (s *Store) Latest(ctx context.Context) (pos int64, err error) {
	err = s.withReadAccess(ctx, "read the end of the feed", func() error {
		return s.readers.queryRow(ctx, sqlLatest, nil, []any{&pos})
	})
	return pos, err
}

// Watch implements run.Feed.
func (s *Store) Watch(ctx context.Context) <-chan struct{} { return s.watch.Add(ctx) }
