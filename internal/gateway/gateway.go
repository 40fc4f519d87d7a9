// Package gateway makes one surface of many MCP servers: their tools, prompts
// and resources under names that cannot clash, routed to where they belong, and
// what they ask on the way brought to the client whose call it is.
//
// Messages pass as bytes. What is looked into is the name, the _meta and what a
// policy needs; arguments and results are not decoded unless a hook wants them.
package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/upstream"
	"github.com/guideway-dev/guideway/internal/upstream/wire"
)

// Entry is one upstream as it is configured.
type Entry struct {
	Spec upstream.Spec
	// Disabled keeps the upstream from being used.
	Disabled bool
	// Project groups upstreams; empty is none.
	Project string
	// Prefix stands before the names of tools and prompts in place of the
	// upstream's name; NoPrefix leaves the names as they are.
	Prefix   string
	NoPrefix bool
	// Tools changes single tools, by the upstream's names.
	Tools map[string]ToolRule
	// Sessions says which clients share a session.
	Sessions Sessions
	// Pins says what a tool needs to be offered.
	Pins PinMode
	// PerMinute bounds the calls to the upstream, and ToolPerMinute those to
	// each tool, in a minute; zero is no bound.
	PerMinute, ToolPerMinute int
}

// ToolRule changes one tool.
type ToolRule struct {
	// Hide keeps the tool from being offered and called.
	Hide bool
	// Name and Description take the place of the upstream's own.
	Name        string
	Description string
}

// Sessions says which clients share a session with an upstream.
type Sessions string

// The ways to share sessions.
const (
	// SessionsAuto gives a client a session of its own where the upstream could
	// ask it something; the others share one. It is the default.
	SessionsAuto Sessions = "auto"
	// SessionsShared gives one session to all, in which nobody can be asked.
	SessionsShared Sessions = "shared"
	// SessionsClient gives each client its own.
	SessionsClient Sessions = "client"
)

// Options say what a gateway works with.
type Options struct {
	// Upstreams are the servers behind it, in order of precedence.
	Upstreams []Entry
	// Upstream says how they are reached. Its Changed and Notified are ours.
	Upstream upstream.Options
	// Lazy offers tool_search and tool_call in place of the tools, to clients whose
	// token does not say otherwise.
	Lazy bool
	// Project, if set, leaves only the upstreams of that project.
	Project string
	// Pins remembers the tools that were approved; nil approves all.
	Pins Pins
	// ClientPerMinute bounds the calls of one client in a minute; zero is no
	// bound.
	ClientPerMinute int
	// ListTime is how long a list waits for upstreams that nothing is known of, 15
	// seconds if zero.
	ListTime time.Duration
	// Hooks looks at calls before and after they are made; nil is nobody.
	Hooks Hooks
	// Observer is told of every request; nil is nobody.
	Observer Observer
	// Key signs what clients hand back; needed, of 32 bytes at least.
	Key []byte
	// Logger gets what goes wrong; nil is silence.
	Logger *slog.Logger
}

// Gateway is many upstreams as one surface.
type Gateway struct {
	opts    Options
	logger  *slog.Logger
	sealer  sealer
	parking parking
	limits  limits
	// shortcuts are the calls that pass the SDK by.
	shortcuts shortcuts

	surface atomic.Pointer[surface]
	// held says that a client may hold a list.
	held atomic.Bool
	// late has the upstreams that a list was waiting for in vain.
	late sync.Map
	// clientPerMinute and lazy are those of the settings that are in force.
	clientPerMinute atomic.Int64
	lazy            atomic.Bool

	mu      sync.Mutex
	members []*member
	// project is the setting that is in force.
	project string
	notify  func(kind Kind)
	own     own
	hear    func(client, method string, params json.RawMessage)
	// downstream is where clients come from.
	downstream *downstream
	closed     bool
	settle     *time.Timer
	wg         sync.WaitGroup
	// subscriptions has who follows which resource.
	subscriptions map[subscription]*following
	life          context.Context //nolint:containedctx // that of what is followed
	end           context.CancelFunc
}

// Kind is a list that clients hold.
type Kind string

// The kinds.
const (
	KindTools     Kind = "tools"
	KindPrompts   Kind = "prompts"
	KindResources Kind = "resources"
)

// member is an upstream in use.
type member struct {
	Entry
	*upstream.Upstream
}

// New makes a gateway. It starts no upstream. An entry that cannot be used is an
// error that names it.
func New(opts Options) (*Gateway, error) {
	if len(opts.Key) < 32 {
		return nil, guideway.Errorf(guideway.CodeInternal, "the gateway needs a key of 32 bytes")
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	g := &Gateway{
		opts: opts, logger: opts.Logger, sealer: sealer{key: opts.Key, now: time.Now},
		subscriptions: map[subscription]*following{},
	}
	g.life, g.end = context.WithCancel(context.Background())
	g.parking.init()
	if err := g.Configure(Settings{
		Upstreams: opts.Upstreams, Lazy: opts.Lazy, Project: opts.Project, ClientPerMinute: opts.ClientPerMinute,
	}); err != nil {
		return nil, err
	}
	return g, nil
}

// Settings are the Options that can change while a gateway is in use.
type Settings struct {
	Upstreams       []Entry
	Lazy            bool
	Project         string
	ClientPerMinute int
}

// Configure has other settings in force from now on. One upstream that cannot be used
// leaves all as it was. What holds for upstreams is told by Apply; clients are told
// where their tools are offered in another way, and the names of the other way stay
// good for those that have not asked again.
func (g *Gateway) Configure(s Settings) error {
	if err := checkEntries(s.Upstreams); err != nil {
		return err
	}
	g.mu.Lock()
	g.project = s.Project
	g.mu.Unlock()
	g.lazy.Store(s.Lazy)
	g.clientPerMinute.Store(int64(s.ClientPerMinute))
	return g.Apply(s.Upstreams)
}

func checkEntries(entries []Entry) error {
	seen := map[string]bool{}
	for i := range entries {
		e := &entries[i]
		if err := e.Check(); err != nil {
			return guideway.Errorf(guideway.ErrorCode(err), "the upstream %q: %w", e.Spec.Name, err).WithFix("%s", guideway.ErrorFix(err))
		}
		if seen[e.Spec.Name] {
			return guideway.Errorf(guideway.CodeConflict, "there are two upstreams %q", e.Spec.Name).WithFix("rename one")
		}
		seen[e.Spec.Name] = true
	}
	return nil
}

// Apply takes other upstreams in place of those that are in use. One whose
// configuration is the same goes on as it is; calls under way to one that is
// gone or changed are answered, new ones go to the new one.
func (g *Gateway) Apply(entries []Entry) error {
	if err := checkEntries(entries); err != nil {
		return err
	}
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return guideway.Errorf(guideway.CodeUnavailable, "the gateway is closed")
	}
	var gone []*member
	var now []*member
	for _, e := range entries {
		if e.Disabled || g.project != "" && e.Project != g.project {
			continue
		}
		i := slices.IndexFunc(g.members, func(m *member) bool {
			return m.Name() == e.Spec.Name && m.Entry.Spec.Hash() == e.Spec.Hash()
		})
		if i >= 0 {
			now = append(now, &member{Entry: e, Upstream: g.members[i].Upstream})
			continue
		}
		now = append(now, &member{Entry: e, Upstream: g.open(e)})
	}
	for _, old := range g.members {
		if !slices.ContainsFunc(now, func(m *member) bool { return m.Upstream == old.Upstream }) {
			gone = append(gone, old)
		}
	}
	g.members = now
	g.mu.Unlock()
	g.rebuild()
	if g.held.Load() { // who holds a list is to be told what a new upstream adds to it
		for _, m := range now {
			m.Discover()
		}
	}
	g.retire(gone...)
	return nil
}

// Check refuses an entry that cannot be used.
func (e *Entry) Check() error {
	if err := e.Spec.Check(); err != nil {
		return err
	}
	invalid := func(what string, given any, allowed ...any) error {
		return guideway.Errorf(guideway.CodeInvalid, "%q is not one of its %s", given, what).WithFix("use one of %v", allowed)
	}
	switch e.Sessions {
	case "", SessionsAuto, SessionsShared, SessionsClient:
	default:
		return invalid("ways to share sessions", e.Sessions, SessionsAuto, SessionsShared, SessionsClient)
	}
	switch e.Pins {
	case "", PinFirstUse, PinApprove, PinOff:
	default:
		return invalid("ways to pin tools", e.Pins, PinFirstUse, PinApprove, PinOff)
	}
	if e.Prefix != "" {
		return upstream.CheckName(e.Prefix)
	}
	return nil
}

func (g *Gateway) open(e Entry) *upstream.Upstream {
	opts := g.opts.Upstream
	opts.Changed = g.changed
	opts.Notified = func(client, method string, params json.RawMessage) {
		g.notified(e.Spec.Name, client, method, params)
	}
	if opts.Logger == nil {
		opts.Logger = g.logger
	}
	return upstream.New(e.Spec, opts)
}

// Close ends all upstreams. ctx bounds the wait for calls under way.
func (g *Gateway) Close(ctx context.Context) {
	g.mu.Lock()
	g.closed = true
	members := g.members
	if g.settle != nil {
		g.settle.Stop()
	}
	g.mu.Unlock()
	g.parking.close()
	g.end()
	var ends sync.WaitGroup
	for _, m := range members {
		ends.Go(func() { m.Close(ctx) })
	}
	ends.Wait()
	g.wg.Wait()
}

// members of now.
func (g *Gateway) all() []*member {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.members
}

func (g *Gateway) member(name string) *member {
	for _, m := range g.all() {
		if m.Name() == name {
			return m
		}
	}
	return nil
}

// changeTime is how long after a change of an upstream clients are told: several
// that start at once are one change.
const changeTime = 100 * time.Millisecond

// changed has the surface made anew after a while.
func (g *Gateway) changed() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed || g.settle != nil {
		return
	}
	g.settle = time.AfterFunc(changeTime, func() {
		g.mu.Lock()
		g.settle = nil
		g.mu.Unlock()
		g.rebuild()
	})
}

// Reload makes the surface anew, for when pins were approved.
func (g *Gateway) Reload() { g.rebuild() }

// rebuild makes the surface of what is known, and tells clients what has
// changed.
func (g *Gateway) rebuild() {
	g.mu.Lock()
	before := g.surface.Load()
	next := g.build(g.members)
	g.surface.Store(next)
	notify := g.notify
	g.mu.Unlock()
	if notify == nil || before == nil || !g.held.Load() {
		return // nobody holds a list yet
	}
	for _, kind := range []Kind{KindTools, KindPrompts, KindResources} {
		if before.prints[kind] != next.prints[kind] {
			notify(kind)
		}
	}
}

// OnChange has f called with each list that has changed.
func (g *Gateway) OnChange(f func(Kind)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.notify = f
}

// listTime is the usual Options.ListTime.
const listTime = 15 * time.Second

// ready gives the surface, after every upstream that nothing is known of was
// asked, all at once. One that does not answer is left out: the others are not
// held up by it for longer than listTime, and once only: then it is asked aside, and
// clients are told when it has answered. Servers may offer more to clients that
// can be asked, so it is a session of the client's that is asked first. One that
// the client may use nothing of is not asked: it would be started for a client, and
// could ask it things, that nobody has let at it.
func (g *Gateway) ready(ctx context.Context, c *Client) *surface {
	may := g.may(ctx)
	var unknown []*member
	for _, m := range g.all() {
		if m.Known() != nil || !may.perhaps(m) {
			continue
		}
		if _, late := g.late.Load(m.Upstream); late {
			m.Discover()
			continue
		}
		unknown = append(unknown, m)
	}
	if len(unknown) == 0 {
		g.held.Store(true)
		return g.surface.Load()
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(g.opts.ListTime, listTime))
	defer cancel()
	var asked sync.WaitGroup
	for _, m := range unknown {
		asked.Go(func() {
			want, parked := g.want(c, m, false)
			if parked {
				want.Client += " lists" // what the server asks meanwhile cannot wait for a call
			}
			if _, err := m.Catalog(ctx, want); err != nil {
				g.logger.Warn("an upstream is left out", "upstream", m.Name(), "error", err)
				if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
					g.late.Store(m.Upstream, nil)
				}
			}
		})
	}
	asked.Wait()
	g.rebuild()
	g.held.Store(true)
	return g.surface.Load()
}

// Notes are what a person should know of the upstreams.
func (g *Gateway) Notes() []Note { return g.surface.Load().notes }

// Known gives what is known of an upstream; nil is nothing.
func (g *Gateway) Known(name string) *upstream.Catalog {
	if m := g.member(name); m != nil {
		return m.Upstream.Known()
	}
	return nil
}

// RefreshAll asks all upstreams for what they offer now.
func (g *Gateway) RefreshAll(ctx context.Context) error {
	members := g.all()
	failed := make([]error, len(members))
	var asked sync.WaitGroup
	for i, m := range members {
		asked.Go(func() { _, failed[i] = m.Refresh(ctx) })
	}
	asked.Wait()
	return errors.Join(failed...)
}

// toolError is the answer to a call that the gateway itself refuses: one that a
// model can read.
func toolError(code guideway.Code, message, fix string) json.RawMessage {
	said := []wire.Member{{Key: "code", Value: wire.Text(string(code))}, {Key: "error", Value: wire.Text(message)}}
	if fix != "" {
		said = append(said, wire.Member{Key: "fix", Value: wire.Text(fix)})
	}
	body := wire.Object(said...)
	content := wire.Object(wire.Member{Key: "type", Value: wire.Text("text")}, wire.Member{Key: "text", Value: wire.Text(string(body))})
	return wire.Object(
		wire.Member{Key: "content", Value: append(append(json.RawMessage{'['}, content...), ']')},
		wire.Member{Key: "structuredContent", Value: body},
		wire.Member{Key: "isError", Value: json.RawMessage("true")})
}

// MemberHealth is how one upstream is.
type MemberHealth struct {
	Name string
	upstream.Health
}

// MembersHealth tells how the upstreams are, in order of precedence.
func (g *Gateway) MembersHealth() []MemberHealth {
	members := g.all()
	list := make([]MemberHealth, len(members))
	for i, m := range members {
		list[i] = MemberHealth{m.Name(), m.Upstream.Health()}
	}
	return list
}
