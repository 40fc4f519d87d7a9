package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/theory/jsonpath"
	"github.com/theory/jsonpath/registry"
	"github.com/theory/jsonpath/spec"

	"github.com/guideway-dev/guideway"
)

// Limits of a JSONPath query. A short query can select exponentially many nodes, and the
// evaluation by the library cannot be interrupted. So the library evaluates one segment at
// a time, and queries whose filters multiply the cost are refused.
const (
	maxNodes  = 10_000
	maxVisits = 1_000_000
	// patternVisits is the cost of a pattern at each item: the library compiles the pattern
	// every time.
	patternVisits = 250
)

// errTooMuch is returned for a query that reads or selects too many values.
var errTooMuch = fmt.Errorf("it needs more than %d steps, or selects more than %d values", maxVisits, maxNodes)

// queryJSONPath evaluates a JSONPath query. A query that consists of names and indices
// returns the selected value, any other query returns a list. Members are in the order of
// their names.
func queryJSONPath(data map[string]any, query string) (value any, found bool, err error) {
	if len(query) > maxPathBytes {
		return nil, false, guideway.Errorf(guideway.CodeInvalid, "the path has %d bytes, more than the maximum of %d", len(query), maxPathBytes).WithFix("use a shorter path")
	}
	path, err := newParser().Parse(query)
	if err != nil {
		return nil, false, guideway.Errorf(guideway.CodeInvalid, "the path %q does not parse as JSONPath: %w", clipText(query), err).
			WithFix("%s; as JSONPath, $.hypotheses[?@.status=='active'].id", pathFix)
	}
	for _, segment := range path.Query().Segments() {
		for _, selector := range segment.Selectors() {
			if filter, ok := selector.(*spec.FilterSelector); ok && err == nil {
				err = checkFilter(filter)
			}
		}
	}
	if err != nil {
		return nil, false, guideway.Errorf(guideway.CodeInvalid, "the path %q is refused: %w", clipText(query), err).
			WithFix("compare with a single value in a filter, as in $.hypotheses[?@.status=='active'], or read the whole list and select from it")
	}
	w := queryWalk{root: data, filterVisits: patternVisits * (strings.Count(query, "match(") + strings.Count(query, "search("))}
	nodes := []any{data}
	for _, segment := range path.Query().Segments() {
		if nodes, err = w.applyToAll(segment, nodes); err != nil {
			return nil, false, guideway.Errorf(guideway.CodeTooLarge, "the path %q is refused: %w", clipText(query), err).
				WithFix("make the query more specific, with fewer of .., *, match() and search()")
		}
	}
	if path.Query().Singular() == nil {
		if err := checkAnswer(nodes); err != nil {
			return nil, false, guideway.Errorf(guideway.CodeTooLarge, "the path %q is refused: %w", clipText(query), err).
				WithFix("select fewer values, and none of them twice")
		}
		return nodes, true, nil
	}
	if len(nodes) == 0 {
		return nil, false, nil
	}
	return nodes[0], true, nil
}

// newParser returns a parser whose match and search functions return false if an item lacks
// the member, as RFC 9535, section 2.4.6 requires. The functions of the library panic in
// this case.
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

// queryWalk evaluates a query on a document and counts its steps.
type queryWalk struct {
	root   any
	visits int
	// filterVisits is the cost of a filter at each item, in addition to the item's size.
	filterVisits int
	nodes        []any
}

// applyToAll applies a segment to nodes.
func (w *queryWalk) applyToAll(segment *spec.Segment, nodes []any) ([]any, error) {
	w.nodes = []any{}
	for _, node := range nodes {
		if err := w.applySegment(segment, node); err != nil {
			return nil, err
		}
	}
	return w.nodes, nil
}

// applySegment applies a segment to a node and, if it is a descendant segment, to
// everything below the node.
func (w *queryWalk) applySegment(segment *spec.Segment, node any) error {
	for _, selector := range segment.Selectors() {
		if err := w.applySelector(selector, node); err != nil {
			return err
		}
	}
	if !segment.IsDescendant() {
		return nil
	}
	for _, child := range childNodes(node) {
		if err := w.applySegment(segment, child); err != nil {
			return err
		}
	}
	return nil
}

// applySelector adds the nodes that a selector selects in a node.
func (w *queryWalk) applySelector(selector spec.Selector, node any) error {
	w.visits++
	switch selector := selector.(type) {
	case *spec.FilterSelector:
		for _, child := range childNodes(node) {
			// A filter may read everything below the child.
			w.visits += countNodes(child) + w.filterVisits
			if w.visits > maxVisits {
				return errTooMuch
			}
			if selector.Eval(child, w.root) {
				w.nodes = append(w.nodes, child)
			}
		}
	case spec.WildcardSelector:
		w.nodes = append(w.nodes, childNodes(node)...)
	default:
		w.nodes = append(w.nodes, selector.Select(node, w.root)...)
	}
	if w.visits > maxVisits || len(w.nodes) > maxNodes {
		return errTooMuch
	}
	return nil
}

// checkAnswer refuses a list of values whose JSON would be longer than MaxBytes. A list
// that contains a long value many times takes little memory, but its JSON contains every
// copy.
func checkAnswer(nodes []any) error {
	size := len("[]") - len(",")
	for _, node := range nodes {
		text, err := json.Marshal(node)
		if err != nil {
			return err
		}
		if size += len(text) + len(","); size > MaxBytes {
			return fmt.Errorf("it selects more than %d bytes of JSON, the maximum", MaxBytes)
		}
	}
	return nil
}

// childNodes returns the items of a list or the members of an object.
func childNodes(node any) []any {
	switch node := node.(type) {
	case []any:
		return node
	case map[string]any:
		return sortedValues(node)
	default:
		return nil
	}
}

// countNodes returns the number of values in a value, including the value itself.
func countNodes(value any) int {
	total := 1
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			total += countNodes(item)
		}
	case map[string]any:
		for _, member := range value {
			total += countNodes(member)
		}
	}
	return total
}

var (
	// stringPattern matches a string in the text of a filter, as the library writes it.
	stringPattern = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	// listPattern matches several selectors in one pair of brackets.
	listPattern = regexp.MustCompile(`\[[^\]]*,`)
	// rootPattern matches a query from $ that has more than names and indices. Strings are
	// replaced by s.
	rootPattern = regexp.MustCompile(`\$(?:\[(?:s|-?\d+)\])*(?:\[[^s\d-]|\[-?\d*:|\.\.)`)
)

// checkFilter refuses a filter that may cost more than the size of the value that it
// filters.
func checkFilter(filter *spec.FilterSelector) error {
	text := stringPattern.ReplaceAllString(filter.LogicalOr.String(), "s")
	switch {
	case strings.Contains(text, "?"):
		return errors.New("a filter contains another filter")
	case rootPattern.MatchString(text):
		return errors.New("$ in a filter selects more than one value")
	case listPattern.MatchString(text):
		return errors.New("a filter has several selectors in one pair of brackets")
	case strings.Count(text, "..") > 1:
		return errors.New("a filter uses .. more than once")
	}
	return nil
}
