package upstream

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
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

// Catalog returns the known catalog. If it is unknown, Catalog fetches it, in the wanted
// session if there is no session yet.
func (u *Upstream) Catalog(ctx context.Context, want Want) (*Catalog, error) {
	if c := u.catalog.Load(); c != nil {
		return c, nil
	}
	return u.fetchLists(ctx, want)
}

// Known returns the known catalog without asking the server, or nil.
func (u *Upstream) Known() *Catalog { return u.catalog.Load() }

// Discover fetches the catalog in the background if it is unknown.
func (u *Upstream) Discover() {
	if u.catalog.Load() == nil {
		u.refreshSoon()
	}
}

// Refresh fetches the catalog.
func (u *Upstream) Refresh(ctx context.Context) (*Catalog, error) {
	return u.fetchLists(ctx, Want{})
}

// RefreshAll fetches the catalog as a client that declares all capabilities, because a
// server may offer more to such a client. It answers no questions.
func (u *Upstream) RefreshAll(ctx context.Context) (*Catalog, error) {
	return u.fetchLists(ctx, Want{
		Client: "review", Capabilities: json.RawMessage(`{"elicitation":{"form":{},"url":{}},"roots":{},"sampling":{}}`),
		Ask: func(_ context.Context, method string, _ json.RawMessage) (json.RawMessage, *jsonrpc.Error) {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "this client does not answer " + method}
		},
	})
}

func (u *Upstream) fetchLists(ctx context.Context, want Want) (*Catalog, error) {
	select {
	case u.fetching <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-u.fetching }()
	u.markFresh(true)
	session, done, err := u.anySession(ctx, want)
	if err != nil {
		u.markFresh(false)
		return nil, err
	}
	defer done()
	c, err := fetchCatalog(ctx, session)
	if err != nil {
		u.markFresh(false)
		return nil, u.describeError(err)
	}
	c.SpecHash = u.spec.Hash() // SpecHash must not depend on the detected transport.
	u.mergeTellers(ctx, session, c)
	before := u.catalog.Swap(c)
	if before != nil && before.equal(c) {
		return c, nil
	}
	if err := c.save(u.opts.CacheDir, u.spec); err != nil {
		u.opts.Logger.Warn("the catalog of an upstream could not be cached", "upstream", u.spec.Name, "error", err)
	}
	if u.opts.Changed != nil {
		u.opts.Changed()
	}
	return c, nil
}

// markFresh records whether the catalog was fetched.
func (u *Upstream) markFresh(fresh bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.fresh = fresh
	if fresh {
		u.dirty = false
	}
}

// anySession returns an existing session of any client, and starts the wanted one only if
// none exists. A session of a client that can be asked for input is preferred to the shared
// one, because some servers offer more in it; otherwise the lists would depend on the
// session.
func (u *Upstream) anySession(ctx context.Context, want Want) (*Session, func(), error) {
	u.mu.Lock()
	var found *slot
	best := ""
	before := func(a, b string) bool { // compares the capabilities, which are at the end of a key
		return cmp.Or(cmp.Compare(len(a)-len(clientOf(a)), len(b)-len(clientOf(b))), cmp.Compare(a, b)) < 0
	}
	for key, slots := range u.slots {
		for _, each := range slots {
			usable := each.session != nil && !each.session.hasEnded()
			if usable && (found == nil || before(best, key)) {
				found, best = each, key
			}
		}
	}
	if found == nil {
		u.mu.Unlock()
		return u.Session(ctx, want)
	}
	nobody := &Want{}
	u.addUser(found, nobody)
	u.mu.Unlock()
	return found.session, func() { u.giveBack(found, nobody) }, nil
}

// maxTellers is the maximum number of additional sessions whose lists are fetched.
const maxTellers = 4

// addTeller adds a session that has reported a change. A stdio server runs one process per
// session, so other sessions may not have the change.
func (u *Upstream) addTeller(from *slot) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.tellers = slices.DeleteFunc(u.tellers, func(s *slot) bool { return s == from })
	u.tellers = append([]*slot{from}, u.tellers[:min(len(u.tellers), maxTellers-1)]...)
}

// mergeTellers adds the entries of the sessions that have reported changes. It omits a
// session that does not answer.
func (u *Upstream) mergeTellers(ctx context.Context, asked *Session, c *Catalog) {
	nobody := &Want{}
	u.mu.Lock()
	u.tellers = slices.DeleteFunc(u.tellers, func(s *slot) bool { return s.session == nil || s.session.hasEnded() })
	var others []*slot
	for _, each := range u.tellers {
		if each.session != asked {
			u.addUser(each, nobody)
			others = append(others, each)
		}
	}
	u.mu.Unlock()
	for _, each := range others {
		more, err := fetchCatalog(ctx, each.session)
		u.giveBack(each, nobody)
		if err != nil {
			u.opts.Logger.Debug("a session that reported changes did not list them", "upstream", u.spec.Name, "error", err)
			continue
		}
		c.merge(more)
	}
}

// equal reports whether two catalogs have the same entries.
func (c *Catalog) equal(o *Catalog) bool {
	a, b := *c, *o
	a.Fetched, b.Fetched = time.Time{}, time.Time{}
	left, err := json.Marshal(a)
	right, err2 := json.Marshal(b)
	return err == nil && err2 == nil && string(left) == string(right)
}

// refreshSoon fetches the lists after a delay. Several calls within the delay cause one
// fetch.
func (u *Upstream) refreshSoon() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.dirty || u.closed {
		return
	}
	u.dirty = true
	u.wg.Go(func() {
		delay := settleTime
		if c := u.catalog.Load(); c != nil {
			if left := time.Until(c.Fetched.Add(restTime)); left > delay && left <= restTime {
				delay = left
			}
		}
		if ctxsleep.For(u.ctx, delay) != nil {
			return
		}
		if _, err := u.Refresh(u.ctx); err != nil && u.ctx.Err() == nil {
			u.mu.Lock()
			u.dirty = false
			u.mu.Unlock()
			u.opts.Logger.Warn("the catalog of an upstream could not be fetched", "upstream", u.spec.Name, "error", err)
		}
	})
}

// followChanges subscribes to the list changes of a modern server. A legacy server reports
// them without a subscription.
func (u *Upstream) followChanges(s *Session, from *slot, client string) {
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
		s.keepSubscribed(u.ctx, text, func(method string, params json.RawMessage) { u.handleNotification(from, client, method, params) })
	})
}

// keepSubscribed keeps a subscription while the session exists.
func (s *Session) keepSubscribed(ctx context.Context, wants json.RawMessage, notify func(string, json.RawMessage)) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-s.gone:
			cancel()
		case <-ctx.Done():
		}
	}()
	for delay := time.Second; ctx.Err() == nil; delay = min(2*delay, time.Minute) {
		_, err := s.Do(ctx, Call{
			Method: "subscriptions/listen", Endless: true, Notify: notify,
			Members: []jsonrpc.Member{{Key: "notifications", Value: wants}},
		})
		if failure := asWire(err); failure != nil && failure.Code == jsonrpc.CodeMethodNotFound {
			return
		}
		if ctxsleep.For(ctx, delay) != nil {
			return
		}
	}
}

// Subscribe subscribes to the updates of a resource until ctx ends, in a modern session.
func (s *Session) Subscribe(ctx context.Context, uri string, notify func(method string, params json.RawMessage)) {
	wants := jsonrpc.Object(jsonrpc.Member{Key: "resourceSubscriptions", Value: append(append(json.RawMessage{'['}, jsonrpc.Text(uri)...), ']')})
	s.keepSubscribed(ctx, wants, notify)
}

// asWire returns the server's own error, or nil.
func asWire(err error) *jsonrpc.Error {
	var failure *jsonrpc.Error
	if errors.As(err, &failure) {
		return failure
	}
	return nil
}
