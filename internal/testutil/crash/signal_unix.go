//go:build unix

package crash

import "syscall"

// tell has a process say what it waits for, and end.
const tell = syscall.SIGQUIT

// Stop halts the process as it stands, until Continue.
func (w *Worker[O, R]) Stop() error { return w.cmd.Process.Signal(syscall.SIGSTOP) }

// Continue lets a process go on that was stopped.
func (w *Worker[O, R]) Continue() error { return w.cmd.Process.Signal(syscall.SIGCONT) }
