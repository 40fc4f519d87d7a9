package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	machinedef "github.com/guideway-dev/guideway/internal/machine/definition"
	"github.com/guideway-dev/guideway/internal/machine/llm"
	"github.com/guideway-dev/guideway/internal/platform/digest"
	"github.com/guideway-dev/guideway/internal/platform/lists"
)

// nextAgentEffect returns the next effect of an agent's call: a call of a tool that the
// model requested, a request to the model, or a pause if a budget is used up.
func (p *Program) nextAgentEffect(s *State, st *machinedef.State, env Env) Effect {
	role := p.Roles[st.Agent]
	if t := s.AgentCall; t != nil && t.Done < len(t.Queue) {
		return p.nextToolEffect(s, role, t.Queue[t.Done], env)
	}
	for _, b := range []*Pause{
		checkBudget("calls", int64(s.Usage.Calls), int64(s.Limits.Calls)),
		checkBudget("tokens", int64(s.Usage.Tokens.Input+s.Usage.Tokens.Output), int64(s.Limits.Tokens)),
		checkBudget("cost", s.Usage.Cost, s.Limits.Cost),
		checkBudget("time", s.Usage.Millis, s.Limits.Millis),
	} {
		if b != nil {
			return eventEffect(Event{Kind: KindPaused, Pause: b})
		}
	}
	return Effect{Model: &ModelCall{
		Agent: st.Agent, Level: role.Level, Call: s.Usage.Calls + 1, Attempt: s.Attempts + 1, Request: p.buildRequest(s, st, role, env),
	}}
}

// buildRequest returns the request to the agent's model.
func (p *Program) buildRequest(s *State, st *machinedef.State, role *machinedef.Role, env Env) llm.Request {
	agent := p.Agent(st.Agent)
	r := llm.Request{
		Model: role.Model, MaxTokens: role.MaxTokens, Temperature: role.Temperature,
		Purpose:  llm.Purpose{Machine: p.Name, State: s.At, Agent: st.Agent, Index: s.Index},
		Messages: []llm.Message{{Role: llm.System, Content: role.SystemMessage}},
	}
	r.Messages = append(r.Messages, exampleMessages(role)...)
	r.Messages = append(r.Messages, ConversationView(s.Conversations[agent.Context], p.Context(agent.Context), agent.Side, env.Counter, s.Shrink)...)
	if s.AgentCall != nil {
		r.Messages = append(r.Messages, s.AgentCall.Messages...)
	}
	for _, t := range env.Tools {
		if role.Allows(t.Name) {
			r.Tools = append(r.Tools, t.Definition)
		}
	}
	if len(r.Tools) == 0 && len(role.Parsing) == 1 {
		r.Force = role.Parsing[0].Name
	}
	for _, t := range role.Parsing {
		r.Tools = append(r.Tools, llm.Definition{Name: t.Name, Description: t.Description, Parameters: t.Parameters})
	}
	return r
}

// RequestHash returns the hash of all parts of a request that are sent.
func RequestHash(r llm.Request) string {
	r.Purpose = llm.Purpose{}
	text, err := json.Marshal(r)
	if err != nil {
		return ""
	}
	return digest.Hex(text)[:32]
}

// nextToolEffect returns the effect of a tool call that the model requested. For an invalid
// call it returns an error result for the model.
func (p *Program) nextToolEffect(s *State, role *machinedef.Role, call llm.ToolCall, env Env) Effect {
	c := &ToolCall{ID: call.ID, Name: call.Function.Name, Arguments: call.Function.Arguments, Attempt: 1}
	if s.Unknown != nil {
		return p.handleUnknownOutcome(s, *s.Unknown)
	}
	if b := checkBudget("toolCalls", int64(s.AgentCall.Calls), int64(s.Limits.ToolCalls)); b != nil {
		return eventEffect(Event{Kind: KindPaused, Pause: b})
	}
	refuse := func(format string, args ...any) Effect {
		return eventEffect(Event{Kind: KindToolResult, Tool: c, Result: &ToolResult{Content: fmt.Sprintf(format, args...), Error: true}})
	}
	info := lists.Find(env.Tools, func(t *ToolInfo) bool { return t.Name == c.Name })
	if info == nil || !role.Allows(c.Name) {
		return refuse("The tool %q is not available.", c.Name)
	}
	if strings.TrimSpace(c.Arguments) == "" {
		c.Arguments = "{}"
	}
	if err := checkJSONObject(c.Arguments); err != "" {
		return refuse("The arguments %s. Call the tool again with one JSON object.", err)
	}
	policy := p.Policy(c.Name)
	c.Retry = string(policy.Retry)
	if c.Retry == "" {
		c.Retry = string(machinedef.RetryAsk)
		if info.Repeatable {
			c.Retry = string(machinedef.RetrySafe)
		}
	}
	c.Key = fmt.Sprintf("%d-%d", s.Usage.Calls, s.AgentCall.Done+1)
	return Effect{Tool: c}
}

// handleUnknownOutcome retries a call whose outcome is unknown, or pauses the run. A
// person's decision to retry is valid for one attempt: if that attempt is lost too, the run
// pauses again.
func (p *Program) handleUnknownOutcome(s *State, c ToolCall) Effect {
	if s.RetryRequested || c.Retry != string(machinedef.RetryAsk) && c.Attempt < maxToolAttempts {
		c.Attempt++
		return Effect{Tool: &c}
	}
	return eventEffect(Event{Kind: KindPaused, Pause: &Pause{
		Code: ErrorKindUnknownOutcome, Tool: &c,
		Message: fmt.Sprintf("the call of the tool %s was started, but its outcome is unknown", c.Name),
		Fix:     `check whether the tool ran, then answer {"outcome": "retry"}, {"outcome": "done", "result": "..."} or {"outcome": "failed"}`,
	}})
}

// checkJSONObject returns the reason why a text is not one JSON object, or "".
func checkJSONObject(text string) string {
	var fields map[string]json.RawMessage
	dec := json.NewDecoder(strings.NewReader(text))
	switch err := dec.Decode(&fields); {
	case err != nil:
		return "are not a JSON object: " + err.Error()
	case fields == nil:
		return "are null"
	case dec.More():
		return "are more than one value"
	}
	return ""
}

// CheckResponse returns the error of a response that the role's agent cannot use, or nil.
func (p *Program) CheckResponse(s *State, r *llm.Response) *RunError {
	role := p.roleAt(s)
	if role == nil || len(role.Parsing) == 0 {
		return nil
	}
	wrong := func(format string, args ...any) *RunError {
		return &RunError{Kind: string(llm.Malformed), Message: fmt.Sprintf(format, args...), Transient: true}
	}
	parsing := 0
	for _, c := range r.Message.ToolCalls {
		t := parsingTool(role, c.Function.Name)
		if t == nil {
			continue
		}
		parsing++
		if err := checkJSONObject(c.Function.Arguments); err != "" {
			return wrong("the arguments of %s %s", t.Name, err)
		}
		if name := missingArgument(t, c.Function.Arguments); name != "" {
			return wrong("the arguments of %s lack %q", t.Name, name)
		}
	}
	switch n := len(r.Message.ToolCalls); {
	case parsing > 1:
		return wrong("the model called %d parsing tools, but only one call can be its answer", parsing)
	case parsing == 1 && n > 1:
		return wrong("the model called a parsing tool together with other tools")
	case parsing == 0 && n == 0:
		return wrong("the model answered without its parsing tool")
	}
	return nil
}

// parsingTool returns the parsing tool with that name, or nil.
func parsingTool(role *machinedef.Role, name string) *machinedef.Tool {
	return lists.Find(role.Parsing, func(t *machinedef.Tool) bool { return t.Name == name })
}

// missingArgument returns the first required member that the arguments lack, or "".
func missingArgument(t *machinedef.Tool, arguments string) string {
	var schema struct {
		Required []string `json:"required"`
	}
	var given map[string]json.RawMessage
	if json.Unmarshal(t.Parameters, &schema) != nil || json.Unmarshal([]byte(arguments), &given) != nil {
		return ""
	}
	for _, name := range schema.Required {
		if _, ok := given[name]; !ok {
			return name
		}
	}
	return ""
}

// hasToolCalls reports whether a response calls a tool that is not a parsing tool.
func hasToolCalls(role *machinedef.Role, r *llm.Response) bool {
	return slices.ContainsFunc(r.Message.ToolCalls, func(c llm.ToolCall) bool { return role == nil || parsingTool(role, c.Function.Name) == nil })
}
