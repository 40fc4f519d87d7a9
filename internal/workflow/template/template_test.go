package template_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/guideway-dev/guideway/internal/workflow/template"
)

func TestRender(t *testing.T) {
	t.Parallel()
	var vars map[string]any
	const given = `{"name":"Ada","n":3,"half":0.5,"big":1e20,"huge":1e300,"yes":true,"none":null,"braces":"{{name}}",
		"items":["a",{"id":"h1","tags":["x","y"]}],"o":{"k":"<v>","1":"one"},"text":"zwölf"}`
	if err := json.Unmarshal([]byte(given), &vars); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, text, want string }{
		{"no placeholder", "plain { } text", "plain { } text"},
		{"string", "Hello {{name}}!", "Hello Ada!"},
		{"spaces", "{{ name }}{{\tn\n}}", "Ada3"},
		{"numbers", "{{n}} {{half}} {{big}} {{huge}}", "3 0.5 100000000000000000000 1e+300"},
		{"others", "{{yes}} {{none}}", "true null"},
		{"list and object", "{{items}} {{o}}", `["a",{"id":"h1","tags":["x","y"]}] {"1":"one","k":"<v>"}`},
		{"path", "{{items[1].id}} {{items[1].tags[0]}} {{o.k}} {{o[1]}}", "h1 x <v> one"},
		{"length", "{{items.length}} {{text.length}}", "2 5"},
		{"add", "{{n + 1}} {{n+1}} {{n - 1}} {{n-10}} {{items.length - 1}} {{ half + 1 }}", "4 4 2 -7 1 1.5"},
		{"unknown stays", "{{who}} {{name.first}} {{items[7]}} {{ o.x.y }}", "{{who}} {{name.first}} {{items[7]}} {{ o.x.y }}"},
		{"offset to a text is not applied", "{{name + 1}}", "{{name + 1}}"},
		{"no expressions", "{{n * 2}} {{n ? 1 : 2}} {{f()}} {{a || b}} {{n + m}} {{n + 1 + 1}} {{'x'}} {{}}", "{{n * 2}} {{n ? 1 : 2}} {{f()}} {{a || b}} {{n + m}} {{n + 1 + 1}} {{'x'}} {{}}"},
		{"not expanded twice", "{{braces}}", "{{name}}"},
		{"unclosed", "{{name", "{{name"},
		{"last opening braces are used", "{{ {{name}} }}", "{{ Ada }}"},
		{"three braces", "{{{name}}}", "{Ada}"},
		{"no prototype", "{{o.constructor}} {{toString}}", "{{o.constructor}} {{toString}}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := template.Render(template.Parse(c.text), func(name string) (any, bool) {
				v, ok := vars[name]
				return v, ok
			})
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("Render(%q) (-want +got):\n%s", c.text, diff)
			}
		})
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	got := template.Parse("a {{b.c[0] - 2}} {{f()}}{{n + 0}}")
	want := []template.Part{
		{Text: "a "},
		{Text: "{{b.c[0] - 2}}", Expr: true, Path: []string{"b", "c", "0"}, Offset: -2, Added: true},
		{Text: " "},
		{Text: "{{f()}}", Expr: true},
		{Text: "{{n + 0}}", Expr: true, Path: []string{"n"}, Added: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Parse (-want +got):\n%s", diff)
	}
}

// FuzzParse checks that the joined parts equal the text, and that rendering without values
// returns the text.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"", "{{a}}", "{{ {{a.b[1] + 2}} }}", "}}{{", "{{{{}}}}", "a{{b", "{{a[}}", "{{a[99999999999]}}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		parts := template.Parse(text)
		var b strings.Builder
		for _, p := range parts {
			b.WriteString(p.Text)
		}
		if b.String() != text {
			t.Fatalf("the parts of %q join to %q", text, b.String())
		}
		none := func(string) (any, bool) { return nil, false }
		if got := template.Render(parts, none); got != text {
			t.Fatalf("Render(%q) without values is %q", text, got)
		}
		some := func(string) (any, bool) { return []any{1.0, map[string]any{"b": "x"}}, true }
		template.Render(parts, some)
	})
}
