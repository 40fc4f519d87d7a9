package definition

import (
	"encoding/json"
	"slices"

	"github.com/guideway-dev/guideway/internal/platform/lists"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
	"github.com/guideway-dev/guideway/internal/workflow/shape"
	"github.com/guideway-dev/guideway/internal/workflow/toolpolicy"
)

// readMachine reads the root of a configuration.
func (p *parser) readMachine(at shape.Place) *Machine {
	p.Object(at, "$schema", "workflow_name", "description", "version", "input", "inputs", "output", "variables",
		"contexts", "agents", "states", "budgets", "tools", "roles")
	p.Require(at, "workflow_name", "description", "output", "contexts", "agents", "states")
	p.Text(at.Key("$schema"), 0, 0)
	m := &Machine{
		Name:        p.readName(at.Key("workflow_name")),
		Description: p.Text(at.Key("description"), 1, 4096),
		Version:     p.Text(at.Key("version"), 1, 64),
		Inputs:      p.readInputs(at),
		Output:      p.readOutput(at.Key("output")),
		Variables:   p.readVariables(at.Key("variables")),
		Contexts:    readList(p, at.Key("contexts"), "context", "name", p.readContext),
		Agents:      readList(p, at.Key("agents"), "agent", "agent_role", p.readAgent),
		Budgets:     p.readBudgets(at.Key("budgets")),
		Tools:       p.readPolicies(at.Key("tools")),
		Roles:       p.readRoles(at.Key("roles"), "in 'roles'"),
	}
	if states := at.Key("states"); !p.reportOldDialect(states) {
		m.States = readList(p, states, "state", "name", p.readState)
	}
	p.NotEmpty(at.Key("contexts"), "add a context with a name: agents need one")
	p.NotEmpty(at.Key("agents"), "add an agent with agent_role, context and role")
	p.NotEmpty(at.Key("states"), "add a state named start")
	return m
}

// reportOldDialect reports a machine of the older dialect, with instructions to convert it,
// and returns whether it is one.
func (p *parser) reportOldDialect(at shape.Place) bool {
	if at.Node == nil || at.Node.Kind != doc.Array {
		return false
	}
	for i := range at.Node.Items {
		for _, key := range []string{"action", "transition"} {
			if at.Node.Items[i].Get(key) == nil {
				continue
			}
			p.Errorf(at.Index(i).Key(key), CodeOldDialect,
				"write the inline scripts as functions of script.js: docs/machines.md, \"From actions to handlers\", shows each form with its replacement",
				"This machine uses the first dialect, which Guideway does not run: '%s' with inline scripts and conditions was replaced by pre_handler, post_handler and transition_handler.", key)
			return true
		}
	}
	return false
}

// readInputs reads SynthDev's single input, or several inputs.
func (p *parser) readInputs(at shape.Place) []Input {
	one, several := at.Key("input"), at.Key("inputs")
	switch {
	case one.Node != nil && several.Node != nil:
		p.Errorf(several, CodeInputs, "move the entry of 'input' into 'inputs'", "There are both 'input' and 'inputs' %s.", at.Where)
	case several.Node != nil:
		return readList(p, several, "input", "name", p.readInput)
	case one.Node == nil:
		p.Missing(at, "input", `add "input": `+sampleValue("input")+`, or "inputs": [] for none`)
	case one.Node.Kind != doc.Object:
		p.WrongType(one, "an object")
	default:
		return []Input{p.readInput(one.In("in 'input'"))}
	}
	return nil
}

func typeNames() []string {
	return []string{string(TypeString), string(TypeNumber), string(TypeBoolean), string(TypeObject), string(TypeArray)}
}

// readInput reads an input of the machine.
func (p *parser) readInput(at shape.Place) Input {
	p.Object(at, "name", "type", "description", "required", "default", "options")
	in := p.readValue(at)
	p.checkDefault(at.Key("default"), in)
	return in
}

// readValue reads the common members of the inputs of machines and states.
func (p *parser) readValue(at shape.Place) Input {
	p.Require(at, "name", "type", "description")
	in := Input{
		Name:        p.readName(at.Key("name")),
		Type:        Type(p.Choice(at.Key("type"), shape.CodeEnum, typeNames()...)),
		Description: p.Text(at.Key("description"), 1, 4096),
		Default:     p.rawJSON(at.Key("default")),
		Options:     p.Texts(at.Key("options"), 1, 256),
	}
	p.NotEmpty(at.Key("options"), "list the allowed values, or remove 'options'")
	if required := at.Key("required"); required.Node != nil {
		in.Optional = !p.Flag(required)
	}
	in.Optional = in.Optional || in.Default != nil
	return in
}

// checkDefault checks that a default has its input's type.
func (p *parser) checkDefault(at shape.Place, in Input) {
	if at.Node == nil || !slices.Contains(typeNames(), string(in.Type)) {
		return
	}
	if string(in.Type) != at.Node.Kind.String() {
		p.Errorf(at, CodeDefault, "write "+shape.WithArticle(string(in.Type))+", or change the type", "The default of '%s' is %s, but its type is %s.", in.Name, shape.Describe(at.Node), in.Type)
	}
}

// readOutput reads the output.
func (p *parser) readOutput(at shape.Place) Output {
	if !p.Object(at, "name", "type", "description") {
		return Output{}
	}
	at = at.In("in 'output'")
	p.Require(at, "name", "type", "description")
	return Output{
		Name:        p.readName(at.Key("name")),
		Type:        Type(p.Choice(at.Key("type"), shape.CodeEnum, typeNames()...)),
		Description: p.Text(at.Key("description"), 1, 4096),
	}
}

// readVariables reads the initial values of common_data.
func (p *parser) readVariables(at shape.Place) []Variable {
	if !p.Open(at) {
		return nil
	}
	return lists.Map(at.Node.Members, func(m doc.Member) Variable { return Variable{Name: m.Key, Value: p.rawJSON(at.Key(m.Key))} })
}

// readContext reads a shared conversation.
func (p *parser) readContext(at shape.Place) Context {
	p.Object(at, "name", "starting_messages", "max_length", "max_tokens")
	p.Require(at, "name")
	c := Context{
		Name:      p.readName(at.Key("name")),
		Starting:  p.readMessages(at.Key("starting_messages")),
		MaxLength: p.readInteger(at.Key("max_length"), 1, 0),
		MaxTokens: p.readInteger(at.Key("max_tokens"), 1, 0),
	}
	if c.MaxLength == 0 && c.MaxTokens == 0 {
		c.MaxLength = DefaultMaxLength
	}
	return c
}

// readMessages reads messages of a conversation.
func (p *parser) readMessages(at shape.Place) []json.RawMessage {
	return readList(p, at, "message", "role", func(at shape.Place) json.RawMessage {
		p.Object(at, "role", "content", "name", "tool_calls", "tool_call_id")
		p.Require(at, "role", "content")
		p.Choice(at.Key("role"), shape.CodeEnum, "system", "user", "assistant", "tool")
		p.Text(at.Key("content"), 1, 0)
		p.Text(at.Key("name"), 1, 64)
		return p.rawJSON(at)
	})
}

// readAgent reads a role in a conversation.
func (p *parser) readAgent(at shape.Place) Agent {
	p.Object(at, "agent_role", "context", "role")
	p.Require(at, "agent_role", "context", "role")
	return Agent{
		Role:    p.readName(at.Key("agent_role")),
		Context: p.readName(at.Key("context")),
		Side:    Side(p.Choice(at.Key("role"), shape.CodeEnum, string(SideUser), string(SideAssistant))),
	}
}

// readState reads one state.
func (p *parser) readState(at shape.Place) State {
	p.Object(at, "name", "agent", "pre_handler", "post_handler", "transition_handler", "error_handler", "max_retries", "next_state", "input", "sub_machine", "tools")
	p.Require(at, "name")
	s := State{
		Name:       p.readName(at.Key("name")),
		Agent:      p.readOptionalName(at.Key("agent")),
		Pre:        p.readOptionalName(at.Key("pre_handler")),
		Post:       p.readOptionalName(at.Key("post_handler")),
		Transition: p.readOptionalName(at.Key("transition_handler")),
		OnError:    p.readOptionalName(at.Key("error_handler")),
		MaxRetries: p.readInteger(at.Key("max_retries"), 0, DefaultRetries),
		Next:       p.readOptionalName(at.Key("next_state")),
		Sub:        p.readSubMachine(at.Key("sub_machine")),
		Tools:      toolpolicy.Read(&p.Report, at.Key("tools")),
	}
	switch in := at.Key("input"); {
	case in.Node == nil || in.Node.Kind == doc.Null:
	case in.Node.Kind == doc.String:
		s.Result = p.readPath(in)
	case in.Node.Kind == doc.Object:
		s.Ask = p.readAsk(in)
	default:
		p.WrongType(in, "an object that describes the input or, in the state stop, a path into common_data")
	}
	return s
}

// readAsk reads the value that a state waits for.
func (p *parser) readAsk(at shape.Place) *Input {
	p.Object(at, "name", "type", "description", "required", "default", "options", "show", "approval")
	in := p.readValue(at)
	p.checkDefault(at.Key("default"), in)
	in.Show = p.readPath(at.Key("show"))
	in.Person = p.Choice(at.Key("approval"), shape.CodeEnum, "human", "any") == "human"
	return &in
}

// readSubMachine reads the run of another machine: its name, or an object.
func (p *parser) readSubMachine(at shape.Place) *Sub {
	if at.Node == nil || at.Node.Kind == doc.Null {
		return nil
	}
	if at.Node.Kind == doc.String {
		return &Sub{Machine: p.readName(at)}
	}
	if !p.Object(at, "machine", "inputs", "output") {
		return nil
	}
	p.Require(at, "machine")
	s := &Sub{Machine: p.readName(at.Key("machine")), Output: p.readOptionalName(at.Key("output"))}
	if inputs := at.Key("inputs"); p.Open(inputs) {
		for _, m := range inputs.Node.Members {
			s.Inputs = append(s.Inputs, SubInput{Name: m.Key, Path: p.readPath(inputs.Key(m.Key))})
		}
	}
	return s
}

// readBudgets reads the limits of a run.
func (p *parser) readBudgets(at shape.Place) Budgets {
	b := Budgets{States: DefaultStates, Calls: DefaultCalls, ToolCalls: DefaultToolCalls}
	if !p.Object(at, "states", "calls", "tokens", "cost", "time", "tool_calls") {
		return b
	}
	const millionths = 1e6
	b.States = p.readInteger(at.Key("states"), 1, b.States)
	b.Calls = p.readInteger(at.Key("calls"), 1, b.Calls)
	b.Tokens = p.readInteger(at.Key("tokens"), 1, 0)
	b.Cost = int64(p.readPositive(at.Key("cost")) * millionths)
	b.Time = p.readDuration(at.Key("time"))
	b.ToolCalls = p.readInteger(at.Key("tool_calls"), 1, b.ToolCalls)
	return b
}

// readPolicies reads the tool policies by pattern.
func (p *parser) readPolicies(at shape.Place) []ToolPolicy {
	if !p.Open(at) {
		return nil
	}
	var out []ToolPolicy
	for _, m := range at.Node.Members {
		one := at.Key(m.Key).In("in tool " + shape.Quote(m.Key))
		if !p.Object(one, "retry", "timeout") {
			continue
		}
		out = append(out, ToolPolicy{
			Pattern: m.Key,
			Retry:   Retry(p.Choice(one.Key("retry"), shape.CodeEnum, string(RetrySafe), string(RetryKey), string(RetryAsk))),
			Timeout: p.readDuration(one.Key("timeout")),
		})
	}
	return out
}
