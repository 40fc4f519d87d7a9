// Package definition implements the hooks dialect: graphs of hooks that wrap requests to
// upstreams, and the modules with their scripts. It reads and writes their JSON format
// (docs/hooks.md), with conditions, variables, bindings, a library of modules and templates.
package definition

import (
	"cmp"
	"encoding/json"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/guideway-dev/guideway/internal/platform/lists"
	"github.com/guideway-dev/guideway/internal/workflow/expr"
)

// Type is the MCP method of the request that a graph wraps.
type Type string

// The request types.
const (
	ToolsList    Type = "tools/list"
	ToolsCall    Type = "tools/call"
	ResourceRead Type = "resources/read"
	PromptGet    Type = "prompts/get"
)

// Types returns all request types.
func Types() []Type { return []Type{ToolsCall, ToolsList, ResourceRead, PromptGet} }

// DefaultOrder is the order of a graph that declares none; MaxOrder is the highest order.
const (
	DefaultOrder = 50
	MaxOrder     = 100
)

// NodeKind is the kind of a node.
type NodeKind string

// The kinds of nodes.
const (
	Start NodeKind = "start"
	End   NodeKind = "end"
	// Call sends the request to the server.
	Call NodeKind = "mcp-call"
	// HookNode runs a script.
	HookNode NodeKind = "hook"
	// ConditionNode continues with one of two branches.
	ConditionNode NodeKind = "condition"
)

// Graph is a hook graph. It is immutable.
type Graph struct {
	ID, Name, Description, Version string
	Type                           Type
	// Also lists more request types that the graph wraps.
	Also []Type
	// Order is the place of the graph in the chain of the graphs that wrap a request. The
	// graph with the lowest order is the outermost: it sees the request first and the
	// response last.
	Order int
	// Bindings select the requests that the graph wraps; without bindings it wraps all
	// requests of its type.
	Bindings []Binding
	// Variables are shared by the nodes of one execution; the values are the initial ones.
	Variables map[string]json.RawMessage
	// Modules are included in the graph, so that it is self-contained.
	Modules []Module
	Nodes   []Node
	Edges   []Edge
	// Template marks a graph that can be copied and is never active.
	Template bool
	// Enabled, CreatedAt and UpdatedAt (in milliseconds of Unix time) are preserved for
	// other tools. They have no effect: write access to the file must not be sufficient to
	// activate a graph.
	Enabled              bool
	CreatedAt, UpdatedAt float64
	// Canonical is the document as RFC 8785 JSON.
	Canonical string
	// File is the path of the document.
	File string
}

// Binding selects requests by patterns with * (any text) and ? (any single character). An
// empty pattern matches all names.
type Binding struct {
	Upstream string `json:"upstream,omitempty"`
	Tool     string `json:"tool,omitempty"`
}

// Node is a node of a graph.
type Node struct {
	ID    string
	Kind  NodeKind
	Label string
	// Hook is set if the kind is HookNode.
	Hook *Hook
	// Condition is set if the kind is ConditionNode; Source is the condition as canonical
	// JSON.
	Condition *expr.Expr
	Source    string
	// OnMismatch is the effect of a comparison of different types in the condition.
	OnMismatch OnMismatch
	// Line and Column are the node's position in its document.
	Line, Column int
}

// IsFireAndForget reports whether the node is a fire-and-forget hook.
func (n *Node) IsFireAndForget() bool { return n.Kind == HookNode && n.Hook != nil && !n.Hook.Blocking }

// Title returns the label of the node, or else its ID.
func (n *Node) Title() string { return cmp.Or(n.Label, n.ID) }

// Hook is a script with its options.
type Hook struct {
	ID string
	// Module is the ID or name of a library module; Script is an inline script. One of the
	// two is set.
	Module, Script string
	// Blocking is set if the request waits for the hook; otherwise the hook is
	// fire-and-forget.
	Blocking bool
	// Answers is set if the hook must return the response instead of the server.
	Answers bool
	// Timeout limits the hook; zero means the engine's default.
	Timeout time.Duration
	// Handles lists the outcomes and messages of the call that the hook handles; if empty,
	// it handles results.
	Handles []Event
}

// Event is an outcome or a message of the call.
type Event string

// The events.
const (
	Result   Event = "result"
	Error    Event = "error"
	Progress Event = "progress"
)

// Has reports whether the hook handles an event.
func (h *Hook) Has(e Event) bool {
	return slices.Contains(h.Handles, e) || len(h.Handles) == 0 && e == Result
}

// OnMismatch is the effect of a comparison of different types.
type OnMismatch string

// The effects. The comparison does not hold in both cases, and the trace has a diagnostic.
const (
	// Record continues with the condition; it is the default. Refuse stops the request.
	Record OnMismatch = "record"
	Refuse OnMismatch = "refuse"
)

// Branch is one of the two branches of a condition.
type Branch string

// The branches. An edge from a node that is not a condition has no branch.
const (
	NoBranch Branch = ""
	True     Branch = "true"
	False    Branch = "false"
)

// Edge connects two nodes by their IDs.
type Edge struct {
	Source, Target string
	// Branch is set if the source is a condition.
	Branch Branch
}

// Module is a script with a name.
type Module struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Script string `json:"script"`
	// Canonical and File are as in Graph; empty for a module inside a graph.
	Canonical string `json:"-"`
	File      string `json:"-"`
}

// Node returns the node with an ID, or nil.
func (g *Graph) Node(id string) *Node {
	return lists.Find(g.Nodes, func(n *Node) bool { return n.ID == id })
}

// AllTypes returns the request types that the graph wraps.
func (g *Graph) AllTypes() []Type { return append([]Type{g.Type}, g.Also...) }

// Place is the location of a document in a source.
type Place struct {
	// Kind is "" if the file is not a document of the dialect.
	Kind Kind
	// Plain is set if the document is a plain script, not JSON or YAML.
	Plain bool
	// Name is the file name without extension: the ID of a plain script.
	Name string
}

// PlaceOf returns the place of a document by its slash-separated path in a source: graphs
// are in the folder hooks, modules in hooks/modules.
func PlaceOf(name string) Place {
	rest, ok := strings.CutPrefix(name, "hooks/")
	if !ok {
		return Place{}
	}
	ext := path.Ext(rest)
	p := Place{Kind: KindGraph, Name: strings.TrimSuffix(path.Base(rest), ext)}
	if inside, ok := strings.CutPrefix(rest, "modules/"); ok {
		p.Kind, rest = KindModule, inside
	}
	if strings.Contains(rest, "/") {
		return Place{}
	}
	switch ext = strings.ToLower(ext); {
	case ext == ".json", ext == ".yaml", ext == ".yml":
		return p
	case p.Kind == KindModule && (ext == ".js" || ext == ".mjs"):
		p.Plain = true
		return p
	default:
		return Place{}
	}
}

// PlainModule returns the module of a plain script.
func PlainModule(p Place, file string, script []byte) *Module {
	return &Module{ID: p.Name, Name: p.Name, Script: string(script), File: file}
}

// Match reports whether a name matches a pattern: * matches any text, ? any single
// character. The empty pattern matches all names.
func Match(pattern, name string) bool {
	if pattern == "" {
		return true
	}
	p, n := []rune(pattern), []rune(name)
	// The position of the last star and the end of its match, for backtracking.
	star, from, i, j := -1, 0, 0, 0
	for j < len(n) {
		switch {
		case i < len(p) && p[i] == '*':
			star, from = i, j
			i++
		case i < len(p) && (p[i] == '?' || p[i] == n[j]):
			i++
			j++
		case star >= 0:
			from++
			i, j = star+1, from
		default:
			return false
		}
	}
	for i < len(p) && p[i] == '*' {
		i++
	}
	return i == len(p)
}

// Has reports whether the binding selects a request to an upstream; the tool is "" for
// requests other than tools/call. A binding to a tool selects only calls of tools.
func (b Binding) Has(upstream, tool string) bool {
	return Match(b.Upstream, upstream) && Match(b.Tool, tool)
}

// The codes of rules that the published schemas also check. Conditions have the codes of
// the phases dialect.
const (
	CodeHookScript = "hook-script"
)

// The codes of rules that a schema cannot express.
const (
	CodeDuplicateID          = "id-duplicate"
	CodeBindingTool          = "binding-tool"
	CodeAlsoTwice            = "also-duplicate"
	CodeModuleUnknown        = "module-unknown"
	CodeFireAndForgetAnswers = "answers-aside"
	CodeHandles              = "handles-call"

	CodeStartCount          = "start-count"
	CodeEndMissing          = "end-missing"
	CodeEdgeUnknown         = "edge-unknown"
	CodeEdgeTwice           = "edge-duplicate"
	CodeStartInput          = "start-input"
	CodeEndOutput           = "end-output"
	CodeFireAndForgetOutput = "aside-output"
	CodeInputMany           = "input-many"
	CodeOutputMany          = "output-many"
	CodeBranch              = "branch-unknown"
	CodeWayOpen             = "way-open"
	CodeCycle               = "graph-cycle"
	CodeUnreachable         = "node-unreachable"
	CodeCallTwice           = "call-twice"
	CodeCallMissing         = "call-missing"
)
