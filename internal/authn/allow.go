package authn

import (
	"context"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/guideway-dev/guideway"
)

// Allow is what a token of ScopeMCP may use. What it does not name is denied, so
// that the zero value allows nothing.
type Allow struct {
	// All allows everything.
	All bool `json:"all,omitempty"`
	// Upstreams and Projects allow everything of upstreams, by their names and
	// by the project that they are in.
	Upstreams []string `json:"upstreams,omitempty"`
	Projects  []string `json:"projects,omitempty"`
	// Tools allow single tools of upstreams, by patterns on the names that
	// clients see, such as "github__get_*".
	Tools []string `json:"tools,omitempty"`
	// Toolsets allow Guideway's own tools, with the prompts and resources that
	// belong to them.
	Toolsets []string `json:"toolsets,omitempty"`
}

// Nothing tells whether nothing is allowed.
func (a *Allow) Nothing() bool {
	return a == nil || !a.All && len(a.Upstreams)+len(a.Projects)+len(a.Tools)+len(a.Toolsets) == 0
}

// Covers tells whether what b allows is allowed by a, too, as far as their words
// tell: what is named in another way is taken for something else.
func (a *Allow) Covers(b *Allow) bool {
	within := func(some, all []string) bool {
		return !slices.ContainsFunc(some, func(name string) bool { return !slices.Contains(all, name) })
	}
	return a.All || !b.All && within(b.Upstreams, a.Upstreams) && within(b.Projects, a.Projects) &&
		within(b.Tools, a.Tools) && within(b.Toolsets, a.Toolsets)
}

// Lent is what a client with a named token lends to what it begins and what goes on
// without it: no more than it may use itself, and for no longer.
type Lent struct {
	Allow
	// Token is the Holder's ID.
	Token string `json:"token,omitempty"`
}

// Lend gives what the client of ctx lends; nil is everything, of a client without a
// named token.
func Lend(ctx context.Context) *Lent {
	h := HolderFrom(ctx)
	if h == nil {
		return nil
	}
	return &Lent{Allow: h.Allow, Token: h.ID}
}

// maxAllowed bounds the names of one kind, and the length of each.
const maxAllowed = 200

func (a *Allow) check() error {
	for what, list := range map[string][]string{"upstreams": a.Upstreams, "projects": a.Projects, "tools": a.Tools, "toolsets": a.Toolsets} {
		if len(list) > maxAllowed {
			return guideway.Errorf(guideway.CodeInvalid, "a token names %d %s at most", maxAllowed, what).
				WithFix("use projects, or patterns of tools")
		}
		for _, name := range list {
			if name == "" || len(name) > maxAllowed || strings.ContainsFunc(name, unicode.IsControl) {
				return guideway.Errorf(guideway.CodeInvalid, "one of the %s has no name, or one that is too long", what).
					WithFix("name it as it is listed")
			}
		}
	}
	for _, pattern := range a.Tools {
		if _, err := path.Match(pattern, "x"); err != nil {
			return guideway.Errorf(guideway.CodeInvalid, "%q is not a pattern of tools", clip(pattern)).
				WithFix(`use * for any letters, such as "github__get_*"`)
		}
	}
	return nil
}
