package engine

import (
	"github.com/guideway-dev/guideway"
	hookdef "github.com/guideway-dev/guideway/internal/hooks/definition"
)

// Program is a compiled graph. It is safe for concurrent use.
type Program struct {
	graph *hookdef.Linked
	nodes []node
	start int
	// handles reports which events besides results a hook handles.
	handles map[hookdef.Event]bool
}

// node is a node with the indices of its successors.
type node struct {
	*hookdef.Node
	script hookdef.Script
	// next is the next node on the main path, and background the fire-and-forget hooks; for
	// a condition, both by branch.
	next       map[hookdef.Branch]int
	background map[hookdef.Branch][]int
}

// Compile compiles a graph. It returns an error for an invalid graph: the engine runs
// checked graphs only.
func Compile(l *hookdef.Linked) (*Program, error) {
	if problems := l.Diagnostics(); len(problems) > 0 {
		return nil, guideway.Errorf(guideway.CodeInvalidDefinition, "the hook graph %s breaks a rule: %s", l.ID, problems[0].Message).
			WithFix("%s", problems[0].Fix)
	}
	p := &Program{graph: l, nodes: make([]node, len(l.Nodes)), handles: map[hookdef.Event]bool{}}
	numbers := map[string]int{}
	for i := range l.Nodes {
		n := &l.Nodes[i]
		numbers[n.ID] = i
		p.nodes[i] = node{Node: n, script: l.Scripts[n.ID], next: map[hookdef.Branch]int{}, background: map[hookdef.Branch][]int{}}
		if n.Kind == hookdef.Start {
			p.start = i
		}
		if n.Kind == hookdef.HookNode {
			for _, e := range n.Hook.Handles {
				p.handles[e] = true
			}
		}
		if n.Kind == hookdef.HookNode && p.nodes[i].script.Text == "" {
			return nil, guideway.Errorf(guideway.CodeInvalidDefinition, "the hook %s of the hook graph %s has no script", n.ID, l.ID)
		}
		if n.Kind == hookdef.ConditionNode && n.Condition == nil {
			return nil, guideway.Errorf(guideway.CodeInvalidDefinition, "the condition node %s of the hook graph %s has no condition", n.ID, l.ID)
		}
	}
	for _, e := range l.Edges {
		from, to := &p.nodes[numbers[e.Source]], numbers[e.Target]
		if p.nodes[to].IsFireAndForget() {
			from.background[e.Branch] = append(from.background[e.Branch], to)
		} else {
			from.next[e.Branch] = to
		}
	}
	return p, nil
}

// next returns the node after a node on the main path.
func (p *Program) next(n *node, branch hookdef.Branch) *node { return &p.nodes[n.next[branch]] }

// Graph returns the source graph of the program.
func (p *Program) Graph() *hookdef.Linked { return p.graph }
