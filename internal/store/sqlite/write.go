package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
)

// txn is a transaction that writes.
type txn struct {
	tx *sql.Tx
	// prepared has the prepared statements. Statements that are rarely used are not
	// prepared.
	prepared *preparedDB
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

// writeExclusive calls do in its own transaction, while no other process writes. After the
// transaction has begun, the end of the context does not stop the transaction: it is short
// and its result must be known. doing describes the operation in errors. Use commitShared
// for changes that can share a transaction.
func (s *Store) writeExclusive(ctx context.Context, doing string, do func(context.Context, *txn) error) error {
	if err := s.beginCall(ctx, doing); err != nil {
		return err
	}
	defer s.endCall()
	release, err := s.lock.acquireLock(ctx)
	if err != nil {
		return s.wrapError(doing, err)
	}
	defer release()
	if _, err := s.runTransaction(ctx, do); err != nil {
		return s.wrapError(doing, err)
	}
	s.watch.NotifyAll()
	return nil
}

// runTransaction runs one transaction. The caller has the lock. begun is false if the
// transaction could not begin, so that a retry would fail as well.
func (s *Store) runTransaction(ctx context.Context, do func(context.Context, *txn) error) (begun bool, err error) {
	ctx = context.WithoutCancel(ctx)
	for _, text := range commitStatements() {
		// Prepare before the transaction, which occupies the only connection.
		if _, err := s.writer.prepareStatement(ctx, text); err != nil {
			return false, err
		}
	}
	tx, err := s.writer.db.BeginTx(ctx, nil)
	if err != nil {
		return false, err
	}
	defer func() { _ = tx.Rollback() }() // no effect after a commit
	t := &txn{tx: tx, prepared: s.writer}
	if err := do(ctx, t); err != nil {
		return true, err
	}
	if err := t.insertWords(ctx); err != nil {
		return true, err
	}
	return true, s.o.commit(tx)
}

// commitStatements returns the statements of a commit, which stay prepared.
func commitStatements() []string {
	return []string{
		sqlRunForCommit, sqlInsertEvent, sqlUpdateRun, sqlInsertHandle, sqlInsertCommand, sqlPutSnapshot, sqlInsertWords, sqlInsertChange,
		sqlInsertDefinition, sqlInsertRun, sqlSavepoint, sqlRollbackTo, sqlRelease,
	}
}

// preparedStatement returns a prepared statement bound to the transaction, or nil.
func (t *txn) preparedStatement(ctx context.Context, text string) *sql.Stmt {
	stmt := t.prepared.preparedStatement(text)
	if stmt == nil {
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
	if stmt := t.preparedStatement(ctx, text); stmt != nil {
		return stmt.QueryRowContext(ctx, args...).Scan(into...)
	}
	return t.tx.QueryRowContext(ctx, text, args...).Scan(into...)
}
