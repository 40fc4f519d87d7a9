package session

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/guideway-dev/guideway"
)

// applyUpdates returns a document with updates merged into it. The names of the updates'
// members select values of the document:
//
//   - a name that the document has, or a name without dots and brackets, selects that
//     member;
//   - any other name with brackets is a path, and refused if it does not parse;
//   - any other name with dots is a path if it parses as one, otherwise a name, such as
//     "e.g. this";
//   - a path may start with "$." or "$[", as in JSONPath.
//
// Names within the values are never paths. A value is merged with the existing value:
// objects are merged member by member, everything else is replaced. A path creates missing
// objects and lists; an index that equals the length of its list appends an item. A path through a
// value that is neither an object nor a list is refused, and so are filters and [*],
// because a mistake would overwrite data.
//
// Names are applied before paths, and paths in a fixed order, so that the same updates
// always return the same document. Neither argument is changed.
func applyUpdates(data, updates map[string]any) (map[string]any, error) {
	names := make(map[string]any, len(updates))
	var places []placedValue
	for key, value := range updates {
		path, err := updatePath(data, key)
		if err != nil {
			return nil, err
		}
		if path == nil {
			names[key] = value
			continue
		}
		places = append(places, placedValue{path: path, key: key, value: value})
	}
	slices.SortFunc(places, comparePlaced)
	// Only this copies the document. A copy for each path would take quadratic time, within
	// the transaction of the store.
	result := mergeValues(data, names)
	for _, p := range places {
		var err error
		if result, err = putValue(result, p.path, 0, p.value); err != nil {
			return nil, fmt.Errorf("the path %q: %w", clipText(p.key), err)
		}
	}
	return result.(map[string]any), nil
}

// placedValue is a value and the path where it is stored.
type placedValue struct {
	path  docPath
	key   string
	value any
}

// updatePath parses the name of an update's member. It returns nil for a name that is not a
// path.
func updatePath(data map[string]any, key string) (docPath, error) {
	if _, literal := data[key]; literal || !strings.ContainsAny(key, ".[") {
		return nil, nil
	}
	text := key
	if rest, ok := strings.CutPrefix(key, "$"); ok && (strings.HasPrefix(rest, ".") || strings.HasPrefix(rest, "[")) {
		text = strings.TrimPrefix(rest, ".")
	}
	path, err := parsePath(text)
	if err != nil {
		if !strings.Contains(key, "[") {
			return nil, nil
		}
		bad := guideway.Errorf(guideway.CodeInvalid, "%w", err)
		if len(text) > maxPathBytes {
			return nil, bad.WithFix("%s", guideway.ErrorFix(err))
		}
		return nil, bad.WithFix("%s; put a name with brackets in quotes: [%s]", updatePathFix, quoteName(clipText(key)))
	}
	for _, part := range path {
		if part.kind == partFilter || part.kind == partEach {
			return nil, guideway.Errorf(guideway.CodeInvalid, "the path %q of an update has a filter or [*], which does not select a single value", clipText(key)).
				WithFix("read the list first and name the item by its index, as in hypotheses[0].status")
		}
	}
	return path, nil
}

// comparePlaced orders values by their paths: shorter paths and lower indices first.
func comparePlaced(a, b placedValue) int {
	order := slices.CompareFunc(a.path, b.path, func(a, b pathPart) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name), cmp.Compare(a.index, b.index))
	})
	return cmp.Or(order, cmp.Compare(a.key, b.key))
}

// putValue merges a value in at the end of a path of a document. It changes the objects and
// lists of current, the value at path[:done], and returns the new value there. A missing
// value is nil.
func putValue(current any, path docPath, done int, value any) (any, error) {
	if done == len(path) {
		return mergeInto(current, value), nil
	}
	part := path[done]
	list, isList := current.([]any)
	if part.kind == partName && isList {
		index, err := strconv.Atoi(part.name)
		if err != nil || index < 0 {
			return nil, wrongKind(current, path[:done], "an object")
		}
		part = pathPart{kind: partIndex, index: index}
	}
	if part.kind == partName {
		object, isObject := current.(map[string]any)
		if !isObject && current != nil {
			return nil, wrongKind(current, path[:done], "an object")
		}
		member, err := putValue(object[part.name], path, done+1, value)
		if err != nil {
			return nil, err
		}
		if object == nil {
			object = map[string]any{}
		}
		object[part.name] = member
		return object, nil
	}
	if !isList && current != nil {
		return nil, wrongKind(current, path[:done], "a list")
	}
	at, ok := listIndex(part.index, len(list))
	if !ok && at != len(list) {
		err := guideway.Errorf(guideway.CodeInvalid, "%s has the length %d, so there is no index %d", placeName(path[:done]), len(list), part.index)
		if len(list) == 0 {
			return nil, err.WithFix("use the index 0, which appends an item")
		}
		return nil, err.WithFix("use an index from 0 to %d; %d appends an item", len(list), len(list))
	}
	if at == len(list) {
		list = append(list, nil)
	}
	item, err := putValue(list[at], path, done+1, value)
	if err != nil {
		return nil, err
	}
	list[at] = item
	return list, nil
}

// wrongKind returns the error for a path through a value that has no members or items.
func wrongKind(found any, path docPath, wanted string) error {
	return guideway.Errorf(guideway.CodeInvalid, "%s is %s, not %s", placeName(path), kindOf(found), wanted).
		WithFix("replace all of %s, or use a different path", placeName(path))
}

// placeName returns the name of a path in a message.
func placeName(path docPath) string {
	if len(path) == 0 {
		return "the document"
	}
	return clipText(path.String())
}

// kindOf returns the name of a value's kind in a message.
func kindOf(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case string:
		return "a string"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	default:
		return "a number"
	}
}
