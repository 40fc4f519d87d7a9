package engine

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// drawJSON draws a value that both JSON and JavaScript can represent.
func drawJSON(t *rapid.T, depth int) any {
	kinds := 5
	if depth > 0 {
		kinds = 7
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		return nil
	case 1:
		return rapid.Bool().Draw(t, "flag")
	case 2:
		return float64(rapid.IntRange(-3, 3).Draw(t, "number")) / 2
	case 3, 4:
		return rapid.SampledFrom([]string{"", "a", "b", "\u2028", "<&>", "é\"\\"}).Draw(t, "text")
	case 5:
		list := []any{}
		for range rapid.IntRange(0, 3).Draw(t, "items") {
			list = append(list, drawJSON(t, depth-1))
		}
		return list
	default:
		object := map[string]any{}
		for range rapid.IntRange(0, 3).Draw(t, "members") {
			object[rapid.SampledFrom([]string{"a", "b", "c", "a/b", "~"}).Draw(t, "key")] = drawJSON(t, depth-1)
		}
		return object
	}
}

func mustTree(t interface{ Fatal(...any) }, text []byte) *tree {
	one, err := parseTree(text)
	if err != nil {
		t.Fatal(err, string(text))
	}
	return one
}

// A merged value equals the value that the script left; unchanged parts have the same
// bytes, and changes are reported for exactly the parts that changed.
func TestMerge(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		before, after := drawJSON(t, 3), drawJSON(t, 3)
		if rapid.Bool().Draw(t, "same") {
			after = before
		}
		was, err := json.MarshalIndent(before, " ", "  ")
		if err != nil {
			t.Fatal(err)
		}
		is, err := json.Marshal(after)
		if err != nil {
			t.Fatal(err)
		}
		c := &changes{}
		merged, same := c.mergeValue("", mustTree(t, was), mustTree(t, is))
		var got any
		if err := json.Unmarshal(merged, &got); err != nil {
			t.Fatalf("%s: %v", merged, err)
		}
		equal := reflect.DeepEqual(before, after)
		switch {
		case !reflect.DeepEqual(got, after):
			t.Fatalf("merging %s with %s returned %s", was, is, merged)
		case same != equal || (len(c.list) == 0) != equal:
			t.Fatalf("merging %s with %s: unchanged is %v, the changes are %+v", was, is, same, c.list)
		case equal && !bytes.Equal(merged, was):
			t.Fatalf("%s became %s", was, merged)
		}
	})
}

// Values beyond a script's precision keep their bytes if values next to them change.
func TestMergeKeepsBytes(t *testing.T) {
	t.Parallel()
	before := `{"id": 12345678901234567890, "t": "\u0041\ud83d\ude00", "n": 1.50, "list": [{"big": 9007199254740993}, "x", "y"], "gone": 1}`
	after := `{"t":"A😀","id":12345678901234567000,"n":1.5,"list":[{"big":9007199254740992},"y"],"new":true}`
	c := &changes{}
	merged, same := c.mergeValue("", mustTree(t, []byte(before)), mustTree(t, []byte(after)))
	want := `{"id":12345678901234567890,"t":"\u0041\ud83d\ude00","n":1.50,"list":[{"big": 9007199254740993},"y"],"new":true}`
	if diff := cmp.Diff(want, string(merged)); diff != "" || same {
		t.Error(diff)
	}
	var ops []string
	for _, change := range c.list {
		ops = append(ops, change.Op+" "+change.Pointer)
	}
	if diff := cmp.Diff([]string{"remove /list/1", "remove /gone", "add /new"}, ops); diff != "" {
		t.Error(diff)
	}
}

// A value that a script and a server would read differently, or that is excessively nested,
// is refused.
func TestParseTreeErrors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"path": "/etc", "path": "/ok"}`:        `duplicate key "path"`,
		`{"a": {"b": 1, "\u0062": 2}}`:           `duplicate key "b"`,
		`{"a": 1} {}`:                            "more than one value",
		`{"a": `:                                 "unexpected EOF",
		`[1,]`:                                   "invalid character",
		``:                                       "unexpected EOF",
		strings.Repeat("[", 500):                 "levels deep",
		strings.Repeat(`{"a":`, 500) + "1":       "levels deep",
		"{\"a\": \"" + string([]byte{1}) + "\"}": "invalid character",
	} {
		if _, err := parseTree([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v", text, err)
		}
	}
	if tree := mustTree(t, []byte(`{"Path": 1}`)); tree.valueOf("path") != nil {
		t.Error("valueOf found a key that differs in case")
	}
}

// A trace keeps a limited part of the changes.
func TestChangesAreBounded(t *testing.T) {
	t.Parallel()
	c := &changes{}
	var list []int
	for i := range 500 {
		list = append(list, i)
	}
	text, err := json.Marshal(map[string]any{"list": list, "long": strings.Repeat("é", 5000)})
	if err != nil {
		t.Fatal(err)
	}
	c.mergeValue("", mustTree(t, []byte(`{"list": []}`)), mustTree(t, text))
	for _, change := range c.list {
		if len(change.After) > maxChangeBytes+20 || !json.Valid(change.After) {
			t.Errorf("the trace contains a change of %d bytes, above the limit, or invalid JSON", len(change.After))
		}
	}
	if len(c.list) != maxChanges {
		t.Errorf("%d changes", len(c.list))
	}
}
