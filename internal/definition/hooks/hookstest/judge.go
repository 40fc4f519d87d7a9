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
	j := &judge{g: g, broken: map[string]bool{}}
	j.identities()
	j.edges()
	starts, ends := j.of(hooks.Start), j.of(hooks.End)
	if len(starts) == 0 {
		j.say(hooks.CodeStartCount, "")
	}
	for _, n := range starts[min(1, len(starts)):] {
		j.say(hooks.CodeStartCount, n.ID)
	}
	if len(ends) == 0 {
		j.say(hooks.CodeEndMissing, "")
	}
	for _, n := range j.nodes {
		j.counts(n)
		if j.leads(n.ID, n.ID) && !slices.ContainsFunc(j.before(n), func(o *hooks.Node) bool { return j.leads(n.ID, o.ID) && j.leads(o.ID, n.ID) }) {
			j.say(hooks.CodeCycle, n.ID)
		}
		if len(starts) > 0 && n.Kind != hooks.Start && !slices.ContainsFunc(starts, func(s *hooks.Node) bool { return j.leads(s.ID, n.ID) }) {
			j.say(hooks.CodeUnreachable, n.ID)
		}
	}
	for _, s := range starts {
		j.walk(s, 2*len(j.nodes)+1, false, false)
	}
	var all []string
	for what := range j.broken {
		all = append(all, what)
	}
	slices.Sort(all)
	return all
}

// judge is one judgement.
type judge struct {
	g *hooks.Graph
	// nodes and ways are those that count: the first of an id, and those between
	// such nodes, each once.
	nodes  []*hooks.Node
	ways   []hooks.Edge
	broken map[string]bool
}

func (j *judge) say(code, where string) { j.broken[code+" "+where] = true }

// of gives the nodes of a kind.
func (j *judge) of(kind hooks.NodeKind) (nodes []*hooks.Node) {
	for _, n := range j.nodes {
		if n.Kind == kind {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// before gives the nodes that stand before another in the document.
func (j *judge) before(n *hooks.Node) []*hooks.Node { return j.nodes[:slices.Index(j.nodes, n)] }

func (j *judge) find(id string) *hooks.Node {
	for _, n := range j.nodes {
		if n.ID == id {
			return n
		}
	}
	return nil
}

func (j *judge) identities() {
	for i := range j.g.Nodes {
		n := &j.g.Nodes[i]
		if j.find(n.ID) != nil {
			j.say(hooks.CodeDuplicateID, n.ID)
			continue
		}
		j.nodes = append(j.nodes, n)
		if n.Kind == hooks.HookNode && n.Hook.Answers && !n.Hook.Blocking {
			j.say(hooks.CodeAnswersAside, n.ID)
		}
	}
}

func (j *judge) edges() {
	for i, e := range j.g.Edges {
		from, to := j.find(e.Source), j.find(e.Target)
		if from == nil || to == nil {
			j.say(hooks.CodeEdgeUnknown, "edge "+strconv.Itoa(i))
			continue
		}
		if slices.Contains(j.ways, e) {
			j.say(hooks.CodeEdgeTwice, "edge "+strconv.Itoa(i))
			continue
		}
		j.ways = append(j.ways, e)
		edge := "edge " + strconv.Itoa(i)
		if to.Kind == hooks.Start {
			j.say(hooks.CodeStartInput, edge)
		}
		if from.Kind == hooks.End {
			j.say(hooks.CodeEndOutput, edge)
		}
		if from.Kind == hooks.HookNode && !from.Hook.Blocking {
			j.say(hooks.CodeAsideOutput, edge)
		}
		if from.Kind == hooks.ConditionNode && e.Branch != "true" && e.Branch != "false" {
			j.say(hooks.CodeBranch, edge)
		}
	}
}

// counts counts the edges of a node.
func (j *judge) counts(n *hooks.Node) {
	in, on := 0, map[hooks.Branch]int{}
	for _, e := range j.ways {
		if e.Target == n.ID {
			in++
		}
		if e.Source == n.ID && main(j.find(e.Target)) {
			on[e.Branch]++
		}
	}
	if n.Kind != hooks.Start && in > 1 {
		j.say(hooks.CodeInputMany, n.ID)
	}
	if n.Kind == hooks.End || !main(n) {
		return
	}
	branches := []hooks.Branch{""}
	if n.Kind == hooks.ConditionNode {
		branches = []hooks.Branch{"true", "false"}
	}
	for _, b := range branches {
		if on[b] == 0 {
			j.say(hooks.CodeWayOpen, n.ID)
		}
		if on[b] > 1 {
			j.say(hooks.CodeOutputMany, n.ID)
		}
	}
}

// main says whether the call waits for a node.
func main(n *hooks.Node) bool { return n.Kind != hooks.HookNode || n.Hook.Blocking }

// leads says whether a way of at least one edge leads from one node to another.
func (j *judge) leads(from, to string) bool {
	reached := []string{from}
	for range j.nodes {
		for _, id := range slices.Clone(reached) {
			for _, e := range j.ways {
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

// walk tries all ways of so many nodes, circles included.
func (j *judge) walk(n *hooks.Node, left int, called, answered bool) {
	if left < 0 || !main(n) {
		return
	}
	switch {
	case n.Kind == hooks.Call && called:
		j.say(hooks.CodeCallTwice, n.ID)
	case n.Kind == hooks.Call:
		called = true
	case n.Kind == hooks.HookNode && n.Hook.Answers:
		answered = true
	case n.Kind == hooks.End && !called && !answered:
		j.say(hooks.CodeCallMissing, n.ID)
	}
	for _, e := range j.ways {
		if e.Source == n.ID {
			j.walk(j.find(e.Target), left-1, called, answered)
		}
	}
}
