package upstream

import (
	"cmp"
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"

	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
)

// pending is a call that waits for its answer.
type pending struct {
	// listens reports whether the caller accepts notifications, and logs whether it
	// requested log messages.
	listens, logs bool
	ask           Asker
	// open counts the questions that wait for an answer.
	open atomic.Int32
	// told has a value if a field below has changed.
	told chan struct{}

	mu sync.Mutex
	// notes are the waiting notifications; waiting is their size in bytes.
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
	// noteBuffer is the maximum number of waiting notifications of a call; more are
	// dropped, because they would be late.
	noteBuffer = 64
	// noteBytes is the maximum size of the waiting notifications: they stay in memory until
	// the caller reads them.
	noteBytes = 1 << 20
)

func newPending(c Call) *pending {
	return &pending{listens: c.Notify != nil, logs: c.Logs, ask: c.Ask, told: make(chan struct{}, 1)}
}

// wake wakes the caller.
func (p *pending) wake() {
	select {
	case p.told <- struct{}{}:
	default: // The caller was woken before.
	}
}

// setAnswer sets the answer, unless there is one already.
func (p *pending) setAnswer(m *jsonrpc.Message) {
	p.mu.Lock()
	if p.answer == nil {
		p.answer = m
	}
	p.mu.Unlock()
	p.wake()
}

// fail sets the reason why there is no answer, unless a reason was set before. An answer
// takes precedence over the reason. fail ignores nil.
func (p *pending) fail(err error) {
	if err == nil {
		return
	}
	p.mu.Lock()
	if p.failure == nil {
		p.failure = err
	}
	p.mu.Unlock()
	p.wake()
}

// addNote adds a notification if the caller accepts notifications and there is room. p may
// be nil.
func (p *pending) addNote(n note) {
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
	p.wake()
}

// nextItem returns the next item for the caller: all notifications first, then the outcome.
func (p *pending) nextItem() (n note, found bool, answer *jsonrpc.Message, failure error) {
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

// callTimeout is the timeout of a call.
type callTimeout struct {
	// idle is the maximum time without any message, max the maximum time in total.
	idle, max time.Duration
	began     time.Time
	timer     *time.Timer
	expired   <-chan time.Time
}

func (s *Session) newTimeout(c Call) *callTimeout {
	if c.Endless {
		return &callTimeout{}
	}
	idle := silentTimeout
	if c.Progress || c.Method != "tools/call" {
		idle = defaultTimeout
	}
	w := &callTimeout{
		began: time.Now(),
		idle:  cmp.Or(time.Duration(s.opts.spec.Timeout), idle), max: cmp.Or(time.Duration(s.opts.spec.MaxTime), defaultMaxTime),
	}
	w.timer = time.NewTimer(min(w.idle, w.max))
	w.expired = w.timer.C
	return w
}

// reset restarts the idle timeout. If the total time is over, it returns an error.
func (w *callTimeout) reset() error {
	if w.timer == nil {
		return nil
	}
	left := w.max - time.Since(w.began)
	if left <= 0 {
		return errTimeout(w.max, " in total", "maxTime")
	}
	w.timer.Reset(min(w.idle, left))
	return nil
}

func (w *callTimeout) stop() {
	if w.timer != nil {
		w.timer.Stop()
	}
}

// awaitAnswer waits for the answer and forwards earlier notifications.
func (s *Session) awaitAnswer(ctx context.Context, c Call, p *pending) (*jsonrpc.Message, error) {
	wait := s.newTimeout(c)
	defer wait.stop()
	gone := false
	for {
		n, found, answer, failure := p.nextItem()
		switch {
		case found:
			c.Notify(n.method, n.params)
			if ctx.Err() != nil { // The context is checked here because a server may send notifications without pause.
				return nil, context.Cause(ctx)
			}
			if err := wait.reset(); err != nil {
				return nil, err
			}
			continue
		case answer != nil || failure != nil:
			return answer, failure
		case gone:
			return nil, s.endReason()
		}
		select {
		case <-p.told:
		case <-s.gone:
			gone = true // An answer that arrived before takes precedence.
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-wait.expired:
			if p.open.Load() == 0 && time.Since(wait.began) < wait.max {
				return nil, errTimeout(wait.idle, "", "timeout")
			}
			if err := wait.reset(); err != nil { // With an open question, only the total time is limited.
				return nil, err
			}
		}
	}
}
