package transport

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// drainTime is how long calls in flight may take to answer after the input
	// has ended or ctx is done.
	drainTime = 400 * time.Millisecond
	// endTime is how long a call that was then cancelled may take to return.
	// Both together stay well below the second that a client may wait before
	// it kills the process.
	endTime = 250 * time.Millisecond
)

// Stdio serves server over lines of JSON, both eras, until the input ends or
// ctx is done, and returns nil for both. Calls in flight then get a short time
// to answer before they are cancelled; one that heeds no cancellation is left
// behind, so that Stdio returns within a second whatever a handler does.
//
// A line that is no message (not UTF-8, not JSON, not JSON-RPC, longer than
// MaxMessageBytes) is answered by a JSON-RPC error, with the id of the request
// where one can be read, and the session goes on. Nothing but messages is
// written to out. Handlers get the values of ctx, such as its principal.
//
// Stdio asks the shortcut before the SDK; nil is none. It closes in and out.
func Stdio(ctx context.Context, server *mcp.Server, shortcut Shortcut, in io.ReadCloser, out io.WriteCloser) error {
	conn := newLineConn(in, out, MaxMessageBytes)
	calls, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	conn.shortcut, conn.callCtx = shortcut, calls
	session, err := server.Connect(ctx, connected{conn}, nil)
	if err != nil {
		_ = conn.Close()
		return guideway.Errorf(guideway.CodeInternal, "serve on stdio: %w", err)
	}
	conn.session.Store(session)
	ended := make(chan error, 1)
	go func() { ended <- session.Wait() }()

	select {
	case err := <-ended:
		return sessionError(err)
	case <-ctx.Done():
		conn.endInput(nil)
	case <-conn.inputEnded:
	}
	select {
	case err := <-ended:
		return sessionError(err)
	case <-time.After(drainTime + endTime):
		_ = conn.Close()
		return nil
	}
}

func sessionError(err error) error {
	if err == nil {
		return nil
	}
	return guideway.Errorf(guideway.CodeUnavailable, "serve on stdio: %w", err).
		WithFix("start the client again; it has closed its end or sent something unreadable")
}

// connected is the transport of a connection that is already there.
type connected struct{ conn mcp.Connection }

func (t connected) Connect(context.Context) (mcp.Connection, error) {
	if t.conn == nil {
		return nil, fmt.Errorf("no connection")
	}
	return t.conn, nil
}
