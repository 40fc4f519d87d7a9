// Package llm speaks to language models: one narrow interface, with adapters in
// packages of their own for the protocols. Messages have the JSON form of OpenAI's
// chat completions, because that is what the handlers of agent machines know.
package llm

import (
	"context"
	"encoding/json"
	"strings"
)

// Model answers a conversation. It may be used by many goroutines at once.
type Model interface {
	// Complete sends a request and gives the whole answer. While it comes, sink
	// gets its parts, in order; nil is nobody. An error is an *Error wherever the
	// model or the way to it said why. There is an answer or an error, never
	// both, and never that of an earlier request.
	Complete(ctx context.Context, r Request, sink func(Delta)) (*Response, error)
}

// Role says who speaks.
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
	// Name tells speakers of one role apart.
	Name string `json:"name,omitempty"`
	// ToolCalls are what an assistant wants to have called.
	ToolCalls []ToolCall `json:"tool_calls,omitempty"`
	// ToolCallID is the call that a tool's message answers.
	ToolCallID string `json:"tool_call_id,omitempty"`
}

// UnmarshalJSON reads a message whose content is a text, null, or a list of parts,
// of which the texts count.
func (m *Message) UnmarshalJSON(data []byte) error {
	type plain Message // without this method
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

// MarshalJSON writes the content of a message that is a call alone as null, as
// the protocols do.
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

// ToolCall is a call that a model wants.
type ToolCall struct {
	ID string `json:"id"`
	// Type is "function".
	Type     string   `json:"type"`
	Function Function `json:"function"`
}

// Function is what is called, and by what.
type Function struct {
	Name string `json:"name"`
	// Arguments is JSON as the model wrote it, which may be wrong.
	Arguments string `json:"arguments"`
}

// Definition is a function that a model may call.
type Definition struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// Parameters is a JSON Schema; nil is none.
	Parameters json.RawMessage `json:"parameters,omitempty"`
}

// Request asks a model to go on with a conversation.
type Request struct {
	Model    string       `json:"model"`
	Messages []Message    `json:"messages"`
	Tools    []Definition `json:"tools,omitempty"`
	// Force is the name of the tool that must be called, or "".
	Force string `json:"force,omitempty"`
	// MaxTokens bounds the answer; 0 is the adapter's own bound.
	MaxTokens   int      `json:"maxTokens,omitempty"`
	Temperature *float64 `json:"temperature,omitempty"`
	// Purpose says what the request is for; it is not sent.
	Purpose Purpose `json:"purpose"`
}

// Purpose says what a request is for.
type Purpose struct {
	Machine string `json:"machine,omitempty"`
	State   string `json:"state,omitempty"`
	Agent   string `json:"agent,omitempty"`
	// Index counts the answers and errors that the run has had before.
	Index int `json:"index"`
}

// Delta is a part of an answer.
type Delta struct {
	// Text is a piece of the content.
	Text string
	// Tool is the name of a tool that the model begins to call.
	Tool string
}

// Response is the answer of a model.
type Response struct {
	ID    string `json:"id,omitempty"`
	Model string `json:"model,omitempty"`
	// Created is in seconds of Unix time, 0 if unknown.
	Created int64   `json:"created,omitempty"`
	Message Message `json:"message"`
	// Finish is why the answer ended: one of the Finish constants, or the
	// model's own word.
	Finish string `json:"finish,omitempty"`
	Usage  Usage  `json:"usage"`
}

// Why an answer ended.
const (
	FinishStop   = "stop"
	FinishTools  = "tool_calls"
	FinishLength = "length"
	FinishFilter = "content_filter"
)

// Usage is what a request has used, in tokens.
type Usage struct {
	Input  int `json:"input"`
	Output int `json:"output"`
	// Cached are those of Input that the model had in store.
	Cached int `json:"cached,omitempty"`
}

// Add gives the sum.
func (u Usage) Add(v Usage) Usage {
	return Usage{Input: u.Input + v.Input, Output: u.Output + v.Output, Cached: u.Cached + v.Cached}
}

// completion is a chat.completion of OpenAI's.
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

// Completion is the response as a chat.completion object, which handlers read.
func (r *Response) Completion() json.RawMessage {
	message, err := json.Marshal(r.Message)
	if err != nil {
		return json.RawMessage("null") // a message is texts alone
	}
	c := completion{ID: r.ID, Object: "chat.completion", Created: r.Created, Model: r.Model, Choices: []choice{{Message: message, Finish: r.Finish}}}
	c.Usage.Prompt, c.Usage.Completion, c.Usage.Total = r.Usage.Input, r.Usage.Output, r.Usage.Input+r.Usage.Output
	out, err := json.Marshal(c)
	if err != nil {
		return json.RawMessage("null")
	}
	return out
}

// ReadCompletion reads a chat.completion object. A refusal is an *Error.
func ReadCompletion(data []byte) (*Response, error) {
	malformed := func(why string) error {
		return &Error{Kind: Malformed, Message: "the answer is no chat completion: " + why}
	}
	var c completion
	if err := json.Unmarshal(data, &c); err != nil {
		return nil, malformed(err.Error())
	}
	if len(c.Choices) == 0 {
		return nil, malformed("it has no choices")
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
	_ = json.Unmarshal(first.Message, &refusal) // it was read above
	if refusal.Refusal != nil && *refusal.Refusal != "" {
		return nil, &Error{Kind: Refusal, Message: *refusal.Refusal, Usage: r.Usage}
	}
	if err := r.Check(); err != nil {
		return nil, err
	}
	return r, nil
}

// Check refuses an answer that says nothing, and one that a filter withheld.
func (r *Response) Check() error {
	switch {
	case r.Finish == FinishFilter:
		return &Error{Kind: Refusal, Message: "a content filter withheld the answer", Usage: r.Usage}
	case r.Message.Content == "" && len(r.Message.ToolCalls) == 0:
		return &Error{Kind: Malformed, Message: "the answer is empty", Usage: r.Usage}
	}
	return nil
}
