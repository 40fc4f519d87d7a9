package definition

import (
	"embed"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
	"github.com/guideway-dev/guideway/internal/workflow/shape"
)

// Kind is the kind of a document of the dialect.
type Kind = shape.Kind

// The kinds of documents.
const (
	KindGraph  Kind = "graph"
	KindModule Kind = "module"
)

// Kinds returns all kinds.
func Kinds() []Kind { return []Kind{KindGraph, KindModule} }

// Guess returns the kind of a document by members that only this kind has, or "" if it has
// none of them.
func Guess(root *doc.Node) Kind {
	has := func(key string) bool { return root.Get(key) != nil }
	switch {
	case has("workflowType"), has("nodes") && has("edges"):
		return KindGraph
	case has("script") && has("name"):
		return KindModule
	default:
		return ""
	}
}

//go:embed schema/*.schema.json
var schemas embed.FS

// Schema returns the published JSON Schema (draft-07) of a kind, or nil for an unknown
// kind. It accepts the same documents as the kind's parser, except for rules that a schema
// cannot express.
func Schema(kind Kind) []byte {
	text, err := schemas.ReadFile("schema/" + string(kind) + ".schema.json")
	if err != nil {
		return nil
	}
	return text
}

// parser collects the diagnostics of one document.
type parser struct {
	shape.Report
}

// newParser returns a parser for a document of a file.
func newParser(file string) *parser {
	return &parser{Report: shape.Report{File: file, Dialect: shape.Dialect{
		Name: "hooks", Aliases: otherNames, Sample: sampleValue,
	}}}
}

// otherNames returns the dialect's names for a synonym.
func otherNames(name string) []string {
	for ours, others := range map[string]string{
		"workflowType": "type kind method hooktype",
		"also":         "methods types",
		"order":        "priority rank position",
		"hookModuleId": "module moduleid hookmodule",
		"sourceHandle": "branch handle when",
		"source":       "from",
		"target":       "to",
		"script":       "code source body",
		"condition":    "if when expression",
		"blocking":     "sync wait await",
		"timeoutMs":    "timeout",
		"answers":      "answer",
		"upstream":     "server servername serverid",
		"tool":         "toolname",
		"mcp-call":     "call mcpcall mcp",
		"bindings":     "binding bind match",
		"variables":    "vars state",
		"modules":      "hookmodules library",
	} {
		if slices.Contains(strings.Fields(others), strings.ToLower(name)) {
			return []string{ours}
		}
	}
	return nil
}

// sampleValue returns an example value of a required member.
func sampleValue(key string) string {
	switch key {
	case "id", "source", "target":
		return `"an-id"`
	case "workflowType":
		return `"tools/call"`
	case "type":
		return `"hook"`
	case "x", "y", "order":
		return "0"
	case "nodes", "edges":
		return "[...]"
	case "data", "hook", "condition":
		return "{...}"
	default:
		return ""
	}
}

// sortedDiagnostics returns the diagnostics in document order, each with its node.
func (p *parser) sortedDiagnostics(root *doc.Node, severity guideway.Severity) []guideway.Diagnostic {
	found := p.Findings(severity)
	for i := range found {
		found[i].Node = nodeAt(root, found[i].Pointer)
	}
	return found
}

// nodeAt returns the ID of the node that contains a pointer or, for an edge, the ID of its
// source; "" for other pointers.
func nodeAt(root *doc.Node, pointer string) string {
	parts := strings.SplitN(strings.TrimPrefix(pointer, "/"), "/", 3)
	if len(parts) < 2 {
		return ""
	}
	key := map[string]string{"nodes": "id", "edges": "source"}[parts[0]]
	if key == "" {
		return ""
	}
	id := root.Find("/" + parts[0] + "/" + parts[1]).Get(key)
	if id == nil || id.Kind != doc.String {
		return ""
	}
	return id.Text
}
