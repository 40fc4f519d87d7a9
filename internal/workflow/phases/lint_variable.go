package phases

import (
	"fmt"
	"slices"

	"github.com/guideway-dev/guideway/internal/platform/lists"
	"github.com/guideway-dev/guideway/internal/workflow/expr"
	"github.com/guideway-dev/guideway/internal/workflow/shape"
)

// lintReads checks the variables that a condition reads outside of loops.
func (l *linter) lintReads(at shape.Place, e *expr.Expr, what string) {
	l.lintReadsIn(at, e, what, "")
}

// lintReadsIn checks the variables that a condition reads inside a loop; loop is the name
// of the loop's iteration variable, or "".
func (l *linter) lintReadsIn(at shape.Place, e *expr.Expr, what, loop string) {
	l.visitComparisons(at, e, func(at shape.Place, leaf *expr.Expr) {
		l.lintRead(at.Key("variable"), leaf.Var, what, loop, leaf.Op != expr.Exists && leaf.Op != expr.NotExists)
	})
}

// lintRead checks a read of a variable; waits is set if a run waits for the variable.
func (l *linter) lintRead(at shape.Place, path, what, loop string, waits bool) {
	name := expr.Root(path)
	if name == "" || name == loop {
		return
	}
	effect := "a run waits there until the agent sets it"
	if !waits {
		effect = "it counts as missing until the agent sets it"
	}
	declared, written := l.vars.declared[name], l.vars.written[name] != nil
	switch {
	case written:
	case l.vars.loops[name]:
		if l.Once(CodeLoopVariableReach + name) {
			l.Warnf(at, CodeLoopVariableReach, "to use the value after the loop, set another variable in the loop and read that one; if a different variable is meant, rename it",
				"%s reads '%s', which is the variable of a loop and is undefined outside it.", shape.Capital(what), name)
		}
	case declared == nil:
		if l.Once(CodeVariableUndeclared + name) {
			l.Warnf(at, CodeVariableUndeclared, l.Guess(name, l.declaredNames, fmt.Sprintf("declare '%s' in \"variables\", and describe in a step how to determine it", name)),
				"%s reads '%s', which is not declared and which no effect or action sets: %s.", shape.Capital(what), name, effect)
		}
	case !declared.HasDefault && !declared.Required && !l.vars.asked[name]:
		if l.Once(CodeVariableUnset + name) {
			l.Warnf(at, CodeVariableUnset, "give the variable a default, let an answer or a 'set' action set it, or have a step ask for it by a 'validate' action",
				"%s reads '%s', which has no default and which no effect or action sets: %s.", shape.Capital(what), name, effect)
		}
	}
}

// lintWrite checks a write of a variable.
func (l *linter) lintWrite(at shape.Place, name, what string) {
	root := expr.Root(name)
	if v := l.vars.declared[root]; root != name && v != nil && v.Type != TypeObject && l.Once(CodeVariablePath+name) {
		l.Warnf(at, CodeVariablePath, "set the whole variable, or change its type to object",
			"%s sets '%s', but '%s' is %s and has no members.", shape.Capital(what), name, root, shape.WithArticle(string(v.Type)))
	}
	name = root
	if l.vars.declared[name] == nil && l.Once(CodeVariableUndeclared+name) {
		l.Warnf(at, CodeVariableUndeclared, l.Guess(name, l.declaredNames, fmt.Sprintf("declare '%s' in \"variables\", with its type", name)),
			"%s sets '%s', which is not declared, so its type is not checked.", shape.Capital(what), name)
	}
}

// declaredNames returns the declared variables.
func (l *linter) declaredNames() []string {
	return lists.Map(l.w.Variables, func(v Variable) string { return v.Name })
}

// lintLateReads reports variables that only the engine sets and that are always null where
// they are read, because the write comes later.
func (l *linter) lintLateReads(at shape.Place) {
	after := map[string][]bool{}
	for i := range l.w.Phases {
		p, one := &l.w.Phases[i], at.Index(i)
		check := func(at shape.Place, e *expr.Expr, what string) {
			for _, path := range e.Variables() {
				l.lintLateRead(at, expr.Root(path), i, what, after)
			}
		}
		for j := range p.Decisions {
			for k := range p.Decisions[j].Branches {
				b := &p.Decisions[j].Branches[k]
				check(one.Key("decisions").Index(j).Key("branches").Index(k).Key("condition"), b.Condition,
					fmt.Sprintf("the condition of branch '%s' of decision '%s'", b.ID, p.Decisions[j].ID))
			}
		}
		for j := range p.Transitions {
			check(one.Key("transitions").Index(j).Key("condition"), p.Transitions[j].Condition,
				fmt.Sprintf("the condition of the transition of phase '%s' to '%s'", p.ID, p.Transitions[j].To))
		}
		for j := range p.Loops {
			check(one.Key("loops").Index(j).Key("condition"), p.Loops[j].Condition, fmt.Sprintf("the condition of loop '%s'", p.Loops[j].ID))
		}
	}
}

// lintLateRead checks one read of a variable. A write in the same phase may precede the
// read.
func (l *linter) lintLateRead(at shape.Place, name string, phase int, what string, after map[string][]bool) {
	declared, writers := l.vars.declared[name], l.vars.writers[name]
	if len(writers) == 0 || l.vars.loops[name] || declared != nil && declared.HasDefault || slices.Contains(writers, phase) || l.Full() {
		return
	}
	if after[name] == nil {
		after[name] = l.graph.reachableFrom(writers, false)
	}
	if after[name][phase] || !l.Once(CodeVariableLate+name) {
		return
	}
	l.Warnf(at, CodeVariableLate, "give the variable a default, or set it in an earlier phase",
		"%s reads '%s' before anything sets it: the variable is null there, and only the workflow may set it.", shape.Capital(what), name)
}
