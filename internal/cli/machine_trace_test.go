package cli

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/cli/server"
)

// sentSpan is a span as a collector receives it.
type sentSpan struct {
	TraceID, SpanID, ParentSpanID, Name string
	Attributes                          []struct {
		Key   string
		Value map[string]any
	}
	Status struct{ Message string }
}

// attribute returns the text of an attribute.
func (s sentSpan) attribute(key string) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			text, _ := json.Marshal(a.Value)
			return string(text)
		}
	}
	return ""
}

// tracedRun runs a machine whose agent calls a tool of an upstream, with a collector, and
// returns the spans and the sent data.
func tracedRun(t *testing.T, more map[string]string) (spans map[string][]sentSpan, sent string) {
	t.Helper()
	var mu sync.Mutex
	var bodies []string
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		bodies = append(bodies, string(body))
	}))
	t.Cleanup(collector.Close)
	asked := 0
	url := serveScriptedModel(t, func(modelMessage, []string) (text, name, arguments string) {
		if asked++; asked == 1 {
			return "", "one__params", `{"text":"tell it quietly"}`
		}
		return "a discreet answer", "", ""
	})
	d, _ := newGatewayProject(t)
	environment := d.host.Getenv
	d.host.Getenv = func(name string) string {
		switch name {
		case "OPENAI_BASE_URL":
			return url
		case "OPENAI_API_KEY":
			return "key-of-the-provider"
		case "OTEL_EXPORTER_OTLP_ENDPOINT":
			return collector.URL
		}
		if value, ok := more[name]; ok {
			return value
		}
		return environment(name)
	}
	machine := machineOf(t, t.TempDir(), `["one__params"]`)
	d.wantCommand(app.ExitOK, `"status": "completed"`, "machine run "+machine+" --input task=whisper:key-of-the-provider --model openai:m --json")
	mu.Lock()
	defer mu.Unlock()
	spans = map[string][]sentSpan{}
	for _, body := range bodies {
		var got struct {
			ResourceSpans []struct{ ScopeSpans []struct{ Spans []sentSpan } }
		}
		if err := json.Unmarshal([]byte(body), &got); err != nil {
			t.Fatalf("%v: %s", err, body)
		}
		for _, s := range got.ResourceSpans[0].ScopeSpans[0].Spans {
			spans[s.Name] = append(spans[s.Name], s)
		}
	}
	return spans, strings.Join(bodies, "\n")
}

// TestMachineTraces checks that a run is one trace: the run contains its states, a state
// its model requests and tool calls, and a tool call the gateway's span. The spans have the
// usage, but no message content.
func TestMachineTraces(t *testing.T) {
	t.Parallel()
	spans, sent := tracedRun(t, nil)
	for name, count := range map[string]int{"invoke_workflow helper": 1, "invoke_agent helper": 1, "chat m": 2, "execute_tool one__params": 1, "tools/call one/params": 1} {
		if len(spans[name]) != count {
			t.Fatalf("got %d spans %q: %s", len(spans[name]), name, sent)
		}
	}
	run, state, tool := spans["invoke_workflow helper"][0], spans["invoke_agent helper"][0], spans["execute_tool one__params"][0]
	for name, parent := range map[string]string{"invoke_workflow helper": "", "invoke_agent helper": run.SpanID, "state stop": run.SpanID, "chat m": state.SpanID, "execute_tool one__params": state.SpanID, "tools/call one/params": tool.SpanID} {
		for _, s := range spans[name] {
			if s.ParentSpanID != parent || s.TraceID != run.TraceID {
				t.Errorf("%q has the parent %q, want %q, in the trace %s", name, s.ParentSpanID, parent, s.TraceID)
			}
		}
	}
	for key, want := range map[string]string{
		"gen_ai.operation.name": `"chat"`, "gen_ai.provider.name": `"openai"`, "gen_ai.request.model": `"m"`, "gen_ai.response.model": `"m"`,
		"gen_ai.usage.input_tokens": `"10"`, "gen_ai.usage.output_tokens": `"5"`, "gen_ai.response.finish_reasons": `"stop"`,
		"gen_ai.agent.name": `"helper"`, "guideway.state": `"start"`,
	} {
		if got := spans["chat m"][1].attribute(key); !strings.Contains(got, want) {
			t.Errorf("%s is %s", key, got)
		}
	}
	if got := run.attribute("gen_ai.operation.name") + run.attribute("guideway.status"); !strings.Contains(got, "invoke_workflow") || !strings.Contains(got, "completed") {
		t.Errorf("the attributes of the run are %s", got)
	}
	if got := tool.attribute("gen_ai.operation.name") + tool.attribute("gen_ai.tool.name"); !strings.Contains(got, "execute_tool") || !strings.Contains(got, "one__params") {
		t.Errorf("the attributes of the call are %s", got)
	}
	for _, said := range []string{"whisper", "discreet", "quietly", "key-of-the-provider"} {
		if strings.Contains(sent, said) {
			t.Errorf("the spans contain the message %q", said)
		}
	}
}

// If ContentVariable is set, spans contain the messages, but no credentials.
func TestMachineTracesWithContent(t *testing.T) {
	t.Parallel()
	spans, sent := tracedRun(t, map[string]string{server.ContentVariable: "true"})
	if len(spans["chat m"]) != 2 || len(spans["execute_tool one__params"]) != 1 {
		t.Fatal(sent)
	}
	second, tool := spans["chat m"][1], spans["execute_tool one__params"][0]
	for _, each := range []struct{ got, want string }{
		{second.attribute("gen_ai.input.messages"), "whisper"},
		{second.attribute("gen_ai.input.messages"), "tool_call_response"},
		{second.attribute("gen_ai.output.messages"), "discreet"},
		{tool.attribute("gen_ai.tool.call.arguments"), "quietly"},
		{tool.attribute("gen_ai.tool.call.result"), "quietly"},
	} {
		if !strings.Contains(each.got, each.want) {
			t.Errorf("%q is not in %s", each.want, each.got)
		}
	}
	if strings.Contains(sent, "key-of-the-provider") {
		t.Error("the spans contain the provider's key")
	}
}
