package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/guideway-dev/guideway/bench/measure"
)

// caller is one client: a session of 2025-11-25 and one connection. It does not decode
// answers, to keep its own cost low.
type caller struct {
	s       *subject
	http    *http.Client
	session string
	body    bytes.Buffer
}

func newCaller(s *subject) *caller {
	return &caller{s: s, http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4}, Timeout: 30 * time.Second}}
}

func (c *caller) newRequest(ctx context.Context, method, text string) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.s.url, strings.NewReader(text))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if c.s.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.s.token)
	}
	if c.session != "" {
		req.Header.Set("Mcp-Session-Id", c.session)
		req.Header.Set("Mcp-Protocol-Version", "2025-11-25")
	}
	return req, nil
}

// postMessage sends a message and keeps the answer in body.
func (c *caller) postMessage(ctx context.Context, text string) (session string, err error) {
	req, err := c.newRequest(ctx, http.MethodPost, text)
	if err != nil {
		return "", err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	c.body.Reset()
	if _, err := io.Copy(&c.body, resp.Body); err != nil {
		return "", err
	}
	if resp.StatusCode >= http.StatusBadRequest {
		return "", fmt.Errorf("%s: %.200s", resp.Status, c.body.String())
	}
	return resp.Header.Get("Mcp-Session-Id"), nil
}

// openSession starts the session and checks that the tool is listed.
func (c *caller) openSession(ctx context.Context) error {
	session, err := c.postMessage(ctx, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`)
	if err != nil {
		return err
	}
	c.session = session
	if _, err := c.postMessage(ctx, `{"jsonrpc":"2.0","method":"notifications/initialized"}`); err != nil {
		return err
	}
	if _, err := c.postMessage(ctx, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`); err != nil {
		return err
	}
	if !strings.Contains(c.body.String(), `"`+c.s.tool+`"`) {
		return fmt.Errorf("the tool is not listed: %.200s", c.body.String())
	}
	return nil
}

// endSession deletes the session, as a client does that ends: the memory of a level is the
// memory of its own clients. A subject without sessions refuses the request.
func (c *caller) endSession(ctx context.Context) {
	defer c.http.CloseIdleConnections()
	req, err := c.newRequest(ctx, http.MethodDelete, "")
	if c.session == "" || err != nil {
		return
	}
	if resp, err := c.http.Do(req); err == nil {
		_ = resp.Body.Close()
	}
}

// callTool makes one call with its id in the text, and checks the answer.
func (c *caller) callTool(ctx context.Context, id int, filling string) error {
	text := fmt.Sprintf("%d %s", id, filling)
	if _, err := c.postMessage(ctx, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":{"text":%q}}}`, id+10, c.s.tool, text)); err != nil {
		return err
	}
	if !bytes.Contains(c.body.Bytes(), []byte(text)) {
		return errors.New("unexpected answer: " + string(c.body.Bytes()[:min(200, c.body.Len())]))
	}
	return nil
}

// row holds the figures of a subject at a level.
type row struct {
	name     string
	p50, p99 time.Duration
	rate     float64
	cpu      time.Duration
	memory   int64
	// peer reports whether the subject is another gateway.
	peer bool
}

// measureSubject makes the calls of a level, after some warm-up calls.
func (b *bench) measureSubject(ctx context.Context, s *subject, at level) (row, error) {
	calls := b.calls
	if at.size > 1<<10 {
		calls /= 4
	}
	each := max(calls/at.clients, 4)
	callers := make([]*caller, at.clients)
	for i := range callers {
		callers[i] = newCaller(s)
		if err := callers[i].openSession(ctx); err != nil {
			return row{}, err
		}
		defer callers[i].endSession(context.WithoutCancel(ctx))
	}
	filling := strings.Repeat("some text and ", at.size/14)
	if _, _, err := callTogether(ctx, callers, max(each/10, 2), filling); err != nil {
		return row{}, err
	}
	before, _ := s.treeUsage()
	walls, took, err := callTogether(ctx, callers, each, filling)
	if err != nil {
		return row{}, err
	}
	after, memory := s.treeUsage()
	return row{
		name: s.name, peer: s.peer, p50: measure.Percentile(walls, 50), p99: measure.Percentile(walls, 99), rate: float64(len(walls)) / took.Seconds(),
		cpu: (after - before) / time.Duration(len(walls)), memory: memory,
	}, nil
}

// callTogether makes calls with all clients concurrently; each client makes one call after
// the other.
func callTogether(ctx context.Context, callers []*caller, each int, filling string) (walls []time.Duration, took time.Duration, err error) {
	times := &measure.Times{}
	began := time.Now()
	err = measure.RunClients(len(callers), func(client int) error {
		for i := range each {
			if err := times.Call(func() error { return callers[client].callTool(ctx, i, filling) }); err != nil {
				return err
			}
		}
		return nil
	})
	return times.Sorted(), time.Since(began), err
}
