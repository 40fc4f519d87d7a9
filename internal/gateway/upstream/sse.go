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
)

// feed is a server over the HTTP transport of 2024-11-05: one stream carries all
// that it says, and what we say is posted to an address that the stream names.
type feed struct {
	*web
	endpoint string
	done     chan struct{}
	once     sync.Once
}

var _ conn = (*feed)(nil)

// openFeed opens the stream and waits for the address.
func openFeed(ctx context.Context, spec Spec, client *http.Client, limit int, to receiver) (*feed, error) {
	f := &feed{web: newWeb(spec, client, limit, to), done: make(chan struct{})}
	stop := context.AfterFunc(ctx, f.cancel) // ctx bounds the opening alone
	resp, err := f.resume(f.ctx, "")         //nolint:bodyclose // it is closed at the end of the stream
	if err != nil {
		stop()
		f.cancel()
		return nil, err
	}
	stream := newEvents(resp.Body, limit)
	first, err := stream.next()
	if !stop() && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err == nil && first.name != "endpoint" {
		err = errors.New("the stream does not begin with an address")
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
		err := f.read(stream, "")
		_ = resp.Body.Close()
		to.ended(fmt.Errorf("the server's stream has ended: %w", rootCause(err)))
	}()
	return f, nil
}

// sameOrigin is the address to post to. It must be of the same origin: what is
// posted there carries our credentials.
func sameOrigin(base, ref string) (string, error) {
	from, err := url.Parse(base)
	if err != nil {
		return "", errors.New("the address of the server is not a URL")
	}
	to, err := from.Parse(ref)
	if err != nil || to.Scheme != from.Scheme || to.Host != from.Host || to.User != nil {
		return "", errors.New("the server wants messages to be posted to another origin")
	}
	return to.String(), nil
}

// send implements conn.
func (f *feed) send(ctx context.Context, m outgoing) error {
	req, err := f.request(ctx, http.MethodPost, f.endpoint, bytes.NewReader(m.text))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := f.client.Do(req)
	if err != nil {
		return f.sendError(ctx, err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 4<<10)) // so that the connection is used again
	if resp.StatusCode >= 300 {
		return f.spec.failure(resp)
	}
	return nil
}

// negotiated implements conn: the stream is open already.
func (f *feed) negotiated(version string) {
	f.mu.Lock()
	f.version = version
	f.mu.Unlock()
}

// close implements conn.
func (f *feed) close() {
	f.once.Do(f.cancel)
	<-f.done
}
