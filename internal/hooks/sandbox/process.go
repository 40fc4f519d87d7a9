package sandbox

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
	scriptwire "github.com/guideway-dev/guideway/internal/hooks/sandbox/protocol"
	"github.com/guideway-dev/guideway/internal/platform/procsession"
)

// Time limits of a worker, apart from those of scripts.
const (
	startTime = 15 * time.Second // maximum time until a worker is ready
	// lateTime is added to a call's timeout and its grace period; after that, the worker is
	// killed. The worker's own watchdog acts earlier.
	lateTime = 150 * time.Millisecond
)

// maxComplaint is the maximum size of a worker's kept stderr.
const maxComplaint = 2 << 10

// process is the pool's side of a worker. Only the goroutine that acquired it uses it.
type process struct {
	cmd       *exec.Cmd
	in, out   *os.File
	complaint *head
	gone      chan struct{} // closed after the process has exited
	calls     int
	cpu       time.Duration
	frame     []byte // buffer for frames, reused
	// missing is the protection that the worker lacks, as it reported before the first
	// script; empty if none.
	missing string
}

// startProcess starts a worker and waits until it is ready.
func startProcess(ctx context.Context, o *Options) (*process, error) {
	childIn, in, err := o.makePipe()
	if err != nil {
		return nil, fmt.Errorf("create a pipe: %w", err)
	}
	out, childOut, err := o.makePipe()
	if err != nil {
		return nil, fmt.Errorf("create a pipe: %w", errors.Join(err, childIn.Close(), in.Close()))
	}
	p := &process{
		in: in, out: out,
		complaint: &head{}, gone: make(chan struct{}),
	}
	// The process outlives the call that started it.
	p.cmd = exec.CommandContext(context.WithoutCancel(ctx), o.Command[0], o.Command[1:]...) //nolint:gosec // the worker is this program
	p.cmd.Env = []string{}
	p.cmd.Dir = workDir
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = childIn, childOut, p.complaint
	p.cmd.WaitDelay = time.Second
	procsession.Own(p.cmd)
	err = p.cmd.Start()
	err = errors.Join(err, childIn.Close(), childOut.Close())
	if err != nil {
		return nil, fmt.Errorf("start a script worker: %w", errors.Join(err, in.Close(), out.Close()))
	}
	go func() {
		defer close(p.gone)
		_ = p.cmd.Wait() // the pipe shows how the process ended
	}()
	setup := scriptwire.Setup{
		Memory:     o.Most.Memory,
		CPUSeconds: uint64((maxLife + 2*o.Most.CPU) / time.Second),
	}
	frame, err := scriptwire.Finish(setup.Append(scriptwire.Begin(nil, 0)))
	if err == nil {
		_, err = p.in.Write(frame)
	}
	if err == nil {
		p.missing, err = p.awaitReady(startTime)
	}
	if err != nil {
		p.killAndWait()
		return nil, fmt.Errorf("start a script worker: %w%s", err, p.complaint.keptText())
	}
	return p, nil
}

// awaitReady waits until a new worker is ready, and returns the protection that it lacks.
func (p *process) awaitReady(limit time.Duration) (missing string, err error) {
	finish, err := p.limitIO(time.Now().Add(limit))
	if err != nil {
		return "", err
	}
	call, message, err := scriptwire.Read(p.out, 1<<10)
	err = finish(err)
	if err == nil && call != 0 {
		err = errors.New("the worker sent a response without a request")
	}
	if err != nil {
		return "", err
	}
	a, err := scriptwire.ReadAnswer(message)
	if err != nil {
		return "", err
	}
	return a.Message, nil
}

// limitIO sets a time limit for the communication with the worker. The caller must pass the
// error of the communication to finish, which removes the limit and returns the error, or a
// timeout if the limit caused it. Pipes have no deadlines on Windows: there the worker is
// killed at the limit.
func (p *process) limitIO(end time.Time) (finish func(error) error, err error) {
	err = errors.Join(p.in.SetWriteDeadline(end), p.out.SetReadDeadline(end))
	if !errors.Is(err, os.ErrNoDeadline) {
		return func(err error) error { return err }, err
	}
	timer := time.AfterFunc(time.Until(end), p.kill)
	return func(err error) error {
		if timer.Stop() {
			return err
		}
		p.calls = maxCalls // the process is not used again
		if err == nil {
			return nil
		}
		return fmt.Errorf("%w: %w", os.ErrDeadlineExceeded, err)
	}, nil
}

// errUndelivered is returned for a request that did not reach the worker completely: the
// call cannot have run.
var errUndelivered = errors.New("the worker had exited")

// exchange sends a request and waits for its answer. It passes the questions of the script
// to host. After an error the process is unusable.
func (p *process) exchange(ctx context.Context, r *scriptwire.Request, host Host) (*scriptwire.Answer, error) {
	select {
	case <-p.gone:
		return nil, errUndelivered
	default:
	}
	call := rand.Uint64() | 1 //nolint:gosec // G404: it tells answers apart, and is no secret from the worker
	frame, err := scriptwire.Finish(r.Append(scriptwire.Begin(p.frame, call)))
	if err != nil {
		return nil, err
	}
	if cap(frame) <= 1<<20 {
		p.frame = frame
	}
	end := time.Now().Add(r.Limits.Wall + scriptwire.Grace + lateTime)
	finish, err := p.limitIO(end)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUndelivered, err)
	}
	unhook := context.AfterFunc(ctx, func() {
		now := time.Now()
		// Any other error means that the pipe is closed.
		if err := errors.Join(p.in.SetWriteDeadline(now), p.out.SetReadDeadline(now)); errors.Is(err, os.ErrNoDeadline) {
			p.kill()
		}
	})
	defer unhook()
	if _, err := p.in.Write(frame); err != nil {
		return nil, fmt.Errorf("%w: %w", errUndelivered, finish(err))
	}
	ctx, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	a, err := p.readAnswer(r, call)
	for asked := 1; err == nil && a.Ask != nil; asked++ {
		// If this fails because the worker has ended the script, its answer can be read.
		_, _ = p.in.Write(replyFrame(ctx, call, host, a.Ask, asked))
		a, err = p.readAnswer(r, call)
	}
	if err = finish(err); err != nil {
		return nil, err
	}
	p.calls++
	p.cpu += a.CPU
	return a, nil
}

// readAnswer reads an answer to a request, which may be a question.
func (p *process) readAnswer(r *scriptwire.Request, call uint64) (*scriptwire.Answer, error) {
	got, message, err := scriptwire.Read(p.out, r.Limits.Output+r.Limits.Console+1<<20)
	if err != nil {
		return nil, err
	}
	if got != call {
		return nil, errors.New("the worker sent a response without a request")
	}
	return scriptwire.ReadAnswer(message)
}

// maxAsked is the maximum number of questions of one call.
const maxAsked = 100

// replyFrame returns the frame with the reply to a question.
func replyFrame(ctx context.Context, call uint64, host Host, question []byte, asked int) []byte {
	var reply scriptwire.Reply
	var err error
	switch {
	case host == nil:
		err = errors.New("only hooks of the gateway have a state")
	case asked > maxAsked:
		err = fmt.Errorf("the script has used the state %d times, the maximum", maxAsked)
	default:
		reply.Value, err = host(ctx, question)
	}
	if err != nil {
		reply = scriptwire.Reply{Error: cmp.Or(err.Error(), "the host returned an error")}
		if fix := guideway.ErrorFix(err); fix != "" {
			reply.Error += "; " + fix
		}
	}
	text, err := json.Marshal(reply)
	if err != nil || len(text) > scriptwire.MaxReply {
		text = []byte(`{"error":"the host returned an invalid reply"}`)
	}
	frame, _ := scriptwire.Finish(append(scriptwire.Begin(nil, call), text...)) // cannot fail: it is short
	return frame
}

// kill kills the worker with its child processes.
func (p *process) kill() {
	select {
	case <-p.gone: // the process has exited, and its number may have been reused
	default:
		_ = procsession.Kill(p.cmd)
	}
}

// killAndWait kills the worker with its child processes, and waits for the exit.
func (p *process) killAndWait() {
	select {
	case <-p.gone: // the process has exited, and its number may have been reused
	default:
		_ = procsession.Kill(p.cmd)
	}
	_ = p.in.Close() // unsent data is not needed
	_ = p.out.Close()
	<-p.gone
}

// outOfMemory reports whether the process exited because it could not allocate memory.
func (p *process) outOfMemory() bool {
	select {
	case <-p.gone:
	case <-time.After(time.Second):
		return false
	}
	told := p.complaint.keptText()
	return strings.Contains(told, "out of memory") || strings.Contains(told, "cannot allocate memory")
}

// head is a writer that keeps the first bytes.
type head struct {
	mu   sync.Mutex
	text []byte
}

var _ io.Writer = (*head)(nil)

// Write keeps the bytes that fit, and drops the rest without an error.
func (h *head) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.text = append(h.text, b[:min(len(b), maxComplaint-len(h.text))]...)
	return len(b), nil
}

func (h *head) keptText() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.text) == 0 {
		return ""
	}
	return "\n" + string(h.text)
}
