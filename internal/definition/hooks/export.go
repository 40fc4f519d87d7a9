package hooks

import (
	"encoding/json"
	"slices"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/jsontext"
)

// The distances between nodes of a drawing that has no places of its own.
const (
	columnWidth = 240
	rowHeight   = 140
)

// Export writes a linked graph as JSON in the shape of the architecture decision,
// with everything that it may leave out here: a place, a label and the members of
// each hook, and the modules that its hooks refer to. It is what Parse reads.
// Enabled says whether the graph is active here.
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

// marshalGraph writes a graph for people to read: scripts are full of < and &.
func marshalGraph(id string, root map[string]any) ([]byte, error) {
	text, err := jsontext.Indent(root)
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeInternal, "write the graph %s: %w", id, err)
	}
	return append(text, '\n'), nil
}

// decodeMembers are those of the document.
func (g *Graph) decodeMembers() (map[string]any, error) {
	var root map[string]any
	if err := json.Unmarshal([]byte(g.Canonical), &root); err != nil {
		return nil, guideway.Errorf(guideway.CodeInternal, "read the graph %s again: %w", g.ID, err)
	}
	return root, nil
}

// completeNode adds what a node may leave out here.
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

// gridPosition is a place in a drawing from left to right.
type gridPosition struct{ column, row int }

// layoutNodes gives each node a place: what comes after a node is right of it, and
// each further way on has a row of its own. A graph that loads is a tree.
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

// nextNodes are the nodes that edges of a node lead to, those on the main path first.
func (g *Graph) nextNodes(id string) []string {
	var main, aside []string
	for _, e := range g.Edges {
		if e.Source != id {
			continue
		}
		if n := g.Node(e.Target); n.Aside() {
			aside = append(aside, n.ID)
		} else {
			main = append(main, n.ID)
		}
	}
	return append(main, aside...)
}

// Copy says how a graph differs from the one that it is copied from.
type Copy struct {
	// ID is the id of the copy; Name its name, where it is not empty.
	ID, Name string
	// Bindings and Variables take the place of those of the graph, the
	// variables one by one.
	Bindings  []Binding
	Variables map[string]json.RawMessage
}

// Copied writes a graph of its own as JSON, as Export does: what was a template is
// none any more, and what was not meant to be changed has its modules with it. A
// variable that the graph does not declare is an error.
func (l *Linked) Copied(c Copy) ([]byte, error) {
	for name := range c.Variables {
		if _, ok := l.Variables[name]; !ok {
			return nil, guideway.Errorf(guideway.CodeInvalid, "the graph %s has no variable %q", l.ID, name).
				WithFix("guideway hooks show %s, which names those that it has", l.ID)
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
