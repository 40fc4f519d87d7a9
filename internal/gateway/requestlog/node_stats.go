package requestlog

import "slices"

// nodeStats sums up the effects of the nodes of one hook graph.
type nodeStats struct {
	graph    string
	requests int64
	order    []string
	nodes    map[string]*nodeSamples
}

type nodeSamples struct {
	label  string
	took   []float64
	errors int64
}

func newNodeStats(graph string) *nodeStats {
	return &nodeStats{graph: graph, nodes: map[string]*nodeSamples{}}
}

// addGraphs adds the effects of the graph on one request. It skips other graphs, and nodes
// that were skipped or have not ended.
func (s *nodeStats) addGraphs(graphs []Graph) {
	found := false
	for _, g := range graphs {
		if g.ID != s.graph {
			continue
		}
		found = true
		for i := range g.Nodes {
			s.addNode(&g.Nodes[i])
		}
	}
	if found {
		s.requests++
	}
}

func (s *nodeStats) addNode(n *Node) {
	if n.Pending || n.Skipped {
		return
	}
	of := s.nodes[n.ID]
	if of == nil {
		of = &nodeSamples{label: n.Label}
		s.nodes[n.ID] = of
		s.order = append(s.order, n.ID)
	}
	of.took = append(of.took, n.MS)
	if n.Error != nil {
		of.errors++
	}
}

// nodeList returns the statistics in the order in which nodes were first seen.
func (s *nodeStats) nodeList() []NodeStats {
	list := make([]NodeStats, 0, len(s.order))
	for _, id := range s.order {
		of := s.nodes[id]
		slices.Sort(of.took)
		list = append(list, NodeStats{
			ID: id, Label: of.label, Count: int64(len(of.took)), Errors: of.errors, P50: percentile(of.took, 50), P99: percentile(of.took, 99),
		})
	}
	return list
}

// percentile returns the smallest value of a sorted list that is at least as large as the
// given percentage of the list's values. The 99th percentile of a short list is its largest
// value.
func percentile(sorted []float64, percent int) float64 {
	return sorted[(len(sorted)*percent+99)/100-1]
}
