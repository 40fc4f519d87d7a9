package hookstest

import (
	"slices"
	"strconv"

	"github.com/guideway-dev/guideway/internal/definition/hooks"
)

// Judge names the rules that a graph breaks and where: "call-twice n3". It takes
// each rule by its words and tries all that there is, with nothing in common with
// the checker that it is compared with.
func Judge(g *hooks.Graph) []string {
	j := &naiveJudge{g: g, broken: map[string]bool{}}
	j.checkIDs()
	j.checkEdges()
	starts, ends := j.nodesOf(hooks.Start), j.nodesOf(hooks.End)
	if len(starts) == 0 {
		j.addBroken(hooks.CodeStartCount, "")
	}
	for _, n := range starts[min(1, len(starts)):] {
		j.addBroken(hooks.CodeStartCount, n.ID)
	}
	if len(ends) == 0 {
		j.addBroken(hooks.CodeEndMissing, "")
	}
	for _, n := range j.nodes {
		j.checkEdgeCounts(n)
		if j.hasPath(n.ID, n.ID) && !slices.ContainsFunc(j.nodesBefore(n), func(o *hooks.Node) bool { return j.hasPath(n.ID, o.ID) && j.hasPath(o.ID, n.ID) }) {
			j.addBroken(hooks.CodeCycle, n.ID)
		}
		if len(starts) > 0 && n.Kind != hooks.Start && !slices.ContainsFunc(starts, func(s *hooks.Node) bool { return j.hasPath(s.ID, n.ID) }) {
			j.addBroken(hooks.CodeUnreachable, n.ID)
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

// naiveJudge is one judgement.
type naiveJudge struct {
	g *hooks.Graph
	// nodes and ways are those that count: the first of an id, and those between
	// such nodes, each once.
	nodes  []*hooks.Node
	edges  []hooks.Edge
	broken map[string]bool
}

func (j *naiveJudge) addBroken(code, where string) { j.broken[code+" "+where] = true }

// nodesOf gives the nodes of a kind.
func (j *naiveJudge) nodesOf(kind hooks.NodeKind) (nodes []*hooks.Node) {
	for _, n := range j.nodes {
		if n.Kind == kind {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// nodesBefore gives the nodes that stand before another in the document.
func (j *naiveJudge) nodesBefore(n *hooks.Node) []*hooks.Node {
	return j.nodes[:slices.Index(j.nodes, n)]
}

func (j *naiveJudge) findNode(id string) *hooks.Node {
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
			j.addBroken(hooks.CodeDuplicateID, n.ID)
			continue
		}
		j.nodes = append(j.nodes, n)
		if n.Kind == hooks.HookNode && n.Hook.Answers && !n.Hook.Blocking {
			j.addBroken(hooks.CodeAnswersAside, n.ID)
		}
	}
}

func (j *naiveJudge) checkEdges() {
	for i, e := range j.g.Edges {
		from, to := j.findNode(e.Source), j.findNode(e.Target)
		if from == nil || to == nil {
			j.addBroken(hooks.CodeEdgeUnknown, "edge "+strconv.Itoa(i))
			continue
		}
		if slices.Contains(j.edges, e) {
			j.addBroken(hooks.CodeEdgeTwice, "edge "+strconv.Itoa(i))
			continue
		}
		j.edges = append(j.edges, e)
		edge := "edge " + strconv.Itoa(i)
		if to.Kind == hooks.Start {
			j.addBroken(hooks.CodeStartInput, edge)
		}
		if from.Kind == hooks.End {
			j.addBroken(hooks.CodeEndOutput, edge)
		}
		if from.Kind == hooks.HookNode && !from.Hook.Blocking {
			j.addBroken(hooks.CodeAsideOutput, edge)
		}
		if from.Kind == hooks.ConditionNode && e.Branch != "true" && e.Branch != "false" {
			j.addBroken(hooks.CodeBranch, edge)
		}
	}
}

// checkEdgeCounts counts the edges of a node.
func (j *naiveJudge) checkEdgeCounts(n *hooks.Node) {
	in, on := 0, map[hooks.Branch]int{}
	for _, e := range j.edges {
		if e.Target == n.ID {
			in++
		}
		if e.Source == n.ID && isBlocking(j.findNode(e.Target)) {
			on[e.Branch]++
		}
	}
	if n.Kind != hooks.Start && in > 1 {
		j.addBroken(hooks.CodeInputMany, n.ID)
	}
	if n.Kind == hooks.End || !isBlocking(n) {
		return
	}
	branches := []hooks.Branch{""}
	if n.Kind == hooks.ConditionNode {
		branches = []hooks.Branch{"true", "false"}
	}
	for _, b := range branches {
		if on[b] == 0 {
			j.addBroken(hooks.CodeWayOpen, n.ID)
		}
		if on[b] > 1 {
			j.addBroken(hooks.CodeOutputMany, n.ID)
		}
	}
}

// isBlocking says whether the call waits for a node.
func isBlocking(n *hooks.Node) bool { return n.Kind != hooks.HookNode || n.Hook.Blocking }

// hasPath says whether a way of at least one edge leads from one node to another.
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

// walkPaths tries all ways of so many nodes, circles included.
func (j *naiveJudge) walkPaths(n *hooks.Node, left int, called, answered bool) {
	if left < 0 || !isBlocking(n) {
		return
	}
	switch {
	case n.Kind == hooks.Call && called:
		j.addBroken(hooks.CodeCallTwice, n.ID)
	case n.Kind == hooks.Call:
		called = true
	case n.Kind == hooks.HookNode && n.Hook.Answers:
		answered = true
	case n.Kind == hooks.End && !called && !answered:
		j.addBroken(hooks.CodeCallMissing, n.ID)
	}
	for _, e := range j.edges {
		if e.Source == n.ID {
			j.walkPaths(j.findNode(e.Target), left-1, called, answered)
		}
	}
}
