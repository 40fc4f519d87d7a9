// Package gateway combines many MCP servers into one: it lists their tools, prompts and
// resources under unique names, routes requests to the right upstream, and forwards an
// upstream's questions to the client whose call caused them.
//
// Messages are forwarded as bytes: the gateway decodes only the members that it needs.
package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
	"github.com/guideway-dev/guideway/internal/gateway/pins"
	"github.com/guideway-dev/guideway/internal/gateway/upstream"
	"github.com/guideway-dev/guideway/internal/platform/deployment"
	"github.com/guideway-dev/guideway/internal/platform/lists"
	"github.com/guideway-dev/guideway/internal/workflow/toolpolicy"
)

// Entry is the configuration of one upstream.
type Entry struct {
	Spec upstream.Spec
	// Disabled excludes the upstream.
	Disabled bool
	// Project groups upstreams; it may be empty.
	Project string
	// Prefix replaces the upstream's name as the prefix of tool and prompt names. NoPrefix
	// removes the prefix.
	Prefix   string
	NoPrefix bool
	// Tools holds rules for single tools by the upstream's tool names.
	Tools map[string]config.UpstreamTool
	// Sessions sets which clients share a session.
	Sessions Sessions
	// Pins sets which tools, prompts, templates and pages need approval.
	Pins pins.Mode
	// PerMinute limits the calls to the upstream per minute, and ToolPerMinute the calls to
	// each tool; zero means unlimited.
	PerMinute, ToolPerMinute int
}

// Sessions sets which clients share a session with an upstream.
type Sessions string

// The ways to share sessions.
const (
	// SessionsAuto creates a session for each client that a legacy upstream could ask for
	// input, or that shows pages of tools. All other clients share a session, and so do all clients of a modern upstream.
	// It is the default.
	SessionsAuto Sessions = "auto"
	// SessionsShared uses one session for all clients, without input requests.
	SessionsShared Sessions = "shared"
	// SessionsClient gives each client its own session.
	SessionsClient Sessions = "client"
)

// Options configure a gateway.
type Options struct {
	// Upstreams are the upstream servers in order of precedence.
	Upstreams []Entry
	// Upstream configures the connections. The gateway sets Changed and Notified.
	Upstream upstream.Options
	// Lazy offers tool_search and tool_call instead of the tools, unless a client's token
	// sets otherwise.
	Lazy bool
	// Project, if set, limits the gateway to the upstreams of that project.
	Project string
	// Pins stores the approvals; if nil, everything is approved.
	Pins pins.Pins
	// ClientPerMinute limits the calls of one client per minute; zero means unlimited.
	ClientPerMinute int
	// ListTime is the maximum time that a list waits for unknown upstreams, 15 seconds if
	// zero.
	ListTime time.Duration
	// Hooks runs before and after calls and lists of tools; may be nil.
	Hooks Hooks
	// Policies knows the policies of the clients' runs; may be nil. Tools is the policy of all
	// calls, nil if it restricts none.
	Policies Policies
	Tools    *toolpolicy.Policy
	// Holds keeps the held calls; without it, these calls are refused. HoldTimes limit them.
	Holds     Holds
	HoldTimes HoldTimes
	// Results keeps the results of more than LargeResult bytes, which clients read in parts;
	// without it, clients get results of any size.
	Results     Results
	LargeResult int64
	// Dashboard returns the URL of the dashboard, or "" if none exists. It may be nil.
	Dashboard func(context.Context) string
	// Now is the clock; time.Now if nil.
	Now func() time.Time
	// Observer observes every request; may be nil.
	Observer Observer
	// Instance is the id of this instance of a deployment, or "". The ids of calls that wait
	// for an answer start with it and a dot.
	Instance string
	// Shared counts the calls of all instances, and is nil for a single instance.
	Shared deployment.State
	// Key signs the request state that clients return. It is required, at least 32 bytes
	// long.
	Key []byte
	// Logger logs errors; may be nil.
	Logger *slog.Logger
}

// Gateway serves many upstreams as one server.
type Gateway struct {
	opts    Options
	logger  *slog.Logger
	sealer  sealer
	parking parking
	limits  limits
	// holdForms are the open forms about held calls.
	holdForms holdForms
	// fastCalls are the calls that bypass the SDK.
	fastCalls fastCalls

	surfaces atomic.Pointer[surfaces]
	// held reports whether any client may have received a list.
	held atomic.Bool
	// listVersion counts the changes of lists that do not come from upstreams.
	listVersion atomic.Int64
	// late holds the lists that upstreams did not send in time, and pinned the upstreams for
	// which pins were found or stored.
	late, pinned sync.Map
	// clientPerMinute and lazy are current settings; see Settings.
	clientPerMinute atomic.Int64
	lazy            atomic.Bool
	tools           atomic.Pointer[toolpolicy.Policy]
	holdTimes       atomic.Pointer[HoldTimes]

	mu      sync.Mutex
	members []*member
	// configured holds the names of all upstreams in lower case, also of disabled ones.
	configured map[string]bool
	// hashed holds the hashes of the catalogs in use; see hashEntries.
	hashed map[*upstream.Catalog][]hashedEntry
	// project is a current setting; see Settings.
	project string
	own     reservedNames
	// downstream connects the gateway to the clients.
	downstream *downstream
	closed     bool
	settle     *time.Timer
	wg         sync.WaitGroup
	// subscriptions holds the followers of each resource.
	subscriptions map[subscription]*following
	life          context.Context //nolint:containedctx // the life of the subscriptions
	end           context.CancelFunc
}

// Kind is a kind of list that clients keep.
type Kind string

// The kinds of lists.
const (
	KindTools     Kind = "tools"
	KindPrompts   Kind = "prompts"
	KindResources Kind = "resources"
)

// member is an upstream and its configuration.
type member struct {
	Entry
	*upstream.Upstream
}

// New returns a gateway. It starts no upstream. If an entry is invalid, the error names it.
func New(opts Options) (*Gateway, error) {
	if len(opts.Key) < 32 {
		return nil, guideway.Errorf(guideway.CodeInternal, "the gateway's key has %d bytes; at least 32 are required", len(opts.Key))
	}
	opts.Logger = cmp.Or(opts.Logger, slog.New(slog.DiscardHandler))
	if opts.Now == nil {
		opts.Now = time.Now
	}
	g := &Gateway{
		opts: opts, logger: opts.Logger, sealer: sealer{key: opts.Key, now: opts.Now},
		holdForms:     holdForms{expiry: map[string]time.Time{}},
		subscriptions: map[subscription]*following{}, hashed: map[*upstream.Catalog][]hashedEntry{},
		parking:   parking{calls: map[string]*parkedCall{}},
		limits:    limits{shared: opts.Shared, buckets: map[string]*bucket{}, answered: map[string]time.Time{}},
		fastCalls: fastCalls{calls: map[fastCallID]*fastCall{}, asked: map[fastCallID]chan *jsonrpc.Message{}},
	}
	g.life, g.end = context.WithCancel(context.Background())
	if err := g.Configure(Settings{
		Upstreams: opts.Upstreams, Lazy: opts.Lazy, Project: opts.Project, ClientPerMinute: opts.ClientPerMinute, Tools: opts.Tools, HoldTimes: opts.HoldTimes,
	}); err != nil {
		return nil, err
	}
	return g, nil
}

// Settings are the Options that can change while the gateway runs.
type Settings struct {
	Upstreams       []Entry
	Lazy            bool
	Project         string
	ClientPerMinute int
	Tools           *toolpolicy.Policy
	HoldTimes       HoldTimes
}

// Configure applies new settings. If one upstream is invalid, nothing changes. An upstream
// with an unchanged configuration keeps running. Calls in progress to a removed or changed
// upstream finish; new calls go to its replacement. Clients are notified of changed lists.
// If tool search replaces the list of tools, or the reverse, clients can call the tools of
// both.
func (g *Gateway) Configure(s Settings) error {
	if err := checkEntries(s.Upstreams); err != nil {
		return err
	}
	g.lazy.Store(s.Lazy)
	g.clientPerMinute.Store(int64(s.ClientPerMinute))
	g.tools.Store(s.Tools)
	g.holdTimes.Store(&s.HoldTimes)
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return guideway.Errorf(guideway.CodeUnavailable, "the gateway is closed").WithFix("start the server again")
	}
	g.project, g.configured = s.Project, map[string]bool{}
	var gone []*member
	var now []*member
	for _, e := range s.Upstreams {
		g.configured[strings.ToLower(e.Spec.Name)] = true
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
		now = append(now, &member{Entry: e, Upstream: g.openUpstream(e)})
	}
	for _, old := range g.members {
		if !slices.ContainsFunc(now, func(m *member) bool { return m.Upstream == old.Upstream }) {
			gone = append(gone, old)
		}
	}
	g.members = now
	g.mu.Unlock()
	g.rebuild()
	if g.held.Load() { // A client that has a list must receive the additions of a new upstream.
		for _, m := range now {
			m.Discover(m.listWant())
		}
	}
	g.retireMembers(gone...)
	return nil
}

func checkEntries(entries []Entry) error {
	seen := map[string]bool{}
	for i := range entries {
		e := &entries[i]
		if err := e.Check(); err != nil {
			return guideway.Errorf(guideway.ErrorCode(err), "the upstream %q: %w", e.Spec.Name, err).WithFix("%s", guideway.ErrorFix(err))
		}
		if seen[e.Spec.Name] {
			return guideway.Errorf(guideway.CodeConflict, "duplicate upstream %q", e.Spec.Name).WithFix("rename one of the two upstreams")
		}
		seen[e.Spec.Name] = true
	}
	return nil
}

// Check returns an error if the entry is invalid.
func (e *Entry) Check() error {
	if err := e.Spec.Check(); err != nil {
		return err
	}
	invalid := func(what, given string, allowed ...string) error {
		return guideway.Errorf(guideway.CodeInvalid, "invalid %s %q", what, given).WithFix("use one of: %s", strings.Join(allowed, ", "))
	}
	switch e.Sessions {
	case "", SessionsAuto, SessionsShared, SessionsClient:
	default:
		return invalid("sessions mode", string(e.Sessions), string(SessionsAuto), string(SessionsShared), string(SessionsClient))
	}
	switch e.Pins {
	case "", pins.ModeFirstUse, pins.ModeApprove, pins.ModeOff:
	default:
		return invalid("pin mode", string(e.Pins), string(pins.ModeFirstUse), string(pins.ModeApprove), string(pins.ModeOff))
	}
	if e.Prefix != "" {
		if err := upstream.CheckName(e.Prefix); err != nil {
			return guideway.Errorf(guideway.CodeInvalid, "invalid prefix %q", e.Prefix).WithFix("%s", guideway.ErrorFix(err))
		}
	}
	return nil
}

func (g *Gateway) openUpstream(e Entry) *upstream.Upstream {
	opts := g.opts.Upstream
	opts.Changed = g.scheduleRebuild
	opts.Notified = func(client, method string, params json.RawMessage) {
		g.handleNotification(e.Spec.Name, client, method, params)
	}
	opts.Logger = cmp.Or(opts.Logger, g.logger)
	return upstream.New(e.Spec, opts)
}

// Close closes all upstreams. ctx bounds the wait for calls in progress.
func (g *Gateway) Close(ctx context.Context) {
	g.mu.Lock()
	g.closed = true
	members := g.members
	if g.settle != nil {
		g.settle.Stop()
	}
	g.mu.Unlock()
	g.parking.closeAll()
	g.end()
	var ends sync.WaitGroup
	for _, m := range members {
		ends.Go(func() { m.Close(ctx) })
	}
	ends.Wait()
	g.wg.Wait()
}

// allMembers returns the current members.
func (g *Gateway) allMembers() []*member {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.members
}

func (g *Gateway) findMember(name string) *member {
	for _, m := range g.allMembers() {
		if m.Name() == name {
			return m
		}
	}
	return nil
}

// changeTime is the delay between a change of an upstream and the notification of clients.
// Several upstreams that start together cause one notification.
const changeTime = 100 * time.Millisecond

// scheduleRebuild rebuilds the surfaces after changeTime.
func (g *Gateway) scheduleRebuild() {
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

// Reload rebuilds the surfaces. It is called after an approval.
func (g *Gateway) Reload() { g.rebuild() }

// rebuild builds the surfaces from the known catalogs and notifies clients of changed lists.
func (g *Gateway) rebuild() {
	g.mu.Lock()
	before := g.surfaces.Load()
	next := g.buildSurfaces(g.members)
	g.surfaces.Store(next)
	d := g.downstream
	g.mu.Unlock()
	if d == nil || before == nil || !g.held.Load() {
		return // No client has a list yet.
	}
	for _, kind := range []Kind{KindTools, KindPrompts, KindResources} {
		if before.differsFrom(next, kind) {
			d.notifyChanged(kind)
		}
	}
}

// listTime is the default of Options.ListTime.
const listTime = 15 * time.Second

// readySurface returns the surface of a client. Before that it concurrently asks all
// upstreams whose lists are unknown: the shared lists, or the lists of the client's own
// session with the upstream. An upstream that does not answer within listTime is omitted.
// Later lists do not wait for that upstream again: it is asked in the background, and
// clients are notified when it has answered. An upstream that the client may not use is not
// asked, because it would start for a client without access.
func (g *Gateway) readySurface(ctx context.Context, c *Client) *surface {
	may := g.accessOf(ctx)
	client, built := c.sharingKey(), g.surfaces.Load()
	var unknown []*member
	for _, m := range g.allMembers() {
		person := g.personOf(c, m)
		_, listed := m.OwnOf(client)
		if listed = m.Known() != nil && person == "" || listed && person != ""; listed && built.isCurrent(client, m) || !may.mayAllow(m) {
			continue
		}
		if _, late := g.late.Load(lateList{m.Upstream, person}); late && !listed {
			g.wg.Go(func() { _ = g.fetchLists(g.life, c, m) }) // the client is notified
			continue
		}
		unknown = append(unknown, m)
	}
	isForeign := func(m *member) bool {
		_, has := m.OwnOf(client)
		return !has && g.personOf(c, m) != ""
	}
	if len(unknown) == 0 {
		g.held.Store(true)
		return g.surfaceOf(c).withoutForeign(isForeign)
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(g.opts.ListTime, listTime))
	defer cancel()
	var asked sync.WaitGroup
	for _, m := range unknown {
		asked.Go(func() {
			if err := g.fetchLists(ctx, c, m); err != nil && (g.personOf(c, m) == "" || guideway.ErrorCode(err) != guideway.CodeUnauthorized) {
				g.logger.Warn("an upstream is omitted from the lists of a client, because the lists of the upstream could not be fetched", "upstream", m.Name(), "error", err)
				if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
					g.late.Store(lateList{m.Upstream, g.personOf(c, m)}, nil)
				}
			}
		})
	}
	asked.Wait()
	g.rebuild()
	g.held.Store(true)
	return g.surfaceOf(c).withoutForeign(isForeign)
}

// lateList identifies lists of an upstream that did not arrive in time: those of a person, or
// the shared ones.
type lateList struct {
	upstream *upstream.Upstream
	person   string
}

// fetchLists fetches the unknown lists of an upstream that a client sees.
func (g *Gateway) fetchLists(ctx context.Context, c *Client, m *member) error {
	want, _ := g.sessionFor(c, m, false)
	if want.User != "" {
		want.Alone = false
		return m.OpenOwn(ctx, want)
	}
	if own, has := m.OwnOf(want.Client); has && own == nil {
		_ = m.FetchOwn(ctx, want.Client) // the client then sees the shared lists
	}
	if want.Client != "" {
		want = upstream.Lister(want.Capabilities)
	}
	_, err := m.Catalog(ctx, want)
	return err
}

// listWant returns the Want for the session that fetches the lists that all clients see.
func (m *member) listWant() upstream.Want {
	if m.Sessions == SessionsShared {
		return upstream.Want{}
	}
	return upstream.Lister(nil)
}

// Notes returns the warnings about the upstreams.
func (g *Gateway) Notes() []Note { return g.surfaces.Load().shared.notes }

// Known returns the known catalog of an upstream, or nil. It includes the entries that the
// upstream offers only in a client's own session, because a person can approve them too.
func (g *Gateway) Known(name string) *upstream.Catalog {
	if m := g.findMember(name); m != nil {
		return m.knownToAny()
	}
	return nil
}

// knownToAny returns the known catalog with the entries that only some clients see, or nil.
func (m *member) knownToAny() *upstream.Catalog {
	c, own := m.Upstream.Known(), m.Own()
	if c == nil || len(own) == 0 {
		return c
	}
	c = c.Clone()
	for _, client := range slices.Sorted(maps.Keys(own)) {
		c.Merge(own[client])
	}
	return c
}

// toolError returns the tool error for a call that the gateway refuses. It is sent once,
// as text, which every client shows its model.
func toolError(code guideway.Code, message, fix string, more ...jsonrpc.Member) json.RawMessage {
	said := []jsonrpc.Member{{Key: "code", Value: jsonrpc.Text(string(code))}, {Key: "error", Value: jsonrpc.Text(message)}}
	if fix != "" {
		said = append(said, jsonrpc.Member{Key: "fix", Value: jsonrpc.Text(fix)})
	}
	return jsonrpc.Object(
		jsonrpc.Member{Key: "content", Value: textContent(jsonrpc.Object(append(said, more...)...))},
		jsonrpc.Member{Key: "isError", Value: json.RawMessage("true")},
	)
}

// toolResult returns the result of a tool with an object as text and as structured content.
func toolResult(body json.RawMessage) json.RawMessage {
	return jsonrpc.Object(
		jsonrpc.Member{Key: "content", Value: textContent(body)}, jsonrpc.Member{Key: "structuredContent", Value: body},
	)
}

// textContent returns the content of a result with an object as text.
func textContent(body json.RawMessage) json.RawMessage { return jsonrpc.List(textBlock(string(body))) }

// textBlock returns a block of content with a text.
func textBlock(text string) json.RawMessage {
	return jsonrpc.Object(jsonrpc.Member{Key: "type", Value: jsonrpc.Text("text")}, jsonrpc.Member{Key: "text", Value: jsonrpc.Text(text)})
}

// MemberHealth is the health of one upstream.
type MemberHealth struct {
	Name string
	upstream.Health
}

// MembersHealth returns the health of the upstreams in order of precedence.
func (g *Gateway) MembersHealth() []MemberHealth {
	members := g.allMembers()
	return lists.Map(members, func(m *member) MemberHealth { return MemberHealth{m.Name(), m.Upstream.Health()} })
}
