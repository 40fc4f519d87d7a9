//go:build unix

package crash

import "syscall"

// dumpSignal makes a process print its goroutine stacks and exit.
const dumpSignal = syscall.SIGQUIT

// Stop suspends the process until Continue.
func (w *Worker[O, R]) Stop() error { return w.cmd.Process.Signal(syscall.SIGSTOP) }

// Continue resumes a suspended process.
func (w *Worker[O, R]) Continue() error { return w.cmd.Process.Signal(syscall.SIGCONT) }
