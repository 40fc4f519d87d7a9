package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/machine/driver"
	"github.com/guideway-dev/guideway/internal/machine/llm"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"github.com/guideway-dev/guideway/internal/platform/secret"
	"github.com/guideway-dev/guideway/internal/telemetry"
)

// ContentVariable is the OpenTelemetry variable that adds messages to spans.
const ContentVariable = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"

// machineTracer creates spans for machine runs, following the OpenTelemetry conventions for
// generative AI.
type machineTracer struct {
	tracer *telemetry.Tracer
	now    func() time.Time
	// redact removes credentials from a document. If it is nil, spans have no content.
	redact func(document []byte) ([]byte, error)
}

var _ driver.Tracer = (*machineTracer)(nil)

// NewMachineTracer returns a tracer that sends to t, or nil if t is nil.
func NewMachineTracer(a *app.App, cfg *config.Config, t *telemetry.Tracer) driver.Tracer {
	if t == nil {
		return nil
	}
	m := &machineTracer{tracer: t, now: a.Host.CurrentTime}
	switch strings.ToLower(a.Host.Getenv(ContentVariable)) {
	case "true", "span_only", "span_and_event":
		m.redact = func(document []byte) ([]byte, error) { return RedactDocument(a, cfg, document) }
	}
	return m
}

// textAttribute and intAttribute return attributes of a span.
func textAttribute(key, value string) telemetry.Attribute {
	return telemetry.Attribute{Key: key, Value: value}
}

func intAttribute(key string, value int) telemetry.Attribute {
	return telemetry.Attribute{Key: key, Value: int64(value)}
}

// Begin implements driver.Tracer.
func (m *machineTracer) Begin(ctx context.Context, a driver.Activity) (inner context.Context, end func(driver.ActivityResult)) {
	name, kind, operation := m.spanName(a)
	ctx, span := m.tracer.Start(ctx, telemetry.Context{}, name, kind, m.now())
	if operation != "" {
		span.Set(textAttribute("gen_ai.operation.name", operation))
	}
	span.Set(textAttribute("gen_ai.workflow.name", a.Machine), textAttribute("gen_ai.conversation.id", a.Run))
	for key, value := range map[string]string{"guideway.run.parent": a.Parent, "guideway.state": a.State, "gen_ai.agent.name": a.Agent, "gen_ai.provider.name": a.Provider} {
		if value != "" {
			span.Set(textAttribute(key, value))
		}
	}
	if a.Attempt > 1 {
		span.Set(intAttribute("guideway.attempt", a.Attempt))
	}
	if a.Request != nil {
		m.setRequest(span, a.Request)
	}
	if a.Tool != nil {
		span.Set(textAttribute("gen_ai.tool.name", a.Tool.Name), textAttribute("gen_ai.tool.call.id", a.Tool.ID), textAttribute("gen_ai.tool.type", "function"))
		m.setContent(span, "gen_ai.tool.call.arguments", a.Tool.Arguments)
	}
	return ctx, func(e driver.ActivityResult) {
		m.setOutcome(span, a, e)
		span.Finish(m.now())
	}
}

// spanName returns the name, kind and operation of a span according to the conventions.
func (m *machineTracer) spanName(a driver.Activity) (name string, kind telemetry.Kind, operation string) {
	switch {
	case a.Kind == driver.ActivityModel:
		return "chat " + a.Request.Model, telemetry.KindClient, "chat"
	case a.Kind == driver.ActivityTool:
		return "execute_tool " + a.Tool.Name, telemetry.KindInternal, "execute_tool"
	case a.Kind == driver.ActivityRun:
		return "invoke_workflow " + a.Machine, telemetry.KindInternal, "invoke_workflow"
	case a.Agent != "":
		return "invoke_agent " + a.Agent, telemetry.KindInternal, "invoke_agent"
	}
	return "state " + a.State, telemetry.KindInternal, ""
}

// setRequest adds the attributes of a model request.
func (m *machineTracer) setRequest(span *telemetry.Span, r *llm.Request) {
	span.Set(textAttribute("gen_ai.request.model", r.Model))
	if r.MaxTokens > 0 {
		span.Set(intAttribute("gen_ai.request.max_tokens", r.MaxTokens))
	}
	if r.Temperature != nil {
		span.Set(telemetry.Attribute{Key: "gen_ai.request.temperature", Value: *r.Temperature})
	}
	m.setContent(span, "gen_ai.input.messages", convertMessages(r.Messages, ""))
}

// setOutcome adds the attributes of a result. It only adds the type of an error, because
// its text may contain messages.
func (m *machineTracer) setOutcome(span *telemetry.Span, a driver.Activity, e driver.ActivityResult) {
	if span == nil {
		return
	}
	if e.Status != "" {
		span.Set(textAttribute("guideway.status", string(e.Status)))
	}
	if r := e.Response; r != nil {
		span.Set(intAttribute("gen_ai.usage.input_tokens", r.Usage.Input), intAttribute("gen_ai.usage.output_tokens", r.Usage.Output))
		if r.Usage.Cached > 0 {
			span.Set(intAttribute("gen_ai.usage.cache_read.input_tokens", r.Usage.Cached))
		}
		if r.Model != "" {
			span.Set(textAttribute("gen_ai.response.model", r.Model))
		}
		if r.ID != "" {
			span.Set(textAttribute("gen_ai.response.id", r.ID))
		}
		if r.Finish != "" {
			span.Set(telemetry.Attribute{Key: "gen_ai.response.finish_reasons", Value: []string{r.Finish}})
		}
		m.setContent(span, "gen_ai.output.messages", convertMessages([]llm.Message{r.Message}, r.Finish))
	}
	if e.Result != nil && e.Err == nil {
		m.setContent(span, "gen_ai.tool.call.result", e.Result.Content)
	}
	if failure := errorType(a, e); failure != "" {
		span.Error = failure
		span.Set(textAttribute("error.type", failure))
	}
}

// errorType returns the type of the error of an activity, or "".
func errorType(a driver.Activity, e driver.ActivityResult) string {
	switch {
	case errors.Is(e.Err, context.Canceled):
		return "cancelled"
	case errors.Is(e.Err, driver.ErrNotCalled):
		return "not_called"
	case e.Err != nil && a.Kind == driver.ActivityTool:
		return "unknown_outcome"
	case e.Err != nil && a.Kind == driver.ActivityModel:
		return string(llm.AsError(e.Err).Kind)
	case e.Err != nil:
		return "interrupted"
	case e.Pause != nil:
		return e.Pause.Code
	case e.Result != nil && e.Result.Error:
		return "tool_error"
	}
	return ""
}

// maxContent limits the size of a content attribute. Longer documents are omitted, because
// a truncated one is not valid.
const maxContent = 64 << 10

// setContent adds an attribute with redacted content, if content is enabled.
func (m *machineTracer) setContent(span *telemetry.Span, key string, value any) {
	if m.redact == nil || span == nil {
		return
	}
	document, err := json.Marshal(value)
	if err == nil {
		document, err = m.redact(document)
	}
	if err != nil || len(document) > maxContent {
		span.Set(telemetry.Attribute{Key: "guideway.content.left_out", Value: true})
		return
	}
	said := string(document)
	if _, ok := value.(string); ok {
		_ = json.Unmarshal(document, &said) // the redacted document is still a JSON string
	}
	span.Set(textAttribute(key, said))
}

// messagePart is a part of a message in the format of the conventions.
type messagePart struct {
	Type      string `json:"type"`
	Content   string `json:"content,omitempty"`
	ID        string `json:"id,omitempty"`
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments,omitempty"`
	Response  string `json:"response,omitempty"`
}

// spanMessage is a message in the format of the conventions.
type spanMessage struct {
	Role   llm.Role      `json:"role"`
	Parts  []messagePart `json:"parts"`
	Finish string        `json:"finish_reason,omitempty"`
}

// convertMessages converts a conversation to the format of the conventions.
func convertMessages(list []llm.Message, finish string) []spanMessage {
	out := make([]spanMessage, len(list))
	for i, each := range list {
		one := spanMessage{Role: each.Role, Parts: []messagePart{}, Finish: finish}
		switch {
		case each.Role == llm.Tool:
			one.Parts = append(one.Parts, messagePart{Type: "tool_call_response", ID: each.ToolCallID, Response: each.Content})
		case each.Content != "":
			one.Parts = append(one.Parts, messagePart{Type: "text", Content: each.Content})
		}
		for _, c := range each.ToolCalls {
			one.Parts = append(one.Parts, messagePart{Type: "tool_call", ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments})
		}
		out[i] = one
	}
	return out
}

// jsonText matches a string in a JSON document.
var jsonText = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`"(?:[^"\\]|\\.)*"`) }) //nolint:gochecknoglobals // never written

// RedactDocument removes credentials from every string of a JSON document. It keeps the
// order of members.
func RedactDocument(a *app.App, cfg *config.Config, document []byte) ([]byte, error) {
	names := []string{"OPENAI_API_KEY", "ANTHROPIC_API_KEY"}
	for _, m := range cfg.Models {
		names = append(names, m.KeyEnv)
	}
	var keys []string
	const shortest = 8 // a shorter match is probably an ordinary word
	for _, name := range names {
		if value := a.Host.Getenv(name); name != "" && len(value) >= shortest {
			keys = append(keys, value, "[redacted: key]")
		}
	}
	known := strings.NewReplacer(keys...)
	var failed error
	clean := jsonText().ReplaceAllFunc(document, func(quoted []byte) []byte {
		var text string
		if err := json.Unmarshal(quoted, &text); err != nil {
			failed = err
			return nil
		}
		text, _ = secret.Detector{}.Redact(known.Replace(text), "")
		return jsontext.AppendString(nil, text)
	})
	return bytes.TrimSpace(clean), failed
}
