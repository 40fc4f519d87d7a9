package gateway

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
	"github.com/guideway-dev/guideway/internal/gateway/upstream"
)

// parking holds the calls that wait for the answer of a modern client. Such a client
// receives the question as a result and calls again; until then the gateway keeps the call
// to the legacy upstream open.
type parking struct {
	mu    sync.Mutex
	calls map[string]*parkedCall
	over  bool
}

// maxParked is the maximum number of parked calls, and maxParkedOf the maximum number of
// parked calls of one client.
const (
	maxParked   = 256
	maxParkedOf = 64
)

// parkedCall is a call in progress that outlives the requests of its client.
type parkedCall struct {
	id     string
	client string
	cancel context.CancelCauseFunc
	asks   chan parkedQuestion
	done   chan struct{} // done is closed when result and err are set.
	result json.RawMessage
	err    error
	// notify forwards notifications to the current request.
	notify atomic.Pointer[func(string, json.RawMessage)]

	mu     sync.Mutex
	turn   int
	open   *parkedQuestion
	expiry *time.Timer
	// answered is closed when the open question is answered; nil if no question is open.
	answered chan struct{}
}

// waitForAnswers waits until no question to the client is open. A server may ask a question
// that is unrelated to the call, and finish the call before the answer arrives. The result
// is kept until the client sends its answer.
func (call *parkedCall) waitForAnswers(life context.Context) {
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

func (p *parking) closeAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	for _, call := range p.calls {
		call.cancel(errors.New("the gateway is closing"))
	}
}

var errParkedFull = guideway.Errorf(guideway.CodeUnavailable, "the call was not sent: too many earlier calls wait for answers to questions of their servers; at most %d of one client and %d of all clients may wait", maxParkedOf, maxParked).
	WithFix("answer the open questions of the earlier calls, or call again later")

var errParkedOver = guideway.Errorf(guideway.CodeUnavailable, "the call was not sent: the gateway is closing").
	WithFix("call again when the gateway has started again")

func (p *parking) addCall(call *parkedCall) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	own := 0
	for _, each := range p.calls {
		if each.client == call.client {
			own++
		}
	}
	if p.over {
		return errParkedOver
	}
	if len(p.calls) >= maxParked || own >= maxParkedOf {
		return errParkedFull
	}
	p.calls[call.id] = call
	return nil
}

func (p *parking) removeCall(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.calls, id)
}

func (p *parking) findCall(id string) *parkedCall {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls[id]
}

// newParkedID returns the id of a parked call, which names the instance.
func (g *Gateway) newParkedID() string {
	if g.opts.Instance == "" {
		return rand.Text()
	}
	return g.opts.Instance + "." + rand.Text()
}

// park starts a call that may have to wait for the client, in its own upstream session.
func (g *Gateway) park(ctx context.Context, c *Client, want upstream.Want, a route, r Request) (json.RawMessage, error) {
	life, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	call := &parkedCall{id: g.newParkedID(), client: c.sharingKey(), cancel: cancel, asks: make(chan parkedQuestion), done: make(chan struct{})}
	want.Ask = func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, *jsonrpc.Error) {
		return g.askParked(ctx, life, c, a.member, call, method, params)
	}
	s, giveBack, err := a.member.Session(ctx, want)
	if err != nil {
		cancel(nil)
		return nil, err
	}
	if err := g.parking.addCall(call); err != nil {
		giveBack()
		cancel(nil)
		return nil, err
	}
	up := c.newCall(a, r)
	up.Ask = want.Ask
	up.Notify = func(method string, params json.RawMessage) {
		if f := call.notify.Load(); f != nil && *f != nil {
			(*f)(method, params)
		}
	}
	g.wg.Go(func() {
		defer giveBack()
		defer cancel(nil)
		defer g.parking.removeCall(call.id)
		call.result, call.err = s.Do(life, up)
		call.mu.Lock()
		if call.answered == nil { // The session is released before the client has its answer, because the client's next call uses it.
			giveBack()
		}
		close(call.done)
		call.mu.Unlock()
		call.waitForAnswers(life)
	})
	return g.waitParked(ctx, c, call, a)
}

// askParked passes a question of the upstream to the client's request that waits for the
// parked call, and returns the client's answer.
func (g *Gateway) askParked(ctx, life context.Context, c *Client, m *member, call *parkedCall, method string, params json.RawMessage) (json.RawMessage, *jsonrpc.Error) {
	questions, err := g.checkQuestions(c, m, []question{{ID: "q", Method: method, Params: params}})
	var failure *jsonrpc.Error
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
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: "the client did not answer"}
		}
		return answer, nil
	case <-life.Done():
	case <-ctx.Done():
	}
	select {
	case answer := <-q.answer: // The answer may have arrived together with the end of the call.
		if answer != nil {
			return answer, nil
		}
	default:
	}
	return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: "the call ended before the client answered"}
}

// waitParked waits for the result of a parked call or for its next question.
func (g *Gateway) waitParked(ctx context.Context, c *Client, call *parkedCall, a route) (json.RawMessage, error) {
	notify := c.notifier(ctx)
	call.notify.Store(&notify)
	defer call.notify.Store(nil)
	select {
	case <-call.done:
		return call.resultFor(c)
	case q := <-call.asks:
		call.mu.Lock()
		select {
		case <-call.done: // The call finished first, so its question is obsolete.
			call.mu.Unlock()
			return call.resultFor(c)
		default:
		}
		call.turn++
		call.open, call.answered = &q, make(chan struct{})
		turn := call.turn
		call.expiry = time.AfterFunc(stateTime, func() { call.cancel(fmt.Errorf("the client did not answer within %s", stateTime)) })
		call.mu.Unlock()
		return c.inputResult([]question{q.question}, g.sealer.sealState(state{User: c.stateOwner(), Tool: a.shown, Parked: call.id, Turn: turn}))
	case <-ctx.Done():
		call.cancel(context.Cause(ctx))
		return nil, context.Cause(ctx)
	}
}

// resultFor returns the result of a finished call.
func (call *parkedCall) resultFor(c *Client) (json.RawMessage, error) {
	if call.err != nil {
		return nil, call.err
	}
	return c.finalResult(call.result, false)
}

var errParkedGone = &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the call does not wait for an answer: the call has ended, its question was answered before, or the gateway was restarted; check whether the call was carried out before you repeat it"}

// resume passes the client's answer to the parked call, once.
func (g *Gateway) resume(ctx context.Context, c *Client, st state, a route, responses json.RawMessage) (json.RawMessage, error) {
	call := g.parking.findCall(st.Parked)
	if call == nil {
		return nil, errParkedGone
	}
	members, err := jsonrpc.Members(responsesOf(responses))
	if err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the inputResponses are invalid: " + err.Error()}
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
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the inputResponses lack an answer to " + q.ID}
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
