package gateway

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/upstream"
	"github.com/guideway-dev/guideway/internal/upstream/wire"
)

// parking keeps the calls that wait for an answer of a client of the modern
// era. Such a client is told what is asked and calls again; an upstream of the
// legacy era holds the call open for as long.
type parking struct {
	mu    sync.Mutex
	calls map[string]*parkedCall
	over  bool
}

// maxParked bounds the calls that wait, and maxParkedOf those of one client.
const (
	maxParked   = 256
	maxParkedOf = 64
)

// parkedCall is a call under way that outlives the requests of its client.
type parkedCall struct {
	id     string
	client string
	cancel context.CancelCauseFunc
	asks   chan parkedQuestion
	done   chan struct{} // closed when result and err are there
	result json.RawMessage
	err    error
	// notify hands on notifications to the request that waits now.
	notify atomic.Pointer[func(string, json.RawMessage)]

	mu     sync.Mutex
	turn   int
	open   *parkedQuestion
	expiry *time.Timer
	// answered is closed when the open question has its answer; nil where none
	// is open.
	answered chan struct{}
}

// untilAnswered waits until no question to the client is open. A server may ask
// what has nothing to do with the call that is under way, and be done with that
// before it has its answer: the result is kept for the client that comes back.
func (call *parkedCall) untilAnswered(life context.Context) {
	call.mu.Lock()
	answered := call.answered
	call.mu.Unlock()
	if answered == nil {
		return
	}
	select {
	case <-answered:
	case <-life.Done():
	}
}

type parkedQuestion struct {
	question
	answer chan json.RawMessage
}

func (p *parking) init() { p.calls = map[string]*parkedCall{} }

func (p *parking) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	for _, call := range p.calls {
		call.cancel(errors.New("the gateway ends"))
	}
}

var errParkedFull = guideway.Errorf(guideway.CodeUnavailable, "the call was not sent: too many calls wait for an answer").
	WithFix("answer the questions that are open, or call again later")

func (p *parking) add(call *parkedCall) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	own := 0
	for _, each := range p.calls {
		if each.client == call.client {
			own++
		}
	}
	if p.over || len(p.calls) >= maxParked || own >= maxParkedOf {
		return errParkedFull
	}
	p.calls[call.id] = call
	return nil
}

func (p *parking) remove(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.calls, id)
}

func (p *parking) find(id string) *parkedCall {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls[id]
}

// park begins a call that may have to wait for the client, in a session that is
// its own for as long.
func (g *Gateway) park(ctx context.Context, c *Client, want upstream.Want, a ask, r Request) (json.RawMessage, error) {
	life, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	call := &parkedCall{id: rand.Text(), client: c.name(), cancel: cancel, asks: make(chan parkedQuestion), done: make(chan struct{})}
	want.Ask = func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, *wire.Error) {
		return g.askParked(ctx, life, c, a.member, call, method, params)
	}
	s, giveBack, err := a.member.Session(ctx, want)
	if err != nil {
		cancel(nil)
		return nil, err
	}
	if err := g.parking.add(call); err != nil {
		giveBack()
		cancel(nil)
		return nil, err
	}
	up := c.call(a, r)
	up.Ask = want.Ask
	up.Notify = func(method string, params json.RawMessage) {
		if f := call.notify.Load(); f != nil && *f != nil {
			(*f)(method, params)
		}
	}
	g.wg.Go(func() {
		defer giveBack()
		defer cancel(nil)
		defer g.parking.remove(call.id)
		call.result, call.err = s.Do(life, up)
		call.mu.Lock()
		if call.answered == nil { // before the client has its answer, for its next call goes to this session
			giveBack()
		}
		close(call.done)
		call.mu.Unlock()
		call.untilAnswered(life)
	})
	return g.waitParked(ctx, c, call, a)
}

// askParked hands a question to the request that waits for the call.
func (g *Gateway) askParked(ctx, life context.Context, c *Client, m *member, call *parkedCall, method string, params json.RawMessage) (json.RawMessage, *wire.Error) {
	questions, err := g.allowed(c, m, []question{{ID: "q", Method: method, Params: params}})
	var failure *wire.Error
	if errors.As(err, &failure) {
		return nil, failure
	}
	q := parkedQuestion{question: questions[0], answer: make(chan json.RawMessage, 1)}
	select {
	case call.asks <- q:
	case <-life.Done():
	case <-ctx.Done():
	}
	select {
	case answer := <-q.answer:
		if answer == nil {
			return nil, &wire.Error{Code: wire.CodeInternal, Message: "the client has not answered"}
		}
		return answer, nil
	case <-life.Done():
	case <-ctx.Done():
	}
	select {
	case answer := <-q.answer: // it came with the end
		if answer != nil {
			return answer, nil
		}
	default:
	}
	return nil, &wire.Error{Code: wire.CodeInternal, Message: "nobody waits for the answer any more"}
}

// waitParked waits for the result of a parked call or for its next question.
func (g *Gateway) waitParked(ctx context.Context, c *Client, call *parkedCall, a ask) (json.RawMessage, error) {
	notify := c.notes(ctx)
	call.notify.Store(&notify)
	defer call.notify.Store(nil)
	select {
	case <-call.done:
		return call.outcome(c)
	case q := <-call.asks:
		call.mu.Lock()
		select {
		case <-call.done: // meanwhile; nobody is to be asked any more
			call.mu.Unlock()
			return call.outcome(c)
		default:
		}
		call.turn++
		call.open, call.answered = &q, make(chan struct{})
		turn := call.turn
		call.expiry = time.AfterFunc(stateTime, func() { call.cancel(errors.New("nobody has answered in time")) })
		call.mu.Unlock()
		return c.asking([]question{q.question}, g.sealer.seal(state{User: c.owner(), Tool: a.shown, Parked: call.id, Turn: turn}))
	case <-ctx.Done():
		call.cancel(context.Cause(ctx))
		return nil, context.Cause(ctx)
	}
}

// outcome is the answer of a call that is done.
func (call *parkedCall) outcome(c *Client) (json.RawMessage, error) {
	if call.err != nil {
		return nil, call.err
	}
	return c.final(call.result, false)
}

var errParkedGone = &wire.Error{Code: wire.CodeInvalidParams, Message: "the call does not wait any more: it has ended, was answered before, or the gateway was started anew; look whether it was done before you make it again"}

// resume brings the client's answer to the call that waits for it, once.
func (g *Gateway) resume(ctx context.Context, c *Client, st state, a ask, responses json.RawMessage) (json.RawMessage, error) {
	call := g.parking.find(st.Parked)
	if call == nil {
		return nil, errParkedGone
	}
	members, err := wire.Members(responsesOf(responses))
	if err != nil {
		return nil, &wire.Error{Code: wire.CodeInvalidParams, Message: "the inputResponses are not an object"}
	}
	call.mu.Lock()
	q := call.open
	if q == nil || call.turn != st.Turn {
		call.mu.Unlock()
		return nil, errParkedGone
	}
	answer := members[q.ID]
	if answer == nil {
		call.mu.Unlock()
		return nil, &wire.Error{Code: wire.CodeInvalidParams, Message: "the inputResponses have no answer to " + q.ID}
	}
	answered := call.answered
	call.open, call.answered = nil, nil
	call.expiry.Stop()
	call.mu.Unlock()
	q.answer <- answer
	close(answered)
	return g.waitParked(ctx, c, call, a)
}

func responsesOf(responses json.RawMessage) json.RawMessage {
	if responses == nil {
		return json.RawMessage(`{}`)
	}
	return responses
}
