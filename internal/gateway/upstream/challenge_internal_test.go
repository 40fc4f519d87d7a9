package upstream

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// The Bearer challenge is found among others; parsing stops at a syntax error.
func TestBearerParams(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]map[string]string{
		"":       nil,
		"Basic":  nil,
		"Bearer": {},

		`bearer error="invalid_token", error_description="a \"b\", c=d"`:            {"error": "invalid_token", "error_description": `a "b", c=d`},
		`Basic realm="x, Bearer", Bearer Scope = "a b" , error=x, Digest nonce="y"`: {"scope": "a b", "error": "x"},
		`Bearer resource_metadata=https://a.example/x?y=1, scope=z`:                 {"resource_metadata": "https://a.example/x?y=1", "scope": "z"},

		`Bearer error="never ends`:    {"error": "never ends"},
		`Bearer error="a", error="b"`: {"error": "a"},
		`Bearer error="a\`:            {"error": `a\`},
		`Bearer =`:                    nil,
		`Bearer a=`:                   {"a": ""},
		`"Bearer" error=x`:            nil,
	} {
		if diff := cmp.Diff(want, bearerParams(header)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", header, diff)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		bearerParams(rapid.StringMatching(`([Bb]earer|Basic|,| |=|"|\\|a|:)*`).Draw(t, "header")) // The parser terminates for any input.
	})
}
