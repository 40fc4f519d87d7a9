// Package definitiontest generates valid and invalid hook graphs, and checks them with a
// second, naive implementation of the rules.
package definitiontest

import (
	"fmt"

	"pgregory.net/rapid"

	hookdef "github.com/guideway-dev/guideway/internal/hooks/definition"
	"github.com/guideway-dev/guideway/internal/workflow/expr"
)

// maxDrawn limits the nodes of a possibly invalid graph: the naive checker follows all its
// paths.
const maxDrawn = 6

// Any draws a graph that may violate any rule.
func Any(t *rapid.T) *hookdef.Graph {
	g := &hookdef.Graph{ID: "drawn", Name: "Drawn", Type: hookdef.ToolsCall}
	for i := range rapid.IntRange(1, maxDrawn).Draw(t, "nodes") {
		id := fmt.Sprintf("n%d", i)
		if rapid.IntRange(0, 15).Draw(t, "same id") == 0 {
			id = "n0"
		}
		kind := rapid.SampledFrom([]hookdef.NodeKind{hookdef.Start, hookdef.End, hookdef.Call, hookdef.HookNode, hookdef.HookNode, hookdef.ConditionNode}).Draw(t, "kind")
		if i == 0 && rapid.IntRange(0, 5).Draw(t, "start first") > 0 {
			kind = hookdef.Start
		}
		g.Nodes = append(g.Nodes, newNode(t, id, kind))
	}
	for range rapid.IntRange(0, len(g.Nodes)+2).Draw(t, "edges") {
		edge := hookdef.Edge{Source: anyID(t, g), Target: anyID(t, g)}
		if n := g.Node(edge.Source); n != nil && n.Kind == hookdef.ConditionNode {
			edge.Branch = rapid.SampledFrom([]hookdef.Branch{hookdef.True, hookdef.False, hookdef.True, hookdef.False, hookdef.NoBranch, "maybe"}).Draw(t, "branch")
		}
		g.Edges = append(g.Edges, edge)
	}
	return g
}

// anyID draws the id of a node, or rarely an unknown id.
func anyID(t *rapid.T, g *hookdef.Graph) string {
	i := rapid.IntRange(0, 6*len(g.Nodes)).Draw(t, "end")
	if i == 6*len(g.Nodes) {
		return "nowhere"
	}
	return g.Nodes[i%len(g.Nodes)].ID
}

func newNode(t *rapid.T, id string, kind hookdef.NodeKind) hookdef.Node {
	n := hookdef.Node{ID: id, Kind: kind}
	switch kind {
	case hookdef.HookNode:
		n.Hook = &hookdef.Hook{
			Script: "// " + id, Blocking: rapid.IntRange(0, 2).Draw(t, "blocking") > 0,
			Answers: rapid.IntRange(0, 4).Draw(t, "answers") == 0,
		}
	case hookdef.ConditionNode:
		n.Condition, n.Source = expr.ParseStrict(map[string]any{
			"type": "simple", "variable": "variables." + id, "operator": "==", "value": true,
		}), `{"operator":"==","type":"simple","value":true,"variable":"variables.`+id+`"}`
	default:
	}
	return n
}

// Legal draws a valid graph. Each condition reads the variable with the id of its node.
func Legal(t *rapid.T) *hookdef.Graph {
	d := &graphDrawer{T: t, g: &hookdef.Graph{ID: "drawn", Name: "Drawn", Type: hookdef.ToolsCall}}
	d.drawFrom(d.addNode(hookdef.Start), hookdef.NoBranch, 4, false, false)
	return d.g
}

// graphDrawer builds a valid graph.
type graphDrawer struct {
	*rapid.T
	g *hookdef.Graph
}

// addNode adds a node and returns its index.
func (d *graphDrawer) addNode(kind hookdef.NodeKind) int {
	n := newNode(d.T, fmt.Sprintf("n%d", len(d.g.Nodes)), kind)
	if n.Hook != nil {
		n.Hook.Blocking, n.Hook.Answers = true, false
	}
	d.g.Nodes = append(d.g.Nodes, n)
	return len(d.g.Nodes) - 1
}

func (d *graphDrawer) addEdge(from, to int, branch hookdef.Branch) {
	d.g.Edges = append(d.g.Edges, hookdef.Edge{Source: d.g.Nodes[from].ID, Target: d.g.Nodes[to].ID, Branch: branch})
}

// drawFrom draws all nodes that follow a node on one of its branches.
func (d *graphDrawer) drawFrom(from int, branch hookdef.Branch, left int, called, answered bool) {
	for range rapid.IntRange(0, 2).Draw(d.T, "aside") {
		aside := d.addNode(hookdef.HookNode)
		d.g.Nodes[aside].Hook.Blocking = false
		d.addEdge(from, aside, branch)
	}
	kinds := []hookdef.NodeKind{hookdef.HookNode, hookdef.HookNode, hookdef.ConditionNode}
	if !called {
		kinds = append(kinds, hookdef.Call)
	}
	if left <= 0 {
		kinds = []hookdef.NodeKind{hookdef.Call}
	}
	if called || answered {
		kinds = append(kinds, hookdef.End)
		if left <= 0 {
			kinds = []hookdef.NodeKind{hookdef.End}
		}
	}
	kind := rapid.SampledFrom(kinds).Draw(d.T, "kind")
	n := d.addNode(kind)
	d.addEdge(from, n, branch)
	switch kind {
	case hookdef.End:
	case hookdef.ConditionNode:
		d.drawFrom(n, hookdef.True, left-1, called, answered)
		d.drawFrom(n, hookdef.False, left-1, called, answered)
	case hookdef.HookNode:
		answers := !called && rapid.IntRange(0, 5).Draw(d.T, "answers") == 0
		d.g.Nodes[n].Hook.Answers = answers
		d.drawFrom(n, hookdef.NoBranch, left-1, called, answered || answers)
	default:
		d.drawFrom(n, hookdef.NoBranch, left-1, true, answered)
	}
}
