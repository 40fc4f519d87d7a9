// Package scripted is a model that answers from a file: a recording, a list of answers, or
// rules. It needs no key and no network and can simulate errors, so that machines can be
// tried, tested and demonstrated.
package scripted

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/machine/llm"
	"github.com/guideway-dev/guideway/internal/platform/ctxsleep"
)

// Model answers from a Script. It is stateless: an answer depends on the request alone, so
// that a run gets the same answers after a crash.
type Model struct {
	script Script
	// wait waits for a duration or until the context ends.
	wait func(context.Context, time.Duration) error
}

var _ llm.Model = (*Model)(nil)

// Script holds the answers of a Model.
type Script struct {
	// Responses are the answers to the requests of a run in order. Each is a chat
	// completion or an Answer.
	Responses []json.RawMessage `json:"responses,omitempty"`
	// Rules are used if there are no Responses. The first matching rule answers.
	Rules []Rule `json:"rules,omitempty"`
}

// Rule answers matching requests.
type Rule struct {
	When When `json:"when"`
	Answer
}

// When selects the requests of a rule. An empty field matches all.
type When struct {
	Machine string `json:"machine,omitempty"`
	State   string `json:"state,omitempty"`
	Agent   string `json:"agent,omitempty"`
	Model   string `json:"model,omitempty"`
	// Contains must occur in the last message.
	Contains string `json:"contains,omitempty"`
	// Index is the number of the request in its run, from 0; nil matches all.
	Index *int `json:"index,omitempty"`
}

// Answer is an answer or a simulated error.
type Answer struct {
	Content   string     `json:"content,omitempty"`
	ToolCalls []Call     `json:"tool_calls,omitempty"`
	Usage     *llm.Usage `json:"usage,omitempty"`
	// Fault is one of the Fault constants, or "".
	Fault string `json:"fault,omitempty"`
	// RetryAfter is the wait that the simulated error requests, and Delay the delay of the
	// answer, both in seconds.
	RetryAfter float64 `json:"retry_after,omitempty"`
	Delay      float64 `json:"delay,omitempty"`
}

// Call is a tool call in an Answer.
type Call struct {
	ID   string `json:"id,omitempty"`
	Name string `json:"name"`
	// Arguments is an object, or a text that is sent unchanged.
	Arguments json.RawMessage `json:"arguments"`
}

// The simulated errors.
const (
	FaultRateLimit = "429"
	FaultServer    = "500"
	FaultAuth      = "401"
	FaultContext   = "context"
	FaultRefusal   = "refusal"
	// FaultCut ends the stream in the middle of the content.
	FaultCut = "cut"
	// FaultMalformed truncates the arguments of the calls.
	FaultMalformed = "malformed"
	// FaultEmpty is an empty answer.
	FaultEmpty = "empty"
)

// Faults returns all Fault constants.
func Faults() []string {
	return []string{FaultRateLimit, FaultServer, FaultAuth, FaultContext, FaultRefusal, FaultCut, FaultMalformed, FaultEmpty}
}

// Parse parses a file: a list of responses, or an object with responses or rules.
func Parse(data []byte) (Script, error) {
	bad := func(format string, args ...any) error {
		return guideway.Errorf(guideway.CodeInvalid, "the script of answers is not valid: "+format, args...).
			WithFix(`write a list of chat completions, or {"rules": [{"when": {"agent": "..."}, "content": "..."}]}`)
	}
	var s Script
	if text := bytes.TrimSpace(data); len(text) > 0 && text[0] == '[' {
		if err := json.Unmarshal(text, &s.Responses); err != nil {
			return s, bad("%w", err)
		}
	} else if err := json.Unmarshal(text, &s); err != nil {
		return s, bad("%w", err)
	}
	if len(s.Responses) == 0 && len(s.Rules) == 0 {
		return s, bad(`it has neither "responses" nor "rules"`)
	}
	for i, raw := range s.Responses {
		if _, _, err := parseResponse(raw); err != nil {
			return s, bad("response %d: %w", i+1, err)
		}
	}
	for i := range s.Rules {
		if err := s.Rules[i].validate(); err != nil {
			return s, bad("rule %d: %w", i+1, err)
		}
	}
	return s, nil
}

// validate checks an answer.
func (a *Answer) validate() error {
	if slices.Contains(Faults(), a.Fault) {
		return nil
	}
	switch {
	case a.Fault != "":
		return fmt.Errorf("unknown fault %q; use one of %s", a.Fault, strings.Join(Faults(), ", "))
	case a.Content == "" && len(a.ToolCalls) == 0:
		return fmt.Errorf(`it has none of "fault", "content" and "tool_calls"`)
	}
	return nil
}

// parseResponse parses a response: a chat completion or an Answer.
func parseResponse(raw json.RawMessage) (*llm.Response, *Answer, error) {
	var probe struct {
		Choices json.RawMessage `json:"choices"`
	}
	if err := json.Unmarshal(raw, &probe); err != nil {
		return nil, nil, err
	}
	if probe.Choices != nil {
		r, err := llm.ReadCompletion(raw)
		return r, nil, err
	}
	var a Answer
	if err := json.Unmarshal(raw, &a); err != nil {
		return nil, nil, err
	}
	return nil, &a, a.validate()
}

// New returns a Model for a script.
func New(s Script) *Model { return &Model{script: s, wait: ctxsleep.For} }

// Complete implements llm.Model.
func (m *Model) Complete(ctx context.Context, r llm.Request, sink func(llm.Delta)) (*llm.Response, error) {
	if sink == nil {
		sink = func(llm.Delta) {}
	}
	response, answer, err := m.selectAnswer(r)
	if err != nil {
		return nil, err
	}
	if answer != nil {
		if answer.Delay > 0 {
			if err := m.wait(ctx, toDuration(answer.Delay)); err != nil {
				return nil, &llm.Error{Kind: llm.Timeout, Message: err.Error(), Err: err}
			}
		}
		if response, err = answer.toResponse(r, sink); err != nil {
			return nil, err
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, &llm.Error{Kind: llm.Timeout, Message: err.Error(), Err: err}
	}
	sendDeltas(response, sink)
	return response, nil
}

// sendDeltas sends a response in parts.
func sendDeltas(r *llm.Response, sink func(llm.Delta)) {
	for _, part := range strings.SplitAfter(r.Message.Content, " ") {
		if part != "" {
			sink(llm.Delta{Text: part})
		}
	}
	for _, c := range r.Message.ToolCalls {
		sink(llm.Delta{Tool: c.Function.Name})
	}
}

// selectAnswer returns the answer to a request.
func (m *Model) selectAnswer(r llm.Request) (*llm.Response, *Answer, error) {
	if n := len(m.script.Responses); n > 0 {
		i := r.Purpose.Index
		if i >= n {
			return nil, nil, &llm.Error{Kind: llm.Invalid, Message: fmt.Sprintf("the script has %d responses, and none for request %d of the run; add a response to the script", n, i+1)}
		}
		return parseResponse(m.script.Responses[i])
	}
	for i := range m.script.Rules {
		if m.script.Rules[i].When.matchesRequest(r) {
			return nil, &m.script.Rules[i].Answer, nil
		}
	}
	return nil, nil, &llm.Error{
		Kind:    llm.Invalid,
		Message: fmt.Sprintf("no rule of the script matches request %d of the run (state %q, agent %q); add a rule, or a last rule without \"when\" for all other requests", r.Purpose.Index+1, r.Purpose.State, r.Purpose.Agent),
	}
}

// matchesRequest reports whether a rule matches a request.
func (w *When) matchesRequest(r llm.Request) bool {
	is := func(want, have string) bool { return want == "" || want == have }
	last := ""
	if n := len(r.Messages); n > 0 {
		last = r.Messages[n-1].Content
	}
	return is(w.Machine, r.Purpose.Machine) && is(w.State, r.Purpose.State) && is(w.Agent, r.Purpose.Agent) && is(w.Model, r.Model) &&
		strings.Contains(last, w.Contains) && (w.Index == nil || *w.Index == r.Purpose.Index)
}

func toDuration(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// toResponse returns the response or the simulated error of an answer.
func (a *Answer) toResponse(r llm.Request, sink func(llm.Delta)) (*llm.Response, error) {
	fail := func(kind llm.Kind, status int, message string) (*llm.Response, error) {
		return nil, &llm.Error{Kind: kind, Status: status, Message: message, RetryAfter: toDuration(a.RetryAfter)}
	}
	switch a.Fault {
	case FaultRateLimit:
		return fail(llm.RateLimit, http.StatusTooManyRequests, "scripted: too many requests")
	case FaultServer:
		return fail(llm.Server, http.StatusInternalServerError, "scripted: the server failed")
	case FaultAuth:
		return fail(llm.Auth, http.StatusUnauthorized, "scripted: the key is not accepted")
	case FaultContext:
		return fail(llm.ContextLength, http.StatusBadRequest, "scripted: the conversation is too long")
	case FaultRefusal:
		return fail(llm.Refusal, 0, "scripted: the model refused")
	case FaultEmpty:
		return fail(llm.Malformed, 0, "scripted: the answer is empty")
	case FaultCut:
		sink(llm.Delta{Text: a.Content[:len(a.Content)/2]})
		return fail(llm.Network, 0, "scripted: the stream ended in the middle of the answer")
	}
	out := &llm.Response{
		ID: fmt.Sprintf("scripted-%d", r.Purpose.Index+1), Model: r.Model, Finish: llm.FinishStop,
		Message: llm.Message{Role: llm.Assistant, Content: a.Content}, Usage: a.estimateUsage(r),
	}
	for i, c := range a.ToolCalls {
		call := llm.ToolCall{ID: c.ID, Type: "function", Function: llm.Function{Name: c.Name, Arguments: llm.ArgumentsText(c.Arguments)}}
		if call.ID == "" {
			call.ID = fmt.Sprintf("call_%d_%d", r.Purpose.Index+1, i+1)
		}
		if a.Fault == FaultMalformed {
			call.Function.Arguments = call.Function.Arguments[:len(call.Function.Arguments)/2]
		}
		out.Message.ToolCalls = append(out.Message.ToolCalls, call)
		out.Finish = llm.FinishTools
	}
	return out, nil
}

// estimateUsage returns the usage in the script, or an estimate by the length of the texts.
func (a *Answer) estimateUsage(r llm.Request) llm.Usage {
	if a.Usage != nil {
		return *a.Usage
	}
	const perToken = 4
	u := llm.Usage{Output: len(a.Content)/perToken + 1}
	for i := range r.Messages {
		u.Input += len(r.Messages[i].Content)/perToken + 1
	}
	return u
}
