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

// The crowd: processes on one journal, each with clients that do not wait for
// each other.
const (
	crowdProcesses = 4
	crowdClients   = 8
)

// shared lets several clients call one server at once. An answer goes to who
// has asked.
type shared struct {
	server *server

	mu      sync.Mutex
	waiting map[int]chan answered
	ended   error
}

// answered is an answer with the time at which it came.
type answered struct {
	result json.RawMessage
	at     time.Time
	err    error
}

// share takes a server's output over. It ends with the server.
func share(s *server) *shared {
	c := &shared{server: s, waiting: map[int]chan answered{}}
	go c.listen()
	return c
}

// listen passes answers on until there are no more.
func (c *shared) listen() {
	for {
		line, err := c.server.out.ReadBytes('\n')
		at := time.Now()
		if err != nil {
			c.end(err)
			return
		}
		var a struct {
			ID int `json:"id"`
		}
		if json.Unmarshal(line, &a) != nil {
			continue // no answer to a call of ours
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

// end tells everybody who waits that no answer will come.
func (c *shared) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = err
	for id, to := range c.waiting {
		delete(c.waiting, id)
		to <- answered{err: err}
	}
}

// call implements caller.
func (c *shared) call(ctx context.Context, method string, params map[string]any) (json.RawMessage, time.Duration, error) {
	to := make(chan answered, 1)
	began, err := c.send(method, params, to)
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

func (c *shared) send(method string, params map[string]any, to chan answered) (time.Time, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended != nil {
		return time.Time{}, c.ended
	}
	c.server.lastID++
	id := c.server.lastID
	line, err := request(c.server.era, id, method, params)
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

// crowd measures workflow_continue while many clients of several processes work
// on one journal, each on a run of its own. The figure is the 99th percentile.
func (p plan) crowd(ctx context.Context, w *workplace, ours *target, rec record) error {
	t, err := w.durable(ours, "crowd")
	if err != nil {
		return err
	}
	var clients []caller
	for range crowdProcesses {
		s, err := t.start(ctx, legacy)
		if err != nil {
			return err
		}
		defer s.stop()
		if err := s.greet(ctx); err != nil {
			return err
		}
		c := share(s)
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
	f := latency(slices.Concat(times...))
	if f.P99 != nil {
		f.Value, f.P50, f.P99 = *f.P99, new(f.Value), nil
	}
	rec(rowCrowd, f)
	return nil
}

// workInCrowd is one of the crowd.
func workInCrowd(ctx context.Context, c caller, n int) ([]time.Duration, error) {
	d := &durableWalk{}
	if err := d.begin(ctx, c); err != nil {
		return nil, err
	}
	var times []time.Duration
	for range n {
		took, err := d.goOn(ctx, c)
		if err != nil {
			return nil, err
		}
		times = append(times, took)
	}
	return times, nil
}
