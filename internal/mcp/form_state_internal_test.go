package mcp

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Only the unchanged state is accepted, once, for its user and handle, before the form
// expires.
func TestFormsOpenOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		now := time.Unix(1_800_000_000, 0)
		f := newForms(nil, func() time.Time { return now })
		s := formState{User: rapid.String().Draw(rt, "user"), Run: "r_1", Handle: rapid.String().Draw(rt, "handle"), Gate: "g"}
		sealed, _, _ := f.openForm(t.Context(), s)
		changed := []byte(sealed)
		at := rapid.IntRange(0, len(changed)-1).Draw(rt, "at")
		changed[at] ^= byte(rapid.IntRange(1, 255).Draw(rt, "bits"))
		if _, err := f.redeemState(t.Context(), string(changed), s.User, s.Handle); !errors.Is(err, errFormUnknown) {
			rt.Fatalf("a state changed at byte %d returns %v", at, err)
		}
		if _, err := f.redeemState(t.Context(), sealed[:at], s.User, s.Handle); !errors.Is(err, errFormUnknown) {
			rt.Fatalf("a state cut at byte %d returns %v", at, err)
		}
		if _, err := f.redeemState(t.Context(), sealed, s.User+"x", s.Handle); !errors.Is(err, errFormForeign) {
			rt.Fatalf("another user's state returns %v", err)
		}
		if _, err := f.redeemState(t.Context(), sealed, s.User, s.Handle+"x"); !errors.Is(err, errFormForeign) {
			rt.Fatalf("a state for another handle returns %v", err)
		}
		age := time.Duration(rapid.Int64Range(0, int64(2*formLifetime/time.Second)).Draw(rt, "seconds")) * time.Second
		now = now.Add(age)
		got, err := f.redeemState(t.Context(), sealed, s.User, s.Handle)
		if age >= formLifetime {
			if !errors.Is(err, errFormExpired) {
				rt.Fatalf("a form at an age of %v returns %v", age, err)
			}
			return
		}
		if err != nil || got.User != s.User || got.Run != s.Run || got.Gate != s.Gate {
			rt.Fatalf("opened %+v, %v", got, err)
		}
		if _, err := f.redeemState(t.Context(), sealed, s.User, s.Handle); !errors.Is(err, errFormUsed) {
			rt.Fatalf("a second use returns %v", err)
		}
	})
}

// Of many concurrent calls with one form exactly one succeeds; used forms are forgotten
// after they expire.
func TestFormsConcurrently(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	f := newForms(nil, func() time.Time { return now })
	sealed, _, _ := f.openForm(t.Context(), formState{User: "ann", Handle: "h"})
	var won atomic.Int32
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			if _, err := f.redeemState(t.Context(), sealed, "ann", "h"); err == nil {
				won.Add(1)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 {
		t.Errorf("%d calls succeeded with one form", won.Load())
	}
	now = now.Add(formLifetime + time.Second)
	again, _, _ := f.openForm(t.Context(), formState{User: "ann", Handle: "h"})
	if _, err := f.redeemState(t.Context(), again, "ann", "h"); err != nil {
		t.Fatal(err)
	}
	if len(f.used) != 1 {
		t.Errorf("%d forms are remembered, want only the last one", len(f.used))
	}
}

// TestOneFormIsOpen checks that exactly one of many concurrent calls opens a form for a
// user, client and handle. Only that form, or its expiry, closes it.
func TestOneFormIsOpen(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	f := newForms(nil, func() time.Time { return now })
	at := formState{User: "ann", Client: "c", Handle: "h", Gate: "g"}
	var won atomic.Pointer[formState]
	var count atomic.Int32
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			if sealed, s, _ := f.openForm(t.Context(), at); sealed != "" {
				won.Store(&s)
				count.Add(1)
			}
		})
	}
	wg.Wait()
	if count.Load() != 1 {
		t.Fatalf("%d forms are open", count.Load())
	}
	opens := func(s formState) bool {
		sealed, _, _ := f.openForm(t.Context(), s)
		return sealed != ""
	}
	for _, other := range []formState{{User: "bob", Client: "c", Handle: "h"}, {User: "ann", Client: "d", Handle: "h"}, {User: "ann", Client: "c", Handle: "i"}} {
		if !opens(other) {
			t.Errorf("no form opens at %+v", other)
		}
	}
	first := *won.Load()
	f.closeForm(formState{User: "ann", Client: "c", Handle: "h", Nonce: "x"})
	if opens(at) {
		t.Error("another form closed the form")
	}
	if f.closeForm(first); !opens(at) {
		t.Error("a closed form is open")
	}
	if f.closeForm(first); opens(at) {
		t.Error("a closed form closed the next one")
	}
	if now = now.Add(formLifetime - time.Second); opens(at) {
		t.Error("a form is lost before it expires")
	}
	if now = now.Add(time.Second); !opens(at) || len(f.open) != 1 {
		t.Errorf("expired forms are kept: %d", len(f.open))
	}
}
