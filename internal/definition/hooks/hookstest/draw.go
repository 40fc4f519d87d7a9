// Package hookstest draws hook graphs, legal and illegal ones, and judges them by
// a second and naive reading of the rules.
package hookstest

import (
	"fmt"

	"pgregory.net/rapid"

	"github.com/guideway-dev/guideway/internal/condition"
	"github.com/guideway-dev/guideway/internal/definition/hooks"
)

// maxDrawn bounds the nodes of a graph that may be illegal: the naive checker
// walks all ways through it.
const maxDrawn = 6

// Any draws a graph that breaks any rules, or none.
func Any(t *rapid.T) *hooks.Graph {
	g := &hooks.Graph{ID: "drawn", Name: "Drawn", Type: hooks.ToolsCall}
	for i := range rapid.IntRange(1, maxDrawn).Draw(t, "nodes") {
		id := fmt.Sprintf("n%d", i)
		if rapid.IntRange(0, 15).Draw(t, "same id") == 0 {
			id = "n0"
		}
		kind := rapid.SampledFrom([]hooks.NodeKind{hooks.Start, hooks.End, hooks.Call, hooks.HookNode, hooks.HookNode, hooks.ConditionNode}).Draw(t, "kind")
		if i == 0 && rapid.IntRange(0, 5).Draw(t, "start first") > 0 {
			kind = hooks.Start
		}
		g.Nodes = append(g.Nodes, newNode(t, id, kind))
	}
	for range rapid.IntRange(0, len(g.Nodes)+2).Draw(t, "edges") {
		edge := hooks.Edge{Source: anyID(t, g), Target: anyID(t, g)}
		if n := g.Node(edge.Source); n != nil && n.Kind == hooks.ConditionNode {
			edge.Branch = rapid.SampledFrom([]hooks.Branch{hooks.True, hooks.False, hooks.True, hooks.False, hooks.NoBranch, "maybe"}).Draw(t, "branch")
		}
		g.Edges = append(g.Edges, edge)
	}
	return g
}

// anyID draws the id of a node, or seldom one that there is not.
func anyID(t *rapid.T, g *hooks.Graph) string {
	i := rapid.IntRange(0, 6*len(g.Nodes)).Draw(t, "end")
	if i == 6*len(g.Nodes) {
		return "nowhere"
	}
	return g.Nodes[i%len(g.Nodes)].ID
}

func newNode(t *rapid.T, id string, kind hooks.NodeKind) hooks.Node {
	n := hooks.Node{ID: id, Kind: kind}
	switch kind {
	case hooks.HookNode:
		n.Hook = &hooks.Hook{
			Script: "// " + id, Blocking: rapid.IntRange(0, 2).Draw(t, "blocking") > 0,
			Answers: rapid.IntRange(0, 4).Draw(t, "answers") == 0,
		}
	case hooks.ConditionNode:
		n.Condition, n.Source = condition.ParseStrict(map[string]any{
			"type": "simple", "variable": "variables." + id, "operator": "==", "value": true,
		}), `{"operator":"==","type":"simple","value":true,"variable":"variables.`+id+`"}`
	default:
	}
	return n
}

// Legal draws a graph that breaks no rule. Each condition reads the variable with
// the id of its node.
func Legal(t *rapid.T) *hooks.Graph {
	d := &graphDrawer{T: t, g: &hooks.Graph{ID: "drawn", Name: "Drawn", Type: hooks.ToolsCall}}
	d.drawFrom(d.addNode(hooks.Start), hooks.NoBranch, 4, false, false)
	return d.g
}

// graphDrawer is a legal graph in the making.
type graphDrawer struct {
	*rapid.T
	g *hooks.Graph
}

// addNode adds a node and gives its position.
func (d *graphDrawer) addNode(kind hooks.NodeKind) int {
	n := newNode(d.T, fmt.Sprintf("n%d", len(d.g.Nodes)), kind)
	if n.Hook != nil {
		n.Hook.Blocking, n.Hook.Answers = true, false
	}
	d.g.Nodes = append(d.g.Nodes, n)
	return len(d.g.Nodes) - 1
}

// addEdge adds an edge.
func (d *graphDrawer) addEdge(from, to int, branch hooks.Branch) {
	d.g.Edges = append(d.g.Edges, hooks.Edge{Source: d.g.Nodes[from].ID, Target: d.g.Nodes[to].ID, Branch: branch})
}

// drawFrom draws all that comes after a node, by one of its branches.
func (d *graphDrawer) drawFrom(from int, branch hooks.Branch, left int, called, answered bool) {
	for range rapid.IntRange(0, 2).Draw(d.T, "aside") {
		aside := d.addNode(hooks.HookNode)
		d.g.Nodes[aside].Hook.Blocking = false
		d.addEdge(from, aside, branch)
	}
	kinds := []hooks.NodeKind{hooks.HookNode, hooks.HookNode, hooks.ConditionNode}
	if !called {
		kinds = append(kinds, hooks.Call)
	}
	if left <= 0 {
		kinds = []hooks.NodeKind{hooks.Call}
	}
	if called || answered {
		kinds = append(kinds, hooks.End)
		if left <= 0 {
			kinds = []hooks.NodeKind{hooks.End}
		}
	}
	kind := rapid.SampledFrom(kinds).Draw(d.T, "kind")
	n := d.addNode(kind)
	d.addEdge(from, n, branch)
	switch kind {
	case hooks.End:
	case hooks.ConditionNode:
		d.drawFrom(n, hooks.True, left-1, called, answered)
		d.drawFrom(n, hooks.False, left-1, called, answered)
	case hooks.HookNode:
		answers := !called && rapid.IntRange(0, 5).Draw(d.T, "answers") == 0
		d.g.Nodes[n].Hook.Answers = answers
		d.drawFrom(n, hooks.NoBranch, left-1, called, answered || answers)
	default:
		d.drawFrom(n, hooks.NoBranch, left-1, true, answered)
	}
}
