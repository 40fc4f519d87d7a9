package visible_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/guideway-dev/guideway/internal/platform/visible"
)

// sharedCases are the cases that the dashboard's implementation (ui/src/api/hidden.test.ts)
// passes too.
type sharedCases struct {
	// Ignorable are the ranges of Unicode's Default_Ignorable_Code_Point.
	Ignorable [][2]string
	// Prose and Script are the results of EscapeText and EscapeScript. Reported is the
	// hidden character that a linter reports in prose.
	Cases []struct{ Name, Text, Prose, Script, Reported string }
}

func readSharedCases(t *testing.T) (cases sharedCases) {
	t.Helper()
	text, err := os.ReadFile("testdata/cases.json")
	if err == nil {
		err = json.Unmarshal(text, &cases)
	}
	if err != nil || len(cases.Ignorable) == 0 || len(cases.Cases) == 0 {
		t.Fatal(err, cases)
	}
	return cases
}

// TestSharedCases checks the escapes of prose and of scripts, and the characters that a
// linter reports.
func TestSharedCases(t *testing.T) {
	t.Parallel()
	for _, tt := range readSharedCases(t).Cases {
		if got := visible.EscapeText(tt.Text); got != tt.Prose {
			t.Errorf("%s: EscapeText(%+q) = %+q, want %+q", tt.Name, tt.Text, got, tt.Prose)
		}
		if got := visible.EscapeScript(tt.Text); got != tt.Script {
			t.Errorf("%s: EscapeScript(%+q) = %+q, want %+q", tt.Name, tt.Text, got, tt.Script)
		}
		if _, _, _, ok := visible.FindHidden(tt.Text); ok != (tt.Script != tt.Text) {
			t.Errorf("%s: FindHidden(%+q) returns %t", tt.Name, tt.Text, ok)
		}
		reported := ""
		if r, _, _, ok := visible.FindHiddenInProse(tt.Text); ok {
			reported = fmt.Sprintf("U+%04X", r)
		}
		if reported != tt.Reported {
			t.Errorf("%s: FindHiddenInProse(%+q) = %q, want %q", tt.Name, tt.Text, reported, tt.Reported)
		}
	}
}

// TestIgnorableCharactersAreHidden checks that every code point that Unicode lists as
// ignorable is hidden.
func TestIgnorableCharactersAreHidden(t *testing.T) {
	t.Parallel()
	for _, bounds := range readSharedCases(t).Ignorable {
		first, err := strconv.ParseInt(bounds[0], 16, 32)
		last, lastErr := strconv.ParseInt(bounds[1], 16, 32)
		if err != nil || lastErr != nil {
			t.Fatal(err, lastErr)
		}
		for r := rune(first); r <= rune(last); r++ {
			if !visible.IsHidden(r) {
				t.Errorf("%U is not hidden", r)
			}
		}
	}
}

// TestEscape checks that hidden characters are escaped and visible ones are unchanged.
func TestEscape(t *testing.T) {
	t.Parallel()
	tests := []struct{ text, want, line string }{
		{"plain text, ünïcode, 日本語, 👍️", "plain text, ünïcode, 日本語, 👍️", "plain text, ünïcode, 日本語, 👍️"},
		{"a\tb\r\nc\n", "a\tb\nc\n", "a b c"},
		{"\x1b[31mred\x07", `\u{001B}[31mred\u{0007}`, `\u{001B}[31mred\u{0007}`},
		{"safe\rrm -rf", `safe\u{000D}rm -rf`, `safe\u{000D}rm -rf`},
		{"\u009b31m", `\u{009B}31m`, `\u{009B}31m`},
		{"\u202eelpmaxe.live", `\u{202E}elpmaxe.live`, `\u{202E}elpmaxe.live`},
		{"a\u200bb\ufeff", `a\u{200B}b\u{FEFF}`, `a\u{200B}b\u{FEFF}`},
		{"a\U000E0041", `a\u{E0041}`, `a\u{E0041}`},
		{"a\u2028b\u2029", `a\u{2028}b\u{2029}`, `a\u{2028}b\u{2029}`},
		{"a\u0085b", `a\u{0085}b`, `a\u{0085}b`},
		{"a\x9bb", "a\ufffdb", "a\ufffdb"},
	}
	for _, tt := range tests {
		if got := visible.EscapeText(tt.text); got != tt.want {
			t.Errorf("EscapeText(%q) = %q, want %q", tt.text, got, tt.want)
		}
		if got := visible.EscapeLine(tt.text); got != tt.line {
			t.Errorf("EscapeLine(%q) = %q, want %q", tt.text, got, tt.line)
		}
	}
}

// TestEscapeJSON checks that escaped JSON has no hidden characters and the same value.
func TestEscapeJSON(t *testing.T) {
	t.Parallel()
	want := "a\u009b\u202e\u200b\U000E0041\u2028\x7f👍️\n"
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	escaped := visible.EscapeJSON(text)
	for _, r := range string(escaped) {
		if visible.IsHidden(r) {
			t.Errorf("%U is written as it is in %s", r, escaped)
		}
	}
	var got string
	if err := json.Unmarshal(escaped, &got); err != nil || got != want {
		t.Errorf("%s decodes to %q, %v", escaped, got, err)
	}
}

// TestFindHidden checks that the position of a hidden character is the position that editors
// show: lines end with a line feed, and columns count characters.
func TestFindHidden(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", "a\r\nb\tc\n": "", "für 👍": "", "⚠\ufe0f": "1:2",
		"a\rb": "1:2", "é\r\nab\u2028c": "2:3", "\n\n\x1b": "3:1", "a\r": "1:2", "\ufeffa": "1:1", "a\r\r\n": "1:2",
	} {
		got := ""
		if _, line, column, ok := visible.FindHidden(text); ok {
			got = fmt.Sprintf("%d:%d", line, column)
		}
		if got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
