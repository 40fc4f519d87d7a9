package conversation

import (
	"strings"
	"testing"
)

// TestConversation checks that contexts have the requested size and share of new content.
func TestConversation(t *testing.T) {
	t.Parallel()
	if len(material()) < 1000 {
		t.Skip("the sources of Go's standard library are missing")
	}
	for _, fresh := range []float64{0.03, 0.10} {
		c := New(1, 100_000, fresh)
		before := c.Next()
		for range 5 {
			after := c.Next()
			if len(after) < 80_000 || len(after) > 140_000 {
				t.Errorf("a context has %d bytes", len(after))
			}
			known := map[string]bool{}
			for _, piece := range strings.Split(string(before), `"`) {
				known[piece] = true
			}
			shared := 0
			for _, piece := range strings.Split(string(after), `"`) {
				if known[piece] {
					shared += len(piece) + 1
				}
			}
			if got := 1 - float64(shared)/float64(len(after)); got < fresh*0.7 || got > fresh*1.3 {
				t.Errorf("%.3f of the context is new, want about %.3f", got, fresh)
			}
			before = after
		}
	}
}
