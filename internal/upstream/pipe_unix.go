//go:build unix

package upstream

import (
	"io"
	"os"
	"syscall"
)

// writerOf gives what writes to a pipe as much as it has room for, and does not
// wait. It is nil for what is no file.
func writerOf(w io.Writer) func([]byte) (int, error) {
	file, ok := w.(*os.File)
	if !ok {
		return nil
	}
	raw, err := file.SyscallConn()
	if err != nil {
		return nil
	}
	return func(text []byte) (written int, err error) {
		failure := raw.Write(func(fd uintptr) bool {
			written, err = syscall.Write(int(fd), text) // the runtime has made it not wait
			return true
		})
		if failure != nil {
			return 0, failure
		}
		if err == syscall.EAGAIN || err == syscall.EINTR {
			err = nil
		}
		return max(written, 0), err
	}
}
