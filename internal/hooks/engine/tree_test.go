package engine

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"
)

// A tree equals the result of encoding/json. A text that encoding/json rejects is rejected,
// unless it only contains a number that is too large.
func FuzzTree(f *testing.F) {
	for _, text := range []string{
		`{"a": [1, -2.5e3, "x\u0041\"\\", true, false, null], "b": {}}`, ` [ ] `, `"\ud83d"`, "\"\xff\"", `0`,
		`{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1,"j":1,"k":1,"l":1,"m":1,"n":{"m":2},"o":1}`,
		`{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1,"j":1,"k":1,"l":1,"m":1,"c":1}`,
		`{"a" : 1 , "\u0061" : 2}`, `{"a":1`, `[1 2]`, `tru`, `[[[["]]]"]]]]`, `{"":"\\"}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := parseTree(data)
		var want any
		if unread := json.Unmarshal(data, &want); unread != nil {
			if err == nil && !hasInfinity(got.toAny()) {
				t.Fatalf("parseTree accepted %q, but encoding/json returned %v", data, unread)
			}
			return
		}
		if err != nil {
			return // rejected on purpose: a duplicate key, or nested too deep
		}
		if !reflect.DeepEqual(got.toAny(), want) {
			t.Fatalf("parseTree(%q) = %#v, want %#v", data, got.toAny(), want)
		}
		if again, err := parseTree(got.raw); err != nil || !reflect.DeepEqual(again.toAny(), want) {
			t.Fatalf("the bytes of %q are %q, which decode to a different value", data, got.raw)
		}
	})
}

// hasInfinity reports whether a value has a number that is too large for encoding/json.
func hasInfinity(v any) bool {
	switch v := v.(type) {
	case float64:
		return math.IsInf(v, 0)
	case []any:
		for _, item := range v {
			if hasInfinity(item) {
				return true
			}
		}
	case map[string]any:
		for _, item := range v {
			if hasInfinity(item) {
				return true
			}
		}
	}
	return false
}

// BenchmarkTree parses a request of 1 KB.
func BenchmarkTree(b *testing.B) {
	text := []byte(`{"name":"write","arguments":{"path":"/a/b","mode":"append","n":12,"list":["a","b",{"c":true}],"content":"`)
	for len(text) < 1000 {
		text = append(text, "and some more text "...)
	}
	text = append(text, `"}}`...)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := parseTree(text); err != nil {
			b.Fatal(err)
		}
	}
}
