package record

import "slices"

// Heat adds up what the nodes of one hook graph did.
type Heat struct {
	graph    string
	requests int64
	order    []string
	nodes    map[string]*nodeHeat
}

type nodeHeat struct {
	label  string
	took   []float64
	errors int64
}

// NewHeat begins with nothing.
func NewHeat(graph string) *Heat { return &Heat{graph: graph, nodes: map[string]*nodeHeat{}} }

// Add adds what the graphs of one request did; others than the wanted one are
// passed over, and so are nodes that still run.
func (h *Heat) Add(graphs []Graph) {
	found := false
	for _, g := range graphs {
		if g.ID != h.graph {
			continue
		}
		found = true
		for i := range g.Nodes {
			h.node(&g.Nodes[i])
		}
	}
	if found {
		h.requests++
	}
}

func (h *Heat) node(n *Node) {
	if n.Pending || n.Skipped {
		return
	}
	of := h.nodes[n.ID]
	if of == nil {
		of = &nodeHeat{label: n.Label}
		h.nodes[n.ID] = of
		h.order = append(h.order, n.ID)
	}
	of.took = append(of.took, n.MS)
	if n.Error != nil {
		of.errors++
	}
}

// Requests is how many requests the graph was part of.
func (h *Heat) Requests() int64 { return h.requests }

// Nodes gives the figures, in the order in which nodes were first seen.
func (h *Heat) Nodes() []NodeStats {
	list := make([]NodeStats, 0, len(h.order))
	for _, id := range h.order {
		of := h.nodes[id]
		slices.Sort(of.took)
		list = append(list, NodeStats{
			ID: id, Label: of.label, Count: int64(len(of.took)), Errors: of.errors, P50: percentile(of.took, 50), P99: percentile(of.took, 99),
		})
	}
	return list
}

// percentile is the value that at least so many percent of a sorted list do not
// exceed: of few values the 99th is the largest.
func percentile(sorted []float64, percent int) float64 {
	return sorted[(len(sorted)*percent+99)/100-1]
}
