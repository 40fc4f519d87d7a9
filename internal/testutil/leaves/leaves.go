// Package leaves changes each value of a JSON document in turn, for tests that check that a
// hash or a review text covers every member.
package leaves

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
)

// Change has the variants of a document in which one value is changed.
type Change struct {
	// Path is the path of the changed value, such as "states/0/agent".
	Path string
	// Texts are variants of the document; at least one should be valid.
	Texts []string
}

// ChangesOf returns the changes of all values of a document except objects and lists.
// options are further values for a path, for members with a fixed set of values.
func ChangesOf(t *testing.T, document string, options map[string][]any) []Change {
	t.Helper()
	var root any
	if err := json.Unmarshal([]byte(document), &root); err != nil {
		t.Fatal(err)
	}
	var changes []Change
	var visit func(path string, value any, set func(any))
	visit = func(path string, value any, set func(any)) {
		switch v := value.(type) {
		case map[string]any:
			for name, member := range v {
				visit(path+"/"+name, member, func(changed any) { v[name] = changed })
			}
			return
		case []any:
			for i, item := range v {
				visit(fmt.Sprintf("%s/%d", path, i), item, func(changed any) { v[i] = changed })
			}
			return
		}
		change := Change{Path: path[1:]}
		for _, changed := range append(slices.Clone(options[change.Path]), otherValue(value)) {
			set(changed)
			text, err := json.Marshal(root)
			if err != nil {
				t.Fatal(err)
			}
			change.Texts = append(change.Texts, string(text))
		}
		set(value)
		changes = append(changes, change)
	}
	visit("", root, func(any) {})
	return changes
}

// otherValue returns a different value of the same type, or a string for null.
func otherValue(value any) any {
	switch v := value.(type) {
	case string:
		return v + "2"
	case float64:
		return v + 1
	case bool:
		return !v
	default:
		return "2"
	}
}
