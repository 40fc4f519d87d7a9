// Package graph draws a definition: what comes after what, under which
// condition, and what repeats. It is pure.
package graph

import (
	"strings"

	"github.com/guideway-dev/guideway/internal/workflow"
	"github.com/guideway-dev/guideway/internal/workflow/expr"
	"github.com/guideway-dev/guideway/internal/workflow/steps"
)

// Graph is a drawing from top to bottom. Everything is in the order of the
// document.
type Graph struct {
	Nodes  []Node
	Edges  []Edge
	Frames []Frame
}

// Kind is the shape of a node.
type Kind string

// The kinds.
const (
	KindStart Kind = "start"
	KindEnd   Kind = "end"
	KindStep  Kind = "step"
	// KindGate waits for a person's answer.
	KindGate Kind = "gate"
	// KindChoice is where a condition is decided; its edges say which. That of
	// a decision has a label.
	KindChoice Kind = "choice"
)

// Node is one place of the drawing.
type Node struct {
	// ID is unique among nodes and frames; it is made here and never a text of
	// the document.
	ID   string
	Kind Kind
	// Label is what a person reads; most choices have none.
	Label string
	// Ref is the id of the step that the node stands for.
	Ref string
	// Frame is the id of the frame around the node, or "".
	Frame string
}

// Frame is a loop around its body, or a phase around what it holds.
type Frame struct {
	ID string
	// Label is the title, and Extent how far a loop goes or what else there is
	// to say of a phase; it may be empty.
	Label, Extent string
	Ref           string
	// Frame is the id of the frame around this one, or "".
	Frame string
}

// Edge leads from one node or frame to another.
type Edge struct {
	From, To string
	// Label is the condition in words, or the answer at a gate.
	Label string
	// Skip marks the way around what does not apply, and Back the way to the
	// next round or to a step that is done again.
	Skip, Back bool
	// Frame is the id of the frame that the edge lies in, or "".
	Frame string
}

// Words of the edges that no condition labels.
const (
	labelSkip    = "otherwise"
	labelRound   = "next round"
	labelConfirm = "confirm"
	labelRevise  = "revise"
	labelBegin   = "begin"
	labelPass    = "pass over"
)

// Of draws a definition of either dialect.
func Of(d *workflow.Definition) *Graph {
	if d.Phases != nil {
		return Phases(d.Phases)
	}
	return Steps(d.Steps)
}

// Steps draws a step workflow.
func Steps(w *steps.Workflow) *Graph {
	b := &builder{graph: &Graph{}}
	b.node(Node{ID: "start", Kind: KindStart, Label: "Start"})
	b.open = []exit{{from: "start"}}
	for _, s := range w.Walked() {
		if s.Loop == nil {
			b.step(s)
		} else {
			b.loop(s)
		}
	}
	b.enter("done", "")
	b.node(Node{ID: "done", Kind: KindEnd, Label: "End"})
	return b.graph
}

// builder draws one graph.
type builder struct {
	graph *Graph
	// open are the ways that lead to whatever comes next.
	open []exit
	// frame is the frame that is drawn, or "".
	frame string
	count map[byte]int
}

// exit is a way that has no end yet.
type exit struct {
	from, label string
	skip        bool
}

// id makes the next id of a kind: s1, s2.
func (b *builder) id(kind byte) string {
	if b.count == nil {
		b.count = map[byte]int{}
	}
	b.count[kind]++
	return string(kind) + itoa(b.count[kind])
}

func (b *builder) node(n Node) {
	n.Frame = b.frame
	b.graph.Nodes = append(b.graph.Nodes, n)
}

func (b *builder) edge(e Edge) {
	e.Frame = b.frame
	b.graph.Edges = append(b.graph.Edges, e)
}

// enter leads all open ways to a node. The label is added to theirs.
func (b *builder) enter(to, label string) {
	for _, x := range b.open {
		if x.label != "" && label != "" {
			x.label += ", "
		}
		x.label += label
		b.edge(Edge{From: x.from, To: to, Label: x.label, Skip: x.skip})
	}
	b.open = nil
}

// choose draws the choice of a step with a condition and gives the way around
// it; without a condition there is none.
func (b *builder) choose(c *expr.Expr) []exit {
	if always(c) {
		return nil
	}
	id := b.id('c')
	b.enter(id, "")
	b.node(Node{ID: id, Kind: KindChoice})
	b.open = []exit{{from: id, label: c.String()}}
	return []exit{{from: id, label: labelSkip, skip: true}}
}

func (b *builder) step(s *steps.Step) {
	around := b.choose(s.RunCondition)
	id := b.id('s')
	b.enter(id, "")
	b.node(Node{ID: id, Kind: KindStep, Label: s.Title, Ref: s.ID})
	b.open = []exit{{from: id}}
	if asks(s.Confirm) {
		around = append(around, b.choose(s.Confirm)...)
		gate := b.id('g')
		b.enter(gate, "")
		b.node(Node{ID: gate, Kind: KindGate, Label: "Confirm: " + s.Title, Ref: s.ID})
		b.edge(Edge{From: gate, To: id, Label: labelRevise, Back: true})
		b.open = []exit{{from: gate, label: labelConfirm}}
	}
	b.open = append(b.open, around...)
}

func (b *builder) loop(s *steps.Step) {
	around := b.choose(s.RunCondition)
	if asks(s.Confirm) {
		direct := b.choose(s.Confirm)
		gate := b.id('g')
		b.enter(gate, "")
		b.node(Node{ID: gate, Kind: KindGate, Label: "Begin: " + s.Title, Ref: s.ID})
		b.open = append([]exit{{from: gate, label: labelBegin}}, direct...)
		around = append(around, exit{from: gate, label: labelPass, skip: true})
	}
	id := b.id('l')
	b.enter(id, "")
	b.graph.Frames = append(b.graph.Frames, Frame{ID: id, Label: s.Title, Extent: Extent(s.Loop), Ref: s.ID})
	b.body(id, s.Loop)
	b.open = append([]exit{{from: id}}, around...)
}

// body draws the steps of a round inside their frame.
func (b *builder) body(frame string, l *steps.Loop) {
	b.frame, b.open = frame, nil
	first := len(b.graph.Nodes)
	for i := range l.Body {
		b.step(&l.Body[i])
	}
	if first < len(b.graph.Nodes) {
		from := len(b.graph.Edges)
		b.enter(b.graph.Nodes[first].ID, labelRound)
		for i := from; i < len(b.graph.Edges); i++ {
			b.graph.Edges[i].Back = true
		}
	}
	b.frame = ""
}

// Extent says in words how far a loop goes.
func Extent(l *steps.Loop) string {
	var words string
	switch l.Type {
	case steps.LoopFor:
		if l.CountVar != "" {
			words = "as many times as " + l.CountVar + " says"
			break
		}
		words = plural(l.Count, "time")
		if l.Count <= l.MaxIterations {
			return words
		}
	case steps.LoopForEach:
		words = "for each of " + l.Items
	default:
		words = string(l.Type) + " " + l.Condition.String()
	}
	return words + ", at most " + plural(l.MaxIterations, "round")
}

// always says whether a condition needs no drawing.
func always(c *expr.Expr) bool { return c == nil || c.Op == expr.Always }

// asks says whether a confirmation can ever be asked for.
func asks(c *expr.Expr) bool { return c != nil && c.Op != expr.Never }

func plural(n int, word string) string {
	if n != 1 {
		word += "s"
	}
	return strings.Join([]string{itoa(n), word}, " ")
}
