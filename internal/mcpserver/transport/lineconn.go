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

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// lineConn is a connection of one JSON-RPC message a line. It outlives lines
// that are no messages, and after the end of the input it holds the end back
// from the SDK until the calls in flight are answered: the SDK answers nothing
// once it has seen the end.
type lineConn struct {
	in  io.Closer
	out io.WriteCloser

	lines      <-chan line
	inputEnded chan struct{} // closed at the end of the input
	endOnce    sync.Once
	endErr     error // why the input ended, nil for its plain end; set before inputEnded is closed
	closed     chan struct{}
	closeOnce  sync.Once

	// shortcut is asked before the SDK, about lines of session; nil is none. Its
	// calls end with callCtx.
	shortcut Shortcut
	session  atomic.Pointer[mcp.ServerSession]
	callCtx  context.Context //nolint:containedctx // the life of the connection

	writeMu sync.Mutex // one line at a time

	mu       sync.Mutex
	inFlight map[any]struct{} // a jsonrpc.ID, or what takeShortcut has made
	idle     chan struct{}    // closed and cleared when inFlight gets empty; nil if nobody waits
}

var _ mcp.Connection = (*lineConn)(nil)

func newLineConn(in io.ReadCloser, out io.WriteCloser, limit int) *lineConn {
	lines := make(chan line)
	c := &lineConn{
		in: in, out: out,
		lines:      lines,
		inputEnded: make(chan struct{}),
		closed:     make(chan struct{}),
		inFlight:   make(map[any]struct{}),
	}
	// A read that nothing interrupts leaves this goroutine behind; the end of
	// the process takes it along.
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
			c.drain()
			if c.endErr != nil {
				return nil, c.endErr
			}
			return nil, io.EOF
		case l := <-c.lines:
			if msg, err := c.readMessage(l); msg != nil || err != nil {
				return msg, err
			}
		}
	}
}

// readMessage returns the message of a line for the SDK. It returns nil for a line
// that it has answered because it is no message, or that was handed on.
func (c *lineConn) readMessage(l line) (jsonrpc.Message, error) {
	if l.tooLong {
		return nil, c.reply(errorLine(recoverID(l.text), jsonrpc.CodeInvalidRequest,
			fmt.Sprintf("the line is longer than %d bytes", len(l.text))))
	}
	if c.takeShortcut(l.text) {
		return nil, nil
	}
	msg, bad := decode(l.text)
	if bad != nil {
		return nil, c.reply(bad)
	}
	c.track(msg)
	return msg, nil
}

// takeShortcut hands a line to the shortcut and reports whether it has taken it. The
// end of the input waits for it as for any call.
func (c *lineConn) takeShortcut(text []byte) bool {
	session := c.session.Load()
	if c.shortcut == nil || session == nil {
		return false
	}
	answer := c.shortcut.Take(c.callCtx, session, nil, text, func(_ int, text ...[]byte) error { return c.reply(text...) })
	if answer == nil {
		return false
	}
	c.mu.Lock()
	c.inFlight[&answer] = struct{}{}
	c.mu.Unlock()
	go func() {
		defer c.answered(&answer)
		answer(c.callCtx)
	}()
	return true
}

// track notes a call that will be answered.
func (c *lineConn) track(msg jsonrpc.Message) {
	req, ok := msg.(*jsonrpc.Request)
	if !ok || !req.IsCall() || req.Method == "subscriptions/listen" { // a listen ends with its connection
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
	err = c.reply(text)
	if resp, ok := msg.(*jsonrpc.Response); ok {
		c.answered(resp.ID)
	}
	return err
}

func (c *lineConn) answered(call any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.inFlight, call)
	if len(c.inFlight) == 0 && c.idle != nil {
		close(c.idle)
		c.idle = nil
	}
}

// drain waits for the calls in flight, for drainTime at most.
func (c *lineConn) drain() {
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

// reply writes one line, whose parts it joins.
func (c *lineConn) reply(parts ...[]byte) error {
	text := bytes.Join(append(parts, []byte{'\n'}), nil)
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	if _, err := c.out.Write(text); err != nil {
		return fmt.Errorf("write a message: %w", err)
	}
	return nil
}

// endInput takes no further line; err says why if it is not the plain end.
func (c *lineConn) endInput(err error) {
	c.endOnce.Do(func() {
		c.endErr = err
		close(c.inputEnded)
	})
}

// Close implements mcp.Connection. It does not wait for a read or a write that
// the system does not interrupt: closing a standard stream may block for as
// long as one is under way.
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

// decode reads one message, or gives the line that answers what is none.
func decode(text []byte) (jsonrpc.Message, []byte) {
	if !utf8.Valid(text) {
		return nil, errorLine(recoverID(text), jsonrpc.CodeParseError, "the line is not UTF-8")
	}
	if !json.Valid(text) {
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

// errorLine is a JSON-RPC error; a nil id is written as null, which the SDK's
// encoder would leave out.
func errorLine(id json.RawMessage, code int64, message string) []byte {
	type rpcError struct {
		Code    int64  `json:"code"`
		Message string `json:"message"`
	}
	text, err := json.Marshal(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   rpcError        `json:"error"`
	}{"2.0", id, rpcError{code, message}})
	if err != nil { // the id is not JSON, which recoverID does not give
		return errorLine(nil, code, message)
	}
	return text
}
