// Package graph draws a definition: the order of its parts, their conditions, and its
// loops.
package graph

import (
	"slices"
	"strconv"
	"strings"
	"unicode"

	hookdef "github.com/guideway-dev/guideway/internal/hooks/definition"
	"github.com/guideway-dev/guideway/internal/workflow"
	"github.com/guideway-dev/guideway/internal/workflow/expr"
	"github.com/guideway-dev/guideway/internal/workflow/steps"
)

// Graph is a drawing from top to bottom, in the order of the document.
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
	// KindGate is a point that needs an answer.
	KindGate Kind = "gate"
	// KindChoice is the evaluation of a condition. The node has a label only if it is a
	// decision of a phase (its name) or a condition of a hook graph (the condition).
	KindChoice Kind = "choice"
)

// Node is a node of the drawing.
type Node struct {
	// ID is unique among nodes and frames; it is generated and never a text of the
	// document.
	ID   string
	Kind Kind
	// Label is the displayed text; most choices have none.
	Label string
	// Ref is the id of the part of the definition that the node draws.
	Ref string
	// Frame is the id of the frame around the node, or "".
	Frame string
}

// Frame is the box around the body of a loop, or around the content of a phase.
type Frame struct {
	ID string
	// Label is the title. Extent describes the rounds of a loop or the details of a phase;
	// it may be empty.
	Label, Extent string
	Ref           string
	// Frame is the id of the frame that contains this frame, or "".
	Frame string
}

// Edge connects two nodes or frames.
type Edge struct {
	From, To string
	// Label is a condition, the answer at a gate, or one of the texts below; it may be
	// empty.
	Label string
	// Skip marks an edge past a part that is not executed, and an edge to a fire-and-forget
	// hook. Back marks an edge to the next round or to a step that is repeated.
	Skip, Back bool
	// Frame is the id of the frame that contains the edge, or "".
	Frame string
}

// Labels of edges that are not conditions.
const (
	labelSkip    = "otherwise"
	labelRound   = "next round"
	labelConfirm = "confirm"
	labelRevise  = "revise"
	labelBegin   = "begin"
	labelPass    = "skip"
)

// Of draws a definition of either guided dialect.
func Of(d *workflow.Definition) *Graph {
	if d.Phases != nil {
		return Phases(d.Phases)
	}
	return Steps(d.Steps)
}

// Steps draws a step workflow.
func Steps(w *steps.Workflow) *Graph {
	b := &builder{graph: &Graph{}}
	b.addNode(Node{ID: "start", Kind: KindStart, Label: "Start"})
	b.pending = []exit{{from: "start"}}
	for _, s := range w.Walked() {
		if s.Loop == nil {
			b.addStep(s)
		} else {
			b.addLoop(s)
		}
	}
	b.connectPending("done", "")
	b.addNode(Node{ID: "done", Kind: KindEnd, Label: "End"})
	return b.graph
}

// builder draws one graph.
type builder struct {
	graph *Graph
	// pending are the edges to the next node.
	pending []exit
	// frame is the current frame, or "".
	frame string
	count map[byte]int
}

// exit is an edge without a target yet.
type exit struct {
	from, label string
	skip        bool
}

// newID returns the next id of a kind: s1, s2.
func (b *builder) newID(kind byte) string {
	if b.count == nil {
		b.count = map[byte]int{}
	}
	b.count[kind]++
	return string(kind) + formatInt(b.count[kind])
}

func (b *builder) addNode(n Node) {
	n.Frame = b.frame
	b.graph.Nodes = append(b.graph.Nodes, n)
}

func (b *builder) addEdge(e Edge) {
	e.Frame = b.frame
	b.graph.Edges = append(b.graph.Edges, e)
}

// connectPending connects all pending edges to a node, and adds label to their labels.
func (b *builder) connectPending(to, label string) {
	for _, x := range b.pending {
		if x.label != "" && label != "" {
			x.label += ", "
		}
		x.label += label
		b.addEdge(Edge{From: x.from, To: to, Label: x.label, Skip: x.skip})
	}
	b.pending = nil
}

// addChoice draws the choice of a step with a condition, and returns the edge around the
// step. It returns nil if the step has no condition.
func (b *builder) addChoice(c *expr.Expr) []exit {
	if isUnconditional(c) {
		return nil
	}
	id := b.newID('c')
	b.connectPending(id, "")
	b.addNode(Node{ID: id, Kind: KindChoice})
	b.pending = []exit{{from: id, label: c.String()}}
	return []exit{{from: id, label: labelSkip, skip: true}}
}

func (b *builder) addStep(s *steps.Step) {
	around := b.addChoice(s.RunCondition)
	id := b.newID('s')
	b.connectPending(id, "")
	b.addNode(Node{ID: id, Kind: KindStep, Label: s.Title, Ref: s.ID})
	b.pending = []exit{{from: id}}
	if mayHold(s.Confirm) {
		around = append(around, b.addChoice(s.Confirm)...)
		gate := b.newID('g')
		b.connectPending(gate, "")
		b.addNode(Node{ID: gate, Kind: KindGate, Label: "Confirm: " + s.Title, Ref: s.ID})
		b.addEdge(Edge{From: gate, To: id, Label: labelRevise, Back: true})
		b.pending = []exit{{from: gate, label: labelConfirm}}
	}
	b.pending = append(b.pending, around...)
}

func (b *builder) addLoop(s *steps.Step) {
	around := b.addChoice(s.RunCondition)
	if mayHold(s.Confirm) {
		direct := b.addChoice(s.Confirm)
		gate := b.newID('g')
		b.connectPending(gate, "")
		b.addNode(Node{ID: gate, Kind: KindGate, Label: "Begin: " + s.Title, Ref: s.ID})
		b.pending = append([]exit{{from: gate, label: labelBegin}}, direct...)
		around = append(around, exit{from: gate, label: labelPass, skip: true})
	}
	id := b.newID('l')
	b.connectPending(id, "")
	b.graph.Frames = append(b.graph.Frames, Frame{ID: id, Label: s.Title, Extent: Extent(s.Loop), Ref: s.ID})
	b.addLoopBody(id, s.Loop)
	b.pending = append([]exit{{from: id}}, around...)
}

// addLoopBody draws the steps of a round in their frame.
func (b *builder) addLoopBody(frame string, l *steps.Loop) {
	b.frame, b.pending = frame, nil
	first := len(b.graph.Nodes)
	for i := range l.Body {
		b.addStep(&l.Body[i])
	}
	if first < len(b.graph.Nodes) {
		from := len(b.graph.Edges)
		b.connectPending(b.graph.Nodes[first].ID, labelRound)
		for i := from; i < len(b.graph.Edges); i++ {
			b.graph.Edges[i].Back = true
		}
	}
	b.frame = ""
}

// Extent describes the rounds of a loop.
func Extent(l *steps.Loop) string {
	var words string
	switch l.Type {
	case steps.LoopFor:
		if l.CountVar != "" {
			words = l.CountVar + " times"
			break
		}
		words = pluralize(l.Count, "time")
		if l.Count <= l.MaxIterations {
			return words
		}
	case steps.LoopForEach:
		words = "for each of " + l.Items
	default:
		words = string(l.Type) + " " + l.Condition.String()
	}
	return words + ", at most " + pluralize(l.MaxIterations, "round")
}

// isUnconditional reports whether a condition is always true.
func isUnconditional(c *expr.Expr) bool { return c == nil || c.Op == expr.Always }

// mayHold reports whether a condition is set and not always false.
func mayHold(c *expr.Expr) bool { return c != nil && c.Op != expr.Never }

func pluralize(n int, word string) string {
	if n != 1 {
		word += "s"
	}
	return strings.Join([]string{formatInt(n), word}, " ")
}

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

func formatInt(n int) string { return strconv.Itoa(n) }

// Mermaid returns the graph as a Mermaid flowchart. Texts of the document are quoted, and
// everything is escaped or removed that Mermaid would read as its own language, Markdown,
// HTML or a formula; so they cannot leave their label.
func (g *Graph) Mermaid() string {
	var b strings.Builder
	b.WriteString("flowchart TB\n")
	g.writeFrame(&b, "", "  ")
	return b.String()
}

// writeFrame writes the content of a frame: its nodes, the frames inside, and its edges,
// which Mermaid requires after the nodes that they name.
func (g *Graph) writeFrame(b *strings.Builder, frame, indent string) {
	for _, n := range g.Nodes {
		if n.Frame == frame {
			b.WriteString(indent + n.ID + n.shapeOf() + "\n")
		}
	}
	for _, f := range g.Frames {
		if f.Frame != frame {
			continue
		}
		label := escapeLabel(f.Label)
		if f.Extent != "" {
			label += "<br/>" + escapeLabel(f.Extent)
		}
		b.WriteString(indent + "subgraph " + f.ID + "[\"" + label + "\"]\n")
		b.WriteString(indent + "  direction TB\n")
		g.writeFrame(b, f.ID, indent+"  ")
		b.WriteString(indent + "end\n")
	}
	g.writeEdges(b, frame, indent)
}

func (g *Graph) writeEdges(b *strings.Builder, frame, indent string) {
	for _, e := range g.Edges {
		if e.Frame != frame {
			continue
		}
		arrow := " --> "
		if e.Skip || e.Back {
			arrow = " -.-> "
		}
		label := ""
		if e.Label != "" {
			label = "|\"" + escapeLabel(e.Label) + "\"| "
		}
		b.WriteString(indent + e.From + arrow + label + e.To + "\n")
	}
}

// shapeOf returns the shape of a node with its label.
func (n Node) shapeOf() string {
	label := "\"" + escapeLabel(n.Label) + "\""
	switch n.Kind {
	case KindStart, KindEnd:
		return "([" + label + "])"
	case KindGate:
		return "{{" + label + "}}"
	case KindChoice:
		return "{" + label + "}"
	default:
		return "[" + label + "]"
	}
}

// special are the characters with a meaning for Mermaid, or for HTML, Markdown and formulas
// in labels.
const special = "\"#<>&`$%*\\|~@"

// escapeLabel escapes a text for a label. An empty label would be drawn as the node's id,
// so it becomes a space.
func escapeLabel(text string) string {
	text = strings.Join(strings.FieldsFunc(text, unicode.IsSpace), " ")
	var b strings.Builder
	for i, r := range text {
		switch {
		case unicode.IsControl(r) || r == unicode.ReplacementChar || unicode.Is(unicode.Bidi_Control, r):
		case strings.ContainsRune(special, r) || hasMeaning(text, i, r):
			b.WriteString("#" + formatInt(int(r)) + ";")
		default:
			b.WriteRune(r)
		}
	}
	if b.Len() == 0 {
		return " "
	}
	return b.String()
}

// hasMeaning reports whether a usually harmless character has a meaning at its place.
func hasMeaning(text string, i int, r rune) bool {
	switch r {
	case ':':
		// "style x:#…;" is truncated, "fa:fa-x" becomes an icon, and a URL a link.
		return slices.ContainsFunc([]string{"style", "classDef", ":fa-", "://"}, func(risk string) bool {
			return strings.Contains(text, risk)
		})
	case '_': // emphasis, except inside a word
		return i == 0 || i == len(text)-1 || !isWord(text[i-1]) || !isWord(text[i+1])
	case '.':
		if strings.HasSuffix(strings.ToLower(text[:i]), "www") {
			return true // a link
		}
		fallthrough
	case '-', '+', ')', '=':
		// A list item or the underline of a heading, which Mermaid refuses to draw.
		return strings.Trim(text[:i], "0123456789-+=") == ""
	default:
		return false
	}
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}
