package transport

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	sdkauth "github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// defaultSessionTimeout ends an idle legacy session: long enough for a person's break,
// short enough that sessions of clients which never close them do not pile up.
const defaultSessionTimeout = time.Hour

// replayBytes bounds the events that all legacy streams together keep for clients that
// reconnect.
const replayBytes = 16 << 20

// HTTPOptions are the options of HTTP; the zero value is useful.
type HTTPOptions struct {
	// SessionTimeout ends a legacy session after this time without a request;
	// zero means one hour. Modern requests have no session.
	SessionTimeout time.Duration
	// MaxBodyBytes limits a request's body; zero means MaxMessageBytes.
	MaxBodyBytes int64
	// Logger receives the SDK's log; nil discards it.
	Logger *slog.Logger
	// HostsChecked reports that an auth.Guard wraps the handler. The SDK's own check of
	// the Host header, which only allows loopback, is then off.
	HostsChecked bool
	// FastPath answers some requests without the SDK; nil answers none. FastPath requires
	// HostsChecked, because it also bypasses the SDK's check of the Host header.
	FastPath FastPath
	// Peers are the instances of a deployment; nil for one instance.
	Peers Peers
}

// HTTPHandler serves legacy and modern protocol versions on one URL.
type HTTPHandler struct {
	server         *mcp.Server
	legacy, modern http.Handler
	maxBody        int64
	fastPath       *httpFastPath
	forward        *forwarder
}

var _ http.Handler = (*HTTPHandler)(nil)

// NewHTTPHandler serves server over streamable HTTP: modern requests without a session,
// legacy requests with sessions, resumable streams and the GET stream. It checks no
// credentials: wrap it in auth.Guard and auth.Bearer. A legacy session belongs to the user
// that opened it, and to the client if it has its own token; a request of another user or
// client gets 403. A session ends when its token becomes invalid.
func NewHTTPHandler(server *mcp.Server, opts HTTPOptions) *HTTPHandler {
	opts.SessionTimeout = cmp.Or(opts.SessionTimeout, defaultSessionTimeout)
	opts.MaxBodyBytes = cmp.Or(opts.MaxBodyBytes, MaxMessageBytes)
	events := mcp.NewMemoryEventStore(nil)
	events.SetMaxBytes(replayBytes)
	get := func(*http.Request) *mcp.Server { return server }
	server.AddReceivingMiddleware(markCancelled)
	var fast *httpFastPath
	if opts.FastPath != nil && opts.HostsChecked {
		fast = &httpFastPath{fastPath: opts.FastPath, refresh: opts.SessionTimeout / 4}
	}
	var forward *forwarder
	if opts.Peers != nil {
		forward = newForwarder(opts.Peers, opts.MaxBodyBytes)
	}
	return &HTTPHandler{
		server:   server,
		forward:  forward,
		maxBody:  opts.MaxBodyBytes,
		fastPath: fast,
		legacy: bindUser(mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{
			EventStore:                 events,
			SessionTimeout:             opts.SessionTimeout,
			MaxRequestBodyBytes:        opts.MaxBodyBytes,
			Logger:                     opts.Logger,
			DisableLocalhostProtection: opts.HostsChecked,
		})),
		modern: bindUser(mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{
			Stateless:                    true,
			PropagateRequestCancellation: true,
			MaxRequestBodyBytes:          opts.MaxBodyBytes,
			Logger:                       opts.Logger,
			DisableLocalhostProtection:   opts.HostsChecked,
		})),
	}
}

// ServeHTTP implements http.Handler.
func (h *HTTPHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength > h.maxBody {
		// Reading past a limit makes the server close the connection only after the client
		// had time to read the answer.
		_, _ = http.MaxBytesReader(w, r.Body, 0).Read(make([]byte, 1))
		writeTooLarge(w, h.maxBody)
		return
	}
	r = r.WithContext(auth.WithServerURL(r))
	done, err := h.forward.tryForward(w, r)
	if !done && err == nil {
		done, err = h.fastPath.tryServe(w, r, h.maxBody)
	}
	if done {
		return
	}
	modern := false
	if err == nil {
		modern, err = h.isModern(w, r)
	}
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		writeTooLarge(w, h.maxBody)
	case err != nil:
		writeError(w, http.StatusBadRequest, jsonrpc.CodeParseError, err.Error())
	case modern:
		h.modern.ServeHTTP(w, r)
	default:
		h.legacy.ServeHTTP(cancelFilter{w}, r)
		h.recordSession(w, r)
	}
}

// isModern reports whether a request has a modern protocol version. A modern version header
// makes it modern, and otherwise a session header makes it legacy. Only a request with
// neither is read (up to the limit) to decide; its body is restored.
func (h *HTTPHandler) isModern(w http.ResponseWriter, r *http.Request) (bool, error) {
	if r.Method != http.MethodPost {
		return false, nil
	}
	if r.Header.Get("Mcp-Protocol-Version") >= ModernVersion {
		return true, nil
	}
	if r.Header.Get("Mcp-Session-Id") != "" {
		return false, nil
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, h.maxBody))
	if err != nil {
		return false, fmt.Errorf("read the body: %w", err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return bodyIsModern(body), nil
}

// bodyIsModern reads the message as the SDK does (keys are case-sensitive), so that both
// agree on the protocol version of a request.
func bodyIsModern(body []byte) bool {
	msg, err := jsonrpc.DecodeMessage(body)
	if err != nil {
		return false
	}
	req, ok := msg.(*jsonrpc.Request)
	if !ok {
		return false
	}
	switch req.Method {
	case "server/discover", "subscriptions/listen":
		return true
	}
	var params, meta map[string]json.RawMessage
	if json.Unmarshal(req.Params, &params) != nil || json.Unmarshal(params["_meta"], &meta) != nil {
		return false
	}
	_, modern := meta[mcp.MetaKeyProtocolVersion]
	return modern
}

// Close ends every legacy session over HTTP. A session ends after its calls; ctx bounds the
// wait.
func (h *HTTPHandler) Close(ctx context.Context) error {
	var wg sync.WaitGroup
	for session := range h.server.Sessions() {
		if session.ID() == "" { // stdio, or a modern request, which has no session to end
			continue
		}
		wg.Go(func() { _ = session.Close() })
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("end the sessions: %w", ctx.Err())
	}
}

// bindUser passes the caller to the SDK, so that it binds a legacy session to its user, and
// to the client's own token if it has one. A request without a principal passes unchanged:
// another layer decides whether one is required.
func bindUser(next http.Handler) http.Handler {
	verify := func(ctx context.Context, _ string, _ *http.Request) (*sdkauth.TokenInfo, error) {
		id, ok := auth.Identity(ctx)
		if !ok {
			return nil, sdkauth.ErrInvalidToken
		}
		return &sdkauth.TokenInfo{UserID: id}, nil
	}
	bound := sdkauth.RequireBearerToken(verify, &sdkauth.RequireBearerTokenOptions{AllowMissingExpiration: true})(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, ok := auth.PrincipalFrom(r.Context()); ok {
			bound.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func writeTooLarge(w http.ResponseWriter, limit int64) {
	writeError(w, http.StatusRequestEntityTooLarge, jsonrpc.CodeInvalidRequest,
		fmt.Sprintf("the body is larger than %d bytes", limit))
}

func writeError(w http.ResponseWriter, status int, code int64, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(errorLine(nil, code, message)) //nolint:gosec // G705: it is JSON, and the message is a text of this package
}

// recordSession records a legacy session that the SDK has opened with this request.
func (h *HTTPHandler) recordSession(w http.ResponseWriter, r *http.Request) {
	id := w.Header().Get("Mcp-Session-Id")
	owner, ok := auth.Identity(r.Context())
	holder := auth.TokenLeaseFrom(r.Context())
	if id == "" || !ok || r.Header.Get("Mcp-Session-Id") != "" || h.fastPath == nil && holder == nil {
		return
	}
	for session := range h.server.Sessions() {
		if session.ID() != id {
			continue
		}
		if h.fastPath != nil {
			h.fastPath.addSession(session, owner)
		}
		go h.watchSession(session, holder)
		return
	}
}

// tokenCheckInterval is the interval of checks of a session's token.
const tokenCheckInterval = 2 * time.Second

// watchSession waits for the end of a session, and ends it when its token becomes invalid.
func (h *HTTPHandler) watchSession(session *mcp.ServerSession, holder *auth.TokenLease) {
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = session.Wait() // the reason does not matter
	}()
	if holder != nil {
		look := time.NewTicker(tokenCheckInterval)
		defer look.Stop()
		for ended := false; !ended; {
			select {
			case <-over:
				ended = true
			case <-look.C:
				if ended = !holder.IsValid(); ended {
					_ = session.Close() // Close waits for calls in progress, which are cancelled
				}
			}
		}
	}
	<-over
	if h.fastPath != nil {
		h.fastPath.removeSession(session)
	}
}

// cancelMark is the message of the error with which the SDK answers a cancelled request. No
// upstream can guess it.
var cancelMark = sync.OnceValue(rand.Text)

// markCancelled marks the answers to the requests that legacy clients over HTTP have
// cancelled.
func markCancelled(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		result, err := next(ctx, method, req)
		if session := req.GetSession(); ctx.Err() != nil && session != nil && session.ID() != "" {
			return nil, errors.New(cancelMark())
		}
		return result, err
	}
}

// cancelFilter drops marked answers: the protocol has no answer to a cancelled request. The
// SDK writes each answer at once.
type cancelFilter struct{ http.ResponseWriter }

// Write implements io.Writer.
func (w cancelFilter) Write(text []byte) (int, error) {
	if len(text) < 8<<10 && bytes.Contains(text, []byte(cancelMark())) {
		return len(text), nil
	}
	return w.ResponseWriter.Write(text)
}

// Unwrap serves http.ResponseController.
func (w cancelFilter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Recover is receiving middleware that answers a call whose handler panics with an internal
// error, and logs the panic with its stack. Without it a panic ends the process and every
// other session: the SDK runs handlers on its own goroutines. Add it last, so that it wraps
// other middleware.
func Recover(logger *slog.Logger) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (result mcp.Result, err error) {
			defer func() {
				if reason := recover(); reason != nil {
					logger.ErrorContext(ctx, "a handler panicked", "method", method, "reason", reason, "stack", string(debug.Stack()))
					result, err = nil, &jsonrpc.Error{
						Code: jsonrpc.CodeInternalError, Message: "internal error; see the server's log",
					}
				}
			}()
			return next(ctx, method, req)
		}
	}
}
