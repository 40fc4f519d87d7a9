package session

import (
	"encoding/json"
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"github.com/guideway-dev/guideway/internal/platform/lists"
)

// The limits of a document and of an update. They are far above the size of documents that
// agents write, and stop a faulty agent from filling the store.
const (
	// MaxBytes is the maximum size of a document's JSON.
	MaxBytes = 1 << 20
	// MaxDepth is the maximum nesting of objects and lists.
	MaxDepth = 64
	// MaxValues is the maximum number of members of objects and items of lists, in total.
	MaxValues = 50_000
	// maxPaths is the maximum number of paths in one update.
	maxPaths = 1000
)

// checkUpdates refuses updates with too many paths or values, with CodeTooLarge. Updates are
// applied in a transaction that excludes other writers, so their cost is limited before. A
// name counts as a path if it would be a path in an empty document.
func checkUpdates(updates map[string]any) error {
	if values := countNodes(updates) - 1; values > MaxValues {
		return guideway.Errorf(guideway.CodeTooLarge, "the updates have %d values, more than the maximum of %d", values, MaxValues).
			WithFix("keep summaries in the document; replace growing lists with shorter ones")
	}
	paths := 0
	for key := range updates {
		if path, err := updatePath(nil, key); path != nil || err != nil {
			paths++
		}
	}
	if paths > maxPaths {
		return guideway.Errorf(guideway.CodeTooLarge, "the updates have %d paths, more than the maximum of %d", paths, maxPaths).
			WithFix(`write members of one object as an object, as in {"dashboard": {"title": "x", "progress": 25}}, or send several updates`)
	}
	return nil
}

// checkLimits refuses a document that exceeds a limit, with CodeTooLarge.
func checkLimits(data map[string]any) error {
	values := 0
	if err := countValues(data, 1, &values); err != nil {
		return err
	}
	size, err := json.Marshal(data)
	if err != nil {
		return guideway.Errorf(guideway.CodeInternal, "measure a session document: %w", err)
	}
	if len(size) > MaxBytes {
		return guideway.Errorf(guideway.CodeTooLarge, "the session document would have %d bytes of JSON, more than the maximum of %d", len(size), MaxBytes).
			WithFix("keep summaries in the document and put long texts into files; replace growing lists with shorter ones")
	}
	return nil
}

// countValues counts values and checks their depth.
func countValues(value any, depth int, values *int) error {
	var children iter.Seq[any]
	switch value := value.(type) {
	case map[string]any:
		children = maps.Values(value)
	case []any:
		children = slices.Values(value)
	default:
		return nil
	}
	if depth > MaxDepth {
		return tooDeep()
	}
	for child := range children {
		*values++
		if *values > MaxValues {
			return guideway.Errorf(guideway.CodeTooLarge, "the session document would have more than %d values", MaxValues).
				WithFix("keep summaries in the document; replace growing lists with shorter ones")
		}
		if err := countValues(child, depth+1, values); err != nil {
			return err
		}
	}
	return nil
}

func tooDeep() error {
	return guideway.Errorf(guideway.CodeTooLarge, "the values of the session document are nested more than %d levels deep", MaxDepth).
		WithFix("nest the values less deeply")
}

// cloneObject returns a deep copy of an object in the form of documents: objects are
// map[string]any, lists []any, numbers json.Number. Errors have CodeInvalid or
// CodeTooLarge.
func cloneObject(object map[string]any) (map[string]any, error) {
	if object == nil {
		return map[string]any{}, nil
	}
	copied, err := cloneValue(object, 1)
	if err != nil {
		return nil, err
	}
	return copied.(map[string]any), nil
}

// cloneValue copies a JSON value at a depth; see cloneObject.
func cloneValue(value any, depth int) (any, error) {
	switch value := value.(type) {
	case nil, bool:
		return value, nil
	case string:
		return strings.ToValidUTF8(value, "\uFFFD"), nil
	case json.Number:
		if !jsontext.IsNumber(string(value)) {
			return nil, guideway.Errorf(guideway.CodeInvalid, "a value is the number %q, which is not valid in JSON", clipText(string(value)))
		}
		return value, nil
	case float64:
		if math.IsNaN(value) || math.IsInf(value, 0) {
			return nil, guideway.Errorf(guideway.CodeInvalid, "JSON cannot represent the number %v", value)
		}
		return formatNumber(value), nil
	case int:
		return json.Number(strconv.Itoa(value)), nil
	case map[string]any:
		if depth > MaxDepth {
			return nil, tooDeep()
		}
		object := make(map[string]any, len(value))
		for key, member := range value {
			copied, err := cloneValue(member, depth+1)
			if err != nil {
				return nil, err
			}
			object[strings.ToValidUTF8(key, "\uFFFD")] = copied
		}
		return object, nil
	case []any:
		if depth > MaxDepth {
			return nil, tooDeep()
		}
		list := make([]any, len(value))
		for i, item := range value {
			copied, err := cloneValue(item, depth+1)
			if err != nil {
				return nil, err
			}
			list[i] = copied
		}
		return list, nil
	default:
		return cloneOther(value, depth)
	}
}

// cloneOther copies a Go value of another type by encoding it as JSON.
func cloneOther(value any, depth int) (any, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeInvalid, "a value cannot be encoded as JSON: %w", err)
	}
	var plain any
	if err := jsontext.Decode(text, &plain); err != nil {
		return nil, guideway.Errorf(guideway.CodeInvalid, "a value cannot be encoded as JSON: %w", err)
	}
	return cloneValue(plain, depth)
}

// formatNumber returns a number as JSON.
func formatNumber(f float64) json.Number {
	return json.Number(strconv.FormatFloat(f, 'f', -1, 64))
}

// mergeValues returns the old value with the update merged into it. Objects are merged
// member by member; everything else, including null and lists, is replaced. No member of
// the old object is lost unless the update has a member with its name. Neither value is
// changed; the result shares no object or list with them.
func mergeValues(old, update any) any { return mergeInto(copyContainers(old), update) }

// mergeInto is mergeValues, but changes the objects of the old value instead of a copy.
func mergeInto(old, update any) any {
	into, intoObject := old.(map[string]any)
	from, fromObject := update.(map[string]any)
	if !intoObject || !fromObject {
		return copyContainers(update)
	}
	for key, value := range from {
		into[key] = mergeInto(into[key], value)
	}
	return into
}

// copyContainers returns a value with copies of all its objects and lists.
func copyContainers(value any) any {
	switch value := value.(type) {
	case map[string]any:
		object := make(map[string]any, len(value))
		for key, member := range value {
			object[key] = copyContainers(member)
		}
		return object
	case []any:
		return lists.Map(value, copyContainers)
	default:
		return value
	}
}

// EncodeData returns the data of a document as stores keep it: as JSON, or encrypted.
func (d Document) EncodeData() ([]byte, error) {
	if d.Sealed != nil {
		return d.Sealed, nil
	}
	data := d.Data
	if data == nil {
		data = map[string]any{}
	}
	text, err := jsontext.Marshal(data)
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeInvalid, "the session document cannot be encoded as JSON: %w", err)
	}
	return text, nil
}

// DecodeData reads the JSON of a document; numbers keep all their digits.
func DecodeData(text []byte) (data map[string]any, err error) {
	err = jsontext.Decode(text, &data)
	return data, err
}
