package definition

import (
	"encoding/json"
	"slices"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
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
