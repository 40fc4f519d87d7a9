package rawio_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/guideway-dev/guideway/internal/rawio"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// connections are both ends of one, of which the first is read and written raw.
func connections(t *testing.T) (raw net.Conn, plain *net.TCPConn) {
	t.Helper()
	inner, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener := rawio.Listener(inner)
	defer listener.Close()
	dialed := make(chan net.Conn, 1)
	go func() {
		c, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", listener.Addr().String())
		if err != nil {
			t.Error(err)
		}
		dialed <- c
	}()
	raw, err = listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	plain = (<-dialed).(*net.TCPConn)
	t.Cleanup(func() { _ = raw.Close(); _ = plain.Close() })
	return raw, plain
}

// What is sent both ways at once arrives whole and in order, however it is cut, and
// the end of it is the end.
func TestConnectionCarries(t *testing.T) {
	t.Parallel()
	raw, plain := connections(t)
	if n, err := raw.Write(nil); n != 0 || err != nil {
		t.Errorf("writing nothing: %d, %v", n, err)
	}
	text := make([]byte, 3<<20)
	for i := range text {
		text[i] = byte(i * 7 >> 3)
	}
	failed := make(chan error, 2)
	for _, c := range []net.Conn{raw, plain} {
		go func() {
			n, err := c.Write(text)
			if n != len(text) {
				err = errors.Join(err, io.ErrShortWrite)
			}
			failed <- errors.Join(err, c.(interface{ CloseWrite() error }).CloseWrite())
		}()
	}
	got := make(chan []byte, 2)
	for _, c := range []net.Conn{raw, plain} {
		go func() {
			all, err := io.ReadAll(c)
			if err != nil {
				t.Error(err)
			}
			got <- all
		}()
	}
	for range 2 {
		if err := <-failed; err != nil {
			t.Error(err)
		}
		if all := <-got; !bytes.Equal(all, text) {
			t.Errorf("%d of %d bytes came, or others", len(all), len(text))
		}
	}
	if n, err := raw.Read(nil); n != 0 || err != nil {
		t.Errorf("reading nothing: %d, %v", n, err)
	}
}

// The errors are those of the standard library: servers look at them.
func TestConnectionFails(t *testing.T) {
	t.Parallel()
	t.Run("late", func(t *testing.T) {
		t.Parallel()
		raw, plain := connections(t)
		reading := make(chan error, 1)
		go func() {
			_, err := raw.Read(make([]byte, 1))
			reading <- err
		}()
		// A deadline ends a read that waits; net/http does that after each request.
		if err := raw.SetReadDeadline(time.Unix(1, 0)); err != nil {
			t.Fatal(err)
		}
		err := <-reading
		var failure net.Error
		if !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &failure) || !failure.Timeout() {
			t.Errorf("a read: %v, want the deadline", err)
		}
		if err := raw.SetWriteDeadline(time.Unix(1, 0)); err != nil {
			t.Fatal(err)
		}
		if n, err := raw.Write([]byte("x")); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a write: %d, %v, want the deadline", n, err)
		}
		if err := raw.SetDeadline(time.Time{}); err != nil {
			t.Fatal(err)
		}
		if _, err := plain.Write([]byte("y")); err != nil {
			t.Fatal(err)
		}
		into := make([]byte, 8)
		if n, err := raw.Read(into); err != nil || string(into[:n]) != "y" {
			t.Errorf("after the deadline: %q, %v", into[:n], err)
		}
	})
	t.Run("closed", func(t *testing.T) {
		t.Parallel()
		raw, _ := connections(t)
		reading := make(chan error, 1)
		go func() {
			_, err := raw.Read(make([]byte, 1))
			reading <- err
		}()
		if err := raw.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-reading; !errors.Is(err, net.ErrClosed) {
			t.Errorf("a read: %v, want that it is closed", err)
		}
		if _, err := raw.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
			t.Errorf("a write: %v, want that it is closed", err)
		}
	})
	t.Run("reset", func(t *testing.T) {
		t.Parallel()
		raw, plain := connections(t)
		if err := plain.SetLinger(0); err != nil {
			t.Fatal(err)
		}
		if err := plain.Close(); err != nil {
			t.Fatal(err)
		}
		_, err := raw.Read(make([]byte, 1))
		var failure *net.OpError
		if !errors.As(err, &failure) || failure.Op != "read" || errors.Is(err, io.EOF) {
			t.Errorf("a read: %v, want an error of the network", err)
		}
		_, err = raw.Write([]byte("x"))
		if !errors.As(err, &failure) || failure.Op != "write" {
			t.Errorf("a write: %v, want an error of the network", err)
		}
	})
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close(); _ = w.Close() })
	return r, w
}

// A pipe is read to its end, and says why there is nothing more.
func TestReader(t *testing.T) {
	t.Parallel()
	r, w := pipe(t)
	in := rawio.Reader(r)
	text := bytes.Repeat([]byte("0123456789"), 50_000)
	go func() {
		_, _ = w.Write(text) // the reader finds what is missing
		_ = w.Close()
	}()
	if all, err := io.ReadAll(in); err != nil || !bytes.Equal(all, text) {
		t.Errorf("%d of %d bytes came, %v", len(all), len(text), err)
	}
	if _, err := in.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("behind the end: %v", err)
	}
	r, _ = pipe(t)
	in = rawio.Reader(r)
	if err := r.SetReadDeadline(time.Unix(1, 0)); err == nil { // where pipes have deadlines
		if _, err := in.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("behind the deadline: %v", err)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Read(make([]byte, 1)); !errors.Is(err, os.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

// What would make a whole processor wait is left to the standard library.
func TestFilesAreLeftAlone(t *testing.T) {
	t.Parallel()
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if rawio.Reader(f) != io.Reader(f) {
		t.Error("a file is read raw")
	}
	if rawio.Writer(f) != nil {
		t.Error("a file is written raw")
	}
}

// A pipe takes what it has room for, and nothing waits.
func TestWriter(t *testing.T) {
	t.Parallel()
	r, w := pipe(t)
	write := rawio.Writer(w)
	if write == nil {
		t.Skip("whether a pipe has room cannot be told here")
	}
	long := bytes.Repeat([]byte("x"), 16<<20)
	written, err := write(long)
	for n := written; err == nil && n > 0; written += n {
		n, err = write(long)
	}
	if err != nil || written == 0 || written >= len(long) {
		t.Fatalf("a pipe has taken %d bytes, %v", written, err)
	}
	if n, err := write([]byte("y")); n != 0 || err != nil {
		t.Errorf("a full pipe has taken %d bytes, %v", n, err)
	}
	if _, err := io.ReadFull(r, make([]byte, written)); err != nil {
		t.Fatal(err)
	}
	if n, err := write([]byte("y")); n != 1 || err != nil {
		t.Errorf("a pipe with room has taken %d bytes, %v", n, err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := write([]byte("z")); err == nil {
		t.Error("nobody reads, and nothing says so")
	}
}
