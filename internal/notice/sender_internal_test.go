package notice

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// fakeSource has a list of notices; the position is the number of those that were read.
type fakeSource struct {
	mu      sync.Mutex
	list    []Notice
	changed chan struct{}
}

func newFakeSource(ids ...string) *fakeSource {
	s := &fakeSource{changed: make(chan struct{}, 1)}
	s.append(ids...)
	return s
}

func (s *fakeSource) append(ids ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		s.list = append(s.list, Notice{ID: id, Type: TypeGate, At: time.Now()})
	}
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

func (s *fakeSource) Name() string { return "fake" }

func (s *fakeSource) Read(_ context.Context, after int64) ([]Notice, int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if after >= int64(len(s.list)) {
		return nil, after, nil
	}
	return slices.Clone(s.list[max(after, 0):]), int64(len(s.list)), nil
}

func (s *fakeSource) Watch(ctx context.Context) <-chan struct{} {
	ch := make(chan struct{})
	go func() {
		defer close(ch)
		for {
			select {
			case <-ctx.Done():
				return
			case <-s.changed:
				ch <- struct{}{}
			}
		}
	}()
	return ch
}

// A receiver gets the address of the page, if there is a dashboard, and never the path alone.
func TestNoticeHasAddressOfPage(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{"": "", "http://127.0.0.1:3000": "http://127.0.0.1:3000/runs/r_1"} {
		var got []Notice
		s := &Sender{
			opts: Options{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler), Address: func(context.Context) string { return address }},
			deliver: func(_ context.Context, _ *Receiver, n Notice) error {
				got = append(got, n)
				return nil
			},
		}
		box := &Outbox{Pending: []Notice{{ID: "n_1", Page: "/runs/r_1"}}}
		s.deliverPending(t.Context(), &Receiver{Name: "team"}, box, &claims{})
		if len(got) != 1 || got[0] != (Notice{ID: "n_1", URL: want}) {
			t.Errorf("with the address %q the receiver got %+v", address, got)
		}
	}
}

// deliveries records the attempts to deliver. reject returns the error of an attempt.
type deliveries struct {
	mu     sync.Mutex
	begin  time.Time
	list   []string
	reject func(n Notice, attempt int) error
}

func (d *deliveries) deliver(_ context.Context, r *Receiver, n Notice) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.list = append(d.list, fmt.Sprintf("%s %s %s", time.Since(d.begin), r.Name, n.ID))
	if d.reject == nil {
		return nil
	}
	return d.reject(n, len(d.list))
}

func (d *deliveries) check(t *testing.T, want ...string) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.Equal(d.list, want) {
		t.Errorf("deliveries:\n%q\nwant:\n%q", d.list, want)
	}
	d.list = nil
}

func testOptions(dir string, source Source, receivers ...string) Options {
	o := Options{
		Sources: []Source{source}, Dir: dir, Log: slog.New(slog.DiscardHandler),
		Address: func(context.Context) string { return "" },
	}
	for _, name := range receivers {
		o.Receivers = append(o.Receivers, Receiver{Name: name, Types: []Type{TypeGate}})
	}
	return o
}

// TestSenderRetries checks that a receiver gets every notice in order with growing pauses
// after errors, and that another receiver does not wait for it.
func TestSenderRetries(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		source := newFakeSource("a", "b")
		d := &deliveries{begin: time.Now()}
		d.reject = func(Notice, int) error {
			if time.Since(d.begin) < 4*time.Second {
				return errors.New("refused")
			}
			return nil
		}
		s := start(testOptions(dir, source, "dead"), d.deliver)
		<-time.After(10 * time.Second)
		d.check(t, "0s dead a", "1s dead a", "3s dead a", "7s dead a", "7s dead b")
		source.append("c")
		synctest.Wait()
		d.check(t, "10s dead c")
		s.Close()
	})
}

// TestSenderSurvivesCrashes checks that a notice is sent again with the same id if a process
// ends before it noted the delivery, and that a notice in the outbox is not lost.
func TestSenderSurvivesCrashes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		d := &deliveries{begin: time.Now()}
		d.reject = func(Notice, int) error { return errors.New("refused") }
		s := start(testOptions(dir, newFakeSource("a"), "r"), d.deliver)
		synctest.Wait()
		s.Close()
		d.check(t, "0s r a")

		before, err := os.ReadFile(outboxPath(dir, "r"))
		if err != nil {
			t.Fatal(err)
		}
		d.reject = nil
		for range 2 {
			// Only the outbox contains the notice: the new source is empty.
			s = start(testOptions(dir, newFakeSource(), "r"), d.deliver)
			<-time.After(2 * time.Second)
			s.Close()
			if err := os.WriteFile(outboxPath(dir, "r"), before, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		d.check(t, "1s r a", "2s r a")
	})
}

// TestOneProcessDelivers checks that of two processes one delivers, and that the other one
// continues after the first has ended.
func TestOneProcessDelivers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		source, d := newFakeSource("a"), &deliveries{begin: time.Now()}
		first := start(testOptions(dir, source, "r"), d.deliver)
		synctest.Wait()
		second := start(testOptions(dir, source, "r"), d.deliver)
		<-time.After(time.Minute - lockInterval/2)
		d.check(t, "0s r a")
		first.Close()
		source.append("b")
		<-time.After(lockInterval)
		synctest.Wait()
		d.check(t, "1m0s r b")
		second.Close()
	})
}

// TestInvalidOutbox checks that an invalid file does not stop the delivery, and is kept.
func TestInvalidOutbox(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(outboxPath(dir, "r"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadOutbox(dir, "r", nil); err == nil {
		t.Fatal("an invalid outbox was read")
	}
	synctest.Test(t, func(t *testing.T) {
		d := &deliveries{begin: time.Now()}
		s := start(testOptions(dir, newFakeSource("a"), "r"), d.deliver)
		synctest.Wait()
		s.Close()
		d.check(t, "0s r a")
	})
	if _, err := os.Stat(outboxPath(dir, "r") + ".invalid"); err != nil {
		t.Error(err)
	}
}

// TestDroppedNotices checks that a notice that is never accepted is dropped after three
// days, and counted.
func TestDroppedNotices(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		d := &deliveries{begin: time.Now(), reject: func(n Notice, _ int) error {
			if n.ID == "a" {
				return errors.New("refused")
			}
			return nil
		}}
		s := start(testOptions(dir, newFakeSource("a", "b"), "r"), d.deliver)
		<-time.After(maxAge + 2*lastRetry)
		s.Close()
	})
	box, err := ReadOutbox(dir, "r", nil)
	if err != nil || box.Dropped != 1 || box.Delivered != 1 || len(box.Pending) != 0 {
		t.Fatalf("outbox %+v, error %v", box, err)
	}
}

// TestFullOutbox checks that an outbox is bounded.
func TestFullOutbox(t *testing.T) {
	t.Parallel()
	box := &Outbox{}
	for i := range maxPending + 5 {
		box.add([]Notice{{ID: fmt.Sprint(i)}})
	}
	if len(box.Pending) != maxPending || box.Dropped != 5 || box.Pending[0].ID != "5" {
		t.Fatalf("%d pending from %s, %d dropped", len(box.Pending), box.Pending[0].ID, box.Dropped)
	}
}

// TestOtherTypes checks that a receiver gets only the types that it selected.
func TestOtherTypes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		source, d := newFakeSource("a"), &deliveries{begin: time.Now()}
		o := testOptions(dir, source, "r")
		o.Receivers[0].Types = []Type{TypeRunCompleted}
		s := start(o, d.deliver)
		synctest.Wait()
		s.Close()
		d.check(t)
	})
	if _, err := os.Stat(filepath.Join(dir, "r.json")); err != nil {
		t.Error("the position is not stored:", err)
	}
}
