package session

import (
	"errors"
	"slices"
	"strings"

	"github.com/theory/jsonpath"
	"github.com/theory/jsonpath/registry"
	"github.com/theory/jsonpath/spec"

	"github.com/guideway-dev/guideway"
)

// Bounds of a JSONPath query. A query can be short and yet ask for more nodes
// than there are atoms; nobody can stop the library, so that it gets one segment
// at a time and no query whose filters multiply.
const (
	maxNodes  = 10_000
	maxVisits = 1_000_000
	// patternVisits is what a pattern counts at each item: the library compiles
	// it every time.
	patternVisits = 250
)

// errTooMuch is a query that asks for too much.
var errTooMuch = errors.New("it asks for too many values")

// queryJSONPath reads a part of a document by JSONPath. A query for a single
// place (names and indices alone) gives what stands there, any other a list.
// Members come in the order of their names.
func queryJSONPath(data map[string]any, query string) (value any, found bool, err error) {
	if len(query) > maxPathBytes {
		return nil, false, guideway.Errorf(guideway.CodeInvalid, "the path has %d bytes, more than %d", len(query), maxPathBytes).WithFix(pathFix)
	}
	path, err := newParser().Parse(query)
	if err != nil {
		return nil, false, guideway.Errorf(guideway.CodeInvalid, "the path %q does not parse as JSONPath: %w", clip(query), err).
			WithFix("%s; as JSONPath, $.hypotheses[?@.status=='active'].id", pathFix)
	}
	if err := checkFilters(query); err != nil {
		return nil, false, guideway.Errorf(guideway.CodeInvalid, "the path %q is refused: %w", clip(query), err).
			WithFix("compare with a single value in a filter, as in $.hypotheses[?@.status=='active'], or read the list and choose yourself")
	}
	w := walk{root: data, filterVisits: patternVisits * (strings.Count(query, "match(") + strings.Count(query, "search("))}
	nodes := []any{data}
	for _, segment := range path.Query().Segments() {
		if nodes, err = w.all(segment, nodes); err != nil {
			return nil, false, guideway.Errorf(guideway.CodeTooLarge, "the path %q is refused: %w", clip(query), err).
				WithFix("name more of the place, and use .. and * less")
		}
	}
	if path.Query().Singular() == nil {
		return nodes, true, nil
	}
	if len(nodes) == 0 {
		return nil, false, nil
	}
	return nodes[0], true, nil
}

// newParser makes a parser. The library's match and search panic where an item
// lacks the member that they look at; by the RFC they do not match (2.4.6).
func newParser() *jsonpath.Parser {
	functions := registry.New()
	for _, name := range []string{"match", "search"} {
		function := functions.Get(name)
		original := *function
		*function = *spec.Extension(name, original.ReturnType(), original.Validate, func(args []spec.PathValue) spec.PathValue {
			if slices.Contains(args, nil) {
				return spec.LogicalFalse
			}
			return original.Evaluate(args)
		})
	}
	return jsonpath.NewParser(jsonpath.WithRegistry(functions))
}

// walk takes a query through a document and counts its steps.
type walk struct {
	root   any
	visits int
	// filterVisits are what a filter counts at each item, besides its size.
	filterVisits int
	nodes        []any
}

// all applies a segment to nodes.
func (w *walk) all(segment *spec.Segment, nodes []any) ([]any, error) {
	w.nodes = []any{}
	for _, node := range nodes {
		if err := w.segment(segment, node); err != nil {
			return nil, err
		}
	}
	return w.nodes, nil
}

// segment applies a segment to a node, and to all below it if it is a
// descendant segment.
func (w *walk) segment(segment *spec.Segment, node any) error {
	for _, selector := range segment.Selectors() {
		if err := w.selector(selector, node); err != nil {
			return err
		}
	}
	if !segment.IsDescendant() {
		return nil
	}
	for _, child := range children(node) {
		if err := w.segment(segment, child); err != nil {
			return err
		}
	}
	return nil
}

// selector adds the nodes that a selector finds in a node.
func (w *walk) selector(selector spec.Selector, node any) error {
	w.visits++
	switch selector := selector.(type) {
	case *spec.FilterSelector:
		for _, child := range children(node) {
			// A filter may look at all that stands below.
			w.visits += size(child) + w.filterVisits
			if w.visits > maxVisits {
				return errTooMuch
			}
			if selector.Eval(child, w.root) {
				w.nodes = append(w.nodes, child)
			}
		}
	case spec.WildcardSelector:
		w.nodes = append(w.nodes, children(node)...)
	default:
		w.nodes = append(w.nodes, selector.Select(node, w.root)...)
	}
	if w.visits > maxVisits || len(w.nodes) > maxNodes {
		return errTooMuch
	}
	return nil
}

// children gives the items of a list and the members of an object.
func children(node any) []any {
	switch node := node.(type) {
	case []any:
		return node
	case map[string]any:
		return members(node)
	default:
		return nil
	}
}

// size counts a value and all below it.
func size(value any) int {
	total := 1
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			total += size(item)
		}
	case map[string]any:
		for _, member := range value {
			total += size(member)
		}
	}
	return total
}

// checkFilters refuses a query with filters whose work is more than what stands
// below the value that they look at: $ for anything but a single place, several
// selectors in one pair of brackets, or .. more than once. The query is known to
// parse.
func checkFilters(query string) error {
	var open []byte
	descents := 0
	for i := 0; i < len(query); i++ {
		c := query[i]
		switch c {
		case '\'', '"':
			i = endOfString(query, i)
			continue
		case '[', '(':
			open = append(open, c)
			continue
		case ']', ')':
			open = open[:max(0, len(open)-1)]
			continue
		case '?':
			if len(open) > 0 {
				open[len(open)-1] = c
			}
			continue
		}
		within := strings.Count(string(open), "?")
		switch {
		case within == 0:
		case c == '$' && !singular(query[i+1:]):
			return errors.New("$ in a filter leads to more than one place")
		case c == ',' && (open[len(open)-1] == '[' || within > 1 && open[len(open)-1] == '?'):
			return errors.New("a filter has several selectors in one pair of brackets")
		case c == '.' && strings.HasPrefix(query[i:], ".."):
			i++
			if descents++; descents > 1 {
				return errors.New("filters have .. more than once")
			}
		}
	}
	return nil
}

// endOfString gives the place of the quote that ends the string that begins at
// a place.
func endOfString(text string, start int) int {
	for i := start + 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case text[start]:
			return i
		}
	}
	return len(text)
}

// singular tells whether the query that goes on behind a $ leads to a single
// place: it has names and indices alone.
func singular(rest string) bool {
	path, err := newParser().Parse("$" + rest[:endOfQuery(rest)])
	return err == nil && path.Query().Singular() != nil
}

// endOfQuery gives the place behind the segments that a text begins with. They
// are known to parse.
func endOfQuery(text string) int {
	end := 0
	for {
		at := end + len(text[end:]) - len(strings.TrimLeft(text[end:], " \t\r\n"))
		switch {
		case strings.HasPrefix(text[at:], "["):
			end = endOfBracket(text, at)
		case strings.HasPrefix(text[at:], "."):
			at += len(text[at:]) - len(strings.TrimLeft(text[at:], "."))
			if strings.HasPrefix(text[at:], "[") {
				end = at
				continue
			}
			length := strings.IndexAny(text[at:], " \t\r\n.[]()=!<>&|,")
			if length < 0 {
				return len(text)
			}
			end = at + length
		default:
			return end
		}
	}
}

// endOfBracket gives the place behind the bracket that closes the one at a
// place.
func endOfBracket(text string, start int) int {
	depth := 0
	for i := start; i < len(text); i++ {
		switch text[i] {
		case '\'', '"':
			i = endOfString(text, i)
		case '[':
			depth++
		case ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(text)
}
