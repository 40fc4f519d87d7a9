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
	// settleTime is how long after a change the lists are fetched: changes come
	// in swarms.
	settleTime = 100 * time.Millisecond
	// restTime is the least time between two fetches, whatever a server says of
	// changes.
	restTime = 500 * time.Millisecond
)

// Catalog gives what the server offers: what is known already, else what the
// server says now, in the session that is wanted where there is none yet.
func (u *Upstream) Catalog(ctx context.Context, want Want) (*Catalog, error) {
	if c := u.catalog.Load(); c != nil {
		return c, nil
	}
	return u.refresh(ctx, want)
}

// Known gives what is known of the server without asking it; nil is nothing.
func (u *Upstream) Known() *Catalog { return u.catalog.Load() }

// Discover has the server asked aside for what it offers, where nothing is known of it.
func (u *Upstream) Discover() {
	if u.catalog.Load() == nil {
		u.refreshSoon()
	}
}

// Refresh asks the server for what it offers.
func (u *Upstream) Refresh(ctx context.Context) (*Catalog, error) {
	return u.refresh(ctx, Want{})
}

// RefreshAll is Refresh as a client that could be asked anything, and answers nothing:
// a server may offer more to such a client.
func (u *Upstream) RefreshAll(ctx context.Context) (*Catalog, error) {
	return u.refresh(ctx, Want{
		Client: "review", Capabilities: json.RawMessage(`{"elicitation":{"form":{},"url":{}},"roots":{},"sampling":{}}`),
		Ask: func(_ context.Context, method string, _ json.RawMessage) (json.RawMessage, *jsonrpc.Error) {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "this client does not answer " + method}
		},
	})
}

func (u *Upstream) refresh(ctx context.Context, want Want) (*Catalog, error) {
	select {
	case u.fetching <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-u.fetching }()
	u.mark(true)
	session, done, err := u.anySession(ctx, want)
	if err != nil {
		u.mark(false)
		return nil, err
	}
	defer done()
	c, err := fetch(ctx, session)
	if err != nil {
		u.mark(false)
		return nil, u.describe(err)
	}
	c.SpecHash = u.spec.Hash() // and not that of the way which was found to reach it
	u.ask(ctx, session, c)
	before := u.catalog.Swap(c)
	if before != nil && before.same(c) {
		return c, nil
	}
	if err := c.save(u.opts.CacheDir, u.spec); err != nil {
		u.opts.Logger.Warn("what an upstream offers could not be kept", "upstream", u.spec.Name, "error", err)
	}
	if u.opts.Changed != nil {
		u.opts.Changed()
	}
	return c, nil
}

// mark notes that the catalog is being fetched, or that it could not be.
func (u *Upstream) mark(fresh bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.fresh = fresh
	if fresh {
		u.dirty = false
	}
}

// anySession gives a session that is there, whoever's it is, and starts the one
// that is wanted only where there is none. Some servers offer more to a client
// that can be asked, so a session of such a client comes before the shared one:
// else the lists would change with the session that happens to be asked.
func (u *Upstream) anySession(ctx context.Context, want Want) (*Session, func(), error) {
	u.mu.Lock()
	var found *slot
	best := ""
	before := func(a, b string) bool { // by what can be asked, which is at a key's end
		return cmp.Or(cmp.Compare(len(a)-len(clientOf(a)), len(b)-len(clientOf(b))), cmp.Compare(a, b)) < 0
	}
	for key, slots := range u.slots {
		for _, each := range slots {
			usable := each.session != nil && !each.session.goneAlready()
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
	u.use(found, nobody)
	u.mu.Unlock()
	return found.session, func() { u.giveBack(found, nobody) }, nil
}

// maxTellers bounds how many sessions are asked besides the one that is asked
// anyway.
const maxTellers = 4

// tells notes that a session has told of a change. A server on standard input and
// output is a process for each session, so that another one may know nothing of it.
func (u *Upstream) tells(from *slot) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.tellers = slices.DeleteFunc(u.tellers, func(s *slot) bool { return s == from })
	u.tellers = append([]*slot{from}, u.tellers[:min(len(u.tellers), maxTellers-1)]...)
}

// ask adds to what one session offers what those offer that have told of changes.
// One that does not answer is left out.
func (u *Upstream) ask(ctx context.Context, asked *Session, c *Catalog) {
	nobody := &Want{}
	u.mu.Lock()
	u.tellers = slices.DeleteFunc(u.tellers, func(s *slot) bool { return s.session == nil || s.session.goneAlready() })
	var others []*slot
	for _, each := range u.tellers {
		if each.session != asked {
			u.use(each, nobody)
			others = append(others, each)
		}
	}
	u.mu.Unlock()
	for _, each := range others {
		more, err := fetch(ctx, each.session)
		u.giveBack(each, nobody)
		if err != nil {
			u.opts.Logger.Debug("a session that told of changes has not said which", "upstream", u.spec.Name, "error", err)
			continue
		}
		c.merge(more)
	}
}

// same tells whether two catalogs offer the same.
func (c *Catalog) same(o *Catalog) bool {
	a, b := *c, *o
	a.Fetched, b.Fetched = time.Time{}, time.Time{}
	left, err := json.Marshal(a)
	right, err2 := json.Marshal(b)
	return err == nil && err2 == nil && string(left) == string(right)
}

// refreshSoon has the lists fetched after a while, once for all that asks in
// between.
func (u *Upstream) refreshSoon() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.dirty || u.closed {
		return
	}
	u.dirty = true
	u.wg.Add(1)
	go func() {
		defer u.wg.Done()
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
			u.opts.Logger.Warn("what an upstream offers could not be fetched", "upstream", u.spec.Name, "error", err)
		}
	}()
}

// follow listens to the changes of a server of the modern era, which tells them
// to whoever asks for them. In the legacy era they come by themselves.
func (u *Upstream) follow(s *Session, from *slot, client string) {
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
	u.wg.Add(1)
	go func() {
		defer u.wg.Done()
		s.listen(u.ctx, text, func(method string, params json.RawMessage) { u.notified(from, client, method, params) })
	}()
}

// listen follows a subscription for as long as the session lives.
func (s *Session) listen(ctx context.Context, wants json.RawMessage, notify func(string, json.RawMessage)) {
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

// Subscribe follows the updates of a resource until ctx ends, in the modern era.
func (s *Session) Subscribe(ctx context.Context, uri string, notify func(method string, params json.RawMessage)) {
	wants := jsonrpc.Object(jsonrpc.Member{Key: "resourceSubscriptions", Value: append(append(json.RawMessage{'['}, jsonrpc.Text(uri)...), ']')})
	s.listen(ctx, wants, notify)
}

// asWire gives the server's own error, or nil.
func asWire(err error) *jsonrpc.Error {
	var failure *jsonrpc.Error
	if errors.As(err, &failure) {
		return failure
	}
	return nil
}
