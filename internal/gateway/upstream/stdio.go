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
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
)

const (
	// endTime is the time that a server has to exit after its input is closed, and again
	// after the signal.
	endTime = 250 * time.Millisecond
	// ioTime is the time during which the pipes are still read after the server has exited:
	// a child process may keep them open.
	ioTime = 100 * time.Millisecond
)

// process is a server in a child process, with one message per line on stdin and stdout.
type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser

	closing sync.Once
	exited  chan struct{} // exited is closed after the process has exited.

	mu sync.Mutex
	// waiting are the lines that are not written yet; writing reports whether a goroutine
	// writes them.
	waiting []*queuedLine
	writing bool
	end     error // end is the reason for the exit, set before exited is closed.
}

// queuedLine is a line that waits to be written. done gets the outcome of the write; it must
// not block.
type queuedLine struct {
	text []byte
	done func(error)
}

var _ conn = (*process)(nil)

// startProcess starts a server and reads its output. Messages go to the receiver, all other
// output to the log.
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
	_ = outEnd.Close() // The other end is only for the server.
	if err != nil {
		_ = out.Close()
		return nil, startError(spec, err)
	}
	widenPipes(in, out)
	p := &process{cmd: cmd, in: in, exited: make(chan struct{})}
	read := make(chan error, 1)
	go func() {
		read <- readMessages(out, limit, log, to)
		_ = out.Close()
	}()
	go func() {
		err := cmd.Wait()
		killGroup(cmd) // killGroup kills child processes that the server left.
		if readErr := awaitEnd(out, read); readErr != nil {
			err = readErr
		}
		p.exit(exitError(err))
		to.ended(p.end)
	}()
	return p, nil
}

// awaitEnd waits for the end of the output of a server that has exited, and returns the
// error of reading it. A child process may keep the output open. On Windows pipes have no
// deadlines, so the reading goroutine may outlive the server.
func awaitEnd(out *os.File, read <-chan error) error {
	if err := out.SetReadDeadline(time.Now().Add(ioTime)); !errors.Is(err, os.ErrNoDeadline) {
		return <-read // another error means that the output is closed
	}
	select {
	case err := <-read:
		return err
	case <-time.After(ioTime):
		return nil
	}
}

func startError(spec Spec, err error) error {
	if errors.Is(err, exec.ErrNotFound) {
		return guideway.Errorf(guideway.CodeUnavailable, "the program %q was not found", spec.Command).
			WithFix("install the program, or use its full path in the upstream's command")
	}
	return guideway.Errorf(guideway.CodeUnavailable, "start %q: %w", spec.Command, err).
		WithFix("check that the command runs in a terminal")
}

// exitError describes how a server exited.
func exitError(err error) error {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return errors.New("the server exited: exit status 0")
	case errors.Is(err, exec.ErrWaitDelay):
		return errors.New("the server exited")
	case errors.As(err, &exit):
		return fmt.Errorf("the server exited: %s", exit.ProcessState)
	}
	return fmt.Errorf("the server exited: %w", err)
}

// send implements conn.
func (p *process) send(ctx context.Context, m outgoing) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	done := make(chan error, 1)
	revoke := p.post(m.text, func(err error) { done <- err })
	defer revoke()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// post writes a message in the background, after the earlier ones. A server that does not
// read fills the pipe, so a partly written line is written to its end. revoke drops a line
// of which nothing is written.
func (p *process) post(text []byte, done func(error)) (revoke func()) {
	line := &queuedLine{jsonrpc.OneLine(text), done}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.end != nil {
		done(errNotSent(p.end))
		return func() {}
	}
	p.waiting = append(p.waiting, line)
	if !p.writing {
		p.writing = true
		go p.writeLines()
	}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.waiting = slices.DeleteFunc(p.waiting, func(l *queuedLine) bool { return l == line })
	}
}

func errNotSent(end error) error {
	return &GoneError{Reason: fmt.Errorf("the call was not sent: %w", end)}
}

// writeBytes is the size from which no further line is added to a write.
const writeBytes = 32 << 10

// writeLines writes the waiting lines. With many concurrent calls several lines share a
// write, which wakes the server once.
func (p *process) writeLines() {
	for {
		p.mu.Lock()
		lines, size := p.waiting, 0
		p.waiting = nil
		for i, l := range lines {
			if size += len(l.text); size > writeBytes && i > 0 {
				lines, p.waiting = lines[:i], slices.Clone(lines[i:])
				break
			}
		}
		p.writing = len(lines) > 0
		p.mu.Unlock()
		if len(lines) == 0 {
			return
		}
		text := lines[0].text
		for _, l := range lines[1:] {
			text = append(append(text, '\n'), l.text...)
		}
		_, err := p.in.Write(append(text, '\n'))
		err = p.writeError(err)
		for _, l := range lines {
			l.done(err)
		}
	}
}

// exit records the end of the process, and fails the lines that were not written.
func (p *process) exit(reason error) {
	p.mu.Lock()
	p.end = reason
	lines := p.waiting
	p.waiting = nil
	p.mu.Unlock()
	close(p.exited)
	for _, l := range lines {
		l.done(errNotSent(reason))
	}
}

// negotiated implements conn: all versions use the same format.
func (p *process) negotiated(string) {}

// writeError describes an error of a write. It returns nil if the server has exited,
// because the end of the session describes that better.
func (p *process) writeError(err error) error {
	if err == nil {
		return nil
	}
	select {
	case <-p.exited:
		return nil
	case <-time.After(ioTime):
		return &NoAnswer{Err: guideway.Errorf(guideway.CodeUnavailable, "write to the server: %w; it is unknown whether the call was carried out", rootCause(err)).
			WithFix("check at the server whether the call was carried out, before you repeat it")}
	}
}

// close implements conn. It closes the input, then sends the process group a signal, then
// kills it.
func (p *process) close() {
	p.closing.Do(func() {
		go func() { _ = p.in.Close() }() // Close waits for a write in progress.
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

// readMessages delivers the lines of a server until its output ends. A line that does not
// begin like an object or a list is a log line.
func readMessages(out io.Reader, limit int, log *Ring, to receiver) error {
	in := bufio.NewReaderSize(out, 64<<10)
	for {
		l, err := readLine(in, limit, true)
		switch text := bytes.TrimSpace(l.begin); {
		case len(text) == 0:
		case l.tooLong && isNotification(l.begin):
			fmt.Fprintf(log, "(a message of more than %d bytes was dropped)\n", limit)
		case l.tooLong:
			to.unreadable(guessID(l.begin, l.end), errTooLarge(limit))
		case text[0] == '{' || text[0] == '[':
			deliverMessage(to, text, "")
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

// line is a line of output; begin may include the line break. Of an overlong line, begin is
// the start and end is the end.
type line struct {
	begin, end []byte
	tooLong    bool
}

// endBytes is the number of bytes kept from the end of an overlong line.
const endBytes = 256

// readLine reads a line and keeps at most limit bytes of it. It reads an overlong line to
// its end only if more is true.
func readLine(in *bufio.Reader, limit int, more bool) (line, error) {
	var l line
	for {
		part, err := in.ReadSlice('\n')
		switch {
		case !l.tooLong && len(l.begin)+len(part) <= limit+1:
			if errors.Is(err, bufio.ErrBufferFull) && l.begin == nil {
				l.begin = make([]byte, 0, len(part)*9/8) // most longer lines are only slightly longer
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

// ringBytes is the maximum size of the kept lines.
const ringBytes = 64 << 10

// Ring keeps the last lines of a server's stderr, and forwards each line. Its zero value is
// ready to use; it is safe for concurrent use.
type Ring struct {
	// Line, if set, is called with each line, in the writing goroutine.
	Line func(line string)

	mu   sync.Mutex
	kept []byte
	part []byte
}

var _ io.Writer = (*Ring)(nil)

// Write implements io.Writer. It never fails.
func (r *Ring) Write(text []byte) (int, error) {
	r.mu.Lock()
	r.part = append(r.part, text...)
	var lines []string
	for {
		n := bytes.IndexByte(r.part, '\n')
		if n < 0 && len(r.part) > ringBytes/4 {
			n = len(r.part) - 1 // an overlong line is cut
		}
		if n < 0 {
			break
		}
		line := plainText(string(bytes.TrimRight(r.part[:n+1], "\r\n")))
		lines = append(lines, line)
		r.part = r.part[n+1:]
		r.kept = append(append(r.kept, line...), '\n')
	}
	if over := len(r.kept) - ringBytes; over > 0 {
		if n := bytes.IndexByte(r.kept[over:], '\n'); n >= 0 {
			over += n + 1
		}
		r.kept = append([]byte(nil), r.kept[over:]...)
	}
	r.mu.Unlock()
	if r.Line != nil {
		for _, line := range lines {
			r.Line(line)
		}
	}
	return len(text), nil
}

// Last returns the last lines, at most n.
func (r *Ring) Last(n int) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	lines := strings.Split(strings.TrimSuffix(string(r.kept), "\n"), "\n")
	if len(lines) == 1 && lines[0] == "" {
		return nil
	}
	return lines[max(0, len(lines)-n):]
}

// plainText removes control characters other than tabs, and replaces invalid UTF-8.
func plainText(line string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' && c != '\t' || c == 0x7f || c >= 0x80 && c < 0xa0 {
			return -1
		}
		return c
	}, strings.ToValidUTF8(line, "?"))
}
