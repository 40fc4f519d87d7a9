package upstream

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// pipeBytes is larger than the default of 64 kB, because reader and writer must alternate
// when a pipe is full. It is not larger still, because the system limits the total size of
// a user's pipes.
const pipeBytes = 256 << 10

// widenPipes enlarges pipes. If the system refuses, they keep their size.
func widenPipes(pipes ...any) {
	for _, each := range pipes {
		file, ok := each.(interface {
			SyscallConn() (syscall.RawConn, error)
		})
		if !ok {
			continue
		}
		raw, err := file.SyscallConn()
		if err != nil {
			continue
		}
		_ = raw.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, pipeBytes) })
	}
}
