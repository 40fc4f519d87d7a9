package crashtest

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
	"syscall"
	"testing"
	"time"
)

// errDied says that a worker ended before it answered: whether it has carried
// out the order, nobody knows.
var errDied = errors.New("the worker died")

// patience is how long a worker that is alive may take for an order. It bounds
// a test that would hang, and measures nothing.
const patience = 2 * time.Minute

// worker is a process that carries out orders.
type worker struct {
	t      testing.TB
	cmd    *exec.Cmd
	in     io.WriteCloser
	errors bytes.Buffer
	// first gets the line that says that the store is open.
	first chan reply
	// ended is closed when the process has ended and all it said was read.
	ended chan struct{}

	mu      sync.Mutex
	lastID  int
	waiting map[int]chan reply
	// replies counts them; more is closed with the next one.
	replies int
	more    chan struct{}
}

// hire starts a worker, by another program in front of it if that is given, and
// does not wait until it is ready.
func hire(t testing.TB, p place, front ...string) *worker {
	t.Helper()
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	line := slices.Concat(front, []string{self})
	w := &worker{t: t, first: make(chan reply, 1), ended: make(chan struct{}), more: make(chan struct{})}
	w.waiting = map[int]chan reply{ready: w.first}
	w.cmd = exec.CommandContext(t.Context(), line[0], line[1:]...)
	w.cmd.Env = append(os.Environ(), placeVariable+"="+string(text))
	w.cmd.Stderr = &w.errors
	prepare(w.cmd, p)
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
	t.Cleanup(w.kill)
	return w
}

// listen passes replies on until there are no more, and sees the process off.
func (w *worker) listen(out io.Reader) {
	defer close(w.ended)
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil { // half a line acknowledges nothing
			break
		}
		var r reply
		if json.Unmarshal(line, &r) != nil {
			w.t.Errorf("a worker said %q", line)
			continue
		}
		w.mu.Lock()
		answer := w.waiting[r.ID]
		delete(w.waiting, r.ID)
		w.replies++
		close(w.more)
		w.more = make(chan struct{})
		w.mu.Unlock()
		if answer != nil {
			answer <- r
		}
	}
	_ = w.cmd.Wait() // that it was killed is no news
}

// wait gives the reply to an order, or errDied.
func (w *worker) wait(id int, answer chan reply) (reply, error) {
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case r := <-answer:
		return r, nil
	case <-w.ended:
		select {
		case r := <-answer: // the last thing that it said
			return r, nil
		default:
			return reply{}, errDied
		}
	case <-late.C:
		_ = w.cmd.Process.Signal(syscall.SIGQUIT) // it then says what it waits for
		<-w.ended
		w.t.Errorf("a worker does not answer order %d\n%s", id, w.said())
		return reply{}, errDied
	}
}

// opened waits until the worker has opened its store.
func (w *worker) opened() (reply, error) { return w.wait(ready, w.first) }

// mustOpen waits until the worker is ready, which it must become.
func (w *worker) mustOpen() *worker {
	w.t.Helper()
	r, err := w.opened()
	if err != nil || !r.ok() {
		w.t.Fatalf("a worker does not open its store: %v %+v\n%s", err, r, w.said())
	}
	return w
}

// do has an order carried out.
func (w *worker) do(o order) (reply, error) {
	answer := make(chan reply, 1)
	w.mu.Lock()
	w.lastID++
	o.ID = w.lastID
	w.waiting[o.ID] = answer
	w.mu.Unlock()
	line, err := json.Marshal(o)
	if err != nil {
		return reply{}, err
	}
	if _, err := w.in.Write(append(line, '\n')); err != nil {
		return reply{}, errDied
	}
	return w.wait(o.ID, answer)
}

// mustDo has an order carried out that must succeed.
func (w *worker) mustDo(o order) reply {
	w.t.Helper()
	r, err := w.do(o)
	if err != nil || !r.ok() {
		w.t.Fatalf("%s: %v %+v\n%s", o.Do, err, r, w.said())
	}
	return r
}

// acknowledges waits until the worker has said so much more, or has ended.
func (w *worker) acknowledges(replies int) {
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

// kill ends the process as nothing can catch.
func (w *worker) kill() {
	_ = w.cmd.Process.Kill()
	<-w.ended
	_ = w.in.Close()
}

// dismiss ends the process in an orderly way.
func (w *worker) dismiss() {
	w.t.Helper()
	_ = w.in.Close()
	<-w.ended
	if w.cmd.ProcessState == nil || !w.cmd.ProcessState.Success() {
		w.t.Errorf("a worker ended with %v\n%s", w.cmd.ProcessState, w.said())
	}
}

// said is what the worker wrote to its standard error. It may be asked once the
// worker has ended.
func (w *worker) said() string {
	select {
	case <-w.ended:
		return w.errors.String()
	default:
		return "(it is still running)"
	}
}
