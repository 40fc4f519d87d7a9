package definition

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/lists"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
	"github.com/guideway-dev/guideway/internal/workflow/phases"
	"github.com/guideway-dev/guideway/internal/workflow/shape"
)

// The limits of a graph.
const (
	maxID      = 128
	maxName    = 100
	maxNodes   = 200
	maxEdges   = 400
	maxTimeout = time.Minute
)

// Parse validates and reads a hook graph. It returns all errors in document order; the
// graph is nil if there are any. Link checks whether its modules exist.
func Parse(file string, root *doc.Node) (*Graph, []guideway.Diagnostic) {
	p, at := newParser(file), shape.Root(root, "graph")
	if !p.Document(at, "A hook graph", "write one object with id, name, workflowType, nodes and edges") {
		return nil, p.Found
	}
	p.Canonical = doc.Mark(root)
	g := p.readGraph(at)
	g.Canonical, g.File = p.Canonical, file
	p.checkStructure(at, g)
	if len(p.Found) > 0 {
		return nil, p.sortedDiagnostics(root, guideway.SeverityError)
	}
	return g, nil
}

// readGraph reads the root.
func (p *parser) readGraph(at shape.Place) *Graph {
	p.Object(at, "$schema", "id", "name", "description", "version", "workflowType", "also", "order", "bindings", "variables", "modules",
		"nodes", "edges", "template", "enabled", "createdAt", "updatedAt")
	p.Require(at, "id", "name", "workflowType", "nodes", "edges")
	p.Text(at.Key("$schema"), 0, 0)
	g := &Graph{
		ID:          p.readFileID(at.Key("id")),
		Name:        p.Text(at.Key("name"), 1, maxName),
		Description: p.Text(at.Key("description"), 0, 0),
		Version:     p.Text(at.Key("version"), 0, maxName),
		Type:        readChoice(p, at.Key("workflowType"), Types()...),
		Also:        readChoices(p, at.Key("also"), Types()...),
		Order:       p.readOrder(at.Key("order")),
		Bindings:    readList(p, at.Key("bindings"), "binding", p.readBinding),
		Variables:   p.readVariables(at.Key("variables")),
		Modules:     readList(p, at.Key("modules"), "module", p.readModule),
		Nodes:       readList(p, at.Key("nodes"), "node", p.readNode),
		Edges:       readList(p, at.Key("edges"), "edge", p.readEdge),
		Template:    p.Flag(at.Key("template")),
		Enabled:     p.Flag(at.Key("enabled")),
		CreatedAt:   p.readNumber(at.Key("createdAt")),
		UpdatedAt:   p.readNumber(at.Key("updatedAt")),
	}
	for i := range g.Edges {
		if n := g.Node(g.Edges[i].Source); n != nil && n.Kind != ConditionNode {
			g.Edges[i].Branch = NoBranch // an editor can name the only connection point of a node, which has no meaning
		}
	}
	p.NotEmpty(at.Key("also"), "remove 'also', or name another method that the graph wraps")
	p.NotEmpty(at.Key("bindings"), "remove 'bindings': a graph without bindings applies to all requests of its types")
	p.NotEmpty(at.Key("nodes"), "add at least a start, an mcp-call and an end")
	p.checkMaxItems(at.Key("nodes"), maxNodes)
	p.checkMaxItems(at.Key("edges"), maxEdges)
	return g
}

// readChoice reads a member with a fixed set of values.
func readChoice[T ~string](p *parser, at shape.Place, allowed ...T) T {
	words := lists.Map(allowed, func(one T) string { return string(one) })
	return T(p.Choice(at, shape.CodeEnum, words...))
}

// readChoices reads a list of different values of a fixed set.
func readChoices[T ~string](p *parser, at shape.Place, allowed ...T) []T {
	if !p.Array(at, "a list of strings") {
		return nil
	}
	p.Unique(at)
	var out []T
	for i := range at.Node.Items {
		out = append(out, readChoice(p, at.Index(i), allowed...))
	}
	return out
}

// readOrder reads the order of a graph.
func (p *parser) readOrder(at shape.Place) int {
	if at.Node == nil {
		return DefaultOrder
	}
	return int(p.readWhole(at, 0, MaxOrder))
}

// readFileID reads the ID of a graph or module, which is also a file name.
func (p *parser) readFileID(at shape.Place) string {
	text := p.Text(at, 1, maxID)
	if text != "" && at.Node.Kind == doc.String && !isFileID(text) {
		p.Errorf(at, shape.CodePattern, "use letters, digits, hyphens, underscores and dots, and start with a letter or digit: the id is also a file name",
			"Field '%s' %s has the value %s, which is not a valid id.", at.Name, at.Where, shape.Quote(text))
	}
	return text
}

// isFileID reports whether the text consists of letters, digits, hyphens, underscores and
// dots, and starts with a letter or digit.
func isFileID(text string) bool {
	for i, r := range text {
		plain := r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !plain && (i == 0 || r != '-' && r != '_' && r != '.') {
			return false
		}
	}
	return text != ""
}

// readBinding reads a binding.
func (p *parser) readBinding(at shape.Place) Binding {
	p.Object(at, "upstream", "tool")
	return Binding{Upstream: p.Text(at.Key("upstream"), 1, maxID), Tool: p.Text(at.Key("tool"), 1, maxID)}
}

func (p *parser) readVariables(at shape.Place) map[string]json.RawMessage {
	if !p.Open(at) {
		return nil
	}
	out := make(map[string]json.RawMessage, len(at.Node.Members))
	for i := range at.Node.Members {
		m := &at.Node.Members[i]
		if !shape.IsIdentifier(m.Key) {
			p.Errorf(at.Member(i), shape.CodePattern, "use letters, digits and underscores, and do not start with a digit",
				"Variable %s %s has a name that a condition cannot read.", shape.Quote(m.Key), at.Where)
		}
		out[m.Key] = json.RawMessage(m.Value.Source(p.Canonical))
	}
	return out
}

// readModule reads a script with a name.
func (p *parser) readModule(at shape.Place) Module {
	p.Object(at, "id", "name", "script", "createdAt", "updatedAt")
	p.Require(at, "id", "name", "script")
	p.readNumber(at.Key("createdAt"))
	p.readNumber(at.Key("updatedAt"))
	return Module{ID: p.Text(at.Key("id"), 1, maxID), Name: p.Text(at.Key("name"), 1, maxName), Script: p.Text(at.Key("script"), 1, 0)}
}

// editorMembers returns the members of nodes and edges that only editors use.
func editorMembers() []string {
	return []string{
		"selected", "selectable", "deletable", "focusable", "hidden", "style", "className", "zIndex", "ariaLabel",
		"dragging", "draggable", "connectable", "dragHandle", "width", "height", "initialWidth", "initialHeight", "measured",
		"positionAbsolute", "sourcePosition", "targetPosition", "origin",
		"animated", "markerStart", "markerEnd", "label", "labelStyle", "labelShowBg", "labelBgStyle", "interactionWidth",
		"reconnectable", "pathOptions",
	}
}

// editorDataFix is the fix for an unknown member of a node or an edge.
const editorDataFix = "remove the property, or move it to 'data' if it is for an editor"

// readNode reads a node.
func (p *parser) readNode(at shape.Place) Node {
	p.Closed(at, editorDataFix, append([]string{"id", "type", "position", "data"}, editorMembers()...))
	p.Require(at, "id", "type")
	n := Node{
		ID:   p.Text(at.Key("id"), 1, maxID),
		Kind: NodeKind(p.Choice(at.Key("type"), shape.CodeEnum, string(Start), string(End), string(Call), string(HookNode), string(ConditionNode))),
		Line: at.Line, Column: at.Column,
	}
	p.checkPosition(at.Key("position"))
	data := at.Key("data")
	if data.Node != nil && !p.Open(data) {
		return n
	}
	wanted := map[NodeKind]string{HookNode: "hook", ConditionNode: "condition"}[n.Kind]
	if wanted != "" && data.Node == nil {
		p.Missing(at, "data", fmt.Sprintf(`add "data": {"%s": {...}}`, wanted))
		return n
	}
	if data.Node == nil {
		return n
	}
	if wanted != "" {
		p.Require(data, wanted)
	}
	n.Label = p.Text(data.Key("label"), 0, 0)
	hook, condition := data.Key("hook"), data.Key("condition")
	if hook.Node != nil {
		n.Hook = p.readHook(hook)
	}
	n.OnMismatch = readChoice(p, data.Key("onMismatch"), Record, Refuse)
	if condition.Node != nil {
		n.Condition, n.Source = phases.CheckCondition(&p.Report, condition), p.Source(condition)
	}
	return n
}

// checkPosition checks the position of a node in an editor.
func (p *parser) checkPosition(at shape.Place) {
	if at.Node == nil || !p.Object(at, "x", "y") {
		return
	}
	p.Require(at, "x", "y")
	p.readNumber(at.Key("x"))
	p.readNumber(at.Key("y"))
}

// readHook reads a hook.
func (p *parser) readHook(at shape.Place) *Hook {
	if !p.Object(at, "id", "hookModuleId", "script", "blocking", "answers", "timeoutMs", "handles") {
		return nil
	}
	h := &Hook{
		ID:       p.Text(at.Key("id"), 0, maxID),
		Module:   p.Text(at.Key("hookModuleId"), 1, maxID),
		Script:   p.Text(at.Key("script"), 1, 0),
		Blocking: at.Node.Get("blocking") == nil || p.Flag(at.Key("blocking")),
		Answers:  p.Flag(at.Key("answers")),
		Handles:  readChoices(p, at.Key("handles"), Result, Error, Progress),
		Timeout:  time.Duration(p.readWhole(at.Key("timeoutMs"), 1, float64(maxTimeout.Milliseconds()))) * time.Millisecond,
	}
	p.NotEmpty(at.Key("handles"), "remove 'handles': without it, the hook handles results")
	module, script := at.Node.Get("hookModuleId") != nil, at.Node.Get("script") != nil
	switch {
	case module && script:
		p.Errorf(at, CodeHookScript, "keep 'hookModuleId' to share the script, or 'script' to use it only in this hook",
			"The hook %s names a module and also has its own script.", at.Where)
	case !module && !script:
		p.Errorf(at, CodeHookScript, `add "script": "...", or "hookModuleId": the name of a module`, "The hook %s has no script.", at.Where)
	}
	return h
}

// readWhole reads a whole number.
func (p *parser) readWhole(at shape.Place, low, high float64) float64 {
	n := p.readNumber(at)
	if at.Node != nil && at.Node.Kind == doc.Number && (n < low || n > high || n != math.Trunc(n)) {
		p.Errorf(at, shape.CodeRange, fmt.Sprintf("write a whole number from %.0f to %.0f", low, high),
			"Field '%s' %s must be a whole number from %.0f to %.0f, but it is %s.", at.Name, at.Where, low, high, at.Node.Text)
		return 0
	}
	return n
}

// readEdge reads an edge.
func (p *parser) readEdge(at shape.Place) Edge {
	p.Closed(at, editorDataFix,
		append([]string{"id", "source", "target", "type", "sourceHandle", "targetHandle", "data"}, editorMembers()...))
	p.Require(at, "source", "target")
	p.Text(at.Key("id"), 0, 0)
	p.Text(at.Key("type"), 0, 0)
	p.readHandle(at.Key("targetHandle"))
	return Edge{
		Source: p.Text(at.Key("source"), 1, maxID), Target: p.Text(at.Key("target"), 1, maxID),
		Branch: Branch(p.readHandle(at.Key("sourceHandle"))),
	}
}

// readHandle reads the connection point of an edge; editors write null if the node has only
// one connection point.
func (p *parser) readHandle(at shape.Place) string {
	if at.Node == nil || at.Node.Kind == doc.Null {
		return ""
	}
	return p.Text(at, 0, 0)
}

// readNumber reads a member that is a number.
func (p *parser) readNumber(at shape.Place) float64 {
	if at.Node == nil {
		return 0
	}
	if at.Node.Kind != doc.Number {
		p.WrongType(at, "a number")
		return 0
	}
	return at.Node.Num
}

// checkMaxItems reports a list that is too long.
func (p *parser) checkMaxItems(at shape.Place, most int) {
	if at.Node != nil && at.Node.Kind == doc.Array && len(at.Node.Items) > most {
		p.Errorf(at, shape.CodeRange, "split the graph: several graphs can wrap the same request",
			"Field '%s' %s has %d entries; at most %d are allowed.", at.Name, at.Where, len(at.Node.Items), most)
	}
}

// readList reads a list of objects; noun names one of them.
func readList[T any](p *parser, at shape.Place, noun string, read func(shape.Place) T) []T {
	return shape.Entries(&p.Report, at, "objects", func(item shape.Place, i int) string { return entryLocation(item, noun, i) }, read)
}

// entryLocation returns the text for the location of a list entry: "in node 1 ('start')".
func entryLocation(item shape.Place, noun string, i int) string {
	name := ""
	if id := item.Node.Get("id"); id != nil && id.Kind == doc.String && strings.TrimSpace(id.Text) != "" {
		name = id.Text
	}
	return shape.Entry(noun, i, name)
}

// ParseModule validates and reads a module.
func ParseModule(file string, root *doc.Node) (*Module, []guideway.Diagnostic) {
	p, at := newParser(file), shape.Root(root, "module")
	if !p.Document(at, "A hook module", "write one object with id, name and script") {
		return nil, p.Found
	}
	p.Canonical = doc.Mark(root)
	p.Closed(at, "", []string{"$schema", "id", "name", "script", "createdAt", "updatedAt"})
	p.Text(at.Key("$schema"), 0, 0)
	p.Require(at, "id", "name", "script")
	p.readNumber(at.Key("createdAt"))
	p.readNumber(at.Key("updatedAt"))
	m := &Module{
		ID: p.readFileID(at.Key("id")), Name: p.Text(at.Key("name"), 1, maxName), Script: p.Text(at.Key("script"), 1, 0),
		Canonical: p.Canonical, File: file,
	}
	if len(p.Found) > 0 {
		return nil, p.Findings(guideway.SeverityError)
	}
	return m, nil
}
