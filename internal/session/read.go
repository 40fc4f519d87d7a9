package session

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// schemaPath asks for the schema of documents in place of a part of one.
const schemaPath = "$schema"

// query reads a part of a document: all of it for an empty path, by JSONPath
// (RFC 9535) where the path begins with $, else by a docPath. A member whose
// name is the whole path goes before what a docPath leads to, and is what a $
// stands for that does not begin a JSONPath. found is false
// where nothing stands there; a filter of a list that is there finds a list,
// which may be empty.
func query(data map[string]any, path string) (value any, found bool, err error) {
	if path == "" {
		return data, true, nil
	}
	literal, ok := data[path]
	if strings.HasPrefix(path, "$") {
		value, found, err = queryJSONPath(data, path)
		if err == nil || !ok {
			return value, found, err
		}
	}
	if ok {
		return literal, true, nil
	}
	parsed, err := parsePath(path)
	if err != nil {
		return nil, false, err
	}
	value, found = parsed.get(data)
	return value, found, nil
}

// get gives what a path leads to. Behind a filter or [*], a name is read of
// every item, and an index picks one of them.
func (p docPath) get(root any) (value any, found bool) {
	current, many := root, false
	for _, part := range p {
		list, isList := current.([]any)
		switch part.kind {
		case partName:
			current, found = getName(current, part.name, many)
		case partIndex:
			at, ok := place(part.index, len(list))
			if !isList || !ok {
				return nil, false
			}
			current, found, many = list[at], true, false
		case partEach:
			if object, isObject := current.(map[string]any); isObject {
				list, isList = members(object), true
			}
			current, found, many = list, isList, true
		case partFilter:
			current, found, many = part.keep(list), isList, true
		}
		if !found {
			return nil, false
		}
	}
	return current, true
}

// getName gives a member of an object, or the member of every item that has it.
func getName(value any, name string, many bool) (any, bool) {
	list, isList := value.([]any)
	if many {
		values := []any{}
		for _, item := range list {
			if member, ok := getName(item, name, false); ok {
				values = append(values, member)
			}
		}
		return values, len(values) > 0 || len(list) == 0
	}
	if isList {
		// hypotheses.0.status, as it is often written.
		at, err := strconv.Atoi(name)
		if err != nil || at < 0 || at >= len(list) {
			return nil, false
		}
		return list[at], true
	}
	object, _ := value.(map[string]any)
	member, ok := object[name]
	return member, ok
}

// place gives the place of an index in a list; a negative one counts from the
// end.
func place(index, length int) (int, bool) {
	if index < 0 {
		index += length
	}
	return index, index >= 0 && index < length
}

// members gives the values of an object, in the order of their names.
func members(object map[string]any) []any {
	values := make([]any, 0, len(object))
	for _, key := range slices.Sorted(maps.Keys(object)) {
		values = append(values, object[key])
	}
	return values
}

// keep gives the items that pass a filter.
func (p pathPart) keep(list []any) []any {
	kept := []any{}
	for _, item := range list {
		if value, ok := p.field.get(item); ok && textEquals(value, p.value) {
			kept = append(kept, item)
		}
	}
	return kept
}

// textEquals compares a value with a text, as which a filter has all values:
// numbers by what they amount to.
func textEquals(value any, text string) bool {
	switch value := value.(type) {
	case nil:
		return text == "null"
	case string:
		return value == text
	case bool:
		return strconv.FormatBool(value) == text
	case json.Number:
		if string(value) == text {
			return true
		}
		a, errA := value.Float64()
		b, errB := strconv.ParseFloat(text, 64)
		return errA == nil && errB == nil && a == b
	default:
		return false
	}
}
