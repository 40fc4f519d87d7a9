package gateway

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/upstream"
)

// ToolStatus is a tool of an upstream as a person sees it.
type ToolStatus struct {
	// Name is the upstream's own, Shown the one that clients use; Shown is empty
	// where they do not see the tool.
	Name  string `json:"name"`
	Shown string `json:"shown,omitempty"`
	// Description is what clients read.
	Description string `json:"description,omitempty"`
	// Held says why the tool is held back.
	Held string `json:"held,omitempty"`
	// Hidden says that the configuration hides it.
	Hidden bool `json:"hidden,omitempty"`
}

// Health tells how an upstream is; ok is false where it is not in use.
func (g *Gateway) Health(name string) (h upstream.Health, ok bool) {
	m := g.member(name)
	if m == nil {
		return upstream.Health{}, false
	}
	return m.Upstream.Health(), true
}

// ToolsOf gives the tools of an upstream that is in use, in the order in which it
// offers them.
func (g *Gateway) ToolsOf(name string) []ToolStatus {
	m := g.member(name)
	if m == nil || m.Known() == nil {
		return nil
	}
	shown := map[string]*tool{}
	for _, t := range g.surface.Load().byName {
		if t.member.Upstream == m.Upstream {
			shown[t.original] = t
		}
	}
	var list []ToolStatus
	for _, raw := range m.Known().Tools {
		status := ToolStatus{Name: member1(raw, "name"), Hidden: m.Tools[member1(raw, "name")].Hide}
		status.Description, _ = described(member1(raw, "description"))
		if t := shown[status.Name]; t != nil {
			status.Description, status.Held = t.description, t.blocked
			if t.blocked == "" {
				status.Shown = t.name
			}
		}
		list = append(list, status)
	}
	return list
}

// ToolsIn are the tools of a catalog, as they are known without a gateway.
func ToolsIn(c *upstream.Catalog, rules map[string]ToolRule) []ToolStatus {
	var list []ToolStatus
	for _, raw := range c.Tools {
		name := member1(raw, "name")
		description, _ := described(member1(raw, "description"))
		if rule := rules[name]; rule.Description != "" {
			description = rule.Description
		}
		list = append(list, ToolStatus{Name: name, Description: description, Hidden: rules[name].Hide})
	}
	return list
}

// PromptsOf are the names by which clients know the prompts of an upstream.
func (g *Gateway) PromptsOf(name string) []string {
	var names []string
	for _, p := range g.surface.Load().prompts {
		if p.member.Name() == name {
			names = append(names, p.name)
		}
	}
	return names
}

// NotesOf are what a person should know of an upstream.
func (g *Gateway) NotesOf(name string) []string {
	var texts []string
	for _, n := range g.Notes() {
		if n.Upstream == name {
			texts = append(texts, strings.TrimPrefix(n.Tool+": "+n.Message, ": "))
		}
	}
	return texts
}

// Refresh asks an upstream for what it offers now.
func (g *Gateway) Refresh(ctx context.Context, name string) error {
	m := g.member(name)
	if m == nil {
		return notInUse(name)
	}
	_, err := m.Refresh(ctx)
	g.rebuild()
	return err
}

func notInUse(name string) error {
	return guideway.Errorf(guideway.CodeNotFound, "the upstream %q is not in use", clip(name, upstream.MaxNameLength)).
		WithFix("see whether it is disabled, or of another project")
}

// Restart ends the sessions of an upstream and has the next call begin anew, its
// failures forgotten. Calls under way are answered.
func (g *Gateway) Restart(name string) error {
	g.mu.Lock()
	i := slices.IndexFunc(g.members, func(m *member) bool { return m.Name() == name })
	if i < 0 || g.closed {
		g.mu.Unlock()
		return notInUse(name)
	}
	old := g.members[i]
	g.members = slices.Clone(g.members)
	g.members[i] = &member{Entry: old.Entry, Upstream: g.open(old.Entry)}
	g.mu.Unlock()
	g.rebuild()
	g.retire(old)
	return nil
}

// retire ends upstreams that are no longer in use, once their calls are answered.
func (g *Gateway) retire(gone ...*member) {
	for _, m := range gone {
		g.late.Delete(m.Upstream)
		g.wg.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), drainTime)
			defer cancel()
			m.Close(ctx)
		})
	}
}

// drainTime is how long calls to an upstream that was taken out may take.
const drainTime = 2 * time.Minute
