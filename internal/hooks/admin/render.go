package admin

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog/writer"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"github.com/guideway-dev/guideway/internal/workflow"
	"go.yaml.in/yaml/v3"
)

// Render returns the text of a graph for its file. If the file is YAML and can be patched,
// the result is YAML, in which unchanged parts keep their comments, order and style.
// Otherwise, the result is JSON in a readable order.
func Render(was []byte, graph json.RawMessage) ([]byte, error) {
	var value any
	if err := jsontext.Decode(graph, &value); err != nil {
		return nil, guideway.Errorf(guideway.CodeInvalid, "the graph is not JSON: %w", err).
			WithFix("write the graph as one JSON object with id, name, workflowType, nodes and edges")
	}
	if len(bytes.TrimSpace(was)) > 0 && writer.Format(string(was)) == "yaml" {
		if text := patchText(was, value); text != nil && equalsGraph(text, graph) {
			return text, nil
		}
	}
	var b bytes.Buffer
	writeJSON(&b, value, "")
	b.WriteByte('\n')
	return b.Bytes(), nil
}

// equalsGraph reports whether a text is the same document as a JSON value.
func equalsGraph(text []byte, graph json.RawMessage) bool {
	a, b := canonicalText(text), canonicalText(graph)
	return a != "" && a == b
}

// canonicalText returns a document as canonical JSON, or "" if it does not load.
func canonicalText(text []byte) string {
	document, _ := workflow.ParseAs("", text, workflow.As{Dialect: guideway.DialectHooks})
	if document == nil {
		return ""
	}
	return document.Canonical
}

// memberOrder returns the members that come first in a readable order; others follow in
// alphabetical order.
func memberOrder() []string {
	return []string{
		"$schema", "id", "name", "description", "version", "type", "workflowType", "also", "order", "template", "bindings", "upstream", "tool", "variables",
		"nodes", "edges", "source", "sourceHandle", "target", "position", "x", "y", "data", "label", "hook", "hookModuleId", "blocking", "answers",
		"handles", "timeoutMs", "script", "onMismatch", "condition", "variable", "operator", "value", "conditions", "modules",
	}
}

// keysOf returns the keys of an object in a readable order.
func keysOf(object map[string]any) []string {
	known := memberOrder()
	rank := func(key string) int {
		if i := slices.Index(known, key); i >= 0 {
			return i
		}
		return len(known)
	}
	return slices.SortedFunc(maps.Keys(object), func(a, b string) int {
		return cmp.Or(rank(a)-rank(b), strings.Compare(a, b))
	})
}

// shortLine is the maximum length of a flat object or list on one line.
const shortLine = 100

// writeJSON writes a value with an indent. Short flat values are on one line, so that a
// change to one node affects few lines.
func writeJSON(b *bytes.Buffer, value any, indent string) {
	if isFlat(value) {
		var line bytes.Buffer
		writeParts(&line, value, "", ", ", "", func(part any) { writeScalar(&line, part) })
		if line.Len() <= shortLine {
			b.Write(line.Bytes())
			return
		}
	}
	inner := indent + "  "
	writeParts(b, value, "\n"+inner, ",\n"+inner, "\n"+indent, func(part any) { writeJSON(b, part, inner) })
}

// writeParts writes an object, a list or a scalar. write writes the values of members and
// the items; first, between and last are the texts around them.
func writeParts(b *bytes.Buffer, value any, first, between, last string, write func(part any)) {
	separator := first
	switch value := value.(type) {
	case map[string]any:
		b.WriteByte('{')
		for _, key := range keysOf(value) {
			b.WriteString(separator)
			writeScalar(b, key)
			b.WriteString(": ")
			write(value[key])
			separator = between
		}
		b.WriteString(last + "}")
	case []any:
		b.WriteByte('[')
		for _, item := range value {
			b.WriteString(separator)
			write(item)
			separator = between
		}
		b.WriteString(last + "]")
	default:
		writeScalar(b, value)
	}
}

// isFlat reports whether a value is a scalar, or an object or a list of scalars.
func isFlat(value any) bool {
	isNested := func(v any) bool {
		switch v.(type) {
		case map[string]any, []any:
			return true
		}
		return false
	}
	switch value := value.(type) {
	case map[string]any:
		return !slices.ContainsFunc(slices.Collect(maps.Values(value)), isNested)
	case []any:
		return !slices.ContainsFunc(value, isNested)
	}
	return true
}

// writeScalar writes a value that is not an object or list, without escaping < and &, which
// are common in scripts.
func writeScalar(b *bytes.Buffer, value any) {
	if text, err := jsontext.Marshal(value); err == nil {
		b.Write(text)
	}
}

// patchText changes a YAML text so that it has a new value, and returns the result, or nil
// if the text cannot be patched.
func patchText(was []byte, value any) []byte {
	var document yaml.Node
	if yaml.Unmarshal(was, &document) != nil || document.Kind != yaml.DocumentNode || len(document.Content) != 1 || hasAlias(&document) {
		return nil
	}
	patchNode(document.Content[0], value)
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if enc.Encode(&document) != nil || enc.Close() != nil {
		return nil
	}
	return b.Bytes()
}

// hasAlias reports whether a node contains an alias or an anchor: changing one of the two
// would also change the value at the other places.
func hasAlias(n *yaml.Node) bool {
	return n.Kind == yaml.AliasNode || n.Anchor != "" || slices.ContainsFunc(n.Content, hasAlias)
}

// patchNode changes a node to a value, and keeps equal parts.
func patchNode(n *yaml.Node, value any) {
	if hasLines(value) {
		n.Style &^= yaml.FlowStyle // flow style cannot contain a multi-line string
	}
	switch value := value.(type) {
	case map[string]any:
		if n.Kind == yaml.MappingNode {
			patchMap(n, value)
			return
		}
	case []any:
		if n.Kind == yaml.SequenceNode {
			patchList(n, value)
			return
		}
	default:
		if n.Kind == yaml.ScalarNode && sameScalar(n, value) {
			return
		}
	}
	head, line, foot := n.HeadComment, n.LineComment, n.FootComment
	*n = *newNode(value)
	n.HeadComment, n.LineComment, n.FootComment = head, line, foot
}

func patchMap(n *yaml.Node, value map[string]any) {
	var kept []*yaml.Node
	had := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		v, ok := value[key.Value]
		if !ok || had[key.Value] {
			continue
		}
		had[key.Value] = true
		patchNode(n.Content[i+1], v)
		kept = append(kept, key, n.Content[i+1])
	}
	for _, key := range keysOf(value) {
		if !had[key] {
			kept = append(kept, newNode(key), newNode(value[key]))
		}
	}
	n.Content = kept
}

// patchList changes the items of a list, and keeps the YAML nodes of items that still
// exist. A graph's node is identified by its ID, an edge by its ends and branch, and any
// other item by its position.
func patchList(n *yaml.Node, value []any) {
	used := make([]bool, len(n.Content))
	var items []*yaml.Node
	for i, v := range value {
		at := -1
		if name := nameOfItem(v); name != "" {
			at = slices.IndexFunc(n.Content, func(item *yaml.Node) bool { return nameOfNode(item) == name })
		} else if i < len(n.Content) {
			at = i
		}
		if at < 0 || used[at] {
			items = append(items, newNode(v))
			continue
		}
		used[at] = true
		patchNode(n.Content[at], v)
		items = append(items, n.Content[at])
	}
	n.Content = items
}

// nameOfItem returns the text that identifies a node or an edge, or "" for an item without
// one.
func nameOfItem(v any) string {
	object, _ := v.(map[string]any)
	text := func(key string) string { s, _ := object[key].(string); return s }
	if source := text("source"); source != "" {
		return source + "\n" + text("sourceHandle") + "\n" + text("target")
	}
	return text("id")
}

func nameOfNode(n *yaml.Node) string {
	var v any
	if n.Decode(&v) != nil {
		return ""
	}
	return nameOfItem(v)
}

// sameScalar reports whether a node already has the value.
func sameScalar(n *yaml.Node, value any) bool {
	switch value := value.(type) {
	case string:
		return n.ShortTag() == "!!str" && n.Value == value
	case json.Number:
		tag := n.ShortTag()
		return (tag == "!!int" || tag == "!!float") && n.Value == value.String()
	case bool:
		return n.ShortTag() == "!!bool" && n.Value == strconv.FormatBool(value)
	default:
		return value == nil && n.ShortTag() == "!!null"
	}
}

// hasLines reports whether a value contains a multi-line string.
func hasLines(value any) bool {
	switch value := value.(type) {
	case string:
		return strings.Contains(value, "\n")
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(value)), hasLines)
	case []any:
		return slices.ContainsFunc(value, hasLines)
	}
	return false
}

// newNode returns a new node for a value. A flat object without multi-line strings has the
// flow style.
func newNode(value any) *yaml.Node {
	switch value := value.(type) {
	case map[string]any:
		n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		for _, key := range keysOf(value) {
			n.Content = append(n.Content, newNode(key), newNode(value[key]))
		}
		if isFlat(value) && !hasLines(value) {
			n.Style = yaml.FlowStyle
		}
		return n
	case []any:
		n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		for _, v := range value {
			n.Content = append(n.Content, newNode(v))
		}
		return n
	case json.Number:
		tag := "!!int"
		if strings.ContainsAny(value.String(), ".eE") {
			tag = "!!float"
		}
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: value.String()}
	}
	n := &yaml.Node{}
	_ = n.Encode(value) // cannot fail for a string, a boolean or null
	if text, ok := value.(string); ok && strings.Contains(text, "\n") {
		n.Style = yaml.LiteralStyle
	}
	return n
}
