package graph_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/guideway-dev/guideway/internal/catalog/graph"
	hookdef "github.com/guideway-dev/guideway/internal/hooks/definition"
	"github.com/guideway-dev/guideway/internal/workflow/expr"
)

// A hook graph is drawn with its branches, and fire-and-forget hooks are marked.
func TestHooks(t *testing.T) {
	t.Parallel()
	g := &hookdef.Graph{
		Nodes: []hookdef.Node{
			{ID: "s", Kind: hookdef.Start, Label: "Start"},
			{ID: "c", Kind: hookdef.Call},
			{ID: "w", Kind: hookdef.ConditionNode, Condition: &expr.Expr{Op: expr.Equals, Mode: expr.Strict, Var: "response.isError", Value: true}},
			{ID: "a", Kind: hookdef.HookNode, Label: "Audit [it]", Hook: &hookdef.Hook{}},
			{ID: "e", Kind: hookdef.End},
			{ID: "f", Kind: hookdef.End, Label: "Failed"},
		},
		Edges: []hookdef.Edge{
			{Source: "s", Target: "c"},
			{Source: "c", Target: "w"},
			{Source: "c", Target: "a"},
			{Source: "w", Target: "f", Branch: hookdef.True},
			{Source: "w", Target: "e", Branch: hookdef.False},
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
  n2 -.-> |"fire-and-forget"| n4
  n3 --> |"true"| n6
  n3 --> |"false"| n5
`
	if diff := cmp.Diff(want, graph.Hooks(g).Mermaid()); diff != "" {
		t.Error(diff)
	}
}
