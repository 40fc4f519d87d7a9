// Package rawio reads and writes connections and pipes without telling the Go
// scheduler of each system call.
//
// The scheduler has a thread that watches over system calls, in case one takes
// long. It sleeps while nothing runs, the first call after that wakes it, and it
// then looks around every 20 us. A gateway with one client is idle twice in each
// call, so that this thread took a fifth of what a call cost (ADR 20). What is read
// and written here never waits in the system: the runtime has made it non-blocking,
// and waits for it by itself. There is nothing to watch over.
//
// Where that cannot be done, on other systems and under the race detector, which
// wants to know what the system writes, everything is as the standard library has
// it.
package rawio

import (
	"io"
	"net"
	"os"
)

// Listener gives a listener whose TCP connections are read and written in this way.
// They do all that a *net.TCPConn does.
func Listener(l net.Listener) net.Listener { return listener{l} }

type listener struct{ net.Listener }

// Accept implements net.Listener.
func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if tcp, ok := c.(*net.TCPConn); ok && err == nil {
		return newConn(tcp), nil
	}
	return c, err
}

// Reader gives what reads a pipe in this way. A file that the runtime cannot wait
// for is given back as it is. One goroutine reads at a time.
func Reader(f *os.File) io.Reader { return newReader(f) }

// Writer gives what writes to a pipe as much as it has room for, and does not wait.
// It is nil where that cannot be told.
func Writer(f *os.File) func(text []byte) (int, error) { return newWriter(f) }

// Whole gives what writes all of a text to a pipe: at once what there is room for,
// and the rest as the file does. One goroutine writes at a time.
func Whole(f *os.File) io.Writer {
	now := Writer(f)
	if now == nil {
		return f
	}
	return whole{f, now}
}

type whole struct {
	file *os.File
	now  func([]byte) (int, error)
}

// Write implements io.Writer.
func (w whole) Write(text []byte) (int, error) {
	n, err := w.now(text)
	if err != nil || n == len(text) {
		return n, err
	}
	rest, err := w.file.Write(text[n:])
	return n + rest, err
}
