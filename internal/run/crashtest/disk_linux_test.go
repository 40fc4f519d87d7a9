package crashtest

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/testutil/crash"
)

// room is that of a bounded directory: the write-ahead log alone may grow to 5 MB.
const room = 16 << 20

// TestFullDisk fills the disk under a worker to various degrees. What there is no
// room for is answered with a clear error and has not happened; reading goes on;
// with room again, so does everything else, and nothing was lost.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	crash.NeedMounts(t)
	shelf, err := newShelf()
	if err != nil {
		t.Fatal(err)
	}
	w := hire(t, place{Dir: t.TempDir(), Room: room}).MustOpen()
	l := newLane("client", rand.New(rand.NewPCG(1, 1)), shelf.inSteps())
	if err := l.drive(w, 20); err != nil {
		t.Fatal(err)
	}
	full := 0
	for _, left := range []int64{0, 4 << 10, 8 << 10, 40 << 10, 100 << 10, 300 << 10, 0} {
		w.MustDo(order{Do: opFill, Room: left})
		if driveUntilFull(t, l, w) {
			full++
		}
		led := l.current()
		if led.id != "" {
			if err := led.check(w); err != nil {
				t.Errorf("with %d bytes left, reading: %v", left, err)
			}
		}
		w.MustDo(order{Do: opDrain})
		if err := l.drive(w, 5); err != nil {
			t.Fatalf("with room again after %d bytes: %v", left, err)
		}
		if err := l.current().check(w); err != nil {
			t.Fatal(err)
		}
		if err := verified(w, ""); err != nil {
			t.Fatal(err)
		}
	}
	if full < 5 {
		t.Errorf("the disk was full only %d times", full)
	}
	w.Shutdown()
}

// driveUntilFull sends commands until one is answered with an error, which must
// say what is wrong and what to do.
func driveUntilFull(t *testing.T, l *lane, w *worker) bool {
	t.Helper()
	for range 400 {
		led, p := l.next()
		r, err := w.Do(p.order)
		if err != nil {
			t.Fatalf("the worker did not survive a full disk: %v", err)
		}
		if r.Code != "" && r.Code != guideway.CodeRefused {
			mustBeClear(t, "a full disk", r)
			return true
		}
		if p.refusal != nil && r.Code == guideway.CodeRefused {
			led.pending = nil // that it is recorded, nobody promises
			continue
		}
		if err := l.acknowledge(led, r); err != nil {
			t.Fatal(err)
		}
	}
	return false
}

// mustBeClear checks that an error says what is wrong, what to do, and that it may
// work later.
func mustBeClear(t *testing.T, what string, r reply) {
	t.Helper()
	if r.Code != guideway.CodeUnavailable || r.Fix == "" || strings.Contains(r.Message, "goroutine") {
		t.Errorf("%s is answered with code %q: %s (fix: %q)", what, r.Code, r.Message, r.Fix)
	}
}

// TestOpenOnFullDisk opens a journal where there is no room: an error that says
// so, and the journal with all that is in it once there is.
func TestOpenOnFullDisk(t *testing.T) {
	t.Parallel()
	crash.NeedMounts(t)
	shelf, err := newShelf()
	if err != nil {
		t.Fatal(err)
	}
	w := hire(t, place{Dir: t.TempDir(), Room: room}).MustOpen()
	l := newLane("client", rand.New(rand.NewPCG(1, 1)), shelf.inSteps())
	for range 3 {
		if err := l.drive(w, 30); err != nil {
			t.Fatal(err)
		}
		w.MustDo(order{Do: opFill})
		r, err := w.Do(order{Do: opReopen})
		switch {
		case err != nil:
			t.Fatal(err)
		case !r.OK():
			mustBeClear(t, "opening on a full disk", r)
		}
		w.MustDo(order{Do: opDrain})
		w.MustDo(order{Do: opReopen})
		if err := l.current().check(w); err != nil {
			t.Fatal(err)
		}
		if err := verified(w, ""); err != nil {
			t.Fatal(err)
		}
	}
	w.Shutdown()
}

// TestReadOnlyDirectory opens journals where nothing can be written: an error
// that says so, and no damage.
func TestReadOnlyDirectory(t *testing.T) {
	t.Parallel()
	crash.NeedMounts(t)
	shelf, err := newShelf()
	if err != nil {
		t.Fatal(err)
	}
	p := place{Dir: t.TempDir()}
	sealed := p
	sealed.Sealed = true
	r, err := hire(t, sealed).Opened()
	if err != nil || r.OK() {
		t.Fatalf("a journal is made in a read-only directory: %v %+v", err, r)
	}
	mustBeClear(t, "a new journal in a read-only directory", r)

	w := hire(t, p).MustOpen()
	l := newLane("client", rand.New(rand.NewPCG(1, 1)), shelf.inSteps())
	if err := l.drive(w, 30); err != nil {
		t.Fatal(err)
	}
	for _, how := range []struct {
		name string
		end  func()
	}{{"closed", w.Shutdown}, {"killed", func() {
		w = hire(t, p).MustOpen()
		if err := l.drive(w, 10); err != nil {
			t.Error(err)
		}
		w.Kill()
	}}} {
		how.end()
		reader := hire(t, sealed)
		r, err := reader.Opened()
		if err != nil {
			t.Fatalf("%s: %v %s", how.name, err, reader.Stderr())
		}
		if !r.OK() {
			mustBeClear(t, "a journal that was "+how.name+", in a read-only directory", r)
		} else {
			led, next := l.next()
			answer, err := reader.Do(next.order)
			if err != nil {
				t.Fatal(err)
			}
			mustBeClear(t, "a command in a read-only directory", answer)
			if err := led.check(reader); err != nil {
				t.Error(err)
			}
		}
		reader.Kill()
	}
	w = hire(t, p).MustOpen()
	if err := l.drive(w, 10); err != nil {
		t.Fatal(err)
	}
	if err := l.current().check(w); err != nil {
		t.Error(err)
	}
	w.Shutdown()
}
