package transport

import (
	"bufio"
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

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
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

// inputLine is one line of input without its end.
type inputLine struct {
	text []byte
	// tooLong reports that text is only the start of the line.
	tooLong bool
}

// byteOrderMark precedes the first line of some shells.
var byteOrderMark = []byte("\xef\xbb\xbf")

// readLines sends the lines of r until r ends or stop is closed. It omits blank lines, and
// returns the read error, or nil for io.EOF.
func readLines(r io.Reader, limit int, lines chan<- inputLine, stop <-chan struct{}) error {
	in := bufio.NewReaderSize(r, 64<<10)
	for first := true; ; first = false {
		l, err := readLine(in, limit)
		if first {
			l.text = bytes.TrimPrefix(l.text, byteOrderMark)
		}
		l.text = bytes.TrimSpace(l.text)
		if len(l.text) > 0 {
			select {
			case lines <- l:
			case <-stop:
				return nil
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read a line: %w", err)
		}
	}
}

// readLine reads up to the end of a line and keeps at most limit bytes of it.
func readLine(in *bufio.Reader, limit int) (inputLine, error) {
	var l inputLine
	for {
		part, err := in.ReadSlice('\n')
		part = bytes.TrimSuffix(part, []byte("\n"))
		if room := limit - len(l.text); len(part) > room {
			l.tooLong = true
			part = part[:room]
		}
		l.text = append(l.text, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return l, err
		}
	}
}

// recoverID finds the id of a request in invalid or incomplete text, so that the client
// learns which call failed. It returns nil if there is no valid id.
func recoverID(text []byte) json.RawMessage {
	const enough = 64 << 10 // an id is near the start, or not worth searching for
	dec := json.NewDecoder(bytes.NewReader(text[:min(len(text), enough)]))
	if start, err := dec.Token(); err != nil || start != json.Delim('{') {
		return nil
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil
		}
		if key != "id" {
			continue
		}
		if c := value[0]; (c == '"' && utf8.Valid(value)) || c == '-' || (c >= '0' && c <= '9') {
			return value
		}
		return nil
	}
	return nil
}
