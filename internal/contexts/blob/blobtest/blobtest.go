// Package blobtest contains the tests that every blob store must pass.
package blobtest

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/blob"
)

// MaxBytes is the size limit of the stores under test.
const MaxBytes = 1 << 20

// Opener opens a store. Each call opens the same data again, like another process.
type Opener func(t *testing.T) blob.Store

// Exercise runs the suite. fresh creates an empty store and returns its opener; it is
// called once per subtest, and subtests run in parallel.
func Exercise(t *testing.T, fresh func(t *testing.T) Opener) {
	t.Helper()
	for _, test := range []struct {
		name string
		run  func(t *testing.T, open Opener)
	}{
		{"stored data is returned, also to another process", comesBack},
		{"the same content is stored once", testOnce},
		{"blobs have a size limit", testLimits},
		{"a deleted blob is missing and can be stored again", testDelete},
		{"each blob is visited", testEach},
		{"a sweep removes only the blobs that are not kept", testSweep},
		{"concurrent calls", testConcurrent},
		{"a name is not a path", testNames},
		{"a slot is written once", testSlots},
		{"only one of several concurrent calls creates a slot", slotOnce},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(t, fresh(t))
		})
	}
}

func mustSucceed(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%v (%s)", err, guideway.ErrorCode(err))
	}
}

func wantCode(t *testing.T, err error, code guideway.Code, what string) {
	t.Helper()
	if got := guideway.ErrorCode(err); got != code {
		t.Fatalf("%s: got the code %q (%v), want %q", what, got, err, code)
	}
}

func mustPut(t *testing.T, s blob.Store, data []byte) blob.Name {
	t.Helper()
	name, err := s.Put(t.Context(), data)
	mustSucceed(t, err)
	return name
}

func wantContent(t *testing.T, s blob.Store, name blob.Name, data []byte) {
	t.Helper()
	got, err := s.Get(t.Context(), name)
	mustSucceed(t, err)
	if !bytes.Equal(got, data) {
		t.Fatalf("the blob has %d bytes, want %d", len(got), len(data))
	}
}

func randomBytes(n int) []byte {
	data := make([]byte, n)
	_, _ = rand.Read(data) // rand.Read never fails
	return data
}

func comesBack(t *testing.T, open Opener) {
	s := open(t)
	for _, data := range [][]byte{{}, {0}, []byte("text"), randomBytes(100_000), randomBytes(MaxBytes)} {
		name := mustPut(t, s, data)
		if name != blob.NameOf(data) {
			t.Errorf("the name is %s", name)
		}
		wantContent(t, s, name, data)
		wantContent(t, open(t), name, data)
	}
	_, err := s.Get(t.Context(), blob.NameOf([]byte("never stored")))
	wantCode(t, err, guideway.CodeNotFound, "a missing blob")
}

func testOnce(t *testing.T, open Opener) {
	s, data := open(t), randomBytes(1000)
	mustPut(t, s, data)
	mustPut(t, open(t), data)
	n := 0
	mustSucceed(t, s.Each(t.Context(), func(info blob.Info) error {
		n++
		if info.Size != 1000 || info.Name != blob.NameOf(data) || info.Modified.IsZero() {
			t.Errorf("the visited blob is %+v", info)
		}
		return nil
	}))
	if n != 1 {
		t.Errorf("there are %d blobs", n)
	}
}

func testLimits(t *testing.T, open Opener) {
	_, err := open(t).Put(t.Context(), randomBytes(MaxBytes+1))
	wantCode(t, err, guideway.CodeTooLarge, "one byte too many")
}

func testDelete(t *testing.T, open Opener) {
	s := open(t)
	one, two := mustPut(t, s, []byte("one")), mustPut(t, s, []byte("two"))
	mustSucceed(t, s.Delete(t.Context()))
	mustSucceed(t, s.Delete(t.Context(), one, blob.NameOf([]byte("never stored"))))
	_, err := open(t).Get(t.Context(), one)
	wantCode(t, err, guideway.CodeNotFound, "a deleted blob")
	wantContent(t, s, two, []byte("two"))
	wantContent(t, s, mustPut(t, s, []byte("one")), []byte("one"))
}

func testEach(t *testing.T, open Opener) {
	s := open(t)
	var want, got []blob.Name
	for i := range 50 {
		want = append(want, mustPut(t, s, fmt.Append(nil, "blob ", i)))
	}
	mustSucceed(t, s.Each(t.Context(), func(info blob.Info) error {
		got = append(got, info.Name)
		return nil
	}))
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("%d blobs were visited, want %d", len(got), len(want))
	}
	stop := errors.New("enough")
	n := 0
	err := s.Each(t.Context(), func(blob.Info) error {
		n++
		return stop
	})
	if !errors.Is(err, stop) || n != 1 {
		t.Errorf("%d blobs were visited, and Each returned %v", n, err)
	}
}

func testSweep(t *testing.T, open Opener) {
	s := open(t)
	keep, drop := mustPut(t, s, []byte("keep")), mustPut(t, s, []byte("drop it"))
	got, err := s.Sweep(t.Context(), func(info blob.Info) bool { return info.Name == keep })
	mustSucceed(t, err)
	if got.Blobs != 1 || got.Bytes != int64(len("drop it")) {
		t.Errorf("Sweep returned %+v", got)
	}
	_, err = s.Get(t.Context(), drop)
	wantCode(t, err, guideway.CodeNotFound, "a removed blob")
	wantContent(t, s, keep, []byte("keep"))
}

func testConcurrent(t *testing.T, open Opener) {
	var group sync.WaitGroup
	same := randomBytes(5000)
	for range 4 {
		s := open(t)
		group.Go(func() {
			for range 10 {
				for _, data := range [][]byte{same, randomBytes(3000)} {
					name, err := s.Put(t.Context(), data)
					if err != nil {
						t.Error(err)
						return
					}
					got, err := s.Get(t.Context(), name)
					if err != nil || !bytes.Equal(got, data) {
						t.Errorf("Get returned %d bytes, %v", len(got), err)
					}
				}
			}
		})
	}
	group.Wait()
}

func testNames(t *testing.T, open Opener) {
	s := open(t)
	for _, name := range []blob.Name{"", "../../../etc/passwd", "ab", blob.Name(strings.Repeat("A", 64)), blob.Name(strings.Repeat("/", 64)), "a\x00b"} {
		_, err := s.Get(t.Context(), name)
		wantCode(t, err, guideway.CodeNotFound, fmt.Sprintf("the name %.20q", name))
		mustSucceed(t, s.Delete(t.Context(), name))
	}
}

func testSlots(t *testing.T, open Opener) {
	s := open(t)
	_, err := s.Slot(t.Context(), "key-1")
	wantCode(t, err, guideway.CodeNotFound, "a missing slot")
	mustSucceed(t, s.CreateSlot(t.Context(), "key-1", []byte("wrapped\x00key")))
	mustSucceed(t, s.CreateSlot(t.Context(), "key-2", nil))
	mustSucceed(t, s.CreateSlot(t.Context(), "master", []byte("m")))
	wantCode(t, s.CreateSlot(t.Context(), "key-1", []byte("other")), guideway.CodeConflict, "an existing slot")
	got, err := open(t).Slot(t.Context(), "key-1")
	mustSucceed(t, err)
	if string(got) != "wrapped\x00key" {
		t.Errorf("the slot has %q", got)
	}
	list, err := s.Slots(t.Context(), "key-")
	mustSucceed(t, err)
	if len(list) != 2 || list[0].Modified.IsZero() {
		t.Errorf("the slots are %v", list)
	}
	wrapped := []byte("wrapped\x00key")
	mustSucceed(t, s.ReplaceSlot(t.Context(), "key-1", wrapped, []byte("WRAPPED\x00KEY")))
	if got, err := open(t).Slot(t.Context(), "key-1"); err != nil || string(got) != "WRAPPED\x00KEY" {
		t.Errorf("the replaced slot has %q, %v", got, err)
	}
	wantCode(t, s.ReplaceSlot(t.Context(), "key-1", wrapped, []byte("another key")), guideway.CodeNotFound, "another old value")
	mustSucceed(t, s.EraseSlot(t.Context(), "key-1"))
	mustSucceed(t, s.EraseSlot(t.Context(), "key-1"))
	wantCode(t, s.ReplaceSlot(t.Context(), "key-1", []byte("WRAPPED\x00KEY"), wrapped), guideway.CodeNotFound, "the replacement of an erased slot")
	wantCode(t, s.ReplaceSlot(t.Context(), "key-1", nil, nil), guideway.CodeNotFound, "the replacement of an erased slot by an empty value")
	_, err = open(t).Slot(t.Context(), "key-1")
	wantCode(t, err, guideway.CodeNotFound, "an erased slot")
	for _, bad := range []string{"", "../x", "A", "a b", strings.Repeat("a", 200)} {
		wantCode(t, s.CreateSlot(t.Context(), bad, nil), guideway.CodeInvalid, "the key "+bad)
		_, err := s.Slot(t.Context(), bad)
		wantCode(t, err, guideway.CodeInvalid, "the key "+bad)
	}
	wantCode(t, s.CreateSlot(t.Context(), "big", randomBytes(5000)), guideway.CodeTooLarge, "a large slot")
}

func slotOnce(t *testing.T, open Opener) {
	var group sync.WaitGroup
	var mu sync.Mutex
	made := ""
	for i := range 6 {
		s := open(t)
		group.Go(func() {
			value := fmt.Sprint("value ", i)
			err := s.CreateSlot(t.Context(), "one", []byte(value))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil && made == "":
				made = value
			case guideway.ErrorCode(err) != guideway.CodeConflict:
				t.Errorf("a second call created the slot, or failed with another code: %v", err)
			}
		})
	}
	group.Wait()
	got, err := open(t).Slot(t.Context(), "one")
	mustSucceed(t, err)
	if string(got) != made {
		t.Errorf("the slot has %q, want %q", got, made)
	}
}
