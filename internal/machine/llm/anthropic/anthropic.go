// Package anthropic is the adapter for Anthropic's messages API.
package anthropic

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/guideway-dev/guideway/internal/machine/llm"
	llmwire "github.com/guideway-dev/guideway/internal/machine/llm/wire"
)

const (
	// DefaultBaseURL is the URL of Anthropic's server.
	DefaultBaseURL = "https://api.anthropic.com"
	apiVersion     = "2023-06-01"
	// defaultMaxTokens limits an answer if the request does not, because the API requires a
	// limit.
	defaultMaxTokens = 8192
)

// Options configures a Model.
type Options struct {
	// BaseURL is the URL of the server; if empty, DefaultBaseURL is used.
	BaseURL string
	// Key is the API key.
	Key string
	// NoStream requests answers in one piece.
	NoStream bool
	// HTTP is the client; nil means http.DefaultClient.
	HTTP *http.Client
}

// Model sends requests to one server. Each request names its model.
type Model struct {
	wire   llmwire.Client
	stream bool
}

var _ llm.Model = (*Model)(nil)

// New returns a Model.
func New(o Options) *Model {
	base := cmp.Or(strings.TrimSuffix(o.BaseURL, "/"), DefaultBaseURL)
	m := &Model{stream: !o.NoStream}
	m.wire = llmwire.Client{URL: base + "/v1/messages", Header: http.Header{}, HTTP: o.HTTP, Secrets: []string{o.Key}}
	m.wire.Header.Set("X-Api-Key", o.Key)
	m.wire.Header.Set("Anthropic-Version", apiVersion)
	return m
}

// request is the body of a request.
type request struct {
	Model       string      `json:"model"`
	MaxTokens   int         `json:"max_tokens"`
	Temperature *float64    `json:"temperature,omitempty"`
	System      string      `json:"system,omitempty"`
	Messages    []message   `json:"messages"`
	Tools       []tool      `json:"tools,omitempty"`
	ToolChoice  *toolChoice `json:"tool_choice,omitempty"`
	Stream      bool        `json:"stream,omitempty"`
}

type message struct {
	Role    llm.Role `json:"role"`
	Content []block  `json:"content"`
}

// block is a part of a message.
type block struct {
	Type string `json:"type"`
	Text string `json:"text,omitempty"`
	// ID, Name and Input are set for a call.
	ID    string          `json:"id,omitempty"`
	Name  string          `json:"name,omitempty"`
	Input json.RawMessage `json:"input,omitempty"`
	// ToolUseID and Content are set for the result of a call.
	ToolUseID string `json:"tool_use_id,omitempty"`
	Content   string `json:"content,omitempty"`
}

type tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"input_schema"`
}

type toolChoice struct {
	Type string `json:"type"`
	Name string `json:"name,omitempty"`
}

// requestBody returns the body of a request.
func (m *Model) requestBody(r llm.Request) request {
	b := request{Model: r.Model, MaxTokens: r.MaxTokens, Temperature: r.Temperature, Stream: m.stream}
	if b.MaxTokens == 0 {
		b.MaxTokens = defaultMaxTokens
	}
	var system []string
	for i := range r.Messages {
		if r.Messages[i].Role == llm.System {
			system = append(system, r.Messages[i].Content)
			continue
		}
		b.addMessage(&r.Messages[i])
	}
	b.System = strings.Join(system, "\n\n")
	if len(b.Messages) == 0 || b.Messages[0].Role != llm.User {
		// The API requires that a conversation begins with the user.
		b.Messages = append([]message{{llm.User, []block{{Type: "text", Text: "Begin."}}}}, b.Messages...)
	}
	for _, t := range r.Tools {
		schema := t.Parameters
		if len(schema) == 0 {
			schema = json.RawMessage(`{"type":"object"}`)
		}
		b.Tools = append(b.Tools, tool{t.Name, t.Description, schema})
	}
	if r.Force != "" {
		b.ToolChoice = &toolChoice{"tool", r.Force}
	}
	return b
}

// addMessage appends a message. It merges consecutive messages of one role, as the API
// requires.
func (b *request) addMessage(m *llm.Message) {
	role := llm.User
	if m.Role == llm.Assistant {
		role = llm.Assistant
	}
	var blocks []block
	switch {
	case m.Role == llm.Tool:
		blocks = []block{{Type: "tool_result", ToolUseID: m.ToolCallID, Content: m.Content}}
	case m.Content != "":
		blocks = []block{{Type: "text", Text: m.Content}}
	}
	for _, c := range m.ToolCalls {
		if role != llm.Assistant { // calls are only allowed in assistant messages; in others they become text
			blocks = append(blocks, block{Type: "text", Text: c.Function.Name + " " + c.Function.Arguments})
			continue
		}
		input := json.RawMessage(c.Function.Arguments)
		if !isObject(input) {
			input = json.RawMessage("{}")
		}
		blocks = append(blocks, block{Type: "tool_use", ID: c.ID, Name: c.Function.Name, Input: input})
	}
	if len(blocks) == 0 {
		return
	}
	if n := len(b.Messages); n > 0 && b.Messages[n-1].Role == role {
		b.Messages[n-1].Content = append(b.Messages[n-1].Content, blocks...)
		return
	}
	b.Messages = append(b.Messages, message{role, blocks})
}

func isObject(data json.RawMessage) bool {
	var object map[string]json.RawMessage
	return json.Unmarshal(data, &object) == nil && object != nil
}

// answer is a complete answer.
type answer struct {
	ID      string  `json:"id"`
	Model   string  `json:"model"`
	Content []block `json:"content"`
	Stop    string  `json:"stop_reason"`
	Usage   usage   `json:"usage"`
}

type usage struct {
	Input   int `json:"input_tokens"`
	Output  int `json:"output_tokens"`
	Read    int `json:"cache_read_input_tokens"`
	Created int `json:"cache_creation_input_tokens"`
}

// addUsage updates the usage with that of a later part of a stream.
func (u *usage) addUsage(v usage) {
	u.Input, u.Output = max(u.Input, v.Input), max(u.Output, v.Output)
	u.Read, u.Created = max(u.Read, v.Read), max(u.Created, v.Created)
}

// Complete implements llm.Model.
func (m *Model) Complete(ctx context.Context, r llm.Request, sink func(llm.Delta)) (*llm.Response, error) {
	res, err := m.wire.Post(ctx, r.Key, m.requestBody(r))
	if err != nil {
		return nil, asRateLimit(err)
	}
	defer res.Body.Close()
	if sink == nil {
		sink = func(llm.Delta) {}
	}
	if llmwire.IsStream(res) {
		s := stream{sink: sink, client: &m.wire}
		if err := m.wire.Events(ctx, res.Body, s.addEvent); err != nil {
			return nil, err
		}
		return s.answer.toResponse()
	}
	data, err := m.wire.ReadJSON(ctx, res.Body)
	if err != nil {
		return nil, err
	}
	var a answer
	if err := json.Unmarshal(data, &a); err != nil {
		return nil, &llm.Error{Kind: llm.Malformed, Message: "the answer cannot be parsed: " + err.Error(), Err: err}
	}
	for _, b := range a.Content {
		if b.Text != "" {
			sink(llm.Delta{Text: b.Text})
		}
	}
	return a.toResponse()
}

// asRateLimit converts the status 529 (overloaded) to RateLimit.
func asRateLimit(err error) error {
	const status = 529
	if e := llm.AsError(err); e.Status == status {
		e.Kind = llm.RateLimit
	}
	return err
}

// toResponse converts the answer to an llm.Response.
func (a *answer) toResponse() (*llm.Response, error) {
	r := &llm.Response{
		ID: a.ID, Model: a.Model, Message: llm.Message{Role: llm.Assistant},
		Usage: llm.Usage{Input: a.Usage.Input + a.Usage.Read + a.Usage.Created, Output: a.Usage.Output, Cached: a.Usage.Read},
	}
	var texts []string
	for _, b := range a.Content {
		switch b.Type {
		case "text":
			texts = append(texts, b.Text)
		case "tool_use":
			r.Message.ToolCalls = append(r.Message.ToolCalls, llm.ToolCall{
				ID: b.ID, Type: "function", Function: llm.Function{Name: b.Name, Arguments: string(b.Input)},
			})
		}
	}
	r.Message.Content = strings.Join(texts, "")
	switch a.Stop {
	case "tool_use":
		r.Finish = llm.FinishTools
	case "max_tokens", "model_context_window_exceeded":
		r.Finish = llm.FinishLength
	case "refusal":
		return nil, &llm.Error{Kind: llm.Refusal, Message: "the model refused to answer", Usage: r.Usage}
	default:
		r.Finish = llm.FinishStop
	}
	if err := r.Check(); err != nil {
		return nil, err
	}
	return r, nil
}

// stream assembles an answer from its events.
type stream struct {
	sink   func(llm.Delta)
	client *llmwire.Client
	answer answer
	// input is the JSON input of the current call.
	input []byte
}

// event is one event of a stream.
type event struct {
	Type    string `json:"type"`
	Message answer `json:"message"`
	Index   int    `json:"index"`
	Content block  `json:"content_block"`
	Delta   struct {
		Type    string `json:"type"`
		Text    string `json:"text"`
		Partial string `json:"partial_json"`
		Stop    string `json:"stop_reason"`
	} `json:"delta"`
	Usage usage `json:"usage"`
}

// addEvent adds the next event.
func (s *stream) addEvent(raw llmwire.Event) (done bool, err error) {
	var e event
	if err := json.Unmarshal([]byte(raw.Data), &e); err != nil {
		return false, &llm.Error{Kind: llm.Malformed, Message: "a part of the answer cannot be parsed: " + err.Error(), Err: err}
	}
	switch e.Type {
	case "message_start":
		s.answer = e.Message
	case "content_block_start":
		e.Content.Input, s.input = nil, nil
		s.answer.Content = append(s.answer.Content, e.Content)
		if e.Content.Type == "tool_use" {
			s.sink(llm.Delta{Tool: e.Content.Name})
		}
	case "content_block_delta":
		return false, s.addDelta(&e)
	case "content_block_stop":
		if n := len(s.answer.Content); n > 0 && s.answer.Content[n-1].Type == "tool_use" {
			if len(s.input) == 0 {
				s.input = []byte("{}")
			}
			s.answer.Content[n-1].Input = s.input
			s.input = nil
		}
	case "message_delta":
		if e.Delta.Stop != "" {
			s.answer.Stop = e.Delta.Stop
		}
		s.answer.Usage.addUsage(e.Usage)
	case "message_stop":
		return true, nil
	case "error":
		return false, s.client.BodyError([]byte(raw.Data))
	}
	return false, nil
}

// addDelta adds a delta to the current block.
func (s *stream) addDelta(e *event) error {
	n := len(s.answer.Content)
	if n == 0 || e.Index != n-1 {
		return &llm.Error{Kind: llm.Malformed, Message: "a part of the answer is outside of a content block"}
	}
	switch e.Delta.Type {
	case "text_delta":
		s.answer.Content[n-1].Text += e.Delta.Text
		s.sink(llm.Delta{Text: e.Delta.Text})
	case "input_json_delta":
		s.input = append(s.input, e.Delta.Partial...)
	}
	return nil
}
