package install

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway"
	"pgregory.net/rapid"
)

func hasText(text string) func(json.RawMessage) bool {
	return func(element json.RawMessage) bool { return bytes.Contains(element, []byte(text)) }
}

// An element is added in the style of the file, and its removal restores the file. The file
// of a client's hooks is such a list.
func TestAddElement(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, before, after string }{
		{"no file", "", "{\n  \"hooks\": {\n    \"Stop\": [\n      {\n        \"command\": \"x\"\n      }\n    ]\n  }\n}\n"},
		{"one line", `{"hooks": {"Stop": [{"a": 1}]}}`, `{"hooks": {"Stop": [{"a": 1}, {"command":"x"}]}}`},
		{"minified", `{"hooks":{"Stop":[{"a":1}]}}`, `{"hooks":{"Stop":[{"a":1},{"command":"x"}]}}`},
		{"no list", "{\n\t\"hooks\": {}\n}", "{\n\t\"hooks\": {\n\t\t\"Stop\": [\n\t\t\t{\n\t\t\t\t\"command\": \"x\"\n\t\t\t}\n\t\t]\n\t}\n}"},
		{
			"comments, a trailing comma and line endings", "{\r\n  \"hooks\": {\r\n    \"Stop\": [\r\n      {\"a\": 1}, // first\r\n      // last\r\n    ],\r\n  },\r\n}\r\n",
			"{\r\n  \"hooks\": {\r\n    \"Stop\": [\r\n      {\"a\": 1}, // first\r\n      // last\r\n      {\r\n        \"command\": \"x\"\r\n      },\r\n    ],\r\n  },\r\n}\r\n",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := []string{"hooks", "Stop"}
			got, err := AddElement([]byte(tt.before), path, json.RawMessage(`{"command":"x"}`))
			if err != nil || string(got) != tt.after {
				t.Fatalf("AddElement = %q, %v; want %q", got, err, tt.after)
			}
			back, n, err := RemoveElements(got, path, hasText(`"x"`))
			if err != nil || n != 1 {
				t.Fatalf("RemoveElements = %q, %d, %v", back, n, err)
			}
			if strings.Contains(tt.before, "Stop") && string(back) != tt.before {
				t.Errorf("RemoveElements = %q; want %q", back, tt.before)
			}
		})
	}
}

// A list that is another value, and a file that does not parse, are errors; nothing is lost.
func TestAddElementRefuses(t *testing.T) {
	t.Parallel()
	for _, before := range []string{`{`, `[]`, `{"hooks": []}`, `{"hooks": {"Stop": {}}}`, `{"hooks": {"Stop": [], "Stop": []}}`} {
		path := []string{"hooks", "Stop"}
		if got, err := AddElement([]byte(before), path, json.RawMessage(`1`)); guideway.ErrorCode(err) != guideway.CodeInvalid || guideway.ErrorFix(err) == "" {
			t.Errorf("AddElement(%s) = %s, %v", before, got, err)
		}
		if got, _, err := RemoveElements([]byte(before), path, hasText("")); guideway.ErrorCode(err) != guideway.CodeInvalid {
			t.Errorf("RemoveElements(%s) = %s, %v", before, got, err)
		}
	}
}

// After an element is added to a random list, its removal restores the document.
func TestAddElementProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		gap := rapid.SampledFrom([]string{"", " ", "\n", "\r\n\t", "/* c */", " // l\n", "\n  // l\r\n  "})
		space := func() string { return gap.Draw(t, "gap") }
		list := "[" + space()
		n := rapid.IntRange(0, 3).Draw(t, "elements")
		for i := range n {
			list += rapid.SampledFrom([]string{"1", `"x,]"`, "[2,]", "{}"}).Draw(t, "element") + space()
			if i < n-1 || rapid.Bool().Draw(t, "trailing comma") {
				list += "," + space()
			}
		}
		src := []byte("{" + space() + `"a"` + space() + ":" + list + "]" + space() + "}" + space())
		after, err := AddElement(src, []string{"a"}, json.RawMessage(`{"new":true}`))
		if err != nil {
			t.Fatalf("add to %q: %v", src, err)
		}
		back, removed, err := RemoveElements(after, []string{"a"}, hasText("new"))
		if err != nil || removed != 1 {
			t.Fatalf("remove from %q: %d, %v", after, removed, err)
		}
		if n > 0 && !bytes.Equal(back, src) {
			t.Fatalf("remove\n got %q\nwant %q\nfrom %q", back, src, after)
		}
	})
}
