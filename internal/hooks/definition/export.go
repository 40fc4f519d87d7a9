package definition

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/digest"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"github.com/guideway-dev/guideway/internal/platform/lists"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
	"github.com/guideway-dev/guideway/internal/workflow/shape"
)

// Distances between nodes in a generated layout, in pixels.
const (
	columnWidth = 240
	rowHeight   = 140
)

// Export returns a linked graph as JSON in the format of docs/hooks.md, including optional
// members: positions, labels, the members of each hook, and the modules that its hooks
// refer to. Parse reads it. enabled reports whether the graph is active.
func (l *Linked) Export(enabled bool) ([]byte, error) {
	root, err := l.decodeMembers()
	if err != nil {
		return nil, err
	}
	if len(l.Used) > 0 {
		root["modules"] = l.Used
	}
	for _, key := range []string{"createdAt", "updatedAt"} {
		if root[key] == nil {
			root[key] = 0
		}
	}
	root["enabled"] = enabled
	places := l.layoutNodes()
	nodes, _ := root["nodes"].([]any)
	for i, one := range nodes {
		node, _ := one.(map[string]any)
		if node["position"] == nil {
			node["position"] = map[string]int{"x": places[i].column * columnWidth, "y": places[i].row * rowHeight}
		}
		completeNode(node, &l.Nodes[i])
	}
	edges, _ := root["edges"].([]any)
	for i, one := range edges {
		if edge, _ := one.(map[string]any); edge["id"] == nil {
			edge["id"] = l.Edges[i].Source + "-" + l.Edges[i].Target
		}
	}
	return marshalGraph(l.ID, root)
}

// marshalGraph returns indented JSON without HTML escapes, because scripts contain < and &.
func marshalGraph(id string, root map[string]any) ([]byte, error) {
	text, err := jsontext.Indent(root)
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeInternal, "write the graph %s: %w", id, err)
	}
	return append(text, '\n'), nil
}

// decodeMembers returns the members of the document.
func (g *Graph) decodeMembers() (map[string]any, error) {
	var root map[string]any
	if err := json.Unmarshal([]byte(g.Canonical), &root); err != nil {
		return nil, guideway.Errorf(guideway.CodeInternal, "parse the exported graph %s: %w", g.ID, err)
	}
	return root, nil
}

// completeNode adds the optional members of a node.
func completeNode(node map[string]any, n *Node) {
	data, _ := node["data"].(map[string]any)
	if data == nil {
		data = map[string]any{}
		node["data"] = data
	}
	if data["label"] == nil {
		data["label"] = n.Title()
	}
	if hook, _ := data["hook"].(map[string]any); hook != nil {
		if hook["id"] == nil {
			hook["id"] = n.ID
		}
		if hook["blocking"] == nil {
			hook["blocking"] = true
		}
	}
}

// gridPosition is the position of a node in a left-to-right layout.
type gridPosition struct{ column, row int }

// layoutNodes returns the position of each node: successors are to the right, and each
// further branch has its own row. A valid graph is a tree.
func (g *Graph) layoutNodes() []gridPosition {
	places := make([]gridPosition, len(g.Nodes))
	rows := 0
	var put func(id string, column, row int)
	put = func(id string, column, row int) {
		n := slices.IndexFunc(g.Nodes, func(n Node) bool { return n.ID == id })
		places[n] = gridPosition{column, row}
		for i, to := range g.nextNodes(id) {
			if i > 0 {
				rows++
				row = rows
			}
			put(to, column+1, row)
		}
	}
	for i := range g.Nodes {
		if g.Nodes[i].Kind == Start {
			put(g.Nodes[i].ID, 0, 0)
		}
	}
	return places
}

// nextNodes returns the targets of a node's edges, those on the main path first.
func (g *Graph) nextNodes(id string) []string {
	var main, aside []string
	for _, e := range g.Edges {
		if e.Source != id {
			continue
		}
		if n := g.Node(e.Target); n.IsFireAndForget() {
			aside = append(aside, n.ID)
		} else {
			main = append(main, n.ID)
		}
	}
	return append(main, aside...)
}

// Copy contains the changes for a copy of a graph.
type Copy struct {
	// ID is the ID of the copy; Name is its name if it is not empty.
	ID, Name string
	// Bindings replaces the bindings of the graph, unless it is empty. Variables replaces
	// the initial values of the variables that it names.
	Bindings  []Binding
	Variables map[string]json.RawMessage
}

// Copied returns an independent copy of the graph as JSON. The copy is not a template and
// contains its modules. A variable that the graph does not declare is an error.
func (l *Linked) Copied(c Copy) ([]byte, error) {
	for name := range c.Variables {
		if _, ok := l.Variables[name]; !ok {
			return nil, guideway.Errorf(guideway.CodeInvalid, "the graph %s has no variable %q", l.ID, name).
				WithFix("list the variables with: guideway hooks show %s", l.ID)
		}
	}
	root, err := l.decodeMembers()
	if err != nil {
		return nil, err
	}
	root["id"] = c.ID
	if c.Name != "" {
		root["name"] = c.Name
	}
	for _, key := range []string{"template", "enabled", "createdAt", "updatedAt"} {
		delete(root, key)
	}
	if len(c.Bindings) > 0 {
		root["bindings"] = c.Bindings
	}
	variables, _ := root["variables"].(map[string]any)
	for name, value := range c.Variables {
		variables[name] = value
	}
	if len(l.Used) > 0 {
		root["modules"] = l.Used
	}
	return marshalGraph(c.ID, root)
}

// Library finds modules by id or name. The zero Library is empty.
type Library struct {
	modules []Module
}

// NewLibrary returns a library of modules. The first module with an ID or name has
// precedence.
func NewLibrary(modules []Module) Library { return Library{modules: modules} }

// Find returns the module with an ID, or else with a name, or nil.
func (l Library) Find(ref string) *Module {
	return cmp.Or(
		lists.Find(l.modules, func(m *Module) bool { return m.ID == ref }),
		lists.Find(l.modules, func(m *Module) bool { return m.Name == ref }),
	)
}

// allNames returns the IDs and names of all modules.
func (l Library) allNames() []string {
	var names []string
	for i := range l.modules {
		names = append(names, l.modules[i].ID, l.modules[i].Name)
	}
	return names
}

// Script is the script of a hook.
type Script struct {
	// Name is the name in errors: "redact.js", "my-graph/hook-1.js".
	Name string
	Text string
	// Hash is "sha256:" and the hash of Text in hexadecimal.
	Hash string
}

// Linked is a graph with the scripts of its hooks. It is immutable.
type Linked struct {
	*Graph
	// Scripts are the scripts of the hooks by the IDs of their nodes.
	Scripts map[string]Script
	// Used is the list of modules that the hooks refer to, without duplicates.
	Used []Module
	// Pin is the hash of the graph's behavior, including its scripts. It does not include
	// names, labels, descriptions or node positions. It identifies an approved graph.
	Pin string
}

// Link resolves the script of each hook. A module of the graph has precedence over a module
// of the library. If a module is missing, the result is nil, and the diagnostics name the
// missing modules.
func Link(g *Graph, library Library) (*Linked, []guideway.Diagnostic) {
	own := NewLibrary(g.Modules)
	l := &Linked{Graph: g, Scripts: map[string]Script{}}
	var found []guideway.Diagnostic
	for i := range g.Nodes {
		n := &g.Nodes[i]
		switch {
		case n.Hook == nil || n.Kind != HookNode:
		case n.Hook.Module == "":
			l.Scripts[n.ID] = newScript(g.ID+"/"+n.ID+".js", n.Hook.Script)
		default:
			m := cmp.Or(own.Find(n.Hook.Module), library.Find(n.Hook.Module))
			if m == nil {
				found = append(found, unknownModule(g, i, append(own.allNames(), library.allNames()...)))
				continue
			}
			l.Scripts[n.ID] = newScript(m.ID+".js", m.Script)
			if !slices.ContainsFunc(l.Used, func(other Module) bool { return other.ID == m.ID }) {
				l.Used = append(l.Used, *m)
			}
		}
	}
	if len(found) > 0 {
		return nil, found
	}
	l.Pin = l.computePin()
	return l, nil
}

func newScript(name, text string) Script {
	return Script{Name: name, Text: text, Hash: hashText([]byte(text))}
}

func hashText(text []byte) string {
	return "sha256:" + digest.Hex(text)
}

// unknownModule returns the diagnostic for an unknown module.
func unknownModule(g *Graph, i int, known []string) guideway.Diagnostic {
	n := &g.Nodes[i]
	fix := "add the module to the folder hooks/modules of the same source or to 'modules' of the graph, or write the script into the hook"
	fix = (&shape.Report{}).Suggest(n.Hook.Module, known, fix)
	return guideway.Diagnostic{
		Severity: guideway.SeverityError, Code: CodeModuleUnknown, File: g.File, Line: n.Line, Column: n.Column, Node: n.ID,
		Pointer: string(doc.Pointer("").Key("nodes").Index(i).Key("data").Key("hook").Key("hookModuleId")),
		Message: fmt.Sprintf("Module '%s' does not exist, but is used by hook '%s'.", n.Hook.Module, n.ID), Fix: fix,
	}
}

// computePin returns the hash of the graph's behavior.
func (l *Linked) computePin() string {
	type node struct {
		ID        string          `json:"id"`
		Kind      NodeKind        `json:"kind"`
		Script    string          `json:"script,omitempty"`
		Blocking  bool            `json:"blocking,omitempty"`
		Answers   bool            `json:"answers,omitempty"`
		Timeout   int64           `json:"timeout,omitempty"`
		Handles   []Event         `json:"handles,omitempty"`
		Mismatch  OnMismatch      `json:"onMismatch,omitempty"`
		Condition json.RawMessage `json:"condition,omitempty"`
	}
	type meaning struct {
		Form      string                     `json:"form"`
		ID        string                     `json:"id"`
		Type      Type                       `json:"type"`
		Also      []Type                     `json:"also,omitempty"`
		Order     int                        `json:"order,omitempty"` // relative to the default
		Bindings  []Binding                  `json:"bindings"`
		Variables map[string]json.RawMessage `json:"variables"`
		Nodes     []node                     `json:"nodes"`
		Edges     []Edge                     `json:"edges"`
	}
	m := meaning{Form: "guideway hook graph 1", ID: l.ID, Type: l.Type, Also: slices.Sorted(slices.Values(l.Also)), Order: l.Order - DefaultOrder, Bindings: l.Bindings, Variables: l.Variables, Edges: slices.Clone(l.Edges)}
	for i := range l.Nodes {
		n := &l.Nodes[i]
		one := node{ID: n.ID, Kind: n.Kind}
		if n.Hook != nil && n.Kind == HookNode {
			one.Script, one.Blocking, one.Answers = l.Scripts[n.ID].Hash, n.Hook.Blocking, n.Hook.Answers
			one.Timeout, one.Handles = n.Hook.Timeout.Nanoseconds(), n.Hook.Handles
		}
		if n.Kind == ConditionNode {
			one.Condition, one.Mismatch = json.RawMessage(n.Source), n.OnMismatch
		}
		m.Nodes = append(m.Nodes, one)
	}
	slices.SortFunc(m.Nodes, func(a, b node) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(m.Edges, func(a, b Edge) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Target, b.Target), cmp.Compare(a.Branch, b.Branch))
	})
	text, err := json.Marshal(m)
	if err != nil {
		// Impossible: variables and conditions were parsed from JSON.
		return ""
	}
	return hashText(text)
}
