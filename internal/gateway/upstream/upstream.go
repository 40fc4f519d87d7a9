// Package upstream is an MCP client for one server: its connection, its catalog and calls
// to it. Servers are untrusted: everything that they send is limited, and they get only the
// secrets and variables that their configuration names.
//
// The package does not use the SDK to read or write messages: calls must pass without being
// decoded, a server's question during a call must stay with that call, and members of newer
// protocol versions must not be lost. ADR 15 has the measurements.
package upstream

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
)

// Options configure upstreams.
type Options struct {
	// Client is the name and version of this client; the name is "guideway" if empty.
	Client Implementation
	// Secrets resolves the references in a spec.
	Secrets Secrets
	// Logins stores the logins of people; may be nil.
	Logins *Logins
	// CacheDir caches catalogs between starts; if empty, they are not cached.
	CacheDir string
	// Log gets every line of a server's stderr.
	Log func(name, line string)
	// HTTP sends requests; http.DefaultTransport if nil.
	HTTP http.RoundTripper
	// StartTime is the maximum time of the start and the handshake, 30 seconds if zero.
	StartTime time.Duration
	// MaxMessageBytes is the maximum size of a server's message, 16 MB if zero.
	MaxMessageBytes int
	// IdleTime is the time after which an unused session of a client is closed, 10 minutes
	// if zero.
	IdleTime time.Duration
	// MaxSessions is the maximum number of sessions of a person, and of shared and local
	// sessions, with one server, 32 if zero.
	MaxSessions int
	// Changed is called when the server's lists may have changed. It must not block.
	Changed func()
	// Notified gets notifications that belong to no call, with the client of the session,
	// "" for the shared one. It must not block.
	Notified func(client, method string, params json.RawMessage)
	// Logger logs errors; may be nil.
	Logger *slog.Logger
}

// Upstream is one configured server. It is started on first use.
type Upstream struct {
	spec Spec
	opts Options
	log  *Ring

	// shared are the lists that clients without a session of their own see.
	shared *lists

	mu sync.Mutex
	// own holds the lists of the clients with sessions of their own.
	own      map[string]*lists
	slots    map[string][]*slot
	freed    chan struct{} // freed is closed and replaced when a slot is given back.
	closed   bool
	closing  chan struct{} // closing is closed when closed is set.
	failures int
	failedAt time.Time
	retryAt  time.Time
	lastErr  error
	// refused reports that the last failure is the refusal of a credential.
	refused  bool
	restarts int
	pinged   *Pinged
	// authorizers request the tokens of each person, and those that all clients share.
	authorizers map[string]*authorizer
	wg          sync.WaitGroup
	ctx         context.Context //nolint:containedctx // the life of the upstream
	cancel      context.CancelFunc
}

// slot is a session that exists or is being started.
type slot struct {
	// user is the person whose login the session uses.
	user    string
	ready   chan struct{}
	session *Session
	err     error
	users   int
	// watchers listen to the session without making calls.
	watchers int
	// asks holds the functions that answer questions for the current users of the session;
	// mu of the upstream guards it.
	asks  []*Asker
	idle  *time.Timer
	began time.Time
}

// New returns the upstream of a valid spec. It starts nothing.
func New(spec Spec, opts Options) *Upstream {
	if opts.Client.Name == "" {
		opts.Client.Name = "guideway"
	}
	if opts.HTTP == nil {
		opts.HTTP = http.DefaultTransport
	}
	opts.StartTime = cmp.Or(opts.StartTime, 30*time.Second)
	opts.MaxMessageBytes = cmp.Or(opts.MaxMessageBytes, 16<<20)
	opts.IdleTime = cmp.Or(opts.IdleTime, 10*time.Minute)
	opts.MaxSessions = cmp.Or(opts.MaxSessions, 32)
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	u := &Upstream{
		spec: spec, opts: opts, log: &Ring{}, slots: map[string][]*slot{}, own: map[string]*lists{}, authorizers: map[string]*authorizer{},
		shared: newLists(loadCatalog(opts.CacheDir, spec)), freed: make(chan struct{}), closing: make(chan struct{}),
	}
	if opts.Log != nil {
		u.log.Line = func(line string) { opts.Log(spec.Name, line) }
	}
	u.ctx, u.cancel = context.WithCancel(context.Background())
	return u
}

// Name returns the name of the server.
func (u *Upstream) Name() string { return u.spec.Name }

// Log returns the last lines of the server's stderr.
func (u *Upstream) Log(n int) []string { return u.log.Last(n) }

// Want describes the session that a call needs.
type Want struct {
	// Client is the owner of the session; "" is the shared session, which answers no
	// questions.
	Client string
	// User is the person whose login the session uses. All sessions of a client have the same
	// user. "" is the login of the local user, or the configured credential.
	User string
	// Alone excludes other calls of the client from the session until it is given back, so
	// that the server's questions can only belong to this call.
	Alone bool
	// Watch requests a session only for its notifications: it excludes no calls, and may
	// move to another session at any time.
	Watch bool
	// Capabilities are the declared capabilities, an object; a legacy session declares them
	// once.
	Capabilities json.RawMessage
	// Ask answers the server's questions.
	Ask Asker
}

// key returns the key of the sessions that can satisfy a want.
func (w *Want) key() string { return w.Client + "\x00" + string(w.Capabilities) }

// clientOf returns the owner of the sessions of a key. The last NUL ends the owner's name:
// the name may contain a NUL, but the capabilities do not.
func clientOf(key string) string { return key[:strings.LastIndexByte(key, 0)] }

// Session returns a session, which it starts if necessary; done releases it.
func (u *Upstream) Session(ctx context.Context, want Want) (s *Session, done func(), err error) {
	patience := time.NewTimer(cmp.Or(time.Duration(u.spec.Timeout), defaultTimeout))
	defer patience.Stop()
	for {
		slot, full, err := u.takeSlot(want)
		if err != nil {
			return nil, nil, err
		}
		if slot == nil {
			select {
			case <-full:
				continue
			case <-patience.C:
				return nil, nil, guideway.Errorf(guideway.CodeUnavailable, "the call was not sent: all sessions that this client may use with the upstream %s are busy or wait for answers", u.spec.Name).
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
			u.giveBack(slot, &want) // The session ended in the meantime; the next one is new.
			continue
		default:
		}
		var once sync.Once
		return slot.session, func() { once.Do(func() { u.giveBack(slot, &want) }) }, nil
	}
}

// takeSlot finds or creates a slot. If all slots are in use, it returns the channel full,
// which is closed when a slot is given back.
func (u *Upstream) takeSlot(want Want) (*slot, <-chan struct{}, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return nil, nil, guideway.Errorf(guideway.CodeUnavailable, "the upstream %s %w", u.spec.Name, ErrClosed).
			WithFix("list the tools again, then repeat the call")
	}
	key := want.key()
	total, mine := 0, 0
	for other, slots := range u.slots {
		if clientOf(other) == want.Client {
			mine += len(slots)
		}
		for _, each := range slots {
			if each.user != want.User {
				continue
			}
			total++
			if other == key && (!want.Alone || each.users == 0) {
				u.addUser(each, &want)
				return each, nil, nil
			}
		}
	}
	// The shared sessions are always available. Each client may use only a part of the other
	// sessions, so that its open questions do not block other clients. Each person has sessions
	// apart from those of others.
	if !isShared(want.Client) {
		if mine >= max(2, u.opts.MaxSessions/2) && !u.evictSlot(want.Client, want.User) || total >= u.opts.MaxSessions && !u.evictSlot("", want.User) {
			return nil, u.freed, nil
		}
	}
	// Another person may have a login to a server that refuses the credential of the last session.
	if left := time.Until(u.retryAt); left > 0 && (want.User == "" || !u.refused) {
		return nil, nil, &NoAnswer{Err: guideway.Errorf(guideway.CodeUnavailable, "the upstream %s failed: %w; consecutive failures: %d; next attempt in %s",
			u.spec.Name, u.lastErr, u.failures, max(time.Second, left.Round(time.Second))).WithFix("%s", u.fixOf(u.lastErr))}
	}
	made := &slot{user: want.User, ready: make(chan struct{}), began: time.Now()}
	u.slots[key] = append(u.slots[key], made)
	if u.listsOf(want.Client) == nil {
		u.own[want.Client] = newLists(nil)
		u.own[want.Client].personal = want.User != ""
	}
	u.addUser(made, &want)
	u.wg.Go(func() { u.startSlot(made, key, want) })
	return made, nil, nil
}

func (u *Upstream) fixOf(err error) string {
	switch fix := guideway.ErrorFix(err); {
	case fix != "":
		return fix
	case u.spec.Command == "": // remote servers have no local log
		return "check that an MCP server runs at the URL of the upstream"
	}
	return "guideway upstream logs " + u.spec.Name
}

// addUser counts a user or a watcher of a slot. The caller holds mu.
func (u *Upstream) addUser(s *slot, want *Want) {
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

// evictSlot makes room by closing an unused session of a user; if client is set, only a
// session of that client. The caller holds mu.
func (u *Upstream) evictSlot(client, user string) bool {
	var found *slot
	var of string
	for key, slots := range u.slots {
		for _, each := range slots {
			if each.users > 0 || each.user != user || client != "" && clientOf(key) != client || each.session == nil {
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
	u.removeSlot(of, found)
	go found.session.Close()
	return true
}

// removeSlot removes a slot. The caller holds mu.
func (u *Upstream) removeSlot(key string, s *slot) {
	u.slots[key] = slices.DeleteFunc(u.slots[key], func(o *slot) bool { return o == s })
	if len(u.slots[key]) == 0 {
		delete(u.slots, key)
		u.dropLists(clientOf(key))
	}
	if s.idle != nil {
		s.idle.Stop()
	}
}

// giveBack removes a user or a watcher of a slot.
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
		if slices.Contains(slots, s) {
			u.closeUnused(key, s)
		}
	}
}

// closeUnused closes an unused session other than the shared ones after IdleTime. The caller
// holds mu.
func (u *Upstream) closeUnused(key string, s *slot) {
	if isShared(clientOf(key)) || s.session == nil || s.users > 0 || s.watchers > 0 {
		return
	}
	s.idle = time.AfterFunc(u.opts.IdleTime, func() {
		u.mu.Lock()
		unused := s.users == 0 && s.watchers == 0
		if unused {
			u.removeSlot(key, s)
		}
		u.mu.Unlock()
		if unused {
			s.session.Close()
		}
	})
}

// Release closes the sessions of a client that are not in use.
func (u *Upstream) Release(client string) {
	u.mu.Lock()
	var over []*Session
	for key, slots := range u.slots {
		for _, each := range slices.Clone(slots) {
			if client != "" && clientOf(key) == client && each.users == 0 {
				u.removeSlot(key, each)
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

// stableTime is the time that a server must have run for its exit to count as the first
// failure of a new series.
const stableTime = 30 * time.Second

// sameTime is the time after a failure during which further failures count as the same one.
const sameTime = 5 * time.Second

// recordFailure records a failure of a session that started at a time, and schedules the
// retry: after one, two, four seconds, up to a minute. The first exit of a server that had
// started is retried immediately. If a server exits with several sessions, this counts as
// one failure. The caller holds mu.
func (u *Upstream) recordFailure(err error, began time.Time, ran time.Duration) {
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
	u.lastErr, u.refused = err, guideway.ErrorCode(err) == guideway.CodeUnauthorized
	if u.failures > 1 || ran == 0 {
		u.retryAt = now.Add(min(time.Second<<min(u.failures-1, 6), time.Minute))
	}
}

// recordSuccess forgets the last failure after a session has started, unless the session is that
// of a person and the server refuses the shared credential. The caller holds mu.
func (u *Upstream) recordSuccess(user string) {
	if user == "" || !u.refused {
		u.lastErr = nil
	}
}

// Close closes the upstream. Calls in progress may finish until ctx ends; new ones are
// refused.
func (u *Upstream) Close(ctx context.Context) {
	u.mu.Lock()
	if !u.closed {
		u.closed = true
		close(u.closing)
	}
	u.mu.Unlock()
	for u.isBusy() {
		u.mu.Lock()
		freed := u.freed
		u.mu.Unlock()
		if !u.isBusy() {
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

// Closing returns a channel that is closed when the upstream starts to close. A user that
// holds a session for longer than a call must then release it.
func (u *Upstream) Closing() <-chan struct{} { return u.closing }

func (u *Upstream) isBusy() bool {
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

// Condition is the condition of an upstream.
type Condition string

// The conditions.
const (
	// ConditionIdle: has no session, because none is needed.
	ConditionIdle Condition = "idle"
	// ConditionRunning: has a session.
	ConditionRunning Condition = "running"
	// ConditionFailed: has failed and will be retried.
	ConditionFailed Condition = "failed"
)

// Health is the health of an upstream.
type Health struct {
	Condition Condition `json:"condition"`
	Error     string    `json:"error,omitempty"`
	Sessions  int       `json:"sessions"`
	Restarts  int       `json:"restarts"`
	// Failures is the number of consecutive failures, and RetryAt the earliest time of the
	// next attempt.
	Failures int        `json:"failures,omitempty"`
	RetryAt  *time.Time `json:"retryAt,omitempty"`
	// Pinged is the result of the last ping; nil if there was none.
	Pinged *Pinged `json:"pinged,omitempty"`
}

// Health returns the health of the upstream.
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

// ErrClosed is the reason why an upstream starts no new session. The call was not sent.
var ErrClosed = errors.New("was removed or is being restarted")

func (u *Upstream) describeError(err error) error {
	wrapped := guideway.Errorf(guideway.CodeUnavailable, "the upstream %s failed: %w", u.spec.Name, err)
	if code := guideway.ErrorCode(err); code != guideway.CodeInternal {
		wrapped.Code = code
	}
	return &NoAnswer{Err: wrapped.WithFix("%s", u.fixOf(err))}
}
