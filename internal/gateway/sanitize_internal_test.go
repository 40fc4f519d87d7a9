package gateway

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// Descriptions are cleaned everywhere in a schema, under any property name; texts that
// programs depend on stay unchanged and are reported.
func TestSanitize(t *testing.T) {
	t.Parallel()
	const bad = `a\u200bb` + "\U000E0041" + `c\u202Ed`
	long := strings.Repeat("x", maxDescription+1)
	for name, tt := range map[string]struct {
		raw, want string
		found     []string
	}{
		"nothing":              {`{"description":"é","inputSchema":{"enum":["ü"]}}`, `{"description":"é","inputSchema":{"enum":["ü"]}}`, nil},
		"white space":          {`{ "description" : "a\n\tb" }`, `{ "description" : "a\n\tb" }`, nil},
		"title of annotations": {`{"annotations":{"title":"` + bad + `"}}`, `{"annotations":{"title":"abcd"}}`, []string{"descriptions in it hide 3 characters, which are taken out"}},
		"parameter": {
			`{"inputSchema":{"properties":{"p":{"description":"` + bad + `"}}}}`,
			`{"inputSchema":{"properties":{"p":{"description":"abcd"}}}}`,
			[]string{"descriptions in it hide 3 characters, which are taken out"},
		},
		"parameter called as a keyword": {
			`{"inputSchema":{"properties":{"default":{"description":"` + bad + `"},"description":{"title":"` + bad + `"}}}}`,
			`{"inputSchema":{"properties":{"default":{"description":"abcd"},"description":{"title":"abcd"}}}}`,
			[]string{"descriptions in it hide 6 characters, which are taken out"},
		},
		"within a list": {
			`{"anyOf":[{"description":"` + bad + `"}],"arguments":[{"name":"a","description":"` + bad + `"}]}`,
			`{"anyOf":[{"description":"abcd"}],"arguments":[{"name":"a","description":"abcd"}]}`,
			[]string{"descriptions in it hide 6 characters, which are taken out"},
		},
		"values": {
			`{"enum":["\u200b"],"default":{"description":"\u200b"},"const":"\u200b","pattern":"\u200b"}`,
			`{"enum":["\u200b"],"default":{"description":"\u200b"},"const":"\u200b","pattern":"\u200b"}`,
			[]string{"it hides 4 characters in names or values, which are left"},
		},
		"name of a parameter": {
			`{"properties":{"a` + "\u200b" + `":{}}}`, `{"properties":{"a` + "\u200b" + `":{}}}`,
			[]string{"it hides 1 characters in names or values, which are left"},
		},
		"long": {
			`{"properties":{"p":{"description":"` + long + `"}}}`,
			`{"properties":{"p":{"description":"` + long[:maxDescription-len("…")] + `…"}}}`,
			[]string{"1 descriptions in it are cut to 4096 bytes"},
		},
		"twice": {
			`{"inputSchema":{"description":"` + bad + `","description":"` + bad + `"}}`,
			`{"inputSchema":{"description":"abcd","description":"abcd"}}`,
			[]string{"descriptions in it hide 6 characters, which are taken out"},
		},
		"a number that is exact": {`{"a":{"description":"` + bad + `","maximum":12345678901234567890.10}}`, `{"a":{"description":"abcd","maximum":12345678901234567890.10}}`, []string{"descriptions in it hide 3 characters, which are taken out"}},
	} {
		got, found := sanitize(json.RawMessage(tt.raw))
		if string(got) != tt.want || !slices.Equal(found, tt.found) {
			t.Errorf("%s: %.300s with %q, want %.300s with %q", name, got, found, tt.want, tt.found)
		}
	}
}
