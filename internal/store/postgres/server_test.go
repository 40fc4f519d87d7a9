package postgres_test

import (
	"context"
	"crypto/rand"
	"net"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/store/postgres"
)

// envServer is the environment variable with the URL of a disposable server. The tests
// create schemas in the database of the URL.
const envServer = "GUIDEWAY_TEST_POSTGRES"

func TestMain(m *testing.M) {
	if os.Getenv(envChild) != "" {
		os.Exit(runChild())
	}
	goleak.VerifyTestMain(m)
}

// serverURL returns the URL of the disposable server, or skips the test.
func serverURL(tb testing.TB) string {
	tb.Helper()
	u := os.Getenv(envServer)
	if u == "" {
		tb.Skipf("%s is not set: no PostgreSQL server to test with; .ci/run starts one", envServer)
	}
	return u
}

// newSchemaURL returns the URL with a new schema, which is dropped after the test.
func newSchemaURL(tb testing.TB) string {
	tb.Helper()
	base := serverURL(tb)
	name := "test_" + strings.ToLower(rand.Text())
	tb.Cleanup(func() { execSQL(tb, base, "set client_min_messages = warning; drop schema if exists "+name+" cascade") })
	return withParameter(tb, base, "search_path", name)
}

// schemaName returns the name of the schema of a URL.
func schemaName(tb testing.TB, raw string) string {
	tb.Helper()
	u, err := url.Parse(raw)
	requireNoError(tb, err)
	return u.Query().Get("search_path")
}

// execSQL runs statements on a new connection.
func execSQL(tb testing.TB, u, sql string) {
	tb.Helper()
	ctx := context.Background()
	c, err := pgx.Connect(ctx, u)
	if err != nil {
		tb.Fatal(err)
	}
	defer c.Close(ctx)
	if _, err := c.Exec(ctx, sql); err != nil {
		tb.Fatalf("%s: %v", sql, err)
	}
}

// queryNumber returns the number that a query selects.
func queryNumber(tb testing.TB, u, sql string) int {
	tb.Helper()
	ctx := context.Background()
	c, err := pgx.Connect(ctx, u)
	if err != nil {
		tb.Fatal(err)
	}
	defer c.Close(ctx)
	var n int
	if err := c.QueryRow(ctx, sql).Scan(&n); err != nil {
		tb.Fatalf("%s: %v", sql, err)
	}
	return n
}

// withParameter sets a parameter of a URL.
func withParameter(tb testing.TB, raw, key, value string) string {
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

// withHost replaces the host of a URL.
func withHost(tb testing.TB, raw, host string) string {
	tb.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		tb.Fatal(err)
	}
	u.Host = host
	return u.String()
}

// openStore opens a store that is closed after the test.
func openStore(tb testing.TB, o postgres.Options) *postgres.Store {
	tb.Helper()
	s, err := postgres.Open(context.Background(), o)
	requireNoError(tb, err)
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

func requireNoError(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatalf("%v (%s)", err, guideway.ErrorCode(err))
	}
}

func createTestRun(tb testing.TB, s run.Writer, id string) run.Record {
	tb.Helper()
	d, c := newTestRun(id, "ada", "an aim")
	requireNoError(tb, s.Create(context.Background(), d, c))
	return c.Record
}

// listenLocal returns a listener on a local port.
func listenLocal(tb testing.TB) net.Listener {
	tb.Helper()
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	requireNoError(tb, err)
	return l
}

// proxy forwards data between a store and the server, and can lose responses or requests.
type proxy struct {
	server   string
	listener net.Listener
	// loseAnswer drops the next bytes from the server, loseRequest the next bytes to the
	// server; then the connection is cut.
	loseAnswer, loseRequest atomic.Bool
	cuts                    atomic.Int64
	wg                      sync.WaitGroup
}

// newProxy returns a proxy and the URL of the database through it.
func newProxy(tb testing.TB, raw string) (*proxy, string) {
	tb.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		tb.Fatal(err)
	}
	l := listenLocal(tb)
	p := &proxy{server: u.Host, listener: l}
	p.wg.Go(p.acceptConns)
	tb.Cleanup(func() {
		_ = l.Close()
		p.wg.Wait()
	})
	return p, withHost(tb, raw, l.Addr().String())
}

func (p *proxy) acceptConns() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", p.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.wg.Go(func() { p.forward(client, server, &p.loseRequest) })
		p.wg.Go(func() { p.forward(server, client, &p.loseAnswer) })
	}
}

// forward copies until either side closes or data is to be lost.
func (p *proxy) forward(from, to net.Conn, lose *atomic.Bool) {
	defer from.Close()
	defer to.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 && lose.CompareAndSwap(true, false) {
			p.cuts.Add(1)
			return
		}
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
