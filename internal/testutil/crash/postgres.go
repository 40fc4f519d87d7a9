package crash

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
)

// EmptyPostgres returns a URL with the name of a schema that does not exist. It drops the
// schema after the test, and skips the test if there is no server.
func EmptyPostgres(t testing.TB) string {
	t.Helper()
	text := os.Getenv("GUIDEWAY_TEST_POSTGRES")
	if text == "" {
		t.Skip("GUIDEWAY_TEST_POSTGRES is not set")
	}
	at, err := url.Parse(text)
	if err != nil {
		t.Fatalf("GUIDEWAY_TEST_POSTGRES: %v", err)
	}
	schema := fmt.Sprintf("crashtest_%016x", rand.Uint64())
	t.Cleanup(func() {
		Exec(t, text, "set client_min_messages = warning; drop schema if exists "+schema+", "+schema+"_machines cascade")
	})
	q := at.Query()
	q.Set("search_path", schema)
	at.RawQuery = q.Encode()
	return at.String()
}

// Exec executes statements in a database.
func Exec(t testing.TB, url, sql string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, sql); err != nil {
		t.Errorf("%s: %v", sql, err)
	}
}

// NameClient returns a URL of a database with the name of a client.
func NameClient(t testing.TB, at, name string) string {
	t.Helper()
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("application_name", name)
	u.RawQuery = q.Encode()
	return u.String()
}

// WaitForEnd waits until the server has ended the connections of a client that was killed:
// it executes the statements that it has received before it notices the end.
func WaitForEnd(t testing.TB, at, name string) {
	t.Helper()
	Exec(t, at, "do $$ begin while exists (select from pg_stat_activity where application_name = '"+name+"') loop perform pg_sleep(0.002); perform pg_stat_clear_snapshot(); end loop; end $$")
}
