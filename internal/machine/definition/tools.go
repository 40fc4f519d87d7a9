package definition

import (
	"slices"

	"github.com/guideway-dev/guideway/internal/platform/wildcard"
)

// Allows reports whether the role may use a tool.
func (r *Role) Allows(name string) bool {
	fits := func(pattern string) bool { return wildcard.Match(pattern, name) }
	if r.HasExcluded {
		return !slices.ContainsFunc(r.Excluded, fits)
	}
	return slices.ContainsFunc(r.Included, fits)
}

// WantsTools reports whether any role of the machine has tools other than parsing tools.
func (m *Machine) WantsTools() bool {
	for _, r := range m.Roles {
		if r.HasExcluded || len(r.Included) > 0 {
			return true
		}
	}
	return false
}

// AllowsTool reports whether any role of the machine may use a tool.
func (m *Machine) AllowsTool(name string) bool {
	for _, r := range m.Roles {
		if r.Allows(name) {
			return true
		}
	}
	return false
}

// Policy returns the first policy that matches a tool, or the zero value if none matches.
func (m *Machine) Policy(name string) ToolPolicy {
	for _, p := range m.Tools {
		if wildcard.Match(p.Pattern, name) {
			return p
		}
	}
	return ToolPolicy{}
}
