package wildcard_test

import (
	"testing"

	"github.com/guideway-dev/guideway/internal/platform/wildcard"
)

func TestMatch(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		pattern, text string
		want          bool
	}{
		{"a", "a", true},
		{"a", "ab", false},
		{"a*", "ab", true},
		{"*", "", true},
		{"*b", "ab", true},
		{"a*a", "a", false},
		{"a*b*c", "a--b--c", true},
		{"a*b*c", "a--c--b", false},
		{"**", "x", true},
		{"log*", "catalog", false},
		{"*log", "catalog", true},
	} {
		if got := wildcard.Match(tt.pattern, tt.text); got != tt.want {
			t.Errorf("%q on %q: %v", tt.pattern, tt.text, got)
		}
	}
}
