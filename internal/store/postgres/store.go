// Package postgres keeps runs, session documents and checkpoints in PostgreSQL, for
// installations on more than one machine. It passes the same contract tests as package
// sqlite; see package storetest.
package postgres

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/session"
	"github.com/guideway-dev/guideway/internal/store/rows"
	"github.com/guideway-dev/guideway/internal/store/watch"
)

var (
	_ run.Journal   = (*Store)(nil)
	_ session.Store = (*Store)(nil)
)

// Options configure a store. URL is required.
type Options struct {
	// URL is postgres://user@host:port/database, with the parameters of libpq and pgxpool.
	// Missing parts come from the PG* variables and ~/.pgpass. The parameter search_path
	// names the schema of the tables; the default is "guideway". The schema is created if
	// it does not exist.
	URL string
	// Logger gets errors that no caller receives. If it is nil, they are discarded.
	Logger *slog.Logger
	// MaxConns bounds the connections of the process, except for the one that listens. The
	// default is 8. pool_max_conns in the URL has precedence.
	MaxConns int
	// Patience is how long a call retries while the server is unreachable or starting. The
	// default is 5 s; a negative value disables retries.
	Patience time.Duration
	// CallTimeout bounds one attempt of a call, so that a network that drops packets does
	// not block the call forever. The default is 15 s.
	CallTimeout time.Duration
	// KeepChanges is the approximate number of changes that the feed keeps. The default is
	// 100,000.
	KeepChanges int
}

// methods are the methods that are the same for all databases.
type methods = rows.Methods

// Store is a run journal, a session document store and a checkpoint index. It is safe for
// concurrent use, and processes on several machines can use the same database.
type Store struct {
	methods
	pool        *pgxpool.Pool
	log         *slog.Logger
	schema      string
	where       string
	patience    time.Duration
	callTimeout time.Duration
	keepChanges int64

	hub *watch.Hub
	// recent has the newest changes while the listener runs.
	recent   atomic.Pointer[recentChanges]
	notifier *notifier
	// jobs has the client that stores jobs; nil before the first job.
	jobs struct {
		mu     sync.Mutex
		client *river.Client[pgx.Tx]
	}

	schemaCheck schemaCheck
	// changingShared serializes the changes of the shared state in this process: edit may use
	// further connections, and would otherwise wait for those of other changes.
	changingShared sync.Mutex
	// inUse is read-locked by every call and locked by Close.
	inUse  sync.RWMutex
	closed bool
}

// Open connects to a database and creates or migrates the tables. Tables of a newer version
// are refused. Errors contain no secret.
func Open(ctx context.Context, o Options) (*Store, error) {
	s, err := connect(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := s.setUpDatabase(ctx); err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

// connect returns a store whose tables may not exist.
func connect(ctx context.Context, o Options) (*Store, error) {
	cfg, err := parseOptions(o)
	if err != nil {
		return nil, err
	}
	s := &Store{
		log: cmp.Or(o.Logger, slog.New(slog.DiscardHandler)), schema: cfg.schema, where: cfg.where,
		patience: cmp.Or(o.Patience, 5*time.Second), callTimeout: cmp.Or(o.CallTimeout, 15*time.Second),
		keepChanges: cmp.Or(int64(o.KeepChanges), 100_000),
	}
	s.methods = rows.NewMethods(dialect(), rows.Access{Read: s.read, Write: s.write})
	s.pool, err = pgxpool.NewWithConfig(ctx, cfg.pool)
	if err != nil {
		return nil, s.wrapError("open the store", err)
	}
	s.hub = watch.NewHub(s.runListener)
	s.notifier = newNotifier(s)
	return s, nil
}

// setUpDatabase checks the server, migrates the tables and maintains the feed.
func (s *Store) setUpDatabase(ctx context.Context) error {
	if err := s.retryWrite(ctx, "check the PostgreSQL server", s.checkServer); err != nil {
		return err
	}
	err := s.retryWrite(ctx, "migrate the tables", func(ctx context.Context, _ bool) error {
		return s.applyMigrations(ctx, migrations())
	})
	if err != nil {
		return err
	}
	return s.retryWrite(ctx, "maintain the feed of changes", func(ctx context.Context, _ bool) error { return s.maintainFeed(ctx) })
}

// Close waits for calls in progress, ends watches and closes the connections. It may be
// called more than once.
func (s *Store) Close() error {
	s.inUse.Lock()
	defer s.inUse.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	s.hub.Close()
	s.notifier.close()
	s.pool.Close()
	return nil
}
