package engine

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"

	machinedef "github.com/guideway-dev/guideway/internal/machine/definition"
	"github.com/guideway-dev/guideway/internal/machine/llm"
)

// Counter counts the tokens of a text.
type Counter interface {
	Count(text string) int
}

// messageTokens is the overhead of a message or a tool call besides its text, in tokens.
const messageTokens = 4

// ConversationView returns a conversation as one side sees it, within the limits of its
// context. It drops the oldest messages first. A call and its results stay together, system
// messages stay and come first, and the newest group is kept even if it exceeds the limit.
// Each shrink halves the limits.
func ConversationView(all []llm.Message, c *machinedef.Context, side machinedef.Side, counter Counter, shrink int) []llm.Message {
	size := func(m *llm.Message) int {
		n := textSize(m.Content, c.MaxTokens > 0, counter)
		for _, call := range m.ToolCalls {
			n += textSize(call.Function.Name+call.Function.Arguments, c.MaxTokens > 0, counter)
		}
		return n
	}
	bound := c.MaxLength
	if c.MaxTokens > 0 {
		bound = c.MaxTokens
	}
	bound >>= min(shrink, 8)
	var out []llm.Message
	for i := range all {
		if all[i].Role == llm.System {
			out = append(out, all[i])
			bound -= size(&all[i])
		}
	}
	groups := messageGroups(all)
	first := len(groups)
	for i := len(groups) - 1; i >= 0; i-- {
		for j := range groups[i] {
			bound -= size(&groups[i][j])
		}
		if bound < 0 && first < len(groups) {
			break
		}
		first = i
	}
	for _, g := range groups[first:] {
		out = append(out, g...)
	}
	if side == machinedef.SideUser {
		return swapSides(out)
	}
	return out
}

// textSize returns the size of a text in tokens, including messageTokens, or in characters.
func textSize(text string, tokens bool, counter Counter) int {
	if tokens {
		return messageTokens + counter.Count(text)
	}
	return utf8.RuneCountInString(text)
}

// messageGroups splits a conversation without its system messages into groups: a single
// message, or a message with calls and the results that follow. It drops results without a
// call, and turns calls without results into text, because no model accepts either.
func messageGroups(all []llm.Message) [][]llm.Message {
	var out [][]llm.Message
	for i := 0; i < len(all); i++ {
		m := all[i]
		switch {
		case m.Role == llm.System || m.Role == llm.Tool:
			continue
		case len(m.ToolCalls) == 0:
			out = append(out, []llm.Message{m})
			continue
		}
		group := []llm.Message{m}
		for i+1 < len(all) && all[i+1].Role == llm.Tool {
			i++
			group = append(group, all[i])
		}
		if len(group)-1 < len(m.ToolCalls) {
			// Unanswered calls become text.
			group = []llm.Message{inlineToolCalls(m)}
		}
		out = append(out, group)
	}
	return out
}

// inlineToolCalls returns a message with its tool calls written into its text.
func inlineToolCalls(m llm.Message) llm.Message {
	for _, c := range m.ToolCalls {
		if m.Content != "" {
			m.Content += "\n"
		}
		m.Content += c.Function.Name + " " + c.Function.Arguments
	}
	m.ToolCalls = nil
	return m
}

// swapSides exchanges the roles user and assistant. Tool calls of the other side become
// text, and the results of these calls are dropped.
func swapSides(all []llm.Message) []llm.Message {
	out := make([]llm.Message, 0, len(all))
	for _, m := range all {
		switch m.Role {
		case llm.User:
			m.Role = llm.Assistant
		case llm.Assistant:
			m.Role = llm.User
			if len(m.ToolCalls) > 0 {
				m = inlineToolCalls(m)
			}
		case llm.Tool:
			continue
		}
		out = append(out, m)
	}
	return out
}

// exampleMessages returns the role's few-shot messages. Each call gets a result, because
// models require one.
func exampleMessages(r *machinedef.Role) []llm.Message {
	var out []llm.Message
	open := ""
	for i, raw := range r.Examples {
		var m llm.Message
		var rest struct {
			Arguments json.RawMessage `json:"arguments"`
		}
		if json.Unmarshal(raw, &m) != nil || json.Unmarshal(raw, &rest) != nil {
			continue
		}
		if open != "" && m.Role != llm.Tool {
			out = append(out, llm.Message{Role: llm.Tool, ToolCallID: open, Content: "ok"})
			open = ""
		}
		switch {
		case m.Role == llm.Tool:
			m.ToolCallID, m.Name, open = open, "", ""
			if m.ToolCallID == "" {
				continue
			}
		case m.Role == llm.Assistant && m.Name != "" && rest.Arguments != nil:
			open = fmt.Sprintf("example_%d", i+1)
			m.ToolCalls = []llm.ToolCall{{ID: open, Type: "function", Function: llm.Function{Name: m.Name, Arguments: llm.ArgumentsText(rest.Arguments)}}}
			m.Name = ""
		}
		out = append(out, m)
	}
	if open != "" {
		out = append(out, llm.Message{Role: llm.Tool, ToolCallID: open, Content: "ok"})
	}
	return out
}
