package definition_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	hookdef "github.com/guideway-dev/guideway/internal/hooks/definition"
	"github.com/guideway-dev/guideway/internal/hooks/definition/definitiontest"
)

// checkerRules returns the diagnostics of the checker in the form of definitiontest.Judge.
func checkerRules(g *hookdef.Graph) []string {
	var all []string
	for _, p := range g.Diagnostics() {
		where := p.Node
		if edge, ok := strings.CutPrefix(string(p.Pointer), "/edges/"); ok {
			number, _, _ := strings.Cut(edge, "/")
			where = "edge " + number
		}
		all = append(all, p.Code+" "+where)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// The checker and a second, naive implementation of the rules report the same errors for
// all kinds of graphs, and none for graphs that are generated as valid.
func TestCheckerAgreesWithJudge(t *testing.T) {
	t.Parallel()
	t.Run("any", func(t *testing.T) {
		t.Parallel()
		rapid.Check(t, func(t *rapid.T) {
			g := definitiontest.Any(t)
			if diff := cmp.Diff(definitiontest.Judge(g), checkerRules(g)); diff != "" {
				t.Fatalf("%+v\n%+v\n(-naive +checker):\n%s", g.Nodes, g.Edges, diff)
			}
		})
	})
	t.Run("legal", func(t *testing.T) {
		t.Parallel()
		rapid.Check(t, func(t *rapid.T) {
			g := definitiontest.Legal(t)
			if found := checkerRules(g); len(found) > 0 {
				t.Fatalf("%v\n%+v\n%+v", found, g.Nodes, g.Edges)
			}
			if naive := definitiontest.Judge(g); len(naive) > 0 && len(g.Nodes) < 12 {
				t.Fatalf("%v", naive)
			}
		})
	})
	// For a valid graph with one edge added, removed, reversed or redirected, both
	// implementations report the same errors.
	t.Run("damaged", func(t *testing.T) {
		t.Parallel()
		rapid.Check(t, func(t *rapid.T) {
			g := definitiontest.Legal(t)
			if len(g.Nodes) > 9 {
				t.Skip("too many paths for the naive checker")
			}
			i := rapid.IntRange(0, len(g.Edges)-1).Draw(t, "edge")
			switch rapid.IntRange(0, 3).Draw(t, "damage") {
			case 0:
				g.Edges = slices.Delete(g.Edges, i, i+1)
			case 1:
				g.Edges[i].Source, g.Edges[i].Target = g.Edges[i].Target, g.Edges[i].Source
			case 2:
				g.Edges = append(g.Edges, hookdef.Edge{Source: g.Edges[i].Target, Target: g.Edges[0].Target})
			default:
				g.Edges[i].Target = rapid.SampledFrom(g.Nodes).Draw(t, "target").ID
			}
			for i := range g.Edges {
				if n := g.Node(g.Edges[i].Source); n != nil && n.Kind != hookdef.ConditionNode {
					g.Edges[i].Branch = hookdef.NoBranch // set the branch, as the parser does
				}
			}
			if diff := cmp.Diff(definitiontest.Judge(g), checkerRules(g)); diff != "" {
				t.Fatalf("%+v\n%+v\n(-naive +checker):\n%s", g.Nodes, g.Edges, diff)
			}
		})
	})
}

// Match agrees with a naive implementation for all short names.
func TestPatterns(t *testing.T) {
	t.Parallel()
	var names []string
	for _, a := range []string{"", "a", "b"} {
		for _, b := range []string{"", "a", "b"} {
			for _, c := range []string{"", "a", "b"} {
				for _, d := range []string{"", "a", "b"} {
					for _, e := range []string{"", "a", "b"} {
						names = append(names, a+b+c+d+e)
					}
				}
			}
		}
	}
	pattern := rapid.StringOfN(rapid.RuneFrom([]rune("ab*?")), 1, 3, -1)
	rapid.Check(t, func(t *rapid.T) {
		a := pattern.Draw(t, "a")
		for _, name := range names {
			if got, want := hookdef.Match(a, name), naiveMatch(a, name); got != want {
				t.Fatalf("Match(%q, %q) = %v", a, name, got)
			}
		}
	})
}

// naiveMatch reports whether a pattern matches by trying every length for a star.
func naiveMatch(pattern, name string) bool {
	switch {
	case pattern == "":
		return name == ""
	case pattern[0] == '*':
		for i := 0; i <= len(name); i++ {
			if naiveMatch(pattern[1:], name[i:]) {
				return true
			}
		}
		return false
	default:
		return name != "" && (pattern[0] == '?' || pattern[0] == name[0]) && naiveMatch(pattern[1:], name[1:])
	}
}

// A node whose edges lead only to fire-and-forget hooks is reported with this reason.
func TestOnlyFireAndForgetHooksFollow(t *testing.T) {
	t.Parallel()
	g := &hookdef.Graph{
		Nodes: []hookdef.Node{{ID: "start", Kind: hookdef.Start}, {ID: "log", Kind: hookdef.HookNode, Hook: &hookdef.Hook{}}, {ID: "end", Kind: hookdef.End}},
		Edges: []hookdef.Edge{{Source: "start", Target: "log"}},
	}
	for _, d := range g.Diagnostics() {
		if d.Code == hookdef.CodeWayOpen && d.Node == "start" {
			if want := "All edges from node 'start' lead to fire-and-forget hooks; one edge must lead to another node."; d.Message != want {
				t.Errorf("the message is %q", d.Message)
			}
			return
		}
	}
	t.Error("the node is not reported")
}
