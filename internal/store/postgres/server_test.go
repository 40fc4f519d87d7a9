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

// envServer names a throw-away server. The tests make schemas in its database.
const envServer = "GUIDEWAY_TEST_POSTGRES"

func TestMain(m *testing.M) {
	if os.Getenv(envChild) != "" {
		os.Exit(child())
	}
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
	tb.Cleanup(func() { execute(tb, base, "set client_min_messages = warning; drop schema if exists "+name+" cascade") })
	return with(tb, base, "search_path", name)
}

// schemaOf gives the name of the schema that a URL is for.
func schemaOf(tb testing.TB, raw string) string {
	tb.Helper()
	u, err := url.Parse(raw)
	must(tb, err)
	return u.Query().Get("search_path")
}

// execute carries out statements on a connection of its own.
func execute(tb testing.TB, u, sql string) {
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

// number asks for one number.
func number(tb testing.TB, u, sql string) int {
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

// at has a URL name another host.
func at(tb testing.TB, raw, host string) string {
	tb.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		tb.Fatal(err)
	}
	u.Host = host
	return u.String()
}

// open opens a store that is closed with the test.
func open(tb testing.TB, o postgres.Options) *postgres.Store {
	tb.Helper()
	s, err := postgres.Open(context.Background(), o)
	must(tb, err)
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatalf("%v (%s)", err, guideway.ErrorCode(err))
	}
}

// create makes a run.
func create(tb testing.TB, s run.Writer, id string) run.Record {
	tb.Helper()
	d, c := begin(id, "ada", "an aim")
	must(tb, s.Create(context.Background(), d, c))
	return c.Record
}

// listen gives a port of this machine's.
func listen(tb testing.TB) net.Listener {
	tb.Helper()
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	must(tb, err)
	return l
}

// proxy stands between a store and the server and can lose what the server
// answers, or what it is asked.
type proxy struct {
	server   string
	listener net.Listener
	// loseAnswer and loseRequest cut a connection when the next bytes come that
	// way, and lose them.
	loseAnswer, loseRequest atomic.Bool
	cuts                    atomic.Int64
	wg                      sync.WaitGroup
}

// newProxy gives a proxy and the URL that leads through it.
func newProxy(tb testing.TB, raw string) (*proxy, string) {
	tb.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		tb.Fatal(err)
	}
	l := listen(tb)
	p := &proxy{server: u.Host, listener: l}
	p.wg.Go(p.serve)
	tb.Cleanup(func() {
		_ = l.Close()
		p.wg.Wait()
	})
	return p, at(tb, raw, l.Addr().String())
}

func (p *proxy) serve() {
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
		p.wg.Go(func() { p.pass(client, server, &p.loseRequest) })
		p.wg.Go(func() { p.pass(server, client, &p.loseAnswer) })
	}
}

// pass copies until either side ends, or until something is to be lost.
func (p *proxy) pass(from, to net.Conn, lose *atomic.Bool) {
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
