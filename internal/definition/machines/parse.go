package machines

import (
	"encoding/json"

	"github.com/guideway-dev/guideway/internal/definition/doc"
	"github.com/guideway-dev/guideway/internal/definition/shape"
)

// machine reads the root of a configuration.
func (p *parser) machine(at shape.Place) *Machine {
	p.Object(at, "$schema", "workflow_name", "description", "version", "input", "inputs", "output", "variables",
		"contexts", "agents", "states", "budgets", "tools", "roles")
	p.Require(at, "workflow_name", "description", "output", "contexts", "agents", "states")
	p.Text(at.Key("$schema"), 0, 0)
	m := &Machine{
		Name:        p.name(at.Key("workflow_name")),
		Description: p.Text(at.Key("description"), 1, 4096),
		Version:     p.Text(at.Key("version"), 1, 64),
		Inputs:      p.inputs(at),
		Output:      p.output(at.Key("output")),
		Variables:   p.variables(at.Key("variables")),
		Contexts:    list(p, at.Key("contexts"), "context", "name", p.context),
		Agents:      list(p, at.Key("agents"), "agent", "agent_role", p.agent),
		Budgets:     p.budgets(at.Key("budgets")),
		Tools:       p.policies(at.Key("tools")),
		Roles:       p.roles(at.Key("roles"), "in 'roles'"),
	}
	if states := at.Key("states"); !p.isOld(states) {
		m.States = list(p, states, "state", "name", p.state)
	}
	p.filled(at.Key("contexts"), "add a context with a name: agents talk in one")
	p.filled(at.Key("agents"), "add an agent with agent_role, context and role")
	p.filled(at.Key("states"), "add a state that is called start")
	return m
}

// isOld recognises a machine of the first dialect and says how to convert it.
func (p *parser) isOld(at shape.Place) bool {
	if at.Node == nil || at.Node.Kind != doc.Array {
		return false
	}
	for i := range at.Node.Items {
		for _, key := range []string{"action", "transition"} {
			if at.Node.Items[i].Get(key) == nil {
				continue
			}
			p.Errorf(at.Index(i).Key(key), CodeOldDialect,
				"write the inline scripts as functions of script.js: docs/machines.md, \"From actions to handlers\", has each form beside its new one",
				"This machine is of the first dialect: '%s' with inline scripts and conditions was replaced by pre_handler, post_handler and transition_handler, and is not run.", key)
			return true
		}
	}
	return false
}

// inputs reads the seed's one input, or our several.
func (p *parser) inputs(at shape.Place) []Input {
	one, several := at.Key("input"), at.Key("inputs")
	switch {
	case one.Node != nil && several.Node != nil:
		p.Errorf(several, CodeInputs, "move the one of 'input' into 'inputs'", "There are both 'input' and 'inputs' %s.", at.Where)
	case several.Node != nil:
		return list(p, several, "input", "name", p.input)
	case one.Node == nil:
		p.Missing(at, "input", `add "input": `+sample("input")+`, or "inputs": [] for none`)
	case one.Node.Kind != doc.Object:
		p.WrongType(one, "an object")
	default:
		return []Input{p.input(one.In("in 'input'"))}
	}
	return nil
}

func types() []string {
	return []string{string(TypeString), string(TypeNumber), string(TypeBoolean), string(TypeObject), string(TypeArray)}
}

// input reads what a machine begins with.
func (p *parser) input(at shape.Place) Input {
	p.Object(at, "name", "type", "description", "required", "default", "options")
	in := p.value(at)
	p.defaultOf(at.Key("default"), in)
	return in
}

// value reads what inputs of machines and of states share.
func (p *parser) value(at shape.Place) Input {
	p.Require(at, "name", "type", "description")
	in := Input{
		Name:        p.name(at.Key("name")),
		Type:        Type(p.Choice(at.Key("type"), CodeEnum, types()...)),
		Description: p.Text(at.Key("description"), 1, 4096),
		Default:     p.raw(at.Key("default")),
		Options:     p.Texts(at.Key("options"), 1, 256),
	}
	p.filled(at.Key("options"), "name the values that are allowed, or leave it out")
	if required := at.Key("required"); required.Node != nil {
		in.Optional = !p.Flag(required)
	}
	in.Optional = in.Optional || in.Default != nil
	return in
}

// defaultOf checks that a default is of its input's type.
func (p *parser) defaultOf(at shape.Place, in Input) {
	if at.Node == nil || in.Type == "" {
		return
	}
	if !in.Type.fits(at.Node.Kind) {
		p.Errorf(at, CodeDefault, "write a "+string(in.Type)+", or change the type", "The default of '%s' is %s, but it is of the type %s.", in.Name, shape.Describe(at.Node), in.Type)
	}
}

// fits says whether a value is of the type.
func (t Type) fits(kind doc.Kind) bool {
	switch t {
	case TypeNumber:
		return kind == doc.Number
	case TypeBoolean:
		return kind == doc.Bool
	case TypeObject:
		return kind == doc.Object
	case TypeArray:
		return kind == doc.Array
	default:
		return kind == doc.String
	}
}

// output reads the result.
func (p *parser) output(at shape.Place) Output {
	if !p.Object(at, "name", "type", "description") {
		return Output{}
	}
	at = at.In("in 'output'")
	p.Require(at, "name", "type", "description")
	return Output{
		Name:        p.name(at.Key("name")),
		Type:        Type(p.Choice(at.Key("type"), CodeEnum, types()...)),
		Description: p.Text(at.Key("description"), 1, 4096),
	}
}

// variables reads the first values of common_data.
func (p *parser) variables(at shape.Place) []Variable {
	if !p.Open(at) {
		return nil
	}
	vars := make([]Variable, 0, len(at.Node.Members))
	for _, m := range at.Node.Members {
		vars = append(vars, Variable{Name: m.Key, Value: p.raw(at.Key(m.Key))})
	}
	return vars
}

// context reads a shared conversation.
func (p *parser) context(at shape.Place) Context {
	p.Object(at, "name", "starting_messages", "max_length", "max_tokens")
	p.Require(at, "name")
	c := Context{
		Name:      p.name(at.Key("name")),
		Starting:  p.messages(at.Key("starting_messages")),
		MaxLength: p.whole(at.Key("max_length"), 1, 0),
		MaxTokens: p.whole(at.Key("max_tokens"), 1, 0),
	}
	if c.MaxLength == 0 && c.MaxTokens == 0 {
		c.MaxLength = DefaultMaxLength
	}
	return c
}

// messages reads messages of a conversation.
func (p *parser) messages(at shape.Place) []json.RawMessage {
	return list(p, at, "message", "role", func(at shape.Place) json.RawMessage {
		p.Object(at, "role", "content", "name", "tool_calls", "tool_call_id")
		p.Require(at, "role", "content")
		p.Choice(at.Key("role"), CodeEnum, "system", "user", "assistant", "tool")
		p.Text(at.Key("content"), 1, 0)
		p.Text(at.Key("name"), 1, 64)
		return p.raw(at)
	})
}

// agent reads a role in a conversation.
func (p *parser) agent(at shape.Place) Agent {
	p.Object(at, "agent_role", "context", "role")
	p.Require(at, "agent_role", "context", "role")
	return Agent{
		Role:    p.name(at.Key("agent_role")),
		Context: p.name(at.Key("context")),
		Side:    Side(p.Choice(at.Key("role"), CodeEnum, string(SideUser), string(SideAssistant))),
	}
}

// state reads one state.
func (p *parser) state(at shape.Place) State {
	p.Object(at, "name", "agent", "pre_handler", "post_handler", "transition_handler", "error_handler", "max_retries", "next_state", "input", "sub_machine")
	p.Require(at, "name")
	s := State{
		Name:       p.name(at.Key("name")),
		Agent:      p.optional(at.Key("agent")),
		Pre:        p.optional(at.Key("pre_handler")),
		Post:       p.optional(at.Key("post_handler")),
		Transition: p.optional(at.Key("transition_handler")),
		OnError:    p.optional(at.Key("error_handler")),
		MaxRetries: p.whole(at.Key("max_retries"), 0, DefaultRetries),
		Next:       p.optional(at.Key("next_state")),
		Sub:        p.sub(at.Key("sub_machine")),
	}
	switch in := at.Key("input"); {
	case in.Node == nil || in.Node.Kind == doc.Null:
	case in.Node.Kind == doc.String:
		s.Result = p.path(in)
	case in.Node.Kind == doc.Object:
		s.Ask = p.ask(in)
	default:
		p.WrongType(in, "an object that says what is asked for, or in the state stop a path into common_data")
	}
	return s
}

// ask reads what a state waits for.
func (p *parser) ask(at shape.Place) *Input {
	p.Object(at, "name", "type", "description", "required", "default", "options", "show", "approval")
	in := p.value(at)
	p.defaultOf(at.Key("default"), in)
	in.Show = p.path(at.Key("show"))
	in.Person = p.Choice(at.Key("approval"), CodeEnum, "human", "any") == "human"
	return &in
}

// sub reads the run of another machine: its name, or an object.
func (p *parser) sub(at shape.Place) *Sub {
	if at.Node == nil || at.Node.Kind == doc.Null {
		return nil
	}
	if at.Node.Kind == doc.String {
		return &Sub{Machine: p.name(at)}
	}
	if !p.Object(at, "machine", "inputs", "output") {
		return nil
	}
	p.Require(at, "machine")
	s := &Sub{Machine: p.name(at.Key("machine")), Output: p.optional(at.Key("output"))}
	if inputs := at.Key("inputs"); p.Open(inputs) {
		for _, m := range inputs.Node.Members {
			s.Inputs = append(s.Inputs, SubInput{Name: m.Key, Path: p.path(inputs.Key(m.Key))})
		}
	}
	return s
}

// budgets reads the bounds of a run.
func (p *parser) budgets(at shape.Place) Budgets {
	b := Budgets{States: DefaultStates, Calls: DefaultCalls, ToolCalls: DefaultToolCalls}
	if !p.Object(at, "states", "calls", "tokens", "cost", "time", "tool_calls") {
		return b
	}
	const millionths = 1e6
	b.States = p.whole(at.Key("states"), 1, b.States)
	b.Calls = p.whole(at.Key("calls"), 1, b.Calls)
	b.Tokens = p.whole(at.Key("tokens"), 1, 0)
	b.Cost = int64(p.positive(at.Key("cost")) * millionths)
	b.Time = p.duration(at.Key("time"))
	b.ToolCalls = p.whole(at.Key("tool_calls"), 1, b.ToolCalls)
	return b
}

// policies reads the policies for tools, by pattern.
func (p *parser) policies(at shape.Place) []ToolPolicy {
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
			Retry:   Retry(p.Choice(one.Key("retry"), CodeEnum, string(RetrySafe), string(RetryKey), string(RetryAsk))),
			Timeout: p.duration(one.Key("timeout")),
		})
	}
	return out
}
