package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/store/postgres"
)

// secret is a password that must not be in any message.
const secret = "hunter2-sesame"

// checkError fails the test unless an error has a code, a fix and a word, and does not
// contain the secret.
func checkError(tb testing.TB, err error, code guideway.Code, word string) {
	tb.Helper()
	if got := guideway.ErrorCode(err); got != code {
		tb.Fatalf("got the code %q (%v), want %q", got, err, code)
	}
	fix := guideway.ErrorFix(err)
	if fix == "" {
		tb.Errorf("%v: no fix", err)
	}
	if !strings.Contains(err.Error(), word) {
		tb.Errorf("%v: does not contain %q", err, word)
	}
	for link := err; link != nil; link = errors.Unwrap(link) {
		for _, said := range []string{link.Error(), fmt.Sprintf("%v %s", link, fix)} {
			if strings.Contains(said, "hunter2") || strings.Contains(said, "sesame") {
				tb.Errorf("the message %q contains the password", said)
			}
		}
	}
}

// TestOpenReadsURLs checks that the error for an invalid URL or search_path has a fix and
// does not contain the password.
func TestOpenReadsURLs(t *testing.T) {
	t.Parallel()
	for name, u := range map[string]string{
		"port":        "postgres://ada:" + secret + "@host:port/db",
		"slash":       "postgres://ada:hunter2/sesame@host/db",
		"percent":     "postgres://ada:hunter2%zzsesame@host:5432/db",
		"scheme":      "mysql://ada:" + secret + "@host/db",
		"words":       "host=h password=" + secret + " port=x",
		"unknown":     "postgres://ada:" + secret + "@host/db?sslmode=perhaps",
		"certificate": "postgres://ada@host/db?sslpassword=" + secret + "&sslmode=verify-full&sslcert=/none&sslkey=/none",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := postgres.Open(t.Context(), postgres.Options{URL: u, Patience: -1})
			checkError(t, err, guideway.CodeInvalid, "URL")
		})
	}
	for _, path := range []string{"", "a,b", `"$user"`, "pg_catalog", "x; drop table runs", strings.Repeat("a", 64), "Ä"} {
		t.Run("search_path "+path, func(t *testing.T) {
			t.Parallel()
			_, err := postgres.Open(t.Context(), postgres.Options{URL: withParameter(t, "postgres://ada:"+secret+"@host/db", "search_path", path), Patience: -1})
			checkError(t, err, guideway.CodeInvalid, "search_path")
		})
	}
}

// startFakeServer starts a server that accepts every login, unless welcome is an error
// response, and returns an error for every statement.
func startFakeServer(tb testing.TB, welcome, answer *pgproto3.ErrorResponse) string {
	tb.Helper()
	l := listenLocal(tb)
	ended := make(chan struct{})
	tb.Cleanup(func() {
		_ = l.Close()
		<-ended
	})
	go func() {
		defer close(ended)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serveFakeConn(c, welcome, answer)
		}
	}()
	return fmt.Sprintf("postgres://ada:%s@%s/guides?sslmode=disable", secret, l.Addr())
}

// serveFakeConn serves one connection.
func serveFakeConn(c net.Conn, welcome, answer *pgproto3.ErrorResponse) {
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	b := pgproto3.NewBackend(c, c)
	if _, err := b.ReceiveStartupMessage(); err != nil {
		return
	}
	if welcome != nil {
		b.Send(welcome)
		_ = b.Flush()
		return
	}
	b.Send(&pgproto3.AuthenticationOk{})
	b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	for b.Flush() == nil {
		m, err := b.Receive()
		if err != nil {
			return
		}
		switch m.(type) {
		case *pgproto3.Parse, *pgproto3.Query:
			b.Send(answer)
		case *pgproto3.Sync:
			b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
		case *pgproto3.Terminate:
			return
		}
	}
}

// TestServerErrors checks that errors of the server are explained with a fix.
func TestServerErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ code, word string }{
		{"28P01", "password is wrong"},
		{"28000", "refuses the user"},
		{"3D000", "does not exist"},
		{"53300", "no free connection"},
		{"57P03", "starting"},
		{"53100", "disk is full"},
		{"53200", "memory"},
		{"53400", "limit"},
		{"25006", "read-only"},
		{"42501", "privilege"},
		{"42P01", "tables do not exist"},
		{"55P03", "another transaction"},
		{"57014", "ended the statement"},
		{"57P01", "does not answer"},
		{"08006", "does not answer"},
		{"40001", "conflicted with others"},
		{"XX001", "damaged"},
		{"XX002", "index"},
	} {
		response := &pgproto3.ErrorResponse{Severity: "FATAL", SeverityUnlocalized: "FATAL", Code: c.code, Message: "the error of the server"}
		t.Run(c.code+" at login", func(t *testing.T) {
			t.Parallel()
			_, err := postgres.Open(t.Context(), postgres.Options{URL: startFakeServer(t, response, nil), Patience: -1})
			checkError(t, err, guideway.CodeUnavailable, c.word)
		})
		t.Run(c.code+" to a statement", func(t *testing.T) {
			t.Parallel()
			_, err := postgres.Open(t.Context(), postgres.Options{URL: startFakeServer(t, nil, response), Patience: -1})
			checkError(t, err, guideway.CodeUnavailable, c.word)
		})
	}
}

// TestNetworkErrors checks the errors for a server that is not reachable, for a server that
// never answers, and for a cancelled context.
func TestNetworkErrors(t *testing.T) {
	t.Parallel()
	l := listenLocal(t)
	gone := l.Addr().String()
	requireNoError(t, l.Close())
	_, err := postgres.Open(t.Context(), postgres.Options{URL: fmt.Sprintf("postgres://ada:%s@%s/guides", secret, gone), Patience: -1})
	checkError(t, err, guideway.CodeUnavailable, gone)

	silent := listenLocal(t) // a server that accepts connections and never answers
	defer silent.Close()
	u := fmt.Sprintf("postgres://ada:%s@%s/guides?sslmode=disable", secret, silent.Addr())
	_, err = postgres.Open(t.Context(), postgres.Options{URL: u, Patience: -1, CallTimeout: 50 * time.Millisecond})
	checkError(t, err, guideway.CodeUnavailable, "does not answer")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = postgres.Open(ctx, postgres.Options{URL: u})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled in the chain", err)
	}
}

// TestRealServerErrors causes errors on a real server and checks that they are explained.
func TestRealServerErrors(t *testing.T) {
	t.Parallel()
	u := newSchemaURL(t)
	s := openStore(t, postgres.Options{URL: u})
	r := createTestRun(t, s, "r_a")

	_, err := postgres.Open(t.Context(), postgres.Options{URL: strings.Replace(u, "/postgres?", "/no_such_database?", 1)})
	checkError(t, err, guideway.CodeUnavailable, "does not exist")
	_, err = postgres.Open(t.Context(), postgres.Options{URL: withParameter(t, u, "default_transaction_read_only", "on")})
	checkError(t, err, guideway.CodeUnavailable, "read-only")
	execSQL(t, u, `alter table events add constraint narrow check (seq < 3)`) // a constraint that another program added
	requireNoError(t, s.Append(t.Context(), newCommit(r, 1, nil)))
	r = newCommit(r, 1, nil).Record
	if code := guideway.ErrorCode(s.Append(t.Context(), newCommit(r, 1, nil))); code != guideway.CodeInternal {
		t.Errorf("got the code %q for an unexpected error", code)
	}
	execSQL(t, u, `drop table events`)
	checkError(t, s.Append(t.Context(), newCommit(r, 1, nil)), guideway.CodeUnavailable, "tables do not exist")
}

// TestRoleErrors checks the errors for a role without rights and for a role without free
// connections.
func TestRoleErrors(t *testing.T) {
	t.Parallel()
	u := newSchemaURL(t)
	role := schemaName(t, u)
	execSQL(t, u, `create role `+role+` login`)
	t.Cleanup(func() { execSQL(t, u, `drop role `+role) })
	_, host, _ := strings.Cut(u, "@")
	as := "postgres://" + role + ":" + secret + "@" + host
	_, err := postgres.Open(t.Context(), postgres.Options{URL: as})
	checkError(t, err, guideway.CodeUnavailable, "privilege")
	execSQL(t, u, `alter role `+role+` connection limit 0`)
	_, err = postgres.Open(t.Context(), postgres.Options{URL: as, Patience: -1})
	checkError(t, err, guideway.CodeUnavailable, "no free connection")
}

// TestCommitsAreSynchronous checks that the store sets synchronous_commit to on, unless the
// URL sets a stricter value.
func TestCommitsAreSynchronous(t *testing.T) {
	t.Parallel()
	u := withParameter(t, newSchemaURL(t), "synchronous_commit", "off")
	s := openStore(t, postgres.Options{URL: u})
	if got := postgres.ConnSetting(t, s, "synchronous_commit"); got != "on" {
		t.Errorf("synchronous_commit is %q", got)
	}
	s = openStore(t, postgres.Options{URL: withParameter(t, u, "synchronous_commit", "remote_apply")})
	if got := postgres.ConnSetting(t, s, "synchronous_commit"); got != "remote_apply" {
		t.Errorf("synchronous_commit is %q, and the operator set a stricter one", got)
	}
}
