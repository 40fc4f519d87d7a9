package definition

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
	"github.com/guideway-dev/guideway/internal/workflow/expr"
	"github.com/guideway-dev/guideway/internal/workflow/shape"
)

// The codes of warnings.
const (
	CodeCallNever      = "call-never"
	CodePathUnknown    = "condition-path"
	CodeConditionEarly = "condition-early"
	CodeConditionType  = "comparison-type"
	CodeMismatchOpen   = "comparison-open"
	CodeHandlesEarly   = "handles-early"
	CodeDataIgnored    = "data-ignored"
	CodeModuleUnused   = "module-unused"
	CodeIdle           = "graph-idle"
)

// Lint reports legal but probably unintended parts of a graph as warnings. root contains
// the positions; without it the diagnostics only have pointers.
func Lint(g *Graph, root *doc.Node, file string) []guideway.Diagnostic {
	l := &linter{parser: newParser(file), g: g}
	at := shape.Root(root, "graph")
	hooks := false
	for i := range g.Nodes {
		n, one := &g.Nodes[i], at.Key("nodes").Index(i)
		hooks = hooks || n.Kind == HookNode
		l.lintNode(one, n)
	}
	if !hooks {
		l.Warnf(at.Key("nodes"), CodeIdle, "add a node of the type 'hook'", "The graph has no hook, so it changes nothing.")
	}
	own := NewLibrary(g.Modules)
	for i := range g.Modules {
		if !l.refersTo(own, &own.modules[i]) {
			l.Warnf(at.Key("modules").Index(i), CodeModuleUnused, "remove the module, or name it in the 'hookModuleId' of a hook", "No hook runs the module '%s'.", g.Modules[i].ID)
		}
	}
	l.LintHidden(at)
	return l.sortedDiagnostics(root, guideway.SeverityWarning)
}

// linter collects warnings.
type linter struct {
	*parser
	g *Graph
}

// refersTo reports whether a hook runs a module of the graph.
func (l *linter) refersTo(own Library, m *Module) bool {
	return slices.ContainsFunc(l.g.Nodes, func(n Node) bool {
		return n.Hook != nil && n.Hook.Module != "" && own.Find(n.Hook.Module) == m
	})
}

// predecessors returns the nodes on the path to a node, the nearest first. In a valid graph
// there is one path to each node.
func (l *linter) predecessors(id string) []*Node {
	var way []*Node
	for range l.g.Nodes {
		from := ""
		for _, e := range l.g.Edges {
			if e.Target == id {
				from = e.Source
			}
		}
		n := l.g.Node(from)
		if n == nil {
			break
		}
		way, id = append(way, n), from
	}
	return way
}

// hasPredecessor reports whether the path to a node contains a node for which has returns
// true.
func (l *linter) hasPredecessor(id string, has func(*Node) bool) bool {
	return slices.ContainsFunc(l.predecessors(id), has)
}

func answersRequest(n *Node) bool { return n.Kind == HookNode && n.Hook != nil && n.Hook.Answers }

// lintNode checks one node.
func (l *linter) lintNode(at shape.Place, n *Node) {
	data := at.Key("data")
	if n.Hook != nil && n.Kind != HookNode {
		l.Warnf(data.Key("hook"), CodeDataIgnored, "change the type of the node to 'hook', or remove the hook", "The hook of node '%s' never runs: the node is of type '%s'.", n.ID, n.Kind)
	}
	if n.Condition != nil && n.Kind != ConditionNode {
		l.Warnf(data.Key("condition"), CodeDataIgnored, "change the type of the node to 'condition', or remove the condition", "The condition of node '%s' is never evaluated: the node is of type '%s'.", n.ID, n.Kind)
	}
	if n.Kind == Call && l.hasPredecessor(n.ID, answersRequest) {
		l.Warnf(at, CodeCallNever, "remove the node, or remove 'answers' from the hook before it", "Node '%s' never sends the call: a hook before it answers instead of the upstream.", n.ID)
	}
	if n.Hook != nil && len(n.Hook.Handles) > 0 && !l.hasPredecessor(n.ID, func(n *Node) bool { return n.Kind == Call }) {
		l.Warnf(data.Key("hook").Key("handles"), CodeHandlesEarly, "remove 'handles', or move the hook after an mcp-call", "Hook '%s' comes before the call, so it has no outcome to handle.", n.ID)
	}
	if n.Kind == ConditionNode && n.Condition != nil {
		l.lintCondition(data.Key("condition"), n)
		l.lintTypes(data, n)
	}
}

// lintCondition checks the paths that a condition reads.
func (l *linter) lintCondition(at shape.Place, n *Node) {
	what := fmt.Sprintf("the condition of node '%s'", n.ID)
	for _, path := range n.Condition.Variables() {
		switch root := expr.Root(path); root {
		case "request", "metadata", "variables", "error", "progress":
		case "response":
			if !l.hasPredecessor(n.ID, func(n *Node) bool {
				return n.Kind == Call || answersRequest(n) || n.Kind == HookNode && n.Hook.Blocking
			}) {
				l.Warnf(at, CodeConditionEarly, "move the condition after an mcp-call", "%s reads %s before a response exists.", shape.Capital(what), shape.Quote(path))
			}
		default:
			l.Warnf(at, CodePathUnknown, pathFix(path), "%s reads %s; use request, response, error, progress, metadata or variables.", shape.Capital(what), shape.Quote(path))
		}
	}
}

// lintTypes checks the types of the values that a condition compares.
func (l *linter) lintTypes(at shape.Place, n *Node) {
	for _, c := range n.Condition.Comparisons() {
		value, known := l.knownValue(c.Var)
		orders := c.Mismatch(nil, false) != ""
		if orders && !known {
			value = 0.0 // an order with another literal than a number never holds
		}
		switch mismatch := c.Mismatch(value, known || orders); {
		case mismatch != "":
			l.Warnf(at.Key("condition"), CodeConditionType, "compare with a value of the same type", "The condition of node '%s' compares different types: %s.", n.ID, mismatch)
		case orders && !known && n.OnMismatch == "":
			l.Warnf(at.Key("condition"), CodeMismatchOpen, `add "onMismatch": "refuse" to 'data', or "record" if the request should continue`,
				"The comparison %s of node '%s' does not hold if the value is missing or is not a number, and the request continues.", c, n.ID)
		}
	}
}

// knownValue returns a value of the type that a path has in every request.
func (l *linter) knownValue(path string) (value any, ok bool) {
	if name, found := strings.CutPrefix(path, "variables."); found {
		raw, declared := l.g.Variables[name]
		return value, declared && json.Unmarshal(raw, &value) == nil && value != nil
	}
	switch path {
	case "request.method", "request.params.name", "request.params.uri", "error.message", "metadata.clientId", "metadata.clientName",
		"metadata.serverId", "metadata.serverName", "metadata.run.id", "metadata.run.step":
		return "", true
	case "response.isError":
		return false, true
	case "metadata.startTime", "metadata.duration":
		return 0.0, true
	}
	return nil, false
}

// pathFix returns the fix for an unknown path.
func pathFix(path string) string {
	root, rest, _ := strings.Cut(path, ".")
	switch root {
	case "params", "method":
		return "write 'request." + path + "'"
	case "arguments":
		return "write 'request.params." + path + "'"
	case "name":
		return "write 'request.params.name'"
	case "content", "isError", "structuredContent", "tools":
		return "write 'response." + path + "'"
	case "clientId", "serverName", "serverId":
		return "write 'metadata." + root + "'"
	case "context":
		return "write '" + rest + "'"
	default:
		return "write 'variables." + path + "', if a variable is meant"
	}
}
