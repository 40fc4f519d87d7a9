//go:build unix

package safeopen

import "syscall"

// nonblock prevents an open from waiting for the other end of a pipe.
const nonblock = syscall.O_NONBLOCK
