// Package sqlite keeps runs, session documents and the index of checkpoints in one SQLite
// file. Several processes can use the file at the same time, without a coordinator.
//
// Only SQLite may open the file: on some systems, if other code in this process opens and
// closes the file, the system drops SQLite's locks.
package sqlite

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/session"
	"github.com/guideway-dev/guideway/internal/store/rows"
	"github.com/guideway-dev/guideway/internal/store/watch"
)

var (
	_ run.Journal   = (*Store)(nil)
	_ session.Store = (*Store)(nil)
)

// Options configure a store.
type Options struct {
	// Path is the path of the file. The file and its directory are created if they do not
	// exist, accessible only by this user.
	Path string
	// Memory, instead of Path, keeps the content in memory until Close.
	Memory bool
	// Program is the version of the program. A migration stores it, so that an older
	// program that cannot open the file can name the version that migrated the file.
	Program string
	// Logger gets errors that no caller receives. If it is nil, they are discarded.
	Logger *slog.Logger
	// LockTimeout bounds the wait for other writers. The default is 10 seconds.
	LockTimeout time.Duration
	// BusyTimeout bounds the time that SQLite then waits for its own locks. The default is
	// 5 seconds.
	BusyTimeout time.Duration
	// KeepFeed is the approximate number of changes that the feed keeps. The default is
	// 100,000.
	KeepFeed int64

	// pollEvery is the interval at which a watch checks for changes of other processes. The
	// default is 100 milliseconds.
	pollEvery time.Duration
	// migrations replaces the migrations of the schema in tests.
	migrations []string
	// commit replaces the commit of a transaction in tests.
	commit func(*sql.Tx) error
}

// withDefaults returns the options with defaults for zero fields.
func (o Options) withDefaults() Options {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	o.LockTimeout = cmp.Or(o.LockTimeout, 10*time.Second)
	o.BusyTimeout = cmp.Or(o.BusyTimeout, 5*time.Second)
	o.KeepFeed = cmp.Or(o.KeepFeed, 100_000)
	o.pollEvery = cmp.Or(o.pollEvery, 100*time.Millisecond)
	if o.commit == nil {
		o.commit = (*sql.Tx).Commit
	}
	return o
}

// methods are the methods that are the same for all databases.
type methods = rows.Methods

// Store is an open file. It implements run.Journal, session.Store and checkpoint.Index.
type Store struct {
	methods
	o Options
	// writer has one connection, readers has several.
	writer, readers *preparedDB
	lock            *fileLock
	queue           commitQueue
	watch           *watch.Hub
	// newJob is signaled after a commit with a job.
	newJob chan struct{}

	// inUse is read-locked by every call and locked by Close.
	inUse  sync.RWMutex
	closed bool
}

// Open opens a store. It creates the store if it does not exist, and migrates an older
// store. A file of a newer version or of another program is not changed; the error has
// CodeUnavailable.
func Open(ctx context.Context, o Options) (*Store, error) {
	o = o.withDefaults()
	lockPath := ""
	switch path, err := filepath.Abs(o.Path); {
	case o.Memory:
		o.Path = "/" + rand.Text() // a name that no other store of this process has
	case o.Path == "":
		return nil, guideway.Errorf(guideway.CodeInvalid, "the path of the store is empty")
	case err != nil:
		return nil, guideway.Errorf(guideway.CodeInvalid, "resolve the path %q of the store: %w", o.Path, err)
	default:
		o.Path, lockPath = path, path+".lock"
	}
	s := &Store{o: o, lock: newFileLock(lockPath, o.LockTimeout), newJob: make(chan struct{}, 1)}
	s.methods = rows.NewMethods(dialect(), rows.Access{Read: s.read, Write: s.write})
	if err := s.openDatabases(ctx); err != nil {
		s.lock.close()
		return nil, err
	}
	s.watch = watch.NewHub(s.pollChanges)
	return s, nil
}

// Close implements run.Journal. It may be called more than once.
func (s *Store) Close() error {
	if s.watch != nil {
		s.watch.Close()
	}
	s.inUse.Lock()
	defer s.inUse.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	err := errors.Join(s.readers.closeAll(), s.writer.closeAll())
	s.lock.close()
	if err != nil {
		return s.wrapError("close", err)
	}
	return nil
}

// beginCall registers a call. Unless it returns an error, endCall must follow.
func (s *Store) beginCall(ctx context.Context, what string) error {
	if err := ctx.Err(); err != nil {
		return s.wrapError(what, err)
	}
	s.inUse.RLock()
	if s.closed {
		s.inUse.RUnlock()
		return guideway.Errorf(guideway.CodeUnavailable, "%s: the store is closed", what)
	}
	return nil
}

func (s *Store) endCall() { s.inUse.RUnlock() }

// preparedDB is a database with its prepared statements.
type preparedDB struct {
	db *sql.DB
	mu sync.Mutex
	// prepared maps the text of a statement to the prepared statement.
	prepared map[string]*sql.Stmt
}

func newPreparedDB(db *sql.DB) *preparedDB {
	return &preparedDB{db: db, prepared: map[string]*sql.Stmt{}}
}

// prepareStatement returns the prepared statement of a text. All texts are constants, so
// their number is bounded. It does not hold the mutex while it waits for a connection,
// because a transaction with the only connection needs the mutex.
func (s *preparedDB) prepareStatement(ctx context.Context, text string) (*sql.Stmt, error) {
	if stmt := s.preparedStatement(text); stmt != nil {
		return stmt, nil
	}
	stmt, err := s.db.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if first := s.prepared[text]; first != nil {
		_ = stmt.Close() // another caller has prepared the same statement
		return first, nil
	}
	s.prepared[text] = stmt
	return stmt, nil
}

// preparedStatement returns a prepared statement, or nil if it is not prepared.
func (s *preparedDB) preparedStatement(text string) *sql.Stmt {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.prepared[text]
}

// queryRow runs a constant query that selects one row.
func (s *preparedDB) queryRow(ctx context.Context, text string, args, into []any) error {
	stmt, err := s.prepareStatement(ctx, text)
	if err != nil {
		return err
	}
	return stmt.QueryRowContext(ctx, args...).Scan(into...)
}

// Each implements rows.Reader.
func (s *preparedDB) Each(ctx context.Context, q rows.Query, visit func(rows.Scanner) error) error {
	if q.Varies {
		found, err := s.db.QueryContext(ctx, q.Text, q.Args...)
		return eachRow(found, err, visit)
	}
	stmt, err := s.prepareStatement(ctx, q.Text)
	if err != nil {
		return err
	}
	found, err := stmt.QueryContext(ctx, q.Args...)
	return eachRow(found, err, visit)
}

// closeAll closes the statements and the database.
func (s *preparedDB) closeAll() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, stmt := range s.prepared {
		errs = append(errs, stmt.Close())
	}
	clear(s.prepared)
	return errors.Join(append(errs, s.db.Close())...)
}

// eachRow visits and closes the rows of a query, unless err is set.
func eachRow(found *sql.Rows, err error, visit func(rows.Scanner) error) error {
	if err != nil {
		return err
	}
	defer found.Close()
	for found.Next() {
		if err := visit(found); err != nil {
			return err
		}
	}
	return found.Err()
}

// withReadAccess calls do, which must only read, and keeps the store open during the call.
func (s *Store) withReadAccess(ctx context.Context, doing string, do func() error) error {
	if err := s.beginCall(ctx, doing); err != nil {
		return err
	}
	defer s.endCall()
	return s.wrapError(doing, do())
}

// read implements rows.Access.
func (s *Store) read(ctx context.Context, doing string, do func(context.Context, rows.Reader) error) error {
	return s.withReadAccess(ctx, doing, func() error { return do(ctx, s.readers) })
}
