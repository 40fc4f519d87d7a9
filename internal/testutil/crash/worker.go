package crash

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"
)

// ErrDied is returned if a worker ended before it replied. The outcome of the order is
// unknown.
var ErrDied = errors.New("the worker died")

// replyTimeout bounds the time for an order, so that a test does not hang.
const replyTimeout = 2 * time.Minute

// placeVariable is the environment variable that makes a test binary a worker. Its value is
// the Place as JSON.
const placeVariable = "GUIDEWAY_CRASH_PLACE"

// readyNumber is the number of the reply that a worker writes after it opened its store.
const readyNumber = 0

// message is an order or a reply on the wire.
type message[T any] struct {
	Number int `json:"number"`
	Body   T   `json:"body"`
}

// ReplyNumber returns the number of the reply in a line of a worker's output.
func ReplyNumber(text []byte) (n int, ok bool) {
	var l message[json.RawMessage]
	err := json.Unmarshal(text, &l)
	return l.Number, err == nil
}

// Place describes what a worker opens. It is sent as JSON.
type Place interface {
	// Disk returns the directory of the worker and its limits.
	Disk() Disk
}

// Reply is the reply to an order.
type Reply interface {
	// OK reports whether the order succeeded.
	OK() bool
}

// Worker is a process that executes orders O and replies with R.
type Worker[O any, R Reply] struct {
	t      testing.TB
	cmd    *exec.Cmd
	in     io.WriteCloser
	errors bytes.Buffer
	// opened waits for the first reply.
	opened func() (R, error)
	// ended is closed when the process has ended and its output was read.
	ended chan struct{}

	mu      sync.Mutex
	last    int
	waiting map[int]chan R
	// replies counts the replies; more is closed when the next reply is read.
	replies int
	more    chan struct{}
}

// StartWorker starts a worker, with a command prefix if front is given. It does not wait
// until the worker is ready.
func StartWorker[O any, R Reply](t testing.TB, p Place, front ...string) *Worker[O, R] {
	t.Helper()
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := slices.Concat(front, []string{self})
	w := &Worker[O, R]{t: t, ended: make(chan struct{}), more: make(chan struct{})}
	first := make(chan R, 1)
	w.waiting = map[int]chan R{readyNumber: first}
	w.opened = sync.OnceValues(func() (R, error) { return w.waitReply(readyNumber, first) })
	w.cmd = exec.CommandContext(t.Context(), command[0], command[1:]...)
	// A worker is short-lived, so there is little garbage to collect.
	w.cmd.Env = append(os.Environ(), "GOGC=400", placeVariable+"="+string(text))
	w.cmd.Stderr = &w.errors
	p.Disk().prepareCmd(w.cmd)
	if w.in, err = w.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go w.readReplies(out)
	t.Cleanup(w.Kill)
	return w
}

// readReplies passes replies to their waiters until the process ends.
func (w *Worker[O, R]) readReplies(out io.Reader) {
	defer close(w.ended)
	lines := bufio.NewReader(out)
	for {
		text, err := lines.ReadBytes('\n')
		if err != nil { // an incomplete line does not acknowledge an order
			break
		}
		var l message[R]
		if json.Unmarshal(text, &l) != nil {
			w.t.Errorf("a worker replied %q", text)
			continue
		}
		w.mu.Lock()
		answer := w.waiting[l.Number]
		delete(w.waiting, l.Number)
		w.replies++
		close(w.more)
		w.more = make(chan struct{})
		w.mu.Unlock()
		if answer != nil {
			answer <- l.Body
		}
	}
	_ = w.cmd.Wait() // a killed process returns an error
}

// waitReply waits for the reply to an order. It returns ErrDied if the worker ended or did
// not reply in time.
func (w *Worker[O, R]) waitReply(number int, answer chan R) (reply R, err error) {
	late := time.NewTimer(replyTimeout)
	defer late.Stop()
	select {
	case reply = <-answer:
		return reply, nil
	case <-w.ended:
		select {
		case reply = <-answer: // the last reply of a worker that has ended
			return reply, nil
		default:
			return reply, ErrDied
		}
	case <-late.C:
		_ = w.cmd.Process.Signal(dumpSignal) // the worker prints its goroutine stacks
		<-w.ended
		w.t.Errorf("a worker did not reply to order %d\n%s", number, w.Stderr())
		return reply, ErrDied
	}
}

// Opened waits for the first reply.
func (w *Worker[O, R]) Opened() (R, error) { return w.opened() }

// MustOpen waits until the worker is ready, and fails the test otherwise.
func (w *Worker[O, R]) MustOpen() *Worker[O, R] {
	w.t.Helper()
	r, err := w.Opened()
	if err != nil || !r.OK() {
		w.t.Fatalf("a worker cannot open its store: %v %+v\n%s", err, r, w.Stderr())
	}
	return w
}

// Do sends an order and waits for the reply.
func (w *Worker[O, R]) Do(o O) (R, error) {
	_, answer := w.Send(o)
	return answer()
}

// Send sends an order. It returns the number of the order and a function that waits for the
// reply.
func (w *Worker[O, R]) Send(o O) (number int, answer func() (R, error)) {
	var none R
	replies := make(chan R, 1)
	w.mu.Lock()
	w.last++
	number = w.last
	w.waiting[number] = replies
	w.mu.Unlock()
	text, err := json.Marshal(message[O]{Number: number, Body: o})
	if err != nil {
		return number, func() (R, error) { return none, err }
	}
	if _, err := w.in.Write(append(text, '\n')); err != nil {
		return number, func() (R, error) { return none, ErrDied }
	}
	return number, func() (R, error) { return w.waitReply(number, replies) }
}

// MustDo sends an order that must succeed.
func (w *Worker[O, R]) MustDo(o O) R {
	w.t.Helper()
	r, err := w.Do(o)
	if err != nil || !r.OK() {
		w.t.Fatalf("%+v: %v %+v\n%s", o, err, r, w.Stderr())
	}
	return r
}

// WaitReplies waits for a number of further replies or the end of the worker.
func (w *Worker[O, R]) WaitReplies(replies int) {
	w.mu.Lock()
	until := w.replies + replies
	w.mu.Unlock()
	for {
		w.mu.Lock()
		enough, more := w.replies >= until, w.more
		w.mu.Unlock()
		if enough {
			return
		}
		select {
		case <-more:
		case <-w.ended:
			return
		}
	}
}

// PID returns the id of the process.
func (w *Worker[O, R]) PID() int { return w.cmd.Process.Pid }

// Kill kills the process and waits for its end.
func (w *Worker[O, R]) Kill() {
	_ = w.cmd.Process.Kill()
	<-w.ended
	_ = w.in.Close()
}

// Shutdown closes the input of the worker and waits for its end.
func (w *Worker[O, R]) Shutdown() {
	w.t.Helper()
	_ = w.in.Close()
	<-w.ended
	if w.cmd.ProcessState == nil || !w.cmd.ProcessState.Success() {
		w.t.Errorf("a worker ended with %v\n%s", w.cmd.ProcessState, w.Stderr())
	}
}

// Stderr returns the standard error of a worker that has ended.
func (w *Worker[O, R]) Stderr() string {
	select {
	case <-w.ended:
		return w.errors.String()
	default:
		return "(it is still running)"
	}
}
