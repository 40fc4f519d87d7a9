package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/jsontext"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// tool is one tool of ours: what a client reads of it, and what it does.
type tool struct {
	name, title, description string
	params                   []param
	// effect is what a call does to what the server keeps.
	effect effect
	// output is the schema of the answer. It requires nothing, because the
	// answer to a bad call has other members.
	output map[string]any
	// handle answers a call whose arguments fit the parameters. The answer
	// must marshal to a JSON object.
	handle func(ctx context.Context, in arguments) (any, error)
	// converse stands in place of handle where the answer may be a *question to
	// the person at the client.
	converse func(ctx context.Context, req *mcp.CallToolRequest, in arguments) (any, error)
	// legal, if set, looks at the call that the error about a bad one suggests, and
	// gives one that is legal now in its place, or nil.
	legal func(ctx context.Context, suggested *nextCall) *nextCall
	// failed, if set, gives the error of a call the form that callers of this
	// tool know.
	failed func(*callError) any
}

// effect is what a tool does to what the server keeps.
type effect int

const (
	// effectNone reads.
	effectNone effect = iota
	// effectAdds adds, at each call again.
	effectAdds
	// effectAddsOnce adds; the same call again adds nothing.
	effectAddsOnce
	// effectReplaces overwrites or ends; the same call again changes nothing.
	effectReplaces
)

// question is an answer to a call that asks the person at the client; the
// client sends the call again with the response and the state.
type question struct {
	form  *mcp.ElicitParams
	state string
	// failed is the answer where the client cannot ask.
	failed *run.Refusal
}

// gateForm names the one form of a question.
const gateForm = "gate"

// definition is the tool as the protocol shows it.
func (t *tool) definition() *mcp.Tool {
	no, destroys := false, t.effect == effectReplaces
	hints := &mcp.ToolAnnotations{
		ReadOnlyHint: t.effect == effectNone, IdempotentHint: t.effect != effectAdds, OpenWorldHint: &no,
	}
	if t.effect != effectNone {
		hints.DestructiveHint = &destroys
	}
	return &mcp.Tool{
		Name: t.name, Title: t.title, Description: t.description,
		InputSchema:  inputSchema(t.params),
		OutputSchema: t.output, Annotations: hints,
	}
}

// server gives the handler that checks the arguments, does the call and writes
// the answer as structured content and as the same compact text.
func (t *tool) server(logger *slog.Logger) mcp.ToolHandler {
	return func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		ctx = withClient(ctx, req)
		in, err := readArguments(t, req.Params.Arguments)
		if err != nil {
			t.suggestLegal(ctx, err)
			return t.failure(ctx, logger, err), nil
		}
		var out any
		if t.converse != nil {
			out, err = t.converse(ctx, req, in)
		} else {
			out, err = t.handle(ctx, in)
		}
		if err != nil {
			return t.failure(ctx, logger, err), nil
		}
		if q, ok := out.(*question); ok {
			noteQuestion(ctx, q)
			return &mcp.CallToolResult{
				InputRequests: mcp.InputRequestMap{gateForm: q.form}, RequestState: q.state,
			}, nil
		}
		res, err := success(out)
		if err != nil {
			return t.failure(ctx, logger, err), nil
		}
		return res, nil
	}
}

// suggestLegal makes the call that an error suggests one that is legal now.
func (t *tool) suggestLegal(ctx context.Context, err error) {
	var bad *callError
	if t.legal == nil || !errors.As(err, &bad) || bad.Next == nil || bad.Next.Tool != t.name {
		return
	}
	if better := t.legal(ctx, bad.Next); better != nil {
		bad.Next = better
	}
}

func success(out any) (*mcp.CallToolResult, error) {
	switch a := out.(type) {
	case worded:
		return a.result()
	case runAnswer:
		w, err := a.worded()
		if err != nil {
			return nil, err
		}
		return w.result()
	}
	text, err := jsontext.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("write the answer: %w", err)
	}
	return &mcp.CallToolResult{
		Content:           []mcp.Content{&mcp.TextContent{Text: string(text)}},
		StructuredContent: json.RawMessage(text),
	}, nil
}

// callError is a bad call: what was given, what is allowed and the call that
// works.
type callError struct {
	Code    guideway.Code `json:"code"`
	Message string        `json:"error"`
	Field   string        `json:"field,omitempty"`
	Given   any           `json:"given,omitempty"`
	Allowed any           `json:"allowed,omitempty"`
	// Fix says in words how to mend the call.
	Fix string `json:"fix,omitempty"`
	// Next is a call that works.
	Next *nextCall `json:"next,omitempty"`
	// Diagnostics say why a definition did not load.
	Diagnostics []guideway.Diagnostic `json:"diagnostics,omitempty"`
}

// nextCall is a call, ready to copy.
type nextCall struct {
	Tool      string         `json:"tool"`
	Arguments map[string]any `json:"arguments"`
}

// Error implements error.
func (e *callError) Error() string { return e.Message }

// failure is the answer to a call that went wrong. The detail of an internal
// error stays with us, in the log.
func (t *tool) failure(ctx context.Context, logger *slog.Logger, err error) *mcp.CallToolResult {
	if refusal, ok := run.IsRefusal(err); ok {
		return errorResult(refusal)
	}
	var ce *callError
	if !errors.As(err, &ce) {
		ce = &callError{Code: guideway.ErrorCode(err), Message: err.Error(), Fix: guideway.ErrorFix(err)}
		if ce.Code == guideway.CodeInternal {
			logger.ErrorContext(ctx, "a tool failed", "tool", t.name, "error", err)
			ce.Message = t.name + " failed for a reason that the server's log tells"
		}
	}
	if t.failed != nil {
		return errorResult(t.failed(ce))
	}
	return errorResult(ce)
}

// errorResult is the answer to a call that went wrong.
func errorResult(answer any) *mcp.CallToolResult {
	text, err := jsontext.Marshal(answer)
	if err != nil {
		text = []byte(`{"code":"internal","error":"the error could not be written"}`)
	}
	return &mcp.CallToolResult{
		IsError:           true,
		Content:           []mcp.Content{&mcp.TextContent{Text: string(text)}},
		StructuredContent: json.RawMessage(text),
	}
}

// object is the JSON Schema of an object with the given properties.
func object(properties map[string]any) map[string]any {
	return map[string]any{"type": "object", "properties": properties}
}

// typed is the JSON Schema of a value of a type, such as "string".
func typed(name string) map[string]any { return map[string]any{"type": name} }

// orNull is the JSON Schema of a value that may be null.
func orNull(schema map[string]any) map[string]any {
	return map[string]any{"anyOf": []any{schema, typed("null")}}
}

// listOf is the JSON Schema of a list.
func listOf(items map[string]any) map[string]any {
	return map[string]any{"type": "array", "items": items}
}

// shorten cuts what a caller gave, so that an error never echoes a large input.
func shorten(v any) any {
	s, ok := v.(string)
	if !ok {
		return v
	}
	const most = 80
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
