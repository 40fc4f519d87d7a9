// Package blobtest is the contract of a store of blobs as tests. Every
// implementation passes it.
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

// MaxBytes is the limit that stores of the suite are opened with.
const MaxBytes = 1 << 20

// Opener opens a store. Each call opens the same data again, as another process
// would.
type Opener func(t *testing.T) blob.Store

// Exercise runs the suite. fresh makes an empty store and gives the way to open
// it; it is called once for every subtest, and subtests run in parallel.
func Exercise(t *testing.T, fresh func(t *testing.T) Opener) {
	t.Helper()
	for _, test := range []struct {
		name string
		run  func(t *testing.T, open Opener)
	}{
		{"a content comes back, from another process too", comesBack},
		{"the same content is one blob", once},
		{"contents have a limit", bounded},
		{"what is deleted is gone, and may come again", deleted},
		{"each blob is told of", each},
		{"a sweep takes what is refused", swept},
		{"many at once", together},
		{"a name is no path", names},
		{"a slot is written once", slots},
		{"of many that make a slot one does", slotOnce},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(t, fresh(t))
		})
	}
}

func must(t *testing.T, err error) {
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

func put(t *testing.T, s blob.Store, data []byte) blob.Name {
	t.Helper()
	name, err := s.Put(t.Context(), data)
	must(t, err)
	return name
}

func wantContent(t *testing.T, s blob.Store, name blob.Name, data []byte) {
	t.Helper()
	got, err := s.Get(t.Context(), name)
	must(t, err)
	if !bytes.Equal(got, data) {
		t.Fatalf("the blob has %d bytes, not the %d that were stored", len(got), len(data))
	}
}

func random(n int) []byte {
	data := make([]byte, n)
	_, _ = rand.Read(data) // it never fails
	return data
}

func comesBack(t *testing.T, open Opener) {
	s := open(t)
	for _, data := range [][]byte{{}, {0}, []byte("text"), random(100_000), random(MaxBytes)} {
		name := put(t, s, data)
		if name != blob.NameOf(data) {
			t.Errorf("the name is %s", name)
		}
		wantContent(t, s, name, data)
		wantContent(t, open(t), name, data)
	}
	_, err := s.Get(t.Context(), blob.NameOf([]byte("never stored")))
	wantCode(t, err, guideway.CodeNotFound, "a blob that is not there")
}

func once(t *testing.T, open Opener) {
	s, data := open(t), random(1000)
	put(t, s, data)
	put(t, open(t), data)
	n := 0
	must(t, s.Each(t.Context(), func(info blob.Info) error {
		n++
		if info.Size != 1000 || info.Name != blob.NameOf(data) || info.Modified.IsZero() {
			t.Errorf("it is told of as %+v", info)
		}
		return nil
	}))
	if n != 1 {
		t.Errorf("there are %d blobs", n)
	}
}

func bounded(t *testing.T, open Opener) {
	_, err := open(t).Put(t.Context(), random(MaxBytes+1))
	wantCode(t, err, guideway.CodeTooLarge, "one byte too many")
}

func deleted(t *testing.T, open Opener) {
	s := open(t)
	one, two := put(t, s, []byte("one")), put(t, s, []byte("two"))
	must(t, s.Delete(t.Context()))
	must(t, s.Delete(t.Context(), one, blob.NameOf([]byte("never stored"))))
	_, err := open(t).Get(t.Context(), one)
	wantCode(t, err, guideway.CodeNotFound, "a deleted blob")
	wantContent(t, s, two, []byte("two"))
	wantContent(t, s, put(t, s, []byte("one")), []byte("one"))
}

func each(t *testing.T, open Opener) {
	s := open(t)
	var want, got []blob.Name
	for i := range 50 {
		want = append(want, put(t, s, fmt.Append(nil, "blob ", i)))
	}
	must(t, s.Each(t.Context(), func(info blob.Info) error {
		got = append(got, info.Name)
		return nil
	}))
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("told of are %d blobs, want %d", len(got), len(want))
	}
	stop := errors.New("enough")
	n := 0
	err := s.Each(t.Context(), func(blob.Info) error {
		n++
		return stop
	})
	if !errors.Is(err, stop) || n != 1 {
		t.Errorf("it went on to %d blobs and ended with %v", n, err)
	}
}

func swept(t *testing.T, open Opener) {
	s := open(t)
	keep, drop := put(t, s, []byte("keep")), put(t, s, []byte("drop it"))
	got, err := s.Sweep(t.Context(), func(info blob.Info) bool { return info.Name == keep })
	must(t, err)
	if got.Blobs != 1 || got.Bytes != int64(len("drop it")) {
		t.Errorf("swept is %+v", got)
	}
	_, err = s.Get(t.Context(), drop)
	wantCode(t, err, guideway.CodeNotFound, "what was swept")
	wantContent(t, s, keep, []byte("keep"))
}

func together(t *testing.T, open Opener) {
	var group sync.WaitGroup
	same := random(5000)
	for range 4 {
		s := open(t)
		group.Go(func() {
			for range 10 {
				for _, data := range [][]byte{same, random(3000)} {
					name, err := s.Put(t.Context(), data)
					if err != nil {
						t.Error(err)
						return
					}
					got, err := s.Get(t.Context(), name)
					if err != nil || !bytes.Equal(got, data) {
						t.Errorf("it came back as %d bytes, %v", len(got), err)
					}
				}
			}
		})
	}
	group.Wait()
}

func names(t *testing.T, open Opener) {
	s := open(t)
	for _, name := range []blob.Name{"", "../../../etc/passwd", "ab", blob.Name(strings.Repeat("A", 64)), blob.Name(strings.Repeat("/", 64)), "a\x00b"} {
		_, err := s.Get(t.Context(), name)
		wantCode(t, err, guideway.CodeNotFound, fmt.Sprintf("the name %.20q", name))
		must(t, s.Delete(t.Context(), name))
	}
}

func slots(t *testing.T, open Opener) {
	s := open(t)
	_, err := s.Slot(t.Context(), "key-1")
	wantCode(t, err, guideway.CodeNotFound, "a slot that is not there")
	must(t, s.CreateSlot(t.Context(), "key-1", []byte("wrapped\x00key")))
	must(t, s.CreateSlot(t.Context(), "key-2", nil))
	must(t, s.CreateSlot(t.Context(), "master", []byte("m")))
	wantCode(t, s.CreateSlot(t.Context(), "key-1", []byte("other")), guideway.CodeConflict, "a slot that is there")
	got, err := open(t).Slot(t.Context(), "key-1")
	must(t, err)
	if string(got) != "wrapped\x00key" {
		t.Errorf("the slot has %q", got)
	}
	list, err := s.Slots(t.Context(), "key-")
	must(t, err)
	if len(list) != 2 || list[0].Modified.IsZero() {
		t.Errorf("the slots are %v", list)
	}
	must(t, s.EraseSlot(t.Context(), "key-1"))
	must(t, s.EraseSlot(t.Context(), "key-1"))
	_, err = open(t).Slot(t.Context(), "key-1")
	wantCode(t, err, guideway.CodeNotFound, "an erased slot")
	for _, bad := range []string{"", "../x", "A", "a b", strings.Repeat("a", 200)} {
		wantCode(t, s.CreateSlot(t.Context(), bad, nil), guideway.CodeInvalid, "the key "+bad)
		_, err := s.Slot(t.Context(), bad)
		wantCode(t, err, guideway.CodeInvalid, "the key "+bad)
	}
	wantCode(t, s.CreateSlot(t.Context(), "big", random(5000)), guideway.CodeTooLarge, "a large slot")
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
				t.Errorf("two made it, or: %v", err)
			}
		})
	}
	group.Wait()
	got, err := open(t).Slot(t.Context(), "one")
	must(t, err)
	if string(got) != made {
		t.Errorf("it has %q, made was %q", got, made)
	}
}
