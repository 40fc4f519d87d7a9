package lists_test

import (
	"slices"
	"strconv"
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

// TestMap checks that Map converts each element in order, and returns an empty list for nil.
func TestMap(t *testing.T) {
	t.Parallel()
	if got := lists.Map([]int{3, 1}, strconv.Itoa); !slices.Equal(got, []string{"3", "1"}) {
		t.Errorf("got %q", got)
	}
	if got := lists.Map(nil, strconv.Itoa); got == nil || len(got) > 0 {
		t.Errorf("got %#v, want an empty list", got)
	}
}

// TestFilter checks that Filter keeps the order, and returns nil if nothing is kept.
func TestFilter(t *testing.T) {
	t.Parallel()
	isEven := func(n int) bool { return n%2 == 0 }
	if got := lists.Filter([]int{4, 3, 2}, isEven); !slices.Equal(got, []int{4, 2}) {
		t.Errorf("got %d", got)
	}
	if got := lists.Filter([]int{1}, isEven); got != nil {
		t.Errorf("got %#v, want nil", got)
	}
}
