package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
	"github.com/guideway-dev/guideway/internal/gateway/sanitize"
	"github.com/guideway-dev/guideway/internal/gateway/upstream"
	"github.com/guideway-dev/guideway/internal/platform/lists"
)

// ToolStatus describes an upstream's tool to a person.
type ToolStatus struct {
	// Name is the upstream's name of the tool. Shown is the name that clients see; empty if
	// the tool is hidden or waits for approval. FullName is set if Shown had to be shortened:
	// it is the name that patterns match.
	Name     string `json:"name"`
	Shown    string `json:"shown,omitempty"`
	FullName string `json:"fullName,omitempty"`
	// Description is the description that clients get.
	Description string `json:"description,omitempty"`
	// Annotations are the annotations that clients get, such as readOnly.
	Annotations map[string]bool `json:"annotations,omitempty"`
	// Held is the reason why the tool waits for approval; empty if it does not wait.
	Held string `json:"pending,omitempty"`
	// Hidden reports whether the configuration hides the tool.
	Hidden bool `json:"hidden,omitempty"`
}

// Health returns the health of an upstream; ok is false if the upstream is not in use.
func (g *Gateway) Health(name string) (h upstream.Health, ok bool) {
	m := g.findMember(name)
	if m == nil {
		return upstream.Health{}, false
	}
	return m.Upstream.Health(), true
}

// ToolsOf returns the tools of an upstream in use, in the upstream's order.
func (g *Gateway) ToolsOf(name string) []ToolStatus {
	m := g.findMember(name)
	if m == nil || m.Known() == nil {
		return nil
	}
	shown := map[string]*tool{}
	all := g.surfaces.Load()
	for _, s := range append(slices.Collect(maps.Values(all.own)), all.shared) {
		for _, t := range s.byName {
			if t.member.Upstream == m.Upstream {
				shown[t.original] = t
			}
		}
	}
	var list []ToolStatus
	for _, raw := range m.knownToAny().Tools {
		status := ToolStatus{Name: jsonrpc.TextMember(raw, "name"), Hidden: m.Tools[jsonrpc.TextMember(raw, "name")].Hide}
		status.Description, _ = sanitize.Description(jsonrpc.TextMember(raw, "description"))
		if t := shown[status.Name]; t != nil {
			status.Description, status.Held, status.Annotations = t.description, t.blocked, annotationsOf(t.shown)
			if t.blocked == "" {
				status.setNames(t.name, t.full)
			}
		}
		list = append(list, status)
	}
	return list
}

// setNames sets the names of a tool for clients.
func (t *ToolStatus) setNames(name, full string) {
	t.Shown = name
	if full != name {
		t.FullName = full
	}
}

// ToolsIn returns the tools of a catalog, for use without a gateway. It does not read the
// approvals.
func ToolsIn(c *upstream.Catalog, e Entry) []ToolStatus {
	var list []ToolStatus
	used := newNames(lazyNames())
	for _, raw := range c.Tools {
		status := ToolStatus{Name: jsonrpc.TextMember(raw, "name")}
		rule := e.Tools[status.Name]
		status.Description, _ = sanitize.Description(jsonrpc.TextMember(raw, "description"))
		status.Description, status.Hidden = cmp.Or(rule.Description, status.Description), rule.Hide
		status.Annotations = annotationsOf(annotate(raw, rule))
		if !rule.Hide {
			if name, full, ok := used.assignNames(e.namePrefix(), cmp.Or(rule.Name, status.Name)); ok {
				status.setNames(name, full)
			}
		}
		list = append(list, status)
	}
	return list
}

// PromptsOf returns the names that clients see for an upstream's prompts.
func (g *Gateway) PromptsOf(name string) []string {
	var names []string
	for _, p := range g.surfaces.Load().shared.prompts {
		if p.member.Name() == name {
			names = append(names, p.name)
		}
	}
	return names
}

// NotesOf returns the warnings about an upstream.
func (g *Gateway) NotesOf(name string) []string {
	var texts []string
	for _, n := range g.Notes() {
		if n.Upstream == name {
			texts = append(texts, strings.TrimPrefix(n.Tool+": "+n.Message, ": "))
		}
	}
	return texts
}

// Refresh reloads the catalog of an upstream, for a person with the person's login.
func (g *Gateway) Refresh(ctx context.Context, name, user string) error {
	m := g.findMember(name)
	if m == nil {
		return notInUse(name)
	}
	defer g.rebuild()
	c := &Client{Principal: guideway.Principal{User: user, Client: "dashboard"}}
	if want, _ := g.sessionFor(c, m, false); want.User != "" {
		return g.explainLogin(ctx, c, m, m.OpenOwn(ctx, want))
	}
	_, err := m.Refresh(ctx, m.listWant())
	return err
}

func notInUse(name string) error {
	return guideway.Errorf(guideway.CodeNotFound, "the upstream %q is not in use", clipText(name, upstream.MaxNameLength)).
		WithFix("guideway upstream list shows whether the upstream is disabled or belongs to another project")
}

// Restart closes the sessions of an upstream and forgets its failures. The next call starts
// it again, or the next list if its lists are unknown. Calls in progress finish.
func (g *Gateway) Restart(name string) error {
	g.mu.Lock()
	i := slices.IndexFunc(g.members, func(m *member) bool { return m.Name() == name })
	if i < 0 || g.closed {
		g.mu.Unlock()
		return notInUse(name)
	}
	old := g.members[i]
	next := &member{Entry: old.Entry, Upstream: g.openUpstream(old.Entry)}
	g.members = slices.Clone(g.members)
	g.members[i] = next
	g.mu.Unlock()
	g.rebuild()
	if g.held.Load() { // A client that has a list must receive the tools that need the restart.
		next.Discover(next.listWant())
	}
	g.retireMembers(old)
	return nil
}

// retireMembers closes upstreams that are no longer in use, after their calls have finished.
func (g *Gateway) retireMembers(gone ...*member) {
	for _, m := range gone {
		g.late.Range(func(list, _ any) bool {
			if list.(lateList).upstream == m.Upstream {
				g.late.Delete(list)
			}
			return true
		})
		g.pinned.Delete(m.Upstream)
		g.wg.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), drainTime)
			defer cancel()
			m.Close(ctx)
		})
	}
}

// drainTime is the maximum time for calls in progress to a removed upstream.
const drainTime = 2 * time.Minute

// ToolNames returns the upstream's names of the tools of a catalog.
func ToolNames(c *upstream.Catalog) []string {
	return lists.Map(c.Tools, func(raw json.RawMessage) string { return jsonrpc.TextMember(raw, "name") })
}
