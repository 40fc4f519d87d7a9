//go:build unix

package rawio

import (
	"os"
	"sync"
	"syscall"
	"time"
)

// writer writes to a pipe what it has room for.
type writer struct {
	mu      sync.Mutex
	raw     syscall.RawConn
	attempt func(fd uintptr) bool
	// text, n and err are what an attempt is about.
	text []byte
	n    int
	err  error
}

func newWriter(f *os.File) func([]byte) (int, error) {
	raw, err := f.SyscallConn()
	if err != nil || f.SetWriteDeadline(time.Time{}) != nil { // it would wait
		return nil
	}
	w := &writer{raw: raw}
	w.attempt = func(fd uintptr) bool {
		w.n, w.err = write(fd, w.text) // the runtime has made it not wait
		return true
	}
	return w.write
}

func (w *writer) write(text []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text = text
	err := w.raw.Write(w.attempt)
	w.text = nil
	if err != nil {
		return 0, err
	}
	if w.err == syscall.EAGAIN || w.err == syscall.EINTR { //nolint:errorlint // it comes from the system as it is
		return 0, nil
	}
	return max(w.n, 0), w.err
}
