package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	scriptwire "github.com/guideway-dev/guideway/internal/hooks/sandbox/wire"
)

// How long a worker may take for what is no script's doing.
const (
	startTime = 15 * time.Second // to be ready
	// lateTime is how long after a call's limit the worker is killed. It has a
	// watchdog of its own, which is earlier.
	lateTime = 150 * time.Millisecond
)

// maxComplaint bounds what is kept of a worker's standard error.
const maxComplaint = 2 << 10

// process is a worker, seen from outside. Only who took it from the pool uses
// it.
type process struct {
	cmd       *exec.Cmd
	in, out   *os.File
	complaint *head
	gone      chan struct{} // closed when the process has ended
	calls     int
	cpu       time.Duration
	frame     []byte // reused
	// missing is the wall that the worker said it has not, before it ran any
	// script; empty is none.
	missing string
}

// startProcess starts a worker and waits until it is ready.
func startProcess(ctx context.Context, o *Options) (*process, error) {
	childIn, in, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe: %w", err)
	}
	out, childOut, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe: %w", errors.Join(err, childIn.Close(), in.Close()))
	}
	p := &process{
		in: in, out: out,
		complaint: &head{}, gone: make(chan struct{}),
	}
	// The process outlives the call that happened to start it.
	p.cmd = exec.CommandContext(context.WithoutCancel(ctx), o.Command[0], o.Command[1:]...) //nolint:gosec // our own binary
	p.cmd.Env = []string{}
	p.cmd.Dir = workDir
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = childIn, childOut, p.complaint
	p.cmd.WaitDelay = time.Second
	ownGroup(p.cmd)
	err = p.cmd.Start()
	err = errors.Join(err, childIn.Close(), childOut.Close())
	if err != nil {
		return nil, fmt.Errorf("start a script worker: %w", errors.Join(err, in.Close(), out.Close()))
	}
	go func() {
		defer close(p.gone)
		_ = p.cmd.Wait() // how it ended is known from the pipe
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
		p.kill()
		return nil, fmt.Errorf("start a script worker: %w%s", err, p.complaint.told())
	}
	return p, nil
}

// awaitReady waits for a new worker's word that it can serve, and gives what it says
// that it lacks.
func (p *process) awaitReady(limit time.Duration) (missing string, err error) {
	if err := p.out.SetReadDeadline(time.Now().Add(limit)); err != nil {
		return "", err
	}
	call, message, err := scriptwire.Read(p.out, 1<<10)
	if err == nil && call != 0 {
		err = errors.New("the worker answers what it was not asked")
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

// errUndelivered is a request that did not reach the worker whole: nothing of it
// can have run.
var errUndelivered = errors.New("the worker was gone")

// exchange sends a request and waits for its answer. A process that gave an
// error is of no further use.
func (p *process) exchange(ctx context.Context, r *scriptwire.Request) (*scriptwire.Answer, error) {
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
	if err := errors.Join(p.in.SetWriteDeadline(end), p.out.SetReadDeadline(end)); err != nil {
		return nil, fmt.Errorf("%w: %w", errUndelivered, err)
	}
	unhook := context.AfterFunc(ctx, func() {
		now := time.Now()
		_ = p.in.SetWriteDeadline(now) // fails only where the pipe is closed
		_ = p.out.SetReadDeadline(now)
	})
	defer unhook()
	if _, err := p.in.Write(frame); err != nil {
		return nil, fmt.Errorf("%w: %w", errUndelivered, err)
	}
	got, message, err := scriptwire.Read(p.out, r.Limits.Output+r.Limits.Console+1<<20)
	if err != nil {
		return nil, err
	}
	if got != call {
		return nil, errors.New("the worker answers what it was not asked")
	}
	a, err := scriptwire.ReadAnswer(message)
	if err != nil {
		return nil, err
	}
	p.calls++
	p.cpu += a.CPU
	return a, nil
}

// kill ends the worker and whatever it may have started, and waits for the end.
func (p *process) kill() {
	select {
	case <-p.gone: // its number may be another's by now
	default:
		killGroup(p.cmd)
	}
	_ = p.in.Close() // nothing is lost with what it held
	_ = p.out.Close()
	<-p.gone
}

// outOfMemory tells whether the process died because it got no more memory.
func (p *process) outOfMemory() bool {
	select {
	case <-p.gone:
	case <-time.After(time.Second):
		return false
	}
	told := p.complaint.told()
	return strings.Contains(told, "out of memory") || strings.Contains(told, "cannot allocate memory")
}

// head keeps the first bytes of what is written to it.
type head struct {
	mu   sync.Mutex
	text []byte
}

var _ io.Writer = (*head)(nil)

// Write keeps what there is room for, and takes all.
func (h *head) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.text = append(h.text, b[:min(len(b), maxComplaint-len(h.text))]...)
	return len(b), nil
}

func (h *head) told() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.text) == 0 {
		return ""
	}
	return "\n" + string(h.text)
}
