// Package upstream is one MCP server as a client sees it: how it is reached,
// what it offers, and calls to it. Servers are untrusted: everything that they
// send is bounded, and nothing of ours reaches them that their configuration
// does not name.
//
// Messages are read and written here and not by the SDK, because a call is to
// pass without being decoded, because what a server asks on the way of a call
// has to stay with that call, and because what a newer server says must not be
// lost; ADR 15 has the measurements.
package upstream

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/guideway-dev/guideway"
)

// Options say how servers are reached.
type Options struct {
	// Client is what we call ourselves; the name is "guideway" if empty.
	Client Implementation
	// Secrets looks up references in a spec.
	Secrets Secrets
	// CacheDir keeps catalogs from one start to the next; empty means that none
	// is kept.
	CacheDir string
	// Log gets every line that a server says on its error output.
	Log func(name, line string)
	// HTTP sends requests; nil is http.DefaultTransport.
	HTTP http.RoundTripper
	// StartTime bounds the start and the handshake, 30 seconds if zero.
	StartTime time.Duration
	// MaxMessageBytes bounds one message of a server, 16 MB if zero.
	MaxMessageBytes int
	// IdleTime is how long a session that belongs to a client is kept unused, 10
	// minutes if zero.
	IdleTime time.Duration
	// MaxSessions bounds the sessions with one server, 32 if zero.
	MaxSessions int
	// Changed is called when what the server offers may have changed. It must
	// not block.
	Changed func()
	// Notified gets notifications that belong to no call, with the client of
	// the session, "" for the shared one. It must not block.
	Notified func(client, method string, params json.RawMessage)
	// Logger gets what goes wrong; nil is silence.
	Logger *slog.Logger
}

// Upstream is one configured server. It is started when it is needed.
type Upstream struct {
	spec Spec
	opts Options
	log  *Ring

	catalog  atomic.Pointer[Catalog]
	fetching chan struct{} // one at a time

	mu       sync.Mutex
	slots    map[string][]*slot
	freed    chan struct{} // closed and renewed when a slot is given back
	closed   bool
	closing  chan struct{} // closed where closed is set
	failures int
	failedAt time.Time
	retryAt  time.Time
	lastErr  error
	restarts int
	pinged   *Pinged
	dirty    bool // a refresh is due
	// tellers are the sessions that have told of changes, the last one first.
	tellers []*slot
	fresh   bool // the catalog was fetched by this process
	// authorizer gets tokens, by what authorizedBy is the hash of.
	authorizer   *authorizer
	authorizedBy [sha256.Size]byte
	wg           sync.WaitGroup
	ctx          context.Context //nolint:containedctx // the life of the upstream
	cancel       context.CancelFunc
}

// slot is a session, or one that is being made.
type slot struct {
	ready   chan struct{}
	session *Session
	err     error
	users   int
	// watchers listen to the session without being at work in it.
	watchers int
	// asks has who can be asked now, one for each user that said so; mu of the
	// upstream guards it.
	asks  []*Asker
	idle  *time.Timer
	began time.Time
}

// New makes the upstream of a spec that was checked. It starts nothing.
func New(spec Spec, opts Options) *Upstream {
	if opts.Client.Name == "" {
		opts.Client.Name = "guideway"
	}
	if opts.HTTP == nil {
		opts.HTTP = http.DefaultTransport
	}
	opts.StartTime = or(opts.StartTime, 30*time.Second)
	opts.MaxMessageBytes = or(opts.MaxMessageBytes, 16<<20)
	opts.IdleTime = or(opts.IdleTime, 10*time.Minute)
	opts.MaxSessions = or(opts.MaxSessions, 32)
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	u := &Upstream{
		spec: spec, opts: opts, log: &Ring{}, slots: map[string][]*slot{},
		fetching: make(chan struct{}, 1), freed: make(chan struct{}), closing: make(chan struct{}),
	}
	if opts.Log != nil {
		u.log.Line = func(line string) { opts.Log(spec.Name, line) }
	}
	u.ctx, u.cancel = context.WithCancel(context.Background())
	if c := loadCatalog(opts.CacheDir, spec); c != nil {
		u.catalog.Store(c)
	}
	return u
}

func or[T comparable](value, fallback T) T {
	var zero T
	if value == zero {
		return fallback
	}
	return value
}

// Name is the name of the server.
func (u *Upstream) Name() string { return u.spec.Name }

// Spec says how the server is reached.
func (u *Upstream) Spec() Spec { return u.spec }

// Log gives the last lines that the server has said.
func (u *Upstream) Log(n int) []string { return u.log.Last(n) }

// Want says which session a call needs.
type Want struct {
	// Client is whom the session belongs to; "" is the one that all share,
	// which can ask nobody.
	Client string
	// Alone keeps other calls of the client off the session until it is given
	// back, so that what the server asks can only belong to this one.
	Alone bool
	// Watch only listens to what the session tells: it keeps nobody's calls off, and
	// may be given another session at any time.
	Watch bool
	// Capabilities are what the server may ask for, an object; for the legacy
	// era, which says so once.
	Capabilities json.RawMessage
	// Ask answers it.
	Ask Asker
}

// key tells which sessions a want can share.
func (w *Want) key() string { return w.Client + "\x00" + string(w.Capabilities) }

// clientOf is whose the sessions of a key are; names of clients may have a NUL, and
// capabilities have none.
func clientOf(key string) string { return key[:strings.LastIndexByte(key, 0)] }

// Session gives a session, starting one where it must; done gives it back.
func (u *Upstream) Session(ctx context.Context, want Want) (s *Session, done func(), err error) {
	patience := time.NewTimer(or(u.spec.Timeout, defaultTimeout))
	defer patience.Stop()
	for {
		slot, full, err := u.take(want)
		if err != nil {
			return nil, nil, err
		}
		if slot == nil {
			select {
			case <-full:
				continue
			case <-patience.C:
				return nil, nil, guideway.Errorf(guideway.CodeUnavailable, "the call was not sent: every session that this client may have with the upstream %s is at work, or waits for an answer", u.spec.Name).
					WithFix("answer the open questions, or call again later")
			case <-ctx.Done():
				return nil, nil, context.Cause(ctx)
			}
		}
		select {
		case <-slot.ready:
		case <-ctx.Done():
			u.giveBack(slot, &want)
			return nil, nil, context.Cause(ctx)
		}
		if slot.err != nil {
			u.giveBack(slot, &want)
			return nil, nil, slot.err
		}
		select {
		case <-slot.session.Done():
			u.giveBack(slot, &want) // it has ended in between; the next one is new
			continue
		default:
		}
		var once sync.Once
		return slot.session, func() { once.Do(func() { u.giveBack(slot, &want) }) }, nil
	}
}

// take finds or makes a slot. full is a channel to wait for where all are taken.
func (u *Upstream) take(want Want) (*slot, <-chan struct{}, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return nil, nil, guideway.Errorf(guideway.CodeUnavailable, "the upstream %s was removed or is being restarted", u.spec.Name).
			WithFix("list the tools again")
	}
	key := want.key()
	total, mine := 0, 0
	for other, slots := range u.slots {
		if clientOf(other) == want.Client {
			mine += len(slots)
		}
		for _, each := range slots {
			total++
			if other == key && (!want.Alone || each.users == 0) {
				u.use(each, &want)
				return each, nil, nil
			}
		}
	}
	// The session that all share is there for whoever has none; of the others a client
	// has a part, so that none keeps them from others by questions that it leaves open.
	if want.Client != "" {
		if mine >= max(2, u.opts.MaxSessions/2) && !u.evict(want.Client) || total >= u.opts.MaxSessions && !u.evict("") {
			return nil, u.freed, nil
		}
	}
	if left := time.Until(u.retryAt); left > 0 {
		return nil, nil, &NoAnswer{Err: guideway.Errorf(guideway.CodeUnavailable, "the upstream %s has failed %d times; it is tried again in %s: %w",
			u.spec.Name, u.failures, max(time.Second, left.Round(time.Second)), u.lastErr).WithFix("%s", u.fixOf(u.lastErr))}
	}
	made := &slot{ready: make(chan struct{}), began: time.Now()}
	u.slots[key] = append(u.slots[key], made)
	u.use(made, &want)
	u.wg.Add(1)
	go func() {
		defer u.wg.Done()
		u.start(made, key, want)
	}()
	return made, nil, nil
}

func (u *Upstream) fixOf(err error) string {
	switch fix := guideway.ErrorFix(err); {
	case fix != "":
		return fix
	case u.spec.Command == "": // nothing of it is in a log of ours
		return "see whether an MCP server runs at its address"
	}
	return "guideway upstream logs " + u.spec.Name
}

// use counts a user. mu is held.
func (u *Upstream) use(s *slot, want *Want) {
	if want.Watch {
		s.watchers++
	} else {
		s.users++
	}
	if s.idle != nil {
		s.idle.Stop()
	}
	if want.Ask != nil {
		s.asks = append(s.asks, &want.Ask)
	}
}

// evict makes room by ending a session that nobody uses, one of a client if it is named.
// mu is held.
func (u *Upstream) evict(client string) bool {
	var found *slot
	var of string
	for key, slots := range u.slots {
		for _, each := range slots {
			if each.users > 0 || client != "" && clientOf(key) != client || each.session == nil {
				continue
			}
			if found == nil || each.watchers < found.watchers {
				found, of = each, key
			}
		}
	}
	if found == nil {
		return false
	}
	u.drop(of, found)
	go found.session.Close()
	return true
}

// drop forgets a slot. mu is held.
func (u *Upstream) drop(key string, s *slot) {
	u.slots[key] = slices.DeleteFunc(u.slots[key], func(o *slot) bool { return o == s })
	if len(u.slots[key]) == 0 {
		delete(u.slots, key)
	}
	if s.idle != nil {
		s.idle.Stop()
	}
}

// giveBack counts a user less. A client's session that nobody uses ends after a
// time.
func (u *Upstream) giveBack(s *slot, want *Want) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if want.Watch {
		s.watchers--
	} else {
		s.users--
	}
	s.asks = slices.DeleteFunc(s.asks, func(a *Asker) bool { return a == &want.Ask })
	if s.users > 0 {
		return
	}
	close(u.freed)
	u.freed = make(chan struct{})
	for key, slots := range u.slots {
		if key == (&Want{}).key() || !slices.Contains(slots, s) || s.session == nil || s.watchers > 0 {
			continue
		}
		s.idle = time.AfterFunc(u.opts.IdleTime, func() {
			u.mu.Lock()
			unused := s.users == 0 && s.watchers == 0
			if unused {
				u.drop(key, s)
			}
			u.mu.Unlock()
			if unused {
				s.session.Close()
			}
		})
	}
}

// Release ends the sessions of a client.
func (u *Upstream) Release(client string) {
	u.mu.Lock()
	var over []*Session
	for key, slots := range u.slots {
		for _, each := range slices.Clone(slots) {
			if client != "" && clientOf(key) == client && each.users == 0 {
				u.drop(key, each)
				if each.session != nil {
					over = append(over, each.session)
				}
			}
		}
	}
	u.mu.Unlock()
	for _, s := range over {
		s.Close()
	}
}

// stableTime is how long a server must have run for its end to count as the
// first failure.
const stableTime = 30 * time.Second

// sameTime is how long after a failure what else was there has part in it.
const sameTime = 5 * time.Second

// failed notes a failure of what began at a time, and when to try again: after a second,
// two, four, up to a minute. Where a server goes with several sessions, that is one
// failure. mu is held.
func (u *Upstream) failed(err error, began time.Time, ran time.Duration) {
	now := time.Now()
	if began.Before(u.failedAt) && now.Sub(u.failedAt) < sameTime {
		u.lastErr = err
		return
	}
	u.failedAt = now
	if ran > stableTime {
		u.failures = 0
	}
	u.failures++
	u.lastErr = err
	if u.failures > 1 || ran == 0 {
		u.retryAt = now.Add(min(time.Second<<min(u.failures-1, 6), time.Minute))
	}
}

// Close ends the upstream. Calls under way have until ctx ends to be answered;
// new ones are refused.
func (u *Upstream) Close(ctx context.Context) {
	u.mu.Lock()
	if !u.closed {
		u.closed = true
		close(u.closing)
	}
	u.mu.Unlock()
	for u.busy() {
		u.mu.Lock()
		freed := u.freed
		u.mu.Unlock()
		if !u.busy() {
			break
		}
		select {
		case <-freed:
			continue
		case <-ctx.Done():
		}
		break
	}
	u.cancel()
	u.mu.Lock()
	var all []*Session
	for _, slots := range u.slots {
		for _, each := range slots {
			if each.idle != nil {
				each.idle.Stop()
			}
			if each.session != nil {
				all = append(all, each.session)
			}
		}
	}
	u.mu.Unlock()
	var ends sync.WaitGroup
	for _, s := range all {
		ends.Go(s.Close)
	}
	ends.Wait()
	u.wg.Wait()
}

// Closing is closed when the upstream begins to end: whoever uses a session for more
// than a call gives it back then.
func (u *Upstream) Closing() <-chan struct{} { return u.closing }

func (u *Upstream) busy() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, slots := range u.slots {
		for _, each := range slots {
			if each.users > 0 {
				return true
			}
		}
	}
	return false
}

// Condition is how an upstream is.
type Condition string

// The conditions.
const (
	// ConditionIdle is not started: nobody has needed it.
	ConditionIdle Condition = "idle"
	// ConditionRunning has a session.
	ConditionRunning Condition = "running"
	// ConditionFailed has failed and is tried again later.
	ConditionFailed Condition = "failed"
)

// Health is how an upstream is.
type Health struct {
	Condition Condition `json:"condition"`
	Error     string    `json:"error,omitempty"`
	Sessions  int       `json:"sessions"`
	Restarts  int       `json:"restarts"`
	// Failures counts the failures in a row, and RetryAt is when it is tried
	// again at the earliest.
	Failures int        `json:"failures,omitempty"`
	RetryAt  *time.Time `json:"retryAt,omitempty"`
	// Pinged is what the last ping found; nil where none was sent.
	Pinged *Pinged `json:"pinged,omitempty"`
}

// Health tells how the upstream is.
func (u *Upstream) Health() Health {
	u.mu.Lock()
	defer u.mu.Unlock()
	h := Health{Condition: ConditionIdle, Restarts: u.restarts}
	for _, slots := range u.slots {
		for _, each := range slots {
			if each.session != nil {
				h.Sessions++
			}
		}
	}
	if u.pinged != nil {
		copied := *u.pinged
		h.Pinged = &copied
	}
	switch {
	case h.Sessions > 0:
		h.Condition = ConditionRunning
	case u.lastErr != nil:
		h.Condition, h.Error, h.Failures = ConditionFailed, u.lastErr.Error(), u.failures
		if u.retryAt.After(time.Now()) {
			at := u.retryAt
			h.RetryAt = &at
		}
	}
	return h
}

var errClosed = errors.New("the upstream was closed")

func (u *Upstream) describe(err error) error {
	wrapped := guideway.Errorf(guideway.CodeUnavailable, "the upstream %s cannot be used: %w", u.spec.Name, err)
	if code := guideway.ErrorCode(err); code != guideway.CodeInternal {
		wrapped.Code = code
	}
	return &NoAnswer{Err: wrapped.WithFix("%s", u.fixOf(err))}
}
