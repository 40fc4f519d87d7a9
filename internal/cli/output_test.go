package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"pgregory.net/rapid"
)

func TestWrap(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{"short", "one line", []string{"one line"}},
		{"long", "one two three four five", []string{"one two three", "four five"}},
		{"breaks stay", "one\n\ntwo", []string{"one", "", "two"}},
		{"a list", "- one two three four", []string{"- one two", "  three four"}},
		{"numbers", "10. one two three", []string{"10. one two", "    three"}},
		{"indentation", "  one two three four", []string{"  one two", "  three four"}},
		{"a long word", "a xxxxxxxxxxxxxxxxxxxxxxxx b", []string{"a", "xxxxxxxxxxxxxxxxxxxxxxxx", "b"}},
		{"no list", "-one two three four", []string{"-one two three", "four"}},
		{"fences", "```\none two three four five\n```\none two three four", []string{"```", "one two three four five", "```", "one two three", "four"}},
		{"wide", "日本語の 文章です", []string{"日本語の", "文章です"}},
		{"control characters", "a\x1b[31mb\rc", []string{`a\u{001B}[31mb\u{000D}c`}},
		{"trailing", "one\n\n", []string{"one"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, app.Wrap(tt.text, 14)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestWrapKeepsEveryWord checks that no word is lost or added, and that a line with more
// than two words is not longer than the width.
func TestWrapKeepsEveryWord(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[a-z0-9.*\-  \n]{0,200}`).Draw(t, "text")
		n := rapid.IntRange(4, 60).Draw(t, "width")
		lines := app.Wrap(text, n)
		if diff := cmp.Diff(strings.Fields(text), strings.Fields(strings.Join(lines, "\n"))); diff != "" {
			t.Fatalf("%q (-want +got):\n%s", text, diff)
		}
		for _, line := range lines {
			if app.TextWidth(line) > n && len(strings.Fields(line)) > 2 {
				t.Fatalf("%q is longer than %d", line, n)
			}
		}
	})
}

func TestTruncate(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text string
		n    int
		want string
	}{
		{"short", 5, "short"},
		{"longer", 5, "long…"},
		{"a bc", 3, "a…"},
		{"日本語", 5, "日本…"},
		{"日本語", 4, "日…"},
		{"é́é́é́", 3, "é́é́é́"},
		{"x", 0, "x"},
	} {
		if got := app.Truncate(tt.text, tt.n); got != tt.want {
			t.Errorf("cut(%q, %d) is %q, want %q", tt.text, tt.n, got, tt.want)
		}
	}
}

func TestTableFitsTheTerminal(t *testing.T) {
	t.Parallel()
	tab := app.Table{RightAligned: map[int]bool{1: true}, Shrinkable: 2}
	tab.Add("ID", "N", "TEXT")
	tab.Add("one", "1", "a text that is too long for it")
	tab.Add("eleven", "11", "short")
	for width, want := range map[int]string{
		0:  "ID       N  TEXT\none      1  a text that is too long for it\neleven  11  short\n",
		30: "ID       N  TEXT\none      1  a text that is to…\neleven  11  short\n",
		10: "ID…\none…\neleven  1…\n",
	} {
		var out bytes.Buffer
		tab.Write(&out, width, app.Styles{})
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("width %d (-want +got):\n%s", width, diff)
		}
	}
}

func TestParseValue(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]any{
		"": "", "plain text": "plain text", " padded ": "padded", "1": 1.0, "007": "007", "true": true, "null": nil,
		`"quoted"`: "quoted", "[1, 2]": []any{1.0, 2.0}, `{"a": 1}`: map[string]any{"a": 1.0}, "[1": "[1", "1.0.0": "1.0.0",
	} {
		if diff := cmp.Diff(want, app.ParseValue(text)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}
