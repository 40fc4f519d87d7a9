package openai

import (
	"encoding/json"
	"fmt"

	"github.com/guideway-dev/guideway/internal/machine/llm"
)

// maxCalls is the maximum number of calls in one answer.
const maxCalls = 256

// accumulator assembles an answer from its chunks.
type accumulator struct {
	sink    func(llm.Delta)
	answer  llm.Response
	text    []byte
	refusal []byte
	// calls are the tool calls by index, args the texts of their arguments.
	calls []llm.ToolCall
	args  [][]byte
}

// chunk is one event of a stream.
type chunk struct {
	ID      string `json:"id"`
	Created int64  `json:"created"`
	Model   string `json:"model"`
	Choices []struct {
		Delta struct {
			Content   string `json:"content"`
			Refusal   string `json:"refusal"`
			ToolCalls []struct {
				Index    *int         `json:"index"`
				ID       string       `json:"id"`
				Function llm.Function `json:"function"`
			} `json:"tool_calls"`
		} `json:"delta"`
		Finish string `json:"finish_reason"`
	} `json:"choices"`
	Usage *struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Details    struct {
			Cached int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	} `json:"usage"`
}

// addChunk adds a chunk.
func (a *accumulator) addChunk(data []byte) error {
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		return &llm.Error{Kind: llm.Malformed, Message: "a part of the answer cannot be parsed: " + err.Error(), Err: err}
	}
	if c.ID != "" {
		a.answer.ID, a.answer.Created, a.answer.Model = c.ID, c.Created, c.Model
	}
	if c.Usage != nil {
		a.answer.Usage = llm.Usage{Input: c.Usage.Prompt, Output: c.Usage.Completion, Cached: c.Usage.Details.Cached}
	}
	if len(c.Choices) == 0 {
		return nil
	}
	first := &c.Choices[0]
	if first.Finish != "" {
		a.answer.Finish = first.Finish
	}
	a.refusal = append(a.refusal, first.Delta.Refusal...)
	if text := first.Delta.Content; text != "" {
		a.text = append(a.text, text...)
		a.sendDelta(llm.Delta{Text: text})
	}
	for i := range first.Delta.ToolCalls {
		call := &first.Delta.ToolCalls[i]
		at := len(a.calls)
		switch {
		case call.Index != nil:
			at = *call.Index
		case call.ID == "" && at > 0: // without an id and an index, the chunk continues the last call
			at--
		}
		if at < 0 || at > len(a.calls) {
			return &llm.Error{Kind: llm.Malformed, Message: fmt.Sprintf("a part of the answer has the call index %d, but the next index is %d", at, len(a.calls))}
		}
		if at >= maxCalls {
			return &llm.Error{Kind: llm.Malformed, Message: fmt.Sprintf("the answer has more than %d tool calls", maxCalls)}
		}
		if at == len(a.calls) {
			a.calls, a.args = append(a.calls, llm.ToolCall{Type: "function"}), append(a.args, nil)
		}
		if call.ID != "" {
			a.calls[at].ID = call.ID
		}
		if call.Function.Name != "" {
			a.calls[at].Function.Name += call.Function.Name
			a.sendDelta(llm.Delta{Tool: call.Function.Name})
		}
		a.args[at] = append(a.args[at], call.Function.Arguments...)
	}
	return nil
}

func (a *accumulator) sendDelta(d llm.Delta) {
	if a.sink != nil {
		a.sink(d)
	}
}

// isFinished reports whether the answer has a finish reason. Some servers omit the end of
// the stream after it.
func (a *accumulator) isFinished() bool { return a.answer.Finish != "" }

// toResponse returns the assembled answer.
func (a *accumulator) toResponse() (*llm.Response, error) {
	if len(a.refusal) > 0 {
		return nil, &llm.Error{Kind: llm.Refusal, Message: string(a.refusal), Usage: a.answer.Usage}
	}
	for i := range a.calls {
		a.calls[i].Function.Arguments = string(a.args[i])
		if a.calls[i].ID == "" {
			a.calls[i].ID = fmt.Sprintf("call_%d", i)
		}
	}
	a.answer.Message = llm.Message{Role: llm.Assistant, Content: string(a.text), ToolCalls: a.calls}
	if err := a.answer.Check(); err != nil {
		return nil, err
	}
	return &a.answer, nil
}
