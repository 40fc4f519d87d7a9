package upstream

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// pipeBytes is room for messages that are somewhat longer than the 64 kB that a
// pipe has otherwise: each time that one is full both sides have to take turns.
// The system bounds what a user's pipes have together, so it is not more.
const pipeBytes = 256 << 10

// widen gives pipes more room. Where the system does not want that they stay as
// they are.
func widen(pipes ...any) {
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
