package definition

import (
	"maps"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/wildcard"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
	"github.com/guideway-dev/guideway/internal/workflow/shape"
)

// AvailableTools are the tools that a configuration provides to the agents of machines, as
// far as they are known without a request to a server.
type AvailableTools struct {
	// Tools are the known names.
	Tools []string
	// Servers are the prefixes of the tool names of each server; "" for a server without a
	// prefix.
	Servers []string
	// Unasked lists the elements of Servers whose tools are still unknown.
	Unasked []string
}

// LintAvailableTools reports tool patterns of used roles and policies that match no
// available tool. These are only warnings, because a server may be configured later, and
// its tools may change. files must be those of a valid machine.
func LintAvailableTools(files Files, o AvailableTools) []guideway.Diagnostic {
	d, at, _ := parseFiles(files)
	if d == nil {
		return nil
	}
	l := linter{parser: newParser(d.File), d: d}
	for i := range d.Tools {
		l.lintPattern(at.Key("tools").Key(d.Tools[i].Pattern), d.Tools[i].Pattern, o)
	}
	left := maps.Clone(d.Roles)
	l.lintRolePatterns(at.Key("roles"), left, o)
	found := l.Findings(guideway.SeverityWarning)
	for _, f := range files.Roles {
		root, _ := doc.Parse(f.Path, f.Data, doc.Limits{})
		one := linter{parser: newParser(f.Path), d: d}
		one.lintRolePatterns(shape.Root(root, "roles"), left, o)
		found = append(found, one.Findings(guideway.SeverityWarning)...)
	}
	return found
}

// lintRolePatterns checks the patterns of the roles at a place, and removes these roles
// from left, because later definitions of the same name have no effect.
func (l *linter) lintRolePatterns(at shape.Place, left map[string]*Role, o AvailableTools) {
	for _, name := range slices.Sorted(maps.Keys(left)) {
		role := at.Key(name)
		if role.Node == nil {
			continue
		}
		delete(left, name)
		for _, key := range []string{"includedTools", "excludedTools"} {
			patterns := role.Key(key)
			if patterns.Node == nil {
				continue
			}
			for i := range patterns.Node.Items {
				l.lintPattern(patterns.Index(i), patterns.Node.Items[i].Text, o)
			}
		}
	}
}

// lintPattern reports a pattern that matches no tool.
func (l *linter) lintPattern(at shape.Place, pattern string, o AvailableTools) {
	switch server, named := o.serverOf(pattern); {
	case o.fitsAny(pattern):
	case named:
		l.Warnf(at, CodeToolUnknown, l.Guess(pattern, o.toolsOf(server), "fix the name: guideway upstream show lists the tools of an upstream"),
			"The upstream '%s' had no tool that matches '%s' when its tools were last listed.", strings.TrimSuffix(server, serverSeparator), pattern)
	default:
		l.Warnf(at, CodeToolUnknown, l.Guess(pattern, func() []string { return o.similarNames(pattern) }, "add the upstream: guideway upstream add, or fix the name: guideway upstream list shows the configured upstreams"),
			"No configured upstream offers a tool that matches '%s'.", pattern)
	}
}

// serverSeparator separates the names of a server and its tool.
const serverSeparator = "__"

// fitsAny reports whether a pattern matches a known tool, or may match an unknown one.
func (o AvailableTools) fitsAny(pattern string) bool {
	head, _, star := strings.Cut(pattern, "*")
	return slices.ContainsFunc(o.Tools, func(name string) bool { return wildcard.Match(pattern, name) }) ||
		slices.ContainsFunc(o.Unasked, func(server string) bool {
			return strings.HasPrefix(head, server) || star && strings.HasPrefix(server, head)
		})
}

// serverOf returns the server prefix that a pattern begins with. named reports whether
// there is one.
func (o AvailableTools) serverOf(pattern string) (begins string, named bool) {
	for _, server := range o.Servers {
		if server != "" && strings.HasPrefix(pattern, server) {
			return server, true
		}
	}
	return "", false
}

// toolsOf returns the tools of a server.
func (o AvailableTools) toolsOf(server string) func() []string {
	return func() []string {
		return slices.DeleteFunc(slices.Clone(o.Tools), func(name string) bool { return !strings.HasPrefix(name, server) })
	}
}

// similarNames returns candidates for a misspelled pattern: the tools, and the pattern with
// the prefix of each server.
func (o AvailableTools) similarNames(pattern string) []string {
	known := slices.Clone(o.Tools)
	if _, tool, ok := strings.Cut(pattern, serverSeparator); ok {
		for _, server := range o.Servers {
			if server != "" {
				known = append(known, server+tool)
			}
		}
	}
	return known
}
