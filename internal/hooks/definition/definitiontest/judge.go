package definitiontest

import (
	"slices"
	"strconv"

	hookdef "github.com/guideway-dev/guideway/internal/hooks/definition"
)

// Judge returns the violated rules with their places: "call-twice n3". It implements each
// rule literally by exhaustive search and shares no code with the checker.
func Judge(g *hookdef.Graph) []string {
	j := &naiveJudge{g: g, broken: map[string]bool{}}
	j.checkIDs()
	j.checkEdges()
	starts, ends := j.nodesOf(hookdef.Start), j.nodesOf(hookdef.End)
	if len(starts) == 0 {
		j.addBroken(hookdef.CodeStartCount, "")
	}
	for _, n := range starts[min(1, len(starts)):] {
		j.addBroken(hookdef.CodeStartCount, n.ID)
	}
	if len(ends) == 0 {
		j.addBroken(hookdef.CodeEndMissing, "")
	}
	for _, n := range j.nodes {
		j.checkEdgeCounts(n)
		if j.hasPath(n.ID, n.ID) && !slices.ContainsFunc(j.nodesBefore(n), func(o *hookdef.Node) bool { return j.hasPath(n.ID, o.ID) && j.hasPath(o.ID, n.ID) }) {
			j.addBroken(hookdef.CodeCycle, n.ID)
		}
		if len(starts) > 0 && n.Kind != hookdef.Start && !slices.ContainsFunc(starts, func(s *hookdef.Node) bool { return j.hasPath(s.ID, n.ID) }) {
			j.addBroken(hookdef.CodeUnreachable, n.ID)
		}
	}
	for _, s := range starts {
		j.walkPaths(s, 2*len(j.nodes)+1, false, false)
	}
	var all []string
	for what := range j.broken {
		all = append(all, what)
	}
	slices.Sort(all)
	return all
}

// naiveJudge is the state of one check.
type naiveJudge struct {
	g *hookdef.Graph
	// nodes and edges are the parts of the graph that are checked: the first node with each
	// id, and the unique edges between such nodes.
	nodes  []*hookdef.Node
	edges  []hookdef.Edge
	broken map[string]bool
}

func (j *naiveJudge) addBroken(code, where string) { j.broken[code+" "+where] = true }

// nodesOf returns the nodes of a kind.
func (j *naiveJudge) nodesOf(kind hookdef.NodeKind) (nodes []*hookdef.Node) {
	for _, n := range j.nodes {
		if n.Kind == kind {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// nodesBefore returns the nodes that precede a node in the document.
func (j *naiveJudge) nodesBefore(n *hookdef.Node) []*hookdef.Node {
	return j.nodes[:slices.Index(j.nodes, n)]
}

func (j *naiveJudge) findNode(id string) *hookdef.Node {
	for _, n := range j.nodes {
		if n.ID == id {
			return n
		}
	}
	return nil
}

func (j *naiveJudge) checkIDs() {
	for i := range j.g.Nodes {
		n := &j.g.Nodes[i]
		if j.findNode(n.ID) != nil {
			j.addBroken(hookdef.CodeDuplicateID, n.ID)
			continue
		}
		j.nodes = append(j.nodes, n)
		if n.Kind == hookdef.HookNode && n.Hook.Answers && !n.Hook.Blocking {
			j.addBroken(hookdef.CodeFireAndForgetAnswers, n.ID)
		}
	}
}

func (j *naiveJudge) checkEdges() {
	for i, e := range j.g.Edges {
		from, to := j.findNode(e.Source), j.findNode(e.Target)
		if from == nil || to == nil {
			j.addBroken(hookdef.CodeEdgeUnknown, "edge "+strconv.Itoa(i))
			continue
		}
		if slices.Contains(j.edges, e) {
			j.addBroken(hookdef.CodeEdgeTwice, "edge "+strconv.Itoa(i))
			continue
		}
		j.edges = append(j.edges, e)
		edge := "edge " + strconv.Itoa(i)
		if to.Kind == hookdef.Start {
			j.addBroken(hookdef.CodeStartInput, edge)
		}
		if from.Kind == hookdef.End {
			j.addBroken(hookdef.CodeEndOutput, edge)
		}
		if from.Kind == hookdef.HookNode && !from.Hook.Blocking {
			j.addBroken(hookdef.CodeFireAndForgetOutput, edge)
		}
		if from.Kind == hookdef.ConditionNode && e.Branch != "true" && e.Branch != "false" {
			j.addBroken(hookdef.CodeBranch, edge)
		}
	}
}

// checkEdgeCounts checks the number of edges of a node.
func (j *naiveJudge) checkEdgeCounts(n *hookdef.Node) {
	in, on := 0, map[hookdef.Branch]int{}
	for _, e := range j.edges {
		if e.Target == n.ID {
			in++
		}
		if e.Source == n.ID && isBlocking(j.findNode(e.Target)) {
			on[e.Branch]++
		}
	}
	if n.Kind != hookdef.Start && in > 1 {
		j.addBroken(hookdef.CodeInputMany, n.ID)
	}
	if n.Kind == hookdef.End || !isBlocking(n) {
		return
	}
	branches := []hookdef.Branch{""}
	if n.Kind == hookdef.ConditionNode {
		branches = []hookdef.Branch{"true", "false"}
	}
	for _, b := range branches {
		if on[b] == 0 {
			j.addBroken(hookdef.CodeWayOpen, n.ID)
		}
		if on[b] > 1 {
			j.addBroken(hookdef.CodeOutputMany, n.ID)
		}
	}
}

// isBlocking reports whether the call waits for a node.
func isBlocking(n *hookdef.Node) bool { return n.Kind != hookdef.HookNode || n.Hook.Blocking }

// hasPath reports whether a path of at least one edge connects two nodes.
func (j *naiveJudge) hasPath(from, to string) bool {
	reached := []string{from}
	for range j.nodes {
		for _, id := range slices.Clone(reached) {
			for _, e := range j.edges {
				if e.Source == id && e.Target == to {
					return true
				}
				if e.Source == id && !slices.Contains(reached, e.Target) {
					reached = append(reached, e.Target)
				}
			}
		}
	}
	return false
}

// walkPaths visits all paths of at most left+1 nodes from n, cycles included.
func (j *naiveJudge) walkPaths(n *hookdef.Node, left int, called, answered bool) {
	if left < 0 || !isBlocking(n) {
		return
	}
	switch {
	case n.Kind == hookdef.Call && called:
		j.addBroken(hookdef.CodeCallTwice, n.ID)
	case n.Kind == hookdef.Call:
		called = true
	case n.Kind == hookdef.HookNode && n.Hook.Answers:
		answered = true
	case n.Kind == hookdef.End && !called && !answered:
		j.addBroken(hookdef.CodeCallMissing, n.ID)
	}
	for _, e := range j.edges {
		if e.Source == n.ID {
			j.walkPaths(j.findNode(e.Target), left-1, called, answered)
		}
	}
}
