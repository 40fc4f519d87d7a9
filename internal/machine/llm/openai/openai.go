// Package openai is the adapter for servers with OpenAI's chat completions API: OpenAI, and
// by their base URL Ollama, llama.cpp, vLLM, LM Studio and OpenRouter.
package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/guideway-dev/guideway/internal/machine/llm"
	llmwire "github.com/guideway-dev/guideway/internal/machine/llm/wire"
)

// DefaultBaseURL is the URL of OpenAI's server.
const DefaultBaseURL = "https://api.openai.com/v1"

// Options configures a Model.
type Options struct {
	// BaseURL is the URL of the server; if empty, DefaultBaseURL is used.
	BaseURL string
	// Key is sent as a bearer token unless it is empty.
	Key string
	// OldMaxTokens sends the answer limit as max_tokens, for servers that do not support
	// max_completion_tokens.
	OldMaxTokens bool
	// NoStream requests answers in one piece.
	NoStream bool
	// HTTP is the client; nil means http.DefaultClient.
	HTTP *http.Client
}

// Model sends requests to one server. Each request names its model.
type Model struct {
	wire   llmwire.Client
	old    bool
	stream bool
}

var _ llm.Model = (*Model)(nil)

// New returns a Model.
func New(o Options) *Model {
	base := cmp.Or(strings.TrimSuffix(o.BaseURL, "/"), DefaultBaseURL)
	m := &Model{old: o.OldMaxTokens, stream: !o.NoStream}
	m.wire = llmwire.Client{URL: base + "/chat/completions", Header: http.Header{}, HTTP: o.HTTP, Secrets: []string{o.Key}}
	if o.Key != "" {
		m.wire.Header.Set("Authorization", "Bearer "+o.Key)
	}
	return m
}

// request is the body of a request.
type request struct {
	Model         string         `json:"model"`
	MaxCompletion int            `json:"max_completion_tokens,omitempty"`
	MaxTokens     int            `json:"max_tokens,omitempty"`
	Temperature   *float64       `json:"temperature,omitempty"`
	Messages      []llm.Message  `json:"messages"`
	Tools         []tool         `json:"tools,omitempty"`
	ToolChoice    *tool          `json:"tool_choice,omitempty"`
	Stream        bool           `json:"stream,omitempty"`
	StreamOptions *streamOptions `json:"stream_options,omitempty"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

type tool struct {
	Type     string         `json:"type"`
	Function llm.Definition `json:"function"`
}

// requestBody returns the body of a request.
func (m *Model) requestBody(r llm.Request) request {
	b := request{Model: r.Model, Temperature: r.Temperature, Messages: r.Messages}
	if m.old {
		b.MaxTokens = r.MaxTokens
	} else {
		b.MaxCompletion = r.MaxTokens
	}
	for _, t := range r.Tools {
		b.Tools = append(b.Tools, tool{"function", t})
	}
	if r.Force != "" {
		b.ToolChoice = &tool{"function", llm.Definition{Name: r.Force}}
	}
	if m.stream {
		b.Stream, b.StreamOptions = true, &streamOptions{IncludeUsage: true}
	}
	return b
}

// Complete implements llm.Model.
func (m *Model) Complete(ctx context.Context, r llm.Request, sink func(llm.Delta)) (*llm.Response, error) {
	res, err := m.wire.Post(ctx, r.Key, m.requestBody(r))
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if !llmwire.IsStream(res) {
		data, err := m.wire.ReadJSON(ctx, res.Body)
		if err != nil {
			return nil, err
		}
		if e := m.bodyError(data); e != nil {
			return nil, e
		}
		answer, err := llm.ReadCompletion(data)
		if err == nil && sink != nil && answer.Message.Content != "" {
			sink(llm.Delta{Text: answer.Message.Content})
		}
		return answer, err
	}
	a := accumulator{sink: sink}
	err = m.wire.Events(ctx, res.Body, func(e llmwire.Event) (bool, error) {
		if e.Data == "[DONE]" {
			return true, nil
		}
		if err := m.bodyError([]byte(e.Data)); err != nil {
			return false, err
		}
		return false, a.addChunk([]byte(e.Data))
	})
	if err != nil && !a.isFinished() {
		return nil, err
	}
	return a.toResponse()
}

// bodyError returns the error in a document with the status 200, if any: some servers fail
// after the answer has begun.
func (m *Model) bodyError(data []byte) error {
	var body struct {
		Error   json.RawMessage `json:"error"`
		Choices json.RawMessage `json:"choices"`
	}
	if json.Unmarshal(data, &body) != nil || len(body.Error) == 0 || string(body.Error) == "null" {
		return nil
	}
	return m.wire.BodyError(data)
}
