package session

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"
)

func TestNormalize(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, data, want string }{
		{"a status by a synonym", `{"dashboard":{"status":"Completed"}}`, `{"dashboard":{"status":"complete"}}`},
		{"a status with a hyphen", `{"dashboard":{"status":"in-progress"}}`, `{"dashboard":{"status":"in_progress"}}`},
		{"stuck", `{"dashboard":{"status":"stuck"}}`, `{"dashboard":{"status":"blocked"}}`},
		{"any other status", `{"dashboard":{"status":"investigating"}}`, `{"dashboard":{"status":"in_progress"}}`},
		{"per cent", `{"dashboard":{"progress":"85%"}}`, `{"dashboard":{"progress":85}}`},
		{"a number as a string", `{"dashboard":{"progress":" 085.50 "}}`, `{"dashboard":{"progress":85.5}}`},
		{"out of", `{"dashboard":{"confidence":"7/10"}}`, `{"dashboard":{"confidence":7}}`},
		{"a value out of a different maximum", `{"dashboard":{"confidence":"3/4"}}`, `{"dashboard":{"confidence":"3/4"}}`},
		{"too much", `{"dashboard":{"progress":150,"confidence":11.5}}`, `{"dashboard":{"progress":100,"confidence":10}}`},
		{"too little", `{"dashboard":{"progress":-3,"confidence":"-1"}}`, `{"dashboard":{"progress":0,"confidence":0}}`},
		{"beyond the range of float64", `{"dashboard":{"progress":1e999}}`, `{"dashboard":{"progress":100}}`},
		{"digits stay", `{"dashboard":{"progress":85.0,"confidence":7.50}}`, `{"dashboard":{"progress":85.0,"confidence":7.50}}`},
		{
			"the rest of the dashboard stays", `{"dashboard":{"title":"T","subtitle":"S","_meta":{"order":["a"]},"ticketId":"X-1","progress":null,"status":3,"startedAt":1700000000000}}`,
			`{"dashboard":{"title":"T","subtitle":"S","_meta":{"order":["a"]},"ticketId":"X-1","progress":null,"status":3,"startedAt":1700000000000}}`,
		},
		{"words that are not a number", `{"dashboard":{"progress":"phase-1","confidence":"high"}}`, `{"dashboard":{"progress":"phase-1","confidence":"high"}}`},
		{"a dashboard that is not an object", `{"dashboard":"x","fix":1,"rootCause":[],"hypotheses":{},"ruledOut":null}`, `{"dashboard":"x","fix":1,"rootCause":[],"hypotheses":{},"ruledOut":null}`},
		{
			"the root cause's other names", `{"rootCause":{"file":"a.go","summary":"s","explanation":"e","extra":1}}`,
			`{"rootCause":{"file":"a.go","location":"a.go","summary":"s","explanation":"e","description":"e","extra":1}}`,
		},
		{
			"the fix's other names", `{"fix":{"summary":"s","actions":["a"],"caveats":"c","testing":"t"}}`,
			`{"fix":{"summary":"s","approach":"s","actions":["a"],"steps":["a"],"caveats":"c","risks":"c","testing":"t","testingStrategy":"t"}}`,
		},
		{
			"the other names of ruled-out causes", `{"ruledOut":[{"hypothesisId":"h1","item":"i","x":1},"text"]}`,
			`{"ruledOut":[{"hypothesisId":"h1","id":"h1","item":"i","title":"i","x":1},"text"]}`,
		},
		{
			"hypotheses", `{"hypotheses":[{"text":"t","status":"testing"},{"hypothesis":"h","description":"d"}]}`,
			`{"hypotheses":[{"text":"t","description":"t","status":"testing"},{"hypothesis":"h","description":"d"}]}`,
		},
		{"a usual name is not overwritten", `{"rootCause":{"location":"","file":"a.go"},"fix":{"steps":null,"actions":["a"]}}`, `{"rootCause":{"location":"","file":"a.go"},"fix":{"steps":null,"actions":["a"]}}`},
		{"everything else", `{"timeline":[{"progress":"85%"}],"status":"done"}`, `{"timeline":[{"progress":"85%"}],"status":"done"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			data := decodeObject(t, tt.data)
			got, _ := normalizeDocument(nil, data)
			if diff := cmp.Diff(decodeObject(t, tt.want), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(decodeObject(t, tt.data), data); diff != "" {
				t.Errorf("the document was changed:\n%s", diff)
			}
		})
	}
}

// TestAddedNameFollowsItsSource checks that a member that was added as a copy changes with
// its source, unless the member is written explicitly.
func TestAddedNameFollowsItsSource(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, data, updates, want string }{
		{"it follows", `{"fix":{"summary":"old"}}`, `{"fix":{"summary":"new"}}`, `{"fix":{"summary":"new","approach":"new"}}`},
		{"in a list", `{"hypotheses":[{"text":"old"}]}`, `{"hypotheses[0].text":"new"}`, `{"hypotheses":[{"text":"new","description":"new"}]}`},
		{"an explicitly written member is kept", `{"fix":{"summary":"old","approach":"mine"}}`, `{"fix":{"summary":"new"}}`, `{"fix":{"summary":"new","approach":"mine"}}`},
		{"both names are written", `{"fix":{"summary":"old"}}`, `{"fix":{"summary":"new","approach":"mine"}}`, `{"fix":{"summary":"new","approach":"mine"}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			before, _ := normalizeDocument(nil, decodeObject(t, tt.data))
			after, err := applyUpdates(before, decodeObject(t, tt.updates))
			if err != nil {
				t.Fatal(err)
			}
			got, _ := normalizeDocument(before, after)
			if diff := cmp.Diff(decodeObject(t, tt.want), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// anyInvestigation generates documents with the names that are normalized.
func anyInvestigation() *rapid.Generator[map[string]any] {
	value := rapid.OneOf(anyScalar(), rapid.Map(rapid.SampledFrom([]string{"85%", "done", "Stuck", "7/10", "150", "-1", "", "x"}), func(s string) any { return s }))
	section := func(names ...string) *rapid.Generator[any] {
		object := rapid.Map(rapid.MapOfN(rapid.SampledFrom(append(names, "other")), value, 0, 6), func(o map[string]any) any { return o })
		return rapid.OneOf(object, object, object, value)
	}
	list := func(names ...string) *rapid.Generator[any] {
		return rapid.OneOf(value, rapid.Map(rapid.SliceOfN(section(names...), 0, 3), func(l []any) any { return l }))
	}
	return rapid.Custom(func(t *rapid.T) map[string]any {
		data := anyObject(1).Draw(t, "rest")
		for _, part := range []struct {
			name    string
			content *rapid.Generator[any]
		}{
			{"dashboard", section("status", "progress", "confidence", "title", "startedAt")},
			{"rootCause", section("location", "file", "path", "description", "summary")},
			{"fix", section("approach", "description", "summary", "steps", "actions")},
			{"ruledOut", list("id", "hypothesisId", "title", "item")},
			{"hypotheses", list("id", "hypothesisId", "description", "text", "status")},
		} {
			if rapid.Bool().Draw(t, part.name+"?") {
				data[part.name] = part.content.Draw(t, part.name)
			}
		}
		return data
	})
}

func TestNormalizeIsIdempotentAndLosesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		before, after := anyInvestigation().Draw(t, "before"), anyInvestigation().Draw(t, "after")
		before, _ = normalizeDocument(nil, before)
		once, _ := normalizeDocument(before, after)
		twice, findings := normalizeDocument(before, once)
		if diff := cmp.Diff(once, twice); diff != "" || len(findings) > 0 {
			t.Errorf("the second normalization changed %s with remarks %v", diff, findings)
		}
		alone, _ := normalizeDocument(nil, after)
		checkKept(t, "", after, alone)
		_ = validateDocument("bug-investigation", once)
	})
}

// checkKept checks that a value contains everything in an earlier value, except for the
// three normalized members of the dashboard.
func checkKept(t *rapid.T, pointer string, was, is any) {
	switch was := was.(type) {
	case map[string]any:
		object, ok := is.(map[string]any)
		if !ok {
			t.Fatalf("%s is no longer an object", pointer)
		}
		for name, value := range was {
			kept, ok := object[name]
			if !ok {
				t.Fatalf("%s/%s is lost", pointer, name)
			}
			if pointer == "/dashboard" && slices.Contains([]string{"status", "progress", "confidence"}, name) {
				continue
			}
			checkKept(t, pointer+"/"+name, value, kept)
		}
	case []any:
		list, ok := is.([]any)
		if !ok || len(list) != len(was) {
			t.Fatalf("%s has lost items", pointer)
		}
		for i := range was {
			checkKept(t, pointer+"/*", was[i], list[i])
		}
	default:
		if !cmp.Equal(was, is) {
			t.Fatalf("%s was %v and is %v", pointer, was, is)
		}
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, workflow, data string
		want                 []string
	}{
		{"no remarks", "any", `{"dashboard":{"status":"complete","progress":1,"startedAt":"2026-01-31T12:00:00Z"},"x":1}`, nil},
		{"an empty document", "any", `{}`, nil},
		{"a dashboard that is not an object", "any", `{"dashboard":[]}`, []string{"/dashboard"}},
		{"members of the wrong kind", "any", `{"dashboard":{"status":1,"progress":"most","confidence":{},"startedAt":"yesterday","completedAt":5}}`, []string{"/dashboard/completedAt", "/dashboard/confidence", "/dashboard/progress", "/dashboard/startedAt", "/dashboard/status"}},
		{"sections of the wrong kind", "any", `{"fix":"x","rootCause":1,"ruledOut":{},"hypotheses":[1,{"status":"maybe"}]}`, []string{"/fix", "/hypotheses/0", "/hypotheses/1/status", "/rootCause", "/ruledOut"}},
		{"an investigation", "systematic-bug-investigation-with-loops", `{"dashboard":{"status":"complete"}}`, []string{"/dashboard/confidence", "/dashboard/progress", "/rootCause"}},
		{"an investigation without a dashboard", "bug-investigation", `{}`, []string{"/dashboard/confidence", "/dashboard/progress", "/dashboard/status"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, f := range newRemarks(nil, validateDocument(tt.workflow, decodeObject(t, tt.data))) {
				got = append(got, f.pointer)
				if f.message == "" {
					t.Errorf("%s has no message", f.pointer)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	if got := validateDocument("any", decodeObject(t, `{"hypotheses":[`+strings.Repeat("1,", 500)+`1]}`)); len(got) != maxRemarks {
		t.Errorf("%d findings", len(got))
	}
}

// TestSchemaAgreesWithTheValidator checks that the schema and the validator accept the same
// documents, and that both accept the examples in the schema.
func TestSchemaAgreesWithTheValidator(t *testing.T) {
	t.Parallel()
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("schema.json", parsed); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var examples struct{ Examples []map[string]any }
	if err := json.Unmarshal(Schema(), &examples); err != nil || len(examples.Examples) == 0 {
		t.Fatalf("the schema has no examples: %v", err)
	}
	rapid.Check(t, func(t *rapid.T) {
		data, _ := normalizeDocument(nil, anyInvestigation().Draw(t, "data"))
		// The schema cannot describe a time without the validation of formats.
		if dashboard, ok := data["dashboard"].(map[string]any); ok {
			delete(dashboard, "startedAt")
		}
		findings := validateDocument("any", data)
		if err := schema.Validate(data); (err == nil) != (len(findings) == 0) {
			t.Errorf("the schema says %v, the validator %v", err, findings)
		}
	})
	for _, example := range examples.Examples {
		data, err := cloneObject(example)
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(data); err != nil || len(validateDocument("bug-investigation", data)) > 0 {
			t.Errorf("an example does not match the schema: %v", err)
		}
	}
}
