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
	// prepared has the statements of every day; others are prepared anew.
	prepared *statements
	// words are what runs are to be found by, as it is to be entered at the end. The
	// index of words writes out what it has gathered at each savepoint and whenever
	// rows do not rise; together they are one entry of it.
	words []wordsEntry
}

// wordsEntry is a row of words.
type wordsEntry struct {
	row         int64
	scope, text string
}

// enterWords enters the words of all changes of the transaction.
func (t *txn) enterWords(ctx context.Context) error {
	slices.SortFunc(t.words, func(a, b wordsEntry) int { return cmp.Compare(a.row, b.row) })
	for _, w := range t.words {
		if _, err := t.exec(ctx, sqlInsertWords, w.row, w.scope, w.text); err != nil {
			return err
		}
	}
	return nil
}

// write does something in a transaction of its own, with no other writer anywhere.
// Once it has begun, the end of the context does not stop it: it is short, and its
// outcome is never left open. doing is for errors. What may share a transaction
// goes by share.
func (s *Store) write(ctx context.Context, doing string, do func(context.Context, *txn) error) error {
	if err := s.enter(ctx, doing); err != nil {
		return err
	}
	defer s.leave()
	release, err := s.lock.acquire(ctx)
	if err != nil {
		return s.fault(doing, err)
	}
	defer release()
	if _, err := s.transact(ctx, do); err != nil {
		return s.fault(doing, err)
	}
	s.watch.notify()
	return nil
}

// transact makes one transaction. The caller has the lock. begun says that what
// failed, if anything has, was not the way to a transaction: another one of other
// changes may do better.
func (s *Store) transact(ctx context.Context, do func(context.Context, *txn) error) (begun bool, err error) {
	ctx = context.WithoutCancel(ctx)
	for _, text := range everyDay() {
		// Before the transaction, which has the only connection.
		if _, err := s.writer.prepare(ctx, text); err != nil {
			return false, err
		}
	}
	tx, err := s.writer.db.BeginTx(ctx, nil)
	if err != nil {
		return false, err
	}
	defer func() { _ = tx.Rollback() }() // behind a commit it does nothing
	t := &txn{tx: tx, prepared: s.writer}
	if err := do(ctx, t); err != nil {
		return true, err
	}
	if err := t.enterWords(ctx); err != nil {
		return true, err
	}
	return true, s.o.commit(tx)
}

// everyDay are the statements of a commit, which stay prepared.
func everyDay() []string {
	return []string{
		sqlRunForCommit, sqlInsertEvent, sqlUpdateRun, sqlInsertHandle, sqlInsertCommand, sqlPutSnapshot, sqlInsertWords, sqlInsertChange,
		sqlInsertDefinition, sqlInsertRun, sqlBeginChange, sqlUndoChange, sqlEndChange,
	}
}

// statement gives a prepared statement, or nil.
func (t *txn) statement(ctx context.Context, text string) *sql.Stmt {
	stmt := t.prepared.known(text)
	if stmt == nil {
		return nil
	}
	return t.tx.StmtContext(ctx, stmt)
}

func (t *txn) exec(ctx context.Context, text string, args ...any) (sql.Result, error) {
	if stmt := t.statement(ctx, text); stmt != nil {
		return stmt.ExecContext(ctx, args...)
	}
	return t.tx.ExecContext(ctx, text, args...)
}

func (t *txn) row(ctx context.Context, text string, args, into []any) error {
	if stmt := t.statement(ctx, text); stmt != nil {
		return stmt.QueryRowContext(ctx, args...).Scan(into...)
	}
	return t.tx.QueryRowContext(ctx, text, args...).Scan(into...)
}
