package graph

import (
	"strconv"

	hookdef "github.com/guideway-dev/guideway/internal/hooks/definition"
)

// labelBackground is the label of edges to fire-and-forget hooks.
const labelBackground = "fire-and-forget"

// Hooks draws a hook graph.
func Hooks(g *hookdef.Graph) *Graph {
	drawn := &Graph{}
	ids := make(map[string]string, len(g.Nodes))
	for i := range g.Nodes {
		n := &g.Nodes[i]
		ids[n.ID] = "n" + strconv.Itoa(i+1)
		node := Node{ID: ids[n.ID], Ref: n.ID, Label: n.Title(), Kind: KindStep}
		switch n.Kind {
		case hookdef.Start:
			node.Kind = KindStart
		case hookdef.End:
			node.Kind = KindEnd
		case hookdef.ConditionNode:
			node.Kind = KindChoice
			if n.Condition != nil {
				node.Label = n.Condition.String()
			}
		default:
		}
		drawn.Nodes = append(drawn.Nodes, node)
	}
	for _, e := range g.Edges {
		edge := Edge{From: ids[e.Source], To: ids[e.Target], Label: string(e.Branch)}
		if n := g.Node(e.Target); n != nil && n.IsFireAndForget() {
			edge.Skip = true
			if edge.Label == "" {
				edge.Label = labelBackground
			} else {
				edge.Label += ", " + labelBackground
			}
		}
		drawn.Edges = append(drawn.Edges, edge)
	}
	return drawn
}
