package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
	"github.com/guideway-dev/guideway/internal/platform/ctxsleep"
)

// ModernVersion is the first protocol version without a handshake and sessions.
const ModernVersion = "2026-07-28"

// errSessionLost is a server that has forgotten our session.
var errSessionLost = errors.New("the server has ended the session")

// errUnanswered is a server that has ended its answer to a call before it came to one.
var errUnanswered = &NoAnswer{Err: guideway.Errorf(guideway.CodeUnavailable, "the server has ended its answer without a result, and whether it has done the call is not known").
	WithFix("look at the server, and whether the call was done, before you call again")}

// statusError is an answer that is no MCP.
type statusError struct{ status int }

func (e *statusError) Error() string {
	return fmt.Sprintf("the server answers %d %s", e.status, http.StatusText(e.status))
}

// web is a server over streamable HTTP.
type web struct {
	spec   Spec
	client *http.Client
	limit  int
	to     receiver

	ctx    context.Context //nolint:containedctx // the life of the stream of notifications
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu      sync.Mutex
	session string
	version string
	closed  bool
}

var _ conn = (*web)(nil)

// newWeb makes the connection of a resolved spec. Nothing is sent yet.
func newWeb(spec Spec, client *http.Client, limit int, to receiver) *web {
	w := &web{spec: spec, client: client, limit: limit, to: to}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w
}

// newHTTPClient makes the client for a server. Its credentials go nowhere but to the
// host of its URL.
func newHTTPClient(trip http.RoundTripper) *http.Client {
	return &http.Client{Transport: trip, CheckRedirect: sameHost}
}

// httpClient is the client of a resolved spec.
func (u *Upstream) httpClient(spec Spec) *http.Client {
	if spec.OAuth == nil {
		return newHTTPClient(u.opts.HTTP)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if by := credentials(spec); u.authorizer == nil || u.authorizedBy != by {
		u.authorizer, u.authorizedBy = newAuthorizer(spec, u.opts.HTTP), by
	}
	return newHTTPClient(u.authorizer)
}

// sameHost follows no redirect to another host: headers with secrets would go
// along.
func sameHost(req *http.Request, via []*http.Request) error {
	if first := via[0].URL; req.URL.Host != first.Host || req.URL.Scheme != first.Scheme {
		return errors.New("it redirects to another host")
	}
	if len(via) > 5 {
		return errors.New("it redirects too often")
	}
	return nil
}

// request makes a request with the headers that all have.
func (w *web) request(ctx context.Context, method, url string, body io.Reader) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return nil, fmt.Errorf("make a request: %w", err)
	}
	for name, value := range w.spec.Headers {
		req.Header.Set(name, value)
	}
	if w.spec.Bearer != "" {
		req.Header.Set("Authorization", "Bearer "+w.spec.Bearer)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.session != "" {
		req.Header.Set("Mcp-Session-Id", w.session)
	}
	if w.version != "" {
		req.Header.Set("Mcp-Protocol-Version", w.version)
	}
	return req, nil
}

// inSession tells whether the server has given us a session.
func (w *web) inSession() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.session != ""
}

// send implements conn.
func (w *web) send(ctx context.Context, m outgoing) error {
	req, err := w.request(ctx, http.MethodPost, w.spec.URL, bytes.NewReader(m.text))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	w.mu.Lock()
	modern := w.version >= ModernVersion
	w.mu.Unlock()
	if m.method == "server/discover" {
		req.Header.Set("Mcp-Protocol-Version", ModernVersion)
		modern = true
	}
	if modern && m.method != "" {
		req.Header.Set("Mcp-Method", m.method)
		if m.name != "" {
			req.Header.Set("Mcp-Name", headerValue(m.name))
		}
		for name, value := range m.headers {
			req.Header.Set(name, headerValue(value))
		}
	}
	for name, value := range m.trace {
		req.Header.Set(name, headerValue(value))
	}
	resp, err := w.client.Do(req)
	if err != nil {
		return w.sendError(ctx, err)
	}
	defer resp.Body.Close()
	if m.method == "initialize" {
		id := resp.Header.Get("Mcp-Session-Id")
		if !sessionID(id) {
			return guideway.Errorf(guideway.CodeUnavailable, "the server names the session by what no header can carry, or by more than %d bytes", maxSessionID)
		}
		w.mu.Lock()
		w.session = id
		w.mu.Unlock()
	}
	return w.answer(ctx, resp, m.call)
}

// maxSessionID bounds what each request carries.
const maxSessionID = 4 << 10

// sessionID tells whether the protocol allows a session to be called that, or not to
// be named.
func sessionID(id string) bool {
	return len(id) <= maxSessionID && !strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' })
}

// sendError keeps URLs, which may hold keys, out of errors.
func (w *web) sendError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var own *guideway.Error
	if errors.As(err, &own) {
		return own // of the way to a token
	}
	if dial := (*net.OpError)(nil); errors.As(err, &dial) && dial.Op == "dial" {
		return &GoneError{Reason: guideway.Errorf(guideway.CodeUnavailable, "reach the server: %w; the call was not sent", &quiet{err}).
			WithFix("see whether an MCP server runs at its address, then call again")}
	}
	return &NoAnswer{Err: guideway.Errorf(guideway.CodeUnavailable, "the connection to the server broke, and whether it has done what was asked is not known: %w", &quiet{err})}
}

// quiet says of an error its innermost cause alone, and keeps the rest for errors.As.
type quiet struct{ err error }

// Error implements error.
func (q *quiet) Error() string { return rootCause(q.err).Error() }

// Unwrap gives the error.
func (q *quiet) Unwrap() error { return q.err }

func rootCause(err error) error {
	for next := errors.Unwrap(err); next != nil; next = errors.Unwrap(err) {
		err = next
	}
	return err
}

// answer reads what a POST is answered by.
func (w *web) answer(ctx context.Context, resp *http.Response, call string) error {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case resp.StatusCode == http.StatusNotFound && resp.Request.Header.Get("Mcp-Session-Id") != "":
		return errSessionLost
	case resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden:
		return w.spec.refusal(resp)
	case resp.StatusCode == http.StatusAccepted || resp.StatusCode == http.StatusNoContent || call == "" && resp.StatusCode < 300:
		if call != "" {
			return errors.New("the server has taken the call without an answer")
		}
		return nil
	case kind == "application/json":
		return w.whole(resp, call)
	case resp.StatusCode >= 300:
		return &statusError{status: resp.StatusCode}
	case kind == "text/event-stream":
		return w.follow(ctx, resp.Body, call)
	}
	return fmt.Errorf("the server answers with %q, which is neither JSON nor events", kind)
}

// whole takes an answer that is one text.
func (w *web) whole(resp *http.Response, call string) error {
	text, err := w.readAll(resp.Body)
	if err != nil {
		return err
	}
	m, err := jsonrpc.Parse(text)
	if resp.StatusCode >= 300 && (err != nil || m.Err == nil) {
		return &statusError{status: resp.StatusCode}
	}
	if err == nil && m.IsResponse() && string(m.ID) == "null" && m.Err != nil {
		return m.Err // an error about what the server took for no call
	}
	deliver(w.to, text, call)
	return nil
}

func (w *web) readAll(body io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(body, int64(w.limit)+1))
	if err != nil {
		return nil, fmt.Errorf("read the answer: %w", rootCause(err))
	}
	if len(text) > w.limit {
		return nil, guideway.Errorf(guideway.CodeTooLarge, "an answer is larger than %d bytes", w.limit)
	}
	return text, nil
}

// resumes bounds how often the stream of one call is taken up again.
const resumes = 8

// follow reads the stream of a call until its answer. A stream that breaks is
// taken up where it was, if the server can do that: the call itself is never
// sent again.
func (w *web) follow(ctx context.Context, body io.ReadCloser, call string) error {
	stream := newEvents(body, w.limit)
	for range resumes {
		err := w.read(stream, call)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) || stream.last == "" {
			return brokenOff(err)
		}
		retry, last := stream.retry, stream.last
		if err := ctxsleep.For(ctx, retry); err != nil {
			return err
		}
		next, err := w.resume(ctx, last)
		if err != nil && ctx.Err() == nil {
			err = brokenOff(err)
		}
		if err != nil {
			return err
		}
		defer next.Body.Close()
		stream = newEvents(next.Body, w.limit)
		stream.retry, stream.last = retry, last
	}
	return brokenOff(errors.New("too often"))
}

// brokenOff is a call that was sent, and whose answer does not come any more. What kept
// it from being taken up again is told, and is no error of the call's own: that it could
// not be reached for that does not say that it was not reached before.
func brokenOff(why error) error {
	return &NoAnswer{Err: guideway.Errorf(guideway.CodeUnavailable, "the server's answer has broken off, and whether it has done the call is not known: %v", rootCause(why)).
		WithFix("look at the server, and whether the call was done, before you call again")}
}

// read hands on events until the answer to the call.
func (w *web) read(stream *events, call string) error {
	for {
		e, err := stream.next()
		if err != nil {
			return err
		}
		if e.name != "" && e.name != "message" || len(e.data) == 0 {
			continue
		}
		deliver(w.to, e.data, call)
		if call == "" {
			continue
		}
		if m, err := jsonrpc.Parse(e.data); err != nil || m.IsResponse() && string(m.ID) == call {
			return nil
		}
	}
}

// resume opens a stream again; an empty last opens that of notifications.
func (w *web) resume(ctx context.Context, last string) (*http.Response, error) {
	req, err := w.request(ctx, http.MethodGet, w.spec.URL, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "text/event-stream")
	if last != "" {
		req.Header.Set("Last-Event-Id", last)
	}
	resp, err := w.client.Do(req)
	if err != nil {
		return nil, w.sendError(ctx, err)
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if resp.StatusCode != http.StatusOK || kind != "text/event-stream" {
		_ = resp.Body.Close()
		return nil, w.spec.failure(resp)
	}
	return resp, nil
}

// negotiated implements conn. A server of the legacy era may have a stream of
// notifications that belong to no call.
func (w *web) negotiated(version string) {
	w.mu.Lock()
	w.version = version
	listen := version < ModernVersion && !w.closed
	if listen {
		w.wg.Add(1)
	}
	w.mu.Unlock()
	if listen {
		go func() {
			defer w.wg.Done()
			w.listen()
		}()
	}
}

// listen follows the stream of notifications for as long as there is one.
func (w *web) listen() {
	delay, last := time.Second, ""
	for w.ctx.Err() == nil {
		resp, err := w.resume(w.ctx, last)
		var status *statusError
		if errors.As(err, &status) && status.status < 500 {
			return // it has none, or no longer
		}
		if err == nil {
			stream := newEvents(resp.Body, w.limit)
			stream.retry, stream.last = time.Second, last
			began := time.Now()
			_ = w.read(stream, "")
			_ = resp.Body.Close()
			if last = stream.last; time.Since(began) > maxRetry {
				delay = stream.retry
			}
		}
		if ctxsleep.For(w.ctx, delay) != nil {
			return
		}
		delay = min(2*delay, maxRetry)
	}
}

// close implements conn. A session is ended, as a courtesy that is not waited
// for long.
func (w *web) close() {
	w.mu.Lock()
	session, was := w.session, w.closed
	w.closed = true
	w.mu.Unlock()
	if was {
		return
	}
	w.cancel()
	if session != "" {
		ctx, cancel := context.WithTimeout(context.Background(), endTime)
		defer cancel()
		if req, err := w.request(ctx, http.MethodDelete, w.spec.URL, nil); err == nil {
			if resp, err := w.client.Do(req); err == nil {
				_ = resp.Body.Close()
			}
		}
	}
	w.wg.Wait()
	w.to.ended(errors.New("the connection was closed"))
}
