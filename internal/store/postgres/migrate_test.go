package postgres_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/store/postgres"
)

// Many processes may begin on an empty database at once.
func TestMigrateTogether(t *testing.T) {
	t.Parallel()
	u := inSchema(t)
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
	if n := number(t, u, `select count(*)::int from guideway_schema where version > 0`); n != 1 {
		t.Errorf("%d versions are noted", n)
	}
}

// Older tables are brought up to date with what is in them, all or nothing.
func TestMigrateOlder(t *testing.T) {
	t.Parallel()
	u := inSchema(t)
	s := open(t, postgres.Options{URL: u})
	r := create(t, s, "r_a")
	add := `alter table runs add column mood text not null default 'calm'; create table moods (mood text)`
	err := postgres.Migrate(t.Context(), s, add, `alter table no_such_table add column x int`)
	if err == nil {
		t.Fatal("a broken migration went well")
	}
	if n := number(t, u, `select count(*)::int from pg_tables where tablename = 'moods' and schemaname = current_schema`); n != 0 {
		t.Fatal("half of a migration is there")
	}
	must(t, s.Append(t.Context(), follow(r, 1, nil))) // the tables are as they were
	must(t, postgres.Migrate(t.Context(), s, add))
	must(t, postgres.Migrate(t.Context(), s, add)) // once is enough
	if n := number(t, u, `select count(*)::int from runs where mood = 'calm' and seq = 2`); n != 1 {
		t.Error("the run is not in the migrated table")
	}
	_, err = postgres.Open(t.Context(), postgres.Options{URL: u})
	wantFault(t, err, guideway.CodeUnavailable, "versions up to")
}

// Tables of another program, or of a version before the first release, are left alone.
func TestMigrateForeign(t *testing.T) {
	t.Parallel()
	for name, sql := range map[string]string{
		"before the first release": `create table schema_migrations (version int, name text); insert into schema_migrations values (1, 'journal'), (2, 'more')`,
		"other columns":            `create table schema_migrations (version bigint not null primary key, dirty boolean not null); insert into schema_migrations values (3, false)`,
		"no names":                 `create table schema_migrations (version bigint not null primary key, dirty boolean not null)`,
		"another's name":           `create table schema_migrations (version int, name text); insert into schema_migrations values (1, 'shop')`,
	} {
		words := "another program"
		if strings.Contains(sql, "'journal'") {
			words = "before the first release"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := inSchema(t)
			execute(t, u, `do $$ begin execute format('create schema %I', current_setting('search_path')); end $$; `+sql)
			_, err := postgres.Open(t.Context(), postgres.Options{URL: u})
			wantFault(t, err, guideway.CodeUnavailable, words)
			if n := number(t, u, `select count(*)::int from pg_tables where schemaname = current_schema`); n != 1 {
				t.Errorf("there are %d tables now", n)
			}
		})
	}
}
