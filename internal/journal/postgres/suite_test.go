package postgres_test

import (
	"context"
	"crypto/rand"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/guideway-dev/guideway/internal/journal/journaltest"
	"github.com/guideway-dev/guideway/internal/journal/postgres"
)

// envServer names a throw-away server. The tests make schemas in its database.
const envServer = "GUIDEWAY_TEST_POSTGRES"

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// server gives the URL of the throw-away server, or skips the test.
func server(tb testing.TB) string {
	tb.Helper()
	u := os.Getenv(envServer)
	if u == "" {
		tb.Skipf("%s is not set: there is no PostgreSQL to test with; .ci/run starts one", envServer)
	}
	return u
}

// inSchema gives the URL with a schema of its own, which goes with the test.
func inSchema(tb testing.TB) string {
	tb.Helper()
	base := server(tb)
	name := "test_" + strings.ToLower(rand.Text())
	tb.Cleanup(func() {
		c, err := pgx.Connect(context.Background(), base)
		if err != nil {
			tb.Errorf("drop the schema %s: %v", name, err)
			return
		}
		defer c.Close(context.Background())
		if _, err := c.Exec(context.Background(), "set client_min_messages = warning; drop schema if exists "+name+" cascade"); err != nil {
			tb.Errorf("drop the schema %s: %v", name, err)
		}
	})
	return with(tb, base, "search_path", name)
}

// with sets a parameter of a URL.
func with(tb testing.TB, raw, key, value string) string {
	tb.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		tb.Fatal(err)
	}
	q := u.Query()
	q.Set(key, value)
	u.RawQuery = q.Encode()
	return u.String()
}

// open opens a store that is closed with the test.
func open(tb testing.TB, o postgres.Options) *postgres.Store {
	tb.Helper()
	s, err := postgres.Open(context.Background(), o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

func TestJournal(t *testing.T) {
	t.Parallel()
	server(t)
	journaltest.Exercise(t, func(t *testing.T) journaltest.Opener {
		u := inSchema(t)
		return func(t *testing.T) journaltest.Store { return open(t, postgres.Options{URL: u, MaxConns: 4}) }
	})
}
