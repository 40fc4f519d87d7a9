package machines

import (
	"maps"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/definition/doc"
	"github.com/guideway-dev/guideway/internal/definition/shape"
)

// Offers are the tools that a configuration offers to the agents of machines, as far
// as that is known without asking anybody.
type Offers struct {
	// Tools are the names of those that are known.
	Tools []string
	// Servers are what the names of each server's tools begin with, "" where they
	// begin with nothing of their own.
	Servers []string
	// Unasked are those of Servers whose tools nobody knows yet.
	Unasked []string
}

// LintOffers warns of patterns of tools that fit nothing which is offered: of roles
// that agents play, and of policies. It is not for errors, since a server may be
// configured later, and offer other tools every day. files are those of a machine that
// loads.
func LintOffers(files Files, o Offers) []guideway.Diagnostic {
	d, at, _ := parse(files)
	if d == nil {
		return nil
	}
	l := linter{parser: newParser(d.File), d: d}
	for i := range d.Tools {
		l.offered(at.Key("tools").Key(d.Tools[i].Pattern), d.Tools[i].Pattern, o)
	}
	left := maps.Clone(d.Roles)
	l.offeredTo(at.Key("roles"), left, o)
	found := l.Findings(guideway.SeverityWarning)
	for _, f := range files.Roles {
		root, _ := doc.Parse(f.Path, f.Data, doc.Limits{})
		one := linter{parser: newParser(f.Path), d: d}
		one.offeredTo(shape.Root(root, "roles"), left, o)
		found = append(found, one.Findings(guideway.SeverityWarning)...)
	}
	return found
}

// offeredTo judges the patterns of roles in one place. Those that it has are left no
// more: a later place of the same name does not count.
func (l *linter) offeredTo(at shape.Place, left map[string]*Role, o Offers) {
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
				l.offered(patterns.Index(i), patterns.Node.Items[i].Text, o)
			}
		}
	}
}

// offered warns of a pattern that fits nothing.
func (l *linter) offered(at shape.Place, pattern string, o Offers) {
	switch server, named := o.server(pattern); {
	case o.fits(pattern):
	case named:
		l.Warnf(at, CodeToolUnknown, l.Guess(pattern, o.of(server), "mend the name: guideway upstream show has those of a server"),
			"The server '%s' had no tool that '%s' fits when it was last asked.", strings.TrimSuffix(server, serverEnd), pattern)
	default:
		l.Warnf(at, CodeToolUnknown, l.Guess(pattern, func() []string { return o.near(pattern) }, "add the server: guideway upstream add, or mend the name: guideway upstream list has those that there are"),
			"Nothing that is configured offers a tool that '%s' fits.", pattern)
	}
}

// serverEnd stands between the name of a server and that of its tool.
const serverEnd = "__"

// fits says whether a pattern fits a tool that is known, or may fit one that nobody
// knows yet.
func (o Offers) fits(pattern string) bool {
	head, _, star := strings.Cut(pattern, "*")
	return slices.ContainsFunc(o.Tools, func(name string) bool { return MatchTool(pattern, name) }) ||
		slices.ContainsFunc(o.Unasked, func(server string) bool {
			return strings.HasPrefix(head, server) || star && strings.HasPrefix(server, head)
		})
}

// server gives the server that a pattern names.
func (o Offers) server(pattern string) (begins string, named bool) {
	for _, server := range o.Servers {
		if server != "" && strings.HasPrefix(pattern, server) {
			return server, true
		}
	}
	return "", false
}

// of gives the tools of a server.
func (o Offers) of(server string) func() []string {
	return func() []string {
		return slices.DeleteFunc(slices.Clone(o.Tools), func(name string) bool { return !strings.HasPrefix(name, server) })
	}
}

// near gives the names that a pattern may have been meant for: the tools, and what it
// would be with the name of another server.
func (o Offers) near(pattern string) []string {
	known := slices.Clone(o.Tools)
	if _, tool, ok := strings.Cut(pattern, serverEnd); ok {
		for _, server := range o.Servers {
			if server != "" {
				known = append(known, server+tool)
			}
		}
	}
	return known
}
