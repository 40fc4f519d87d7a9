package upstream

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
)

const (
	// endTime is how long a server may take to end after its input has ended,
	// and again after it was asked by a signal.
	endTime = 250 * time.Millisecond
	// ioTime is how long the pipes are read after the server itself has ended: a
	// child that it has left behind may hold them open.
	ioTime = 100 * time.Millisecond
)

// process is a server that is a process of ours: one message a line on its
// standard input and output.
type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	to  receiver

	writes  chan struct{} // one line at a time
	closing sync.Once
	exited  chan struct{} // closed when the process is gone
}

var _ conn = (*process)(nil)

// startProcess starts a server and reads what it writes. Its messages go to the
// receiver, everything else that it says into the log.
func startProcess(spec Spec, env []string, limit int, log *Ring, to receiver) (*process, error) {
	cmd := exec.Command(spec.Command, spec.Args...) //nolint:gosec,noctx // the person has configured it; close ends it
	cmd.Dir, cmd.Env = spec.Dir, env
	cmd.WaitDelay = ioTime
	ownGroup(cmd)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe: %w", err)
	}
	out, outEnd, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe: %w", err)
	}
	cmd.Stdout, cmd.Stderr = outEnd, log
	err = cmd.Start()
	_ = outEnd.Close() // it is the server's
	if err != nil {
		_ = out.Close()
		return nil, startError(spec, err)
	}
	widen(in, out)
	p := &process{cmd: cmd, in: in, to: to, writes: make(chan struct{}, 1), exited: make(chan struct{})}
	read := make(chan error, 1)
	go func() {
		read <- readMessages(out, limit, log, to)
		_ = out.Close()
	}()
	go func() {
		err := cmd.Wait()
		killGroup(cmd) // what the server has left behind
		_ = out.SetReadDeadline(time.Now().Add(ioTime))
		if readErr := <-read; readErr != nil {
			err = readErr
		}
		close(p.exited)
		to.ended(exitError(err))
	}()
	return p, nil
}

func startError(spec Spec, err error) error {
	if errors.Is(err, exec.ErrNotFound) {
		return guideway.Errorf(guideway.CodeUnavailable, "the program %q is not found", spec.Command).
			WithFix("install it, or give its full path in the upstream's command")
	}
	return guideway.Errorf(guideway.CodeUnavailable, "start %q: %w", spec.Command, err).
		WithFix("see that the command runs in a terminal")
}

// exitError says how a server has ended.
func exitError(err error) error {
	var exit *exec.ExitError
	switch {
	case err == nil, errors.Is(err, exec.ErrWaitDelay):
		return errors.New("the server has ended")
	case errors.As(err, &exit):
		return fmt.Errorf("the server has ended: %s", exit.ProcessState)
	}
	return fmt.Errorf("the server has ended: %w", err)
}

// send implements conn.
func (p *process) send(ctx context.Context, m outgoing) error {
	select {
	case p.writes <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-p.exited:
		return io.ErrClosedPipe
	}
	// A server that does not read fills the pipe. The line under way cannot be
	// taken back, so whoever waits gives up alone, and the write goes on.
	done := make(chan error, 1)
	go func() {
		_, err := p.in.Write(append(jsonrpc.OneLine(m.text), '\n'))
		<-p.writes
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// negotiated implements conn: lines are the same in every version.
func (p *process) negotiated(string) {}

// close implements conn: the input ends, then the whole group of processes is
// asked to end, then it is killed.
func (p *process) close() {
	p.closing.Do(func() {
		go func() { _ = p.in.Close() }() // it waits for a write under way
		for _, end := range []func(*exec.Cmd){askGroup, killGroup} {
			timer := time.NewTimer(endTime)
			select {
			case <-p.exited:
				timer.Stop()
				return
			case <-timer.C:
				end(p.cmd)
			}
		}
	})
	<-p.exited
}

// readMessages hands on the lines of a server until they end. A line that is no
// object is something that the server says to a person.
func readMessages(out io.Reader, limit int, log *Ring, to receiver) error {
	in := bufio.NewReaderSize(out, 64<<10)
	for {
		l, err := readLine(in, limit, true)
		switch text := bytes.TrimSpace(l.begin); {
		case len(text) == 0:
		case l.tooLong && tells(l.begin):
			fmt.Fprintf(log, "(a message of more than %d bytes was dropped)\n", limit)
		case l.tooLong:
			to.unreadable(guessID(l.begin, l.end), guideway.Errorf(guideway.CodeTooLarge, "an answer is larger than %d bytes", limit))
		case text[0] == '{' || text[0] == '[':
			deliver(to, text, "")
		default:
			fmt.Fprintf(log, "(on its standard output) %s\n", strings.ToValidUTF8(string(text), "?"))
		}
		if errors.Is(err, io.EOF) || errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, os.ErrClosed) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read from the server: %w", err)
		}
	}
}

// line is a line without its end; of one that is too long the beginning and the
// end.
type line struct {
	begin, end []byte
	tooLong    bool
}

// endBytes is how much is kept of the end of a line that is too long.
const endBytes = 256

// readLine reads a line and keeps at most limit bytes of it. One that is longer it
// reads to its end only where more lines are to be read.
func readLine(in *bufio.Reader, limit int, more bool) (line, error) {
	var l line
	for {
		part, err := in.ReadSlice('\n')
		switch {
		case !l.tooLong && len(l.begin)+len(part) <= limit+1:
			if errors.Is(err, bufio.ErrBufferFull) && l.begin == nil {
				l.begin = make([]byte, 0, len(part)*9/8) // most lines that are longer end soon
			}
			l.begin = append(l.begin, part...)
		default:
			if !l.tooLong {
				l.tooLong = true
				l.begin = l.begin[:min(len(l.begin), endBytes):min(len(l.begin), endBytes)]
			}
			l.end = append(l.end, part[max(0, len(part)-endBytes):]...)
			l.end = l.end[max(0, len(l.end)-endBytes):]
			if !more {
				return l, nil
			}
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return l, err
		}
	}
}
