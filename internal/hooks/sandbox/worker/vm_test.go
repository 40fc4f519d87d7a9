package worker

import "testing"

// BenchmarkState is what a fresh engine costs a worker after each call.
func BenchmarkState(b *testing.B) {
	s, err := newStock(32 << 20)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		s.ready = nil
		s.put(s.blank)
	}
}
