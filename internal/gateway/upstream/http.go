package upstream

import (
	"bytes"
	"context"
	"crypto/tls"
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

// errSessionLost is returned if the server has lost the session.
var errSessionLost = errors.New("the server has ended the session")

// errUnanswered is returned if the server ended its response without an answer.
var errUnanswered = &NoAnswer{Err: guideway.Errorf(guideway.CodeUnavailable, "the server ended its answer without a result, and it is unknown whether the call was carried out").
	WithFix("check at the server whether the call was carried out, before you repeat it")}

// statusError is an HTTP error status.
type statusError struct{ status int }

func (e *statusError) Error() string {
	return strings.TrimSpace(fmt.Sprintf("the server answered %d %s", e.status, http.StatusText(e.status)))
}

// contentTypeError is a response with the content type kind instead of a wanted one.
type contentTypeError struct{ kind, want string }

func (e *contentTypeError) Error() string {
	if e.kind == "" {
		return "the server answered without a content type, not with " + e.want
	}
	return fmt.Sprintf("the server answered with the content type %q, not with %s", e.kind, e.want)
}

// httpConn is a connection over streamable HTTP.
type httpConn struct {
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

var _ conn = (*httpConn)(nil)

// newHTTPConn returns a connection for a resolved spec. It sends nothing yet.
func newHTTPConn(spec Spec, client *http.Client, limit int, to receiver) *httpConn {
	w := &httpConn{spec: spec, client: client, limit: limit, to: to}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w
}

// newHTTPClient returns an HTTP client for a server. It sends credentials only to the host
// of the server's URL.
func newHTTPClient(trip http.RoundTripper) *http.Client {
	return &http.Client{Transport: trip, CheckRedirect: sameHost}
}

// httpClient returns the client of a resolved spec for the sessions of a person, or the shared
// ones. A person may log in while a session exists.
func (u *Upstream) httpClient(spec Spec, user string) *http.Client {
	logins := u.opts.Logins.Of(user)
	if spec.CanLogIn() && user == "" && !logins.hasLogin(spec) || !spec.CanLogIn() && spec.OAuth == nil {
		return newHTTPClient(u.opts.HTTP)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if a := u.authorizers[user]; a == nil || a.by != credentialsHash(spec) {
		u.authorizers[user] = newAuthorizer(spec, u.opts.HTTP, logins)
	}
	return newHTTPClient(u.authorizers[user])
}

// sameHost refuses redirects to another host or scheme, because headers with secrets would
// be sent there. It also limits the number of redirects.
func sameHost(req *http.Request, via []*http.Request) error {
	if first := via[0].URL; req.URL.Host != first.Host || req.URL.Scheme != first.Scheme {
		return guideway.Errorf(guideway.CodeUnavailable, "the server redirects to another host or scheme, %.200s, which is not followed", req.URL.Scheme+"://"+req.URL.Host).
			WithFix("if you trust that address, use it in the URL of the upstream")
	}
	if len(via) > 5 {
		return guideway.Errorf(guideway.CodeUnavailable, "too many redirects: the server redirects more than 5 times").
			WithFix("use the final address of the server in the URL of the upstream")
	}
	return nil
}

// newRequest builds a request with the common headers.
func (w *httpConn) newRequest(ctx context.Context, method, url string, body io.Reader) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return nil, fmt.Errorf("make a request: %w", &quietError{err}) // the URL may contain a secret
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

// inSession reports whether the server has assigned a session.
func (w *httpConn) inSession() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.session != ""
}

// protocolVersion returns the negotiated version; "" before the handshake.
func (w *httpConn) protocolVersion() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.version
}

func (w *httpConn) setVersion(version string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.version = version
}

// send implements conn.
func (w *httpConn) send(ctx context.Context, m outgoing) error {
	req, err := w.newRequest(ctx, http.MethodPost, w.spec.URL, bytes.NewReader(m.text))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	modern := w.protocolVersion() >= ModernVersion
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
		switch {
		case len(id) > maxSessionID:
			return guideway.Errorf(guideway.CodeUnavailable, "the server's session id has %d bytes; at most %d are allowed", len(id), maxSessionID)
		case !isSessionID(id):
			return guideway.Errorf(guideway.CodeUnavailable, "the server's session id contains characters other than visible ASCII")
		}
		w.mu.Lock()
		w.session = id
		w.mu.Unlock()
	}
	return w.readAnswer(ctx, resp, m.call)
}

// maxSessionID is the maximum length of a session id, since each request carries it.
const maxSessionID = 4 << 10

// isSessionID reports whether the protocol allows a session id. An empty one is valid.
func isSessionID(id string) bool {
	return len(id) <= maxSessionID && !strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' })
}

// sendError returns the error for a request without a response. It contains no URL, which
// may contain keys.
func (w *httpConn) sendError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var required *LoginRequired
	if errors.As(err, &required) {
		return required
	}
	var own *guideway.Error
	if errors.As(err, &own) {
		return own // The error of this package explains why there is no token, or why a redirect is not followed.
	}
	if dial := (*net.OpError)(nil); errors.As(err, &dial) && dial.Op == "dial" {
		return &GoneError{Reason: guideway.Errorf(guideway.CodeUnavailable, "the server cannot be reached: %w; the call was not sent", &quietError{err}).
			WithFix("check that an MCP server runs at the URL of the upstream, then call again")}
	}
	switch {
	case isTLSError(err):
		return guideway.Errorf(guideway.CodeUnavailable, "no TLS connection to the server could be established: %w", &quietError{err}).
			WithFix("check the scheme and the host in the URL of the upstream, and the certificate of the server")
	case strings.HasPrefix(rootCause(err).Error(), "net/http: invalid header"):
		return guideway.Errorf(guideway.CodeInvalid, "the request was not sent: %w", &quietError{err}).
			WithFix("remove line breaks and other control characters from the headers and tokens of the upstream")
	}
	return &NoAnswer{Err: guideway.Errorf(guideway.CodeUnavailable, "the connection to the server was lost, and it is unknown whether the request was carried out: %w", &quietError{err}).
		WithFix("check at the server whether the request was carried out, before you repeat it")}
}

// isTLSError reports whether a TLS handshake failed, which another attempt does not change.
func isTLSError(err error) bool {
	var alert *net.OpError
	return errors.As(err, new(*tls.CertificateVerificationError)) || errors.As(err, new(tls.RecordHeaderError)) ||
		errors.Is(err, http.ErrSchemeMismatch) || errors.As(err, &alert) && alert.Op == "remote error"
}

// quietError prints only its innermost cause, and keeps the rest for errors.As.
type quietError struct{ err error }

// Error implements error.
func (q *quietError) Error() string { return rootCause(q.err).Error() }

// Unwrap returns the full error.
func (q *quietError) Unwrap() error { return q.err }

func rootCause(err error) error {
	for next := errors.Unwrap(err); next != nil; next = errors.Unwrap(err) {
		err = next
	}
	return err
}

// readAnswer reads the response to a POST.
func (w *httpConn) readAnswer(ctx context.Context, resp *http.Response, call string) error {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case resp.StatusCode == http.StatusNotFound && resp.Request.Header.Get("Mcp-Session-Id") != "":
		return errSessionLost
	case resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden:
		return w.spec.refusalError(resp)
	case resp.StatusCode == http.StatusAccepted || resp.StatusCode == http.StatusNoContent || call == "" && resp.StatusCode < 300:
		if call != "" {
			return guideway.Errorf(guideway.CodeUnavailable, "the server gave no answer to the call, only the status %d %s; it is unknown whether the call was carried out",
				resp.StatusCode, http.StatusText(resp.StatusCode)).WithFix("check at the server whether the call was carried out, before you repeat it")
		}
		return nil
	case kind == "application/json":
		return w.readWhole(resp, call)
	case resp.StatusCode >= 300:
		return &statusError{status: resp.StatusCode}
	case kind == "text/event-stream":
		return w.followStream(ctx, resp.Body, call)
	}
	return &contentTypeError{kind: kind, want: "JSON or a stream of events"}
}

// readWhole reads a response that is a single message.
func (w *httpConn) readWhole(resp *http.Response, call string) error {
	text, err := w.readAll(resp.Body)
	if err != nil {
		return err
	}
	m, err := jsonrpc.Parse(text)
	if resp.StatusCode >= 300 && (err != nil || m.Err == nil) {
		return &statusError{status: resp.StatusCode}
	}
	if err == nil && m.IsResponse() && string(m.ID) == "null" && m.Err != nil {
		return m.Err // the server could not determine the id of the message that caused the error
	}
	deliverMessage(w.to, text, call)
	return nil
}

func (w *httpConn) readAll(body io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(body, int64(w.limit)+1))
	if err != nil {
		return nil, brokenOff(err)
	}
	if len(text) > w.limit {
		return nil, errTooLarge(w.limit)
	}
	return text, nil
}

// maxResumes is the maximum number of times that the stream of one call is resumed.
const maxResumes = 8

// followStream reads the stream of a call until its answer. It resumes a broken stream if
// the server supports that; the call itself is never sent again.
func (w *httpConn) followStream(ctx context.Context, body io.ReadCloser, call string) error {
	stream := newEvents(body, w.limit)
	for range maxResumes {
		err := w.readStream(stream, call)
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
		next, err := w.resumeStream(ctx, last)
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
	return brokenOff(fmt.Errorf("the stream was interrupted %d times", maxResumes))
}

// brokenOff returns the error of a call that was sent, but whose answer is lost. It
// includes the reason why the stream could not be resumed as text and does not wrap it: a
// server that is unreachable now may have received the call before.
func brokenOff(why error) error {
	if guideway.ErrorCode(why) == guideway.CodeTooLarge {
		return why
	}
	return &NoAnswer{Err: guideway.Errorf(guideway.CodeUnavailable, "the server's answer was cut off, and it is unknown whether the call was carried out: %v", rootCause(why)).
		WithFix("check at the server whether the call was carried out, before you repeat it")}
}

// readStream delivers events until the answer to the call.
func (w *httpConn) readStream(stream *events, call string) error {
	for {
		e, err := stream.next()
		if err != nil {
			return err
		}
		if e.name != "" && e.name != "message" || len(e.data) == 0 {
			continue
		}
		deliverMessage(w.to, e.data, call)
		if call == "" {
			continue
		}
		if m, err := jsonrpc.Parse(e.data); err != nil || m.IsResponse() && string(m.ID) == call {
			return nil
		}
	}
}

// resumeStream opens a stream again after the event last; if last is empty, it opens the
// notification stream.
func (w *httpConn) resumeStream(ctx context.Context, last string) (*http.Response, error) {
	req, err := w.newRequest(ctx, http.MethodGet, w.spec.URL, nil)
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
	if resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close()
		return nil, w.spec.statusFailure(resp)
	}
	if kind != "text/event-stream" {
		_ = resp.Body.Close()
		return nil, &contentTypeError{kind: kind, want: "a stream of events"}
	}
	return resp, nil
}

// negotiated implements conn. A legacy server may have a stream for notifications that
// belong to no call.
func (w *httpConn) negotiated(version string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.version = version
	if version < ModernVersion && !w.closed {
		w.wg.Go(w.listenLoop)
	}
}

// listenLoop reads the notification stream until the server offers none.
func (w *httpConn) listenLoop() {
	delay, last := time.Second, ""
	for w.ctx.Err() == nil {
		resp, err := w.resumeStream(w.ctx, last)
		var status *statusError
		if errors.As(err, &status) && status.status < 500 || errors.As(err, new(*contentTypeError)) {
			return // the server does not offer the stream, or no longer offers it
		}
		if err == nil {
			stream := newEvents(resp.Body, w.limit)
			stream.retry, stream.last = time.Second, last
			began := time.Now()
			_ = w.readStream(stream, "")
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

// close implements conn. It deletes the session as a courtesy, with a short timeout.
func (w *httpConn) close() {
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
		if req, err := w.newRequest(ctx, http.MethodDelete, w.spec.URL, nil); err == nil {
			if resp, err := w.client.Do(req); err == nil {
				_ = resp.Body.Close()
			}
		}
	}
	w.wg.Wait()
	w.to.ended(errors.New("the connection was closed"))
}
