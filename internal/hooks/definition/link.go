package definition

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/digest"
	"github.com/guideway-dev/guideway/internal/platform/lists"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
	"github.com/guideway-dev/guideway/internal/workflow/shape"
)

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
