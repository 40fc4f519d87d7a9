package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
	"github.com/guideway-dev/guideway/internal/gateway/upstream"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// subscription is a followed resource: in the shared session if client is empty, otherwise
// in the client's own session. A stdio server runs one process per session, and only
// reports changes that clients of that process make.
type subscription struct{ upstream, uri, client string }

// follower is a client that follows a resource, the URI that it uses, and the session that
// gets the updates.
type follower struct {
	client, shown string
	session       *mcp.ServerSession
}

// following is the single subscription that all followers of a resource share in a session
// with the upstream.
type following struct {
	want upstream.Want
	// users counts the subscriptions of each follower, so that one Unsubscribe does not end
	// the follower's other subscriptions.
	users map[follower]int
	stop  context.CancelFunc
	// ready is closed when the upstream has accepted the subscription or err is set.
	ready chan struct{}
	err   error
}

// maxFollowed limits the resources that one client follows, because each is a subscription
// at an upstream.
const maxFollowed = 256

// Subscribe follows a resource for a client. Each successful call needs an Unsubscribe.
func (g *Gateway) Subscribe(ctx context.Context, c *Client, uri string) error {
	m, original, err := g.findOwner(ctx, c, uri)
	if err != nil {
		return err
	}
	modern := m.Known() != nil && m.Known().Info.Version >= modernVersion
	want, _ := g.sessionFor(c, m, modern)
	want.Alone, want.Watch, want.Ask = false, true, nil
	key, who := subscription{m.Name(), original, want.Client}, follower{c.sharingKey(), uri, c.receiver}
	f, err := g.addFollower(key, who, want)
	if err != nil {
		return err
	}
	select {
	case <-f.ready:
	case <-ctx.Done():
		g.removeFollower(key, who)
		return context.Cause(ctx)
	}
	if f.err != nil {
		g.removeFollower(key, who)
	}
	return f.err
}

// addFollower adds a follower. The first one starts the subscription.
func (g *Gateway) addFollower(key subscription, who follower, want upstream.Want) (*following, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "the gateway is closed").WithFix("subscribe again when the server has started again")
	}
	f := g.subscriptions[key]
	if f == nil || f.users[who] == 0 {
		n := 0
		for _, each := range g.subscriptions {
			shown := map[string]bool{} // Several sessions of a modern client count once.
			for other := range each.users {
				if other.client == who.client {
					shown[other.shown] = true
				}
			}
			n += len(shown)
		}
		if n >= maxFollowed {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("this client already has %d subscriptions, the maximum; end some of them", n)}
		}
	}
	if f == nil {
		life, stop := context.WithCancel(g.life)
		f = &following{want: want, users: map[follower]int{}, ready: make(chan struct{}), stop: stop}
		g.subscriptions[key] = f
		g.wg.Go(func() { g.keepFollowing(life, key, f) })
	}
	f.users[who]++
	return f, nil
}

// The minimum and maximum delays before the gateway renews a subscription that has ended.
const (
	minRefollow = 500 * time.Millisecond
	maxRefollow = time.Minute
)

// keepFollowing follows a resource while it has followers, even if the upstream restarts or
// its configuration changes. When it follows the resource again, it reports one update,
// because updates may have been missed.
func (g *Gateway) keepFollowing(life context.Context, key subscription, f *following) {
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
			g.notifyFollowers(key)
		})
		switch {
		case first:
			if err == nil { // All followers unsubscribed before the subscription was accepted.
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

// followOnce follows a resource in one session and forwards its updates to the followers.
func (g *Gateway) followOnce(life context.Context, key subscription, want upstream.Want, agreed func()) error {
	m := g.findMember(key.upstream)
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
		s.Subscribe(until, key.uri, func(method string, params json.RawMessage) {
			g.handleNotification(key.upstream, key.client, method, params)
		})
		return nil
	}
	member := jsonrpc.Member{Key: "uri", Value: jsonrpc.Text(key.uri)}
	if _, err = s.Do(life, newUpstreamCall("resources/subscribe", member)); err != nil {
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

// unfollow ends a subscription at a running upstream.
func unfollow(u *upstream.Upstream, s *upstream.Session, uri jsonrpc.Member) {
	ctx, cancel := context.WithTimeout(context.Background(), listTime)
	defer cancel()
	go func() {
		select {
		case <-u.Closing():
			cancel()
		case <-ctx.Done():
		}
	}()
	_, _ = s.Do(ctx, newUpstreamCall("resources/unsubscribe", uri)) // The session may have ended.
}

// Unsubscribe ends a subscription, even if the URI now leads to another upstream.
func (g *Gateway) Unsubscribe(_ context.Context, c *Client, uri string) {
	who := follower{c.sharingKey(), uri, c.receiver}
	if all := g.followedBy(func(each follower) bool { return each == who }); len(all) > 0 {
		g.removeFollower(all[0].subscription, who)
	}
}

func (g *Gateway) removeFollower(key subscription, who follower) {
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

// followedBy is one subscription of a follower.
type followedBy struct {
	subscription
	who follower
}

// followedBy returns the subscriptions of the matching followers, each as often as it was
// made.
func (g *Gateway) followedBy(by func(follower) bool) []followedBy {
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

// handleNotification handles notifications that upstreams send outside of calls.
func (g *Gateway) handleNotification(name, client, method string, params json.RawMessage) {
	if method == "notifications/resources/updated" {
		g.notifyFollowers(subscription{name, jsonrpc.TextMember(params, "uri"), client})
		return
	}
	if d := g.downstreamOf(); d != nil && method == "notifications/message" && client != "" {
		d.forwardNotification(client, method, params)
	}
}

// notifyFollowers reports an update to each follower of a subscription under its own URI.
func (g *Gateway) notifyFollowers(key subscription) {
	g.mu.Lock()
	d := g.downstream
	followers := map[string]receivers{}
	if f := g.subscriptions[key]; f != nil {
		for who := range f.users {
			if followers[who.shown] == nil {
				followers[who.shown] = receivers{}
			}
			followers[who.shown][who.session] = true
		}
	}
	g.mu.Unlock()
	if d == nil {
		return
	}
	for uri, to := range followers {
		d.sendUpdate(uri, to)
	}
}

// SetLevel sets the log level of a client at the upstreams, in the client's own sessions.
func (g *Gateway) SetLevel(ctx context.Context, c *Client, level string) {
	var told sync.WaitGroup
	s, may := g.surfaceOf(c), g.accessOf(ctx)
	for _, m := range g.allMembers() {
		known := m.Known()
		if known == nil || !may.allowsPart(s, m) || known.Info.Capabilities.Logging == nil || known.Info.Version >= modernVersion {
			continue
		}
		want, parked := g.sessionFor(c, m, false)
		if want.Client == "" || parked {
			continue
		}
		told.Go(func() {
			s, done, err := m.Session(ctx, want)
			if err != nil {
				return
			}
			defer done()
			_, _ = s.Do(ctx, newUpstreamCall("logging/setLevel", jsonrpc.Member{Key: "level", Value: jsonrpc.Text(level)})) // An upstream may not support levels; errors have no effect.
		})
	}
	told.Wait()
}

// Release releases everything that belongs to a client, after its session has ended.
func (g *Gateway) Release(c *Client) {
	name := c.sharingKey()
	for _, each := range g.followedBy(func(who follower) bool { return who.client == name }) {
		g.removeFollower(each.subscription, each.who)
	}
	for _, m := range g.allMembers() {
		m.Upstream.Release(c.sharingKey())
	}
}
