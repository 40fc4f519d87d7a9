package storetest

import (
	"bytes"
	"context"
	"crypto/rand"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// NewSchema returns the URL of a new schema in the database of a test server.
func NewSchema(t *testing.T) string {
	t.Helper()
	base := os.Getenv("GUIDEWAY_TEST_POSTGRES")
	if base == "" {
		t.Skip("GUIDEWAY_TEST_POSTGRES is not set: no PostgreSQL server to test with; .ci/run starts one")
	}
	name := "test_" + strings.ToLower(rand.Text())
	t.Cleanup(func() {
		conn, err := pgx.Connect(context.Background(), base)
		checkDatabase(t, err)
		_, err = conn.Exec(context.Background(), "set client_min_messages = warning; drop schema if exists "+name+" cascade")
		checkDatabase(t, err)
		checkDatabase(t, conn.Close(context.Background()))
	})
	u, err := url.Parse(base)
	checkDatabase(t, err)
	query := u.Query()
	query.Set("search_path", name)
	u.RawQuery = query.Encode()
	return u.String()
}

// DumpTables writes what the tables of a schema contain to a file.
func DumpTables(t *testing.T, url, path string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	checkDatabase(t, err)
	defer func() { checkDatabase(t, conn.Close(context.Background())) }()
	rows, err := conn.Query(t.Context(), "select table_name from information_schema.tables where table_schema = current_schema()")
	checkDatabase(t, err)
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	checkDatabase(t, err)
	var dump bytes.Buffer
	for _, table := range tables {
		_, err := conn.PgConn().CopyTo(t.Context(), &dump, "copy (select * from "+table+") to stdout (format binary)")
		checkDatabase(t, err)
	}
	checkDatabase(t, os.WriteFile(path, dump.Bytes(), 0o600))
}

func checkDatabase(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
