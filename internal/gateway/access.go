package gateway

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway/internal/httpapi/auth"
)

// access is the set of upstreams and tools that a client may use. The zero value allows
// nothing.
type access struct {
	auth.Allow
}

// accessOf returns the access of a client. A client with its own token is limited to the
// token's access; all other clients may use everything.
func (g *Gateway) accessOf(ctx context.Context) *access {
	h := auth.TokenLeaseFrom(ctx)
	if h == nil {
		return &access{auth.Allow{All: true}}
	}
	return &access{h.Allow}
}

// isEmpty reports whether access allows nothing at all.
func (a *access) isEmpty() bool {
	return !a.All && len(a.Upstreams)+len(a.Projects)+len(a.Tools) == 0
}

// allowsUpstream reports whether the whole upstream may be used.
func (a *access) allowsUpstream(m *member) bool {
	return a.All || slices.Contains(a.Upstreams, m.Name()) || m.Project != "" && slices.Contains(a.Projects, m.Project)
}

// allowsTool reports whether a tool may be used.
func (a *access) allowsTool(t *tool) bool {
	return a.allowsUpstream(t.member) || slices.ContainsFunc(a.Tools, func(pattern string) bool {
		// Patterns are matched with the full name: an advertised name can end with a hash,
		// which a pattern with wildcards could match by chance.
		ok, err := path.Match(pattern, t.full)
		return ok && err == nil || pattern == t.name
	})
}

// mayAllow reports whether any part of an upstream could be allowed, before its tools are
// known.
func (a *access) mayAllow(m *member) bool {
	prefix := m.shortPrefix()
	return a.allowsUpstream(m) || slices.ContainsFunc(a.Tools, func(pattern string) bool {
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

// allowsPart reports whether any part of an upstream may be used.
func (a *access) allowsPart(s *surface, m *member) bool {
	return a.allowsUpstream(m) || slices.ContainsFunc(s.tools, func(t *tool) bool { return t.member.Upstream == m.Upstream && a.allowsTool(t) })
}
