//go:build unix && (!linux || race || msan || asan)

package rawio

import "syscall"

func write(fd uintptr, text []byte) (int, error) { return syscall.Write(int(fd), text) }
