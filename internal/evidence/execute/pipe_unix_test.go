//go:build unix

package execute_test

import "syscall"

func makePipe(name string) error { return syscall.Mkfifo(name, 0o600) }
