package machines

import (
	"maps"
	"slices"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/definition/shape"
)

// linter looks for what is legal in a machine and most likely not meant.
type linter struct {
	parser
	d    *Definition
	code script
}

// lint gives the findings on a machine that loads.
func lint(d *Definition, at shape.Place, files Files) []guideway.Diagnostic {
	l := linter{parser: newParser(d.File), d: d, code: newScript(d.Script)}
	l.variables(at.Key("variables"))
	l.contexts(at)
	l.agents(at.Key("agents"))
	l.roles(at.Key("roles"))
	l.transitions(at.Key("states"))
	l.reach(at.Key("states"))
	if !files.Alone {
		l.tools(at.Key("tools"))
	}
	return l.Findings(guideway.SeverityWarning)
}

// variables warns of variables that take the place of an input.
func (l *linter) variables(at shape.Place) {
	for _, v := range l.d.Variables {
		if slices.ContainsFunc(l.d.Inputs, func(in Input) bool { return in.Name == v.Name }) {
			l.Warnf(at.Key(v.Name), CodeVariableShadows, "give the variable another name, or the input a default",
				"The variable '%s' overwrites the input of the same name: what is given for it is lost.", v.Name)
		}
	}
}

// contexts warns of contexts that nobody talks in.
func (l *linter) contexts(at shape.Place) {
	for i := range l.d.Contexts {
		name := l.d.Contexts[i].Name
		used := slices.ContainsFunc(l.d.Agents, func(a Agent) bool { return a.Context == name })
		if !used && !l.code.mentions(name) {
			l.Warnf(at.Key("contexts").Index(i), CodeContextUnused, "remove it, or give it to an agent", "No agent talks in the context '%s'.", name)
		}
	}
}

// agents warns of agents that no state calls, and of roles that cannot answer.
func (l *linter) agents(at shape.Place) {
	for i := range l.d.Agents {
		name := l.d.Agents[i].Role
		if !slices.ContainsFunc(l.d.States, func(s State) bool { return s.Agent == name }) {
			l.Warnf(at.Index(i), CodeAgentUnused, "remove it, or add a state for it", "No state calls the agent '%s'.", name)
		}
		if r := l.d.Roles[name]; r != nil && len(r.Parsing) > 1 {
			l.Warnf(at.Index(i).Key("agent_role"), CodeParsingMany, "keep one parsing tool, so that the model is made to call it",
				"The role '%s' has %d parsing tools: the model chooses one, or none.", name, len(r.Parsing))
		}
	}
}

// roles warns of roles of the configuration that no agent plays.
func (l *linter) roles(at shape.Place) {
	if at.Node == nil {
		return
	}
	for i := range at.Node.Members {
		if name := at.Node.Members[i].Key; l.d.Roles[name] == nil {
			l.Warnf(at.Member(i), CodeRoleUnused, "remove it, or add an agent for it", "No agent plays the role '%s'.", name)
		}
	}
}

// transitions warns of handlers that answer a state that is not there.
func (l *linter) transitions(at shape.Place) {
	for i := range l.d.States {
		s := &l.d.States[i]
		for key, name := range map[string]string{"transition_handler": s.Transition, "error_handler": s.OnError} {
			answers, _ := l.code.answers(name)
			for _, answer := range answers {
				if answer == StateStop || answer == "" || l.d.State(answer) != nil || !l.Once(name+" "+answer) {
					continue
				}
				l.Warnf(at.Index(i).Key(key), CodeTransitionState, l.Guess(answer, func() []string { return names(l.d.States, stateName) }, "answer the name of a state, or stop"),
					"The handler '%s' answers the state '%s', which does not exist.", name, answer)
			}
		}
	}
}

// Next gives the states that may follow one, as far as can be told without
// running the script, in the order of the document; sure says that nothing else
// may.
func (d *Definition) next(s *State, code script) (following []string, sure bool) {
	set := map[string]bool{}
	sure = true
	for _, name := range []string{s.Transition, s.OnError} {
		if name == "" {
			continue
		}
		answers, found := code.answers(name)
		for _, answer := range answers {
			set[answer] = true
		}
		if !found || len(answers) == 0 {
			sure = false
		}
	}
	switch {
	case s.Next != "":
		set[s.Next] = true
	case s.Transition == "":
		set[StateStop] = true
	}
	for _, other := range append(names(d.States, stateName), StateStop) {
		if set[other] && !slices.Contains(following, other) || !sure && code.mentions(other) && !slices.Contains(following, other) {
			following = append(following, other)
		}
	}
	return following, sure
}

// reach warns of states that nothing leads to, and of machines without an end.
func (l *linter) reach(at shape.Place) {
	reached := map[string]bool{StateStart: true}
	unsure := false
	for todo := []string{StateStart}; len(todo) > 0; {
		s := l.d.State(todo[0])
		todo = todo[1:]
		if s == nil || s.Name == StateStop {
			continue
		}
		following, sure := l.d.next(s, l.code)
		unsure = unsure || !sure && len(following) == 0
		for _, name := range following {
			if !reached[name] {
				reached[name] = true
				todo = append(todo, name)
			}
		}
	}
	if unsure {
		return // a handler makes the names of states
	}
	for i := range l.d.States {
		if name := l.d.States[i].Name; !reached[name] && name != StateStop {
			l.Warnf(at.Index(i), CodeUnreachable, "have a transition handler or a next_state lead to it, or remove it", "Nothing leads to the state '%s'.", name)
		}
	}
	if !reached[StateStop] {
		l.Warnf(at, CodeNoStop, "have a transition handler answer 'stop' when the work is done", "Nothing leads to 'stop': the machine runs until a budget is used up.")
	}
}

// tools warns of policies for tools that no role has.
func (l *linter) tools(at shape.Place) {
	patterns := map[string]bool{}
	all := false
	for _, name := range slices.Sorted(maps.Keys(l.d.Roles)) {
		r := l.d.Roles[name]
		all = all || r.HasExcluded
		for _, p := range r.Included {
			patterns[p] = true
		}
	}
	for _, p := range l.d.Tools {
		used := all
		for pattern := range patterns {
			used = used || MatchTool(p.Pattern, pattern) || MatchTool(pattern, p.Pattern)
		}
		if !used {
			l.Warnf(at.Key(p.Pattern), CodeToolUnused, "remove it, or give a role the tool in includedTools", "No role has a tool that '%s' fits.", p.Pattern)
		}
	}
}
