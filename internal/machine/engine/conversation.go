package engine

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"

	machinedef "github.com/guideway-dev/guideway/internal/machine/definition"
	"github.com/guideway-dev/guideway/internal/machine/llm"
)

// Counter says how many tokens a text has.
type Counter interface {
	Count(text string) int
}

// perMessage is what a message costs besides its text, in tokens.
const perMessage = 4

// View is a conversation as one side sees it, within the bounds of its context:
// the oldest messages are left out first. A call and its results stay together,
// system messages stay and come first, and the newest group stays whatever its
// size. shrink halves the bounds, again and again.
func View(all []llm.Message, c *machinedef.Context, side machinedef.Side, counter Counter, shrink int) []llm.Message {
	size := func(m *llm.Message) int {
		n := count(m.Content, c.MaxTokens > 0, counter)
		for _, call := range m.ToolCalls {
			n += count(call.Function.Name+call.Function.Arguments, c.MaxTokens > 0, counter)
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
	groups := groups(all)
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
		return reversed(out)
	}
	return out
}

// count is the size of a text, in tokens or characters.
func count(text string, tokens bool, counter Counter) int {
	if tokens {
		return perMessage + counter.Count(text)
	}
	return utf8.RuneCountInString(text)
}

// groups cuts a conversation into what belongs together: a message, or one with
// calls and the results that follow. A result without its call is left out, and so
// is a call without its results where others follow: no model takes either.
func groups(all []llm.Message) [][]llm.Message {
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
			// What was called and never answered is told as a text.
			group = []llm.Message{told(m)}
		}
		out = append(out, group)
	}
	return out
}

// told is a message with its calls as a text.
func told(m llm.Message) llm.Message {
	for _, c := range m.ToolCalls {
		if m.Content != "" {
			m.Content += "\n"
		}
		m.Content += c.Function.Name + " " + c.Function.Arguments
	}
	m.ToolCalls = nil
	return m
}

// reversed exchanges the sides. What the other side called is told as a text, and
// the results of it are its own business.
func reversed(all []llm.Message) []llm.Message {
	out := make([]llm.Message, 0, len(all))
	for _, m := range all {
		switch m.Role {
		case llm.User:
			m.Role = llm.Assistant
		case llm.Assistant:
			m.Role = llm.User
			if len(m.ToolCalls) > 0 {
				m = told(m)
			}
		case llm.Tool:
			continue
		}
		out = append(out, m)
	}
	return out
}

// examples are the few messages that show an agent what to do. A call gets a
// result, which no model does without.
func examples(r *machinedef.Role) []llm.Message {
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
			m.ToolCalls = []llm.ToolCall{{ID: open, Type: "function", Function: llm.Function{Name: m.Name, Arguments: argumentsText(rest.Arguments)}}}
			m.Name = ""
		}
		out = append(out, m)
	}
	if open != "" {
		out = append(out, llm.Message{Role: llm.Tool, ToolCallID: open, Content: "ok"})
	}
	return out
}

// argumentsText is the arguments of an example as a model writes them.
func argumentsText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}
