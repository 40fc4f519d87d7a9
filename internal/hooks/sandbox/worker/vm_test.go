package worker

import "testing"

// BenchmarkState measures the restore of the engine after each call.
func BenchmarkState(b *testing.B) {
	s, err := newStock(32 << 20)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		s.ready = nil
		s.setImage(s.blank)
	}
}
