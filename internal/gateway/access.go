package gateway

import (
	"context"
	"path"
	"slices"
)

// Access says what a principal may use. The zero value is nothing.
type Access struct {
	// All allows everything.
	All bool
	// Upstreams and Projects allow what is in them; Tools allow single tools,
	// by patterns on the names that clients see, such as "github__get_*".
	Upstreams []string
	Projects  []string
	Tools     []string
}

// upstream tells whether all of an upstream may be used.
func (a *Access) upstream(m *member) bool {
	return a.All || slices.Contains(a.Upstreams, m.Name()) || m.Project != "" && slices.Contains(a.Projects, m.Project)
}

// tool tells whether a tool may be used.
func (a *Access) tool(t *tool) bool {
	return a.upstream(t.member) || slices.ContainsFunc(a.Tools, func(pattern string) bool {
		ok, err := path.Match(pattern, t.name)
		return ok && err == nil
	})
}

// access is what a client may use.
func (g *Gateway) access(ctx context.Context, c *Client) *Access {
	if g.opts.Access == nil {
		return &Access{All: true}
	}
	a := g.opts.Access(ctx, c.Principal)
	return &a
}
