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
	// headerTime is the time limit for reading the headers of a request, and bodyTime for
	// reading its body. Answers have no limit, because they may be streams.
	headerTime = 10 * time.Second
	bodyTime   = 30 * time.Second
	// idleTime is the maximum idle time of a connection.
	idleTime = 2 * time.Minute
	// maxHeaderBytes is the maximum size of a request's headers.
	maxHeaderBytes = 64 << 10
	// shutdownTime is the time limit for answers in progress after ctx is done.
	shutdownTime = 500 * time.Millisecond
)

// Serve serves handler on listener until ctx is done, and then returns nil within a second.
// GET requests, which include streams, end immediately; other answers get half a second;
// then the remaining connections are closed. Serve closes the listener.
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
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer cancel()
	if err := srv.Shutdown(grace); err != nil {
		_ = srv.Close() // Close closes the remaining connections.
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return guideway.Errorf(guideway.CodeUnavailable, "serve on %s: %w", listener.Addr(), err)
	}
	return nil
}

// endStreams cancels GET requests when ctx is done. Streams are GET requests, and no GET
// request changes anything.
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

// bodyDeadline ends a request whose body is too slow. The server's ReadTimeout would also
// end slow answers.
func bodyDeadline(next http.Handler, limit time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != nil && r.Body != http.NoBody {
			rc := http.NewResponseController(w)
			// Only response writers in tests do not support deadlines.
			if rc.SetReadDeadline(time.Now().Add(limit)) == nil {
				r.Body = &timedBody{ReadCloser: r.Body, rc: rc}
			}
		}
		next.ServeHTTP(w, r)
	})
}

// timedBody removes the deadline after the body has been read.
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
