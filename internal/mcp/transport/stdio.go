package transport

import (
	"context"
	"io"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// drainTime is the time for calls in flight to finish after the input has ended or ctx
	// is done.
	drainTime = 400 * time.Millisecond
	// cancelTime is the time for a cancelled call to return. drainTime and cancelTime
	// together stay well below the second after which a client may kill the process.
	cancelTime = 250 * time.Millisecond
)

// ServeStdio serves server over lines of JSON, for all protocol versions, until the input
// ends or ctx is done, and returns nil for both. It then cancels calls in flight after a
// short time, and abandons a call that ignores the cancellation: it returns within a second
// even then.
//
// An invalid line (not UTF-8, not JSON, not JSON-RPC, longer than MaxMessageBytes) gets a
// JSON-RPC error, with the id of the request if it can be read, and the session continues.
// Only messages are written to out. Handlers get the values of ctx, such as its principal.
//
// The fast path sees messages before the SDK; it may be nil. ServeStdio closes in and out.
func ServeStdio(ctx context.Context, server *mcp.Server, fastPath FastPath, in io.ReadCloser, out io.WriteCloser) error {
	conn := newLineConn(in, out, MaxMessageBytes)
	calls, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	conn.fastPath, conn.callCtx = fastPath, calls
	session, err := server.Connect(ctx, singleConnection{conn}, nil)
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
	case <-time.After(drainTime + cancelTime):
		_ = conn.Close()
		return nil
	}
}

func sessionError(err error) error {
	if err == nil {
		return nil
	}
	return guideway.Errorf(guideway.CodeUnavailable, "serve on stdio: %w", err).
		WithFix("restart the client; it has closed the connection or sent invalid input")
}

// singleConnection is the transport of an open connection.
type singleConnection struct{ conn mcp.Connection }

func (t singleConnection) Connect(context.Context) (mcp.Connection, error) {
	return t.conn, nil
}
