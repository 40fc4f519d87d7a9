package session

import (
	"bytes"
	"encoding/json"
	"testing"

	"pgregory.net/rapid"
)

// object reads an object of JSON as documents have it.
func object(t testing.TB, text string) map[string]any {
	t.Helper()
	value, ok := decode(t, text).(map[string]any)
	if !ok {
		t.Fatalf("%s is not an object", text)
	}
	return value
}

func decode(t testing.TB, text string) any {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return value
}

// encode gives the JSON of a value.
func encode(t testing.TB, value any) string {
	t.Helper()
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		t.Fatal(err)
	}
	return string(bytes.TrimSpace(text.Bytes()))
}

// names are the names in random documents: few, so that two documents meet in
// them, and some that paths have to quote.
var names = []string{"a", "b", "dashboard", "phase-1", "x y", "with.dot", "it's", `"`, "[0]", "", "ü", "0"}

// anyName is a random name.
func anyName() *rapid.Generator[string] {
	return rapid.OneOf(rapid.SampledFrom(names), rapid.String())
}

// anyScalar is a random value without members.
func anyScalar() *rapid.Generator[any] {
	return rapid.OneOf(
		rapid.Just[any](nil),
		rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		rapid.Map(rapid.Int32(), func(i int32) any { return number(float64(i)) }),
		rapid.Map(rapid.StringN(0, 8, -1), func(s string) any { return s }),
	)
}

// anyValue is a random value of a depth at most.
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

// anyObject is a random object.
func anyObject(depth int) *rapid.Generator[map[string]any] {
	return rapid.MapOfN(anyName(), anyValue(depth), 0, 5)
}
