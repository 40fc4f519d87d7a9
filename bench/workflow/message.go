package workflow

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
)

// protocolVersion is a version of MCP.
type protocolVersion string

const (
	// legacy starts with initialize.
	legacy protocolVersion = "2025-11-25"
	// modern sends the version in every request.
	modern protocolVersion = "2026-07-28"
)

type message struct {
	Version string         `json:"jsonrpc"`
	ID      int            `json:"id,omitempty"`
	Method  string         `json:"method"`
	Params  map[string]any `json:"params,omitempty"`
}

// newRequest returns a request as text.
func newRequest(v protocolVersion, id int, method string, params map[string]any) ([]byte, error) {
	if v == modern {
		params = maps.Clone(params)
		if params == nil {
			params = map[string]any{}
		}
		params["_meta"] = map[string]any{
			"io.modelcontextprotocol/protocolVersion":    string(modern),
			"io.modelcontextprotocol/clientInfo":         clientInfo(),
			"io.modelcontextprotocol/clientCapabilities": map[string]any{},
		}
	}
	text, err := json.Marshal(message{Version: "2.0", ID: id, Method: method, Params: params})
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", method, err)
	}
	return text, nil
}

// newNotification returns a notification as text.
func newNotification(method string) ([]byte, error) { return newRequest(legacy, 0, method, nil) }

func initializeParams() map[string]any {
	return map[string]any{
		"protocolVersion": string(legacy), "capabilities": map[string]any{}, "clientInfo": clientInfo(),
	}
}

func clientInfo() map[string]any { return map[string]any{"name": "guideway-bench", "version": "1"} }

// toolCall returns the params of tools/call.
func toolCall(tool string, arguments map[string]any) map[string]any {
	return map[string]any{"name": tool, "arguments": arguments}
}

// readAnswer returns the result of the answer to a request; ok is false for other lines.
func readAnswer(line []byte, id int) (result json.RawMessage, ok bool, err error) {
	var a struct {
		ID     json.RawMessage `json:"id"`
		Result json.RawMessage `json:"result"`
		Error  *struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(line, &a) != nil || string(a.ID) != fmt.Sprint(id) {
		return nil, false, nil
	}
	if a.Error != nil {
		return nil, true, fmt.Errorf("the server answered with error %d: %s", a.Error.Code, a.Error.Message)
	}
	return a.Result, true, nil
}

// toolAnswer decodes the JSON of a tool's answer: its structured content, or otherwise its
// text.
func toolAnswer(result json.RawMessage, into any) error {
	var r struct {
		IsError bool `json:"isError"`
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
		Structured json.RawMessage `json:"structuredContent"`
	}
	if err := json.Unmarshal(result, &r); err != nil {
		return fmt.Errorf("read a tool's answer: %w", err)
	}
	if len(r.Content) == 0 {
		return errors.New("a tool's answer has no content")
	}
	if r.IsError {
		return fmt.Errorf("the tool failed: %.400s", r.Content[0].Text)
	}
	object := r.Structured
	if object == nil {
		object = json.RawMessage(r.Content[0].Text)
	}
	if err := json.Unmarshal(object, into); err != nil {
		return fmt.Errorf("read a tool's answer: %w", err)
	}
	return nil
}
