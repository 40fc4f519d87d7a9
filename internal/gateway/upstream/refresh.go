package upstream

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
	"github.com/guideway-dev/guideway/internal/platform/ctxsleep"
)

const (
	// settleTime is the delay between a change and fetching the lists, because changes come
	// in groups.
	settleTime = 100 * time.Millisecond
	// restTime is the minimum time between two fetches, however often a server reports
	// changes.
	restTime = 500 * time.Millisecond
)

// lists holds the lists that the server offers to one client in the client's own sessions,
// or to all clients without sessions of their own.
type lists struct {
	fetching chan struct{} // fetching allows one fetch at a time.
	catalog  atomic.Pointer[Catalog]

	// The mutex of the upstream guards the following fields.

	// personal reports that the sessions use the login of a person.
	personal bool
	dirty    bool // dirty reports that a refresh is due.
	// source is the owner of the sessions that were asked last. fresh is set when they are
	// asked, and reset when one of them ends: the next process of the server may offer
	// other lists.
	source string
	fresh  bool
	// asked is the time of the last successful fetch.
	asked time.Time
}

func newLists(c *Catalog) *lists {
	l := &lists{fetching: make(chan struct{}, 1)}
	if c != nil {
		l.asked = c.Fetched
	}
	l.catalog.Store(c)
	return l
}

// lister is the client name of the session that Lister describes.
const lister = "lists"

// Lister returns the want of a session that belongs to no client and answers no questions.
// It declares the capabilities, or, if they are nil, those for all input requests, because
// a server may offer more to a client with capabilities.
func Lister(capabilities json.RawMessage) Want {
	if capabilities == nil {
		capabilities = json.RawMessage(`{"elicitation":{"form":{},"url":{}},"roots":{},"sampling":{}}`)
	}
	return Want{
		Client: lister, Capabilities: capabilities,
		Ask: func(_ context.Context, method string, _ json.RawMessage) (json.RawMessage, *jsonrpc.Error) {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "this client does not answer " + method}
		},
	}
}

// plain is the client name of the session that Plain describes.
const plain = "plain"

// Plain returns the want of calls that every protocol version carries alike: no answers to
// questions, extensions or log messages. On stdio all of them share a process of their own in
// the newest legacy version if the server supports it, because a server can need a third more
// time for a modern call (ADR 33). Otherwise they use the shared session.
func (u *Upstream) Plain() Want {
	if known := u.Known(); known != nil && known.Info.Earlier && u.spec.Kind() == TransportStdio && u.spec.Protocol == "" {
		return Want{Client: plain}
	}
	return Want{}
}

// isShared reports whether sessions belong to no client and stay open.
func isShared(client string) bool { return client == "" || client == plain }

// listsOf returns the lists that the sessions of a client determine; nil if the client has no
// session. The caller holds mu.
func (u *Upstream) listsOf(client string) *lists {
	if isShared(client) || client == lister {
		return u.shared
	}
	return u.own[client]
}

// dropLists forgets the lists of a client without sessions. The caller holds mu.
func (u *Upstream) dropLists(client string) {
	for key := range u.slots {
		if clientOf(key) == client {
			return
		}
	}
	l := u.own[client]
	delete(u.own, client)
	if l != nil && l.catalog.Load() != nil && !u.closed && u.opts.Changed != nil {
		go u.opts.Changed() // in a goroutine, because the caller holds mu
	}
}

// Catalog returns the known catalog. If it is unknown, Catalog fetches it, in the wanted
// session if neither the shared session nor the session of Lister exists. A catalog that
// all clients see must not come from a client's own session, because its lists can contain
// the client's data.
func (u *Upstream) Catalog(ctx context.Context, want Want) (*Catalog, error) {
	if c := u.shared.catalog.Load(); c != nil {
		return c, nil
	}
	return u.Refresh(ctx, want)
}

// Known returns the known catalog without asking the server, or nil.
func (u *Upstream) Known() *Catalog { return u.shared.catalog.Load() }

// Own returns the known catalogs of the clients with sessions of their own.
func (u *Upstream) Own() map[string]*Catalog {
	u.mu.Lock()
	defer u.mu.Unlock()
	known := map[string]*Catalog{}
	for client, l := range u.own {
		if c := l.catalog.Load(); c != nil {
			known[client] = c
		}
	}
	return known
}

// OwnOf reports whether a client has a session of its own, and returns the catalog of its
// sessions if it is known.
func (u *Upstream) OwnOf(client string) (c *Catalog, has bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	l := u.own[client]
	if l == nil {
		return nil, false
	}
	return l.catalog.Load(), true
}

// IsPersonal reports whether the sessions of a client use the login of a person.
func (u *Upstream) IsPersonal(client string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.own[client] != nil && u.own[client].personal
}

// OpenOwn starts a session of a client, and fetches its lists.
func (u *Upstream) OpenOwn(ctx context.Context, want Want) error {
	_, done, err := u.Session(ctx, want)
	if err != nil {
		return err
	}
	defer done()
	return u.FetchOwn(ctx, want.Client)
}

// FetchOwn fetches the lists of a client with a session of its own. If they are unknown and
// cannot be fetched, the client sees the lists of all clients, unless the session uses the login
// of a person.
func (u *Upstream) FetchOwn(ctx context.Context, client string) error {
	u.mu.Lock()
	l := u.own[client]
	u.mu.Unlock()
	if l == nil {
		return nil
	}
	_, err := u.fetchLists(ctx, l, client, Want{})
	if err != nil {
		u.opts.Logger.Debug("the lists of a client's own session could not be fetched", "upstream", u.spec.Name, "error", err)
		if !u.IsPersonal(client) {
			l.catalog.CompareAndSwap(nil, u.shared.catalog.Load())
		}
	}
	return err
}

// Discover fetches the catalog in the background if it is unknown.
func (u *Upstream) Discover(want Want) {
	if u.shared.catalog.Load() == nil {
		u.refreshSoon("", want)
	}
}

// Refresh fetches the catalog, in the wanted session if neither the shared session nor the
// session of Lister exists.
func (u *Upstream) Refresh(ctx context.Context, want Want) (*Catalog, error) {
	return u.fetchLists(ctx, u.shared, "", want)
}

func (u *Upstream) fetchLists(ctx context.Context, l *lists, client string, want Want) (*Catalog, error) {
	select {
	case l.fetching <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-l.fetching }()
	c, err := u.queryLists(ctx, l, client, want)
	if err != nil {
		u.mu.Lock()
		l.fresh = false
		u.mu.Unlock()
		return nil, err
	}
	c.SpecHash = u.spec.Hash() // SpecHash must not depend on the detected transport.
	before, shared := l.catalog.Load(), u.shared.catalog.Load()
	u.mu.Lock()
	l.asked = time.Now()
	sharedAge := l.asked.Sub(u.shared.asked)
	u.mu.Unlock()
	if before != nil && before.equal(c) {
		if l == u.shared {
			u.replaceShared(before, c)
		}
		return c, nil
	}
	switch {
	case l == u.shared:
		if err := c.save(u.opts.CacheDir, u.spec); err != nil {
			u.opts.Logger.Warn("the catalog of an upstream could not be cached", "upstream", u.spec.Name, "error", err)
		}
	case shared != nil && shared.equal(c):
		c = shared
	case sharedAge > u.opts.IdleTime: // The server may have changed since the shared lists were fetched.
		u.refreshSoon("", Lister(nil))
	}
	l.catalog.Store(c)
	if u.opts.Changed != nil {
		u.opts.Changed()
	}
	return c, nil
}

// replaceShared replaces the shared catalog by an equal, newer one.
func (u *Upstream) replaceShared(before, c *Catalog) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.shared.catalog.Store(c)
	for _, l := range u.own {
		l.catalog.CompareAndSwap(before, c)
	}
}

// maxListed is the maximum number of sessions of one client whose lists are fetched.
const maxListed = 4

// queryLists asks the sessions of a client for their lists. A stdio server runs one process
// per session, so the lists of one client's sessions may differ.
func (u *Upstream) queryLists(ctx context.Context, l *lists, client string, want Want) (*Catalog, error) {
	nobody := &Want{Watch: true} // Lists must not keep calls from a session.
	u.mu.Lock()
	found := u.liveSlots(client)
	l.source = client
	if l == u.shared && len(found) == 0 {
		if found = u.liveSlots(lister); len(found) > 0 || want.Client != "" {
			l.source = lister
		}
	}
	l.dirty, l.fresh = false, true
	found = found[:min(len(found), maxListed)]
	for _, each := range found {
		u.addUser(each, nobody)
	}
	u.mu.Unlock()
	if len(found) == 0 {
		if l != u.shared {
			return nil, errors.New("the client has no usable session")
		}
		session, done, err := u.Session(ctx, want)
		if err != nil {
			return nil, err
		}
		defer done()
		c, err := fetchCatalog(ctx, session)
		if err != nil {
			return nil, u.describeError(err)
		}
		return c, nil
	}
	var c *Catalog
	var first error
	for _, each := range found {
		more, err := fetchCatalog(ctx, each.session)
		u.giveBack(each, nobody)
		switch {
		case err != nil:
			first = cmp.Or(first, u.describeError(err))
		case c == nil:
			c = more
		default:
			c.Merge(more)
		}
	}
	if c == nil {
		return nil, first
	}
	return c, nil
}

// liveSlots returns the usable sessions of a client, the newest first. The caller holds mu.
func (u *Upstream) liveSlots(client string) []*slot {
	var found []*slot
	for key, slots := range u.slots {
		if clientOf(key) != client {
			continue
		}
		for _, each := range slots {
			if each.session != nil && !each.session.hasEnded() {
				found = append(found, each)
			}
		}
	}
	slices.SortFunc(found, func(a, b *slot) int { return b.began.Compare(a.began) })
	return found
}

// equal reports whether two catalogs are equal except for the times when they were fetched.
func (c *Catalog) equal(o *Catalog) bool {
	a, b := *c, *o
	a.Fetched, b.Fetched = time.Time{}, time.Time{}
	left, err := json.Marshal(a)
	right, err2 := json.Marshal(b)
	return err == nil && err2 == nil && string(left) == string(right)
}

// refreshSoon fetches the lists that the sessions of a client determine. It starts after a
// delay, in the background; several calls within the delay cause one fetch.
func (u *Upstream) refreshSoon(client string, want Want) {
	u.mu.Lock()
	defer u.mu.Unlock()
	l := u.listsOf(client)
	if l == nil || l.dirty || u.closed {
		return
	}
	if l == u.shared {
		client = ""
	}
	l.dirty = true
	delay := settleTime
	if left := time.Until(l.asked.Add(restTime)); left > delay && left <= restTime {
		delay = left
	}
	u.wg.Go(func() {
		if ctxsleep.For(u.ctx, delay) != nil {
			return
		}
		if l != u.shared {
			_ = u.FetchOwn(u.ctx, client) // it logs the error
			return
		}
		if _, err := u.Refresh(u.ctx, want); err != nil && u.ctx.Err() == nil {
			u.mu.Lock()
			l.dirty = false
			u.mu.Unlock()
			u.opts.Logger.Warn("the catalog of an upstream could not be fetched", "upstream", u.spec.Name, "error", err)
		}
	})
}

// followChanges subscribes to the list changes of a modern server. A legacy server reports
// them without a subscription.
func (u *Upstream) followChanges(s *Session, client string) {
	can := s.Info().Capabilities
	wants := map[string]bool{}
	if can.Tools != nil && can.Tools.ListChanged {
		wants["toolsListChanged"] = true
	}
	if can.Prompts != nil && can.Prompts.ListChanged {
		wants["promptsListChanged"] = true
	}
	if can.Resources != nil && can.Resources.ListChanged {
		wants["resourcesListChanged"] = true
	}
	if !s.Modern() || len(wants) == 0 {
		return
	}
	text, err := json.Marshal(wants)
	if err != nil {
		return
	}
	u.wg.Go(func() {
		s.keepSubscribed(u.ctx, text, func(method string, params json.RawMessage) { u.handleNotification(client, method, params) },
			func() { u.listAgain(client) })
	})
}

// subscribed is the notification with which a server confirms a subscription.
const subscribed = "notifications/subscriptions/acknowledged"

// keepSubscribed keeps a subscription while the session exists. After each interruption it
// calls missed, because the server does not report earlier changes: when the server confirms
// the new subscription, and also before it if the server itself ended the last one. On stdio,
// a confirmation does not name its subscription.
func (s *Session) keepSubscribed(ctx context.Context, wants json.RawMessage, notify func(string, json.RawMessage), missed func()) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-s.gone:
			cancel()
		case <-ctx.Done():
		}
	}()
	interrupted := false
	for delay := time.Second; ctx.Err() == nil; delay = min(2*delay, time.Minute) {
		_, err := s.Do(ctx, Call{
			Method: "subscriptions/listen", Endless: true,
			Notify: func(method string, params json.RawMessage) {
				if method == subscribed && interrupted {
					missed()
				}
				notify(method, params)
			},
			Members: []jsonrpc.Member{{Key: "notifications", Value: wants}},
		})
		if failure := asWire(err); failure != nil && failure.Code == jsonrpc.CodeMethodNotFound {
			return
		}
		interrupted = true
		if ctxsleep.For(ctx, delay) != nil {
			return
		}
		if err == nil {
			missed()
		}
	}
}

// Subscribe subscribes to the updates of a resource until ctx ends, in a modern session. It
// reports an update after each interruption.
func (s *Session) Subscribe(ctx context.Context, uri string, notify func(method string, params json.RawMessage)) {
	wants := jsonrpc.Object(jsonrpc.Member{Key: "resourceSubscriptions", Value: append(append(json.RawMessage{'['}, jsonrpc.Text(uri)...), ']')})
	s.keepSubscribed(ctx, wants, notify, func() {
		notify("notifications/resources/updated", jsonrpc.Object(jsonrpc.Member{Key: "uri", Value: jsonrpc.Text(uri)}))
	})
}

// asWire returns the server's own error, or nil.
func asWire(err error) *jsonrpc.Error {
	var failure *jsonrpc.Error
	if errors.As(err, &failure) {
		return failure
	}
	return nil
}
