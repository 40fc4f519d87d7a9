package storetest

import (
	"bytes"
	"testing"
)

// keyTests cover the fingerprint of the key: a store has one key.
func keyTests() []subtest {
	return []subtest{
		{"the first fingerprint is never replaced", testKeepKey},
		{"one of concurrent fingerprints is stored", testConcurrentKeys},
	}
}

func testKeepKey(t *testing.T, f *fixture) {
	s, ctx := f.openStore(t), t.Context()
	kept, err := s.PinKey(ctx, nil)
	requireNoError(t, err)
	if kept != nil {
		t.Fatalf("a new store has the fingerprint %x", kept)
	}
	first := []byte("the first\x00\xff")
	for _, given := range [][]byte{first, []byte("another"), first, nil} {
		kept, err := s.PinKey(ctx, given)
		requireNoError(t, err)
		checkEqual(t, "the stored fingerprint", kept, first)
	}
	createRun(t, s, newRecord("r_a", "ada"))
	kept, err = f.openStore(t).PinKey(ctx, []byte("another"))
	requireNoError(t, err)
	checkEqual(t, "the fingerprint in another process", kept, first)
}

func testConcurrentKeys(t *testing.T, f *fixture) {
	stores := make([]Store, concurrency)
	for i := range stores {
		stores[i] = f.openStore(t)
	}
	kept := make([][]byte, concurrency)
	for _, err := range runConcurrently(concurrency, func(i int) (err error) {
		kept[i], err = stores[i].PinKey(t.Context(), []byte{byte(i)})
		return err
	}) {
		requireNoError(t, err)
	}
	for _, other := range kept {
		if len(other) != 1 || !bytes.Equal(other, kept[0]) {
			t.Fatalf("concurrent processes have different fingerprints: %v", kept)
		}
	}
}
