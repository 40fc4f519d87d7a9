//go:build unix

package worker

import (
	"io"
	"os"
	"syscall"
	"time"

	"github.com/guideway-dev/guideway/internal/rawio"
)

// pipes gives the process's ends of the pool's pipes so that the runtime waits for
// them, and no thread in a system call does: the scheduler's monitor would be woken
// for it in each call.
func pipes(in io.Reader, out io.Writer) (io.Reader, io.Writer) {
	if f, ok := in.(*os.File); ok {
		if f := waitable(f); f != nil {
			in = rawio.Reader(f)
		}
	}
	if f, ok := out.(*os.File); ok {
		if f := waitable(f); f != nil {
			out = rawio.Whole(f)
		}
	}
	return in, out
}

// waitable is a pipe that the runtime can wait for, or nil. What is not ours alone,
// as a terminal, stays as it is.
func waitable(f *os.File) *os.File {
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		return nil
	}
	fd := f.Fd()
	if syscall.SetNonblock(int(fd), true) != nil {
		return nil
	}
	return os.NewFile(fd, f.Name())
}

// processorTime is what the process has used so far.
func processorTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
