// Package postgres keeps runs and session documents in PostgreSQL, for
// installations of more than one machine. It passes the same suite as the
// embedded journal: package journaltest.
package postgres

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/session"
)

var (
	_ run.Journal   = (*Store)(nil)
	_ session.Store = (*Store)(nil)
)

// Options say where the database is. URL is needed.
type Options struct {
	// URL is postgres://user@host:port/database, with the parameters of libpq
	// and of pgxpool. What it leaves out comes from the PG* variables and
	// ~/.pgpass. The parameter search_path names the schema that the tables are
	// in; it is "guideway" otherwise, and made if it is not there.
	URL string
	// Logger gets what goes wrong beside a call; nil is silence.
	Logger *slog.Logger
	// MaxConns bounds the connections of the process, but for the one that
	// listens; 0 is 8. pool_max_conns in the URL goes first.
	MaxConns int
	// Patience is how long a call tries again while the server is away or
	// starting; 0 is 5 s, a negative one does not try again.
	Patience time.Duration
	// CallTimeout bounds one exchange with the server, so that a network that
	// swallows packets is no call without an end; 0 is 15 s.
	CallTimeout time.Duration
	// KeepChanges is how many changes the feed keeps; 0 is 100,000.
	KeepChanges int
}

const (
	defaultMaxConns    = 8
	defaultPatience    = 5 * time.Second
	defaultCallTimeout = 15 * time.Second
	defaultKeepChanges = 100_000
)

// Store is a journal and a store of session documents. It may be used by many
// goroutines, and many processes on many machines may have one on the same
// database.
type Store struct {
	pool        *pgxpool.Pool
	log         *slog.Logger
	schema      string
	where       string
	patience    time.Duration
	callTimeout time.Duration
	keepChanges int64

	hub  *hub
	tell *teller

	// mu guards closed; underWay counts calls that Close waits for.
	mu       sync.Mutex
	closed   bool
	underWay sync.WaitGroup
}

// Open connects to a database, makes the tables or brings them up to date, and
// gives the store. Tables of a newer version are refused. Errors are
// CodeUnavailable and CodeInvalid, say the way out, and hold nothing secret.
func Open(ctx context.Context, o Options) (*Store, error) {
	cfg, err := configure(o)
	if err != nil {
		return nil, err
	}
	s := &Store{
		log: o.Logger, schema: cfg.schema, where: cfg.where,
		patience: o.Patience, callTimeout: o.CallTimeout, keepChanges: int64(o.KeepChanges),
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.patience == 0 {
		s.patience = defaultPatience
	}
	if s.callTimeout <= 0 {
		s.callTimeout = defaultCallTimeout
	}
	if s.keepChanges <= 0 {
		s.keepChanges = defaultKeepChanges
	}
	s.pool, err = pgxpool.NewWithConfig(ctx, cfg.pool)
	if err != nil {
		return nil, s.fault("open the store", err)
	}
	s.hub = newHub(s)
	s.tell = newTeller(s)
	if err := s.prepare(ctx); err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

// prepare checks the server and brings the tables up to date.
func (s *Store) prepare(ctx context.Context) error {
	if err := s.try(ctx, "check the server", s.checkServer); err != nil {
		return err
	}
	err := s.try(ctx, "bring the tables up to date", func(ctx context.Context, _ bool) error {
		return s.migrate(ctx, schemaSteps())
	})
	if err != nil {
		return err
	}
	return s.try(ctx, "tidy the feed", func(ctx context.Context, _ bool) error { return s.tidy(ctx) })
}

// Close releases the store. Calls that are under way end first, and watches end.
// It may be called again.
func (s *Store) Close() error {
	s.mu.Lock()
	already := s.closed
	s.closed = true
	s.mu.Unlock()
	s.underWay.Wait()
	if already {
		return nil
	}
	s.hub.close()
	s.tell.close()
	s.pool.Close()
	return nil
}

// enter begins a call; done ends it.
func (s *Store) enter() (done func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "the store is closed")
	}
	s.underWay.Add(1)
	return s.underWay.Done, nil
}
