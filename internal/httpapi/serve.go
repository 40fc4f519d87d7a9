package httpapi

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/guideway-dev/guideway"
)

const (
	// headerTime is how long a client may take to send a request's headers,
	// bodyTime its body. Answers have no limit: they may be streams.
	headerTime = 10 * time.Second
	bodyTime   = 30 * time.Second
	// idleTime ends a connection without requests.
	idleTime = 2 * time.Minute
	// maxHeaderBytes bounds the headers of a request.
	maxHeaderBytes = 64 << 10
	// endTime is how long answers under way may take after ctx is done.
	endTime = 500 * time.Millisecond
)

// Serve serves handler on listener until ctx is done, then returns nil within
// a second: streams that a client has opened by GET end at once, other answers
// get half a second, and what is left is closed. The listener is closed.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	srv := &http.Server{
		Handler:           endStreams(ctx, handler),
		ReadHeaderTimeout: headerTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    maxHeaderBytes,
	}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(listener) }()
	select {
	case err := <-failed:
		return guideway.Errorf(guideway.CodeUnavailable, "serve on %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	if err := srv.Shutdown(grace); err != nil {
		_ = srv.Close() // what is left loses its connection
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return guideway.Errorf(guideway.CodeUnavailable, "serve on %s: %w", listener.Addr(), err)
	}
	return nil
}

// endStreams cancels GET requests when ctx is done: they hold no work, only a
// place where news would go.
func endStreams(ctx context.Context, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			next.ServeHTTP(w, r)
			return
		}
		streamCtx, cancel := context.WithCancel(r.Context())
		defer cancel()
		stop := context.AfterFunc(ctx, cancel)
		defer stop()
		next.ServeHTTP(w, r.WithContext(streamCtx))
	})
}

// bodyDeadline ends a request whose body comes too slowly. The server's own
// ReadTimeout is no help: it would end answers that take longer than it, too.
func bodyDeadline(next http.Handler, limit time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != nil && r.Body != http.NoBody {
			rc := http.NewResponseController(w)
			// A writer without deadlines is a test's; it has no network either.
			if rc.SetReadDeadline(time.Now().Add(limit)) == nil {
				r.Body = &timedBody{ReadCloser: r.Body, rc: rc}
			}
		}
		next.ServeHTTP(w, r)
	})
}

// timedBody lifts the deadline when the body is read to its end.
type timedBody struct {
	io.ReadCloser
	rc *http.ResponseController
}

func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		_ = b.rc.SetReadDeadline(time.Time{})
	}
	return n, err
}
