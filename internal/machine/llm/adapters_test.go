package llm_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/guideway-dev/guideway/internal/machine/llm"
	"github.com/guideway-dev/guideway/internal/machine/llm/anthropic"
	"github.com/guideway-dev/guideway/internal/machine/llm/openai"
)

// served is one response of a fake server, with the request that the server got.
type served struct {
	status int
	header map[string]string
	body   string
	// got, head and path are the body, the header and the path of the request.
	got  string
	head http.Header
	path string
}

// startServer starts a fake server for one exchange.
func startServer(t *testing.T, s *served) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		s.got, s.head, s.path = string(data), r.Header, r.URL.Path
		for k, v := range s.header {
			w.Header().Set(k, v)
		}
		if s.status == 0 {
			s.status = http.StatusOK
		}
		w.WriteHeader(s.status)
		_, _ = io.WriteString(w, s.body)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// eventStream returns a stream of events without names, as OpenAI sends it.
func eventStream(data ...string) string {
	return "data: " + strings.Join(data, "\n\ndata: ") + "\n\n"
}

func newRequest() llm.Request {
	half := 0.5
	return llm.Request{
		Model: "m", MaxTokens: 100, Temperature: &half, Force: "f",
		Messages: []llm.Message{
			{Role: llm.System, Content: "be short"},
			{Role: llm.User, Content: "hi <there>"},
			{Role: llm.Assistant, ToolCalls: []llm.ToolCall{
				{ID: "c1", Type: "function", Function: llm.Function{Name: "f", Arguments: `{"a":1}`}},
				{ID: "c2", Type: "function", Function: llm.Function{Name: "f", Arguments: `{}`}},
			}},
			{Role: llm.Tool, ToolCallID: "c1", Content: "one"},
			{Role: llm.Tool, ToolCallID: "c2", Content: "two"},
			{Role: llm.User, Content: "go on"},
		},
		Tools:   []llm.Definition{{Name: "f", Description: "d", Parameters: json.RawMessage(`{"type":"object"}`)}},
		Key:     "m_1-0",
		Purpose: llm.Purpose{Machine: "secret"},
	}
}

// compareJSON compares two JSON texts.
func compareJSON(t *testing.T, want, got string) {
	t.Helper()
	var a, b any
	if err := json.Unmarshal([]byte(want), &a); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(got), &b); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(a, b); diff != "" {
		t.Error(diff)
	}
}

// TestRequests checks the requests that the adapters send.
func TestRequests(t *testing.T) {
	t.Parallel()
	o := &served{body: `{"choices":[{"message":{"role":"assistant","content":"x"}}]}`}
	url := startServer(t, o)
	if _, err := openai.New(openai.Options{BaseURL: url + "/v1/", Key: "k", NoStream: true}).Complete(t.Context(), newRequest(), nil); err != nil {
		t.Fatal(err)
	}
	compareJSON(t, `{"model":"m","max_completion_tokens":100,"temperature":0.5,
		"messages":[{"role":"system","content":"be short"},{"role":"user","content":"hi <there>"},
			{"role":"assistant","content":null,"tool_calls":[
				{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}},{"id":"c2","type":"function","function":{"name":"f","arguments":"{}"}}]},
			{"role":"tool","tool_call_id":"c1","content":"one"},{"role":"tool","tool_call_id":"c2","content":"two"},{"role":"user","content":"go on"}],
		"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object"}}}],
		"tool_choice":{"type":"function","function":{"name":"f"}}}`, o.got)
	if o.path != "/v1/chat/completions" || o.head.Get("Authorization") != "Bearer k" || o.head.Get("Idempotency-Key") != "m_1-0" {
		t.Errorf("%s, %v", o.path, o.head)
	}
	a := &served{body: `{"content":[{"type":"text","text":"x"}],"stop_reason":"end_turn"}`}
	url = startServer(t, a)
	if _, err := anthropic.New(anthropic.Options{BaseURL: url, Key: "k", NoStream: true}).Complete(t.Context(), newRequest(), nil); err != nil {
		t.Fatal(err)
	}
	compareJSON(t, `{"model":"m","max_tokens":100,"temperature":0.5,"system":"be short",
		"messages":[{"role":"user","content":[{"type":"text","text":"hi <there>"}]},
			{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"f","input":{"a":1}},{"type":"tool_use","id":"c2","name":"f","input":{}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"one"},{"type":"tool_result","tool_use_id":"c2","content":"two"},{"type":"text","text":"go on"}]}],
		"tools":[{"name":"f","description":"d","input_schema":{"type":"object"}}],"tool_choice":{"type":"tool","name":"f"}}`, a.got)
	if a.path != "/v1/messages" || a.head.Get("X-Api-Key") != "k" || a.head.Get("Anthropic-Version") == "" {
		t.Errorf("%s, %v", a.path, a.head)
	}
}

const (
	openaiStream = "text/event-stream; charset=utf-8"
	usageChunk   = `{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":2}}}`
)

// TestStreams tests that texts and calls that are streamed in parts result in the same
// answer for both kinds of servers.
func TestStreams(t *testing.T) {
	t.Parallel()
	o := &served{header: map[string]string{"Content-Type": openaiStream}, body: eventStream(
		`{"id":"r1","created":5,"model":"m-1","choices":[{"delta":{"role":"assistant","content":""}}]}`,
		`{"choices":[{"delta":{"content":"Hel"}}]}`, `{"choices":[{"delta":{"content":"lo"}}]}`,
		`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"f","arguments":""}}]}}]}`,
		`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\""}}]}}]}`,
		`{"choices":[{"delta":{"tool_calls":[{"index":1,"id":"c2","function":{"name":"g","arguments":"{}"}}]}}]}`,
		`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]}}]}`,
		`{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}`, usageChunk, "[DONE]")}
	a := &served{header: map[string]string{"Content-Type": "text/event-stream"}, body: strings.Join([]string{
		`event: message_start` + "\n" + `data: {"type":"message_start","message":{"id":"r1","model":"m-1","content":[],"usage":{"input_tokens":5,"cache_read_input_tokens":2,"output_tokens":1}}}`,
		`data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
		`event: ping` + "\n" + `data: {"type":"ping"}`,
		`data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hel"}}`,
		`data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"lo"}}`,
		`data: {"type":"content_block_stop","index":0}`,
		`data: {"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"c1","name":"f","input":{}}}`,
		`data: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"a\""}}`,
		`data: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":":1}"}}`,
		`data: {"type":"content_block_stop","index":1}`,
		`data: {"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"c2","name":"g","input":{}}}`,
		`data: {"type":"content_block_stop","index":2}`,
		`data: {"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":3}}`,
		`data: {"type":"message_stop"}`,
	}, "\n\n") + "\n\n"}
	models := map[string]llm.Model{
		"openai":    openai.New(openai.Options{BaseURL: startServer(t, o)}),
		"anthropic": anthropic.New(anthropic.Options{BaseURL: startServer(t, a)}),
	}
	want := &llm.Response{
		ID: "r1", Model: "m-1", Finish: llm.FinishTools, Usage: llm.Usage{Input: 7, Output: 3, Cached: 2},
		Message: llm.Message{Role: llm.Assistant, Content: "Hello", ToolCalls: []llm.ToolCall{
			{ID: "c1", Type: "function", Function: llm.Function{Name: "f", Arguments: `{"a":1}`}},
			{ID: "c2", Type: "function", Function: llm.Function{Name: "g", Arguments: `{}`}},
		}},
	}
	for name, m := range models {
		var parts []string
		got, err := m.Complete(t.Context(), newRequest(), func(d llm.Delta) { parts = append(parts, d.Text+d.Tool) })
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got.Created = 0
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if diff := cmp.Diff([]string{"Hel", "lo", "f", "g"}, parts); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestErrors tests the kind of error for each response of a server, and that no error
// contains a secret.
func TestErrors(t *testing.T) {
	t.Parallel()
	const key = "sk-very-secret"
	body := func(code, message string) string {
		return fmt.Sprintf(`{"type":"error","error":{"type":%q,"code":%q,"message":%q}}`, code, code, message)
	}
	stream := map[string]string{"Content-Type": openaiStream}
	tests := []struct {
		name      string
		served    served
		kind      llm.Kind
		transient bool
		wait      time.Duration
	}{
		{"rate limit", served{status: 429, header: map[string]string{"Retry-After": "7"}, body: body("rate_limit_exceeded", "slow down")}, llm.RateLimit, true, 7 * time.Second},
		{"in milliseconds", served{status: 429, header: map[string]string{"Retry-After-Ms": "250", "Retry-After": "1"}, body: "{}"}, llm.RateLimit, true, 250 * time.Millisecond},
		{"quota", served{status: 429, body: body("insufficient_quota", "pay")}, llm.Quota, false, 0},
		{"auth", served{status: 401, body: body("invalid_api_key", "Incorrect API key provided: "+key)}, llm.Auth, false, 0},
		{"context", served{status: 400, body: body("context_length_exceeded", "too long")}, llm.ContextLength, false, 0},
		{"anthropic's context", served{status: 400, body: body("invalid_request_error", "prompt is too long: 9 tokens")}, llm.ContextLength, false, 0},
		{"no model", served{status: 404, body: body("model_not_found", "no such model")}, llm.NotFound, false, 0},
		{"server", served{status: 503, body: "<html>busy</html>"}, llm.Server, true, 0},
		{"a text", served{status: 400, body: `{"error":"what is this"}`}, llm.Invalid, false, 0},
		{"not JSON", served{body: "hello"}, llm.Malformed, true, 0},
		{"no choices", served{body: `{"id":"x"}`}, llm.Malformed, true, 0},
		{"empty", served{body: `{"choices":[{"message":{"role":"assistant","content":""}}],"content":[]}`}, llm.Malformed, true, 0},
		{"cut stream", served{header: stream, body: eventStream(`{"choices":[{"delta":{"content":"half"}}]}`)}, llm.Network, true, 0},
		{"stream is not JSON", served{header: stream, body: eventStream(`{"choi`)}, llm.Malformed, true, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			url := startServer(t, &tt.served)
			for name, m := range map[string]llm.Model{
				"openai":    openai.New(openai.Options{BaseURL: url, Key: key}),
				"anthropic": anthropic.New(anthropic.Options{BaseURL: url, Key: key}),
			} {
				out, err := m.Complete(t.Context(), newRequest(), nil)
				var e *llm.Error
				if out != nil || !errors.As(err, &e) {
					t.Fatalf("%s: %v, %v", name, out, err)
				}
				if e.Kind != tt.kind || e.Transient() != tt.transient || e.RetryAfter != tt.wait {
					t.Errorf("%s: %s (transient %v, after %s): %v", name, e.Kind, e.Transient(), e.RetryAfter, e)
				}
				if strings.Contains(err.Error(), "secret") {
					t.Errorf("%s: the error contains the key: %q", name, err)
				}
			}
		})
	}
}

// TestRefusal checks the errors for a refusal of the model, for an error in the middle of a
// stream, and for a server that is not available.
func TestRefusal(t *testing.T) {
	t.Parallel()
	o := startServer(t, &served{body: `{"choices":[{"message":{"role":"assistant","content":null,"refusal":"I will not."},"finish_reason":"stop"}],"usage":{"prompt_tokens":4}}`})
	a := startServer(t, &served{body: `{"content":[],"stop_reason":"refusal","usage":{"input_tokens":4}}`})
	for name, m := range map[string]llm.Model{
		"openai": openai.New(openai.Options{BaseURL: o}), "anthropic": anthropic.New(anthropic.Options{BaseURL: a}),
	} {
		_, err := m.Complete(t.Context(), newRequest(), nil)
		if e := llm.AsError(err); e.Kind != llm.Refusal || e.Transient() || e.Usage.Input != 4 {
			t.Errorf("%s: %v", name, err)
		}
	}
	// The server reports an error after a part of the answer.
	late := startServer(t, &served{header: map[string]string{"Content-Type": openaiStream}, body: eventStream(
		`{"choices":[{"delta":{"content":"half"}}]}`, `{"error":{"code":"rate_limit_exceeded","message":"slow down"}}`)})
	_, err := openai.New(openai.Options{BaseURL: late}).Complete(t.Context(), newRequest(), nil)
	if e := llm.AsError(err); e.Kind != llm.RateLimit {
		t.Errorf("the error during an answer is %v, want RateLimit", err)
	}
	down := httptest.NewServer(nil)
	down.Close()
	if e := llm.AsError(func() error {
		_, err := openai.New(openai.Options{BaseURL: down.URL}).Complete(t.Context(), newRequest(), nil)
		return err
	}()); e.Kind != llm.Network || !e.Transient() {
		t.Errorf("the error without a server is %v, want a transient Network error", e)
	}
}

// TestCompletionRoundTrip checks that a response stays the same if it is written as
// handlers read it and parsed again.
func TestCompletionRoundTrip(t *testing.T) {
	t.Parallel()
	want := &llm.Response{
		ID: "a", Model: "m", Created: 3, Finish: "stop", Usage: llm.Usage{Input: 1, Output: 2},
		Message: llm.Message{Role: llm.Assistant, ToolCalls: []llm.ToolCall{{ID: "c", Type: "function", Function: llm.Function{Name: "f", Arguments: "{}"}}}},
	}
	got, err := llm.ReadCompletion(want.Completion())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(string(want.Completion()), `"content":null`) {
		t.Errorf("the content of a message with only a call is not null: %s", want.Completion())
	}
}
