package upstream

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"

	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
)

// pending is a call that waits for its answer.
type pending struct {
	// listens says that the caller takes notifications, logs that it has asked for
	// log messages.
	listens, logs bool
	ask           Asker
	// open counts the questions that somebody is thinking about.
	open atomic.Int32
	// told says that there is something new below.
	told chan struct{}

	mu sync.Mutex
	// notes wait for the caller; waiting counts their bytes.
	notes   []note
	waiting int
	answer  *jsonrpc.Message
	failure error
}

// note is a notification that belongs to a call.
type note struct {
	method string
	params json.RawMessage
}

const (
	// noteBuffer is how many notifications of a call wait for its caller; more
	// are dropped, for they would be late.
	noteBuffer = 64
	// noteBytes bounds what they are together: what a caller does not read yet is
	// kept for it, whatever the server sends.
	noteBytes = 1 << 20
)

func newPending(c Call) *pending {
	return &pending{listens: c.Notify != nil, logs: c.Logs, ask: c.Ask, told: make(chan struct{}, 1)}
}

// tell wakes the caller.
func (p *pending) tell() {
	select {
	case p.told <- struct{}{}:
	default: // it was told, and has not looked yet
	}
}

// respond takes the answer. Where there are two the first one counts.
func (p *pending) respond(m *jsonrpc.Message) {
	p.mu.Lock()
	if p.answer == nil {
		p.answer = m
	}
	p.mu.Unlock()
	p.tell()
}

// fail takes the reason why there will be no answer; nil is none, and the first one
// counts. An answer that is there goes first.
func (p *pending) fail(err error) {
	if err == nil {
		return
	}
	p.mu.Lock()
	if p.failure == nil {
		p.failure = err
	}
	p.mu.Unlock()
	p.tell()
}

// take takes a notification, if there is room.
func (p *pending) take(n note) {
	if p == nil || !p.listens {
		return
	}
	p.mu.Lock()
	if len(p.notes) == noteBuffer || p.waiting+len(n.params) > noteBytes {
		p.mu.Unlock()
		return
	}
	p.notes, p.waiting = append(p.notes, n), p.waiting+len(n.params)
	p.mu.Unlock()
	p.tell()
}

// next gives what the caller has to see: the notifications, then the outcome.
func (p *pending) next() (n note, found bool, answer *jsonrpc.Message, failure error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.notes) > 0 {
		n = p.notes[0]
		p.notes[0] = note{}
		p.notes, p.waiting = p.notes[1:], p.waiting-len(n.params)
		return n, true, nil, nil
	}
	if p.answer != nil {
		return n, false, p.answer, nil
	}
	return n, false, nil, p.failure
}

// patience is how long a call waits.
type patience struct {
	// quiet is how long it waits for anything, most how long in all.
	quiet, most time.Duration
	began       time.Time
	timer       *time.Timer
	over        <-chan time.Time
}

func (s *Session) patience(endless bool) *patience {
	if endless {
		return &patience{}
	}
	w := &patience{quiet: or(s.opts.spec.Timeout, defaultTimeout), most: or(s.opts.spec.MaxTime, defaultMaxTime), began: time.Now()}
	w.timer = time.NewTimer(min(w.quiet, w.most))
	w.over = w.timer.C
	return w
}

// again begins to wait anew, unless the time is over.
func (w *patience) again() error {
	if w.timer == nil {
		return nil
	}
	left := w.most - time.Since(w.began)
	if left <= 0 {
		return errTimeout(w.most, " in all", "maxTime")
	}
	w.timer.Reset(min(w.quiet, left))
	return nil
}

func (w *patience) end() {
	if w.timer != nil {
		w.timer.Stop()
	}
}

// await waits for the answer, handing on what comes before it.
func (s *Session) await(ctx context.Context, c Call, p *pending) (*jsonrpc.Message, error) {
	wait := s.patience(c.Endless)
	defer wait.end()
	gone := false
	for {
		n, found, answer, failure := p.next()
		switch {
		case found:
			c.Notify(n.method, n.params)
			if ctx.Err() != nil { // also while a server tells something all the time
				return nil, context.Cause(ctx)
			}
			if err := wait.again(); err != nil {
				return nil, err
			}
			continue
		case answer != nil || failure != nil:
			return answer, failure
		case gone:
			return nil, s.reason()
		}
		select {
		case <-p.told:
		case <-s.gone:
			gone = true // an answer that came before goes first
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-wait.over:
			if p.open.Load() == 0 && time.Since(wait.began) < wait.most {
				return nil, errTimeout(wait.quiet, "", "timeout")
			}
			if err := wait.again(); err != nil { // else a person thinks
				return nil, err
			}
		}
	}
}
