package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
)

// startSlot starts the session of a slot.
func (u *Upstream) startSlot(made *slot, key string, want Want) {
	session, err := u.connect(want, made, func(cause error) { u.sessionEnded(key, made, cause) })
	u.mu.Lock()
	made.session = session
	switch {
	case err != nil:
		made.err = u.describeError(err)
		u.removeSlot(key, made)
		if !u.closed && (want.User == "" || guideway.ErrorCode(err) != guideway.CodeUnauthorized) { // a refused login of a person is no failure for others
			u.recordFailure(err, made.began, 0)
		}
	case u.closed && u.ctx.Err() != nil:
		made.err = errClosed
	case !slices.Contains(u.slots[key], made):
		if !session.hasEnded() { // The client was released during the start.
			made.err = errClosed
		}
	default:
		u.recordSuccess(want.User)
		u.closeUnused(key, made)
	}
	l := u.listsOf(want.Client)
	unlisted := err == nil && l != nil && want.Client != lister && !(l.fresh && (l.source == want.Client || want.Client == plain))
	u.mu.Unlock()
	close(made.ready)
	switch {
	case made.err != nil && session != nil:
		session.Close()
	case err != nil:
		u.opts.Logger.Warn("an upstream did not start", "upstream", u.spec.Name, "error", err)
	case unlisted:
		u.listAgain(want.Client)
	}
}

// sessionEnded removes a session that has ended, and records its end as a failure unless
// this side closed it.
func (u *Upstream) sessionEnded(key string, s *slot, cause error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	was := len(u.slots[key])
	u.removeSlot(key, s)
	if was == len(u.slots[key]) || u.closed {
		return // This side closed the session.
	}
	u.restarts++
	if l := u.listsOf(clientOf(key)); l != nil {
		l.fresh = false // The next process may offer other lists.
	}
	u.recordFailure(cause, s.began, max(time.Since(s.began), 1))
	u.opts.Logger.Warn("a session of an upstream ended unexpectedly", "upstream", u.spec.Name, "error", cause)
}

// connect starts or connects to the server and negotiates a version.
func (u *Upstream) connect(want Want, made *slot, ended func(error)) (*Session, error) {
	ctx, cancel := context.WithTimeoutCause(u.ctx, u.opts.StartTime,
		fmt.Errorf("the server did not answer the handshake within %s", u.opts.StartTime))
	defer cancel()
	spec, env, err := u.opts.Secrets.resolveSpec(u.spec)
	if err != nil {
		return nil, err
	}
	known := ""
	if c := u.Known(); c != nil {
		known = c.Info.Version
	}
	if want.Client == plain {
		known = supportedVersions()[1]
	}
	opts := sessionOptions{
		capabilities: want.Capabilities, ended: ended, logger: u.opts.Logger, spec: u.spec, client: u.opts.Client,
		user: want.User, notify: func(method string, params json.RawMessage) { u.handleNotification(want.Client, method, params) },
	}
	if want.Client != "" {
		opts.ask = u.askerOf(made)
	}
	session, err := u.tryTransports(ctx, spec, env, known, opts)
	if err != nil && want.Client == plain { // The server only claimed to support the version.
		session, err = u.tryTransports(ctx, spec, env, "", opts)
	}
	if err != nil {
		return nil, err
	}
	u.followChanges(session, want.Client)
	return session, nil
}

// askerOf returns a function that forwards a question to the user of the session, or to the
// last one if there are several. In a session that belongs to one client, all users are
// that client's calls.
func (u *Upstream) askerOf(s *slot) Asker {
	return func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, *jsonrpc.Error) {
		u.mu.Lock()
		var ask Asker
		if n := len(s.asks); n > 0 {
			ask = *s.asks[n-1]
		}
		u.mu.Unlock()
		if ask == nil {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "this session supports no requests to the client"}
		}
		return ask(ctx, method, params)
	}
}

// tryTransports tries the transports and versions that a server may support.
func (u *Upstream) tryTransports(ctx context.Context, spec Spec, env []string, known string, opts sessionOptions) (*Session, error) {
	try := func(spec Spec, known string) (*Session, error) { return u.openSession(ctx, spec, env, known, opts) }
	s, err := try(spec, known)
	var lost *NoAnswer
	if errors.As(err, &lost) && !lost.Late && spec.Command == "" && ctx.Err() == nil {
		// The connection may have been an idle one that a restart of the server has closed.
		s, err = try(spec, known)
	}
	var failed *handshakeError
	if err == nil || ctx.Err() != nil || !errors.As(err, &failed) {
		return s, err
	}
	var status *statusError
	switch {
	case failed.gone && spec.Kind() == TransportStdio && spec.Protocol == "" && known == "":
		// Some servers exit if the first message is not the handshake that they support.
		return try(spec, supportedVersions()[1])
	case errors.As(err, &status) && status.status/100 == 4 && guideway.ErrorCode(err) != guideway.CodeUnauthorized && spec.Transport == "" && spec.URL != "":
		spec.Transport = TransportSSE
		if s, sseErr := try(spec, supportedVersions()[1]); sseErr == nil {
			return s, nil
		}
	case known >= ModernVersion:
		return try(spec, "")
	}
	return nil, err
}

// openSession connects to a server and performs the handshake. It calls opts.ended only for
// a session that it returns.
func (u *Upstream) openSession(ctx context.Context, spec Spec, env []string, known string, opts sessionOptions) (*Session, error) {
	ended := opts.ended
	opts.ended = nil
	s := newSession(opts)
	if err := u.openConn(ctx, s, spec, env); err != nil {
		return nil, err
	}
	if err := s.handshake(ctx, known); err != nil {
		gone := s.hasEnded()
		s.Close()
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, &handshakeError{err: err, gone: gone}
	}
	s.onEnd(ended)
	return s, nil
}

// handshakeError is the error of a server that was reached, but whose handshake failed.
type handshakeError struct {
	err  error
	gone bool
}

func (e *handshakeError) Error() string { return e.err.Error() }
func (e *handshakeError) Unwrap() error { return e.err }

// hasEnded reports whether the session has ended.
func (s *Session) hasEnded() bool {
	select {
	case <-s.gone:
		return true
	default:
		return false
	}
}

// onEnd calls f when the session ends, or immediately if it has ended.
func (s *Session) onEnd(f func(error)) {
	s.mu.Lock()
	over := s.over
	if over == nil {
		s.opts.ended = f
	}
	s.mu.Unlock()
	if over != nil {
		f(over)
	}
}

// openConn opens the connection of a session.
func (u *Upstream) openConn(ctx context.Context, s *Session, spec Spec, env []string) error {
	var err error
	switch limit := u.opts.MaxMessageBytes; spec.Kind() {
	case TransportStdio:
		s.conn, err = startProcess(spec, env, limit, u.log, s)
	case TransportSSE:
		s.opts.spec.Transport = TransportSSE
		s.conn, err = openSSE(ctx, spec, u.httpClient(spec, s.opts.user), limit, s)
	default:
		s.conn = newHTTPConn(spec, u.httpClient(spec, s.opts.user), limit, s)
	}
	return err
}

// handleNotification handles a notification that belongs to no call.
func (u *Upstream) handleNotification(client, method string, params json.RawMessage) {
	switch method {
	case "notifications/tools/list_changed", "notifications/prompts/list_changed", "notifications/resources/list_changed":
		u.listAgain(client)
	default:
		if u.opts.Notified != nil {
			u.opts.Notified(client, method, params)
		}
	}
}

// listAgain schedules a fetch of the lists that the sessions of a client determine.
func (u *Upstream) listAgain(client string) {
	want := Want{}
	if client == lister || client == plain {
		want = Lister(nil)
	}
	u.refreshSoon(client, want)
}
