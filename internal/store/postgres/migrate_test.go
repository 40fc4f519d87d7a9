package postgres_test

import (
	"context"
	"sync"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/store/postgres"
)

// TestMigrateConcurrently checks that many processes can open an empty database at the same
// time.
func TestMigrateConcurrently(t *testing.T) {
	t.Parallel()
	u := newSchemaURL(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			s, err := postgres.Open(context.Background(), postgres.Options{URL: u, MaxConns: 2})
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(func() { _ = s.Close() })
		})
	}
	wg.Wait()
	if n := queryNumber(t, u, `select count(*)::int from guideway_tables where version > 0`); n != 1 {
		t.Errorf("%d versions are stored", n)
	}
}

// TestMigrateOlder checks that older tables are migrated with their content, and that a
// failed migration changes nothing.
func TestMigrateOlder(t *testing.T) {
	t.Parallel()
	u := newSchemaURL(t)
	s := openStore(t, postgres.Options{URL: u})
	r := createTestRun(t, s, "r_a")
	add := `alter table runs add column mood text not null default 'calm'; create table moods (mood text)`
	err := postgres.Migrate(t.Context(), s, add, `alter table no_such_table add column x int`)
	if err == nil {
		t.Fatal("an invalid migration succeeded")
	}
	if n := queryNumber(t, u, `select count(*)::int from pg_tables where tablename = 'moods' and schemaname = current_schema`); n != 0 {
		t.Fatal("a migration was applied in part")
	}
	requireNoError(t, s.Append(t.Context(), newCommit(r, 1, nil))) // the failed migration has not changed the tables
	requireNoError(t, postgres.Migrate(t.Context(), s, add))
	requireNoError(t, postgres.Migrate(t.Context(), s, add)) // a repetition has no effect
	if n := queryNumber(t, u, `select count(*)::int from runs where mood = 'calm' and seq = 2`); n != 1 {
		t.Error("the run is not in the migrated table")
	}
}

// TestRollingUpgrade checks that this version uses tables of a later version until that
// version no longer supports it, also if it was running before.
func TestRollingUpgrade(t *testing.T) {
	t.Parallel()
	u := newSchemaURL(t)
	s := openStore(t, postgres.Options{URL: u})
	r := createTestRun(t, s, "r_a")
	expand := `alter table runs add column mood text; create table moods (mood text)`
	requireNoError(t, postgres.Migrate(t.Context(), s, expand))
	requireNoError(t, s.Append(t.Context(), newCommit(r, 1, nil)))
	createTestRun(t, openStore(t, postgres.Options{URL: u}), "r_b")
	contract := `alter table runs drop column project_path; update guideway_tables set oldest = 1000`
	requireNoError(t, postgres.Migrate(t.Context(), s, expand, contract))
	_, err := postgres.Open(t.Context(), postgres.Options{URL: u})
	checkError(t, err, guideway.CodeUnavailable, "versions up to")
	postgres.ExpireSchemaCheck(s)
	d, c := newTestRun("r_c", "ada", "")
	checkError(t, s.Create(t.Context(), d, c), guideway.CodeUnavailable, "versions up to")
	_, err = s.PinKey(t.Context(), nil)
	checkError(t, err, guideway.CodeUnavailable, "versions up to")
}

// TestMigrateForeign checks that tables of another program are not changed.
func TestMigrateForeign(t *testing.T) {
	t.Parallel()
	for name, sql := range map[string]string{
		"other columns":  `create table schema_migrations (version bigint not null primary key, dirty boolean not null); insert into schema_migrations values (3, false)`,
		"no names":       `create table schema_migrations (version bigint not null primary key, dirty boolean not null)`,
		"another's name": `create table schema_migrations (version int, name text); insert into schema_migrations values (1, 'shop')`,
		"before release": `create table guideway_schema (version int not null); insert into guideway_schema values (5)`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newSchemaURL(t)
			execSQL(t, u, `do $$ begin execute format('create schema %I', current_setting('search_path')); end $$; `+sql)
			_, err := postgres.Open(t.Context(), postgres.Options{URL: u})
			checkError(t, err, guideway.CodeUnavailable, "another program")
			if n := queryNumber(t, u, `select count(*)::int from pg_tables where schemaname = current_schema`); n != 1 {
				t.Errorf("there are %d tables now", n)
			}
		})
	}
}
