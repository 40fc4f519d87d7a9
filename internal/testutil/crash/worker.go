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

// ErrDied says that a worker ended before it answered: whether it has carried
// out the order, nobody knows.
var ErrDied = errors.New("the worker died")

// patience is how long a worker that is alive may take for an order. It bounds
// a test that would hang, and measures nothing.
const patience = 2 * time.Minute

// variable makes a test program a worker: it has the place to work at.
const variable = "GUIDEWAY_CRASH_PLACE"

// ready is the number of the line that a worker writes when it has opened its
// place, or has failed to.
const ready = 0

// line is what orders and replies go in.
type line[T any] struct {
	Number int `json:"number"`
	Body   T   `json:"body"`
}

// Number is that of the reply that a line of a worker's output is.
func Number(text []byte) (n int, ok bool) {
	var l line[json.RawMessage]
	err := json.Unmarshal(text, &l)
	return l.Number, err == nil
}

// Place is where a worker works: a value that JSON carries.
type Place interface {
	// Disk is the directory that the worker confines itself to.
	Disk() Disk
}

// Reply is the answer to an order.
type Reply interface {
	// OK says that the order was carried out.
	OK() bool
}

// Worker is a process that carries out orders O and answers them by R.
type Worker[O any, R Reply] struct {
	t      testing.TB
	cmd    *exec.Cmd
	in     io.WriteCloser
	errors bytes.Buffer
	// opened waits for the line that says that the place is open.
	opened func() (R, error)
	// ended is closed when the process has ended and all it said was read.
	ended chan struct{}

	mu      sync.Mutex
	last    int
	waiting map[int]chan R
	// replies counts them; more is closed with the next one.
	replies int
	more    chan struct{}
}

// Hire starts a worker, by another program in front of it if that is given, and
// does not wait until it is ready.
func Hire[O any, R Reply](t testing.TB, p Place, front ...string) *Worker[O, R] {
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
	w.waiting = map[int]chan R{ready: first}
	w.opened = sync.OnceValues(func() (R, error) { return w.wait(ready, first) })
	w.cmd = exec.CommandContext(t.Context(), command[0], command[1:]...)
	// A worker lives for moments: there is little in it to collect.
	w.cmd.Env = append(os.Environ(), "GOGC=400", variable+"="+string(text))
	w.cmd.Stderr = &w.errors
	p.Disk().prepare(w.cmd)
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
	go w.listen(out)
	t.Cleanup(w.Kill)
	return w
}

// listen passes replies on until there are no more, and sees the process off.
func (w *Worker[O, R]) listen(out io.Reader) {
	defer close(w.ended)
	lines := bufio.NewReader(out)
	for {
		text, err := lines.ReadBytes('\n')
		if err != nil { // half a line acknowledges nothing
			break
		}
		var l line[R]
		if json.Unmarshal(text, &l) != nil {
			w.t.Errorf("a worker said %q", text)
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
	_ = w.cmd.Wait() // that it was killed is no news
}

// wait gives the reply to an order, or ErrDied.
func (w *Worker[O, R]) wait(number int, answer chan R) (reply R, err error) {
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case reply = <-answer:
		return reply, nil
	case <-w.ended:
		select {
		case reply = <-answer: // the last thing that it said
			return reply, nil
		default:
			return reply, ErrDied
		}
	case <-late.C:
		_ = w.cmd.Process.Signal(tell) // it then says what it waits for
		<-w.ended
		w.t.Errorf("a worker does not answer order %d\n%s", number, w.Said())
		return reply, ErrDied
	}
}

// Opened waits until the worker has opened its place, or has said why not.
func (w *Worker[O, R]) Opened() (R, error) { return w.opened() }

// MustOpen waits until the worker is ready, which it must become.
func (w *Worker[O, R]) MustOpen() *Worker[O, R] {
	w.t.Helper()
	r, err := w.Opened()
	if err != nil || !r.OK() {
		w.t.Fatalf("a worker does not open its place: %v %+v\n%s", err, r, w.Said())
	}
	return w
}

// Do has an order carried out.
func (w *Worker[O, R]) Do(o O) (R, error) {
	_, answer := w.Send(o)
	return answer()
}

// Send sends an order, and gives its number and the way to wait for the answer.
func (w *Worker[O, R]) Send(o O) (number int, answer func() (R, error)) {
	var none R
	replies := make(chan R, 1)
	w.mu.Lock()
	w.last++
	number = w.last
	w.waiting[number] = replies
	w.mu.Unlock()
	text, err := json.Marshal(line[O]{Number: number, Body: o})
	if err != nil {
		return number, func() (R, error) { return none, err }
	}
	if _, err := w.in.Write(append(text, '\n')); err != nil {
		return number, func() (R, error) { return none, ErrDied }
	}
	return number, func() (R, error) { return w.wait(number, replies) }
}

// MustDo has an order carried out that must succeed.
func (w *Worker[O, R]) MustDo(o O) R {
	w.t.Helper()
	r, err := w.Do(o)
	if err != nil || !r.OK() {
		w.t.Fatalf("%+v: %v %+v\n%s", o, err, r, w.Said())
	}
	return r
}

// Acknowledges waits until the worker has said so much more, or has ended.
func (w *Worker[O, R]) Acknowledges(replies int) {
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

// Kill ends the process as nothing can catch.
func (w *Worker[O, R]) Kill() {
	_ = w.cmd.Process.Kill()
	<-w.ended
	_ = w.in.Close()
}

// Dismiss ends the process in an orderly way.
func (w *Worker[O, R]) Dismiss() {
	w.t.Helper()
	_ = w.in.Close()
	<-w.ended
	if w.cmd.ProcessState == nil || !w.cmd.ProcessState.Success() {
		w.t.Errorf("a worker ended with %v\n%s", w.cmd.ProcessState, w.Said())
	}
}

// Said is what the worker wrote to its standard error. It may be asked once the
// worker has ended.
func (w *Worker[O, R]) Said() string {
	select {
	case <-w.ended:
		return w.errors.String()
	default:
		return "(it is still running)"
	}
}
