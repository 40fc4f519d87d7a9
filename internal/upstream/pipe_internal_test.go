package upstream

import (
	"bytes"
	"context"
	"io"
	"os"
	"sync/atomic"
	"testing"
)

// pipe is a process's way in, and the end that the server reads.
func pipe(t *testing.T) (*process, *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	p := &process{in: w, now: writerOf(w), writes: make(chan struct{}, 1), exited: make(chan struct{})}
	if p.now == nil {
		t.Skip("whether a pipe has room cannot be told here")
	}
	return p, r
}

// What a full pipe has no room for is written when the server reads on, whole and
// before anything else, and whoever sends waits for none of it.
func TestSendNow(t *testing.T) {
	t.Parallel()
	p, r := pipe(t)
	long, failed := bytes.Repeat([]byte("x"), 3<<20), &failures{}
	for _, text := range [][]byte{[]byte("first"), long} {
		taken, whole := p.sendNow(outgoing{text: text}, failed.add)
		if !taken || whole != (len(text) < 100) {
			t.Fatalf("%d bytes: taken: %v, whole: %v", len(text), taken, whole)
		}
	}
	if taken, _ := p.sendNow(outgoing{text: []byte("between")}, failed.add); taken {
		t.Error("a message was taken while the rest of another one waits")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.send(ctx, outgoing{text: []byte("gone")}); err == nil {
		t.Error("whoever gave up was told that it is sent")
	}
	after := make(chan error, 1)
	go func() { after <- p.send(t.Context(), outgoing{text: []byte("last")}) }()
	want := "first\n" + string(long) + "\nlast\n"
	got := make([]byte, len(want))
	if _, err := io.ReadFull(r, got); err != nil || string(got) != want {
		t.Errorf("%v; what the server reads is not what was sent", err)
	}
	if err := <-after; err != nil || failed.count.Load() != 0 {
		t.Errorf("%v, and %d failures", err, failed.count.Load())
	}
}

// A server that does not listen any more fails the call.
func TestSendNowToNobody(t *testing.T) {
	t.Parallel()
	p, r := pipe(t)
	r.Close()
	failed := &failures{}
	if taken, _ := p.sendNow(outgoing{text: []byte("x")}, failed.add); !taken || failed.count.Load() != 1 {
		t.Errorf("taken: %v, and %d failures were told, want one", taken, failed.count.Load())
	}
}

// failures counts those that are told.
type failures struct{ count atomic.Int32 }

func (f *failures) add(err error) {
	if err != nil {
		f.count.Add(1)
	}
}
