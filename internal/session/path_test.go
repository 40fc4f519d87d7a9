package session

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/guideway-dev/guideway"
)

var comparePaths = cmp.AllowUnexported(pathPart{})

const investigation = `{
	"dashboard": {"title": "Login", "progress": 25, "a.b": "dotted"},
	"hypotheses": [
		{"id": "h1", "status": "active", "score": 7, "meta": {"kind": "race"}, "evidence": ["e1", "e2"]},
		{"id": "h2", "status": "confirmed", "score": 7.0, "sure": true},
		{"id": "h3", "status": "active", "score": null}
	],
	"phases": {"phase-2": {"summary": "two"}, "phase-1": {"summary": "one"}},
	"empty": [],
	"nothing": null,
	"read.me": "literal",
	"$ref": "dollar",
	"read": {"me": "nested"}
}`

func TestReadPaths(t *testing.T) {
	t.Parallel()
	tests := []struct{ path, want string }{
		{"dashboard.progress", `25`},
		{"dashboard['a.b']", `"dotted"`},
		{`dashboard["a.b"]`, `"dotted"`},
		{"['dashboard'].title", `"Login"`},
		{"read.me", `"literal"`},
		{"read['me']", `"nested"`},
		{"$ref", `"dollar"`},
		{"['$ref']", `"dollar"`},
		{"phases.phase-1.summary", `"one"`},
		{"hypotheses[0].status", `"active"`},
		{"hypotheses.1.id", `"h2"`},
		{"hypotheses[-1].id", `"h3"`},
		{"hypotheses[0].evidence[1]", `"e2"`},
		{"hypotheses[?status=='confirmed']", `[{"id":"h2","score":7.0,"status":"confirmed","sure":true}]`},
		{"hypotheses[?status=='active'].id", `["h1","h3"]`},
		{"hypotheses[?status=='active'][1].id", `"h3"`},
		{`hypotheses[?status=="active"].id`, `["h1","h3"]`},
		{"hypotheses[?status == active].id", `["h1","h3"]`},
		{"hypotheses[?score==7].id", `["h1","h2"]`},
		{"hypotheses[?score==null].id", `["h3"]`},
		{"hypotheses[?sure==true].id", `["h2"]`},
		{"hypotheses[?meta.kind=='race'].id", `["h1"]`},
		{"hypotheses[?status=='none']", `[]`},
		{"hypotheses[?status=='none'].id", `[]`},
		{"hypotheses[*].id", `["h1","h2","h3"]`},
		{"phases[*].summary", `["one","two"]`},
		{"empty[*].id", `[]`},
		{"nothing", `null`},
		{"$.dashboard.progress", `25`},
		{"$.hypotheses[?@.status=='active'].id", `["h1","h3"]`},
		{"$.hypotheses[?@.score>=7].id", `["h1","h2"]`},
		{"$..summary", `["one","two"]`},
		{"$.hypotheses[2,0].id", `["h3","h1"]`},
		{"$.phases.*.summary", `["one","two"]`},
		{"$.hypotheses[?count(@.evidence[*])==2].id", `["h1"]`},
		{"$.hypotheses[?@.score==$.hypotheses[0].score].id", `["h1","h2"]`},
		{"$['read.me']", `"literal"`},
		{"$.hypotheses[?search(@.meta.kind,'ra')].id", `["h1"]`},
		{"$.hypotheses[?match(@.id,'h[12]')].id", `["h1","h2"]`},
		{"$.hypotheses[?length(@.evidence)==2].id", `["h1"]`},
		{"$.nowhere[*]", `[]`},
	}
	for _, tt := range tests {
		t.Run(tt.path, func(t *testing.T) {
			t.Parallel()
			got, found, err := queryDocument(decodeObject(t, investigation), tt.path)
			if err != nil || !found {
				t.Fatalf("found %v, %v", found, err)
			}
			if diff := cmp.Diff(tt.want, encodeJSON(t, got)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestMissingValuesAreNotFound(t *testing.T) {
	t.Parallel()
	for _, path := range []string{
		"nowhere", "dashboard.nowhere", "dashboard.title.deeper", "hypotheses[3]", "hypotheses[-4]", "hypotheses.nowhere",
		"dashboard[0]", "nowhere[?a=='b']", "dashboard[?a=='b']", "hypotheses[*].nowhere", "nothing.deeper", "$.nowhere", "$.hypotheses[9]",
		"constructor", "__proto__.x",
	} {
		if got, found, err := queryDocument(decodeObject(t, investigation), path); found || err != nil {
			t.Errorf("%s: got %v, %v, %v", path, got, found, err)
		}
	}
}

func TestBadPathsExplainTheForm(t *testing.T) {
	t.Parallel()
	for _, path := range []string{
		".", "a.", ".a", "a..b", "a[", "a[]", "a[x]", "a[1", "a['b", "a['b'", "a]b", "a[0]b", "a[--1]", "a[99999999999999999999]",
		"a[?b]", "a[?b==]", "a[?=='x']", "a[?b[0]=='x']", "a[?(@.b=='x')]", "a [0].b", "$.", "$[", "$x", "$.a[?@.b=]", strings.Repeat("a.", 600) + "a",
		strings.Repeat("a.", 64) + "a", "$" + strings.Repeat(".a", 600), "a\x00",
	} {
		_, _, err := queryDocument(decodeObject(t, investigation), path)
		if guideway.ErrorCode(err) != guideway.CodeInvalid || guideway.ErrorFix(err) == "" {
			t.Errorf("%q: %v, fix %q", path, err, guideway.ErrorFix(err))
		}
	}
}

func TestErrorsOfPathsNameThePosition(t *testing.T) {
	t.Parallel()
	_, err := parsePath("a[?b==]")
	if err == nil || err.Error() != `the path "a[?b==]" does not parse at character 7: a filter needs a value` {
		t.Error(err)
	}
}

// TestQueriesThatMultiplyAreRefused checks that queries whose cost multiplies are refused
// with a fix, and that similar cheap queries are accepted.
func TestQueriesThatMultiplyAreRefused(t *testing.T) {
	t.Parallel()
	chain := any(map[string]any{})
	for range MaxDepth - 1 {
		chain = []any{chain}
	}
	wide := make([]any, 3000)
	for i := range wide {
		wide[i] = map[string]any{"v": formatNumber(float64(i))}
	}
	texts := make([]any, 20_000)
	for i := range texts {
		texts[i] = "text"
	}
	data := map[string]any{"chain": chain, "wide": wide, "texts": texts}
	for _, query := range []string{
		"$" + strings.Repeat("..*", 30),
		"$.chain" + strings.Repeat("..[*,*]", 10),
		"$.wide" + strings.Repeat("[*,*]", 20),
		"$.wide[" + strings.Repeat("0,", 200) + "0][" + strings.Repeat("'v',", 200) + "'v']",
		"$.wide[" + strings.Repeat("?@.x,", 190) + "?@.y].." + "*[?@.z]",
		"$.wide[?count($.wide[*])>1]",
		"$.wide[?@.v==$..v]",
		"$.wide[?$[*]]",
		"$.wide[?$.wide[0:2]]",
		"$.wide[?@[?@.v]]",
		"$.wide[?$['wide'][0,1]]",
		"$.wide[?$ . wide [?@.v]]",
		"$.wide[?@" + strings.Repeat("[*,*]", 30) + "]",
		"$.wide[?@[?@.a,?@.b]]",
		"$.chain[?@" + strings.Repeat("..*", 10) + "]",
		"$.texts[?search(@,'(a{50}){20}')]",
	} {
		_, _, err := queryJSONPath(data, query)
		if code := guideway.ErrorCode(err); code != guideway.CodeTooLarge && code != guideway.CodeInvalid || guideway.ErrorFix(err) == "" {
			t.Errorf("%.60s: %v", query, err)
		}
	}
	for _, query := range []string{
		"$..v", "$.wide[?@.v>10].v", "$.wide[?search(@.v,'x')]", "$.wide[?@['v']==$.wide[1]['v']]", "$.wide[?@.v==$.wide[-1].v && @.v!=$['a,b']]",
		"$.wide[?@.v=='$..*']", "$.wide[?@.*]", "$.wide[?@[0:2]]", "$.wide[?length(@.v)==2]", "$.wide[?@..v]", `$.wide[?@["]"]==$["[,"].x]`,
		"$.wide[?(@.v==1)||(@.v==2)]", "$[?search(@.a, 'x,y')]",
	} {
		if _, _, err := queryJSONPath(data, query); err != nil {
			t.Errorf("%s: %v", query, err)
		}
	}
}

// TestQueriesThatRepeatValuesAreRefused checks that the size of an answer is limited,
// because a query may select a value many times and every copy is encoded.
func TestQueriesThatRepeatValuesAreRefused(t *testing.T) {
	t.Parallel()
	// A list of two items has seven bytes more than its texts: brackets, quotes and a comma.
	first, second := strings.Repeat("x", MaxBytes/2-4), strings.Repeat("x", MaxBytes/2-3)
	data := map[string]any{"a": []any{[]any{strings.Repeat("x", 5000)}}, "exact": []any{first, second}, "over": []any{second, second}}
	zeros := strings.Repeat("0,", 99) + "0"
	for _, query := range []string{"$.a[" + zeros + "][" + zeros + "]", "$.over[*]", "$.exact[0,1,0]", "$..*"} {
		_, _, err := queryJSONPath(data, query)
		wantError(t, err, guideway.CodeTooLarge, strconv.Itoa(MaxBytes), "bytes")
	}
	for _, query := range []string{"$.exact[*]", "$.exact[1,0]", "$.over[0:1]", "$"} {
		if _, _, err := queryJSONPath(data, query); err != nil {
			t.Errorf("%s: %v", query, err)
		}
	}
	if got, _, _ := queryJSONPath(data, "$.exact[*]"); len(encodeJSON(t, got)) != MaxBytes {
		t.Errorf("the answer has %d bytes", len(encodeJSON(t, got)))
	}
}

func TestJSONPathAnswersAreInOrder(t *testing.T) {
	t.Parallel()
	data := map[string]any{}
	for _, name := range strings.Split("q w e r t z u i o p a s d f g h j k l y x c v b n m", " ") {
		data[name] = name
	}
	want := `["a","b","c","d","e","f","g","h","i","j","k","l","m","n","o","p","q","r","s","t","u","v","w","x","y","z"]`
	for _, query := range []string{"$.*", "$..*", "$[?@!='1']"} {
		got, _, err := queryJSONPath(data, query)
		if err != nil || encodeJSON(t, got) != want {
			t.Errorf("%s: %s, %v", query, encodeJSON(t, got), err)
		}
	}
}

// anyPath generates paths to a single value.
func anyPath() *rapid.Generator[docPath] {
	part := rapid.OneOf(
		rapid.Map(anyName(), func(name string) pathPart { return pathPart{name: name} }),
		rapid.Map(rapid.IntRange(-3, 3), func(i int) pathPart { return pathPart{kind: partIndex, index: i} }),
	)
	return rapid.Map(rapid.SliceOfN(part, 1, 6), func(parts []pathPart) docPath { return parts })
}

func TestPathsParseToThemselves(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		path := anyPath().Draw(t, "path")
		switch rapid.IntRange(0, 3).Draw(t, "end") {
		case 0:
			path = append(path, pathPart{kind: partEach})
		case 1:
			names := rapid.SliceOfN(anyName(), 1, 3).Draw(t, "field")
			var field docPath
			for _, name := range names {
				// The field ends at the first ==, even in quotes, so it must not contain =.
				field = append(field, pathPart{name: "a" + strings.ReplaceAll(name, "=", "")})
			}
			path = append(path, pathPart{kind: partFilter, field: field, value: rapid.String().Draw(t, "value")})
		}
		text := path.String()
		if len(text) > maxPathBytes {
			t.Skip("too long")
		}
		got, err := parsePath(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if diff := cmp.Diff(path, got, comparePaths); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	})
}

func FuzzPath(f *testing.F) {
	for _, seed := range []string{
		"dashboard.progress", "hypotheses[0].status", "hypotheses[?status=='active'].id", "a['b.c'][-1]", "a[*]", `a["\""]`, "a[?b.c==\"d\"]",
		"a[?b==c d]", "[0]", "['']", "a..b", "a[?'x y'=='z']",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		path, err := parsePath(text)
		if err != nil {
			if guideway.ErrorCode(err) != guideway.CodeInvalid || guideway.ErrorFix(err) == "" {
				t.Errorf("%v", err)
			}
			return
		}
		again, err := parsePath(path.String())
		if len(path.String()) <= maxPathBytes {
			if err != nil {
				t.Fatalf("%q became %q: %v", text, path.String(), err)
			}
			if diff := cmp.Diff(path, again, comparePaths); diff != "" {
				t.Errorf("%q became %q:\n%s", text, path.String(), diff)
			}
		}
		data := decodeObject(t, investigation)
		before := encodeJSON(t, data)
		_, _ = path.findValue(data)
		_, _ = applyUpdates(data, map[string]any{text: "x"})
		if encodeJSON(t, data) != before {
			t.Errorf("the document was changed by %q", text)
		}
	})
}

func FuzzJSONPath(f *testing.F) {
	for _, seed := range []string{
		"$", "$.a", "$..*", "$[?@.a==1]", "$['a'][0,1:2]", "$[?count(@.*)>1]", "$.hypotheses[?@.status=='active'].id", "$[?match(@.id,'h.')]",
		"$[?value(@..id)==$.a]", "$[?!(@.a)&&@.b||$['x']]", "$[?length(@)>$.a[-1]]", `$["\u0061"]`, "$[?@.a==@.b]", "$[?search(@.a,@.b)]",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, query string) {
		if !strings.HasPrefix(query, "$") {
			query = "$" + query
		}
		data := decodeObject(t, investigation)
		before := encodeJSON(t, data)
		value, found, err := queryJSONPath(data, query)
		switch code := guideway.ErrorCode(err); {
		case err == nil && !found && value != nil:
			t.Errorf("%q: found is false, but the value is %v", query, value)
		case err != nil && code != guideway.CodeInvalid && code != guideway.CodeTooLarge:
			t.Errorf("%q: %v", query, err)
		}
		if again, _, _ := queryJSONPath(data, query); err == nil && encodeJSON(t, value) != encodeJSON(t, again) {
			t.Errorf("%q returns two different values", query)
		}
		if encodeJSON(t, data) != before {
			t.Errorf("%q changed the document", query)
		}
	})
}
