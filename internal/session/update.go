package session

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/guideway-dev/guideway"
)

// apply gives a document with updates in it. The names of the updates' members
// are places in the document:
//
//   - a name that the document has, or one without dots and brackets, is that
//     member;
//   - a name with brackets is a path, and refused if it does not parse;
//   - a name with dots is a path if it parses as one, else a name: "e.g. this";
//   - a path may begin with "$.", as in JSONPath.
//
// Names within the values are never paths. What stands at a place is merged with
// the value: objects member by member, all else is replaced. A path makes the
// objects that it needs; an index that equals the length of its list appends. A
// path through something else than an object or a list is refused, as are
// filters and [*]: a slip would destroy what stands there.
//
// Names come before paths, then paths in order, so that the same updates always
// give the same document. Neither argument is changed.
func apply(data, updates map[string]any) (map[string]any, error) {
	names := make(map[string]any, len(updates))
	var places []placed
	for key, value := range updates {
		path, err := updatePath(data, key)
		if err != nil {
			return nil, err
		}
		if path == nil {
			names[key] = value
			continue
		}
		places = append(places, placed{path: path, key: key, value: value})
	}
	slices.SortFunc(places, comparePlaced)
	result := merge(data, names)
	for _, p := range places {
		var err error
		if result, err = put(result, p.path, 0, p.value); err != nil {
			return nil, fmt.Errorf("update %q: %w", clip(p.key), err)
		}
	}
	return result.(map[string]any), nil
}

// placed is a value and where it goes.
type placed struct {
	path  docPath
	key   string
	value any
}

// updatePath reads the name of an update's member; nil stands for the name
// itself.
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
		return nil, guideway.Errorf(guideway.CodeInvalid, "update: %w", err).
			WithFix("%s; put a name with brackets in quotes: [%s]", pathFix, quoteName(clip(key)))
	}
	for _, part := range path {
		if part.kind == partFilter || part.kind == partEach {
			return nil, guideway.Errorf(guideway.CodeInvalid, "update %q: a filter or [*] names no single place", clip(key)).
				WithFix("read the list first and name the item by its index, as in hypotheses[0].status")
		}
	}
	return path, nil
}

// comparePlaced orders places: what stands higher or earlier in the document
// comes first.
func comparePlaced(a, b placed) int {
	order := slices.CompareFunc(a.path, b.path, func(a, b pathPart) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name), cmp.Compare(a.index, b.index))
	})
	return cmp.Or(order, cmp.Compare(a.key, b.key))
}

// put gives the value at path[:done] with a value merged in at the path's end.
// What is not there yet is nil.
func put(current any, path docPath, done int, value any) (any, error) {
	if done == len(path) {
		return merge(current, value), nil
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
		member, err := put(object[part.name], path, done+1, value)
		if err != nil {
			return nil, err
		}
		changed := make(map[string]any, len(object)+1)
		maps.Copy(changed, object)
		changed[part.name] = member
		return changed, nil
	}
	if !isList && current != nil {
		return nil, wrongKind(current, path[:done], "a list")
	}
	at, ok := place(part.index, len(list))
	if !ok && at != len(list) {
		return nil, guideway.Errorf(guideway.CodeInvalid, "%s has %d items, so that there is no index %d", placeName(path[:done]), len(list), part.index).
			WithFix("use an index from 0 to %d; %d appends", len(list), len(list))
	}
	changed := slices.Clone(list)
	if at == len(list) {
		changed = append(changed, nil)
	}
	item, err := put(changed[at], path, done+1, value)
	if err != nil {
		return nil, err
	}
	changed[at] = item
	return changed, nil
}

// wrongKind is the refusal of a path through something that it cannot go
// through.
func wrongKind(found any, path docPath, wanted string) error {
	return guideway.Errorf(guideway.CodeInvalid, "%s is %s, not %s", placeName(path), kindOf(found), wanted).
		WithFix("replace %s as a whole, or name another place", placeName(path))
}

// placeName names a place in a message.
func placeName(path docPath) string {
	if len(path) == 0 {
		return "the document"
	}
	return clip(path.String())
}

// kindOf names the kind of a value in a message.
func kindOf(value any) string {
	switch value := value.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case string:
		return "a text"
	case []any:
		return fmt.Sprintf("a list of %d", len(value))
	case map[string]any:
		return "an object"
	default:
		return "a number"
	}
}
