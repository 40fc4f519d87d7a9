package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// sseConn is a connection over the HTTP transport of 2024-11-05. One stream carries all
// messages of the server, and the client posts its messages to a URL that the stream names.
type sseConn struct {
	*httpConn
	endpoint string
	done     chan struct{}
	once     sync.Once
}

var _ conn = (*sseConn)(nil)

// openSSE opens the stream and waits for the URL to which messages are posted.
func openSSE(ctx context.Context, spec Spec, client *http.Client, limit int, to receiver) (*sseConn, error) {
	f := &sseConn{httpConn: newHTTPConn(spec, client, limit, to), done: make(chan struct{})}
	stop := context.AfterFunc(ctx, f.cancel) // ctx limits only the opening of the stream.
	resp, err := f.resumeStream(f.ctx, "")   //nolint:bodyclose // it is closed at the end of the stream
	if err != nil {
		stop()
		f.cancel()
		return nil, err
	}
	stream := newEvents(resp.Body, limit)
	first, err := stream.next()
	if err != nil {
		err = fmt.Errorf("read the first event of the server's stream: %w", rootCause(err))
	}
	if !stop() && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err == nil && first.name != "endpoint" {
		err = errors.New("the server's stream does not start with the event \"endpoint\"")
	}
	if err == nil {
		f.endpoint, err = sameOrigin(spec.URL, string(first.data))
	}
	if err != nil {
		f.cancel()
		_ = resp.Body.Close()
		return nil, err
	}
	go func() {
		defer close(f.done)
		err := f.readStream(stream, "")
		_ = resp.Body.Close()
		f.client.CloseIdleConnections() // The idle connections of a server that has exited would fail the next POST.
		to.ended(fmt.Errorf("the server's stream ended: %w", rootCause(err)))
	}()
	return f, nil
}

// sameOrigin resolves the URL for posting. The URL must have the same origin as the stream,
// because messages carry credentials.
func sameOrigin(base, ref string) (string, error) {
	from, err := url.Parse(base)
	if err != nil {
		return "", errors.New("the URL of the server is invalid")
	}
	to, err := from.Parse(ref)
	if err != nil || to.Scheme != from.Scheme || to.Host != from.Host || to.User != nil {
		return "", errors.New("the server's message endpoint must be a URL with the origin of the server and without a user name")
	}
	return to.String(), nil
}

// postGrace is the time that a server has to respond to a POST after the end of its call.
const postGrace = 5 * time.Second

// send implements conn. The answer to a call comes on the stream, often before the response
// to the POST. The end of the call does not cancel the POST immediately: net/http may have
// reused its connection, and the cancellation would then fail the next request on it.
func (f *sseConn) send(ctx context.Context, m outgoing) error {
	posting, cancel := context.WithCancel(f.ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(postGrace, cancel) })()
	req, err := f.newRequest(posting, http.MethodPost, f.endpoint, bytes.NewReader(m.text))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := f.client.Do(req)
	if err != nil {
		return f.sendError(posting, err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 4<<10)) // Reading the body lets the connection be reused.
	if resp.StatusCode >= 300 {
		return f.spec.statusFailure(resp)
	}
	return nil
}

// negotiated implements conn. The stream is already open.
func (f *sseConn) negotiated(version string) { f.setVersion(version) }

// close implements conn.
func (f *sseConn) close() {
	f.once.Do(f.cancel)
	<-f.done
}
