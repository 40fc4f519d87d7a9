package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	machinedef "github.com/guideway-dev/guideway/internal/machine/definition"
	"github.com/guideway-dev/guideway/internal/machine/llm"
)

// agent goes on with an agent's call: with a tool that it wants, or a request to
// its model.
func (p *Program) agent(s *State, st *machinedef.State, env Env) Effect {
	role := p.Roles[st.Agent]
	if t := s.Turn; t != nil && t.Done < len(t.Queue) {
		return p.tool(s, role, t.Queue[t.Done], env)
	}
	for _, b := range []*Pause{
		over("calls", int64(s.Spent.Calls), int64(s.Limits.Calls)),
		over("tokens", int64(s.Spent.Usage.Input+s.Spent.Usage.Output), int64(s.Limits.Tokens)),
		over("cost", s.Spent.Cost, s.Limits.Cost),
		over("time", s.Spent.Millis, s.Limits.Millis),
	} {
		if b != nil {
			return event(Event{Kind: KindPaused, Pause: b})
		}
	}
	return Effect{Model: &ModelCall{
		Agent: st.Agent, Level: role.Level, Call: s.Spent.Calls + 1, Attempt: s.Attempts + 1, Request: p.request(s, st, role, env),
	}}
}

// request is what an agent's model is asked.
func (p *Program) request(s *State, st *machinedef.State, role *machinedef.Role, env Env) llm.Request {
	agent := p.Agent(st.Agent)
	r := llm.Request{
		Model: role.Model, MaxTokens: role.MaxTokens, Temperature: role.Temperature,
		Purpose:  llm.Purpose{Machine: p.Name, State: s.At, Agent: st.Agent, Index: s.Index},
		Messages: []llm.Message{{Role: llm.System, Content: role.SystemMessage}},
	}
	r.Messages = append(r.Messages, examples(role)...)
	r.Messages = append(r.Messages, View(s.Conversations[agent.Context], p.Context(agent.Context), agent.Side, env.Counter, s.Shrink)...)
	if s.Turn != nil {
		r.Messages = append(r.Messages, s.Turn.Messages...)
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

// Hash is that of a request: of all that is sent.
func Hash(r llm.Request) string {
	r.Purpose = llm.Purpose{}
	text, err := json.Marshal(r)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// tool makes a call that the model wants. One that cannot be made is told to the
// model, and made by nobody.
func (p *Program) tool(s *State, role *machinedef.Role, call llm.ToolCall, env Env) Effect {
	c := &ToolCall{ID: call.ID, Name: call.Function.Name, Arguments: call.Function.Arguments, Attempt: 1}
	if s.Unknown != nil {
		return p.unknown(s, *s.Unknown)
	}
	if b := over("toolCalls", int64(s.Turn.Calls), int64(s.Limits.ToolCalls)); b != nil {
		return event(Event{Kind: KindPaused, Pause: b})
	}
	refuse := func(format string, args ...any) Effect {
		return event(Event{Kind: KindToolResult, Tool: c, Result: &ToolResult{Content: fmt.Sprintf(format, args...), Error: true}})
	}
	var info *ToolInfo
	for i := range env.Tools {
		if env.Tools[i].Name == c.Name {
			info = &env.Tools[i]
		}
	}
	if info == nil || !role.Allows(c.Name) {
		return refuse("There is no tool %q.", c.Name)
	}
	if strings.TrimSpace(c.Arguments) == "" {
		c.Arguments = "{}"
	}
	if err := object(c.Arguments); err != "" {
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
	c.Key = fmt.Sprintf("%d-%d", s.Spent.Calls, s.Turn.Done+1)
	return Effect{Tool: c}
}

// unknown is what follows a call whose outcome nobody knows. That somebody wants it
// repeated counts once: where that attempt is lost, too, they are asked again.
func (p *Program) unknown(s *State, c ToolCall) Effect {
	if s.Again || c.Retry != string(machinedef.RetryAsk) && c.Attempt < maxToolAttempts {
		c.Attempt++
		return Effect{Tool: &c}
	}
	return event(Event{Kind: KindPaused, Pause: &Pause{
		Code: FaultUnknown, Tool: &c,
		Message: fmt.Sprintf("the call of the tool %s was begun, and nobody knows whether it was carried out", c.Name),
		Fix:     `look what it has done, and answer {"outcome": "retry"}, {"outcome": "done", "result": "..."} or {"outcome": "failed"}`,
	}})
}

// object says what keeps a text from being a JSON object, or "".
func object(text string) string {
	var fields map[string]json.RawMessage
	dec := json.NewDecoder(strings.NewReader(text))
	switch err := dec.Decode(&fields); {
	case err != nil:
		return "are not valid JSON: " + err.Error()
	case fields == nil:
		return "are null"
	case dec.More():
		return "are more than one value"
	}
	return ""
}

// Judge says what is wrong with an answer that a role's agent cannot use, or nil.
func (p *Program) Judge(s *State, r *llm.Response) *Fault {
	role := p.roleAt(s)
	if role == nil || len(role.Parsing) == 0 {
		return nil
	}
	wrong := func(format string, args ...any) *Fault {
		return &Fault{Kind: string(llm.Malformed), Message: fmt.Sprintf(format, args...), Transient: true}
	}
	parsing := 0
	for _, c := range r.Message.ToolCalls {
		t := parsingTool(role, c.Function.Name)
		if t == nil {
			continue
		}
		parsing++
		if err := object(c.Function.Arguments); err != "" {
			return wrong("the arguments of %s %s", t.Name, err)
		}
		if name := missing(t, c.Function.Arguments); name != "" {
			return wrong("the arguments of %s lack %q", t.Name, name)
		}
	}
	switch n := len(r.Message.ToolCalls); {
	case parsing > 1:
		return wrong("the model called %d parsing tools; one is its answer", parsing)
	case parsing == 1 && n > 1:
		return wrong("the model called a parsing tool and others at once")
	case parsing == 0 && n == 0:
		return wrong("the model answered without its parsing tool")
	}
	return nil
}

// parsingTool gives the parsing tool of a name, or nil.
func parsingTool(role *machinedef.Role, name string) *machinedef.Tool {
	for i := range role.Parsing {
		if role.Parsing[i].Name == name {
			return &role.Parsing[i]
		}
	}
	return nil
}

// missing gives a required member that arguments lack, or "".
func missing(t *machinedef.Tool, arguments string) string {
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

// ordinary says whether an answer wants tools that are to be called.
func ordinary(role *machinedef.Role, r *llm.Response) bool {
	for _, c := range r.Message.ToolCalls {
		if role == nil || parsingTool(role, c.Function.Name) == nil {
			return true
		}
	}
	return false
}
