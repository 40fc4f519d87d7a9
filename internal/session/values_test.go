package session

import (
	"bytes"
	"encoding/json"
	"testing"

	"pgregory.net/rapid"
)

// decodeObject parses an object in the form of documents.
func decodeObject(t testing.TB, text string) map[string]any {
	t.Helper()
	value, ok := decodeJSON(t, text).(map[string]any)
	if !ok {
		t.Fatalf("%s is not an object", text)
	}
	return value
}

func decodeJSON(t testing.TB, text string) any {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return value
}

// encodeJSON returns the JSON of a value.
func encodeJSON(t testing.TB, value any) string {
	t.Helper()
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		t.Fatal(err)
	}
	return string(bytes.TrimSpace(text.Bytes()))
}

// names are the names in random documents: few names, so that two documents share some,
// including names that paths must quote.
var names = []string{"a", "b", "dashboard", "phase-1", "x y", "with.dot", "it's", `"`, "[0]", "", "ü", "0"}

// anyName generates names.
func anyName() *rapid.Generator[string] {
	return rapid.OneOf(rapid.SampledFrom(names), rapid.String())
}

// anyScalar generates values without members.
func anyScalar() *rapid.Generator[any] {
	return rapid.OneOf(
		rapid.Just[any](nil),
		rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		rapid.Map(rapid.Int32(), func(i int32) any { return formatNumber(float64(i)) }),
		rapid.Map(rapid.StringN(0, 8, -1), func(s string) any { return s }),
	)
}

// anyValue generates values with a maximum depth.
func anyValue(depth int) *rapid.Generator[any] {
	if depth == 0 {
		return anyScalar()
	}
	return rapid.OneOf(
		anyScalar(),
		rapid.Map(anyObject(depth-1), func(o map[string]any) any { return o }),
		rapid.Map(rapid.SliceOfN(anyValue(depth-1), 0, 4), func(l []any) any { return l }),
	)
}

// anyObject generates objects.
func anyObject(depth int) *rapid.Generator[map[string]any] {
	return rapid.MapOfN(anyName(), anyValue(depth), 0, 5)
}
