package gateway

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway/internal/authn"
)

// access says what a client may use. The zero value is nothing.
type access struct {
	authn.Allow
}

// may is what a client may use: everything, but for one that came in by a token of
// its own, which says what.
func (g *Gateway) may(ctx context.Context) *access {
	h := authn.TokenLeaseFrom(ctx)
	if h == nil {
		return &access{authn.Allow{All: true}}
	}
	return &access{h.Allow}
}

// none tells whether nothing of any upstream may be used.
func (a *access) none() bool {
	return !a.All && len(a.Upstreams)+len(a.Projects)+len(a.Tools) == 0
}

// upstream tells whether all of an upstream may be used.
func (a *access) upstream(m *member) bool {
	return a.All || slices.Contains(a.Upstreams, m.Name()) || m.Project != "" && slices.Contains(a.Projects, m.Project)
}

// tool tells whether a tool may be used.
func (a *access) tool(t *tool) bool {
	return a.upstream(t.member) || slices.ContainsFunc(a.Tools, func(pattern string) bool {
		ok, err := path.Match(pattern, t.name)
		return ok && err == nil
	})
}

// perhaps tells whether anything of an upstream may be used, whatever it turns out
// to offer.
func (a *access) perhaps(m *member) bool {
	prefix := m.prefix()
	return a.upstream(m) || slices.ContainsFunc(a.Tools, func(pattern string) bool {
		plain := pattern
		if at := strings.IndexAny(pattern, `*?[\`); at >= 0 {
			plain = pattern[:at]
		}
		if plain == pattern {
			return strings.HasPrefix(pattern, prefix)
		}
		return strings.HasPrefix(plain, prefix) || strings.HasPrefix(prefix, plain)
	})
}

// some tells whether anything of an upstream may be used.
func (a *access) some(s *surface, m *member) bool {
	return a.upstream(m) || slices.ContainsFunc(s.tools, func(t *tool) bool { return t.member.Upstream == m.Upstream && a.tool(t) })
}
