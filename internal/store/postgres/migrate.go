package postgres

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"hash/fnv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/guideway-dev/guideway"
)

//go:embed schema.sql
var schemaSQL string

// migrations returns the statements that migrate the tables to the versions 1, 2 and so on.
// A change of the tables appends a migration; a released migration is never edited.
//
// During an upgrade, processes of both versions use the tables. A migration therefore only
// adds: tables, and columns that may be missing in an insert (expand). What no process uses
// any more is removed by a migration of a later release (contract), which also sets the column
// oldest of guideway_tables to the first version that does not use it.
func migrations() []string {
	return []string{schemaSQL}
}

// applyMigrations migrates the tables to the latest version in one transaction. If
// processes start at the same time, one migrates and the others wait.
func (s *Store) applyMigrations(ctx context.Context, steps []string) error {
	have, err := s.schemaVersion(ctx, s.pool, len(steps))
	if err != nil || have >= len(steps) {
		return err
	}
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		lock := fnv.New64a()
		fmt.Fprintf(lock, "guideway tables in %s", s.schema)
		if _, err := tx.Exec(ctx, `set local lock_timeout = 0`); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock($1)`, int64(lock.Sum64())); err != nil {
			return err
		}
		have, err := s.schemaVersion(ctx, tx, len(steps)) // another process may have migrated the tables while this one waited
		if err != nil {
			return err
		}
		if have == 0 {
			if err := s.createSchema(ctx, tx); err != nil {
				return err
			}
		}
		for i, sql := range steps[min(have, len(steps)):] {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return fmt.Errorf("migrate the tables to version %d: %w", have+i+1, err)
			}
		}
		if have >= len(steps) {
			return nil
		}
		s.log.InfoContext(ctx, "migrated the tables", "schema", s.schema, "version", len(steps))
		_, err = tx.Exec(ctx, `update guideway_tables set version = $1`, len(steps))
		return err
	})
}

// createSchema creates the schema if it does not exist.
func (s *Store) createSchema(ctx context.Context, tx pgx.Tx) error {
	var exists bool
	err := tx.QueryRow(ctx, `select exists (select from pg_namespace where nspname = $1)`, s.schema).Scan(&exists)
	if err == nil && !exists { // "create schema if not exists" needs the privilege even if the schema exists
		_, err = tx.Exec(ctx, `create schema `+pgx.Identifier{s.schema}.Sanitize())
	}
	return err
}

// querier is a pool, a connection or a transaction.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// schemaVersion returns the version of the tables, or 0 if none exist. It returns an error for
// tables of a newer version that this one cannot use, and for tables of other programs.
func (s *Store) schemaVersion(ctx context.Context, q querier, newest int) (int, error) {
	var own, other bool
	// to_regclass would use a cache that is older than the lock.
	err := q.QueryRow(ctx, `select coalesce(bool_or(tablename = 'guideway_tables'), false), coalesce(bool_or(tablename in ('schema_migrations', 'guideway_schema')), false)
		from pg_tables where schemaname = $1`, s.schema).Scan(&own, &other)
	if err != nil || !own && !other {
		return 0, err
	}
	if !own { // other programs use the table schema_migrations
		return 0, guideway.Errorf(guideway.CodeUnavailable, "the schema %s at %s contains the tables of another program", s.schema, s.where).
			WithFix("use a different schema: add search_path=NAME to the URL of the store")
	}
	var have, oldest int
	err = q.QueryRow(ctx, `select version, oldest from guideway_tables`).Scan(&have, &oldest)
	if err == nil && have > newest && oldest > newest {
		return 0, guideway.Errorf(guideway.CodeUnavailable,
			"the tables at %s have version %d, which supports programs of version %d or later; this version of Guideway supports versions up to %d", s.where, have, oldest, newest).
			WithFix("use the version of Guideway that migrated the tables, or a later one, or a different database")
	}
	return have, err
}

// schemaInterval is how often a process checks that it can still use the tables.
const schemaInterval = 5 * time.Second

// schemaCheck is the result of the last check of the version of the tables.
type schemaCheck struct {
	mu   sync.Mutex
	next time.Time
	err  error
}

// checkSchema returns an error if a newer version has migrated the tables so that this one
// cannot use them. It does not report that the database does not answer.
func (s *Store) checkSchema(ctx context.Context) error {
	c := &s.schemaCheck
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Now().Before(c.next) {
		return c.err
	}
	_, err := s.schemaVersion(ctx, s.pool, len(migrations()))
	var unsupported *guideway.Error
	if c.err = nil; errors.As(err, &unsupported) {
		c.err = err
	}
	c.next = time.Now().Add(schemaInterval)
	return c.err
}
