package transport

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// lineConn is a connection with one JSON-RPC message per line. It survives lines that are
// not messages. At the end of the input it reports the end to the SDK only after the calls
// in flight are answered, because the SDK answers no call after it.
type lineConn struct {
	in  io.Closer
	out io.WriteCloser

	lines      <-chan inputLine
	inputEnded chan struct{} // closed at the end of the input
	endOnce    sync.Once
	inputErr   error // nil for a plain end; set before inputEnded is closed
	closed     chan struct{}
	closeOnce  sync.Once

	// fastPath sees the lines of session before the SDK; may be nil. Its calls end with
	// callCtx.
	fastPath FastPath
	session  atomic.Pointer[mcp.ServerSession]
	callCtx  context.Context //nolint:containedctx // the life of the connection

	writeMu sync.Mutex // serializes the lines

	mu       sync.Mutex
	inFlight map[any]struct{} // a jsonrpc.ID, or a key of tryFastPath
	idle     chan struct{}    // closed and cleared when inFlight becomes empty; nil without a waiter
}

var _ mcp.Connection = (*lineConn)(nil)

func newLineConn(in io.ReadCloser, out io.WriteCloser, limit int) *lineConn {
	lines := make(chan inputLine)
	c := &lineConn{
		in: in, out: out,
		lines:      lines,
		inputEnded: make(chan struct{}),
		closed:     make(chan struct{}),
		inFlight:   make(map[any]struct{}),
	}
	// A blocked read leaks this goroutine until the process ends.
	go func() { c.endInput(readLines(in, limit, lines, c.closed)) }()
	return c
}

// SessionID implements mcp.Connection: a line connection has none.
func (c *lineConn) SessionID() string { return "" }

// Read implements mcp.Connection.
func (c *lineConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		select {
		case <-c.closed:
			return nil, io.EOF
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-c.inputEnded:
			c.waitForCalls()
			if c.inputErr != nil {
				return nil, c.inputErr
			}
			return nil, io.EOF
		case l := <-c.lines:
			if msg, err := c.readMessage(l); msg != nil || err != nil {
				return msg, err
			}
		}
	}
}

// readMessage returns the message of a line for the SDK. It returns nil if it has answered
// the line with an error, or the fast path has taken it.
func (c *lineConn) readMessage(l inputLine) (jsonrpc.Message, error) {
	if l.tooLong {
		return nil, c.writeLine(errorLine(recoverID(l.text), jsonrpc.CodeInvalidRequest,
			fmt.Sprintf("the line is longer than %d bytes", len(l.text))))
	}
	if c.tryFastPath(l.text) {
		return nil, nil
	}
	msg, bad := decodeMessage(l.text)
	if bad != nil {
		return nil, c.writeLine(bad)
	}
	c.trackCall(msg)
	return msg, nil
}

// tryFastPath passes a line to the fast path, and reports whether the fast path has taken
// it. The end of the input waits for the call of the line, as for any call.
func (c *lineConn) tryFastPath(text []byte) bool {
	session := c.session.Load()
	if c.fastPath == nil || session == nil {
		return false
	}
	answer := c.fastPath.Accept(c.callCtx, session, nil, text, func(_ int, text ...[]byte) error { return c.writeLine(text...) })
	if answer == nil {
		return false
	}
	c.mu.Lock()
	c.inFlight[&answer] = struct{}{}
	c.mu.Unlock()
	go func() {
		defer c.finishCall(&answer)
		answer(c.callCtx)
	}()
	return true
}

// trackCall records a call until its answer.
func (c *lineConn) trackCall(msg jsonrpc.Message) {
	req, ok := msg.(*jsonrpc.Request)
	if !ok || !req.IsCall() || req.Method == "subscriptions/listen" { // a subscription ends with its connection
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inFlight[req.ID] = struct{}{}
}

// Write implements mcp.Connection.
func (c *lineConn) Write(_ context.Context, msg jsonrpc.Message) error {
	text, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return fmt.Errorf("encode a message: %w", err)
	}
	err = c.writeLine(text)
	if resp, ok := msg.(*jsonrpc.Response); ok {
		c.finishCall(resp.ID)
	}
	return err
}

func (c *lineConn) finishCall(call any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.inFlight, call)
	if len(c.inFlight) == 0 && c.idle != nil {
		close(c.idle)
		c.idle = nil
	}
}

// waitForCalls waits for the calls in flight, up to drainTime.
func (c *lineConn) waitForCalls() {
	c.mu.Lock()
	if len(c.inFlight) == 0 {
		c.mu.Unlock()
		return
	}
	idle := make(chan struct{})
	c.idle = idle
	c.mu.Unlock()
	timer := time.NewTimer(drainTime)
	defer timer.Stop()
	select {
	case <-idle:
	case <-timer.C:
	case <-c.closed:
	}
}

// writeLine writes the parts as one line.
func (c *lineConn) writeLine(parts ...[]byte) error {
	text := bytes.Join(append(parts, []byte{'\n'}), nil)
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	if _, err := c.out.Write(text); err != nil {
		return fmt.Errorf("write a message: %w", err)
	}
	return nil
}

// endInput ends the input; err is nil for a plain end.
func (c *lineConn) endInput(err error) {
	c.endOnce.Do(func() {
		c.inputErr = err
		close(c.inputEnded)
	})
}

// Close implements mcp.Connection. It does not wait for a blocked read or write: closing a
// standard stream may block until it returns.
func (c *lineConn) Close() error {
	c.closeOnce.Do(func() {
		close(c.closed)
		go func() {
			_ = c.in.Close()
			_ = c.out.Close()
		}()
	})
	return nil
}

// decodeMessage reads one message, or returns the error line for invalid text.
func decodeMessage(text []byte) (jsonrpc.Message, []byte) {
	if !utf8.Valid(text) {
		return nil, errorLine(recoverID(text), jsonrpc.CodeParseError, "the line is not UTF-8")
	}
	if !jsontext.Valid(text) {
		return nil, errorLine(recoverID(text), jsonrpc.CodeParseError, "the line is not JSON")
	}
	msg, err := jsonrpc.DecodeMessage(text)
	if err != nil {
		return nil, errorLine(recoverID(text), jsonrpc.CodeInvalidRequest,
			fmt.Sprintf("the line is not a JSON-RPC message: %v", rootCause(err)))
	}
	return msg, nil
}

func rootCause(err error) error {
	for next := errors.Unwrap(err); next != nil; next = errors.Unwrap(err) {
		err = next
	}
	return err
}

// errorLine returns a JSON-RPC error. It writes a nil id as null, which the SDK's encoder
// would omit.
func errorLine(id json.RawMessage, code int64, message string) []byte {
	type rpcError struct {
		Code    int64  `json:"code"`
		Message string `json:"message"`
	}
	text, _ := json.Marshal(struct { // recoverID returns valid JSON
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   rpcError        `json:"error"`
	}{"2.0", id, rpcError{code, message}})
	return text
}
