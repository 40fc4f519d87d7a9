package phases

import (
	"fmt"
	"slices"

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
