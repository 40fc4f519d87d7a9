package definition

import "strings"

// MatchTool reports whether a tool's name matches a pattern, in which * matches any text.
func MatchTool(pattern, name string) bool {
	first, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == name
	}
	name, ok := strings.CutPrefix(name, first)
	if !ok {
		return false
	}
	for {
		var part string
		part, rest, star = strings.Cut(rest, "*")
		if !star {
			return strings.HasSuffix(name, part)
		}
		at := strings.Index(name, part)
		if at < 0 {
			return false
		}
		name = name[at+len(part):]
	}
}

// Allows reports whether the role may use a tool.
func (r *Role) Allows(name string) bool {
	fits := func(patterns []string) bool {
		for _, p := range patterns {
			if MatchTool(p, name) {
				return true
			}
		}
		return false
	}
	if r.HasExcluded {
		return !fits(r.Excluded)
	}
	return fits(r.Included)
}

// WantsTools reports whether any role has tools other than parsing tools.
func (m *Machine) WantsTools() bool {
	for _, r := range m.Roles {
		if r.HasExcluded || len(r.Included) > 0 {
			return true
		}
	}
	return false
}

// Policy returns the policy for a tool; the zero value if none matches.
func (m *Machine) Policy(name string) ToolPolicy {
	for _, p := range m.Tools {
		if MatchTool(p.Pattern, name) {
			return p
		}
	}
	return ToolPolicy{}
}
