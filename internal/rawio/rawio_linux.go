//go:build linux && !race && !msan && !asan

package rawio

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

// most bounds one system call, because nothing else runs on its processor
// meanwhile.
const most = 64 << 10

// transfer makes a system call that does not block. An interrupted one is made
// again.
func transfer(number, fd uintptr, text []byte) (int, syscall.Errno) {
	if len(text) > most {
		text = text[:most]
	}
	for {
		n, _, errno := syscall.RawSyscall(number, fd, uintptr(unsafe.Pointer(unsafe.SliceData(text))), uintptr(len(text))) //nolint:gosec // G103: as package syscall does it
		switch errno {
		case 0:
			return int(n), 0
		case syscall.EINTR:
		default:
			return 0, errno
		}
	}
}

func write(fd uintptr, text []byte) (int, error) {
	n, errno := transfer(syscall.SYS_WRITE, fd, text)
	if errno != 0 {
		return 0, errno
	}
	return n, nil
}

// way is one direction of a connection or pipe.
type way struct {
	mu     sync.Mutex
	number uintptr
	// wait has attempt called until it has done something, and waits in between.
	wait    func(attempt func(fd uintptr) bool) error
	attempt func(fd uintptr) bool
	// text, n and errno are what an attempt is about. They stand here so that one
	// function is made for all attempts.
	text  []byte
	n     int
	errno syscall.Errno
}

func (w *way) open(number uintptr, wait func(func(uintptr) bool) error) {
	w.number, w.wait = number, wait
	w.attempt = func(fd uintptr) bool {
		w.n, w.errno = transfer(w.number, fd, w.text)
		return w.errno != syscall.EAGAIN
	}
}

// once moves some bytes. failed says that nothing was tried any more: the time was
// over, or it was closed.
func (w *way) once(text []byte) (n int, errno syscall.Errno, failed bool) {
	w.text = text
	err := w.wait(w.attempt)
	w.text = nil
	if err != nil {
		return 0, 0, true
	}
	return w.n, w.errno, false
}

// conn is a TCP connection.
type conn struct {
	*net.TCPConn
	in, out way
}

func newConn(tcp *net.TCPConn) net.Conn {
	raw, err := tcp.SyscallConn()
	if err != nil {
		return tcp
	}
	c := &conn{TCPConn: tcp}
	c.in.open(syscall.SYS_READ, raw.Read)
	c.out.open(syscall.SYS_WRITE, raw.Write)
	return c
}

// Read implements net.Conn.
func (c *conn) Read(into []byte) (int, error) {
	if len(into) == 0 {
		return c.TCPConn.Read(into)
	}
	c.in.mu.Lock()
	defer c.in.mu.Unlock()
	n, errno, failed := c.in.once(into)
	switch {
	case failed:
		return c.TCPConn.Read(into) // it says why
	case errno != 0:
		return 0, c.failure("read", errno)
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// Write implements net.Conn.
func (c *conn) Write(text []byte) (written int, err error) {
	if len(text) == 0 {
		return c.TCPConn.Write(text)
	}
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	for written < len(text) {
		n, errno, failed := c.out.once(text[written:])
		switch {
		case failed:
			n, err = c.TCPConn.Write(text[written:]) // it says why
			return written + n, err
		case errno != 0:
			return written, c.failure("write", errno)
		}
		written += n
	}
	return written, nil
}

// failure is an error as the standard library gives it.
func (c *conn) failure(what string, errno syscall.Errno) error {
	return &net.OpError{Op: what, Net: c.LocalAddr().Network(), Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: os.NewSyscallError(what, errno)}
}

// reader reads a pipe.
type reader struct {
	*os.File
	in way
}

func newReader(f *os.File) io.Reader {
	raw, err := f.SyscallConn()
	if err != nil || f.SetReadDeadline(time.Time{}) != nil { // the runtime cannot wait for it
		return f
	}
	r := &reader{File: f}
	r.in.open(syscall.SYS_READ, raw.Read)
	return r
}

// Read implements io.Reader.
func (r *reader) Read(into []byte) (int, error) {
	if len(into) == 0 {
		return 0, nil
	}
	r.in.mu.Lock()
	defer r.in.mu.Unlock()
	n, errno, failed := r.in.once(into)
	switch {
	case failed:
		return r.File.Read(into) // it says why
	case errno != 0:
		return 0, &os.PathError{Op: "read", Path: r.Name(), Err: errno}
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}
