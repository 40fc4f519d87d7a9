package postgres

import (
	"cmp"
	"context"
	"embed"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/guideway-dev/guideway"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// migration is one step to the tables of this version.
type migration struct {
	version int
	name    string
	sql     string
}

// migrations gives the embedded steps in order: NNNN_name.sql, without a gap.
func migrations() ([]migration, error) {
	entries, err := migrationFiles.ReadDir("migrations")
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeInternal, "read the migrations: %w", err)
	}
	var steps []migration
	for _, e := range entries {
		number, name, _ := strings.Cut(strings.TrimSuffix(e.Name(), ".sql"), "_")
		version, err := strconv.Atoi(number)
		if err != nil {
			return nil, guideway.Errorf(guideway.CodeInternal, "the migration %s has no number: %w", e.Name(), err)
		}
		sql, err := migrationFiles.ReadFile("migrations/" + e.Name())
		if err != nil {
			return nil, guideway.Errorf(guideway.CodeInternal, "read the migration %s: %w", e.Name(), err)
		}
		steps = append(steps, migration{version: version, name: name, sql: string(sql)})
	}
	slices.SortFunc(steps, func(a, b migration) int { return cmp.Compare(a.version, b.version) })
	for i, m := range steps {
		if m.version != i+1 {
			return nil, guideway.Errorf(guideway.CodeInternal, "there is no migration %d", i+1)
		}
	}
	return steps, nil
}

// migrate brings the tables up to date, all steps in one transaction. Many
// processes may begin at once: one does it, the others wait for it.
func (s *Store) migrate(ctx context.Context, steps []migration) error {
	have, err := s.version(ctx, s.pool, len(steps))
	if err != nil || have == len(steps) {
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
		have, err := s.version(ctx, tx, len(steps)) // another process may have done it
		if err != nil {
			return err
		}
		if have == 0 {
			if err := s.begin(ctx, tx); err != nil {
				return err
			}
		}
		for _, m := range steps[have:] {
			if _, err := tx.Exec(ctx, m.sql); err != nil {
				return fmt.Errorf("migration %d (%s): %w", m.version, m.name, err)
			}
			if _, err := tx.Exec(ctx, `insert into schema_migrations (version, name) values ($1, $2)`, m.version, m.name); err != nil {
				return err
			}
			s.log.InfoContext(ctx, "the tables were migrated", "schema", s.schema, "version", m.version, "name", m.name)
		}
		return nil
	})
}

// begin makes the schema and the table of its versions.
func (s *Store) begin(ctx context.Context, tx pgx.Tx) error {
	var there bool
	if err := tx.QueryRow(ctx, `select exists (select from pg_namespace where nspname = $1)`, s.schema).Scan(&there); err != nil {
		return err
	}
	if !there { // "if not exists" would want the right to create it where it is
		if _, err := tx.Exec(ctx, `create schema `+pgx.Identifier{s.schema}.Sanitize()); err != nil {
			return err
		}
	}
	_, err := tx.Exec(ctx, `
		create table if not exists schema_migrations (
			version int primary key,
			name    text not null,
			applied timestamptz not null default now()
		)`)
	return err
}

// querier is a pool, a connection or a transaction.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// version tells which version the tables have, 0 where there are none. Those of
// a newer version, or of another program, are refused.
func (s *Store) version(ctx context.Context, q querier, newest int) (int, error) {
	var known bool
	// to_regclass would answer from a cache that is older than the lock.
	err := q.QueryRow(ctx, `select exists (select from pg_tables where schemaname = $1 and tablename = 'schema_migrations')`, s.schema).
		Scan(&known)
	if err != nil || !known {
		return 0, err
	}
	var have int
	var name *string
	err = q.QueryRow(ctx, `
		select coalesce(max(version), 0), (select name from schema_migrations where version = 1) from schema_migrations`).Scan(&have, &name)
	if code, _ := sqlState(err); code == codeUndefinedColumn || (err == nil && have > 0 && (name == nil || *name != "journal")) {
		return 0, guideway.Errorf(guideway.CodeUnavailable, "the schema %s at %s holds the tables of another program", s.schema, s.where).
			WithFix("name another schema: add search_path=guideway to the URL of the store")
	}
	if err != nil {
		return 0, err
	}
	if have > newest {
		return 0, guideway.Errorf(guideway.CodeUnavailable,
			"the tables at %s are of version %d, and this guideway knows versions up to %d", s.where, have, newest).
			WithFix("use the newer guideway that has made them, or another database")
	}
	return have, nil
}
