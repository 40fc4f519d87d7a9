package upstream

import (
	"bytes"
	"context"
	"io"
	"os"
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
	long, failed := bytes.Repeat([]byte("x"), 3<<20), make(chan error, 1)
	for _, text := range [][]byte{[]byte("first"), long} {
		if !p.sendNow(outgoing{text: text}, failed) {
			t.Fatalf("%d bytes were not taken", len(text))
		}
	}
	if p.sendNow(outgoing{text: []byte("between")}, failed) {
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
	if err := <-after; err != nil || len(failed) != 0 {
		t.Errorf("%v, and %d failures", err, len(failed))
	}
}

// A server that does not listen any more fails the call.
func TestSendNowToNobody(t *testing.T) {
	t.Parallel()
	p, r := pipe(t)
	r.Close()
	failed := make(chan error, 1)
	if !p.sendNow(outgoing{text: []byte("x")}, failed) || len(failed) != 1 {
		t.Errorf("%d failures were told, want one", len(failed))
	}
	// The call has failed already: nothing waits for a second reason.
	if !p.sendNow(outgoing{text: []byte("x")}, failed) {
		t.Error("it was not taken")
	}
}
