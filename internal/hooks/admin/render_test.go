package admin_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/guideway-dev/guideway"
	hookadmin "github.com/guideway-dev/guideway/internal/hooks/admin"
	"github.com/guideway-dev/guideway/internal/workflow"
)

// canonicalText returns a graph in canonical form and fails the test if it does not load.
func canonicalText(t interface{ Fatalf(string, ...any) }, text string) string {
	d, found := workflow.ParseAs("", []byte(text), workflow.As{Dialect: guideway.DialectHooks})
	if d == nil {
		t.Fatalf("the text does not load: %+v\n%s", found, text)
	}
	return d.Canonical
}

// Render changes only the edited lines of a YAML file: comments, order and style are kept.
func TestRenderKeepsStyle(t *testing.T) {
	t.Parallel()
	changed := strings.NewReplacer(`"mark = 2`, `"mark = 9`, `params.mark = 2;\n`, `params.mark = 9;\nconst b = 1;\n`, `"name":"Theirs"`, `"name":"Ours"`).
		Replace(canonicalText(t, theirs))
	got, err := hookadmin.Render([]byte(theirs), json.RawMessage(changed))
	if err != nil {
		t.Fatal(err)
	}
	want := strings.NewReplacer("mark = 2;\n", "mark = 9;\n          const b = 1;\n", "name: Theirs", "name: Ours").Replace(theirs)
	if diff := cmp.Diff(normalizeLines(want), normalizeLines(string(got))); diff != "" {
		t.Errorf("the file differs (-want +got):\n%s", diff)
	}
}

// normalizeLines returns the lines of a text without differences in style that the YAML
// encoder chooses: spaces in braces, and quotes.
func normalizeLines(text string) []string {
	return strings.Split(strings.NewReplacer("{ ", "{", " }", "}", `"`, "", "[ ", "[", " ]", "]").Replace(text), "\n")
}

// For any previous file, the rendered text loads as the saved graph.
func TestRenderRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.RuneFrom([]rune("ab1 :#-{}[]'\"|>\n\t&*!%@`~,?\\"))).Draw(t, "text")
		value := rapid.SampledFrom([]string{`1`, `1.0`, `-0`, `1e3`, `12345678901234567890`, `null`, `true`, `"yes"`, `"1"`, `""`, `[]`, `{}`, `[[1,{"a":"b\nc"}]]`}).Draw(t, "value")
		quoted, err := json.Marshal(text)
		if err != nil {
			t.Fatalf("%v", err)
		}
		wanted := strings.Replace(newGraph("theirs", "x"+text), `"name":"G"`, `"name":"G","description":`+string(quoted)+`,"variables":{"v":`+value+`}`, 1)
		was := rapid.SampledFrom([]string{"", theirs, newGraph("theirs", "1"), "x: &a [1]\ny: *a\n", "- no graph\n", ": {"}).Draw(t, "was")
		got, err := hookadmin.Render([]byte(was), json.RawMessage(wanted))
		if err != nil {
			t.Fatalf("%v", err)
		}
		if canonicalText(t, string(got)) != canonicalText(t, wanted) {
			t.Fatalf("written:\n%s", got)
		}
	})
}
