package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
	hookdef "github.com/guideway-dev/guideway/internal/hooks/definition"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
)

// applyHandled applies the error or the progress message as a hook left it.
func (s *state) applyHandled(diff *changes, after *tree) error {
	if after.isNull() {
		return fmt.Errorf("the hook removed context.%s; to withhold it, return {continue: false}", s.event)
	}
	before, err := s.handled.decodeTree()
	if err != nil {
		return err
	}
	if s.event == hookdef.Error {
		message, code, was := after.valueOf("message"), after.valueOf("code"), before.valueOf("code")
		switch {
		case message == nil || message.kind != '"':
			return fmt.Errorf("the hook set context.error.message to a value that is not a string")
		case code == nil:
			return fmt.Errorf("the hook removed context.error.code")
		case code.kind != was.kind || code.kind == '0' && code.num != float64(int64(code.num)):
			return fmt.Errorf("the hook changed the type of context.error.code, which must stay an integer or a string")
		}
	}
	_, err = s.handled.replaceValue(diff, "/"+doc.Pointer(s.event), after, '{')
	return err
}

// callFailure is an error of a call for hooks.
type callFailure struct {
	// Code is a number for an error of the protocol, and otherwise a text.
	Code    any             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// failureCode returns the code of a failed call for the trace: that of a refusal by an inner
// graph, or CodeCall.
func failureCode(err error) string {
	var refusal *Refusal
	if errors.As(err, &refusal) {
		return refusal.Code
	}
	return CodeCall
}

// handleError runs the hooks after the call that handle errors, and returns the outcome of
// the request. The hooks may change or withhold the error, but not turn it into a response.
func (x *execution) handleError(ctx context.Context, call *node, err error) *Outcome {
	failed := x.failedOutcome(call, err)
	if failureCode(err) != CodeCall {
		failed.Status = StatusRefused
	}
	if !x.program.handles[hookdef.Error] || ctx.Err() != nil {
		return failed
	}
	shown := callFailure{Code: failureCode(err), Message: err.Error()}
	var protocol *jsonrpc.Error
	if errors.As(err, &protocol) {
		shown = callFailure{Code: protocol.Code, Message: protocol.Message, Data: protocol.Data}
	}
	raw, encodeErr := json.Marshal(shown)
	if encodeErr != nil {
		return x.failedOutcome(call, x.nodeFailure("call", call, encodeErr))
	}
	x.state.event, x.state.handled = hookdef.Error, value{raw: raw}
	for n := x.program.next(call, hookdef.NoBranch); n.Kind != hookdef.End; {
		branch, stopped := x.runNode(ctx, n)
		if stopped != nil {
			return stopped
		}
		n = x.program.next(n, branch)
	}
	if string(x.state.handled.raw) == string(raw) {
		return failed
	}
	shown = callFailure{} // Unmarshal would overwrite the data of the original error.
	if json.Unmarshal(x.state.handled.raw, &shown) != nil {
		return x.failedOutcome(call, x.programError("has an error that is not valid"))
	}
	failed.Err = &changedError{message: shown.Message, err: err}
	if code, ok := shown.Code.(float64); ok {
		failed.Err = &jsonrpc.Error{Code: int64(code), Message: shown.Message, Data: shown.Data}
	}
	return failed
}

// changedError is an error of a call with another message. It unwraps to the original error,
// so that errors.Is, errors.As and its code stay the same.
type changedError struct {
	message string
	err     error
}

// Error implements error.
func (e *changedError) Error() string { return e.message }

// Unwrap returns the original error.
func (e *changedError) Unwrap() error { return e.err }

// progressHandler returns the function that runs the hooks after the call that handle
// progress, or nil if there are none. The hooks see the state at the time of the call; what
// they change besides the message is dropped. A message whose hook fails is dropped, too.
func (x *execution) progressHandler(call *node) func(context.Context, json.RawMessage) json.RawMessage {
	if !x.program.handles[hookdef.Progress] {
		return nil
	}
	before := *x
	return func(ctx context.Context, params json.RawMessage) json.RawMessage {
		each := before
		each.state.event, each.state.handled = hookdef.Progress, value{raw: params}
		for n := each.program.next(call, hookdef.NoBranch); n.Kind != hookdef.End; {
			entry, branch := NodeTrace{ID: n.ID, Kind: n.Kind}, hookdef.NoBranch
			var stopped *Outcome
			switch {
			case n.Kind == hookdef.ConditionNode:
				branch, stopped = each.evaluateCondition(n, &entry)
			case n.Kind == hookdef.HookNode && n.Hook.Has(hookdef.Progress):
				stopped = each.runHook(ctx, n, &entry)
			}
			if stopped != nil {
				each.trace.addFirst(entry)
				return nil
			}
			n = each.program.next(n, branch)
		}
		return each.state.handled.raw
	}
}
