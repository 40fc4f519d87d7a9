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

// secret is a password that no message may have.
const secret = "hunter2-sesame"

// wantFault ends the test where an error does not have a code, a fix and a word,
// or says a secret.
func wantFault(tb testing.TB, err error, code guideway.Code, word string) {
	tb.Helper()
	if got := guideway.ErrorCode(err); got != code {
		tb.Fatalf("got the code %q (%v), want %q", got, err, code)
	}
	fix := guideway.ErrorFix(err)
	if fix == "" {
		tb.Errorf("%v: there is no fix", err)
	}
	if !strings.Contains(err.Error(), word) {
		tb.Errorf("%v: does not say %q", err, word)
	}
	for link := err; link != nil; link = errors.Unwrap(link) {
		for _, said := range []string{link.Error(), fmt.Sprintf("%v %s", link, fix)} {
			if strings.Contains(said, "hunter2") || strings.Contains(said, "sesame") {
				tb.Errorf("the message %q holds the password", said)
			}
		}
	}
}

// A URL that cannot be read is told without what stands in it.
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
			wantFault(t, err, guideway.CodeInvalid, "URL")
		})
	}
	for _, path := range []string{"", "a,b", `"$user"`, "pg_catalog", "x; drop table runs", strings.Repeat("a", 64), "Ä"} {
		t.Run("search_path "+path, func(t *testing.T) {
			t.Parallel()
			_, err := postgres.Open(t.Context(), postgres.Options{URL: with(t, "postgres://ada:"+secret+"@host/db", "search_path", path), Patience: -1})
			wantFault(t, err, guideway.CodeInvalid, "search_path")
		})
	}
}

// actor plays a server that lets everybody in, unless welcome is an error, and
// answers every statement with an error.
func actor(tb testing.TB, welcome, answer *pgproto3.ErrorResponse) string {
	tb.Helper()
	l := listen(tb)
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
			play(c, welcome, answer)
		}
	}()
	return fmt.Sprintf("postgres://ada:%s@%s/guides?sslmode=disable", secret, l.Addr())
}

// play serves one connection.
func play(c net.Conn, welcome, answer *pgproto3.ErrorResponse) {
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

// What the server answers is told as what to do about it.
func TestFaultsOfTheServer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ code, word string }{
		{"28P01", "password is wrong"},
		{"28000", "does not let this user in"},
		{"3D000", "does not exist"},
		{"53300", "no connection to spare"},
		{"57P03", "starting"},
		{"53100", "disk is full"},
		{"53200", "memory"},
		{"53400", "limit"},
		{"25006", "read-only"},
		{"42501", "right"},
		{"42P01", "tables are gone"},
		{"55P03", "another transaction"},
		{"57014", "ended the statement"},
		{"57P01", "does not answer"},
		{"08006", "does not answer"},
		{"40001", "in the way"},
		{"XX001", "damaged"},
		{"XX002", "index"},
	} {
		response := &pgproto3.ErrorResponse{Severity: "FATAL", SeverityUnlocalized: "FATAL", Code: c.code, Message: "the server's own words"}
		t.Run(c.code+" at the door", func(t *testing.T) {
			t.Parallel()
			_, err := postgres.Open(t.Context(), postgres.Options{URL: actor(t, response, nil), Patience: -1})
			wantFault(t, err, guideway.CodeUnavailable, c.word)
		})
		t.Run(c.code+" to a statement", func(t *testing.T) {
			t.Parallel()
			_, err := postgres.Open(t.Context(), postgres.Options{URL: actor(t, nil, response), Patience: -1})
			wantFault(t, err, guideway.CodeUnavailable, c.word)
		})
	}
}

// A server that is not there is told, by its name.
func TestFaultsOfTheNetwork(t *testing.T) {
	t.Parallel()
	l := listen(t)
	gone := l.Addr().String()
	must(t, l.Close())
	_, err := postgres.Open(t.Context(), postgres.Options{URL: fmt.Sprintf("postgres://ada:%s@%s/guides", secret, gone), Patience: -1})
	wantFault(t, err, guideway.CodeUnavailable, gone)

	silent := listen(t) // it takes connections and says nothing
	defer silent.Close()
	u := fmt.Sprintf("postgres://ada:%s@%s/guides?sslmode=disable", secret, silent.Addr())
	_, err = postgres.Open(t.Context(), postgres.Options{URL: u, Patience: -1, CallTimeout: 50 * time.Millisecond})
	wantFault(t, err, guideway.CodeUnavailable, "does not answer")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = postgres.Open(ctx, postgres.Options{URL: u})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled in the chain", err)
	}
}

// The same faults, made by a real server.
func TestFaultsOfARealServer(t *testing.T) {
	t.Parallel()
	u := inSchema(t)
	s := open(t, postgres.Options{URL: u})
	r := create(t, s, "r_a")

	_, err := postgres.Open(t.Context(), postgres.Options{URL: strings.Replace(u, "/postgres?", "/no_such_database?", 1)})
	wantFault(t, err, guideway.CodeUnavailable, "does not exist")
	_, err = postgres.Open(t.Context(), postgres.Options{URL: with(t, u, "default_transaction_read_only", "on")})
	wantFault(t, err, guideway.CodeUnavailable, "read-only")
	execute(t, u, `alter table events add constraint narrow check (seq < 3)`) // a rule of somebody else's
	must(t, s.Append(t.Context(), follow(r, 1, nil)))
	r = follow(r, 1, nil).Record
	if code := guideway.ErrorCode(s.Append(t.Context(), follow(r, 1, nil))); code != guideway.CodeInternal {
		t.Errorf("got the code %q for a defect", code)
	}
	execute(t, u, `drop table events`)
	wantFault(t, s.Append(t.Context(), follow(r, 1, nil)), guideway.CodeUnavailable, "tables are gone")
}

// A role without rights, and one whose connections are used up.
func TestFaultsOfARole(t *testing.T) {
	t.Parallel()
	u := inSchema(t)
	role := schemaOf(t, u)
	execute(t, u, `create role `+role+` login`)
	t.Cleanup(func() { execute(t, u, `drop role `+role) })
	_, host, _ := strings.Cut(u, "@")
	as := "postgres://" + role + ":" + secret + "@" + host
	_, err := postgres.Open(t.Context(), postgres.Options{URL: as})
	wantFault(t, err, guideway.CodeUnavailable, "right")
	execute(t, u, `alter role `+role+` connection limit 0`)
	_, err = postgres.Open(t.Context(), postgres.Options{URL: as, Patience: -1})
	wantFault(t, err, guideway.CodeUnavailable, "no connection to spare")
}

// What was acknowledged is on disk, whatever the role's settings are.
func TestCommitsAreSynchronous(t *testing.T) {
	t.Parallel()
	u := with(t, inSchema(t), "synchronous_commit", "off")
	s := open(t, postgres.Options{URL: u})
	if got := postgres.Setting(t, s, "synchronous_commit"); got != "on" {
		t.Errorf("synchronous_commit is %q", got)
	}
	s = open(t, postgres.Options{URL: with(t, u, "synchronous_commit", "remote_apply")})
	if got := postgres.Setting(t, s, "synchronous_commit"); got != "remote_apply" {
		t.Errorf("synchronous_commit is %q, and the operator wanted more", got)
	}
}
