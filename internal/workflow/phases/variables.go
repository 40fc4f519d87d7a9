package phases

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway/internal/platform/lists"
	"github.com/guideway-dev/guideway/internal/workflow/expr"
	"github.com/guideway-dev/guideway/internal/workflow/shape"
)

// variableIndex describes the variables of a workflow.
type variableIndex struct {
	declared map[string]*Variable
	// written maps a variable to the distinct values that effects and set actions write to
	// it. It has only one of the lists and objects that are written, because comparisons do
	// not distinguish them.
	written map[string][]any
	// writers maps the name of a variable to the indices of the phases that write it.
	writers map[string][]int
	// loops contains the names of the iteration variables of loops.
	loops map[string]bool
	// asked are the variables that a validate action requires: the run asks the agent for
	// them at that action.
	asked map[string]bool
}

// newVariables indexes the variables of a workflow.
func newVariables(w *Workflow) *variableIndex {
	v := &variableIndex{
		declared: map[string]*Variable{}, written: map[string][]any{}, writers: map[string][]int{}, loops: map[string]bool{}, asked: map[string]bool{},
	}
	for i := range w.Variables {
		v.declared[w.Variables[i].Name] = &w.Variables[i]
	}
	for i := range w.Phases {
		p := &w.Phases[i]
		v.addActions(i, p.EntryActions)
		v.addActions(i, p.ExitActions)
		v.addSteps(i, p.Steps)
		for j := range p.Loops {
			if name := p.Loops[j].Variable; name != "" {
				v.loops[name] = true
			}
			v.addSteps(i, p.Loops[j].Steps)
		}
		for j := range p.Checkpoints {
			for _, option := range p.Checkpoints[j].Options {
				for _, set := range option.Effect.SetVariable {
					v.addWrite(i, set.Name, set.Value)
				}
			}
		}
	}
	return v
}

func (v *variableIndex) addSteps(phase int, steps []Step) {
	for i := range steps {
		v.addActions(phase, steps[i].Actions)
	}
}

func (v *variableIndex) addActions(phase int, actions []Action) {
	for i := range actions {
		switch a := &actions[i]; {
		case a.Action == ActionSet && a.Target != "":
			v.addWrite(phase, a.Target, a.Value)
		case a.Action == ActionValidate:
			v.asked[expr.Root(a.Target)] = true
		}
	}
}

// manyValues is the number of values above which the domain of a variable is treated as
// unknown.
const manyValues = 64

// addWrite records a value that the engine writes to a variable, or to a member of it.
func (v *variableIndex) addWrite(phase int, path string, value any) {
	name := expr.Root(path)
	value = SetPath(nil, path, value)[name]
	if values := v.written[name]; len(values) <= manyValues && !slices.ContainsFunc(values, func(other any) bool { return areAlike(value, other) }) {
		v.written[name] = append(values, value)
	}
	if n := len(v.writers[name]); n == 0 || v.writers[name][n-1] != phase {
		v.writers[name] = append(v.writers[name], phase)
	}
}

// areAlike reports whether no comparison distinguishes two values.
func areAlike(a, b any) bool {
	switch a.(type) {
	case []any:
		_, ok := b.([]any)
		return ok
	case map[string]any:
		_, ok := b.(map[string]any)
		return ok
	}
	switch b.(type) {
	case []any, map[string]any:
		return false
	}
	return a == b
}

// domain describes the possible values at a path. The zero value means unknown.
type domain struct {
	// kind is the type of all values; "" means any. If null is set, null is possible too.
	kind VariableType
	null bool
	// values are all possible values; nil means unknown.
	values []any
	// set reports whether the path always has a value.
	set bool
}

// sampleValues returns values of the domain so that every possible value compares with the
// literals like one of the samples.
func (d domain) sampleValues(literals []any) []any {
	if d.values != nil {
		return d.values
	}
	all, word := []any{nil, true, false, 0.0, []any{}, map[string]any{}}, "~"
	for _, literal := range literals {
		switch literal := literal.(type) {
		case string:
			all = append(all, literal)
			if len(literal) >= len(word) {
				word = literal + "~" // longer than every literal
			}
		case float64:
			all = append(all, literal, math.Nextafter(literal, math.Inf(-1)), math.Nextafter(literal, math.Inf(1)))
		}
	}
	return slices.DeleteFunc(append(all, word), func(value any) bool {
		return d.kind != "" && !d.kind.Fits(value) && (value != nil || !d.null)
	})
}

// domainOf returns the domain of a path. A variable that the engine writes has only the
// written values, and before them its default or null; see Workflow.Owned.
func (v *variableIndex) domainOf(path string) domain {
	root := expr.Root(path)
	declared := v.declared[root]
	if v.loops[root] {
		return domain{}
	}
	if root != path {
		return v.partDomain(declared, path)
	}
	if written, ok := v.written[path]; ok {
		if len(written) > manyValues {
			return domain{set: true}
		}
		values := slices.Clone(written)
		if declared != nil && declared.HasDefault {
			return domain{values: append(values, declared.DefaultValue), set: true}
		}
		return domain{values: append(values, nil), set: true}
	}
	if declared == nil {
		return domain{}
	}
	if declared.HasDefault && declared.DefaultValue == nil {
		return domain{kind: declared.Type, null: true, set: true}
	}
	return domain{kind: declared.Type, set: declared.HasDefault || declared.Required}
}

// partDomain returns the domain of a path into a variable: a scalar has no parts, and a
// list has indices and a length.
func (v *variableIndex) partDomain(declared *Variable, path string) domain {
	if declared == nil {
		return domain{}
	}
	first, _, deeper := strings.Cut(strings.TrimPrefix(path, declared.Name+"."), ".")
	switch {
	case declared.Type == TypeObject, declared.Type == TypeArray && isDigits(first):
		return domain{}
	case declared.Type == TypeArray && first == "length" && !deeper:
		return domain{kind: TypeNumber, set: declared.HasDefault || declared.Required}
	default:
		return domain{values: []any{}}
	}
}

// constantReason returns the reason why a comparison always has the same result, or "" if
// the comparison itself makes the reason obvious.
func (v *variableIndex) constantReason(leaf *expr.Expr) string {
	root := expr.Root(leaf.Var)
	declared := v.declared[root]
	_, number := leaf.Value.(float64)
	orders := slices.Contains([]expr.Op{expr.Gt, expr.Gte, expr.Lt, expr.Lte}, leaf.Op)
	switch written := v.written[leaf.Var]; {
	case orders && !number:
		return "only numbers have an order"
	case v.loops[root] || declared == nil && written == nil:
		return ""
	case root != leaf.Var && declared != nil:
		return fmt.Sprintf("'%s' is %s", root, shape.WithArticle(string(declared.Type)))
	case declared != nil && leaf.Value != nil && !declared.Type.Fits(leaf.Value):
		return fmt.Sprintf("'%s' is %s", root, shape.WithArticle(string(declared.Type)))
	case written != nil:
		return fmt.Sprintf("no answer or action changes '%s', and only the workflow can set it", root)
	case declared.HasDefault:
		return fmt.Sprintf("'%s' has a default", root)
	case declared.Required:
		return fmt.Sprintf("'%s' is required", root)
	default:
		return ""
	}
}

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
