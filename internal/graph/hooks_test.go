package graph_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/guideway-dev/guideway/internal/condition"
	"github.com/guideway-dev/guideway/internal/definition/hooks"
	"github.com/guideway-dev/guideway/internal/graph"
)

// A hook graph is drawn with its branches, and with what runs aside as such.
func TestHooks(t *testing.T) {
	t.Parallel()
	g := &hooks.Graph{
		Nodes: []hooks.Node{
			{ID: "s", Kind: hooks.Start, Label: "Start"},
			{ID: "c", Kind: hooks.Call},
			{ID: "w", Kind: hooks.ConditionNode, Condition: &condition.Expr{Op: condition.Equals, Mode: condition.Strict, Var: "response.isError", Value: true}},
			{ID: "a", Kind: hooks.HookNode, Label: "Audit [it]", Hook: &hooks.Hook{}},
			{ID: "e", Kind: hooks.End},
			{ID: "f", Kind: hooks.End, Label: "Failed"},
		},
		Edges: []hooks.Edge{
			{Source: "s", Target: "c"},
			{Source: "c", Target: "w"},
			{Source: "c", Target: "a"},
			{Source: "w", Target: "f", Branch: hooks.True},
			{Source: "w", Target: "e", Branch: hooks.False},
		},
	}
	want := `flowchart TB
  n1(["Start"])
  n2["c"]
  n3{"response.isError is true"}
  n4["Audit [it]"]
  n5(["e"])
  n6(["Failed"])
  n1 --> n2
  n2 --> n3
  n2 -.-> |"aside"| n4
  n3 --> |"true"| n6
  n3 --> |"false"| n5
`
	if diff := cmp.Diff(want, graph.Hooks(g).Mermaid()); diff != "" {
		t.Error(diff)
	}
}
