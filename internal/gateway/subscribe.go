package gateway

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/upstream"
	"github.com/guideway-dev/guideway/internal/upstream/wire"
)

// subscription is a resource that somebody follows: in the session that all share,
// with an empty client, or in one that is a client's own. A server on standard input
// and output is a process for each session, and tells of what its own clients do to a
// resource.
type subscription struct{ upstream, uri, client string }

// follower is a client that follows a resource, by the address that it uses for it.
type follower struct{ client, shown string }

// following is the one subscription in a session that stands for all clients.
type following struct {
	want upstream.Want
	// users counts the subscriptions of each: nobody ends another's.
	users map[follower]int
	stop  context.CancelFunc
	// ready is closed when the upstream has agreed, or err is set.
	ready chan struct{}
	err   error
}

// maxFollowed bounds what one client follows: each is a subscription at an upstream.
const maxFollowed = 256

// Subscribe follows a resource for a client. Each call wants an Unsubscribe.
func (g *Gateway) Subscribe(ctx context.Context, c *Client, uri string) error {
	m, original, err := g.owner(ctx, c, uri)
	if err != nil {
		return err
	}
	modern := m.Known() != nil && m.Known().Info.Version >= modernVersion
	want, _ := g.want(c, m, modern)
	want.Alone, want.Watch, want.Ask = false, true, nil
	key, who := subscription{m.Name(), original, want.Client}, follower{c.name(), uri}
	f, err := g.join(key, who, want)
	if err != nil {
		return err
	}
	select {
	case <-f.ready:
	case <-ctx.Done():
		g.leave(key, who)
		return context.Cause(ctx)
	}
	if f.err != nil {
		g.leave(key, who)
	}
	return f.err
}

// join adds a follower, and begins to follow for the first one.
func (g *Gateway) join(key subscription, who follower, want upstream.Want) (*following, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "the gateway is closed")
	}
	f := g.subscriptions[key]
	if f == nil || f.users[who] == 0 {
		n := 0
		for _, each := range g.subscriptions {
			for other := range each.users {
				if other.client == who.client {
					n++
				}
			}
		}
		if n >= maxFollowed {
			return nil, &wire.Error{Code: wire.CodeInvalidParams, Message: "a client cannot follow that many resources at once; end some of the subscriptions"}
		}
	}
	if f == nil {
		life, stop := context.WithCancel(g.life)
		f = &following{want: want, users: map[follower]int{}, ready: make(chan struct{}), stop: stop}
		g.subscriptions[key] = f
		g.wg.Go(func() { g.follow(life, key, f) })
	}
	f.users[who]++
	return f, nil
}

// The least and the most time after which a resource whose upstream has gone is
// followed again.
const (
	minRefollow = 500 * time.Millisecond
	maxRefollow = time.Minute
)

// follow has the upstream tell of a resource for as long as somebody follows it, also
// when the upstream is started anew or has another configuration: what may have been
// missed in between is told as one update.
func (g *Gateway) follow(life context.Context, key subscription, f *following) {
	agreed := func(err error) {
		f.err = err
		close(f.ready)
	}
	for pause, first := minRefollow, true; ; {
		began := time.Now()
		err := g.followOnce(life, key, f.want, func() {
			if first {
				first = false
				agreed(nil)
				return
			}
			g.tellFollowers(key, wire.Object(wire.Member{Key: "uri", Value: wire.Text(key.uri)}))
		})
		switch {
		case first:
			if err == nil { // it was not waited for
				err = context.Cause(life)
			}
			agreed(err)
			return
		case life.Err() != nil:
			return
		case time.Since(began) > maxRefollow:
			pause = minRefollow
		}
		select {
		case <-time.After(pause):
			pause = min(2*pause, maxRefollow)
		case <-life.Done():
			return
		}
	}
}

// followOnce follows a resource in one session: the updates are told to those who
// follow, by us.
func (g *Gateway) followOnce(life context.Context, key subscription, want upstream.Want, agreed func()) error {
	m := g.member(key.upstream)
	if m == nil {
		return notInUse(key.upstream)
	}
	s, done, err := m.Session(life, want)
	if err != nil {
		return err
	}
	defer done()
	if s.Modern() {
		agreed()
		until, cancel := context.WithCancel(life)
		defer cancel()
		go func() {
			select {
			case <-m.Closing():
				cancel()
			case <-until.Done():
			}
		}()
		s.Subscribe(until, key.uri, func(method string, params json.RawMessage) { g.notified(key.upstream, key.client, method, params) })
		return nil
	}
	member := wire.Member{Key: "uri", Value: wire.Text(key.uri)}
	if _, err = s.Do(life, call("resources/subscribe", member)); err != nil {
		return err
	}
	agreed()
	select {
	case <-life.Done():
		unfollow(m.Upstream, s, member)
	case <-m.Closing():
	case <-s.Done():
	}
	return nil
}

// unfollow ends a subscription at an upstream that goes on.
func unfollow(u *upstream.Upstream, s *upstream.Session, uri wire.Member) {
	ctx, cancel := context.WithTimeout(context.Background(), listTime)
	defer cancel()
	go func() {
		select {
		case <-u.Closing():
			cancel()
		case <-ctx.Done():
		}
	}()
	_, _ = s.Do(ctx, call("resources/unsubscribe", uri)) // the session may have ended
}

// Unsubscribe ends what Subscribe began, wherever the address leads by now.
func (g *Gateway) Unsubscribe(_ context.Context, c *Client, uri string) {
	who := follower{c.name(), uri}
	if all := g.followed(func(each follower) bool { return each == who }); len(all) > 0 {
		g.leave(all[0].subscription, who)
	}
}

func (g *Gateway) leave(key subscription, who follower) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f := g.subscriptions[key]
	if f == nil || f.users[who] == 0 {
		return
	}
	if f.users[who]--; f.users[who] == 0 {
		delete(f.users, who)
	}
	if len(f.users) == 0 {
		delete(g.subscriptions, key)
		f.stop()
	}
}

// followedBy is a subscription of one follower.
type followedBy struct {
	subscription
	who follower
}

// followed has each subscription of some followers as often as it was made.
func (g *Gateway) followed(by func(follower) bool) []followedBy {
	g.mu.Lock()
	defer g.mu.Unlock()
	var all []followedBy
	for key, f := range g.subscriptions {
		for who, n := range f.users {
			for range n {
				if by(who) {
					all = append(all, followedBy{key, who})
				}
			}
		}
	}
	return all
}

// notified takes what an upstream tells outside of calls.
func (g *Gateway) notified(name, client, method string, params json.RawMessage) {
	if method == "notifications/resources/updated" {
		g.tellFollowers(subscription{name, member1(params, "uri"), client}, params)
		return
	}
	g.mu.Lock()
	hear := g.hear
	g.mu.Unlock()
	if hear != nil && method == "notifications/message" && client != "" {
		hear(client, method, params)
	}
}

// tellFollowers tells of an update, by every address that somebody uses for it.
func (g *Gateway) tellFollowers(key subscription, params json.RawMessage) {
	g.mu.Lock()
	hear := g.hear
	shown := map[string]bool{}
	if f := g.subscriptions[key]; f != nil {
		for who := range f.users {
			shown[who.shown] = true
		}
	}
	g.mu.Unlock()
	if hear == nil {
		return
	}
	for uri := range shown {
		if mine, err := wire.With(params, wire.Member{Key: "uri", Value: wire.Text(uri)}, wire.Member{Key: "_meta"}); err == nil {
			hear("", "notifications/resources/updated", mine)
		}
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
	name := c.name()
	for _, each := range g.followed(func(who follower) bool { return who.client == name }) {
		g.leave(each.subscription, each.who)
	}
	for _, m := range g.all() {
		m.Upstream.Release(c.name())
	}
}
