package worker

import "testing"

// BenchmarkFresh is what a fresh VM costs, which a worker makes after each call.
func BenchmarkFresh(b *testing.B) {
	code, err := compilePrelude()
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		v, err := newVM(code)
		if err != nil {
			b.Fatal(err)
		}
		if err := v.close(); err != nil {
			b.Fatal(err)
		}
	}
}
