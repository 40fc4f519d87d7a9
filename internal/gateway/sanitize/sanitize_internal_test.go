package sanitize

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// TestSanitize checks that descriptions and titles are sanitized everywhere in a schema.
// Names and values, on which programs depend, stay unchanged and are reported.
func TestSanitize(t *testing.T) {
	t.Parallel()
	const bad = `a\u200bb` + "\U000E0041" + `c\u202Ed`
	long := strings.Repeat("x", maxText+1)
	for name, tt := range map[string]struct {
		raw, want string
		found     []string
	}{
		"nothing":              {`{"description":"é","inputSchema":{"enum":["ü"]}}`, `{"description":"é","inputSchema":{"enum":["ü"]}}`, nil},
		"white space":          {`{ "description" : "a\n\tb" }`, `{ "description" : "a\n\tb" }`, nil},
		"title of annotations": {`{"annotations":{"title":"` + bad + `"}}`, `{"annotations":{"title":"abcd"}}`, []string{"hidden characters removed from descriptions: 3"}},
		"emoji":                {`{"a":{"description":"⚠\ufe0f 1\ufe0f\u20e3","title":"⚠️"}}`, `{"a":{"description":"⚠\ufe0f 1\ufe0f\u20e3","title":"⚠️"}}`, nil},
		"selectors without a character": {
			`{"a":{"description":"a\ufe0fb⚠\ufe0f\ufe0e","title":"x\udb40\udfff"}}`, `{"a":{"description":"ab⚠️","title":"x"}}`,
			[]string{"hidden characters removed from descriptions: 3"},
		},
		"parameter": {
			`{"inputSchema":{"properties":{"p":{"description":"` + bad + `"}}}}`,
			`{"inputSchema":{"properties":{"p":{"description":"abcd"}}}}`,
			[]string{"hidden characters removed from descriptions: 3"},
		},
		"parameter with the name of a keyword": {
			`{"inputSchema":{"properties":{"default":{"description":"` + bad + `"},"description":{"title":"` + bad + `"}}}}`,
			`{"inputSchema":{"properties":{"default":{"description":"abcd"},"description":{"title":"abcd"}}}}`,
			[]string{"hidden characters removed from descriptions: 6"},
		},
		"within a list": {
			`{"anyOf":[{"description":"` + bad + `"}],"arguments":[{"name":"a","description":"` + bad + `"}]}`,
			`{"anyOf":[{"description":"abcd"}],"arguments":[{"name":"a","description":"abcd"}]}`,
			[]string{"hidden characters removed from descriptions: 6"},
		},
		"values": {
			`{"enum":["\u200b"],"default":{"description":"\u200b"},"const":"\u200b","pattern":"\u200b"}`,
			`{"enum":["\u200b"],"default":{"description":"\u200b"},"const":"\u200b","pattern":"\u200b"}`,
			[]string{"hidden characters kept in names or values: 4"},
		},
		"name of a parameter": {
			`{"properties":{"a` + "\u200b" + `":{}}}`, `{"properties":{"a` + "\u200b" + `":{}}}`,
			[]string{"hidden characters kept in names or values: 1"},
		},
		"long": {
			`{"properties":{"p":{"description":"` + long + `"}}}`,
			`{"properties":{"p":{"description":"` + long[:maxText-len("…")] + `…"}}}`,
			[]string{"descriptions truncated to 4096 bytes: 1"},
		},
		"twice": {
			`{"inputSchema":{"description":"` + bad + `","description":"` + bad + `"}}`,
			`{"inputSchema":{"description":"abcd","description":"abcd"}}`,
			[]string{"hidden characters removed from descriptions: 6"},
		},
		"a large number stays exact": {`{"a":{"description":"` + bad + `","maximum":12345678901234567890.10}}`, `{"a":{"description":"abcd","maximum":12345678901234567890.10}}`, []string{"hidden characters removed from descriptions: 3"}},
	} {
		got, found := Object(json.RawMessage(tt.raw))
		if string(got) != tt.want || !slices.Equal(found, tt.found) {
			t.Errorf("%s: %.300s with %q, want %.300s with %q", name, got, found, tt.want, tt.found)
		}
	}
}
