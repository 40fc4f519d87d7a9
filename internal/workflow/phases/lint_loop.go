package phases

import (
	"fmt"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"github.com/guideway-dev/guideway/internal/platform/lists"
	"github.com/guideway-dev/guideway/internal/workflow/expr"
	"github.com/guideway-dev/guideway/internal/workflow/shape"
	"github.com/guideway-dev/guideway/internal/workflow/toolpolicy"
)

// longLoop is the number of rounds above which a limit is probably a mistake.
const longLoop = 1000

// lintLoop checks a loop.
func (l *linter) lintLoop(at shape.Place, p *Phase, loop *Loop) {
	what := fmt.Sprintf("loop '%s'", loop.ID)
	l.lintSteps(at.Key("steps"), p, loop.Steps, loop.Variable)
	toolpolicy.Lint(&l.Report, at.Key("tools"), loop.Tools, what)
	if len(loop.Steps) == 0 {
		l.Warnf(at, CodeLoopEmpty, "add the steps of a round", "%s has no steps, so it ends immediately.", shape.Capital(what))
	}
	if loop.Phases != nil {
		l.Warnf(at.Key("phases"), CodeLoopPhases, "write the steps of a round under \"steps\", and remove \"phases\"", "The 'phases' of %s are ignored.", what)
	}
	if loop.MaxIterations > longLoop {
		l.Warnf(at.Key("maxIterations"), CodeLoopLong, "choose a value slightly above what a normal run needs",
			"%s may run %d rounds before maxIterations ends it.", shape.Capital(what), loop.MaxIterations)
	}
	if v := l.vars.declared[loop.Variable]; loop.Variable != "" && (v != nil && v.HasDefault || loop.Variable == expr.Root(loop.Over)) {
		l.Warnf(at.Key("variable"), CodeLoopVariableClash, "choose another name",
			"The variable '%s' of %s shadows another variable of that name in its rounds.", loop.Variable, what)
	}
	if loop.BreakCondition != nil {
		one := at.Key("breakCondition")
		l.visitComparisons(one, loop.BreakCondition, func(at shape.Place, leaf *expr.Expr) {
			l.lintRead(at.Key("variable"), leaf.Var, "the breakCondition of "+what, loop.Variable, false)
		})
		l.lintConstant(at.Key("breakCondition"), loop.BreakCondition, "the breakCondition of "+what)
	}
	if loop.Type == LoopForEach {
		l.lintForEach(at, loop, what)
		return
	}
	if loop.Over != "" {
		l.Warnf(at.Key("over"), CodeLoopIgnored, "remove \"over\", or write \"type\": \"forEach\"", "The 'over' of %s has no effect: it is a %s loop.", what, loop.Type)
	}
	l.lintReadsIn(at.Key("condition"), loop.Condition, "the condition of "+what, loop.Variable)
	l.lintLoopEnd(at.Key("condition"), p, loop, what)
}

// lintForEach checks a forEach loop.
func (l *linter) lintForEach(at shape.Place, loop *Loop, what string) {
	if loop.Condition != nil {
		l.Warnf(at.Key("condition"), CodeLoopIgnored, "remove the condition, or write it as \"breakCondition\"", "The condition of %s has no effect: a forEach loop ends with its list.", what)
	}
	if loop.Variable == "" {
		l.Warnf(at, CodeLoopVariableNone, `add "variable": a name for the item of the round`, "%s has no variable, so the agent does not know which item a round is for.", shape.Capital(what))
	}
	l.lintRead(at.Key("over"), loop.Over, "the 'over' of "+what, "", true)
	name := expr.Root(loop.Over)
	v := l.vars.declared[name]
	wrong := v != nil && v.Type != TypeArray && (name == loop.Over || v.Type != TypeObject)
	if _, owned := l.flow.loops[loop][name]; owned || !wrong {
		l.lintOwnedList(at.Key("over"), loop, what)
		return
	}
	want := TypeArray
	if name != loop.Over {
		want = TypeObject
	}
	l.Errorf(at.Key("over"), CodeLoopOverType, fmt.Sprintf("name a variable that holds a list, or change the type of '%s' to %s", name, want),
		"%s goes through '%s', which is never a list, so a run stops there: '%s' is %s.", shape.Capital(what), loop.Over, name, shape.WithArticle(string(v.Type)))
}

// lintLoopEnd checks the conditions that end a loop.
func (l *linter) lintLoopEnd(at shape.Place, p *Phase, loop *Loop, what string) {
	value, constant := l.constantValue(loop.Condition)
	switch {
	case constant && !value:
		rounds := "never runs"
		if loop.Type == LoopDoWhile {
			rounds = "runs once"
		}
		l.Warnf(at, CodeLoopNever, "fix the condition, or write the steps without a loop", "%s %s: its condition is never true: %s.", shape.Capital(what), rounds, loop.Condition)
	case constant && loop.BreakCondition == nil:
		l.Warnf(at, CodeLoopEndless, "compare a variable that changes, or add \"breakCondition\"",
			"%s ends only after %s, by maxIterations: its condition is always true: %s.", shape.Capital(what), shape.Count(loop.MaxIterations, "round"), loop.Condition)
	case !constant && loop.BreakCondition == nil && !l.canChange(loop):
		l.Warnf(at, CodeLoopEndless, "set a variable of the condition by an action of a step in the loop, or let the agent set one",
			"%s ends only after %s, by maxIterations, once it has started: only the workflow sets %s, and no step of the loop does.",
			shape.Capital(what), shape.Count(loop.MaxIterations, "round"), shape.QuotedAll(loop.Condition.Variables()))
	}
}

// canChange reports whether a variable of the loop's condition can change during the loop.
func (l *linter) canChange(loop *Loop) bool {
	return slices.ContainsFunc(loop.Condition.Variables(), func(path string) bool {
		name := expr.Root(path)
		if name == loop.Variable || l.vars.written[name] == nil {
			return true
		}
		return slices.ContainsFunc(loop.Steps, func(s Step) bool {
			return slices.ContainsFunc(s.Actions, func(a Action) bool { return a.Action == ActionSet && expr.Root(a.Target) == name })
		})
	})
}

// lintValidate reports a validate action that no call can fulfill, because of the variable
// that it requires. If the action fails in every run that reaches it, all these runs stop
// at the action, which is an error unless a caller can skip the step.
func (l *linter) lintValidate(at shape.Place, a *Action, what string, canSkip bool) {
	report := l.Errorf
	if canSkip {
		report = l.Warnf
	}
	name := expr.Root(a.Target)
	if values, owned := l.flow.actions[a][name]; owned {
		l.lintOwnedValidate(at, a, what, values, report)
		return
	}
	v, d := l.vars.declared[name], l.vars.domainOf(a.Target)
	switch {
	case v == nil || l.vars.loops[name] || l.vars.written[name] != nil:
	case d.values != nil && len(d.values) == 0:
		report(at.Key("target"), CodeValidateNever, fmt.Sprintf("check '%s' itself, or change its type to object", v.Name),
			"%s always fails: '%s' is %s and has no members.", shape.Capital(what), v.Name, shape.WithArticle(string(v.Type)))
	case a.HasValue && a.Value != nil && d.kind != "" && !d.kind.Fits(a.Value):
		report(at.Key("value"), CodeValidateNever, fmt.Sprintf("write %s", shape.WithArticle(string(d.kind))),
			"%s always fails: '%s' is %s and never equals the value.", shape.Capital(what), a.Target, shape.WithArticle(string(d.kind)))
	}
}

// lintOwnedValidate reports a validate action that refuses one of the values that its
// variable can have, if only the engine writes the variable.
func (l *linter) lintOwnedValidate(at shape.Place, a *Action, what string, set valueSet, report func(shape.Place, string, string, string, ...any)) {
	name := expr.Root(a.Target)
	failing := slices.DeleteFunc(slices.Clone(set.values), func(v any) bool { return a.Holds(expr.Map(map[string]any{name: v})) })
	if set.unknown || len(failing) == 0 {
		return
	}
	required := "a value"
	if a.HasValue {
		required = formatValue(a.Value)
	}
	if len(failing) == len(set.values) {
		report(at, CodeValidateNever, fmt.Sprintf("set '%s' to %s before this action, or remove the action", a.Target, required),
			"%s always fails, so a run stops there: only the workflow sets '%s', to %s.", shape.Capital(what), name, formatValues(failing))
		return
	}
	l.Warnf(at, CodeValidateStops, fmt.Sprintf("instead of requiring %s, let a decision or a transition lead runs with other values to a different phase", required),
		"%s stops a run if '%s' is %s: only the workflow sets it, so no call can continue the run.", shape.Capital(what), name, formatValues(failing))
}

// lintOwnedList reports a forEach loop over a variable that only the engine writes, if it
// can have a value that is not a list, or if nothing sets it before the loop.
func (l *linter) lintOwnedList(at shape.Place, loop *Loop, what string) {
	name := expr.Root(loop.Over)
	set, owned := l.flow.loops[loop][name]
	if !owned || set.unknown || len(set.values) == 0 {
		return
	}
	var wrong []any
	unset := 0
	for _, v := range set.values {
		value, _, _ := expr.Map(map[string]any{name: v}).Path(loop.Over)
		if value == nil {
			unset++
		} else if _, ok := value.([]any); !ok {
			wrong = append(wrong, value)
		}
	}
	switch {
	case len(wrong) == len(set.values):
		l.Errorf(at, CodeLoopOverType, "set the variable to a list before the loop, or let the agent set it",
			"%s needs a list, so a run stops there: only the workflow sets '%s', to %s.", shape.Capital(what), loop.Over, formatValues(wrong))
	case len(wrong) > 0:
		l.Warnf(at, CodeLoopOverType, "set the variable to a list on every path to the loop",
			"%s stops a run if '%s' is %s: only the workflow sets it, and it must be a list.", shape.Capital(what), loop.Over, formatValues(wrong))
	case unset == len(set.values):
		l.Warnf(at, CodeVariableLate, "set the variable to a list before the loop, or let the agent set it",
			"%s never has an item: nothing sets '%s' before the loop, and only the workflow may set it.", shape.Capital(what), loop.Over)
	}
}

// lintEmptyCycles reports phases without work whose transitions form a cycle: a run that
// enters one stops there.
func (l *linter) lintEmptyCycles(at shape.Place) {
	done := make([]bool, len(l.w.Phases))
	for start := range l.w.Phases {
		var path []int
		for i := start; i >= 0 && !done[i] && l.flow.reaches(i); i = l.forcedTarget(&l.w.Phases[i]) {
			if from := slices.Index(path, i); from >= 0 {
				l.Errorf(at.Index(i), CodeEmptyCycle, "add a step or a checkpoint to one of the phases, or a transition with a condition that leads out of the cycle",
					"The phases %s have no work and lead to each other, so a run that enters them never leaves them.", shape.QuotedAll(l.graph.idsOf(path[from:])))
				break
			}
			path = append(path, i)
		}
		for _, i := range path {
			done[i] = true
		}
	}
}

// forcedTarget returns the phase that always follows p if p has no work and none of its
// transitions has a condition. Otherwise it returns -1.
func (l *linter) forcedTarget(p *Phase) int {
	if len(p.Steps)+len(p.Loops)+len(p.Checkpoints)+len(p.Decisions) > 0 || len(p.Transitions) == 0 {
		return -1
	}
	for _, a := range slices.Concat(p.EntryActions, p.ExitActions) {
		if a.Action == ActionValidate {
			return -1
		}
	}
	fallback := -1
	for _, t := range p.Transitions {
		switch {
		case t.Condition != nil:
			return -1
		case !t.IsDefault:
			return l.graph.numbers[t.To]
		case fallback < 0:
			fallback = l.graph.numbers[t.To]
		}
	}
	return fallback
}

// formatValues lists values for a message.
func formatValues(values []any) string {
	const most = 5
	texts := lists.Map(values[:min(len(values), most)], formatValue)
	if len(values) > most {
		texts = append(texts, shape.Count(len(values)-most, "more value"))
	}
	return strings.Join(texts, " or ")
}

// formatValue returns a value as JSON, cut if it is long.
func formatValue(v any) string {
	if v == nil {
		return "nothing (it is unset)"
	}
	text, err := jsontext.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	const longest = 60
	if len(text) > longest {
		return strings.ToValidUTF8(string(text[:longest]), "") + "..."
	}
	return string(text)
}
