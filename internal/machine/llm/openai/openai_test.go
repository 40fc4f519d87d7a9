package openai_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/guideway-dev/guideway/internal/machine/llm"
	"github.com/guideway-dev/guideway/internal/machine/llm/openai"
)

// complete sends a request to a server that answers with a body, and returns the answer and
// the parts that the sink got.
func complete(t *testing.T, contentType, body string) (*llm.Response, []llm.Delta, error) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(server.Close)
	var parts []llm.Delta
	out, err := openai.New(openai.Options{BaseURL: server.URL}).Complete(t.Context(), llm.Request{Model: "m"}, func(d llm.Delta) { parts = append(parts, d) })
	return out, parts, err
}

// stream returns the answer that the adapter assembles from a stream of chunks.
func stream(t *testing.T, chunks ...string) (*llm.Response, error) {
	t.Helper()
	out, _, err := complete(t, "text/event-stream", "data: "+strings.Join(chunks, "\n\ndata: ")+"\n\n")
	return out, err
}

const (
	textChunk   = `{"choices":[{"delta":{"content":"Hello"}}]}`
	finishChunk = `{"choices":[{"delta":{},"finish_reason":"stop"}]}`
	lateChunk   = `{"choices":[{"delta":{"content":", late"}}]}`
	errorChunk  = `{"error":{"code":"rate_limit_exceeded","message":"slow down"}}`
)

// TestEndOfStream checks which streams are complete: "[DONE]" or a finish reason ends an
// answer, and nothing after "[DONE]" belongs to it.
func TestEndOfStream(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		chunks []string
		want   string
		kind   llm.Kind
	}{
		"both":                        {[]string{textChunk, finishChunk, "[DONE]"}, "Hello", ""},
		"no finish reason":            {[]string{textChunk, "[DONE]"}, "Hello", ""},
		"no [DONE]":                   {[]string{textChunk, finishChunk}, "Hello", ""},
		"a text after [DONE]":         {[]string{textChunk, "[DONE]", lateChunk}, "Hello", ""},
		"an error after the end":      {[]string{textChunk, finishChunk, errorChunk}, "Hello", ""},
		"a broken part after the end": {[]string{textChunk, finishChunk, `{"choi`}, "Hello", ""},
		"neither":                     {[]string{textChunk}, "", llm.Network},
		"an error first":              {[]string{errorChunk}, "", llm.RateLimit},
		"an error in the middle":      {[]string{textChunk, errorChunk, "[DONE]"}, "", llm.RateLimit},
		"a broken part in the middle": {[]string{textChunk, `{"choi`, "[DONE]"}, "", llm.Malformed},
		"no error":                    {[]string{`{"error":null,"choices":[{"delta":{"content":"Hello"}}]}`, "[DONE]"}, "Hello", ""},
		"no choices":                  {[]string{textChunk, `{"choices":[]}`, "[DONE]"}, "Hello", ""},
		"nothing":                     {[]string{"[DONE]"}, "", llm.Malformed},
	} {
		out, err := stream(t, c.chunks...)
		switch {
		case c.kind != "":
			if out != nil || err == nil || llm.AsError(err).Kind != c.kind {
				t.Errorf("%s: %+v, %v, want the error %s", name, out, err, c.kind)
			}
		case err != nil || out.Message.Content != c.want:
			t.Errorf("%s: %+v, %v, want %q", name, out, err, c.want)
		}
	}
}

// TestOnePiece checks responses that are not streamed, although the request asks for a
// stream.
func TestOnePiece(t *testing.T) {
	t.Parallel()
	out, parts, err := complete(t, "application/json", `{"error":null,"choices":[{"message":{"role":"assistant","content":"Hello"},"finish_reason":"stop"}]}`)
	if err != nil || out.Message.Content != "Hello" || !cmp.Equal(parts, []llm.Delta{{Text: "Hello"}}) {
		t.Errorf("a text: %+v, %+v, %v", out, parts, err)
	}
	out, parts, err = complete(t, "application/json", `{"choices":[{"message":{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}}]}`)
	if err != nil || len(out.Message.ToolCalls) != 1 || len(parts) > 0 {
		t.Errorf("a call: %+v, %+v, %v", out, parts, err)
	}
	// A server may report an error with the status 200, even together with choices.
	for _, body := range []string{errorChunk, `{"error":{"code":"rate_limit_exceeded"},"choices":[{"message":{"role":"assistant","content":"half"}}]}`} {
		out, parts, err = complete(t, "application/json", body)
		if out != nil || err == nil || llm.AsError(err).Kind != llm.RateLimit || len(parts) > 0 {
			t.Errorf("an error response is returned as %+v, %+v, %v", out, parts, err)
		}
	}
}

// callChunk is a chunk with one part of a call. The member index is omitted if it is nil.
func callChunk(t *testing.T, index any, id, name, arguments string) string {
	t.Helper()
	call := map[string]any{"function": map[string]any{"name": name, "arguments": arguments}}
	if index != nil {
		call["index"] = index
	}
	if id != "" {
		call["id"] = id
	}
	text, err := json.Marshal(map[string]any{"choices": []any{map[string]any{"delta": map[string]any{"tool_calls": []any{call}}}}})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestCallIndices checks that an index outside the calls of an answer is an error and not a
// panic, and that a server cannot request more than 256 calls.
func TestCallIndices(t *testing.T) {
	t.Parallel()
	first := callChunk(t, 0, "c0", "f", "{}")
	for _, index := range []int{-1, -1 << 31, 2, 256, 1<<31 - 1} {
		for _, before := range [][]string{nil, {first}} {
			out, err := stream(t, append(before, callChunk(t, index, "c", "f", "{}"), "[DONE]")...)
			if out != nil || err == nil || llm.AsError(err).Kind != llm.Malformed {
				t.Errorf("the index %d after %d calls is accepted: %+v, %v", index, len(before), out, err)
			}
		}
	}
	if out, err := stream(t, callChunk(t, 1, "c", "f", "{}"), "[DONE]"); out != nil || err == nil || llm.AsError(err).Kind != llm.Malformed {
		t.Errorf("the index 1 without a call 0 is accepted: %+v, %v", out, err)
	}
	const most = 256
	var chunks []string
	for i := range most {
		chunks = append(chunks, callChunk(t, i, fmt.Sprint("c", i), "f", "{}"))
	}
	if out, err := stream(t, append(chunks, "[DONE]")...); err != nil || len(out.Message.ToolCalls) != most {
		t.Errorf("%d calls: %v", most, err)
	}
	if out, err := stream(t, append(chunks, callChunk(t, most, "c", "f", "{}"), "[DONE]")...); out != nil || err == nil || llm.AsError(err).Kind != llm.Malformed {
		t.Errorf("%d calls: %v", most+1, err)
	}
}

// TestCallsWithoutIndices checks streams of servers that omit indices: a part without an id
// continues the last call. A call without an id gets one.
func TestCallsWithoutIndices(t *testing.T) {
	t.Parallel()
	out, err := stream(t, callChunk(t, nil, "", "f", `{"a"`), callChunk(t, nil, "", "", `:1}`), callChunk(t, nil, "c1", "g", "{}"), "[DONE]")
	if err != nil {
		t.Fatal(err)
	}
	want := []llm.ToolCall{
		{ID: "call_0", Type: "function", Function: llm.Function{Name: "f", Arguments: `{"a":1}`}},
		{ID: "c1", Type: "function", Function: llm.Function{Name: "g", Arguments: "{}"}},
	}
	if diff := cmp.Diff(want, out.Message.ToolCalls); diff != "" {
		t.Errorf("the calls (-want +got):\n%s", diff)
	}
}
