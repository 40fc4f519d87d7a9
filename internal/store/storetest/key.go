package storetest

import (
	"bytes"
	"testing"
)

// keyTests are about the fingerprint of the key: a store has one key.
func keyTests() []subtest {
	return []subtest{
		{"the first fingerprint is kept for good", keepKey},
		{"of many fingerprints at once one is kept", raceKey},
	}
}

func keepKey(t *testing.T, f *fixture) {
	s, ctx := f.open(t), t.Context()
	kept, err := s.PinKey(ctx, nil)
	must(t, err)
	if kept != nil {
		t.Fatalf("a new store has the fingerprint %x", kept)
	}
	first := []byte("the first\x00\xff")
	for _, given := range [][]byte{first, []byte("another"), first, nil} {
		kept, err := s.PinKey(ctx, given)
		must(t, err)
		want(t, "the fingerprint that is kept", kept, first)
	}
	create(t, s, newRecord("r_a", "ada"))
	kept, err = f.open(t).PinKey(ctx, []byte("another"))
	must(t, err)
	want(t, "the fingerprint that another process finds", kept, first)
}

func raceKey(t *testing.T, f *fixture) {
	stores := make([]Store, crowd)
	for i := range stores {
		stores[i] = f.open(t)
	}
	kept := make([][]byte, crowd)
	for _, err := range together(crowd, func(i int) (err error) {
		kept[i], err = stores[i].PinKey(t.Context(), []byte{byte(i)})
		return err
	}) {
		must(t, err)
	}
	for _, other := range kept {
		if len(other) != 1 || !bytes.Equal(other, kept[0]) {
			t.Fatalf("processes that began at once have kept several: %v", kept)
		}
	}
}
