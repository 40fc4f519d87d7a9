package session

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestMerge(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, old, update, want string }{
		{"objects member by member", `{"a":{"b":1}}`, `{"a":{"c":2}}`, `{"a":{"b":1,"c":2}}`},
		{"a list is replaced", `{"a":[1,2,3]}`, `{"a":[4]}`, `{"a":[4]}`},
		{"null is stored", `{"a":{"b":1}}`, `{"a":null}`, `{"a":null}`},
		{"null becomes an object", `{"a":null}`, `{"a":{"b":1}}`, `{"a":{"b":1}}`},
		{"an object for a string", `{"a":"x"}`, `{"a":{"b":1}}`, `{"a":{"b":1}}`},
		{"an empty object changes nothing", `{"a":{"b":1}}`, `{"a":{}}`, `{"a":{"b":1}}`},
		{"false and zero are values", `{"a":true,"b":1}`, `{"a":false,"b":0}`, `{"a":false,"b":0}`},
		{"numbers keep their digits", `{}`, `{"a":1.50,"b":12345678901234567890}`, `{"a":1.50,"b":12345678901234567890}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := mergeValues(decodeObject(t, tt.old), decodeObject(t, tt.update))
			if diff := cmp.Diff(decodeJSON(t, tt.want), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// orderedObject generates objects in which a name always has the same kind of value.
func orderedObject(depth int) *rapid.Generator[map[string]any] {
	return rapid.Custom(func(t *rapid.T) map[string]any {
		object := map[string]any{}
		for _, name := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), rapid.ID[string]).Draw(t, "names") {
			if name == "c" && depth > 0 {
				object[name] = orderedObject(depth-1).Draw(t, "object")
			} else if name != "c" {
				object[name] = anyScalar().Draw(t, "value")
			}
		}
		return object
	})
}

// TestMergeIsAssociativeIfKindsAgree checks that merging several updates together equals
// merging them one after the other, if each name has the same kind of value in all of them.
func TestMergeIsAssociativeIfKindsAgree(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := orderedObject(3).Draw(t, "a"), orderedObject(3).Draw(t, "b"), orderedObject(3).Draw(t, "c")
		left, right := mergeValues(mergeValues(a, b), c), mergeValues(a, mergeValues(b, c))
		if diff := cmp.Diff(left, right); diff != "" {
			t.Error(diff)
		}
	})
}

func TestMergeLosesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		old, update := anyObject(3).Draw(t, "old"), anyObject(3).Draw(t, "update")
		before := cloneFor(t, old)
		merged := mergeValues(old, update).(map[string]any)
		checkMerged(t, merged, old, update)
		if diff := cmp.Diff(before, old); diff != "" {
			t.Errorf("the old document was changed:\n%s", diff)
		}
		if diff := cmp.Diff(merged, mergeValues(merged, update)); diff != "" {
			t.Errorf("a second merge changes the result:\n%s", diff)
		}
	})
}

// checkMerged checks a merged object member by member against the rules, without the code
// under test.
func checkMerged(t *rapid.T, merged, old, update map[string]any) {
	for name, value := range update {
		newObject, isObject := value.(map[string]any)
		oldObject, wasObject := old[name].(map[string]any)
		if isObject && wasObject {
			checkMerged(t, merged[name].(map[string]any), oldObject, newObject)
		} else if !cmp.Equal(merged[name], value) {
			t.Errorf("%q is %v, not %v", name, merged[name], value)
		}
	}
	for name, value := range old {
		if _, updated := update[name]; !updated && !cmp.Equal(merged[name], value) {
			t.Errorf("%q was %v and is %v", name, value, merged[name])
		}
	}
	if most := len(old) + len(update); len(merged) > most {
		t.Errorf("got %d members from %d", len(merged), most)
	}
}

func cloneFor(t *rapid.T, value map[string]any) map[string]any {
	copied, err := cloneObject(value)
	if err != nil {
		t.Fatal(err)
	}
	return copied
}
