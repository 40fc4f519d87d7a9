// Package hooks is the hooks dialect (seed 001): graphs of hooks around the
// requests tools/list and tools/call, and the modules whose scripts they run. It
// reads and writes the JSON shapes of the architecture decision that the dialect
// comes from, with what that leaves to a second phase: conditions, variables,
// bindings, a library of modules and templates.
package hooks

import (
	"encoding/json"
	"time"

	"github.com/guideway-dev/guideway/internal/condition"
)

// Type is the request that a graph stands around: its MCP method.
type Type string

// The types.
const (
	ToolsList Type = "tools/list"
	ToolsCall Type = "tools/call"
)

// NodeKind is what a node does.
type NodeKind string

// The kinds of nodes.
const (
	Start NodeKind = "start"
	End   NodeKind = "end"
	// Call sends the request to the server.
	Call NodeKind = "mcp-call"
	// HookNode runs a script.
	HookNode NodeKind = "hook"
	// ConditionNode goes on by one of two branches.
	ConditionNode NodeKind = "condition"
)

// Graph is a hook graph. It is never changed after it was read.
type Graph struct {
	ID, Name, Description, Version string
	Type                           Type
	// Bindings say which requests the graph stands around; none is all of its
	// type.
	Bindings []Binding
	// Variables are shared by the nodes of one execution, with the values that
	// they begin with, by name.
	Variables map[string]json.RawMessage
	// Modules come with the graph, so that it can be handed on whole.
	Modules []Module
	Nodes   []Node
	Edges   []Edge
	// Template marks a graph that is there to be copied and is never active.
	Template bool
	// Enabled, CreatedAt and UpdatedAt (in milliseconds of Unix time) are kept
	// from tools that write them. They decide nothing: whether a graph is active
	// is not said by whoever can write the file.
	Enabled              bool
	CreatedAt, UpdatedAt float64
	// Canonical is the document as RFC 8785 JSON.
	Canonical string
	// File is where the document came from.
	File string
}

// Binding says which requests a graph stands around, by patterns with * (any
// text) and ? (any one character). An empty pattern is any.
type Binding struct {
	Upstream string `json:"upstream,omitempty"`
	Tool     string `json:"tool,omitempty"`
}

// Node is one place of a graph.
type Node struct {
	ID    string
	Kind  NodeKind
	Label string
	// Hook is set where the kind is HookNode.
	Hook *Hook
	// Condition is set where the kind is ConditionNode; Source is the same as
	// canonical JSON.
	Condition *condition.Expr
	Source    string
	// Line and Column are where the node stands in its document.
	Line, Column int
}

// Aside says whether the node is a fire-and-forget hook.
func (n *Node) Aside() bool { return n.Kind == HookNode && n.Hook != nil && !n.Hook.Blocking }

// Title is what a person reads of the node.
func (n *Node) Title() string {
	if n.Label != "" {
		return n.Label
	}
	return n.ID
}

// Hook is a script and how it runs.
type Hook struct {
	ID string
	// Module names a module of the library, by id or name; Script is the script
	// itself. One of the two is set.
	Module, Script string
	// Blocking says that the request waits for the hook; one that does not is
	// fire-and-forget.
	Blocking bool
	// Answers says that the hook gives the response in place of the server, or
	// fails.
	Answers bool
	// Timeout bounds the hook; zero is the engine's own bound.
	Timeout time.Duration
}

// Branch tells the two ways on from a condition.
type Branch string

// The branches.
const (
	NoBranch Branch = ""
	True     Branch = "true"
	False    Branch = "false"
)

// Edge leads from one node to another, by their ids.
type Edge struct {
	Source, Target string
	// Branch is set where the source is a condition.
	Branch Branch
}

// Module is a script with a name.
type Module struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Script string `json:"script"`
	// Canonical and File are as in Graph, for a document of its own.
	Canonical string `json:"-"`
	File      string `json:"-"`
}

// Node gives the node of an id; nil where there is none.
func (g *Graph) Node(id string) *Node {
	for i := range g.Nodes {
		if g.Nodes[i].ID == id {
			return &g.Nodes[i]
		}
	}
	return nil
}
