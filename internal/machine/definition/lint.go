package definition

import (
	"maps"
	"slices"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/wildcard"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
	"github.com/guideway-dev/guideway/internal/workflow/shape"
	"github.com/guideway-dev/guideway/internal/workflow/toolpolicy"
)

// linter reports legal but probably unintended parts of a machine.
type linter struct {
	parser
	d    *Definition
	code scriptIndex
}

// lintMachine returns the warnings for a valid machine.
func lintMachine(d *Definition, at shape.Place, files Files) []guideway.Diagnostic {
	l := linter{parser: newParser(d.File), d: d, code: newScriptIndex(d.Script)}
	l.lintVariables(at.Key("variables"))
	l.lintContexts(at)
	l.lintAgents(at.Key("agents"))
	l.lintRoles(at.Key("roles"))
	l.lintTransitions(at.Key("states"))
	l.lintReachability(at.Key("states"))
	for i := range l.d.States {
		toolpolicy.Lint(&l.Report, at.Key("states").Index(i).Key("tools"), l.d.States[i].Tools, "state '"+l.d.States[i].Name+"'")
	}
	if !files.Alone {
		l.lintToolPolicies(at.Key("tools"))
	}
	l.LintHidden(at)
	return append(l.Findings(guideway.SeverityWarning), lintHiddenFiles(files)...)
}

// lintHiddenFiles reports the hidden characters of the roles and the script.
func lintHiddenFiles(files Files) (found []guideway.Diagnostic) {
	for _, f := range files.Roles {
		root, _ := doc.Parse(f.Path, f.Data, doc.Limits{})
		roles := newParser(f.Path)
		roles.LintHidden(shape.Root(root, "roles"))
		found = append(found, roles.Findings(guideway.SeverityWarning)...)
	}
	if files.Script != nil {
		if d := shape.HiddenCharacter(files.Script.Path, string(files.Script.Data)); d != nil {
			d.Severity = guideway.SeverityWarning // an approval is refused, but the machine loads
			found = append(found, *d)
		}
	}
	return found
}

// lintVariables reports variables that overwrite an input.
func (l *linter) lintVariables(at shape.Place) {
	for _, v := range l.d.Variables {
		if slices.ContainsFunc(l.d.Inputs, func(in Input) bool { return in.Name == v.Name }) {
			l.Warnf(at.Key(v.Name), CodeVariableShadows, "rename the variable, or give the input a default",
				"The variable '%s' overwrites the input of the same name: the value of the input is lost.", v.Name)
		}
	}
}

// lintContexts reports unused contexts.
func (l *linter) lintContexts(at shape.Place) {
	for i := range l.d.Contexts {
		name := l.d.Contexts[i].Name
		used := slices.ContainsFunc(l.d.Agents, func(a Agent) bool { return a.Context == name })
		if !used && !l.code.mentionsText(name) {
			l.Warnf(at.Key("contexts").Index(i), CodeContextUnused, "remove the context, or give it to an agent", "No agent uses the context '%s'.", name)
		}
	}
}

// lintAgents reports agents that no state calls, and roles with several parsing tools.
func (l *linter) lintAgents(at shape.Place) {
	for i := range l.d.Agents {
		name := l.d.Agents[i].Role
		if !slices.ContainsFunc(l.d.States, func(s State) bool { return s.Agent == name }) {
			l.Warnf(at.Index(i), CodeAgentUnused, "remove the agent, or add a state for it", "No state calls the agent '%s'.", name)
		}
		if r := l.d.Roles[name]; r != nil && len(r.Parsing) > 1 {
			l.Warnf(at.Index(i).Key("agent_role"), CodeParsingMany, "keep one parsing tool, so that the model is forced to call it",
				"The role '%s' has %d parsing tools: the model may choose one or none.", name, len(r.Parsing))
		}
	}
}

// lintRoles reports roles of the configuration that no agent uses.
func (l *linter) lintRoles(at shape.Place) {
	if at.Node == nil {
		return
	}
	for i := range at.Node.Members {
		if name := at.Node.Members[i].Key; l.d.Roles[name] == nil {
			l.Warnf(at.Member(i), CodeRoleUnused, "remove the role, or add an agent for it", "No agent has the role '%s'.", name)
		}
	}
}

// lintTransitions reports handlers that return unknown states.
func (l *linter) lintTransitions(at shape.Place) {
	for i := range l.d.States {
		s := &l.d.States[i]
		for key, name := range map[string]string{"transition_handler": s.Transition, "error_handler": s.OnError} {
			answers, _ := l.code.returnedTexts(name)
			for _, answer := range answers {
				if answer == StateStop || answer == "" || l.d.State(answer) != nil || !l.Once(name+" "+answer) {
					continue
				}
				l.Warnf(at.Index(i).Key(key), CodeTransitionState, l.Guess(answer, func() []string { return namesOf(l.d.States, stateName) }, "return the name of a state, or stop"),
					"The handler '%s' returns the state '%s', which does not exist.", name, answer)
			}
		}
	}
}

// nextStates returns, in document order, the states that may follow a state, as far as a
// static analysis of the script shows. sure reports whether the list is complete.
func (d *Definition) nextStates(s *State, code scriptIndex) (following []string, sure bool) {
	set := map[string]bool{}
	sure = true
	for _, name := range []string{s.Transition, s.OnError} {
		if name == "" {
			continue
		}
		answers, found := code.returnedTexts(name)
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
	for _, other := range append(namesOf(d.States, stateName), StateStop) {
		if set[other] && !slices.Contains(following, other) || !sure && code.mentionsText(other) && !slices.Contains(following, other) {
			following = append(following, other)
		}
	}
	return following, sure
}

// lintReachability reports unreachable states, and machines that cannot stop.
func (l *linter) lintReachability(at shape.Place) {
	reached := map[string]bool{StateStart: true}
	unsure := false
	for todo := []string{StateStart}; len(todo) > 0; {
		s := l.d.State(todo[0])
		todo = todo[1:]
		if s == nil || s.Name == StateStop {
			continue
		}
		following, sure := l.d.nextStates(s, l.code)
		unsure = unsure || !sure && len(following) == 0
		for _, name := range following {
			if !reached[name] {
				reached[name] = true
				todo = append(todo, name)
			}
		}
	}
	if unsure {
		return // a handler computes state names, so any state may be reachable
	}
	for i := range l.d.States {
		if name := l.d.States[i].Name; !reached[name] && name != StateStop {
			l.Warnf(at.Index(i), CodeUnreachable, "return the state from a transition handler, name it in a next_state, or remove the state", "No transition leads to the state '%s'.", name)
		}
	}
	if !reached[StateStop] {
		l.Warnf(at, CodeNoStop, "have a transition handler return 'stop' when the work is done", "No transition leads to 'stop': the machine runs until a budget is used up.")
	}
}

// lintToolPolicies reports policies for tools that no role has.
func (l *linter) lintToolPolicies(at shape.Place) {
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
			used = used || wildcard.Match(p.Pattern, pattern) || wildcard.Match(pattern, p.Pattern)
		}
		if !used {
			l.Warnf(at.Key(p.Pattern), CodeToolUnused, "remove the entry, or give a role the tool in includedTools", "No role has a tool that matches '%s'.", p.Pattern)
		}
	}
}
