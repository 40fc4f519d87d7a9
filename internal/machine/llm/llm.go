// Package llm defines the interface to language models; the adapters for the protocols are
// in packages below it. Messages have the JSON form of OpenAI's chat completions, because
// the handlers of agent machines read that form.
package llm

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
)

// Model completes conversations. It is safe for concurrent use.
type Model interface {
	// Complete sends a request and returns the whole answer. If sink is not nil, it
	// receives the parts of the answer in order. Errors of the model or the connection are
	// of type *Error. Complete returns either an answer or an error.
	Complete(ctx context.Context, r Request, sink func(Delta)) (*Response, error)
}

// Role is the author of a message.
type Role string

// The roles.
const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
	Tool      Role = "tool"
)

// Message is a message of a conversation.
type Message struct {
	Role    Role   `json:"role"`
	Content string `json:"content"`
	// Name distinguishes authors with the same role.
	Name string `json:"name,omitempty"`
	// ToolCalls are the calls that an assistant requests.
	ToolCalls []ToolCall `json:"tool_calls,omitempty"`
	// ToolCallID is the call that a tool's message answers.
	ToolCallID string `json:"tool_call_id,omitempty"`
}

// UnmarshalJSON decodes a message whose content is a text, null, or a list of parts, of
// which it keeps the texts.
func (m *Message) UnmarshalJSON(data []byte) error {
	type plain Message // plain has no UnmarshalJSON method, so there is no recursion
	read := struct {
		*plain
		Content json.RawMessage `json:"content"`
	}{plain: (*plain)(m)}
	if err := json.Unmarshal(data, &read); err != nil {
		return err
	}
	m.Content = ""
	if len(read.Content) == 0 || string(read.Content) == "null" {
		return nil
	}
	if read.Content[0] != '[' {
		return json.Unmarshal(read.Content, &m.Content)
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal(read.Content, &parts); err != nil {
		return err
	}
	texts := make([]string, len(parts))
	for i, p := range parts {
		texts[i] = p.Text
	}
	m.Content = strings.Join(texts, "\n")
	return nil
}

// MarshalJSON writes null as the content of a message that only has calls, as the protocols
// require.
func (m Message) MarshalJSON() ([]byte, error) {
	type plain Message
	if m.Content != "" || len(m.ToolCalls) == 0 {
		return json.Marshal(plain(m))
	}
	return json.Marshal(struct {
		plain
		Content *string `json:"content"`
	}{plain: plain(m)})
}

// ToolCall is a tool call that a model requests.
type ToolCall struct {
	ID string `json:"id"`
	// Type is "function".
	Type     string   `json:"type"`
	Function Function `json:"function"`
}

// Function is the name and the arguments of a call.
type Function struct {
	Name string `json:"name"`
	// Arguments is the text that the model wrote, which may be invalid JSON.
	Arguments string `json:"arguments"`
}

// ArgumentsText returns the arguments of a call, given as an object or as a text, in the
// form in which a model writes them.
func ArgumentsText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return cmp.Or(string(raw), "{}")
}

// Definition is a function that a model may call.
type Definition struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// Parameters is a JSON Schema, or nil.
	Parameters json.RawMessage `json:"parameters,omitempty"`
}

// Request is a request to complete a conversation.
type Request struct {
	Model    string       `json:"model"`
	Messages []Message    `json:"messages"`
	Tools    []Definition `json:"tools,omitempty"`
	// Force is the name of the tool that must be called, or "".
	Force string `json:"force,omitempty"`
	// MaxTokens limits the answer; 0 means the adapter's limit.
	MaxTokens   int      `json:"maxTokens,omitempty"`
	Temperature *float64 `json:"temperature,omitempty"`
	// Key is the same for each attempt of a request whose answer did not arrive. It is sent
	// as the header Idempotency-Key, for servers that support it.
	Key string `json:"-"`
	// Purpose is not sent to the server.
	Purpose Purpose `json:"purpose"`
}

// Purpose is the position of the run that a request belongs to.
type Purpose struct {
	Machine string `json:"machine,omitempty"`
	State   string `json:"state,omitempty"`
	Agent   string `json:"agent,omitempty"`
	// Index counts the earlier answers and errors of the run.
	Index int `json:"index"`
}

// Delta is a part of an answer.
type Delta struct {
	// Text is a piece of the content.
	Text string
	// Tool is the name of a tool whose call begins.
	Tool string
}

// Response is the answer of a model.
type Response struct {
	ID    string `json:"id,omitempty"`
	Model string `json:"model,omitempty"`
	// Created is a Unix time in seconds; 0 if unknown.
	Created int64   `json:"created,omitempty"`
	Message Message `json:"message"`
	// Finish is the reason for the end of the answer: a Finish constant or the model's
	// value.
	Finish string `json:"finish,omitempty"`
	Usage  Usage  `json:"usage"`
}

// The reasons for the end of an answer.
const (
	FinishStop   = "stop"
	FinishTools  = "tool_calls"
	FinishLength = "length"
	FinishFilter = "content_filter"
)

// Usage is the number of tokens of a request.
type Usage struct {
	Input  int `json:"input"`
	Output int `json:"output"`
	// Cached is the part of Input that the server read from its cache.
	Cached int `json:"cached,omitempty"`
}

// Add returns the sum.
func (u Usage) Add(v Usage) Usage {
	return Usage{Input: u.Input + v.Input, Output: u.Output + v.Output, Cached: u.Cached + v.Cached}
}

// completion is a chat.completion object of OpenAI.
type completion struct {
	ID      string   `json:"id"`
	Object  string   `json:"object"`
	Created int64    `json:"created"`
	Model   string   `json:"model"`
	Choices []choice `json:"choices"`
	Usage   struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Total      int `json:"total_tokens"`
		Details    *struct {
			Cached int `json:"cached_tokens"`
		} `json:"prompt_tokens_details,omitempty"`
	} `json:"usage"`
}

type choice struct {
	Index   int             `json:"index"`
	Message json.RawMessage `json:"message"`
	Finish  string          `json:"finish_reason"`
}

// Completion returns the response as a chat.completion object for handlers.
func (r *Response) Completion() json.RawMessage {
	message, err := json.Marshal(r.Message)
	if err != nil {
		return json.RawMessage("null") // impossible: a message contains only text
	}
	c := completion{ID: r.ID, Object: "chat.completion", Created: r.Created, Model: r.Model, Choices: []choice{{Message: message, Finish: r.Finish}}}
	c.Usage.Prompt, c.Usage.Completion, c.Usage.Total = r.Usage.Input, r.Usage.Output, r.Usage.Input+r.Usage.Output
	out, err := json.Marshal(c)
	if err != nil {
		return json.RawMessage("null")
	}
	return out
}

// ReadCompletion parses a chat.completion object. A refusal, or an object that is not
// valid, is an *Error.
func ReadCompletion(data []byte) (*Response, error) {
	malformed := func(why string) error {
		return &Error{Kind: Malformed, Message: "the answer is not a chat completion: " + why}
	}
	var c completion
	if err := json.Unmarshal(data, &c); err != nil {
		return nil, malformed(err.Error())
	}
	if len(c.Choices) == 0 {
		return nil, malformed("the answer has no choices")
	}
	var refusal struct {
		Refusal *string `json:"refusal"`
	}
	first := &c.Choices[0]
	r := &Response{ID: c.ID, Model: c.Model, Created: c.Created, Finish: first.Finish, Usage: Usage{Input: c.Usage.Prompt, Output: c.Usage.Completion}}
	if c.Usage.Details != nil {
		r.Usage.Cached = c.Usage.Details.Cached
	}
	if err := json.Unmarshal(first.Message, &r.Message); err != nil {
		return nil, malformed(err.Error())
	}
	_ = json.Unmarshal(first.Message, &refusal) // the message was already parsed above
	if refusal.Refusal != nil && *refusal.Refusal != "" {
		return nil, &Error{Kind: Refusal, Message: *refusal.Refusal, Usage: r.Usage}
	}
	if err := r.Check(); err != nil {
		return nil, err
	}
	return r, nil
}

// Check returns an error for an empty answer or one that a filter withheld.
func (r *Response) Check() error {
	switch {
	case r.Finish == FinishFilter:
		return &Error{Kind: Refusal, Message: "a content filter withheld the answer", Usage: r.Usage}
	case r.Message.Content == "" && len(r.Message.ToolCalls) == 0:
		return &Error{Kind: Malformed, Message: "the answer is empty", Usage: r.Usage}
	}
	return nil
}
