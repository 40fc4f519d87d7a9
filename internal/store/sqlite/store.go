// Package sqlite keeps runs and session documents in one SQLite file. Several
// processes may work on it at once: there is no primary, and nothing to elect.
//
// The file is only ever opened by SQLite itself. Whoever else in this process
// opens and closes it would, on some systems, drop SQLite's locks.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/session"
)

var (
	_ run.Journal   = (*Store)(nil)
	_ session.Store = (*Store)(nil)
)

// Options say what to open.
type Options struct {
	// Path is that of the file. It and its directory are made where they are
	// not there, for this user alone.
	Path string
	// Program is the version of the program, for the word to an older one.
	Program string
	// Logger gets what nobody can be told; nil discards it.
	Logger *slog.Logger
	// LockTimeout bounds the wait for other writers; 0 is 10 seconds.
	LockTimeout time.Duration
	// BusyTimeout bounds SQLite's own wait, behind LockTimeout; 0 is 5 seconds.
	BusyTimeout time.Duration
	// KeepFeed is about how many changes the feed keeps; 0 is 100,000.
	KeepFeed int64

	// pollEvery is how often a watch looks for changes of other processes; 0
	// is 100 milliseconds.
	pollEvery time.Duration
	// steps are those of the schema; nil is schemaSteps.
	steps []string
	// commit ends a transaction; nil is as it is ended.
	commit func(*sql.Tx) error
}

// withDefaults fills in what is zero.
func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.LockTimeout <= 0 {
		o.LockTimeout = 10 * time.Second
	}
	if o.BusyTimeout <= 0 {
		o.BusyTimeout = 5 * time.Second
	}
	if o.KeepFeed <= 0 {
		o.KeepFeed = 100_000
	}
	if o.pollEvery <= 0 {
		o.pollEvery = 100 * time.Millisecond
	}
	if o.commit == nil {
		o.commit = (*sql.Tx).Commit
	}
	return o
}

// Store is an open file. It implements run.Journal and session.Store, whose
// contracts say what its methods do.
type Store struct {
	o Options
	// writer has one connection, readers a few.
	writer, readers *statements
	lock            *fileLock
	queue           queue
	watch           *watchers

	// inUse is held for reading by every call, and for good by Close.
	inUse  sync.RWMutex
	closed bool
}

// Open opens a file, makes it where it is not there, and brings an older one up
// to date. A file of a newer version, or of another program, is left as it is
// and is CodeUnavailable.
func Open(ctx context.Context, o Options) (*Store, error) {
	o = o.withDefaults()
	path, err := filepath.Abs(o.Path)
	if err != nil || o.Path == "" {
		return nil, guideway.Errorf(guideway.CodeInvalid, "the store has no path that can be used: %q", o.Path)
	}
	o.Path = path
	s := &Store{o: o, lock: newFileLock(path+".lock", o.LockTimeout)}
	if err := s.prepare(ctx); err != nil {
		s.lock.close()
		return nil, err
	}
	s.watch = newWatchers(s.readers.db, o.pollEvery, o.Logger)
	return s, nil
}

// Close implements run.Journal. It may be called again.
func (s *Store) Close() error {
	if s.watch != nil {
		s.watch.close()
	}
	s.inUse.Lock()
	defer s.inUse.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	err := errors.Join(s.readers.close(), s.writer.close())
	s.lock.close()
	if err != nil {
		return s.fault("close", err)
	}
	return nil
}

// enter begins a call; leave must follow where it gives no error.
func (s *Store) enter(ctx context.Context, what string) error {
	if err := ctx.Err(); err != nil {
		return s.fault(what, err)
	}
	s.inUse.RLock()
	if s.closed {
		s.inUse.RUnlock()
		return guideway.Errorf(guideway.CodeUnavailable, "%s: the store is closed", what)
	}
	return nil
}

func (s *Store) leave() { s.inUse.RUnlock() }

// statements is a database with the statements that it has prepared.
type statements struct {
	db *sql.DB
	mu sync.Mutex
	// prepared has those of this database, by their text.
	prepared map[string]*sql.Stmt
}

func newStatements(db *sql.DB) *statements {
	return &statements{db: db, prepared: map[string]*sql.Stmt{}}
}

// prepare gives the statement of a text. Texts are constants: there are only so
// many. It waits for a connection without the lock: a transaction that has the
// only one asks for its statements.
func (s *statements) prepare(ctx context.Context, text string) (*sql.Stmt, error) {
	if stmt := s.known(text); stmt != nil {
		return stmt, nil
	}
	stmt, err := s.db.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if first := s.prepared[text]; first != nil {
		_ = stmt.Close() // somebody else was faster
		return first, nil
	}
	s.prepared[text] = stmt
	return stmt, nil
}

// known gives a statement that is prepared, or nil.
func (s *statements) known(text string) *sql.Stmt {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.prepared[text]
}

// row asks for one row by a constant text.
func (s *statements) row(ctx context.Context, text string, args, into []any) error {
	stmt, err := s.prepare(ctx, text)
	if err != nil {
		return err
	}
	return stmt.QueryRowContext(ctx, args...).Scan(into...)
}

// rows asks for rows by a constant text.
func (s *statements) rows(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	stmt, err := s.prepare(ctx, text)
	if err != nil {
		return nil, err
	}
	return stmt.QueryContext(ctx, args...)
}

// close closes the statements and the database.
func (s *statements) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, stmt := range s.prepared {
		errs = append(errs, stmt.Close())
	}
	clear(s.prepared)
	return errors.Join(append(errs, s.db.Close())...)
}

// collect reads all rows.
func collect[T any](rows *sql.Rows, err error, scan func(scanner) (T, error)) (list []T, _ error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		item, err := scan(rows)
		if err != nil {
			return nil, err
		}
		list = append(list, item)
	}
	return list, rows.Err()
}

// readList returns the rows of a query, which ask sends.
func readList[T any](
	ctx context.Context, s *Store, doing string, ask func(context.Context, string, ...any) (*sql.Rows, error),
	scan func(scanner) (T, error), text string, args ...any,
) (list []T, err error) {
	err = s.read(ctx, doing, func() error {
		rows, err := ask(ctx, text, args...)
		list, err = collect(rows, err, scan)
		return err
	})
	return list, err
}

// scanner is a row.
type scanner interface{ Scan(into ...any) error }

// toTime and fromTime are how times are kept.
func toTime(micro int64) time.Time { return time.UnixMicro(micro).UTC() }

func fromTime(t time.Time) int64 { return t.UnixMicro() }
