package workflow

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/guideway-dev/guideway/bench/measure"
)

// The crowd measurement: several processes on one journal, each with concurrent clients.
const (
	crowdProcesses = 4
	crowdClients   = 8
)

// shared lets several clients call one server concurrently. It delivers each answer to its
// caller.
type shared struct {
	server *server

	mu      sync.Mutex
	waiting map[int]chan answered
	ended   error
}

// answered is an answer with its arrival time.
type answered struct {
	result json.RawMessage
	at     time.Time
	err    error
}

// newShared returns a client of a server, and reads the server's output until it ends.
func newShared(s *server) *shared {
	c := &shared{server: s, waiting: map[int]chan answered{}}
	go c.readAnswers()
	return c
}

// readAnswers passes answers to their callers until the output ends.
func (c *shared) readAnswers() {
	for {
		line, err := c.server.out.ReadBytes('\n')
		at := time.Now()
		if err != nil {
			c.failWaiting(err)
			return
		}
		var a struct {
			ID int `json:"id"`
		}
		if json.Unmarshal(line, &a) != nil {
			continue // the line is not an answer to a call
		}
		result, ok, err := readAnswer(line, a.ID)
		if !ok && err == nil {
			continue
		}
		c.mu.Lock()
		to := c.waiting[a.ID]
		delete(c.waiting, a.ID)
		c.mu.Unlock()
		if to != nil {
			to <- answered{result, at, err}
		}
	}
}

// failWaiting fails all waiting calls.
func (c *shared) failWaiting(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = err
	for id, to := range c.waiting {
		delete(c.waiting, id)
		to <- answered{err: err}
	}
}

// callTool implements caller.
func (c *shared) callTool(ctx context.Context, method string, params map[string]any) (json.RawMessage, time.Duration, error) {
	to := make(chan answered, 1)
	began, err := c.sendRequest(method, params, to)
	if err != nil {
		return nil, 0, fmt.Errorf("%s of %s: %w", method, c.server.target.name, err)
	}
	select {
	case a := <-to:
		return a.result, a.at.Sub(began), a.err
	case <-ctx.Done():
		return nil, 0, ctx.Err()
	}
}

func (c *shared) sendRequest(method string, params map[string]any, to chan answered) (time.Time, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended != nil {
		return time.Time{}, c.ended
	}
	c.server.lastID++
	id := c.server.lastID
	line, err := newRequest(c.server.version, id, method, params)
	if err != nil {
		return time.Time{}, err
	}
	c.waiting[id] = to
	began := time.Now()
	if _, err := c.server.in.Write(append(line, '\n')); err != nil {
		delete(c.waiting, id)
		return time.Time{}, err
	}
	return began, nil
}

// measureCrowd measures workflow_continue while many clients of several processes work on
// one journal, each on a separate run. The figure is the 99th percentile.
func (p plan) measureCrowd(ctx context.Context, w *workplace, ours *target, rec record) error {
	t, err := w.durableTarget(ours, "crowd")
	if err != nil {
		return err
	}
	var clients []caller
	for range crowdProcesses {
		s, err := t.startServer(ctx, legacy)
		if err != nil {
			return err
		}
		defer s.stop()
		if err := s.initializeSession(ctx); err != nil {
			return err
		}
		c := newShared(s)
		for range crowdClients {
			clients = append(clients, c)
		}
	}
	times := make([][]time.Duration, len(clients))
	err = measure.RunClients(len(clients), func(i int) (err error) {
		times[i], err = workInCrowd(ctx, clients[i], max(p.calls/len(clients), together))
		return err
	})
	if err != nil {
		return err
	}
	f := latencyFigure(slices.Concat(times...))
	if f.P99 != nil {
		f.Value, f.P50, f.P99 = *f.P99, new(f.Value), nil
	}
	rec(rowCrowd, f)
	return nil
}

// workInCrowd makes the calls of one client.
func workInCrowd(ctx context.Context, c caller, n int) ([]time.Duration, error) {
	d := &durableWalk{}
	if err := d.startRun(ctx, c); err != nil {
		return nil, err
	}
	var times []time.Duration
	for range n {
		took, err := d.continueStep(ctx, c)
		if err != nil {
			return nil, err
		}
		times = append(times, took)
	}
	return times, nil
}
