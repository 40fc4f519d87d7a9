//go:build unix

package clients

import (
	"encoding/json"
	"fmt"
	"io"
)

type object = map[string]any

// anthropic is the Messages API.
type anthropic struct{}

func (anthropic) read(body []byte) (request, error) {
	var in struct {
		System json.RawMessage
		Stream bool
		Tools  []struct {
			Name     string
			Deferred bool `json:"defer_loading"`
		}
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return request{}, err
	}
	r := request{instructions: textOf(in.System), stream: in.Stream, results: map[string]string{}}
	for _, t := range in.Tools {
		r.tools = append(r.tools, tool{name: t.Name, deferred: t.Deferred})
	}
	for _, m := range in.Messages {
		var blocks []struct {
			Type, Text string
			ID         string `json:"tool_use_id"`
			Content    json.RawMessage
		}
		if json.Unmarshal(m.Content, &blocks) != nil {
			r.addText(m.Role, textOf(m.Content))
		}
		for _, b := range blocks {
			switch b.Type {
			case "tool_result":
				r.results[b.ID] = textOf(b.Content)
			case "text":
				r.addText(m.Role, b.Text)
			}
		}
	}
	return r, nil
}

// addText adds a text to the instructions or to the texts of the user.
func (r *request) addText(role, text string) {
	switch role {
	case "system", "developer":
		r.instructions += text
	case "user":
		r.user = append(r.user, text)
	}
}

func (anthropic) write(w io.Writer, stream bool, r reply) error {
	reason, block, delta := "end_turn", object{"type": "text", "text": ""}, object{"type": "text_delta", "text": r.text}
	whole := object{"type": "text", "text": r.text}
	if r.call != nil {
		reason = "tool_use"
		block = object{"type": "tool_use", "id": r.call.id, "name": r.call.name, "input": object{}}
		whole = object{"type": "tool_use", "id": r.call.id, "name": r.call.name, "input": r.call.arguments}
		delta = object{"type": "input_json_delta", "partial_json": string(r.call.arguments)}
	}
	message := object{
		"id": fmt.Sprintf("msg_%d", r.number), "type": "message", "role": "assistant", "model": "scripted",
		"content": []any{}, "stop_reason": nil, "stop_sequence": nil, "usage": object{"input_tokens": 10, "output_tokens": 10},
	}
	if !stream {
		message["content"], message["stop_reason"] = []any{whole}, reason
		return json.NewEncoder(w).Encode(message)
	}
	for _, event := range []object{
		{"type": "message_start", "message": message},
		{"type": "content_block_start", "index": 0, "content_block": block},
		{"type": "content_block_delta", "index": 0, "delta": delta},
		{"type": "content_block_stop", "index": 0},
		{"type": "message_delta", "delta": object{"stop_reason": reason, "stop_sequence": nil}, "usage": object{"output_tokens": 10}},
		{"type": "message_stop"},
	} {
		if err := writeEvent(w, event); err != nil {
			return err
		}
	}
	return nil
}

// responses is the Responses API of OpenAI.
type responses struct{}

func (responses) read(body []byte) (request, error) {
	type function struct {
		Type, Name string
		Tools      []struct{ Name string }
	}
	var in struct {
		Instructions string
		Stream       bool
		Tools        []function
		Input        []struct {
			Type, Role string
			ID         string `json:"call_id"`
			Content    json.RawMessage
			Output     json.RawMessage
		}
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return request{}, err
	}
	r := request{instructions: in.Instructions, stream: in.Stream, results: map[string]string{}}
	for _, t := range in.Tools {
		if t.Type != "namespace" {
			r.tools = append(r.tools, tool{name: t.Name})
		}
		for _, inner := range t.Tools {
			r.tools = append(r.tools, tool{namespace: t.Name, name: inner.Name})
		}
	}
	for _, item := range in.Input {
		switch item.Type {
		case "function_call_output":
			r.results[item.ID] = textOf(item.Output)
		case "message", "":
			r.addText(item.Role, textOf(item.Content))
		}
	}
	return r, nil
}

func (responses) write(w io.Writer, stream bool, r reply) error {
	item := object{
		"type": "message", "id": fmt.Sprintf("item_%d", r.number), "status": "completed", "role": "assistant",
		"content": []any{object{"type": "output_text", "text": r.text, "annotations": []any{}}},
	}
	if r.call != nil {
		item = object{
			"type": "function_call", "id": fmt.Sprintf("item_%d", r.number), "status": "completed",
			"call_id": r.call.id, "name": r.call.name, "arguments": string(r.call.arguments),
		}
		if r.call.namespace != "" {
			item["namespace"] = r.call.namespace
		}
	}
	response := func(status string, output ...any) object {
		return object{
			"id": fmt.Sprintf("resp_%d", r.number), "object": "response", "created_at": 1, "model": "scripted", "status": status, "output": output,
			"usage": object{
				"input_tokens": 10, "output_tokens": 10, "total_tokens": 20,
				"input_tokens_details": object{"cached_tokens": 0}, "output_tokens_details": object{"reasoning_tokens": 0},
			},
		}
	}
	if !stream {
		return json.NewEncoder(w).Encode(response("completed", item))
	}
	for i, event := range []object{
		{"type": "response.created", "response": response("in_progress")},
		{"type": "response.output_item.added", "output_index": 0, "item": item},
		{"type": "response.output_item.done", "output_index": 0, "item": item},
		{"type": "response.completed", "response": response("completed", item)},
	} {
		event["sequence_number"] = i
		if err := writeEvent(w, event); err != nil {
			return err
		}
	}
	return nil
}

// completions is the Chat Completions API of OpenAI.
type completions struct{}

func (completions) read(body []byte) (request, error) {
	var in struct {
		Stream   bool
		Tools    []struct{ Function struct{ Name string } }
		Messages []struct {
			Role    string
			Content json.RawMessage
			ID      string `json:"tool_call_id"`
		}
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return request{}, err
	}
	r := request{stream: in.Stream, results: map[string]string{}}
	for _, t := range in.Tools {
		r.tools = append(r.tools, tool{name: t.Function.Name})
	}
	for _, m := range in.Messages {
		if m.Role == "tool" {
			r.results[m.ID] = textOf(m.Content)
		}
		r.addText(m.Role, textOf(m.Content))
	}
	return r, nil
}

func (completions) write(w io.Writer, stream bool, r reply) error {
	reason, message := "stop", object{"role": "assistant", "content": r.text}
	if r.call != nil {
		reason = "tool_calls"
		message = object{"role": "assistant", "content": nil, "tool_calls": []any{object{
			"index": 0, "id": r.call.id, "type": "function",
			"function": object{"name": r.call.name, "arguments": string(r.call.arguments)},
		}}}
	}
	usage := object{"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}
	answer := func(kind string, usage any, choices ...any) object {
		return object{
			"id": fmt.Sprintf("chat_%d", r.number), "object": kind, "created": 1, "model": "scripted",
			"choices": append([]any{}, choices...), "usage": usage,
		}
	}
	if !stream {
		return json.NewEncoder(w).Encode(answer("chat.completion", usage, object{"index": 0, "message": message, "finish_reason": reason}))
	}
	const kind = "chat.completion.chunk"
	for _, event := range []object{
		answer(kind, nil, object{"index": 0, "delta": message, "finish_reason": nil}),
		answer(kind, nil, object{"index": 0, "delta": object{}, "finish_reason": reason}),
		answer(kind, usage),
	} {
		if err := writeEvent(w, event); err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, "data: [DONE]\n\n")
	return err
}

// gemini is the API of Gemini.
type gemini struct{ streamed bool }

func (g gemini) read(body []byte) (request, error) {
	type part struct {
		Text     string
		Response *struct {
			ID, Name string
			Response json.RawMessage
		} `json:"functionResponse"`
	}
	var in struct {
		System struct{ Parts []part } `json:"systemInstruction"`
		Tools  []struct {
			Functions []struct{ Name string } `json:"functionDeclarations"`
		}
		Contents []struct {
			Role  string
			Parts []part
		}
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return request{}, err
	}
	r := request{stream: g.streamed, results: map[string]string{}}
	for _, p := range in.System.Parts {
		r.instructions += p.Text
	}
	for _, t := range in.Tools {
		for _, f := range t.Functions {
			r.tools = append(r.tools, tool{name: f.Name})
		}
	}
	for _, c := range in.Contents {
		for _, p := range c.Parts {
			if p.Text != "" {
				r.addText(c.Role, p.Text)
			}
			if p.Response == nil {
				continue
			}
			var answer map[string]json.RawMessage
			text := string(p.Response.Response)
			if json.Unmarshal(p.Response.Response, &answer) == nil && len(answer) == 1 && answer["output"] != nil {
				text = textOf(answer["output"])
			}
			r.results[p.Response.ID] = text
		}
	}
	return r, nil
}

func (g gemini) write(w io.Writer, stream bool, r reply) error {
	part := object{"text": r.text}
	if r.call != nil {
		part = object{"functionCall": object{"id": r.call.id, "name": r.call.name, "args": r.call.arguments}}
	}
	answer := object{
		"candidates":    []any{object{"index": 0, "finishReason": "STOP", "content": object{"role": "model", "parts": []any{part}}}},
		"usageMetadata": object{"promptTokenCount": 10, "candidatesTokenCount": 10, "totalTokenCount": 20},
		"modelVersion":  "scripted", "responseId": fmt.Sprintf("response_%d", r.number),
	}
	if !stream {
		return json.NewEncoder(w).Encode(answer)
	}
	return writeEvent(w, answer)
}
