package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/store/rows"
)

var _ checkpoint.Index = (*Store)(nil)

// txn implements rows.Tx. It sends queued statements in one round trip with the next
// statement whose result is needed, or with the commit.
type txn struct {
	conn  *pgxpool.Conn
	queue *pgx.Batch
	// changed reports whether the feed has a new change.
	changed bool
}

// write implements rows.Access.
func (s *Store) write(ctx context.Context, w rows.Write) error {
	changed := false
	if w.Stored == nil {
		w.Stored = func(context.Context, rows.Reader) (bool, error) {
			return false, guideway.Errorf(guideway.CodeUnavailable, "%s: the answer of the PostgreSQL server was lost", w.Doing)
		}
	}
	err := s.retryUnlessStored(ctx, w.Doing, w.Stored, func(ctx context.Context) error {
		return s.pool.AcquireFunc(ctx, func(c *pgxpool.Conn) (err error) {
			changed, err = runTransaction(ctx, c, w)
			return err
		})
	})
	if err == nil && changed {
		s.afterCommit()
	}
	return markDiskFull(err)
}

// runTransaction makes a change in a transaction.
func runTransaction(ctx context.Context, c *pgxpool.Conn, w rows.Write) (changed bool, err error) {
	t := &txn{conn: c, queue: &pgx.Batch{}}
	t.queue.Queue("begin")
	if err = w.Do(ctx, t); err == nil {
		t.queue.Queue("commit")
		err = t.sendQueue(ctx)
	}
	if err != nil && c.Conn().PgConn().TxStatus() != 'I' {
		_, _ = c.Exec(ctx, "rollback") // a connection that is still in the transaction is closed when it is released
	}
	if code, _ := sqlState(err); code == pgerrcode.UniqueViolation {
		err = rows.Conflictf("%s: an id or key is already in use: %w", w.Doing, err)
	}
	return t.changed, err
}

func (t *txn) sendQueue(ctx context.Context) error {
	queue := t.queue
	t.queue = &pgx.Batch{}
	return t.conn.SendBatch(ctx, queue).Close()
}

// Queue implements rows.Tx.
func (t *txn) Queue(_ context.Context, list ...rows.Query) error {
	for _, q := range list {
		t.queue.Queue(q.Text, q.Args...)
	}
	return nil
}

// Exec implements rows.Tx.
func (t *txn) Exec(ctx context.Context, q rows.Query) (n int64, err error) {
	t.queue.Queue(q.Text, q.Args...).Exec(func(tag pgconn.CommandTag) error {
		n = tag.RowsAffected()
		return nil
	})
	err = t.sendQueue(ctx)
	return n, err
}

// Each implements rows.Reader.
func (t *txn) Each(ctx context.Context, q rows.Query, visit func(rows.Scanner) error) error {
	t.queue.Queue(q.Text, q.Args...).Query(func(found pgx.Rows) error { return eachRow(found, visit) })
	return t.sendQueue(ctx)
}

// AddChange implements rows.Tx.
func (t *txn) AddChange(_ context.Context, c run.Change) error {
	t.changed = true
	t.queue.Queue(`insert into outbox (at, subject, op, user_id, item, workflow, project, seq) values ($1, $2, $3, $4, $5, $6, $7, $8)`,
		c.At, c.Subject, c.Op, byteString(c.User), byteString(c.ID), byteString(c.Workflow), byteString(c.Project), c.Seq)
	return nil
}

// AddCheckpoint implements rows.Tx.
func (t *txn) AddCheckpoint(_ context.Context, c checkpoint.Change, r checkpoint.Record) error {
	tags := byteSlices(r.Tags)
	var terms []string
	if len(c.Terms) > 0 {
		terms = append(slices.Clone(c.Terms), userLexeme(r.User))
	}
	t.queue.Queue(`
		insert into checkpoints (`+dialect().CheckpointColumns()+`, vector)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24,
			array_to_tsvector($25::text[]))`,
		append(dialect().Values(rows.CheckpointFields(&r, &tags)), terms)...)
	return nil
}
