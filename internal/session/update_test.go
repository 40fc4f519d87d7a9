package session

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/guideway-dev/guideway"
)

func TestUpdates(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, data, updates, want string }{
		{"names merge", `{"a":{"b":1}}`, `{"a":{"c":2},"d":3}`, `{"a":{"b":1,"c":2},"d":3}`},
		{"a path", `{"dashboard":{"title":"x"}}`, `{"dashboard.progress":25}`, `{"dashboard":{"progress":25,"title":"x"}}`},
		{"a path creates objects", `{}`, `{"phases.phase-1.summary":"s"}`, `{"phases":{"phase-1":{"summary":"s"}}}`},
		{"a path through null", `{"a":null}`, `{"a.b":1}`, `{"a":{"b":1}}`},
		{"an object at a path merges", `{"p":{"q":{"r":1}}}`, `{"p.q":{"s":2}}`, `{"p":{"q":{"r":1,"s":2}}}`},
		{"an index", `{"h":[{"id":1,"s":"a"},{"id":2}]}`, `{"h[0].s":"b"}`, `{"h":[{"id":1,"s":"b"},{"id":2}]}`},
		{"an index with a dot", `{"h":[{"s":"a"}]}`, `{"h.0.s":"b"}`, `{"h":[{"s":"b"}]}`},
		{"a negative index", `{"h":[1,2]}`, `{"h[-1]":3}`, `{"h":[1,3]}`},
		{"the next index appends", `{"h":[1]}`, `{"h[1]":2}`, `{"h":[1,2]}`},
		{"several append in order", `{"h":[]}`, `{"h[10]":10,"h[2]":2,"h[0]":0,"h[1]":1,"h[9]":9,"h[3]":3,"h[8]":8,"h[4]":4,"h[7]":7,"h[5]":5,"h[6]":6}`, `{"h":[0,1,2,3,4,5,6,7,8,9,10]}`},
		{"an index creates a list", `{}`, `{"a.h[0].s":1}`, `{"a":{"h":[{"s":1}]}}`},
		{"names before paths", `{}`, `{"a.b":1,"a":{"b":0,"c":2}}`, `{"a":{"b":1,"c":2}}`},
		{"short paths before long ones", `{}`, `{"a.b.c":1,"a.b":{"c":0,"d":2}}`, `{"a":{"b":{"c":1,"d":2}}}`},
		{"an existing name with a dot", `{"a.b":1,"a":{"b":1}}`, `{"a.b":2}`, `{"a.b":2,"a":{"b":1}}`},
		{"a name in quotes", `{}`, `{"['a.b'].c":1}`, `{"a.b":{"c":1}}`},
		{"names within values are not paths", `{"a":{"b":1}}`, `{"x":{"a.b":2,"c[0]":3}}`, `{"a":{"b":1},"x":{"a.b":2,"c[0]":3}}`},
		{"a sentence is a name", `{}`, `{"e.g. this":1,"wait...":2,"end.":3,".env":4}`, `{"e.g. this":1,"wait...":2,"end.":3,".env":4}`},
		{"a prefix as in JSONPath", `{"h":[{}]}`, `{"$.a.b":1,"$['c']":2,"$.h[0].s":3}`, `{"a":{"b":1},"c":2,"h":[{"s":3}]}`},
		{"$schema is a name", `{}`, `{"$schema":"x"}`, `{"$schema":"x"}`},
		{"null is stored at a path", `{"a":{"b":1}}`, `{"a.b":null}`, `{"a":{"b":null}}`},
		{"no updates", `{"a":1}`, `{}`, `{"a":1}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			data, updates := decodeObject(t, tt.data), decodeObject(t, tt.updates)
			got, err := applyUpdates(data, updates)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(decodeObject(t, tt.want), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(decodeObject(t, tt.data), data); diff != "" {
				t.Errorf("the document was changed:\n%s", diff)
			}
			if diff := cmp.Diff(decodeObject(t, tt.updates), updates); diff != "" {
				t.Errorf("the updates were changed:\n%s", diff)
			}
		})
	}
}

// TestPathsChangeTheCopyInPlace checks that paths change objects and lists in place. To copy
// an object for each path would take quadratic time, in a transaction that blocks other
// writers.
func TestPathsChangeTheCopyInPlace(t *testing.T) {
	t.Parallel()
	inner, list := map[string]any{"k": "old"}, append(make([]any, 0, 2), map[string]any{})
	root := map[string]any{"a": inner, "h": list}
	for key, value := range map[string]any{"a.k": "new", "a.more": map[string]any{"b": 1}, "h[0].id": 2, "h[1]": 3, "a": map[string]any{"merged": true}} {
		path, err := parsePath(key)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := putValue(root, path, 0, value); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]any{"k": "new", "more": map[string]any{"b": 1}, "merged": true}
	if diff := cmp.Diff(want, inner); diff != "" {
		t.Errorf("the object was copied (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]any{map[string]any{"id": 2}, 3}, list[:2]); diff != "" {
		t.Errorf("the list was copied (-want +got):\n%s", diff)
	}
}

func TestDestructiveUpdatesAreRefused(t *testing.T) {
	t.Parallel()
	data := `{"dashboard":{"progress":25,"title":"x","done":true},"h":[{"id":1},2]}`
	tests := []struct{ key, message string }{
		{"dashboard.progress.value", "dashboard.progress is a number, not an object"},
		{"dashboard.title.short", "dashboard.title is a string, not an object"},
		{"dashboard.done[0]", "dashboard.done is a boolean, not a list"},
		{"dashboard[0]", "dashboard is an object, not a list"},
		{"h.status", "h is a list, not an object"},
		{"h[1].status", "h[1] is a number, not an object"},
		{"h[3].id", "h has the length 2, so there is no index 3"},
		{"h[-3].id", "no index -3"},
		{"new[1]", "new has the length 0"},
		{"[0]", "the document is an object, not a list"},
		{"h[?id=='1'].status", "does not select a single value"},
		{"h[*].status", "does not select a single value"},
		{"h[0.status", "does not parse"},
		{"h[x]", "does not parse"},
	}
	for _, tt := range tests {
		t.Run(tt.key, func(t *testing.T) {
			t.Parallel()
			_, err := applyUpdates(decodeObject(t, data), map[string]any{tt.key: "v", "fine": 1})
			if guideway.ErrorCode(err) != guideway.CodeInvalid || guideway.ErrorFix(err) == "" || !strings.Contains(err.Error(), tt.message) {
				t.Errorf("got %v (fix %q), want %q", err, guideway.ErrorFix(err), tt.message)
			}
		})
	}
}

// TestUpdatedValueCanBeRead checks that a written value can be read at its path, and that no
// other top-level member changes.
func TestUpdatedValueCanBeRead(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		data := anyObject(3).Draw(t, "data")
		path := anyPath().Draw(t, "path")
		value := anyScalar().Draw(t, "value")
		key := path.String()
		before := cloneFor(t, data)
		got, err := applyUpdates(data, map[string]any{key: value})
		if diff := cmp.Diff(before, data); diff != "" {
			t.Fatalf("the document was changed:\n%s", diff)
		}
		if err != nil {
			var known *guideway.Error
			if !errors.As(err, &known) {
				t.Fatalf("an error without a code: %v", err)
			}
			return
		}
		read, found, err := queryDocument(got, key)
		if err != nil || !found || !cmp.Equal(read, value) {
			t.Fatalf("%s: read %v, %v, %v", key, read, found, err)
		}
		others := maps.Clone(before)
		delete(others, path[0].name)
		delete(others, key)
		for name, was := range others {
			if !cmp.Equal(got[name], was) {
				t.Errorf("setting %s changed %q", key, name)
			}
		}
	})
}

// TestPathsEqualNestedObjects checks that an update at a path equals an update with nested
// objects.
func TestPathsEqualNestedObjects(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		data := orderedObject(3).Draw(t, "data")
		value := anyScalar().Draw(t, "value")
		path := append(rapid.SliceOfN(rapid.Just("c"), 0, 3).Draw(t, "objects"), rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name"))
		nested := value
		for i := len(path) - 1; i >= 0; i-- {
			nested = map[string]any{path[i]: nested}
		}
		got, err := applyUpdates(data, map[string]any{strings.Join(path, "."): value})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(mergeValues(data, nested), any(got)); diff != "" {
			t.Errorf("-nested +path:\n%s", diff)
		}
	})
}
