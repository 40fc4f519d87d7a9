package upstream

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
)

// receive implements receiver.
func (s *Session) receive(m *jsonrpc.Message, call string) {
	switch {
	case m.IsResponse():
		s.respond(m, call)
	case m.ID != nil:
		s.question(m, call)
	case m.Method == "notifications/progress":
		s.progress(m.Params)
	case m.Method == "notifications/cancelled":
		// A question that was taken back: its answer is not waited for any more,
		// which does no harm.
	default:
		s.notification(m, call)
	}
}

// respond hands an answer to its call. One for no call of ours, or for another
// call than the one on whose way it came, is dropped.
func (s *Session) respond(m *jsonrpc.Message, call string) {
	id := string(m.ID)
	if call != "" && call != id {
		s.opts.logger.Warn("an upstream has answered with a wrong id", "upstream", s.opts.spec.Name)
		s.unreadable(call, guideway.Errorf(guideway.CodeUnavailable, "the server has answered with a wrong id"))
		return
	}
	s.mu.Lock()
	p := s.calls[id]
	s.mu.Unlock()
	if p == nil {
		s.opts.logger.Debug("an upstream has answered what nobody waits for", "upstream", s.opts.spec.Name)
		return
	}
	p.respond(m)
}

// unreadable implements receiver.
func (s *Session) unreadable(call string, err error) {
	s.opts.logger.Warn("an upstream has sent what is no message", "upstream", s.opts.spec.Name, "error", err)
	if guideway.ErrorCode(err) == guideway.CodeInternal {
		err = guideway.Errorf(guideway.CodeUnavailable, "the server's answer is invalid: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.calls[call]; p != nil {
		p.fail(err)
		return
	}
	if guideway.ErrorCode(err) != guideway.CodeTooLarge {
		return // a line of talk, or what nobody waits for
	}
	for _, p := range s.calls { // the answer to one of them is lost
		p.fail(err)
	}
}

// progress hands progress to the call of its token.
func (s *Session) progress(params json.RawMessage) {
	var head struct {
		Token json.RawMessage `json:"progressToken"`
	}
	if json.Unmarshal(params, &head) != nil {
		return
	}
	token := string(head.Token)
	if text, err := strconv.Unquote(token); err == nil {
		token = text // some servers make a text of a number
	}
	s.mu.Lock()
	p := s.calls[token]
	s.mu.Unlock()
	p.take(note{"notifications/progress", params})
}

// notification hands a notification to the call on whose way it came, or to
// whoever listens to the session.
func (s *Session) notification(m *jsonrpc.Message, call string) {
	s.mu.Lock()
	p := s.calls[call]
	if p == nil && m.Method == "notifications/message" {
		p = s.logging()
	}
	s.mu.Unlock()
	if p != nil {
		p.take(note{m.Method, m.Params})
		return
	}
	if s.opts.notify != nil {
		s.opts.notify(m.Method, m.Params)
	}
}

// logging gives the one call that has asked for log messages; nil where none or
// several have. On stdio a message does not say which call it belongs to, but in
// the modern era there are none without a call that asks. mu is held.
func (s *Session) logging() *pending {
	var one *pending
	for _, p := range s.calls {
		if p.logs && one != nil {
			return nil
		}
		if p.logs {
			one = p
		}
	}
	return one
}

// question answers a request of the server, apart from what else it sends.
func (s *Session) question(m *jsonrpc.Message, call string) {
	if m.Method == "ping" {
		s.replyAside(m.ID, json.RawMessage(`{}`), nil)
		return
	}
	select {
	case s.asking <- struct{}{}:
	default:
		s.replyAside(m.ID, nil, &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: "too many questions at once"})
		return
	}
	s.mu.Lock()
	p := s.calls[call]
	var waiting []*pending
	for _, each := range s.calls {
		if call == "" || each == p {
			waiting = append(waiting, each)
		}
	}
	s.mu.Unlock()
	ask := s.opts.ask
	if p != nil && p.ask != nil {
		ask = p.ask
	}
	go func() {
		defer func() { <-s.asking }()
		if ask == nil {
			s.reply(m.ID, nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "this client does not answer " + m.Method})
			return
		}
		for _, each := range waiting {
			each.open.Add(1)
			defer each.open.Add(-1)
		}
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		go func() {
			select {
			case <-s.gone:
				cancel()
			case <-ctx.Done():
			}
		}()
		result, failure := ask(ctx, m.Method, m.Params)
		s.reply(m.ID, result, failure)
	}()
}

// replyAside answers what nobody has to think about. To a server that asks faster than
// it reads the answers, some of them are not given.
func (s *Session) replyAside(id, result json.RawMessage, failure *jsonrpc.Error) {
	select {
	case s.replying <- struct{}{}:
	default:
		s.opts.logger.Debug("an upstream does not read the answers to what it asks", "upstream", s.opts.spec.Name)
		return
	}
	go func() {
		defer func() { <-s.replying }()
		s.reply(id, result, failure)
	}()
}

func (s *Session) reply(id, result json.RawMessage, failure *jsonrpc.Error) {
	if result == nil && failure == nil {
		failure = &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: "there is no answer"}
	}
	ctx, cancel := context.WithTimeout(context.Background(), defaultTimeout)
	defer cancel()
	if err := s.conn.send(ctx, outgoing{text: jsonrpc.Response(id, result, failure)}); err != nil {
		s.opts.logger.Debug("an upstream's question could not be answered", "upstream", s.opts.spec.Name, "error", err)
	}
}

// ended implements receiver.
func (s *Session) ended(err error) {
	s.endOnce.Do(func() {
		s.mu.Lock()
		s.over = err
		s.mu.Unlock()
		close(s.gone)
		if s.opts.ended != nil {
			s.opts.ended(err)
		}
	})
}
