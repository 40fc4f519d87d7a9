package secret

import (
	"fmt"
	"strings"
	"testing"
)

// TestVerdictsAreCached checks that the verdicts on successive contexts are kept, so that an
// unchanged text is not scanned again, and that the number of verdicts is bounded.
func TestVerdictsAreCached(t *testing.T) {
	t.Parallel()
	s := NewScanner(Detector{})
	text := func(i int) string { return fmt.Sprint(i, strings.Repeat(" word", 20)) }
	for i := range 10 {
		s.Scan(map[string]any{"first": text(0), "new": text(i)})
	}
	if len(s.verdicts) != 10 {
		t.Errorf("%d verdicts on ten texts are kept", len(s.verdicts))
	}
	for i := range maxCached + 10 {
		if s.cachedVerdict(text(i)); len(s.verdicts) > maxCached {
			t.Fatalf("%d verdicts are kept", len(s.verdicts))
		}
	}
	if len(s.verdicts) == 0 {
		t.Error("no verdict is kept once the bound is reached")
	}
}
