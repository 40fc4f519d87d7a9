package gateway

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/guideway-dev/guideway/internal/upstream/wire"
)

// subscription is a resource that somebody follows.
type subscription struct{ upstream, uri string }

// following is the one subscription at an upstream that stands for all clients.
type following struct {
	shown string
	// users counts the subscriptions of each client: nobody ends another's.
	users map[string]int
	stop  func()
	// ready is closed when the upstream has agreed, or err is set.
	ready chan struct{}
	err   error
}

// Subscribe follows a resource for a client. Each call wants an Unsubscribe.
func (g *Gateway) Subscribe(ctx context.Context, c *Client, uri string) error {
	m, original, err := g.owner(ctx, c, uri)
	if err != nil {
		return err
	}
	key := subscription{m.Name(), original}
	g.mu.Lock()
	f := g.subscriptions[key]
	first := f == nil
	if first {
		f = &following{shown: uri, users: map[string]int{}, ready: make(chan struct{}), stop: func() {}}
		g.subscriptions[key] = f
	}
	f.users[c.name()]++
	g.mu.Unlock()
	if first {
		f.err = g.startFollowing(ctx, m, original, f)
		close(f.ready)
	}
	select {
	case <-f.ready:
	case <-ctx.Done():
		g.leave(c, key)
		return context.Cause(ctx)
	}
	if f.err != nil {
		g.leave(c, key)
	}
	return f.err
}

// startFollowing subscribes at the upstream, in the session that all share: the
// updates are told to those who follow, by us.
func (g *Gateway) startFollowing(ctx context.Context, m *member, uri string, f *following) error {
	want, _ := g.want(&Client{}, m, true)
	s, done, err := m.Session(ctx, want)
	if err != nil {
		return err
	}
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var once sync.Once
	if s.Modern() {
		g.wg.Go(func() {
			s.Subscribe(life, uri, func(method string, params json.RawMessage) { g.notified(m.Name(), "", method, params) })
		})
		f.stop = func() { once.Do(func() { cancel(); done() }) }
		return nil
	}
	member := wire.Member{Key: "uri", Value: wire.Text(uri)}
	_, err = s.Do(ctx, call("resources/subscribe", member))
	if err != nil {
		cancel()
		done()
		return err
	}
	f.stop = func() {
		once.Do(func() {
			g.wg.Go(func() {
				defer done()
				defer cancel()
				ctx, stop := context.WithTimeout(life, listTime)
				defer stop()
				_, _ = s.Do(ctx, call("resources/unsubscribe", member)) // the session may have ended
			})
		})
	}
	return nil
}

// Unsubscribe ends what Subscribe began.
func (g *Gateway) Unsubscribe(ctx context.Context, c *Client, uri string) {
	if m, original := g.ready(ctx, c).route(g, uri); m != nil {
		g.leave(c, subscription{m.Name(), original})
	}
}

func (g *Gateway) leave(c *Client, key subscription) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f := g.subscriptions[key]
	if f == nil || f.users[c.name()] == 0 {
		return
	}
	if f.users[c.name()]--; f.users[c.name()] == 0 {
		delete(f.users, c.name())
	}
	if len(f.users) > 0 {
		return
	}
	delete(g.subscriptions, key)
	if !g.closed {
		f.stop()
	}
}

// followed has each subscription of a client as often as it was made.
func (g *Gateway) followed(c *Client) []subscription {
	g.mu.Lock()
	defer g.mu.Unlock()
	var all []subscription
	for key, f := range g.subscriptions {
		for range f.users[c.name()] {
			all = append(all, key)
		}
	}
	return all
}

// notified takes what an upstream tells outside of calls.
func (g *Gateway) notified(name, client, method string, params json.RawMessage) {
	g.mu.Lock()
	hear := g.hear
	var shown string
	if method == "notifications/resources/updated" {
		if f := g.subscriptions[subscription{name, member1(params, "uri")}]; f != nil {
			shown = f.shown
		}
	}
	g.mu.Unlock()
	switch {
	case hear == nil:
	case shown != "":
		if mine, err := wire.With(params, wire.Member{Key: "uri", Value: wire.Text(shown)}, wire.Member{Key: "_meta"}); err == nil {
			hear("", method, mine)
		}
	case method == "notifications/message" && client != "":
		hear(client, method, params)
	}
}

// OnNotification has f called with what upstreams tell outside of calls: updates
// of resources that are followed, and the log messages of a client's own
// sessions, with the client. f must not block for long.
func (g *Gateway) OnNotification(f func(client, method string, params json.RawMessage)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.hear = f
}

// SetLevel tells the upstreams which log messages a client wants, in the
// sessions that are the client's own.
func (g *Gateway) SetLevel(ctx context.Context, c *Client, level string) {
	var told sync.WaitGroup
	s, may := g.surface.Load(), g.may(ctx)
	for _, m := range g.all() {
		known := m.Known()
		if known == nil || !may.some(s, m) || known.Info.Capabilities.Logging == nil || known.Info.Version >= modernVersion {
			continue
		}
		want, parked := g.want(c, m, false)
		if want.Client == "" || parked {
			continue
		}
		told.Go(func() {
			s, done, err := m.Session(ctx, want)
			if err != nil {
				return
			}
			defer done()
			_, _ = s.Do(ctx, call("logging/setLevel", wire.Member{Key: "level", Value: wire.Text(level)})) // as much as there is
		})
	}
	told.Wait()
}

// Release ends what belongs to a client whose session has ended.
func (g *Gateway) Release(c *Client) {
	for _, key := range g.followed(c) {
		g.leave(c, key)
	}
	for _, m := range g.all() {
		m.Upstream.Release(c.name())
	}
}
