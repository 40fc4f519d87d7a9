package upstream

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"testing"
)

// A message that does not fit into a full pipe is written completely, and before any other,
// when the server reads again, even if the sender has given up.
func TestSendToASlowServer(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	p := &process{in: w, exited: make(chan struct{})}
	long := bytes.Repeat([]byte("x"), 3<<20)
	ctx, cancel := context.WithCancel(t.Context())
	sent := make(chan error, 1)
	go func() { sent <- p.send(ctx, outgoing{text: long}) }()
	got := make([]byte, 1)
	if _, err := io.ReadFull(r, got); err != nil { // the message is partly written
		t.Fatal(err)
	}
	cancel()
	if err := <-sent; !errors.Is(err, context.Canceled) {
		t.Errorf("the sender that gave up got %v", err)
	}
	if err := p.send(ctx, outgoing{text: []byte("gone")}); err == nil {
		t.Error("a message was sent before the rest of another one")
	}
	go func() { sent <- p.send(t.Context(), outgoing{text: []byte("last")}) }()
	want := string(long[1:]) + "\nlast\n"
	got = make([]byte, len(want))
	if _, err := io.ReadFull(r, got); err != nil || string(got) != want {
		t.Errorf("%v; the server received a different message", err)
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
}

// Lines that wait are written in order. A revoked line is dropped, and the end of the server
// fails the lines of which nothing was written.
func TestWaitingLines(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe()
	p := &process{in: w, exited: make(chan struct{})}
	done := make(chan error, 5)
	post := func(text string) func() { return p.post([]byte(text), func(err error) { done <- err }) }
	read := func(want string) {
		t.Helper()
		got := make([]byte, len(want))
		if _, err := io.ReadFull(r, got); err != nil || string(got) != want {
			t.Errorf("the server got %q, %v; want %q", got, err, want)
		}
	}
	post("one")
	read("o") // The first line is being written.
	post("two")
	revoke := post("revoked")
	post("three")
	revoke()
	read("ne\ntwo\nthree\n")
	for range 3 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	post("partly")
	read("p")
	post("lost")
	p.exit(errors.New("the server exited"))
	if gone := (*GoneError)(nil); !errors.As(<-done, &gone) {
		t.Error("the waiting line has another error")
	}
	post("late")
	if gone := (*GoneError)(nil); !errors.As(<-done, &gone) {
		t.Error("a line after the end has another error")
	}
	r.Close()
	if err := <-done; err != nil {
		t.Errorf("the partly written line failed with %v, but the end of the session describes it", err)
	}
}
