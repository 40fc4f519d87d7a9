package definition

import (
	"fmt"
	"slices"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/lists"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
	"github.com/guideway-dev/guideway/internal/workflow/shape"
)

// checkStructure checks the rules that a schema cannot express: unique module IDs,
// bindings, and the structure of the graph.
func (p *parser) checkStructure(at shape.Place, g *Graph) {
	p.checkModuleIDs(at.Key("modules"), g)
	if types := g.AllTypes(); slices.Contains(types, ToolsList) || !slices.Contains(types, ToolsCall) {
		for i := range g.Bindings {
			if g.Bindings[i].Tool != "" {
				p.Errorf(at.Key("bindings").Index(i).Key("tool"), CodeBindingTool, "remove 'tool', and choose by context.request.params in a hook",
					"Only a graph for tools/call can be bound to a tool: a list, a resource or a prompt of an upstream has none.")
			}
		}
	}
	if slices.Contains(g.Also, g.Type) {
		p.Errorf(at.Key("also"), CodeAlsoTwice, "remove the method from 'also'", "The method %s is in 'also' and in 'workflowType'.", g.Type)
	}
	if len(g.Nodes) > maxNodes || len(g.Edges) > maxEdges {
		return // the number of paths in an invalid graph can be exponential
	}
	for _, diagnostic := range g.Diagnostics() {
		p.Errorf(at.Below(diagnostic.Pointer), diagnostic.Code, diagnostic.Fix, "%s", diagnostic.Message)
	}
}

// checkModuleIDs checks that the included modules have unique IDs and names.
func (p *parser) checkModuleIDs(at shape.Place, g *Graph) {
	seen := map[string]bool{}
	for i := range g.Modules {
		m := &g.Modules[i]
		if m.ID != "" && (seen[m.ID] || m.ID != m.Name && seen[m.Name]) {
			p.Errorf(at.Index(i).Key("id"), CodeDuplicateID, "give each module a unique id and name", "Another module already has the id or name of module '%s'.", m.ID)
		}
		seen[m.ID], seen[m.Name] = true, true
	}
}

// Diagnostics returns a diagnostic for each violated rule of the graph's structure. A valid
// graph is a tree from its start, with at most one call on each path.
func (g *Graph) Diagnostics() []guideway.Diagnostic {
	c := &checker{Graph: g, numbers: make(map[string]int, len(g.Nodes))}
	c.indexEdges()
	c.checkEnds()
	for n := range g.Nodes {
		if c.isFirstOfID(n) {
			c.checkNode(n)
		}
	}
	c.checkCycles()
	c.checkReachability()
	c.checkPaths()
	return c.found
}

// checker collects the diagnostics of one graph.
type checker struct {
	*Graph
	// numbers maps an ID to the index of the first node with this ID.
	numbers map[string]int
	// in and out are the indices of the valid edges to and from each node, without
	// duplicates.
	in, out [][]int
	found   []guideway.Diagnostic
}

// isFirstOfID reports whether a node is the first one with its ID.
func (c *checker) isFirstOfID(n int) bool {
	return c.numbers[c.Nodes[n].ID] == n && c.Nodes[n].ID != ""
}

// addNodeError adds a diagnostic of a node.
func (c *checker) addNodeError(n int, code, fix, format string, args ...any) {
	c.found = append(c.found, guideway.Diagnostic{
		Code: code, Pointer: string(doc.Pointer("").Key("nodes").Index(n)), Node: c.Nodes[n].ID, Message: fmt.Sprintf(format, args...), Fix: fix,
	})
}

// addEdgeError adds a diagnostic of an edge, or of one of its members.
func (c *checker) addEdgeError(e int, key, code, fix, format string, args ...any) {
	pointer := doc.Pointer("").Key("edges").Index(e)
	if key != "" {
		pointer = pointer.Key(key)
	}
	c.found = append(c.found, guideway.Diagnostic{
		Code: code, Pointer: string(pointer), Node: c.Edges[e].Source, Message: fmt.Sprintf(format, args...), Fix: fix,
	})
}

// indexEdges resolves the ends of all edges. It reports duplicate IDs, fire-and-forget
// hooks that answer, edges from or to unknown nodes, and duplicate edges.
func (c *checker) indexEdges() {
	for n := range c.Nodes {
		id := c.Nodes[n].ID
		if first, ok := c.numbers[id]; ok && id != "" {
			c.addNodeError(n, CodeDuplicateID, "give each node a unique id", "Duplicate node id '%s': node %d already has it.", id, first+1)
			continue
		}
		c.numbers[id] = n
		h := c.Nodes[n].Hook
		switch {
		case c.Nodes[n].Kind != HookNode || h == nil:
		case h.Answers && !h.Blocking:
			c.addNodeError(n, CodeFireAndForgetAnswers, "set 'blocking' to true, or remove 'answers'", "Hook '%s' is fire-and-forget: its answer would be ignored.", id)
		case len(h.Handles) > 0 && (h.Answers || !h.Blocking):
			c.addNodeError(n, CodeHandles, "remove 'handles', or use it in a blocking hook after the mcp-call", "Hook '%s' is fire-and-forget or answers instead of the upstream, so it cannot handle the outcome of the call.", id)
		}
	}
	c.in, c.out = make([][]int, len(c.Nodes)), make([][]int, len(c.Nodes))
	seen := map[Edge]int{}
	for e := range c.Edges {
		edge := c.Edges[e]
		from, hasFrom := c.findEnd(e, "source", edge.Source)
		to, hasTo := c.findEnd(e, "target", edge.Target)
		if !hasFrom || !hasTo {
			continue
		}
		if first, ok := seen[edge]; ok {
			c.addEdgeError(e, "", CodeEdgeTwice, "remove one of the two edges", "The edge from '%s' to '%s' is duplicated: edge %d is the same.", edge.Source, edge.Target, first+1)
			continue
		}
		seen[edge] = e
		c.out[from] = append(c.out[from], e)
		c.in[to] = append(c.in[to], e)
	}
}

// findEnd returns the node at one end of an edge.
func (c *checker) findEnd(e int, key, id string) (int, bool) {
	n, ok := c.numbers[id]
	if id == "" {
		return 0, false // already reported as an empty or missing text
	}
	if !ok {
		ids := lists.Map(c.Nodes, func(n Node) string { return n.ID })
		fix := (&shape.Report{}).Suggest(id, ids, "write the id of a node, or remove the edge")
		c.addEdgeError(e, key, CodeEdgeUnknown, fix, "There is no node '%s' for the edge from '%s' to '%s'.", id, c.Edges[e].Source, c.Edges[e].Target)
	}
	return n, ok
}

// checkEnds checks that there is one start and at least one end.
func (c *checker) checkEnds() {
	first, hasEnd := -1, false
	for n := range c.Nodes {
		if !c.isFirstOfID(n) {
			continue
		}
		switch c.Nodes[n].Kind {
		case Start:
			if first >= 0 {
				c.addNodeError(n, CodeStartCount, "remove one of the two nodes", "A graph has exactly one start node, but '%s' and '%s' are both start nodes.", c.Nodes[first].ID, c.Nodes[n].ID)
				continue
			}
			first = n
		case End:
			hasEnd = true
		default:
		}
	}
	root := func(code, fix, message string) {
		c.found = append(c.found, guideway.Diagnostic{Code: code, Pointer: string(doc.Pointer("").Key("nodes")), Message: message, Fix: fix})
	}
	if first < 0 {
		root(CodeStartCount, `add {"id": "start", "type": "start"}`, "The graph has no start node.")
	}
	if !hasEnd {
		root(CodeEndMissing, `add {"id": "end", "type": "end"}, and an edge to the end node`, "The graph has no end node.")
	}
}

// checkNode checks the edges of one node.
func (c *checker) checkNode(n int) {
	node := &c.Nodes[n]
	switch {
	case node.Kind == Start:
		for _, e := range c.in[n] {
			c.addEdgeError(e, "target", CodeStartInput, "remove the edge", "An edge leads from '%s' to the start '%s', which cannot have incoming edges.", c.Edges[e].Source, node.ID)
		}
	case len(c.in[n]) > 1:
		c.addNodeError(n, CodeInputMany, "keep one of the edges; if several branches need the node, add a copy of it to each branch",
			"%d edges lead to node '%s'; every node except the start has exactly one.", len(c.in[n]), node.ID)
	}
	switch {
	case node.Kind == End:
		for _, e := range c.out[n] {
			c.addEdgeError(e, "source", CodeEndOutput, "remove the edge", "An edge leads from the end '%s' to '%s'; an end cannot have outgoing edges.", node.ID, c.Edges[e].Target)
		}
	case node.IsFireAndForget():
		for _, e := range c.out[n] {
			c.addEdgeError(e, "source", CodeFireAndForgetOutput, "remove the edge, or set 'blocking' of the hook to true",
				"An edge leads from '%s' to '%s'; a fire-and-forget hook cannot have outgoing edges.", node.ID, c.Edges[e].Target)
		}
	case node.Kind == ConditionNode:
		c.checkBranches(n)
	default:
		c.checkContinuation(n, c.out[n], "")
	}
}

// checkBranches checks the branches of a condition.
func (c *checker) checkBranches(n int) {
	by := map[Branch][]int{}
	for _, e := range c.out[n] {
		branch := c.Edges[e].Branch
		if branch != True && branch != False {
			c.addEdgeError(e, "sourceHandle", CodeBranch, `write "sourceHandle": "true", or "false"`,
				"The edge from condition '%s' to '%s' is labeled neither true nor false.", c.Nodes[n].ID, c.Edges[e].Target)
			continue
		}
		by[branch] = append(by[branch], e)
	}
	for _, branch := range []Branch{True, False} {
		c.checkContinuation(n, by[branch], branch)
	}
}

// checkContinuation checks that exactly one of the edges leads to a node other than a
// fire-and-forget hook.
func (c *checker) checkContinuation(n int, edges []int, branch Branch) {
	main := lists.Filter(edges, func(e int) bool { return !c.Nodes[c.numbers[c.Edges[e].Target]].IsFireAndForget() })
	where := ""
	if branch != NoBranch {
		where = " for the branch " + string(branch)
	}
	switch {
	case len(main) == 0 && len(edges) > 0:
		c.addNodeError(n, CodeWayOpen, "add an edge from the node to an mcp-call, a blocking hook, a condition or an end",
			"All edges from node '%s'%s lead to fire-and-forget hooks; one edge must lead to another node.", c.Nodes[n].ID, where)
	case len(main) == 0:
		c.addNodeError(n, CodeWayOpen, "add an edge from the node to an mcp-call, a blocking hook, a condition or an end", "No edge leaves node '%s'%s.", c.Nodes[n].ID, where)
	case len(main) > 1:
		c.addNodeError(n, CodeOutputMany, "keep one of the edges, put a condition before them, or set 'blocking' of the hooks to false",
			"%d edges leave node '%s'%s; only one is allowed, in addition to those to fire-and-forget hooks.", len(main), c.Nodes[n].ID, where)
	}
}

// targetsOf returns the targets of a node's edges.
func (c *checker) targetsOf(n int) []int {
	var to []int
	for _, e := range c.out[n] {
		if t := c.numbers[c.Edges[e].Target]; !slices.Contains(to, t) {
			to = append(to, t)
		}
	}
	return to
}

// reachableFrom reports for each node whether a path of at least one edge leads to it from
// one of the starts.
func (c *checker) reachableFrom(starts ...int) []bool {
	seen := make([]bool, len(c.Nodes))
	for queue := starts; len(queue) > 0; queue = queue[1:] {
		for _, to := range c.targetsOf(queue[0]) {
			if !seen[to] {
				seen[to] = true
				queue = append(queue, to)
			}
		}
	}
	return seen
}

// checkCycles reports each cycle at its first node. Cycles that share a node are reported
// as one.
func (c *checker) checkCycles() {
	told := make([]bool, len(c.Nodes))
	for n := range c.Nodes {
		after := c.reachableFrom(n)
		if told[n] || !after[n] {
			continue
		}
		var circle []string
		for other := range c.Nodes {
			if after[other] && c.reachableFrom(other)[n] {
				told[other] = true
				circle = append(circle, c.Nodes[other].ID)
			}
		}
		c.addNodeError(n, CodeCycle, "remove an edge of the cycle: graphs have no loops", "The edges form a cycle: %s.", shape.QuotedAll(circle))
	}
}

// findStarts returns the nodes of the kind Start.
func (c *checker) findStarts() []int {
	var starts []int
	for n := range c.Nodes {
		if c.isFirstOfID(n) && c.Nodes[n].Kind == Start {
			starts = append(starts, n)
		}
	}
	return starts
}

// checkReachability reports the nodes that are not reachable from a start.
func (c *checker) checkReachability() {
	starts := c.findStarts()
	if len(starts) == 0 {
		return
	}
	reached := c.reachableFrom(starts...)
	for n := range c.Nodes {
		if c.isFirstOfID(n) && !reached[n] && c.Nodes[n].Kind != Start {
			c.addNodeError(n, CodeUnreachable, "add an edge to the node, or remove the node", "No path leads to node '%s', so it never runs.", c.Nodes[n].ID)
		}
	}
}

// pathState is the state of a walk: its node, and whether the path to the node contains a
// call (called) and a hook that answers (answered).
type pathState struct {
	node     int
	called   bool
	answered bool
}

// checkPaths follows all paths from a start. It reports paths with two calls, and paths to
// an end that contain neither a call nor a hook that answers. It does not follow edges of a
// fire-and-forget hook.
func (c *checker) checkPaths() {
	seen, told := map[pathState]bool{}, map[string]bool{}
	queue := lists.Map(c.findStarts(), func(n int) pathState { return pathState{node: n} })
	for ; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		if seen[at] {
			continue
		}
		seen[at] = true
		node := &c.Nodes[at.node]
		switch {
		case node.IsFireAndForget():
			continue
		case node.Kind == Call && at.called && !told[CodeCallTwice+node.ID]:
			told[CodeCallTwice+node.ID] = true
			c.addNodeError(at.node, CodeCallTwice, "keep one of the two nodes: a call is sent at most once", "A path to node '%s' has already sent the call.", node.ID)
		case node.Kind == End && !at.called && !at.answered && !told[CodeCallMissing+node.ID]:
			told[CodeCallMissing+node.ID] = true
			c.addNodeError(at.node, CodeCallMissing, "add an mcp-call to the path; or, if a hook on the path answers instead of the upstream, set 'answers' of the hook to true",
				"A path to the end '%s' has no mcp-call and no hook that answers.", node.ID)
		}
		at.called = at.called || node.Kind == Call
		at.answered = at.answered || node.Kind == HookNode && node.Hook != nil && node.Hook.Answers
		for _, to := range c.targetsOf(at.node) {
			queue = append(queue, pathState{to, at.called, at.answered})
		}
	}
}
