package lists_test

import (
	"testing"

	"github.com/guideway-dev/guideway/internal/platform/lists"
)

// TestFind checks that Find returns a pointer to the first matching element, or nil.
func TestFind(t *testing.T) {
	t.Parallel()
	list := []string{"a", "b", "b"}
	if got := lists.Find(list, func(s *string) bool { return *s == "b" }); got != &list[1] {
		t.Errorf("found %v, want the second element", got)
	}
	if got := lists.Find(list, func(s *string) bool { return *s == "c" }); got != nil {
		t.Errorf("found %q, want nothing", *got)
	}
}
