package upstream

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
)

// LoginPath is the path of the redirect of a login.
const LoginPath = "/oauth/callback"

// LoopbackLogin is a login whose redirect leads to a random port of this machine
// (RFC 8252, 7.3).
type LoopbackLogin struct {
	*Login

	host   string
	server *http.Server
	served sync.WaitGroup
	once   sync.Once
	ended  chan struct{}
	info   *LoginInfo
	err    error
}

// StartLoopbackLogin starts a login and listens for its redirect. The caller must close the
// login.
func StartLoopbackLogin(ctx context.Context, spec Spec, opts Options, login LoginOptions) (*LoopbackLogin, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "listen for the redirect of the login: %w", err).WithFix("allow guideway to listen on 127.0.0.1")
	}
	l := &LoopbackLogin{host: listener.Addr().String(), ended: make(chan struct{})}
	login.Redirect = "http://" + l.host + LoginPath
	if l.Login, err = StartLogin(ctx, spec, opts, login); err != nil {
		_ = listener.Close()
		return nil, err
	}
	l.server = &http.Server{Handler: l, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10}
	l.served.Go(func() { _ = l.server.Serve(listener) }) // Serve returns when the server is closed
	return l, nil
}

// ServeHTTP receives the redirect. Requests that do not belong to the login change nothing:
// every page in the browser can send requests to this port.
func (l *LoopbackLogin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet || r.Host != l.host || r.URL.Path != LoginPath || !l.OwnsState(r.URL.Query().Get("state")) {
		WriteLoginPage(w, errors.New("the request does not belong to this login"))
		return
	}
	first := false
	l.once.Do(func() { first = true })
	if !first {
		WriteLoginPage(w, errors.New("this login has already ended"))
		return
	}
	l.info, l.err = l.Finish(context.WithoutCancel(r.Context()), r.URL.Query())
	WriteLoginPage(w, l.err)
	close(l.ended)
}

// WriteLoginPage writes the page that a browser shows at the end of a login. It contains
// nothing of the request, and it leads nowhere.
func WriteLoginPage(w http.ResponseWriter, err error) {
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, "The login failed: "+err.Error()+".\n") // the browser may have disconnected
		return
	}
	_, _ = io.WriteString(w, "You are logged in. You can close this page.\n")
}

// Wait returns the login after the redirect.
func (l *LoopbackLogin) Wait(ctx context.Context) (*LoginInfo, error) {
	select {
	case <-l.ended:
		return l.info, l.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Close stops listening. It lets a response that is being sent end.
func (l *LoopbackLogin) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if l.server.Shutdown(ctx) != nil {
		_ = l.server.Close()
	}
	l.served.Wait()
}
