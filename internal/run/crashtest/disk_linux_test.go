package crashtest

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/testutil/crash"
)

// diskRoom is the size of a bounded directory. The write-ahead log alone may grow to 5 MB.
const diskRoom = 16 << 20

// TestFullDisk checks workers whose disk has various amounts of free space. A command that
// does not fit returns a clear error and has no effect. Reads succeed. After space is
// freed, all calls succeed, and nothing is lost.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	crash.NeedMounts(t)
	shelf, err := newShelf()
	if err != nil {
		t.Fatal(err)
	}
	w := startWorker(t, workerPlace{Dir: t.TempDir(), Room: diskRoom}).MustOpen()
	l := newLane("client", rand.New(rand.NewPCG(1, 1)), shelf.inSteps())
	if err := l.sendCommands(w, 20); err != nil {
		t.Fatal(err)
	}
	full := 0
	for _, left := range []int64{0, 4 << 10, 8 << 10, 40 << 10, 100 << 10, 300 << 10, 0} {
		w.MustDo(order{Do: opFill, Room: left})
		if driveUntilFull(t, l, w) {
			full++
		}
		led := l.currentRun()
		if led.id != "" {
			if err := led.checkJournal(w); err != nil {
				t.Errorf("with %d bytes left, reads return: %v", left, err)
			}
		}
		w.MustDo(order{Do: opDrain})
		if err := l.sendCommands(w, 5); err != nil {
			t.Fatalf("after space was freed, full at %d bytes: %v", left, err)
		}
		if err := l.currentRun().checkJournal(w); err != nil {
			t.Fatal(err)
		}
		if err := verifyChains(w, ""); err != nil {
			t.Fatal(err)
		}
	}
	if full < 5 {
		t.Errorf("the disk was full only %d times", full)
	}
	w.Shutdown()
}

// driveUntilFull sends commands until one returns an error, which must have a clear message
// and a fix.
func driveUntilFull(t *testing.T, l *modelClient, w *worker) bool {
	t.Helper()
	for range 400 {
		led, p := l.nextCommand()
		r, err := w.Do(p.order)
		if err != nil {
			t.Fatalf("the worker did not survive a full disk: %v", err)
		}
		if r.Code != "" && r.Code != guideway.CodeRefused {
			mustBeClear(t, "a full disk", r)
			return true
		}
		if p.refusal != nil && r.Code == guideway.CodeRefused {
			led.pending = nil // the event that records a refusal may be lost
			continue
		}
		if err := l.applyReply(led, r); err != nil {
			t.Fatal(err)
		}
	}
	return false
}

// mustBeClear checks that an error has a clear message, a fix, and a code that allows a
// retry.
func mustBeClear(t *testing.T, what string, r reply) {
	t.Helper()
	if r.Code != guideway.CodeUnavailable || r.Fix == "" || strings.Contains(r.Message, "goroutine") {
		t.Errorf("%s returned the code %q: %s (fix: %q)", what, r.Code, r.Message, r.Fix)
	}
}

// TestOpenOnFullDisk checks that opening a journal on a full disk succeeds or returns a
// clear error, and that the journal has its complete content after space is freed.
func TestOpenOnFullDisk(t *testing.T) {
	t.Parallel()
	crash.NeedMounts(t)
	shelf, err := newShelf()
	if err != nil {
		t.Fatal(err)
	}
	w := startWorker(t, workerPlace{Dir: t.TempDir(), Room: diskRoom}).MustOpen()
	l := newLane("client", rand.New(rand.NewPCG(1, 1)), shelf.inSteps())
	for range 3 {
		if err := l.sendCommands(w, 30); err != nil {
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
		if err := l.currentRun().checkJournal(w); err != nil {
			t.Fatal(err)
		}
		if err := verifyChains(w, ""); err != nil {
			t.Fatal(err)
		}
	}
	w.Shutdown()
}

// TestReadOnlyDirectory checks that a journal in a read-only directory cannot be created.
// An existing journal either cannot be opened or refuses commands and can be read. All
// errors are clear, and the journal is not damaged.
func TestReadOnlyDirectory(t *testing.T) {
	t.Parallel()
	crash.NeedMounts(t)
	shelf, err := newShelf()
	if err != nil {
		t.Fatal(err)
	}
	p := workerPlace{Dir: t.TempDir()}
	sealed := p
	sealed.Sealed = true
	r, err := startWorker(t, sealed).Opened()
	if err != nil || r.OK() {
		t.Fatalf("a journal was created in a read-only directory: %v %+v", err, r)
	}
	mustBeClear(t, "a new journal in a read-only directory", r)

	w := startWorker(t, p).MustOpen()
	l := newLane("client", rand.New(rand.NewPCG(1, 1)), shelf.inSteps())
	if err := l.sendCommands(w, 30); err != nil {
		t.Fatal(err)
	}
	for _, how := range []struct {
		name string
		end  func()
	}{{"closed", w.Shutdown}, {"killed", func() {
		w = startWorker(t, p).MustOpen()
		if err := l.sendCommands(w, 10); err != nil {
			t.Error(err)
		}
		w.Kill()
	}}} {
		how.end()
		reader := startWorker(t, sealed)
		r, err := reader.Opened()
		if err != nil {
			t.Fatalf("%s: %v %s", how.name, err, reader.Stderr())
		}
		if !r.OK() {
			mustBeClear(t, "a journal that was "+how.name+", in a read-only directory", r)
		} else {
			led, next := l.nextCommand()
			answer, err := reader.Do(next.order)
			if err != nil {
				t.Fatal(err)
			}
			mustBeClear(t, "a command in a read-only directory", answer)
			if err := led.checkJournal(reader); err != nil {
				t.Error(err)
			}
		}
		reader.Kill()
	}
	w = startWorker(t, p).MustOpen()
	if err := l.sendCommands(w, 10); err != nil {
		t.Fatal(err)
	}
	if err := l.currentRun().checkJournal(w); err != nil {
		t.Error(err)
	}
	w.Shutdown()
}
