package doc_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/guideway-dev/guideway/internal/workflow/doc"
)

// parseDocument parses a text that must be valid.
func parseDocument(t *testing.T, file, text string) *doc.Node {
	t.Helper()
	root, found := doc.Parse(file, []byte(text), doc.Limits{})
	if len(found) > 0 {
		t.Fatalf("%s: %v", text, found)
	}
	return root
}

func TestJSONValues(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`null`, `true`, `false`, `0`, `-0`, `1`, `-1.5e+3`, `1E-2`, `""`, `"plain"`, `[]`, `{}`, ` [ ] `, "\t{\r\n}\n",
		`"\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00ü"`, `{"a":{"b":[1,[2,{"c":null}]]},"":true}`, `[1,2 , 3]`, `"\u2028"`, `1e308`, `123456789012345678901234567890`,
	} {
		var want any
		if err := json.Unmarshal([]byte(text), &want); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, parseDocument(t, "x.json", text).Any()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

func TestJSONRefusals(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{`, `[`, `"`, `"\`, `"\u12`, `"\u12G4"`, `"\x"`, "\"a\nb\"", "\"a\tb\"", "\"\x01\"", `01`, `1.`, `.5`, `+1`, `1e`, `1e+`, `-`, `--1`, `0x1`, `1_000`,
		`tru`, `truex`, `nul`, `NaN`, `Infinity`, `undefined`, `None`, `'a'`, "`a`", `“a”`, `{a:1}`, `{"a"}`, `{"a" 1}`, `{"a"=1}`, `{"a":}`, `{"a":1,}`, `[1,]`, `[,1]`, `[1 2]`, `{"a":1 "b":2}`,
		`[1}`, `{"a":1]`, `1 2`, `{} {}`, `{}}`, `// c`, `{/* c */}`, `{"a":1 # c
}`, `[1,,2]`, `{,}`, `{1:2}`, `{"a":1,"a":2}`, `"\ud800"`, `"\udc00\ud800"`, `"\u0000"`, `1e999`,
	} {
		_, found := doc.Parse("x.json", []byte(text), doc.Limits{})
		if len(found) == 0 {
			t.Errorf("%s has no diagnostics", text)
		}
		for _, f := range found {
			if f.Line < 1 || f.Column < 1 || f.Message == "" || f.Fix == "" {
				t.Errorf("%s: incomplete diagnostic %+v", text, f)
			}
		}
	}
}

func TestPositions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ file, text string }{
		{"x.json", "\n {\"é\": 1,\n  \"b\": [\n   \"ü\", {\"c\": true}]}"},
		{"x.yaml", "\n é: 1\n b:\n   - ü\n   - c: true\n"},
	} {
		root := parseDocument(t, c.file, c.text)
		lines := strings.Split(c.text, "\n")
		var visit func(n *doc.Node)
		visit = func(n *doc.Node) {
			if n.Kind != doc.Object && n.Kind != doc.Array {
				written := n.Text
				if n.Kind == doc.Bool {
					written = "true"
				}
				rest := strings.TrimPrefix(lines[n.Line-1][n.Column-1:], `"`)
				if !strings.HasPrefix(rest, written) {
					t.Errorf("%s: %q is not at %d:%d", c.file, written, n.Line, n.Column)
				}
			}
			for _, item := range n.Items {
				visit(item)
			}
			for _, m := range n.Members {
				if !strings.HasPrefix(strings.TrimPrefix(lines[m.Line-1][m.Column-1:], `"`), m.Key) {
					t.Errorf("%s: the key %q is not at %d:%d", c.file, m.Key, m.Line, m.Column)
				}
				visit(m.Value)
			}
		}
		visit(root)
	}
}

func TestColumnsCountBytes(t *testing.T) {
	t.Parallel()
	for file, text := range map[string]string{"x.yaml": "{ü: ö, b: x}\n", "x.json": `{"ü":"ö","b":1}`} {
		root := parseDocument(t, file, text)
		m := root.Members[1]
		if text[m.Column-1] != 'b' && text[m.Column] != 'b' {
			t.Errorf("%s: b is not at column %d", file, m.Column)
		}
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, file, text, code string }{
		{"empty", "x.json", "", "file-empty"},
		{"blank", "x.yaml", " \n\t\n", "file-empty"},
		{"mark alone", "x.json", "\xef\xbb\xbf", "file-empty"},
		{"NUL", "x.json", "{\"a\":\x001}", "text-nul"},
		{"latin-1", "x.yaml", "a: caf\xe9", "file-encoding"},
		{"UTF-16", "x.json", "\xff\xfe{\x00", "file-encoding"},
		{"cut off", "x.json", "\"\xe2\x82", "file-encoding"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			root, found := doc.Parse(c.file, []byte(c.text), doc.Limits{})
			if root != nil || len(found) != 1 || found[0].Code != c.code {
				t.Errorf("got %v, %v", root, found)
			}
		})
	}
	root := parseDocument(t, "x.json", "\xef\xbb\xbf{\"a\":1}")
	if root.Column != 1 || root.Get("a").Num != 1 {
		t.Errorf("a byte order mark is not skipped: %+v", root)
	}
}

func TestFormatByContent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ file, text string }{
		{"", ` {"a": 1}`}, {"", "a: 1"}, {"x.YML", "a: 1"}, {"x.JSON", `{"a":1}`}, {"definition", "# c\na: 1"},
	} {
		if got := parseDocument(t, c.file, c.text).Get("a").Num; got != 1 {
			t.Errorf("%s: %s: a is %v", c.file, c.text, got)
		}
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, file, text, code string
		limits                 doc.Limits
	}{
		{"bytes", "x.json", strings.Repeat(" ", doc.DefaultMaxBytes) + "1", "file-too-large", doc.Limits{}},
		{"depth in JSON", "x.json", strings.Repeat("[", 65) + strings.Repeat("]", 65), "depth-limit", doc.Limits{}},
		{"depth of objects", "x.json", strings.Repeat(`{"a":`, 65) + "1" + strings.Repeat("}", 65), "depth-limit", doc.Limits{}},
		{"depth in YAML", "x.yaml", strings.Repeat("[", 65) + strings.Repeat("]", 65), "depth-limit", doc.Limits{}},
		{"nested much too deep", "x.yaml", strings.Repeat("[", 200_000), "yaml-syntax", doc.Limits{}},
		{"too many nodes in JSON", "x.json", "[1,2,3]", "node-limit", doc.Limits{MaxNodes: 3}},
		{"too many nodes in YAML", "x.yaml", "[1,2,3]", "node-limit", doc.Limits{MaxNodes: 3}},
		{"texts repeated by aliases", "x.yaml", "a: &a " + strings.Repeat("x", 40_000) + "\nb: [" + strings.Repeat("*a,", 100) + "]\n", "node-limit", doc.Limits{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, found := doc.Parse(c.file, []byte(c.text), c.limits)
			if len(found) != 1 || found[0].Code != c.code {
				t.Errorf("got %v", found)
			}
		})
	}
	root, found := doc.Parse("x.json", []byte(strings.Repeat("[", 64)+strings.Repeat("]", 64)), doc.Limits{})
	if root == nil || len(found) > 0 {
		t.Errorf("64 levels are rejected: %v", found)
	}
}

func TestDuplicateKeys(t *testing.T) {
	t.Parallel()
	many := make([]string, 40)
	for i := range many {
		many[i] = fmt.Sprintf(`"k%d":1`, i)
	}
	for _, c := range []struct {
		file, text string
		want       int
	}{
		{"x.json", `{"a":1,"a":2,"a":3,"b":{"c":1,"c":2}}`, 3},
		{"x.yaml", "a: 1\na: 2\nb: {c: 1, c: 2}", 2},
		{"x.json", "{" + strings.Join(many, ",") + "}", 0},
		{"x.json", "{" + strings.Join(many, ",") + `,"k0":1,"k39":2,"k0":3}`, 3},
	} {
		root, found := doc.Parse(c.file, []byte(c.text), doc.Limits{})
		if len(found) != c.want || root == nil {
			t.Errorf("%s: %v", c.text, found)
		}
		for _, f := range found {
			if f.Code != doc.CodeDuplicateKey || f.Line < 1 || f.Pointer == "" {
				t.Errorf("%s: %+v", c.text, f)
			}
		}
	}
}

func TestYAMLValues(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{"a: yes\nb: no\nc: on", `{"a":"yes","b":"no","c":"on"}`},
		{"[true, False, null, ~, '']", `[true,false,null,null,""]`},
		{"[1, 0x10, 0o17, 1_000, -3, 1e3, .5, +1]", `[1,16,15,1000,-3,1000,0.5,1]`},
		{"[2026-01-02, 2026-01-02T03:04:05Z, 1.0.0, 12:30]", `["2026-01-02","2026-01-02T03:04:05Z","1.0.0","12:30"]`},
		{"a: |\n  x\n  y\nb: >\n  x\n  y\n", `{"a":"x\ny\n","b":"x y\n"}`},
		{"1: a\ntrue: b\n2026-01-02: c", `{"1":"a","true":"b","2026-01-02":"c"}`},
		{"a: &x {k: 1}\nb: *x\nc: [*x, *x]", `{"a":{"k":1},"b":{"k":1},"c":[{"k":1},{"k":1}]}`},
		{"a: !!str 1\nb: !!int \"2\"", `{"a":"1","b":2}`},
		{"# c\n---\na: 1\n...\n", `{"a":1}`},
	} {
		var want any
		if err := json.Unmarshal([]byte(c.want), &want); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, parseDocument(t, "x.yaml", c.text).Any()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.text, diff)
		}
	}
}

func TestYAMLRefusals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, code string }{
		{"a: [", "yaml-syntax"},
		{"a: *b", "yaml-syntax"},
		{"a: b: c", "yaml-syntax"},
		{"\ta: 1", "yaml-syntax"},
		{"%TAG", "yaml-syntax"},
		{"# only", "file-empty"},
		{"a: 1\n---\nb: 2", "yaml-documents"},
		{"a: 1\n---\n[", "yaml-syntax"},
		{"a: &a [*a]", "yaml-alias"},
		{"a: &a {b: {c: *a}}", "yaml-alias"},
		{"<<: {a: 1}", "yaml-merge"},
		{"a: .nan", "number-range"},
		{"a: -.inf", "number-range"},
		{"a: !!float .inf", "number-range"},
		{"a: !!binary aGk=", "yaml-tag"},
		{"a: !x 1", "yaml-tag"},
		{"!!set {a}", "yaml-tag"},
		{"!!omap [a: 1]", "yaml-tag"},
		{"{[a]: 1}", "yaml-key"},
		{"{{a: 1}: 1}", "yaml-key"},
		{"? \n: x", "yaml-key"},
		{`a: "\0"`, "text-nul"},
		{"a: !!int x", "yaml-number"},
	} {
		_, found := doc.Parse("x.yaml", []byte(c.text), doc.Limits{})
		if len(found) == 0 || found[0].Code != c.code {
			t.Errorf("%q: %v", c.text, found)
		}
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	root := parseDocument(t, "x.json", `{"a":[{"b/c":{"~":7}}]}`)
	for pointer, want := range map[string]string{
		"/a/0/b~1c/~0": `7`, "/a/0": `{"b/c":{"~":7}}`, "": `{"a":[{"b/c":{"~":7}}]}`, "/a/9/x": `[{"b/c":{"~":7}}]`, "/a/-1": `[{"b/c":{"~":7}}]`,
	} {
		if got := string(doc.Canonical(root.Find(pointer))); got != want {
			t.Errorf("%s: got %s, want %s", pointer, got, want)
		}
	}
	var none *doc.Node
	if none.Find("/a") != nil || none.Get("a") != nil || none.Any() != nil {
		t.Error("Find below nil returned a node")
	}
	if got := doc.Pointer("").Key("a/b~").Index(2); got != "/a~1b~0/2" {
		t.Errorf("got %s", got)
	}
}
