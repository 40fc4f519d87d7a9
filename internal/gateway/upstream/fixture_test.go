package upstream_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
	"github.com/guideway-dev/guideway/internal/gateway/upstream"
	"github.com/guideway-dev/guideway/internal/gateway/upstream/upstreamtest"
	"go.uber.org/goleak"
)

// TestMain runs the tests, or the server that the tests start: the test binary is both.
func TestMain(m *testing.M) {
	if modes, ok := os.LookupEnv(upstreamtest.Variable); ok {
		server := upstreamtest.New(os.Stdout, modes)
		server.Environ = os.Environ()
		server.Crash = func() { os.Exit(3) }
		server.Count = func() {
			f, err := os.OpenFile(os.Getenv(upstreamtest.CountFile), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err == nil {
				_, _ = f.WriteString("once\n")
				_ = f.Close()
			}
		}
		_, _ = os.Stderr.WriteString("hello from the server\n")
		_ = server.Serve(os.Stdin)
		os.Exit(0)
	}
	if _, ok := os.LookupEnv(loginDirVariable); ok {
		renewLogins()
		os.Exit(0)
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
}

// ownSpec returns the spec of a server that runs this test binary in the given modes.
func ownSpec(t *testing.T, modes ...string) upstream.Spec {
	t.Helper()
	return upstream.Spec{
		Name: "good", Command: os.Args[0],
		Env: map[string]string{
			upstreamtest.Variable: strings.Join(modes, ","), upstreamtest.CountFile: filepath.Join(t.TempDir(), "count"),
		},
	}
}

func openUpstream(t *testing.T, spec upstream.Spec, opts upstream.Options) *upstream.Upstream {
	t.Helper()
	if err := spec.Check(); err != nil {
		t.Fatal(err)
	}
	if opts.HTTP == nil { // A shared idle connection may belong to a server that has ended.
		base := &http.Transport{}
		opts.HTTP = base
		t.Cleanup(base.CloseIdleConnections)
	}
	u := upstream.New(spec, opts)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		u.Close(ctx)
	})
	return u
}

func openSession(t *testing.T, u *upstream.Upstream, want upstream.Want) *upstream.Session {
	t.Helper()
	s, done, err := u.Session(t.Context(), want)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(done)
	return s
}

// toolCall returns a call of a tool.
func toolCall(name string, arguments any) upstream.Call {
	text, _ := json.Marshal(arguments)
	return upstream.Call{Method: "tools/call", Name: name, Members: []jsonrpc.Member{
		{Key: "name", Value: jsonrpc.Text(name)}, {Key: "arguments", Value: text},
	}}
}

type args map[string]any

// answerText returns the text of a tool's answer.
func answerText(t *testing.T, result json.RawMessage, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	var r struct{ Content []struct{ Text string } }
	if err := json.Unmarshal(result, &r); err != nil || len(r.Content) != 1 {
		t.Fatalf("%v in %s", err, result)
	}
	return r.Content[0].Text
}

func callText(t *testing.T, s *upstream.Session, c upstream.Call) string {
	t.Helper()
	result, err := s.Do(t.Context(), c)
	return answerText(t, result, err)
}
