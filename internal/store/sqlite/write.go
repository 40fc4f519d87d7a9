package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"slices"

	"github.com/guideway-dev/guideway/internal/store/rows"
)

// txn is a transaction that writes.
type txn struct {
	tx    *sql.Tx
	store *Store
	// unprepared has the executed statements that are not prepared yet.
	unprepared []string
	// words are collected during the transaction and inserted at its end: FTS5 flushes its
	// buffer at each savepoint and whenever row numbers do not ascend, and a single flush
	// is cheaper.
	words []wordsEntry
}

// wordsEntry is a row of the table words.
type wordsEntry struct {
	row         int64
	scope, text string
}

// insertWords inserts the words of all changes of the transaction.
func (t *txn) insertWords(ctx context.Context) error {
	slices.SortFunc(t.words, func(a, b wordsEntry) int { return cmp.Compare(a.row, b.row) })
	for _, w := range t.words {
		if _, err := t.execStatement(ctx, sqlInsertWords, w.row, w.scope, w.text); err != nil {
			return err
		}
	}
	return nil
}

// runTransaction runs one transaction. The caller has the lock. begun is false if the
// transaction could not begin, so that a retry would fail as well.
func (s *Store) runTransaction(ctx context.Context, do func(context.Context, *txn) error) (begun bool, err error) {
	ctx = context.WithoutCancel(ctx)
	tx, err := s.writer.db.BeginTx(ctx, nil)
	if err != nil {
		return false, err
	}
	defer func() { _ = tx.Rollback() }() // no effect after a commit
	t := &txn{tx: tx, store: s}
	if err := do(ctx, t); err != nil {
		return true, err
	}
	if err := t.insertWords(ctx); err != nil {
		return true, err
	}
	if err := s.o.commit(tx); err != nil {
		return true, err
	}
	for _, text := range t.unprepared { // after the transaction, which occupied the only connection
		_, _ = s.writer.prepareStatement(ctx, text) // without it, the next transaction executes the text
	}
	return true, nil
}

// write implements rows.Access.
func (s *Store) write(ctx context.Context, w rows.Write) error {
	return s.commitShared(ctx, w.Doing, func(ctx context.Context, t *txn) error { return w.Do(ctx, t) })
}

// preparedStatement returns a prepared statement bound to the transaction, or nil. All texts
// are constants, so their number is bounded.
func (t *txn) preparedStatement(ctx context.Context, text string) *sql.Stmt {
	stmt := t.store.writer.preparedStatement(text)
	if stmt == nil {
		t.unprepared = append(t.unprepared, text)
		return nil
	}
	return t.tx.StmtContext(ctx, stmt)
}

func (t *txn) execStatement(ctx context.Context, text string, args ...any) (sql.Result, error) {
	if stmt := t.preparedStatement(ctx, text); stmt != nil {
		return stmt.ExecContext(ctx, args...)
	}
	return t.tx.ExecContext(ctx, text, args...)
}

func (t *txn) queryRow(ctx context.Context, text string, args, into []any) error {
	found := false
	err := t.Each(ctx, rows.Query{Text: text, Args: args}, func(row rows.Scanner) error {
		found = true
		return row.Scan(into...)
	})
	if err == nil && !found {
		return errNoRow
	}
	return err
}

// Queue implements rows.Tx.
func (t *txn) Queue(ctx context.Context, list ...rows.Query) error {
	for _, q := range list {
		if _, err := t.execStatement(ctx, q.Text, q.Args...); err != nil {
			return err
		}
	}
	return nil
}

// Exec implements rows.Tx.
func (t *txn) Exec(ctx context.Context, q rows.Query) (int64, error) {
	result, err := t.execStatement(ctx, q.Text, q.Args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// Each implements rows.Reader.
func (t *txn) Each(ctx context.Context, q rows.Query, visit func(rows.Scanner) error) error {
	if stmt := t.preparedStatement(ctx, q.Text); stmt != nil {
		found, err := stmt.QueryContext(ctx, q.Args...)
		return eachRow(found, err, visit)
	}
	found, err := t.tx.QueryContext(ctx, q.Text, q.Args...)
	return eachRow(found, err, visit)
}
