package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// caller is one client: a session of 2025-11-25 and one connection. It decodes
// nothing, so that what it takes is the least.
type caller struct {
	s       *subject
	http    *http.Client
	session string
	body    bytes.Buffer
}

func newCaller(s *subject) *caller {
	return &caller{s: s, http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4}, Timeout: 30 * time.Second}}
}

// post sends a message and keeps what is answered in body.
func (c *caller) post(ctx context.Context, text string) (session string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.s.url, strings.NewReader(text))
	if err != nil {
		return "", err
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

// open begins the session, and has the tool found.
func (c *caller) open(ctx context.Context) error {
	session, err := c.post(ctx, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`)
	if err != nil {
		return err
	}
	c.session = session
	if _, err := c.post(ctx, `{"jsonrpc":"2.0","method":"notifications/initialized"}`); err != nil {
		return err
	}
	if _, err := c.post(ctx, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`); err != nil {
		return err
	}
	if !strings.Contains(c.body.String(), `"`+c.s.tool+`"`) {
		return fmt.Errorf("it does not have the tool: %.200s", c.body.String())
	}
	return nil
}

// call makes one call, the id of which is in its text, and checks the answer.
func (c *caller) call(ctx context.Context, id int, filling string) error {
	text := fmt.Sprintf("%d %s", id, filling)
	if _, err := c.post(ctx, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":{"text":%q}}}`, id+10, c.s.tool, text)); err != nil {
		return err
	}
	if !bytes.Contains(c.body.Bytes(), []byte(text)) {
		return errors.New("the answer is another one: " + string(c.body.Bytes()[:min(200, c.body.Len())]))
	}
	return nil
}

// row is what was measured of a subject at a level.
type row struct {
	name     string
	p50, p99 time.Duration
	rate     float64
	cpu      time.Duration
	memory   int64
}

// measure makes the calls of a level, after some that do not count.
func (b *bench) measure(ctx context.Context, s *subject, at level) (row, error) {
	calls := b.calls
	if at.size > 1<<10 {
		calls /= 4
	}
	each := max(calls/at.clients, 4)
	callers := make([]*caller, at.clients)
	for i := range callers {
		callers[i] = newCaller(s)
		if err := callers[i].open(ctx); err != nil {
			return row{}, err
		}
		defer callers[i].http.CloseIdleConnections()
	}
	filling := strings.Repeat("some text and ", at.size/14)
	if _, _, err := together(ctx, callers, max(each/10, 2), filling); err != nil {
		return row{}, err
	}
	before, _ := s.usage()
	walls, took, err := together(ctx, callers, each, filling)
	if err != nil {
		return row{}, err
	}
	after, memory := s.usage()
	slices.Sort(walls)
	return row{
		name: s.name, p50: walls[len(walls)/2], p99: walls[len(walls)*99/100], rate: float64(len(walls)) / took.Seconds(),
		cpu: (after - before) / time.Duration(len(walls)), memory: memory,
	}, nil
}

// together has all clients call at once, each one call after the other.
func together(ctx context.Context, callers []*caller, each int, filling string) (walls []time.Duration, took time.Duration, err error) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	began := time.Now()
	for _, c := range callers {
		wg.Go(func() {
			for i := range each {
				start := time.Now()
				failure := c.call(ctx, i, filling)
				wall := time.Since(start)
				mu.Lock()
				walls, err = append(walls, wall), errors.Join(err, failure)
				mu.Unlock()
				if failure != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	return walls, time.Since(began), err
}
