package anthropic

import (
	"encoding/json"

	"github.com/guideway-dev/guideway/internal/machine/llm"
	llmwire "github.com/guideway-dev/guideway/internal/machine/llm/wire"
)

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
