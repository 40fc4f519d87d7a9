package upstream

import (
	"context"
	"encoding/json"
	"fmt"
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
		s.answerQuestion(m, call)
	case m.Method == "notifications/progress":
		s.passProgress(m.Params)
	case m.Method == "notifications/cancelled":
		// The cancellation of a question is ignored: its answer is not needed, and sending
		// it does no harm.
	default:
		s.passNotification(m, call)
	}
}

// respond passes an answer to its call. It drops an answer with an unknown id. If the
// answer came in the response to a call with a different id, that call fails.
func (s *Session) respond(m *jsonrpc.Message, call string) {
	id := string(m.ID)
	if call != "" && call != id {
		s.unreadable(call, guideway.Errorf(guideway.CodeUnavailable, "the server answered the request %s with the wrong id %s", call, plainChallenge(id)))
		return
	}
	s.mu.Lock()
	p := s.calls[id]
	s.mu.Unlock()
	if p == nil {
		s.opts.logger.Debug("an upstream answered a call that was not sent", "upstream", s.opts.spec.Name)
		return
	}
	p.setAnswer(m)
}

func errTooLarge(limit int) error {
	return guideway.Errorf(guideway.CodeTooLarge, "the server's answer is larger than %d bytes", limit).
		WithFix("check whether the call had effects at the server, then call again with arguments that select less data; if lists are too large, ask the operator of the server for smaller pages")
}

// unreadable implements receiver.
func (s *Session) unreadable(call string, err error) {
	s.opts.logger.Warn("a message of an upstream was dropped", "upstream", s.opts.spec.Name, "error", err)
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.calls[call]; p != nil {
		p.fail(err)
		return
	}
	if guideway.ErrorCode(err) != guideway.CodeTooLarge {
		return // The message is a log line, or answers no call.
	}
	for _, p := range s.calls { // The answer of one of the calls is lost, and it is unknown which.
		p.fail(err)
	}
}

// passProgress passes progress to the call of its token.
func (s *Session) passProgress(params json.RawMessage) {
	var head struct {
		Token json.RawMessage `json:"progressToken"`
	}
	if json.Unmarshal(params, &head) != nil {
		return
	}
	token := string(head.Token)
	if text, err := strconv.Unquote(token); err == nil {
		token = text // some servers turn a number into a string
	}
	s.mu.Lock()
	p := s.calls[token]
	s.mu.Unlock()
	p.addNote(note{"notifications/progress", params})
}

// passNotification passes a notification to the call in whose response it came, a log
// message also to the only call that requested log messages, and any other notification to
// the session's listener.
func (s *Session) passNotification(m *jsonrpc.Message, call string) {
	s.mu.Lock()
	p := s.calls[call]
	if p == nil && m.Method == "notifications/message" {
		p = s.loggingCall()
	}
	s.mu.Unlock()
	if p != nil {
		p.addNote(note{m.Method, m.Params})
		return
	}
	if s.opts.notify != nil {
		s.opts.notify(m.Method, m.Params)
	}
}

// loggingCall returns the only call that requested log messages, or nil if there is none or
// more than one. On stdio a message does not name its call, but a modern server sends log
// messages only for calls that request them. The caller holds mu.
func (s *Session) loggingCall() *pending {
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

// answerQuestion answers a request of the server, concurrently with its other messages.
func (s *Session) answerQuestion(m *jsonrpc.Message, call string) {
	if m.Method == "ping" {
		s.replyInBackground(m.ID, json.RawMessage(`{}`), nil)
		return
	}
	select {
	case s.asking <- struct{}{}:
	default:
		s.replyInBackground(m.ID, nil, &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: fmt.Sprintf("too many open requests to the client; at most %d are allowed", openQuestions)})
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
			s.sendReply(m.ID, nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "this client does not answer " + m.Method})
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
		s.sendReply(m.ID, result, failure)
	}()
}

// replyInBackground sends an automatic reply. If a server sends requests faster than it
// reads the replies, replies are dropped.
func (s *Session) replyInBackground(id, result json.RawMessage, failure *jsonrpc.Error) {
	select {
	case s.replying <- struct{}{}:
	default:
		s.opts.logger.Debug("an upstream does not read the replies to its requests", "upstream", s.opts.spec.Name)
		return
	}
	go func() {
		defer func() { <-s.replying }()
		s.sendReply(id, result, failure)
	}()
}

func (s *Session) sendReply(id, result json.RawMessage, failure *jsonrpc.Error) {
	if result == nil && failure == nil {
		failure = &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: "the client did not answer"}
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
