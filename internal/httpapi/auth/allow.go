package auth

import (
	"context"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/guideway-dev/guideway"
)

// Allow lists what a token of ScopeMCP may use. Anything else is denied; the zero value
// allows nothing.
type Allow struct {
	// All allows everything.
	All bool `json:"all,omitempty"`
	// Upstreams and Projects allow all tools of upstreams, by the upstream's name or by its
	// project.
	Upstreams []string `json:"upstreams,omitempty"`
	Projects  []string `json:"projects,omitempty"`
	// Tools allow single upstream tools by patterns of the names that clients see, such as
	// "github__get_*".
	Tools []string `json:"tools,omitempty"`
	// Toolsets allow Guideway's own tools with their prompts and resources.
	Toolsets []string `json:"toolsets,omitempty"`
}

// IsEmpty reports whether nothing is allowed.
func (a *Allow) IsEmpty() bool {
	return a == nil || !a.All && len(a.Upstreams)+len(a.Projects)+len(a.Tools)+len(a.Toolsets) == 0
}

// Covers reports whether a allows everything that b allows. It compares names, so it may
// return false for the same tools if a and b name them differently.
func (a *Allow) Covers(b *Allow) bool {
	within := func(some, all []string) bool {
		return !slices.ContainsFunc(some, func(name string) bool { return !slices.Contains(all, name) })
	}
	return a.All || !b.All && within(b.Upstreams, a.Upstreams) && within(b.Projects, a.Projects) &&
		within(b.Tools, a.Tools) && within(b.Toolsets, a.Toolsets)
}

// Delegation is the access that a client with a named token passes to work that continues
// without the client: no more access than the token has, and for no longer.
type Delegation struct {
	Allow
	// Token is the ID of the TokenLease.
	Token string `json:"token,omitempty"`
}

// Delegate returns the access that the client of ctx passes on. It is nil, which means
// everything, for a client without a named token. The work outlasts an access token, because
// its client renews it.
func Delegate(ctx context.Context) *Delegation {
	h := TokenLeaseFrom(ctx)
	if h == nil || h.isAccess {
		return nil
	}
	return &Delegation{Allow: h.Allow, Token: h.ID}
}

// maxAllowed is the maximum number of names of one kind, and the maximum length of each.
const maxAllowed = 200

func (a *Allow) validate() error {
	for what, list := range map[string][]string{"upstreams": a.Upstreams, "projects": a.Projects, "tools": a.Tools, "toolsets": a.Toolsets} {
		if len(list) > maxAllowed {
			return guideway.Errorf(guideway.CodeInvalid, "a token can name at most %d %s, not %d", maxAllowed, what, len(list)).
				WithFix("name fewer %s, or create several tokens", what)
		}
		for _, name := range list {
			switch {
			case name == "":
				return guideway.Errorf(guideway.CodeInvalid, "one of the %s has an empty name", what).WithFix("remove the empty name")
			case len(name) > maxAllowed:
				return guideway.Errorf(guideway.CodeInvalid, "the name %q in %s has %d bytes; at most %d are allowed", clipText(name), what, len(name), maxAllowed).WithFix("shorten the name")
			case strings.ContainsFunc(name, unicode.IsControl):
				return guideway.Errorf(guideway.CodeInvalid, "the name %q in %s contains a control character", clipText(name), what).WithFix("remove the control character")
			}
		}
	}
	for _, pattern := range a.Tools {
		if _, err := path.Match(pattern, "x"); err != nil {
			return guideway.Errorf(guideway.CodeInvalid, "%q is not a valid tool pattern", clipText(pattern)).
				WithFix(`use * for any characters, such as "github__get_*"`)
		}
	}
	return nil
}
