package definition

import (
	"slices"

	"github.com/guideway-dev/guideway/internal/workflow/shape"
)

// checkStructure checks the rules for names and references that a schema cannot express.
func (p *parser) checkStructure(at shape.Place, m *Machine) {
	p.checkUnique(at.Key("contexts"), len(m.Contexts), "context", "name", func(i int) string { return m.Contexts[i].Name })
	p.checkUnique(at.Key("agents"), len(m.Agents), "agent", "agent_role", func(i int) string { return m.Agents[i].Role })
	p.checkUnique(at.Key("inputs"), len(m.Inputs), "input", "name", func(i int) string { return m.Inputs[i].Name })
	states := at.Key("states")
	p.checkUnique(states, len(m.States), "state", "name", func(i int) string { return m.States[i].Name })
	for i := range m.Agents {
		a := &m.Agents[i]
		p.checkKnown(at.Key("agents").Index(i).Key("context"), CodeContextUnknown, "context", a.Context, func() []string { return namesOf(m.Contexts, contextName) })
	}
	if len(m.States) == 0 {
		return
	}
	if m.State(StateStart) == nil {
		p.Errorf(states, CodeNoStart, "name the first state 'start'", "There is no state 'start', in which a run begins.")
	}
	for i := range m.States {
		p.checkState(states.Index(i), m, &m.States[i])
	}
}

// checkState checks the references and the actions of one state.
func (p *parser) checkState(at shape.Place, m *Machine, s *State) {
	p.checkKnown(at.Key("agent"), CodeAgentUnknown, "agent", s.Agent, func() []string { return namesOf(m.Agents, agentName) })
	if s.Next != StateStop {
		p.checkKnown(at.Key("next_state"), CodeStateUnknown, "state", s.Next, func() []string { return append(namesOf(m.States, stateName), StateStop) })
	}
	if s.Result != "" && s.Name != StateStop {
		p.Errorf(at.Key("input"), CodeStateMixed, "for the result of the run, move the path to the state 'stop'; to give an agent a message, add the message to its conversation in pre_handler",
			"State '%s' has a path for its input: only the state 'stop' can have a path, for the result of the run.", s.Name)
	}
	does := 0
	for _, is := range []bool{s.Agent != "", s.Ask != nil, s.Sub != nil} {
		if is {
			does++
		}
	}
	switch {
	case does > 1:
		p.Errorf(at, CodeStateMixed, "split the state into consecutive states", "State '%s' has more than one of 'agent', 'input' and 'sub_machine'.", s.Name)
	case s.Name == StateStop && (does > 0 || s.Pre+s.Post+s.Transition+s.OnError+s.Next != ""):
		p.Errorf(at, CodeStateMixed, "move the actions, the handlers and next_state into an earlier state", "The state 'stop' cannot have actions, handlers or a next_state: the run ends there.")
	}
}

// checkUnique reports duplicate names in a list.
func (p *parser) checkUnique(at shape.Place, n int, noun, key string, name func(int) string) {
	seen := make(map[string]int, n)
	for i := range n {
		switch first, ok := seen[name(i)]; {
		case name(i) == "":
		case ok:
			p.Errorf(at.Index(i).Key(key), CodeDuplicate, "give each "+noun+" a unique name",
				"Duplicate %s '%s': %s %d already has this name.", noun, name(i), noun, first+1)
		default:
			seen[name(i)] = i
		}
	}
}

// checkKnown reports a reference to an unknown name.
func (p *parser) checkKnown(at shape.Place, code, noun, name string, list func() []string) {
	if name == "" {
		return
	}
	all := list()
	if slices.Contains(all, name) {
		return
	}
	p.Errorf(at, code, p.Suggest(name, all, "write one of: "+shape.List(all)), "There is no %s '%s'.", noun, name)
}

func contextName(c *Context) string { return c.Name }
func agentName(a *Agent) string     { return a.Role }
func stateName(s *State) string     { return s.Name }

func namesOf[T any](list []T, name func(*T) string) []string {
	out := make([]string, len(list))
	for i := range list {
		out[i] = name(&list[i])
	}
	return out
}
